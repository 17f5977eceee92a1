//! Where chains start: models from the prior, parameters around a mode of the posterior given the model.

use super::batch::ChainBatch;
use super::settings::RjmcmcError;
use super::tuning::Tuning;
use crate::optimise::{curvature, maximise};
use crate::problem::{BatchError, FreeRows, Problem};
use crate::random::Stream;
use crate::triangular::{cholesky, lower_half, solve_transposed};
use crate::workers::Workers;

/// How often a chain looks for a place to start from.
const MAX_ATTEMPTS: usize = 20;
/// Moves per bit of the walk that draws a model from the prior.
const PRIOR_SWEEPS: usize = 20;
/// Steps up to a mode.
const MAX_STEPS_TO_MODE: usize = 200;
/// Starts lie so many standard deviations around the mode.
const START_SPREAD: f64 = 2.0;
/// A start says as much about the posterior as so many states of a chain.
const START_WEIGHT: f64 = 10.0;

impl ChainBatch<'_> {
    /// Finds a place for each chain.
    pub(super) fn start(&mut self, tuning: &Tuning) -> Result<(), RjmcmcError> {
        let mut one = FreeRows::new(self.problem, 1);
        for number in 0..self.walkers.len() {
            let chain = self.first + number;
            let found = (0..MAX_ATTEMPTS)
                .try_fold(false, |found, _| if found { Ok(true) } else { self.try_start(number, &mut one, tuning) });
            if !found? {
                return Err(RjmcmcError::NoStart { chain, attempts: MAX_ATTEMPTS });
            }
        }
        Ok(())
    }

    /// Draws a model, climbs from a draw of the pseudo-prior, and goes some way from the mode.
    fn try_start(&mut self, number: usize, one: &mut FreeRows<'_>, tuning: &Tuning) -> Result<bool, BatchError> {
        let walker = &mut self.walkers[number];
        draw_model(self.problem, &mut walker.stream, one.row(0).word);
        one.mark_active(0);
        let log_prior = self.problem.log_prior(one.word(0));
        let start: Vec<f64> = one.active(0).iter().map(|&i| tuning.place(i, walker.stream.normal())).collect();
        let mut failure = None;
        let mut density = |point: &[f64], gradient: &mut [f64]| evaluate(one, point, gradient, &mut failure);
        let mode = maximise(&start, MAX_STEPS_TO_MODE, &mut density);
        let curved = mode.as_ref().map(|mode| curvature(&mode.point, &mut density));
        if let Some(error) = failure {
            return Err(error);
        }
        let (Some(mode), Some(curved)) = (mode, curved) else { return Ok(false) };
        let mut factor = lower_half(&curved, mode.point.len());
        let mut around = mode.point.clone();
        if cholesky(&mut factor, around.len()).is_ok() {
            around.iter_mut().for_each(|z| *z = walker.stream.normal());
            solve_transposed(&factor, &mut around);
            around.iter_mut().zip(&mode.point).for_each(|(z, mode)| *z = mode + START_SPREAD * *z);
        }
        for point in [around, mode.point] {
            one.row(0).free[..point.len()].copy_from_slice(&point);
            one.evaluate(&Workers::SINGLE)?;
            let log_target = log_prior + one.log_density(0);
            if log_target.is_finite() {
                (walker.log_prior, walker.log_target) = (log_prior, log_target);
                walker.take(one, 0, true);
                self.moments.add_start(&walker.active, &walker.free, &curved, START_WEIGHT);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The density at a point of the model that is in the row.
fn evaluate(one: &mut FreeRows<'_>, point: &[f64], gradient: &mut [f64], failure: &mut Option<BatchError>) -> f64 {
    one.row(0).free[..point.len()].copy_from_slice(point);
    if let Err(error) = one.evaluate(&Workers::SINGLE) {
        *failure = Some(error);
        return f64::NAN;
    }
    one.gradient(0, gradient);
    one.log_density(0)
}

/// A model from the prior, very nearly: symbols drawn one by one, then Metropolis flips of bits.
fn draw_model(problem: &dyn Problem, stream: &mut Stream, word: &mut [u16]) {
    let space = problem.space();
    let mut allowed = [true; 2];
    for position in 0..word.len() {
        space.allow(&word[..position], &mut allowed);
        let symbol = stream.below(2) as usize;
        word[position] = if allowed[symbol] { symbol } else { 1 - symbol } as u16;
    }
    let mut log_prior = problem.log_prior(word);
    for _ in 0..PRIOR_SWEEPS * word.len() {
        let bit = stream.below(word.len() as u64) as usize;
        word[bit] ^= 1;
        let forbidden = space.is_constrained() && !space.is_allowed(word);
        let proposed = if forbidden { f64::NEG_INFINITY } else { problem.log_prior(word) };
        // From a model of prior probability 0 any other is welcome.
        if stream.uniform().ln() < proposed - log_prior || !log_prior.is_finite() {
            log_prior = proposed;
        } else {
            word[bit] ^= 1;
        }
    }
}

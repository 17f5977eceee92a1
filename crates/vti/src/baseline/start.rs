//! Where chains start: models from the prior, parameters around a peak of the posterior given the model.

use super::lane::Lane;
use super::settings::RjmcmcError;
use super::tuning::Tuning;
use crate::optimise::{climb, curvature};
use crate::problem::{BatchError, FreeRows, Problem};
use crate::random::Stream;
use crate::triangular::{cholesky, lower_half, solve_transposed};
use crate::workers::Workers;

/// How often a chain looks for a place to start from.
const ATTEMPTS: usize = 20;
/// Moves per bit of the walk that draws a model from the prior.
const PRIOR_SWEEPS: usize = 20;
/// Steps up to a peak.
const CLIMB: usize = 200;
/// Starts lie so many standard deviations around the peak.
const SPREAD: f64 = 2.0;
/// A start says as much about the posterior as so many states of a chain.
const WORTH: f64 = 10.0;

impl Lane<'_> {
    /// Finds a place for each chain.
    pub(super) fn start(&mut self, tuning: &Tuning) {
        let problem = self.problem;
        let mut one = FreeRows::new(problem, 1);
        for number in 0..self.walkers.len() {
            let chain = self.first + number;
            let found = (0..ATTEMPTS)
                .try_fold(false, |found, _| if found { Ok(true) } else { self.try_start(number, &mut one, tuning) });
            match found {
                Ok(true) => {}
                Ok(false) => self.error = Some(RjmcmcError::NoStart { chain, attempts: ATTEMPTS }),
                Err(error) => self.error = Some(error.into()),
            }
            if self.error.is_some() {
                return;
            }
        }
    }

    /// Draws a model, climbs from a draw of the pseudo-prior, and goes some way from the peak.
    fn try_start(&mut self, number: usize, one: &mut FreeRows<'_>, tuning: &Tuning) -> Result<bool, BatchError> {
        let walker = &mut self.walkers[number];
        draw_model(self.problem, &mut walker.stream, one.row(0).word);
        one.mark_active(0);
        let log_prior = self.problem.log_prior(one.word(0));
        let start: Vec<f64> = one.active(0).iter().map(|&i| tuning.place(i, walker.stream.normal())).collect();
        let mut failure = None;
        let mut density = |point: &[f64], gradient: &mut [f64]| evaluate(one, point, gradient, &mut failure);
        let peak = climb(&start, CLIMB, &mut density);
        let curved = peak.as_ref().map(|peak| curvature(&peak.point, &mut density));
        if let Some(error) = failure {
            return Err(error);
        }
        let (Some(peak), Some(curved)) = (peak, curved) else { return Ok(false) };
        let mut factor = lower_half(&curved, peak.point.len());
        let mut around = peak.point.clone();
        if cholesky(&mut factor, around.len()).is_ok() {
            around.iter_mut().for_each(|z| *z = walker.stream.normal());
            solve_transposed(&factor, &mut around);
            around.iter_mut().zip(&peak.point).for_each(|(z, peak)| *z = peak + SPREAD * *z);
        }
        for point in [around, peak.point] {
            one.row(0).free[..point.len()].copy_from_slice(&point);
            one.evaluate(&Workers::SINGLE)?;
            let log_target = log_prior + one.log_density(0);
            if log_target.is_finite() {
                (walker.log_prior, walker.log_target) = (log_prior, log_target);
                walker.take(one, 0, true);
                self.moments.add_start(&walker.active, &walker.free, &curved, WORTH);
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

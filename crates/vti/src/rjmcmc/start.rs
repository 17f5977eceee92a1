//! Where chains start: models from the prior, parameters around a mode of the posterior given the model.

use super::batch::{ChainBatch, Walker};
use super::settings::RjmcmcError;
use super::tuning::Tuning;
use crate::optimise::{Asks, Climb, Curvature};
use crate::problem::{FreeRows, Gradient, Problem, random_word};
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

/// Finds a place for each chain. All look at the same time, each in its own row, and densities are asked for in one call.
pub(super) fn start(
    batches: &mut [ChainBatch<'_>],
    rows: &mut FreeRows<'_>,
    workers: &Workers,
    tuning: &Tuning,
) -> Result<(), RjmcmcError> {
    let walkers = batches.iter_mut().flat_map(|batch| batch.walkers.iter_mut());
    let mut starts: Vec<Start<'_>> = walkers.map(Start::new).collect();
    for (row, start) in starts.iter_mut().enumerate() {
        start.attempt(rows, row, tuning);
    }
    while starts.iter().any(|start| start.asked().is_some()) {
        for (row, point) in starts.iter().enumerate().filter_map(|(row, start)| Some((row, start.asked()?))) {
            rows.row(row).free[..point.len()].copy_from_slice(point);
        }
        rows.evaluate(workers)?;
        for (row, start) in starts.iter_mut().enumerate().filter(|(_, start)| start.asked().is_some()) {
            start.tell(rows, row, tuning);
        }
    }
    if let Some(chain) = starts.iter().position(|start| !matches!(start.stage, Stage::Found)) {
        return Err(RjmcmcError::NoStart { chain, attempts: MAX_ATTEMPTS });
    }
    let mut curvatures = starts.into_iter().map(|start| start.curvature).collect::<Vec<_>>().into_iter();
    for batch in batches {
        for (walker, curvature) in batch.walkers.iter().zip(&mut curvatures) {
            if curvature.len() != walker.active.len() * walker.active.len() {
                continue;
            }
            batch.moments.add_start(&walker.active, &walker.free, &curvature, START_WEIGHT);
        }
    }
    Ok(())
}

/// A chain that looks for a place: it draws a model, climbs from a draw of the pseudo-prior, and goes some way from the mode.
struct Start<'w> {
    walker: &'w mut Walker,
    stage: Stage,
    attempts: usize,
    /// The negative Hessian at the mode.
    curvature: Vec<f64>,
}

enum Stage {
    Climb(Climb),
    /// How sharp the mode is.
    Curvature(Vec<f64>, Curvature),
    /// A point, and another one if there is no density.
    Point(Vec<f64>, Option<Vec<f64>>),
    Found,
    /// After so many attempts.
    NotFound,
}

impl<'w> Start<'w> {
    fn new(walker: &'w mut Walker) -> Self {
        Self { walker, stage: Stage::NotFound, attempts: 0, curvature: Vec::new() }
    }

    /// Draws a model and where to climb from, unless it has done so often enough.
    fn attempt(&mut self, rows: &mut FreeRows<'_>, row: usize, tuning: &Tuning) {
        if self.attempts == MAX_ATTEMPTS {
            self.stage = Stage::NotFound;
            return;
        }
        self.attempts += 1;
        let problem = rows.problem();
        match problem.jumps() {
            Some(_) => rows.row(row).word.copy_from_slice(&random_word(problem.space(), &mut self.walker.stream)),
            None => draw_model(problem, &mut self.walker.stream, rows.row(row).word),
        }
        rows.mark_active(row);
        self.walker.log_prior = problem.log_prior(rows.word(row));
        let stream = &mut self.walker.stream;
        let from: Vec<f64> = rows.active(row).iter().map(|&i| tuning.place(i, stream.normal())).collect();
        self.stage = match problem.gradient() {
            Gradient::Exact => Stage::Climb(Climb::new(&from, MAX_STEPS_TO_MODE)),
            Gradient::None => Stage::Point(from, None),
        };
    }

    /// Where it wants the density; nothing when it has ended.
    fn asked(&self) -> Option<&[f64]> {
        match &self.stage {
            Stage::Climb(climb) => climb.asked(),
            Stage::Curvature(_, curvature) => curvature.asked(),
            Stage::Point(point, _) => Some(point),
            Stage::Found | Stage::NotFound => None,
        }
    }

    /// Goes on with the density of its row.
    fn tell(&mut self, rows: &mut FreeRows<'_>, row: usize, tuning: &Tuning) {
        let value = rows.log_density(row);
        let mut gradient = vec![0.0; rows.active(row).len()];
        rows.gradient(row, &mut gradient);
        match &mut self.stage {
            Stage::Climb(climb) => climb.tell(value, &gradient),
            Stage::Curvature(_, curvature) => curvature.tell(value, &gradient),
            Stage::Point(..) => return self.take(rows, row, tuning),
            Stage::Found | Stage::NotFound => {}
        }
        while self.asked().is_none() {
            let stage = std::mem::replace(&mut self.stage, Stage::NotFound);
            self.stage = match stage {
                Stage::Climb(climb) => match climb.mode() {
                    Some(mode) => {
                        let curvature = Curvature::new(&mode.point);
                        Stage::Curvature(mode.point, curvature)
                    }
                    None => return self.attempt(rows, row, tuning),
                },
                Stage::Curvature(mode, curvature) => {
                    self.curvature = curvature.matrix;
                    self.around(mode)
                }
                ended => {
                    self.stage = ended;
                    return;
                }
            };
        }
    }

    /// A point some standard deviations from the mode, if the mode is sharp in all directions.
    fn around(&mut self, mode: Vec<f64>) -> Stage {
        let mut factor = lower_half(&self.curvature, mode.len());
        if cholesky(&mut factor, mode.len()).is_err() {
            return Stage::Point(mode, None);
        }
        let mut around: Vec<f64> = mode.iter().map(|_| self.walker.stream.normal()).collect();
        solve_transposed(&factor, &mut around);
        around.iter_mut().zip(&mode).for_each(|(z, mode)| *z = mode + START_SPREAD * *z);
        Stage::Point(around, Some(mode))
    }

    /// Stays at the point of its row if it has a density.
    fn take(&mut self, rows: &mut FreeRows<'_>, row: usize, tuning: &Tuning) {
        let log_target = self.walker.log_prior + rows.log_density(row);
        if log_target.is_finite() {
            self.walker.log_target = log_target;
            self.walker.take(rows, row, true);
            self.stage = Stage::Found;
        } else if let Stage::Point(_, Some(mode)) = &mut self.stage {
            self.stage = Stage::Point(std::mem::take(mode), None);
        } else {
            self.attempt(rows, row, tuning);
        }
    }
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

//! Several runs from different seeds, of which the best is kept.

use std::ops::ControlFlow;

use super::{Fit, StepReport, Stop, TrainError, TrainSettings, Trainer};
use crate::engine::Engine;
use crate::family::FamilySettings;
use crate::problem::Problem;
use crate::stats::Estimate;

/// What became of one run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Replicate {
    /// Its seed.
    pub seed: u64,
    /// Its terminal bound, from fresh draws.
    pub elbo: Estimate,
    /// Why it ended.
    pub stop: Stop,
    /// Seconds of training.
    pub seconds: f64,
}

/// Several runs.
pub struct Replicates<'a, P: Problem, E: Engine> {
    /// The run with the best terminal bound.
    pub best: Fit<'a, P, E>,
    /// All runs, in order.
    pub all: Vec<Replicate>,
}

impl<P: Problem, E: Engine> std::fmt::Debug for Replicates<'_, P, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replicates").field("best", &self.best).field("all", &self.all).finish()
    }
}

/// Draws for a terminal bound.
const DRAWS: usize = 4096;

/// Trains `count` times with seeds `settings.seed`, `settings.seed + 1`, …; `observer` sees all steps with the number of
/// their run. Once it stops one run, no other starts.
pub fn replicates<'a, P: Problem, E: Engine>(
    problem: &'a P,
    engine: &'a E,
    family: &FamilySettings,
    settings: &TrainSettings,
    count: usize,
    mut observer: impl FnMut(usize, &StepReport) -> ControlFlow<()>,
) -> Result<Replicates<'a, P, E>, TrainError> {
    let mut best: Option<(f64, Fit<'a, P, E>)> = None;
    let mut all = Vec::with_capacity(count);
    for run in 0..count.max(1) {
        let seed = settings.seed.wrapping_add(run as u64);
        let mut settings = TrainSettings { seed, ..settings.clone() };
        if let Some(checkpoint) = settings.checkpoint.as_mut().filter(|_| count > 1) {
            // Each run has a file of its own.
            let name = checkpoint.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let extension = checkpoint.path.extension().unwrap_or_default().to_string_lossy().into_owned();
            checkpoint.path.set_file_name(format!("{name}-{run}.{extension}"));
        }
        let mut own = |report: &StepReport| observer(run, report);
        let mut fit = Trainer::new(problem, engine, family, &settings)?.run(&mut own)?;
        let elbo = fit.posterior.elbo(DRAWS)?;
        all.push(Replicate { seed, elbo, stop: fit.stop.clone(), seconds: fit.seconds });
        let stopped = fit.stop == Stop::Observer;
        if best.as_ref().is_none_or(|(value, _)| elbo.value > *value) {
            best = Some((elbo.value, fit));
        }
        if stopped {
            break;
        }
    }
    match best {
        Some((_, best)) => Ok(Replicates { best, all }),
        None => unreachable!("at least one run was made"),
    }
}

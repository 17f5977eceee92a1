//! Several runs from different seeds, of which the best is kept.

use std::ops::ControlFlow;
use std::time::Instant;

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
    /// Its terminal bound, from fresh draws; none if it failed.
    pub elbo: Option<Estimate>,
    /// Why it ended.
    pub ending: Ending,
    /// Seconds of training.
    pub seconds: f64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// As it should.
    Stopped(Stop),
    /// With an error.
    Failed(String),
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
/// their run. Once it stops one run, no other starts. A run that fails is reported; the error is returned if all do.
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
    let mut first_error = None;
    for run in 0..count.max(1) {
        let seed = settings.seed.wrapping_add(run as u64);
        let mut settings = TrainSettings { seed, ..settings.clone() };
        if let Some(checkpoint) = settings.checkpoint.as_mut().filter(|_| count > 1) {
            // Each run has a file of its own.
            let name = checkpoint.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let extension = checkpoint.path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
            checkpoint.path.set_file_name(format!("{name}-{run}{}", extension.unwrap_or_default()));
        }
        let mut own = |report: &StepReport| observer(run, report);
        let start = Instant::now();
        let trained = Trainer::new(problem, engine, family, &settings).and_then(|trainer| trainer.run(&mut own));
        let trained = trained.and_then(|mut fit| Ok((fit.posterior.elbo(DRAWS)?, fit)));
        let seconds = start.elapsed().as_secs_f64();
        match trained {
            Ok((elbo, fit)) => {
                let ending = Ending::Stopped(fit.stop.clone());
                all.push(Replicate { seed, elbo: Some(elbo), ending, seconds: fit.seconds });
                let stopped = fit.stop == Stop::Observer;
                // Not a number is worse than any.
                if best.as_ref().is_none_or(|(value, _)| elbo.value > *value || value.is_nan()) {
                    best = Some((elbo.value, fit));
                }
                if stopped {
                    break;
                }
            }
            Err(error) => {
                all.push(Replicate { seed, elbo: None, ending: Ending::Failed(error.to_string()), seconds });
                first_error.get_or_insert(error);
            }
        }
    }
    match (best, first_error) {
        (Some((_, best)), _) => Ok(Replicates { best, all }),
        (None, Some(error)) => Err(error),
        (None, None) => unreachable!("at least one run was made"),
    }
}

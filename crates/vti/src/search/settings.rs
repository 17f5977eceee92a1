//! Settings of a search, what it tells on the way, and what can go wrong.

use serde::{Deserialize, Serialize};

use super::LearnedSettings;
use crate::models::ModelsError;
use crate::optimise::SettingError;
use crate::problem::DensityError;
use crate::problem::selection::ExactError;
use crate::space::SpaceError;
use crate::stats::Diagnosis;

/// Settings of a search over models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchSettings {
    /// Seed of all randomness.
    pub seed: u64,
    /// Groups of chains; one chain of each has the posterior as its target.
    pub chains: usize,
    /// Chains of a group: the posterior's, and others between it and the prior, whose temperatures are found in the warm-up.
    pub temperatures: usize,
    /// Iterations of each chain after the warm-up, at most.
    pub iterations: usize,
    /// Iterations before that, in which temperatures and moves are adapted.
    pub warmup: usize,
    /// Evidences that are asked for, at most.
    pub max_models: usize,
    /// Iterations between two looks at how well chains agree, at least; later ones are farther apart.
    pub batch: usize,
    /// R̂ of every feature must not exceed this.
    pub max_rhat: f64,
    /// The effective sample size of every feature must reach this.
    pub min_effective: f64,
    /// The standard error of every feature's probability must not exceed this, by visits or by evidences; errors of evidences
    /// themselves, which more iterations do not lessen, are not counted.
    pub max_error: f64,
    /// Steps of a greedy climb, at most.
    pub climb: usize,
    /// Models whose evidences are remembered, at most; the less probable half is forgotten when there are more.
    pub remembered: usize,
    /// Models that are reported, at most.
    pub leading: usize,
    /// How q(m) learns what was found, where it does.
    pub learned: LearnedSettings,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            seed: 1,
            chains: 4,
            temperatures: 3,
            iterations: 2_000_000,
            warmup: 5_000,
            max_models: 1 << 27,
            batch: 2_000,
            max_rhat: 1.01,
            min_effective: 400.0,
            max_error: 0.01,
            climb: 50,
            remembered: 1 << 18,
            leading: 10_000,
            learned: LearnedSettings::default(),
        }
    }
}

impl SearchSettings {
    /// Refuses settings that make no sense.
    pub fn check(&self) -> Result<(), SettingError> {
        let at_least =
            |what, value: usize, least: usize, range| SettingError::check(what, value as f64, value >= least, range);
        at_least("chains", self.chains, 2, "at least 2")?;
        at_least("temperatures", self.temperatures, 1, "at least 1")?;
        at_least("iterations", self.iterations, 4, "at least 4")?;
        at_least("max_models", self.max_models, 1, "at least 1")?;
        at_least("batch", self.batch, 1, "at least 1")?;
        at_least("remembered", self.remembered, 1024, "at least 1024")?;
        at_least("leading", self.leading, 1, "at least 1")?;
        self.learned.check()?;
        SettingError::check("max_rhat", self.max_rhat, self.max_rhat >= 1.0, "at least 1")?;
        SettingError::check("max_error", self.max_error, self.max_error > 0.0, "positive")?;
        SettingError::check("min_effective", self.min_effective, self.min_effective >= 0.0, "at least 0")
    }
}

impl SearchSettings {
    /// Whether chains agree, and well enough to say how probable everything is.
    pub(super) fn content(&self, diagnosis: &Diagnosis, error: f64) -> bool {
        diagnosis.rhat <= self.max_rhat && diagnosis.effective >= self.min_effective && error <= self.max_error
    }
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchProgress {
    /// Iterations so far, the warm-up included; 0 during the climb.
    pub iteration: usize,
    /// Evidences asked for so far.
    pub asked: usize,
    /// The largest R̂ at the last look, and the smallest effective sample size.
    pub diagnosis: Option<Diagnosis>,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All chains agree.
    Converged,
    /// As many iterations as allowed.
    Iterations,
    /// As many evidences as allowed.
    Models,
    /// The caller had enough.
    Stopped,
}

/// A search that cannot go on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// A setting out of its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A start that is no model.
    #[error("start {start}: {error}")]
    Start {
        /// Which one, counted from 0.
        start: usize,
        /// What is wrong with it.
        error: SpaceError,
    },
    /// There are no evidences in closed form.
    #[error(transparent)]
    ClosedForm(#[from] ExactError),
    /// q(m) cannot be learned.
    #[error(transparent)]
    Models(#[from] ModelsError),
    /// Evidences failed for good.
    #[error(transparent)]
    Evidence(#[from] DensityError),
    /// Another number of evidences than of words.
    #[error("{found} evidences for {asked} models")]
    Count {
        /// How many came.
        found: usize,
        /// How many were asked for.
        asked: usize,
    },
    /// No model is possible.
    #[error("no model was found whose evidence is positive")]
    NoModel,
    /// It was stopped, or its limits were reached, before there was anything to tell.
    #[error("the search ended before there was anything to tell")]
    TooShort,
}

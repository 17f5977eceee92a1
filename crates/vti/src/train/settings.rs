//! Settings of a training run.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::optimise::{OptimiserSettings, Schedule, SettingError};

/// How to train.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainSettings {
    /// Seed of all randomness.
    pub seed: u64,
    /// Draws per step.
    pub batch: usize,
    /// Steps at most; schedules run over so many.
    pub steps: u64,
    /// Seconds at most.
    pub time_limit: Option<f64>,
    /// When to stop because nothing improves any more; never if none.
    pub plateau: Option<PlateauSettings>,
    /// Optimiser of φ.
    pub optimiser: OptimiserSettings,
    /// Learning rate of φ.
    pub schedule: Schedule,
    /// Learning rate of ψ, where it has one.
    pub model_schedule: Schedule,
    /// Gradient estimator of φ.
    pub flow_gradient: FlowGradient,
    /// How fast the entropy of q(m) may change.
    pub information: InformationSettings,
    /// The largest share of draws that are not finite in a batch.
    pub max_dropped: f64,
    /// Where and how often to save; never if none.
    pub checkpoint: Option<CheckpointSettings>,
}

/// Estimators of the gradient with respect to φ of `E_z[log q_φ(T_φ(z)) − log η(T_φ(z))]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowGradient {
    /// All of it.
    Reparameterised,
    /// Without the part whose mean is 0, the score of q at fixed θ (Roeder, Wu and Duvenaud 2017): its variance vanishes
    /// where q is exact.
    #[default]
    PathDerivative,
}

/// When nothing improves any more: the mean bound of one window is compared with that of the window before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlateauSettings {
    /// Steps of a window.
    pub window: u64,
    /// Nats that a window must gain; or two standard errors of the gain, where that is more.
    pub tolerance: f64,
}

impl Default for PlateauSettings {
    fn default() -> Self {
        Self { window: 500, tolerance: 0.01 }
    }
}

/// The information limit (paper, section "Information-limiting the optimization").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InformationSettings {
    /// Nats by which the entropy of q(m) may change in the first step; no limit if none.
    pub limit: Option<f64>,
    /// Each step's limit is that of the step before divided by 1 + this.
    pub decay: f64,
}

impl Default for InformationSettings {
    fn default() -> Self {
        Self { limit: Some(5e-2), decay: 5e-5 }
    }
}

impl InformationSettings {
    /// The limit of a step.
    pub fn at(&self, step: u64) -> f64 {
        self.limit.map_or(f64::INFINITY, |limit| limit * (1.0 + self.decay).powf(-(step as f64)))
    }
}

/// Where and how often a run is saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointSettings {
    /// The file.
    pub path: PathBuf,
    /// Seconds between one and the next.
    #[serde(default = "half_a_minute")]
    pub every: f64,
}

fn half_a_minute() -> f64 {
    30.0
}

impl Default for TrainSettings {
    fn default() -> Self {
        Self {
            seed: 1,
            batch: 1024,
            steps: 3000,
            time_limit: None,
            plateau: None,
            optimiser: OptimiserSettings::default(),
            schedule: Schedule::WarmupDecay { rate: 3e-3, warmup: 0.02, hold: 0.4 },
            model_schedule: Schedule::WarmupDecay { rate: 3e-2, warmup: 0.02, hold: 0.4 },
            flow_gradient: FlowGradient::default(),
            information: InformationSettings::default(),
            max_dropped: 0.1,
            checkpoint: None,
        }
    }
}

impl TrainSettings {
    /// Refuses settings that make no sense.
    pub fn check(&self) -> Result<(), SettingError> {
        let check = SettingError::check;
        check("batch", self.batch as f64, self.batch > 0, "at least 1")?;
        check("steps", self.steps as f64, self.steps > 0, "at least 1")?;
        let positive = |what, value: Option<f64>| {
            let value = value.unwrap_or(1.0);
            check(what, value, value > 0.0, "positive")
        };
        positive("time_limit", self.time_limit)?;
        if let Some(PlateauSettings { window, tolerance }) = self.plateau {
            check("window", window as f64, window > 1, "at least 2")?;
            check("tolerance", tolerance, tolerance >= 0.0, "at least 0")?;
        }
        self.schedule.check()?;
        self.model_schedule.check()?;
        positive("limit", self.information.limit)?;
        let decay = self.information.decay;
        check("decay", decay, decay >= 0.0 && decay.is_finite(), "at least 0")?;
        check("max_dropped", self.max_dropped, (0.0..=1.0).contains(&self.max_dropped), "from 0 to 1")?;
        positive("every", self.checkpoint.as_ref().map(|checkpoint| checkpoint.every))
    }
}

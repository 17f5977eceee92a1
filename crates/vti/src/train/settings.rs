//! Settings of a training run.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::optimise::{AdamWSettings, OptimiserSettings, Schedule, SettingError};
use crate::smc::SmcSettings;

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
    /// Seconds at most, from the start or from where a run is taken up again. As many steps are planned as fit in, anew every now
    /// and then, and schedules run over those.
    pub time_limit: Option<f64>,
    /// When to stop because nothing improves any more, once q(m) has had time to settle; never if none.
    pub plateau: Option<PlateauSettings>,
    /// Optimiser of φ.
    pub optimiser: OptimiserSettings,
    /// Learning rate of φ; that of ψ rises and falls with it.
    pub schedule: Schedule,
    /// Gradient estimator of φ.
    pub flow_gradient: FlowGradient,
    /// How flat the target is at first.
    pub temper: TemperSettings,
    /// How fast the entropy of q(m) may change.
    pub information: InformationSettings,
    /// The largest share of draws that are not finite in a batch.
    pub max_dropped: f64,
    /// Particles whose draws q learns where the density has no gradient.
    pub particles: SmcSettings,
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
    /// where q is exact, and is without bounds where q is crooked, as it is at first.
    PathDerivative,
    /// Whichever of the two has the shorter gradient, tried out on one batch every now and then. Their means are the same,
    /// so the shorter one has the smaller variance.
    #[default]
    Adaptive,
}

/// The target at first is `η(θ | m)^β`, with β rising from `start` to 1 over a share of the steps.
///
/// Where a posterior has several modes, a flow that is taken straight to it settles on those that are nearest; a flat target
/// has no modes to settle on. Only φ sees it: reported bounds are those of η itself. With [`InformationSettings::Share`] and a
/// `warm_up` above 0, q(m) stays as it is meanwhile; otherwise it follows those bounds from the first step on, while φ is still
/// fitted to a flatter target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TemperSettings {
    /// The first β; 1 for none of this.
    pub start: f64,
    /// Share of the steps until β is 1.
    pub share: f64,
}

impl Default for TemperSettings {
    fn default() -> Self {
        Self { start: 0.2, share: 0.3 }
    }
}

impl TemperSettings {
    /// No tempering.
    pub const NONE: Self = Self { start: 1.0, share: 0.0 };

    /// β of a step of `steps`: its logarithm rises evenly.
    pub(super) fn beta(&self, step: u64, steps: u64) -> f64 {
        let end = self.share * steps as f64;
        if step as f64 >= end { 1.0 } else { self.start.powf(1.0 - step as f64 / end) }
    }

    fn check(&self) -> Result<(), SettingError> {
        SettingError::check("start", self.start, self.start > 0.0 && self.start <= 1.0, "above 0 and at most 1")?;
        SettingError::check("share", self.share, (0.0..1.0).contains(&self.share), "at least 0 and below 1")
    }
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

/// How much the entropy of q(m) may change in a step (paper, section 3.4, "Information-limiting the optimization"): while φ is
/// still poor, the bound of a model says more about φ than about the model, and a model that q gives up is not trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum InformationSettings {
    /// Any amount.
    Unlimited {},
    /// So many nats in the first step, and in each later one those of the step before divided by 1 + `decay`.
    Nats {
        /// Nats in the first step.
        limit: f64,
        /// Decay per step.
        decay: f64,
    },
    /// Nothing until the bound under the first q(m) rises slowly; then so many nats that the uniform distribution can
    /// become a point in a share of the steps.
    Share {
        /// Share of the steps in which φ warms up while q(m) stays as it is, at least.
        #[serde(alias = "hold")]
        warm_up: f64,
        /// And at most.
        #[serde(alias = "most")]
        max_warm_up: f64,
        /// Share of the steps in which a uniform distribution can become a point.
        fall: f64,
    },
}

impl Default for InformationSettings {
    fn default() -> Self {
        Self::Share { warm_up: 0.2, max_warm_up: 0.5, fall: 0.2 }
    }
}

impl InformationSettings {
    /// The limit of a step of `steps`, for a space of `exp(log_count)` models, during the warm-up or after.
    pub fn limit(&self, step: u64, steps: u64, log_count: f64, warming_up: bool) -> f64 {
        match *self {
            Self::Unlimited {} => f64::INFINITY,
            Self::Nats { limit, decay } => limit * (1.0 + decay).powf(-(step as f64)),
            Self::Share { warm_up, .. } if warming_up && warm_up > 0.0 => 0.0,
            Self::Share { fall, .. } => log_count / (fall * steps as f64),
        }
    }

    fn check(&self) -> Result<(), SettingError> {
        let positive =
            |what, value: f64| SettingError::check(what, value, value > 0.0 && value.is_finite(), "positive");
        match *self {
            Self::Unlimited {} => Ok(()),
            Self::Nats { limit, decay } => {
                positive("limit", limit)?;
                SettingError::check("decay", decay, decay >= 0.0 && decay.is_finite(), "at least 0")
            }
            Self::Share { warm_up, max_warm_up, fall } => {
                let share = |what, value: f64| {
                    SettingError::check(what, value, (0.0..1.0).contains(&value), "at least 0 and below 1")
                };
                share("warm_up", warm_up)?;
                share("max_warm_up", max_warm_up)?;
                positive("fall", fall)
            }
        }
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
            steps: 5000,
            time_limit: None,
            plateau: None,
            optimiser: OptimiserSettings::Adamw(AdamWSettings { clip_norm: Some(5.0), ..AdamWSettings::default() }),
            schedule: Schedule::WarmupDecay { rate: 2e-3, warmup: 0.02, hold: 0.4 },
            flow_gradient: FlowGradient::default(),
            temper: TemperSettings::default(),
            information: InformationSettings::default(),
            max_dropped: 0.1,
            particles: SmcSettings { runs: 4, sweeps: 6, jumps: 4, steps: 10, ..SmcSettings::default() },
            checkpoint: None,
        }
    }
}

impl TrainSettings {
    /// Settings for densities over blocks whose preconditioners and estimates are good, as those of graphs are: flows begin
    /// where others end, and scores of blocks are compared from the first step on. So nothing is tempered or warmed up, and few
    /// steps suffice.
    pub fn blockwise() -> Self {
        Self {
            batch: 128,
            steps: 1000,
            temper: TemperSettings::NONE,
            information: InformationSettings::Share { warm_up: 0.0, max_warm_up: 0.0, fall: 0.2 },
            ..Self::default()
        }
    }

    /// Settings for numbers of components, where q learns from particles: steps of the flow are cheap beside these, and draws of many
    /// rounds keep it from learning single ones.
    pub fn counting() -> Self {
        let particles = SmcSettings { runs: 4, kept: 16, ..SmcSettings::counting() };
        Self { batch: 512, steps: 4000, particles, ..Self::default() }
    }

    /// Settings for densities each of which takes long: few particles to learn from, and few looks at the bound.
    pub fn sparing() -> Self {
        Self { batch: 128, steps: 1500, particles: SmcSettings::sparing(), ..Self::default() }
    }

    /// Refuses settings that make no sense.
    pub fn check(&self) -> Result<(), SettingError> {
        let check = SettingError::check;
        // A single draw has no other to be compared with.
        check("batch", self.batch as f64, self.batch > 1, "at least 2")?;
        check("steps", self.steps as f64, self.steps > 0, "at least 1")?;
        let positive = |what, value: Option<f64>| {
            let value = value.unwrap_or(1.0);
            check(what, value, value > 0.0 && value.is_finite(), "positive")
        };
        positive("time_limit", self.time_limit)?;
        if let Some(PlateauSettings { window, tolerance }) = self.plateau {
            check("window", window as f64, window > 1, "at least 2")?;
            check("tolerance", tolerance, tolerance >= 0.0 && tolerance.is_finite(), "at least 0")?;
        }
        self.schedule.check()?;
        self.temper.check()?;
        self.information.check()?;
        self.particles.check()?;
        check("max_dropped", self.max_dropped, (0.0..=1.0).contains(&self.max_dropped), "from 0 to 1")?;
        positive("every", self.checkpoint.as_ref().map(|checkpoint| checkpoint.every))
    }
}

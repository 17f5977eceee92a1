//! Settings of a sampler.

use serde::{Deserialize, Serialize};

use crate::evidence::ParticleMove;
use crate::optimise::SettingError;

/// Settings of a sampler across models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SmcSettings {
    /// Independent populations, at least 4: their differences say how far the answer may be off.
    pub runs: usize,
    /// Particles of each.
    pub particles: usize,
    /// Rounds of moves at each temperature.
    pub sweeps: usize,
    /// Proposals of another model in each round.
    pub jumps: usize,
    /// Steps of the trajectory within the model in each round.
    pub steps: usize,
    /// How particles move within a model.
    pub by: ParticleMove,
    /// Rounds at the end, whose particles are counted.
    pub kept: usize,
}

impl Default for SmcSettings {
    fn default() -> Self {
        Self { runs: 8, particles: 1024, sweeps: 4, jumps: 8, steps: 4, by: ParticleMove::default(), kept: 8 }
    }
}

impl SmcSettings {
    /// Refuses settings that make no sense.
    pub fn check(&self) -> Result<(), SettingError> {
        let at_least =
            |what, value: usize, least: usize, range| SettingError::check(what, value as f64, value >= least, range);
        at_least("smc.runs", self.runs, 4, "at least 4")?;
        at_least("smc.particles", self.particles, 32, "at least 32")?;
        at_least("smc.sweeps", self.sweeps, 1, "at least 1")?;
        at_least("smc.steps", self.steps, 1, "at least 1")?;
        at_least("smc.kept", self.kept, 1, "at least 1")
    }
}

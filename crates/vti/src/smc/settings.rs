//! How particles are tempered.

use serde::{Deserialize, Serialize};

use crate::optimise::SettingError;
use crate::problem::{Gradient, Problem};

/// How particles move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParticleMove {
    /// Along trajectories that follow the gradient.
    #[default]
    Hamiltonian,
    /// By random steps, which need no gradient.
    RandomWalk,
}

impl ParticleMove {
    /// What a problem allows: without a gradient particles walk.
    pub(super) fn suited(self, problem: &dyn Problem) -> Self {
        if problem.gradient() == Gradient::Exact { self } else { Self::RandomWalk }
    }
}

/// Settings of a sampler across models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SmcSettings {
    /// Independent populations, at least 4: their differences say how far the answer may be off.
    pub runs: usize,
    /// Particles of each.
    pub particles: usize,
    /// The next temperature is as far as this share of the particles would still count: with more the evidence is more precise, and
    /// temperatures are more.
    pub effective: f64,
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

/// The share of particles that still count at the next temperature.
const EFFECTIVE: f64 = 0.5;

/// Temperatures from a prior to a posterior of some dimensions, about.
pub const TEMPERATURES: usize = 12;

impl Default for SmcSettings {
    fn default() -> Self {
        let by = ParticleMove::default();
        Self { runs: 8, particles: 1024, effective: EFFECTIVE, sweeps: 4, jumps: 8, steps: 4, by, kept: 8 }
    }
}

impl SmcSettings {
    /// For numbers of components, of which one is proposed to come or go at little cost.
    pub fn counting() -> Self {
        Self { particles: 512, effective: 0.9, sweeps: 1, jumps: 16, kept: 48, ..Self::default() }
    }

    /// For densities each of which takes long.
    pub fn sparing() -> Self {
        Self { runs: 4, particles: 128, sweeps: 1, jumps: 2, kept: 12, ..Self::default() }
    }

    /// The same for a problem: without a gradient particles walk.
    pub(super) fn suited(&self, problem: &dyn Problem) -> Self {
        Self { by: self.by.suited(problem), ..self.clone() }
    }

    /// About how often a density is asked for, where particles are moved by looking at all of it: temperatures are as many as it takes,
    /// here [`TEMPERATURES`].
    pub fn about_calls(&self) -> f64 {
        let rounds = (TEMPERATURES + self.kept) * self.sweeps * (self.jumps + self.steps);
        self.runs as f64 * self.particles as f64 * rounds as f64
    }

    /// Refuses settings that make no sense.
    pub fn check(&self) -> Result<(), SettingError> {
        let at_least =
            |what, value: usize, least: usize, range| SettingError::check(what, value as f64, value >= least, range);
        at_least("smc.runs", self.runs, 4, "at least 4")?;
        at_least("smc.particles", self.particles, 32, "at least 32")?;
        let is_share = self.effective > 0.0 && self.effective < 1.0;
        SettingError::check("smc.effective", self.effective, is_share, "between 0 and 1")?;
        at_least("smc.sweeps", self.sweeps, 1, "at least 1")?;
        at_least("smc.steps", self.steps, 1, "at least 1")?;
        at_least("smc.kept", self.kept, 1, "at least 1")
    }
}

/// Fewer runs do not show how far they may be off: Student's t has no variance below three degrees of freedom.
pub(super) const MIN_RUNS: usize = 4;

/// Settings of annealing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnnealSettings {
    /// Independent runs for each evidence, at least 4; 0: nothing is annealed.
    pub runs: usize,
    /// Particles of a run.
    pub particles: usize,
    /// Trajectories of each particle at each β.
    pub moves: usize,
    /// Steps of a trajectory.
    pub steps: usize,
    /// How particles move.
    pub by: ParticleMove,
    /// The most evidences that are found so, the most important ones first; fewer where no more matter.
    pub most: usize,
    /// How often, at most, runs are added for evidences whose errors matter most.
    pub sharpen: usize,
    /// The computational budget: about how many multiplications densities may take in all, where blocks are annealed and know what
    /// theirs take. None: so many that it takes about as long as training did, or as training by default does where that was less, and
    /// some seconds at least; counted, not timed, so that every machine finds the same. A few keys of every block are annealed whatever
    /// they take.
    pub work: Option<f64>,
    /// So many times that budget.
    pub effort: f64,
}

impl Default for AnnealSettings {
    fn default() -> Self {
        Self {
            runs: 4,
            particles: 64,
            moves: 3,
            steps: 8,
            by: ParticleMove::default(),
            most: 5000,
            sharpen: 8,
            work: None,
            effort: 1.0,
        }
    }
}

impl AnnealSettings {
    /// Refuses settings that make no sense.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        let at_least =
            |what, value: usize, least: usize, range| SettingError::check(what, value as f64, value >= least, range);
        let enough = self.runs == 0 || self.runs >= MIN_RUNS;
        SettingError::check("anneal.runs", self.runs as f64, enough, "0, or at least 4")?;
        at_least("anneal.particles", self.particles, 8, "at least 8")?;
        at_least("anneal.moves", self.moves, 1, "at least 1")?;
        at_least("anneal.steps", self.steps, 1, "at least 1")?;
        at_least("anneal.most", self.most, 1, "at least 1")?;
        let work = self.work.unwrap_or(0.0);
        SettingError::check("anneal.work", work, work >= 0.0, "at least 0")?;
        SettingError::check("anneal.effort", self.effort, self.effort >= 0.0, "at least 0")
    }

    /// How one model, or one block, is tempered: nothing is counted at the end.
    pub(super) fn tempering(&self) -> SmcSettings {
        let &Self { runs, particles, moves, steps, by, .. } = self;
        SmcSettings { runs, particles, effective: EFFECTIVE, sweeps: moves, jumps: 0, steps, by, kept: 0 }
    }
}

//! Settings of reversible jump chains, and what can go wrong with them.

use serde::{Deserialize, Serialize};

use crate::optimise::SettingError;
use crate::problem::selection::{CoefficientPrior, Selection};
use crate::problem::{BatchError, Problem};
use crate::space::ModelSpace;

/// How coordinates are distributed that a model does not use, and hence how those are drawn that a jump takes in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pseudo {
    /// Normal, with the moments that each free coordinate had during burn-in while it was in, somewhat wider.
    Adapted {},
    /// Normal.
    Normal {
        /// Mean of each free coordinate.
        location: Vec<f64>,
        /// Standard deviation of each free coordinate.
        scale: Vec<f64>,
    },
}

impl Default for Pseudo {
    fn default() -> Self {
        Self::Adapted {}
    }
}

impl Pseudo {
    /// What suits a selection: the prior of the coefficients where that is normal (the paper's choice), else adapted.
    pub fn of_selection(selection: &Selection) -> Self {
        match selection.settings().prior {
            CoefficientPrior::Normal { scale } => {
                let dim = selection.space().max_dim();
                Self::Normal { location: vec![0.0; dim], scale: vec![scale; dim] }
            }
            _ => Self::Adapted {},
        }
    }

    fn check(&self, dim: usize) -> Result<(), RjmcmcError> {
        let Self::Normal { location, scale } = self else { return Ok(()) };
        for (what, found) in [("location", location.len()), ("scale", scale.len())] {
            if found != dim {
                return Err(RjmcmcError::PseudoLength { what, found, expected: dim });
            }
        }
        for (&location, &scale) in location.iter().zip(scale) {
            SettingError::check("location", location, location.is_finite(), "finite")?;
            SettingError::check("scale", scale, scale > 0.0 && scale.is_finite(), "positive")?;
        }
        Ok(())
    }
}

/// Settings of reversible jump chains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RjmcmcSettings {
    /// Seed of all randomness.
    pub seed: u64,
    /// Chains, side by side.
    pub chains: usize,
    /// Sweeps of each chain after the burn-in.
    pub sweeps: usize,
    /// Sweeps before that, in which steps and pseudo-prior are adapted.
    pub burn_in: usize,
    /// A state is kept every so many sweeps.
    pub thin: usize,
    /// Flips of a bit in a sweep.
    pub flips: usize,
    /// Swaps of a term that is in for one that is out in a sweep.
    pub swaps: usize,
    /// Random-walk steps in a sweep.
    pub steps: usize,
    /// Distribution of coordinates that are not in.
    pub pseudo: Pseudo,
    /// R̂ must not exceed this.
    pub max_rhat: f64,
    /// The effective sample size must reach this.
    pub min_effective: f64,
    /// For how many of the most probable models R̂ and effective sample size are computed.
    pub leading: usize,
}

impl Default for RjmcmcSettings {
    fn default() -> Self {
        Self {
            seed: 1,
            chains: 32,
            sweeps: 100_000,
            burn_in: 10_000,
            thin: 50,
            flips: 1,
            swaps: 1,
            steps: 2,
            pseudo: Pseudo::default(),
            max_rhat: 1.02,
            min_effective: 400.0,
            leading: 20,
        }
    }
}

impl RjmcmcSettings {
    /// Refuses settings that make no sense, and spaces whose words are not bits, unless the problem declares jumps of its own.
    pub fn check(&self, problem: &dyn Problem) -> Result<(), RjmcmcError> {
        let space = problem.space();
        let at_least =
            |what, value: usize, least: usize, range| SettingError::check(what, value as f64, value >= least, range);
        at_least("chains", self.chains, 1, "at least 1")?;
        at_least("thin", self.thin, 1, "at least 1")?;
        let kept = self.sweeps / self.thin.max(1);
        SettingError::check("sweeps", self.sweeps as f64, kept >= 4, "at least 4 times thin")?;
        at_least("burn_in", self.burn_in, 1, "at least 1")?;
        at_least("flips + swaps", self.flips + self.swaps, 1, "at least 1")?;
        at_least("steps", self.steps, 1, "at least 1")?;
        SettingError::check("max_rhat", self.max_rhat, self.max_rhat >= 1.0, "at least 1")?;
        SettingError::check("min_effective", self.min_effective, self.min_effective >= 0.0, "at least 0")?;
        let odd = space.arities().iter().position(|&arity| arity != 2).filter(|_| problem.jumps().is_none());
        if let Some(position) = odd {
            return Err(RjmcmcError::NotBinary { position, arity: space.arities()[position] });
        }
        self.pseudo.check(space.max_dim())
    }
}

/// Chains that cannot run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RjmcmcError {
    /// A setting out of its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A space of other things than subsets.
    #[error("symbol {position} has {arity} values, but reversible jumps flip bits: they need a space of subsets")]
    NotBinary {
        /// Which symbol, counted from 0.
        position: usize,
        /// How many values it has.
        arity: u16,
    },
    /// A pseudo-prior for another number of coordinates.
    #[error("the pseudo-prior has {found} numbers in {what}, but there are {expected} coordinates")]
    PseudoLength {
        /// Which part.
        what: &'static str,
        /// Its length.
        found: usize,
        /// What it should be.
        expected: usize,
    },
    /// The density failed for good.
    #[error(transparent)]
    Density(#[from] BatchError),
    /// No place to start from.
    #[error(
        "chain {chain} found no place to start from in {attempts} attempts: the log density is not finite anywhere it looked"
    )]
    NoStart {
        /// Which chain, counted from 0.
        chain: usize,
        /// How often it tried.
        attempts: usize,
    },
    /// Stopped too early.
    #[error("stopped before there was anything to tell")]
    Stopped,
}

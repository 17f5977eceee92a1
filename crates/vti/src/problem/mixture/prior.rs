//! What is assumed before the data: how many components, where, how wide, and how large.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::precision::QuickGamma;
use super::{Observations, ObservationsError};
use crate::prior::{CountPrior, Gamma, Normal, Prior, PriorError};
use crate::problem::components::ComponentsError;
use crate::space::Components;

/// What components are numbered by. Nothing but their order depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// The mean of the first column, ascending.
    #[default]
    Mean,
    /// The precision of the first column, ascending.
    Precision,
}

/// Priors of components. What is left out is that of Richardson and Green (1997), with scales from the data.
///
/// Weights have a symmetric Dirichlet distribution. With β ~ `scale`, the precision 1/σ² of one column is Gamma(`shape`, β), made
/// as t/β of t ~ Gamma(`shape`, 1), so that components are independent given nothing. The precision matrix of d columns is
/// Wishart with 2 `shape` + d − 1 degrees of freedom, by Bartlett's decomposition: `D^(−1/2) A Aᵀ D^(−1/2)` with D = diag(2 β),
/// A lower triangular, A_ii² / 2 ~ Gamma(`shape` + (d − i)/2, 1) for i from 1 on, and standard normal numbers below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MixturePriors {
    /// The concentration of the weights' Dirichlet distribution.
    pub concentration: f64,
    /// Of means, one for each column; normal around the middle of the range with the range as standard deviation, where empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mean: Vec<Prior>,
    /// The shape of the precisions' gamma distribution.
    pub shape: f64,
    /// Of β, one for each column; Gamma(0.2, 10/range²) where empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scale: Vec<Prior>,
}

impl Default for MixturePriors {
    fn default() -> Self {
        Self::rg97()
    }
}

impl MixturePriors {
    /// Those of Richardson and Green (1997).
    pub fn rg97() -> Self {
        Self { concentration: 1.0, mean: Vec::new(), shape: 2.0, scale: Vec::new() }
    }

    /// With what is left out set from the data.
    fn resolve(&self, data: &Observations) -> Result<Self, MixtureError> {
        let columns = data.names().len();
        let filled = |what, given: &[Prior], from: &dyn Fn(f64, f64) -> Prior| {
            if given.is_empty() {
                return Ok((0..columns).map(|column| data.ends(column)).map(|(low, high)| from(low, high)).collect());
            }
            match given.len() == columns {
                true => Ok(given.to_vec()),
                false => Err(MixtureError::Priors { what, found: given.len(), columns }),
            }
        };
        let priors = Self {
            mean: filled("mean", &self.mean, &|low, high| Normal(0.5 * (low + high), high - low).into())?,
            scale: filled("scale", &self.scale, &|low, high| Gamma(0.2, 10.0 / (high - low).powi(2)).into())?,
            ..*self
        };
        priors.mean.iter().chain(&priors.scale).try_for_each(Prior::check)?;
        let positive = |what, value: f64| match value > 0.0 && value.is_finite() {
            true => Ok(()),
            false => Err(MixtureError::Setting { what, value, range: "positive" }),
        };
        positive("concentration", priors.concentration)?;
        positive("shape", priors.shape)?;
        if let Some(prior) = priors.scale.iter().find(|prior| crate::prior::Distribution::bounds(*prior).0 < 0.0) {
            return Err(MixtureError::NotPositive { prior: prior.to_string() });
        }
        Ok(priors)
    }
}

/// Settings of a mixture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MixtureSettings {
    /// The most components.
    pub max_components: usize,
    /// The prior of their number.
    pub count_prior: CountPrior,
    /// What components are numbered by.
    pub key: Key,
    /// Priors of components.
    pub prior: MixturePriors,
}

impl Default for MixtureSettings {
    fn default() -> Self {
        Self {
            max_components: 30,
            count_prior: CountPrior::Uniform {},
            key: Key::default(),
            prior: MixturePriors::rg97(),
        }
    }
}

/// Settings or data that make no mixture.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum MixtureError {
    /// Data that no mixture can be fitted to.
    #[error(transparent)]
    Observations(#[from] ObservationsError),
    /// A prior that is none.
    #[error(transparent)]
    Prior(#[from] PriorError),
    /// Components that contradict themselves.
    #[error(transparent)]
    Components(#[from] ComponentsError),
    /// A setting out of its range.
    #[error("{what} is {value}, it must be {range}")]
    Setting {
        /// Which.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// Priors of other columns.
    #[error("there are {found} priors of the {what} for {columns} columns")]
    Priors {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many columns there are.
        columns: usize,
    },
    /// A prior of a scale that may be negative.
    #[error("the prior of the scale is {prior}, but a scale must be positive")]
    NotPositive {
        /// What was given.
        prior: String,
    },
}

impl MixtureSettings {
    /// With what is left out set from the data.
    pub(super) fn resolve(self, data: &Observations) -> Result<Self, MixtureError> {
        if self.max_components == 0 {
            let what = "the most components";
            return Err(MixtureError::Setting { what, value: 0.0, range: "at least 1" });
        }
        Ok(Self { prior: self.prior.resolve(data)?, ..self })
    }

    /// The space of so many columns: each component has means, scaled precisions, what stands below the diagonal, and a weight.
    pub(super) fn space(&self, names: &[String]) -> Components {
        let of = |what: &str, column: usize| {
            if names.len() == 1 { what.into() } else { format!("{what}.{}", names[column]) }
        };
        let mut space = Components::new("component", 1..=self.max_components);
        for (column, prior) in self.prior.mean.iter().enumerate() {
            space = space.each(&of("mean", column), prior.clone());
            if column == 0 && self.key == Key::Mean {
                space = space.ordered();
            }
        }
        for column in 0..names.len() {
            let above = (names.len() - 1 - column) as f64;
            let prior = Prior::own(QuickGamma::new(self.prior.shape + 0.5 * above));
            space = space.each(&of("scaled_precision", column), prior);
            if column == 0 && self.key == Key::Precision {
                space = space.ordered();
            }
        }
        for (row, column) in (1..names.len()).flat_map(|row| (0..row).map(move |column| (row, column))) {
            space = space.each(&format!("below.{}.{}", names[row], names[column]), Normal(0.0, 1.0));
        }
        space = space.shares("weight", self.prior.concentration);
        for (column, prior) in self.prior.scale.iter().enumerate() {
            space = space.with(&of("beta", column), prior.clone());
        }
        space
    }
}

//! What is assumed before the data: how many layers, where they begin, what they are made of, and how large errors are.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{LayerDataError, Sounding};
use crate::optimise::SettingError;
use crate::prior::{CountPrior, Distribution, Prior, PriorError};
use crate::problem::components::ComponentsError;

/// How large errors are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Errors {
    /// As they are given.
    #[default]
    Known,
    /// A factor on all of them is inferred.
    Scaled,
}

/// Settings of a search for layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LayerSettings {
    /// The most layers, the half space below the others included.
    pub max_layers: usize,
    /// How probable each number of interfaces is, one less than layers.
    pub count_prior: CountPrior,
    /// How large errors are.
    pub errors: Errors,
    /// Priors of parameters.
    pub prior: LayerPriors,
}

impl Default for LayerSettings {
    fn default() -> Self {
        Self {
            max_layers: 6,
            count_prior: CountPrior::default(),
            errors: Errors::default(),
            prior: LayerPriors::default(),
        }
    }
}

/// Priors of parameters; what is left out is set from a magnetotelluric sounding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LayerPriors {
    /// Of depths of interfaces, of which a model has the order statistics; by default uniform in log depth, from a third of the
    /// smallest to the largest depth that fields reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<Prior>,
    /// Of the property of each layer, all alike; by default resistivities are uniform in their logarithm, from a tenth of the
    /// smallest to ten times the largest apparent one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Prior>,
    /// Of the factor on all errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<Prior>,
}

/// Layers that cannot be looked for.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum LayerError {
    /// The data.
    #[error(transparent)]
    Data(#[from] LayerDataError),
    /// A setting out of its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A prior that is none.
    #[error("prior of the {what}: {error}")]
    Prior {
        /// Of what.
        what: &'static str,
        /// Why.
        error: PriorError,
    },
    /// A prior that nobody gave, and that data do not give.
    #[error("the prior of the {what} is not given")]
    NoPrior {
        /// Of what.
        what: &'static str,
    },
    /// Numbers that cannot be negative.
    #[error("the prior of the {what} is {found}, but it must be one of positive numbers, as log-uniform:LOW,HIGH")]
    NotPositive {
        /// Of what.
        what: &'static str,
        /// The prior.
        found: String,
    },
    /// Numbers of predictions and of data that differ.
    #[error("{predicted} numbers are predicted, but there are {observed} data")]
    Length {
        /// How many are predicted.
        predicted: usize,
        /// How many were measured.
        observed: usize,
    },
    /// Components.
    #[error(transparent)]
    Components(#[from] ComponentsError),
}

impl LayerSettings {
    /// With what is left out set from a sounding.
    pub fn for_sounding(mut self, sounding: &Sounding) -> Self {
        let ((shallow, deep), (low, high)) = (sounding.reach(), sounding.resistivities());
        let log_uniform = |low: f64, high: f64| Prior::LogUniform { low: rounded(low), high: rounded(high) };
        self.prior.depth.get_or_insert_with(|| log_uniform(shallow / 3.0, deep));
        self.prior.value.get_or_insert_with(|| log_uniform(low / 10.0, high * 10.0));
        self.with_factor()
    }

    /// With a prior of the factor on all errors, where that is inferred.
    pub fn with_factor(mut self) -> Self {
        if self.errors == Errors::Scaled {
            self.prior.factor.get_or_insert(Prior::LogUniform { low: 0.1, high: 10.0 });
        }
        self
    }

    /// Priors of depths, values and, where it is inferred, of the factor on all errors.
    pub(super) fn priors(&self) -> Result<(Prior, Prior, Option<Prior>), LayerError> {
        let most = usize::from(u16::MAX);
        let fits = (1..most).contains(&self.max_layers);
        SettingError::check("max_layers", self.max_layers as f64, fits, "at least 1")?;
        let LayerPriors { depth, value, factor } = &self.prior;
        let given = |prior: &Option<Prior>, what: &'static str| {
            let prior = prior.clone().ok_or(LayerError::NoPrior { what })?;
            prior.check().map_err(|error| LayerError::Prior { what, error })?;
            Ok::<Prior, LayerError>(prior)
        };
        let positive = |prior: Prior, what: &'static str| match prior.bounds().0 >= 0.0 {
            true => Ok(prior),
            false => Err(LayerError::NotPositive { what, found: prior.to_string() }),
        };
        let depth = positive(given(depth, "depth")?, "depth")?;
        let factor = match self.errors {
            Errors::Known => None,
            Errors::Scaled => Some(positive(given(factor, "factor on all errors")?, "factor on all errors")?),
        };
        Ok((depth, given(value, "property of layers")?, factor))
    }

    /// In words, with the name of the property.
    pub fn in_words(&self, property: &str) -> String {
        let mut parts = vec![format!("interfaces {} on 0 to {}", self.count_prior, self.max_layers.saturating_sub(1))];
        let said = |what: &str, prior: &Option<Prior>| prior.as_ref().map(|prior| format!("{what} {prior}"));
        let LayerPriors { depth, value, factor } = &self.prior;
        parts.extend(said("depths", depth));
        parts.extend(said(property, value));
        parts.extend(said("factor on all errors", factor).filter(|_| self.errors == Errors::Scaled));
        parts.join("; ")
    }
}

/// To two digits, as people write numbers.
fn rounded(number: f64) -> f64 {
    let unit = 10f64.powi(number.log10().floor() as i32 - 1);
    let digits = (number / unit).round();
    // Not a product with a unit below 1, which has no finite binary fraction.
    if unit < 1.0 { digits / (1.0 / unit).round() } else { digits * unit }
}

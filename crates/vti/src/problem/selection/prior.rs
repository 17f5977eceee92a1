//! Priors of coefficients, of the scale, and of models.

use serde::{Deserialize, Serialize};

use super::likelihood::ln_gamma;
use crate::optimise::SettingError;

/// Prior of the coefficients of a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CoefficientPrior {
    /// Independent, normal with mean 0 and this standard deviation, the intercept included (the paper's).
    Normal {
        /// Standard deviation.
        scale: f64,
    },
    /// Zellner's: normal with mean 0 and covariance `g σ² (XᵀX)⁻¹`, a flat intercept, and `p(σ) ∝ 1/σ` where σ is unknown.
    /// With robust errors σ is σ₁, the standard deviation of their main part; where errors have no scale, σ is 1.
    G {
        /// g, taken as it is. If none, unit information: the number of rows, and four times that for a logistic likelihood,
        /// where a row carries a quarter of the information at best.
        #[serde(default)]
        g: Option<f64>,
    },
}

impl Default for CoefficientPrior {
    fn default() -> Self {
        Self::G { g: None }
    }
}

/// Prior of the set of terms that are in.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ModelPrior {
    /// All sets alike.
    Uniform {},
    /// Each term is in with this probability, independently.
    Bernoulli {
        /// The probability.
        p: f64,
    },
    /// The probability itself has a beta distribution.
    BetaBinomial {
        /// First shape.
        a: f64,
        /// Second shape.
        b: f64,
    },
}

impl Default for ModelPrior {
    fn default() -> Self {
        Self::Uniform {}
    }
}

impl CoefficientPrior {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        let (what, value) = match *self {
            Self::Normal { scale } => ("scale", scale),
            Self::G { g } => ("g", g.unwrap_or(1.0)),
        };
        SettingError::check(what, value, value > 0.0 && value.is_finite(), "positive")
    }
}

impl ModelPrior {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        let positive =
            |what, value: f64| SettingError::check(what, value, value > 0.0 && value.is_finite(), "positive");
        match *self {
            Self::Uniform {} => Ok(()),
            Self::Bernoulli { p } => SettingError::check("p", p, p > 0.0 && p < 1.0, "between 0 and 1"),
            Self::BetaBinomial { a, b } => {
                positive("a", a)?;
                positive("b", b)
            }
        }
    }

    /// `log p(m)` of a set of `k` terms out of `n`.
    pub fn log_prob(&self, k: usize, n: usize) -> f64 {
        let (k, n) = (k as f64, n as f64);
        match *self {
            Self::Uniform {} => -n * std::f64::consts::LN_2,
            Self::Bernoulli { p } => k * p.ln() + (n - k) * (1.0 - p).ln(),
            Self::BetaBinomial { a, b } => ln_beta(a + k, b + n - k) - ln_beta(a, b),
        }
    }
}

/// `log B(a, b)`.
fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

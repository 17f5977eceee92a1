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
        /// g, taken as it is. If none, unit information: the number of rows, and four times that for categories, where a row
        /// carries a quarter of the information at best. The slopes of each category have this prior, independently.
        #[serde(default)]
        g: Option<f64>,
    },
    /// A mixture of g-priors, for Gaussian errors: `p(g) = (a − 2)/2 (1 + g)^(−a/2)`, a > 2; the rest as for [`Self::G`].
    HyperG {
        /// a: smaller ones have longer tails.
        #[serde(default = "usual_a")]
        a: f64,
    },
    /// Likewise with `p(g) = (a − 2)/(2n) (1 + g/n)^(−a/2)`, n being the number of rows.
    HyperGN {
        /// a: smaller ones have longer tails.
        #[serde(default = "usual_a")]
        a: f64,
    },
    /// Zellner's and Siow's: likewise with an inverse gamma g of shape ½ and scale n/2, which makes the slopes Cauchy.
    ZellnerSiow {},
}

/// a of the hyper-g priors unless it is given: g/(1 + g) has a mean of 2/3 under the hyper-g prior.
fn usual_a() -> f64 {
    CoefficientPrior::USUAL_A
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
    /// a of the hyper-g priors unless it is given.
    pub const USUAL_A: f64 = 3.0;

    /// Whether it is a g-prior, or a mixture of them: slopes scale with σ, and the intercept is flat.
    pub fn is_g(&self) -> bool {
        !matches!(self, Self::Normal { .. })
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        let positive =
            |what, value: f64| SettingError::check(what, value, value > 0.0 && value.is_finite(), "positive");
        match *self {
            Self::Normal { scale } => positive("scale", scale),
            Self::G { g } => positive("g", g.unwrap_or(1.0)),
            Self::HyperG { a } | Self::HyperGN { a } => {
                SettingError::check("a", a, a > 2.0 && a.is_finite(), "greater than 2")
            }
            Self::ZellnerSiow {} => Ok(()),
        }
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

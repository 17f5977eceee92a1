//! Likelihoods of a response given its linear predictor, and their kernels.

use serde::{Deserialize, Serialize};

use super::data::TableError;
use crate::optimise::SettingError;
use crate::simd::Real;
use crate::simd::{Kernel, Vector};
pub(crate) use crate::stats::ln_gamma;

/// What is assumed about the response.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Likelihood {
    /// Normal errors with a known or unknown standard deviation.
    Gaussian {
        /// The standard deviation; a parameter if none.
        #[serde(default)]
        sigma: Option<f64>,
    },
    /// The paper's mixture of two normal errors with one mean (eq. 15 (robustvs-likelihood)), whose standard deviations are
    /// known or not.
    Robust {
        /// Probability α of an outlier.
        #[serde(default = "usual_alpha")]
        alpha: f64,
        /// Standard deviation σ₁ of the others, in the units of the response; a parameter σ if none.
        #[serde(default)]
        sigma1: Option<f64>,
        /// Standard deviation σ₂ of outliers; ten times that of the others if none.
        #[serde(default)]
        sigma2: Option<f64>,
    },
    /// Student-t errors with an unknown scale.
    StudentT {
        /// Degrees of freedom.
        df: f64,
    },
    /// 0 or 1 with the logit of its probability.
    Logistic {},
    /// One of several categories, numbered from 0, by a softmax of linear predictors: one for each category but the first.
    Multinomial {},
    /// Counts with the logarithm of their mean.
    Poisson {},
    /// Counts with the logarithm of their mean μ, and the variance `μ + μ²/size`: more than Poisson counts have.
    NegativeBinomial {
        /// How near they are to Poisson counts; a parameter if none.
        #[serde(default)]
        size: Option<f64>,
    },
}

/// The most categories of a response.
pub(super) const MAX_CATEGORIES: usize = 50;

/// α of robust errors unless it is given.
fn usual_alpha() -> f64 {
    Likelihood::USUAL_ALPHA
}

impl Likelihood {
    /// The probability of an outlier of robust errors unless it is given: the paper's.
    pub const USUAL_ALPHA: f64 = 0.1;

    /// σ₂/σ₁ of robust errors unless both are given: the paper's.
    pub const USUAL_RATIO: f64 = 10.0;

    /// Robust errors of unknown scale.
    pub const ROBUST: Self = Self::Robust { alpha: Self::USUAL_ALPHA, sigma1: None, sigma2: None };

    /// Whether the scale of the errors is among the parameters.
    pub fn has_scale(&self) -> bool {
        matches!(self, Self::Gaussian { sigma: None } | Self::Robust { sigma1: None, .. } | Self::StudentT { .. })
    }

    /// The parameter that stands before the coefficients, where there is one: it is positive.
    pub fn own_parameter(&self) -> Option<&'static str> {
        match self {
            Self::NegativeBinomial { size: None } => Some("size"),
            likelihood => likelihood.has_scale().then_some("sigma"),
        }
    }

    /// How many parameters stand before the coefficients: 1 or none.
    pub fn own_parameters(&self) -> usize {
        usize::from(self.own_parameter().is_some())
    }

    /// Whether the predictor is the response's mean, or its median.
    pub fn has_identity_link(&self) -> bool {
        matches!(self, Self::Gaussian { .. } | Self::Robust { .. } | Self::StudentT { .. })
    }

    /// Whether the response is one of several things.
    pub fn has_categories(&self) -> bool {
        matches!(self, Self::Logistic {} | Self::Multinomial {})
    }

    /// Whether the response counts something.
    pub fn has_counts(&self) -> bool {
        matches!(self, Self::Poisson {} | Self::NegativeBinomial { .. })
    }

    /// Refuses settings out of their range.
    pub(super) fn check_settings(&self) -> Result<(), SettingError> {
        let positive =
            |what, value: f64| SettingError::check(what, value, value > 0.0 && value.is_finite(), "positive");
        match *self {
            Self::Gaussian { sigma } => positive("sigma", sigma.unwrap_or(1.0)),
            Self::Robust { alpha, sigma1, sigma2 } => {
                SettingError::check("alpha", alpha, alpha > 0.0 && alpha < 1.0, "between 0 and 1")?;
                if let (None, Some(sigma2)) = (sigma1, sigma2) {
                    SettingError::check("sigma2", sigma2, false, "given together with sigma1")?;
                }
                positive("sigma1", sigma1.unwrap_or(1.0))?;
                positive("sigma2", sigma2.unwrap_or(1.0))
            }
            Self::StudentT { df } => positive("df", df),
            Self::NegativeBinomial { size } => positive("size", size.unwrap_or(1.0)),
            Self::Logistic {} | Self::Multinomial {} | Self::Poisson {} => Ok(()),
        }
    }

    /// Refuses a response that cannot be.
    pub(super) fn check(&self, response: &[f64]) -> Result<(), TableError> {
        let (fine, expected): (fn(f64) -> bool, _) = match self {
            Self::Logistic {} => (|y| y == 0.0 || y == 1.0, "0 or 1"),
            Self::Multinomial {} => (
                |y| y >= 0.0 && y.fract() == 0.0 && y < MAX_CATEGORIES as f64,
                "the number of a category (0, 1, …, 49)",
            ),
            Self::Poisson {} | Self::NegativeBinomial { .. } => {
                (|y| y >= 0.0 && y.fract() == 0.0, "a count (0, 1, 2, …)")
            }
            _ => return Ok(()),
        };
        match response.iter().position(|&y| !fine(y)) {
            Some(row) => Err(TableError::Response { row: row + 1, value: response[row].to_string(), expected }),
            None => Ok(()),
        }
    }

    /// The part of the log likelihood that depends on the response and the weights of its rows alone.
    pub(crate) fn constant(&self, response: &[f64], weights: &[f64]) -> f64 {
        let n: f64 = weights.iter().sum();
        let half_log_tau = 0.5 * std::f64::consts::TAU.ln();
        match *self {
            Self::Gaussian { .. } | Self::Robust { .. } => -n * half_log_tau,
            Self::StudentT { df } => {
                n * (ln_gamma(0.5 * (df + 1.0)) - ln_gamma(0.5 * df) - 0.5 * (df * std::f64::consts::PI).ln())
            }
            Self::Logistic {} | Self::Multinomial {} => 0.0,
            Self::Poisson {} | Self::NegativeBinomial { .. } => {
                -response.iter().zip(weights).map(|(y, weight)| weight * ln_gamma(y + 1.0)).sum::<f64>()
            }
        }
    }
}

/// σ₁ and σ₂ of robust errors, where σ is the scale that is a parameter if σ₁ is not known.
pub(crate) fn both_scales(sigma1: Option<f64>, sigma2: Option<f64>, scale: f64) -> [f64; 2] {
    let sigma1 = sigma1.unwrap_or(scale);
    [sigma1, sigma2.unwrap_or(Likelihood::USUAL_RATIO * sigma1)]
}

/// Log likelihood of all rows, up to its constant: turns the linear predictor into the derivative with respect to it.
pub(super) struct Pointwise<'a> {
    pub likelihood: Likelihood,
    pub response: &'a [f64],
    /// Of the rows.
    pub weights: &'a [f64],
    /// The scale or size, where it is a parameter.
    pub scale: f64,
    /// In: η. Out: ∂ log likelihood/∂η.
    pub predictor: &'a mut [f64],
}

impl Kernel<f64> for Pointwise<'_> {
    /// The log likelihood, and its derivative with respect to the logarithm of the scale or size. Of negative binomial counts
    /// what depends on the size alone is left out ([`super::counts`]).
    type Output = (f64, f64);

    #[inline(always)]
    fn run<V: Vector<f64>>(self) -> (f64, f64) {
        let (likelihood, scale) = (self.likelihood, self.scale);
        match likelihood {
            Likelihood::Gaussian { sigma } => {
                let sigma = sigma.unwrap_or(scale);
                let (precision, log_sigma) = (sigma.powi(-2), sigma.ln());
                self.each(|y, predictor| {
                    let r = y - predictor;
                    let square = r * r * precision;
                    [-0.5 * square - log_sigma, r * precision, square - 1.0]
                })
            }
            Likelihood::Robust { alpha, sigma1, sigma2 } => {
                let [sigma1, sigma2] = both_scales(sigma1, sigma2, scale);
                let (a0, b0) = (((1.0 - alpha) / sigma1).ln(), (alpha / sigma2).ln());
                let (pa, pb) = (sigma1.powi(-2), sigma2.powi(-2));
                self.each(|y, predictor| {
                    let r = y - predictor;
                    let (a, b) = (a0 - 0.5 * r * r * pa, b0 - 0.5 * r * r * pb);
                    // Shares of both parts without overflow.
                    let other = Real::exp(-(a - b).abs());
                    let larger = 1.0 / (1.0 + other);
                    let share = if a > b { larger } else { other * larger };
                    let top = if a > b { a } else { b };
                    let pull = r * (pb + share * (pa - pb));
                    [top + Real::ln(1.0 + other), pull, pull * r - 1.0]
                })
            }
            Likelihood::StudentT { df } => {
                let (spread, log_scale) = (df * scale * scale, scale.ln());
                self.each(|y, predictor| {
                    let r = y - predictor;
                    let pull = (df + 1.0) * r / (spread + r * r);
                    [-0.5 * (df + 1.0) * Real::ln(1.0 + r * r / spread) - log_scale, pull, pull * r - 1.0]
                })
            }
            Likelihood::Logistic {} => {
                self.each(|y, predictor| [y * predictor - predictor.softplus(), y - predictor.sigmoid(), 0.0])
            }
            // Several predictors are another matter: [`super::categories`].
            Likelihood::Multinomial {} => self.each(|_, _| [f64::NAN; 3]),
            Likelihood::Poisson {} => self.each(|y, predictor| {
                let mean = Real::exp(predictor);
                [y * predictor - mean, y - mean, 0.0]
            }),
            Likelihood::NegativeBinomial { size } => {
                let size = size.unwrap_or(scale);
                let log_size = size.ln();
                self.each(|y, predictor| {
                    let t = predictor - log_size;
                    let (softplus, mean) = (t.softplus(), (y + size) * t.sigmoid());
                    [y * predictor - (y + size) * softplus, y - mean, mean - size * softplus]
                })
            }
        }
    }
}

/// Sums run side by side in so many lanes.
const LANES: usize = 16;

impl Pointwise<'_> {
    /// Replaces each η by the second result, and sums the first and the third, all of them by weight.
    #[inline(always)]
    fn each(self, f: impl Fn(f64, f64) -> [f64; 3]) -> (f64, f64) {
        let (mut values, mut by_scale) = ([0.0; LANES], [0.0; LANES]);
        let mut one = |lane: usize, y: f64, weight: f64, predictor: &mut f64| {
            let [value, derivative, by_own] = f(y, *predictor);
            values[lane] += weight * value;
            by_scale[lane] += weight * by_own;
            *predictor = weight * derivative;
        };
        let mut predictors = self.predictor.chunks_exact_mut(LANES);
        let mut responses = self.response.chunks_exact(LANES);
        let mut weights = self.weights.chunks_exact(LANES);
        for ((predictor, y), weight) in predictors.by_ref().zip(responses.by_ref()).zip(weights.by_ref()) {
            for lane in 0..LANES {
                one(lane, y[lane], weight[lane], &mut predictor[lane]);
            }
        }
        let rest = responses.remainder().iter().zip(weights.remainder());
        for (lane, (predictor, (&y, &weight))) in predictors.into_remainder().iter_mut().zip(rest).enumerate() {
            one(lane, y, weight, predictor);
        }
        (values.iter().sum(), by_scale.iter().sum())
    }
}

//! Priors of counts.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::PriorError;
use super::error::positive;
use super::text::{read_text, write_text};
use crate::stats::{ln_gamma, log_sum_exp};

/// A Poisson count of this mean, for a [`CountPrior`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Poisson(pub f64);

/// A geometric count, P(k) ∝ (1 − p)ᵏ, for a [`CountPrior`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geometric(pub f64);

/// The prior of a count; whatever it is, it is normalised over the range of counts that are possible.
///
/// ```
/// use vti::prior::{CountPrior, Poisson};
/// let prior: CountPrior = Poisson(2.0).into();
/// let logs = prior.log_probabilities(0..=2)?;
/// // 1, 2 and 2 in proportion.
/// assert!((logs[2].exp() - 0.4).abs() < 1e-14);
/// assert_eq!(prior, "poisson:2".parse()?);
/// # Ok::<(), vti::prior::PriorError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum CountPrior {
    /// All counts are equally probable.
    Uniform {},
    /// P(k) ∝ meanᵏ/k!.
    Poisson {
        /// Mean, before the range cuts it off.
        mean: f64,
    },
    /// P(k) ∝ (1 − p)ᵏ.
    Geometric {
        /// How much smaller each probability is than the one before.
        p: f64,
    },
    /// One's own probabilities.
    Weights {
        /// One for each count of the range, in order, in proportion.
        weights: Vec<f64>,
    },
}

impl Default for CountPrior {
    fn default() -> Self {
        Self::Uniform {}
    }
}

impl CountPrior {
    /// log P(k) of every count in the range, normalised over it; −∞ where a weight is 0.
    pub fn log_probabilities(&self, range: RangeInclusive<usize>) -> Result<Vec<f64>, PriorError> {
        self.check()?;
        let (first, last) = (*range.start(), *range.end());
        let none = || PriorError::NoCounts { kind: self.kind(), first, last };
        if range.is_empty() {
            return Err(none());
        }
        let mut logs: Vec<f64> = match self {
            Self::Uniform {} => range.map(|_| 0.0).collect(),
            Self::Poisson { mean } => range.map(|k| k as f64 * mean.ln() - ln_gamma(k as f64 + 1.0)).collect(),
            Self::Geometric { p } => range.map(|k| k as f64 * (-p).ln_1p()).collect(),
            Self::Weights { weights } => {
                let counts = range.count();
                if weights.len() != counts {
                    return Err(PriorError::WeightsDoNotFit { weights: weights.len(), counts, first, last });
                }
                weights.iter().map(|weight| weight.ln()).collect()
            }
        };
        let total = log_sum_exp(&logs);
        if !total.is_finite() {
            return Err(none());
        }
        logs.iter_mut().for_each(|log| *log -= total);
        Ok(logs)
    }

    /// Whether there is such a distribution; the error names the parameter.
    pub fn check(&self) -> Result<(), PriorError> {
        match self {
            Self::Uniform {} => Ok(()),
            Self::Poisson { mean } => positive(self.kind(), "mean", *mean),
            Self::Geometric { p } if *p > 0.0 && *p < 1.0 => Ok(()),
            Self::Geometric { p } => Err(PriorError::NotProbability { kind: self.kind(), name: "p", value: *p }),
            Self::Weights { weights } => {
                let bad = weights.iter().position(|weight| !(*weight >= 0.0 && weight.is_finite()));
                bad.map_or(Ok(()), |at| Err(PriorError::BadWeight { place: at + 1, value: weights[at] }))
            }
        }
    }

    /// Its kind, as in files and texts.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Uniform {} => "uniform",
            Self::Poisson { .. } => "poisson",
            Self::Geometric { .. } => "geometric",
            Self::Weights { .. } => "weights",
        }
    }
}

impl From<Poisson> for CountPrior {
    fn from(Poisson(mean): Poisson) -> Self {
        Self::Poisson { mean }
    }
}

impl From<Geometric> for CountPrior {
    fn from(Geometric(p): Geometric) -> Self {
        Self::Geometric { p }
    }
}

impl From<Vec<f64>> for CountPrior {
    fn from(weights: Vec<f64>) -> Self {
        Self::Weights { weights }
    }
}

impl fmt::Display for CountPrior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = match self {
            Self::Uniform {} => &[][..],
            Self::Poisson { mean } => &[*mean][..],
            Self::Geometric { p } => &[*p][..],
            Self::Weights { weights } => weights,
        };
        write_text(f, self.kind(), parameters)
    }
}

/// What can be said.
const KNOWN: &str = "uniform, poisson:MEAN, geometric:P, weights:W,W,…";

impl FromStr for CountPrior {
    type Err = PriorError;

    fn from_str(text: &str) -> Result<Self, PriorError> {
        let unknown = || PriorError::Unknown { text: text.to_owned(), known: KNOWN };
        let (kind, parameters) = read_text(text).ok_or_else(unknown)?;
        let prior = match (kind, parameters.as_slice()) {
            ("uniform", &[]) => Self::Uniform {},
            ("poisson", &[mean]) => Self::Poisson { mean },
            ("geometric", &[p]) => Self::Geometric { p },
            ("weights", &[_, ..]) => Self::Weights { weights: parameters },
            _ => return Err(unknown()),
        };
        prior.check()?;
        Ok(prior)
    }
}

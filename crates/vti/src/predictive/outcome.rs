//! What was observed, and its distribution under a draw.

use crate::problem::selection::{Likelihood, both_scales, log_rising};
use crate::random::Stream;
use crate::stats::{negative_binomial_cdf, normal_cdf, poisson_cdf, student_t_cdf};

/// What draws from a posterior say about a column of the data.
pub trait Predict: Sync {
    /// How many draws there are; all count alike.
    fn draws(&self) -> usize;

    /// The scale of the errors under a draw; of no meaning where the likelihood knows it, or has none.
    fn scale(&self, draw: usize) -> f64;

    /// The predictors of some rows under a draw: means, logits or logarithms of means, as the likelihood has it.
    fn predictors(&self, draw: usize, rows: &[usize], to: &mut [f64]);

    /// The log density under a draw of all that was observed in a row, where that is more than this column: whoever leaves the
    /// row out leaves out all of it. None where the column is all.
    fn log_row(&self, draw: usize, row: usize) -> Option<f64> {
        let _ = (draw, row);
        None
    }
}

/// The simplest model there is, to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Null {
    /// All rows have the same predictor, an intercept.
    Intercept,
    /// All predictors are 0.
    Zero,
}

/// A column of the data, what is assumed about it, and what draws say about it.
pub struct Outcome<'a> {
    /// What people call it.
    pub name: String,
    /// The numbers.
    pub observed: &'a [f64],
    /// Their distribution given their predictors. Of several categories each is looked at by itself, as 0 or 1, its predictor
    /// being the logit of its probability ([`Predict::log_row`] has the rest).
    pub likelihood: Likelihood,
    /// What is known of each row's predictor beforehand, under the simplest model as well; empty if nothing is.
    pub offset: &'a [f64],
    /// How often each row counted when draws were learned: its log likelihood was multiplied by this. Empty if all count once.
    pub weights: &'a [f64],
    /// What draws say.
    pub predict: Box<dyn Predict + 'a>,
    /// What to compare with.
    pub null: Null,
    /// The rows that the model speaks about; none where these are all.
    pub rows: Option<Vec<usize>>,
}

impl Outcome<'_> {
    /// How many rows the model speaks about.
    pub(super) fn row_count(&self) -> usize {
        self.rows.as_ref().map_or(self.observed.len(), Vec::len)
    }

    /// Their numbers in the table.
    pub(super) fn all_rows(&self) -> impl Iterator<Item = usize> {
        (0..self.row_count()).map(|place| self.row(place))
    }

    /// The number in the table of one of the rows that the model speaks about.
    pub(super) fn row(&self, place: usize) -> usize {
        self.rows.as_ref().map_or(place, |rows| rows[place])
    }
}

/// One observation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    likelihood: Likelihood,
    y: f64,
    /// The part of the log likelihood that depends on it alone.
    constant: f64,
    /// How much its row counts.
    weight: f64,
}

impl Observation {
    pub(super) fn new(likelihood: Likelihood, y: f64) -> Self {
        Self { likelihood, y, constant: likelihood.constant(&[y], &[1.0]), weight: 1.0 }
    }

    /// A row of a column.
    pub(super) fn of(outcome: &Outcome<'_>, row: usize) -> Self {
        let weight = outcome.weights.get(row).copied().unwrap_or(1.0);
        Self { weight, ..Self::new(outcome.likelihood, outcome.observed[row]) }
    }

    /// The row's part of the log likelihood: its log density, so often as the row counts.
    pub(super) fn log_likelihood(&self, log_density: f64) -> f64 {
        self.weight * log_density
    }

    /// `log p(y | predictor, scale)`.
    pub(super) fn log_density(&self, predictor: f64, scale: f64) -> f64 {
        let r = self.y - predictor;
        let value = match self.likelihood {
            Likelihood::Gaussian { sigma } => {
                let sigma = sigma.unwrap_or(scale);
                -0.5 * (r / sigma).powi(2) - sigma.ln()
            }
            Likelihood::Robust { alpha, sigma1, sigma2 } => {
                let [sigma1, sigma2] = both_scales(sigma1, sigma2, scale);
                let usual = ((1.0 - alpha) / sigma1).ln() - 0.5 * (r / sigma1).powi(2);
                let outlier = (alpha / sigma2).ln() - 0.5 * (r / sigma2).powi(2);
                usual.max(outlier) + (-(usual - outlier).abs()).exp().ln_1p()
            }
            Likelihood::StudentT { df } => -0.5 * (df + 1.0) * ((r / scale).powi(2) / df).ln_1p() - scale.ln(),
            Likelihood::Logistic {} | Likelihood::Multinomial {} => self.y * predictor - softplus(predictor),
            Likelihood::Poisson {} => self.y * predictor - predictor.exp(),
            Likelihood::NegativeBinomial { size } => {
                let size = size.unwrap_or(scale);
                self.y * predictor - (self.y + size) * softplus(predictor - size.ln()) + log_rising(self.y, size)
            }
        };
        value + self.constant
    }

    /// The probability of less than what was observed, and of just that.
    pub(super) fn below_and_at(&self, predictor: f64, scale: f64) -> (f64, f64) {
        let r = self.y - predictor;
        match self.likelihood {
            Likelihood::Gaussian { sigma } => (normal_cdf(r / sigma.unwrap_or(scale)), 0.0),
            Likelihood::Robust { alpha, sigma1, sigma2 } => {
                let [sigma1, sigma2] = both_scales(sigma1, sigma2, scale);
                ((1.0 - alpha) * normal_cdf(r / sigma1) + alpha * normal_cdf(r / sigma2), 0.0)
            }
            Likelihood::StudentT { df } => (student_t_cdf(r / scale, df), 0.0),
            Likelihood::Logistic {} | Likelihood::Multinomial {} => {
                let zero = 1.0 / (1.0 + predictor.exp());
                if self.y > 0.5 { (zero, 1.0 - zero) } else { (0.0, zero) }
            }
            Likelihood::Poisson {} => self.of_count(|count| poisson_cdf(count, predictor.exp())),
            Likelihood::NegativeBinomial { size } => {
                let size = size.unwrap_or(scale);
                self.of_count(|count| negative_binomial_cdf(count, predictor.exp(), size))
            }
        }
    }

    /// The same of a count, by its distribution function.
    fn of_count(&self, cdf: impl Fn(f64) -> f64) -> (f64, f64) {
        let below = cdf(self.y - 1.0);
        (below, (cdf(self.y) - below).max(0.0))
    }
}

/// `log(1 + eˣ)`.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// The mean of the response.
pub(super) fn mean(likelihood: Likelihood, predictor: f64) -> f64 {
    match likelihood {
        Likelihood::Logistic {} | Likelihood::Multinomial {} => 1.0 / (1.0 + (-predictor).exp()),
        Likelihood::Poisson {} | Likelihood::NegativeBinomial { .. } => predictor.exp(),
        Likelihood::Gaussian { .. } | Likelihood::Robust { .. } | Likelihood::StudentT { .. } => predictor,
    }
}

/// The variance of a count of this mean.
pub(super) fn variance(likelihood: Likelihood, mean: f64, scale: f64) -> f64 {
    match likelihood {
        Likelihood::NegativeBinomial { size } => mean + mean * mean / size.unwrap_or(scale),
        _ => mean,
    }
}

/// A count, or 0 or 1, of this mean.
pub(super) fn replicate(likelihood: Likelihood, mean: f64, scale: f64, stream: &mut Stream) -> f64 {
    match likelihood {
        Likelihood::Poisson {} => stream.poisson(mean),
        Likelihood::NegativeBinomial { size } => stream.negative_binomial(mean, size.unwrap_or(scale)),
        _ => f64::from(u8::from(stream.uniform() < mean)),
    }
}

/// Whether the scale of the errors is fixed beforehand.
pub(super) fn has_fixed_scale(likelihood: Likelihood) -> bool {
    matches!(likelihood, Likelihood::Gaussian { sigma: Some(_) } | Likelihood::Robust { sigma1: Some(_), .. })
}

/// Whether the response is not 0 or 1, so that residuals have a shape.
pub(super) fn has_residuals(likelihood: Likelihood) -> bool {
    !likelihood.has_categories()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn densities_and_probabilities_belong_together() {
        let robust = Likelihood::Robust { alpha: 0.3, sigma1: Some(0.5), sigma2: Some(4.0) };
        let continuous =
            [Likelihood::Gaussian { sigma: None }, robust, Likelihood::ROBUST, Likelihood::StudentT { df: 4.0 }];
        for likelihood in continuous {
            let below = |y: f64| Observation::new(likelihood, y).below_and_at(0.4, 1.3).0;
            for y in [-3.0, 0.1, 2.2] {
                // The derivative of the distribution function, by central differences of error h².
                let (h, density) = (1e-4, Observation::new(likelihood, y).log_density(0.4, 1.3).exp());
                assert!(((below(y + h) - below(y - h)) / (2.0 * h) - density).abs() < 1e-7, "{likelihood:?} {y}");
            }
        }
        let mixed = Likelihood::NegativeBinomial { size: None };
        for likelihood in [Likelihood::Logistic {}, Likelihood::Poisson {}, mixed] {
            let mut sum = 0.0;
            for y in 0..if likelihood == (Likelihood::Logistic {}) { 2 } else { 90 } {
                let observation = Observation::new(likelihood, f64::from(y));
                let (below, at) = observation.below_and_at(0.7, 1.3);
                assert!((below - sum).abs() < 1e-12 && (observation.log_density(0.7, 1.3).exp() - at).abs() < 1e-12);
                sum += at;
            }
            assert!((sum - 1.0).abs() < 1e-12, "{likelihood:?}");
        }
    }
}

//! The scale of the errors, or the size of counts, where it is a parameter: where it lies beforehand, and roughly afterwards.

use super::likelihood::{Likelihood, Pointwise};
use super::{Design, Selection, counts};
use crate::simd::Instructions;
use crate::stats::log_sum_exp;

/// Standard deviation of the proper prior of the log scale: within a factor of 7 with probability 0.95.
const LOG_SCALE_SD: f64 = 1.0;

/// The same of the log size: within a factor of 50.
const LOG_SIZE_SD: f64 = 2.0;

/// The standard deviation of a normal distribution over its median absolute deviation.
const SD_OVER_MAD: f64 = 1.4826;

impl Selection {
    /// Mean and standard deviation of the log scale's proper prior, or of the log size's.
    pub(super) fn log_scale_prior(&self) -> (f64, f64) {
        (self.log_scale, if self.rising.is_some() { LOG_SIZE_SD } else { LOG_SCALE_SD })
    }

    /// The log-normal prior of the scale or size, proper and wide, and its derivative with respect to the logarithm.
    pub(super) fn log_normal_prior(&self, own: f64) -> (f64, f64) {
        let (centre, sd) = self.log_scale_prior();
        let off = (own.ln() - centre) / sd;
        (-0.5 * off * off - sd.ln() - 0.5 * std::f64::consts::TAU.ln() - own.ln(), -off / sd - 1.0)
    }
}

/// The centre of the proper prior of the log scale, or of the log size: by moments of the response, but for robust errors,
/// whose outliers must not decide it, by its median absolute deviation.
pub(super) fn centre(likelihood: &Likelihood, design: &Design) -> f64 {
    let (response, weights) = (design.response(), design.weights());
    let mean = design.mean_of(response);
    let squares = response.iter().zip(weights).map(|(y, weight)| weight * (y - mean).powi(2));
    let sd = (squares.sum::<f64>() / design.total_weight()).sqrt();
    let spread = match likelihood {
        Likelihood::NegativeBinomial { .. } => return counts::log_size_by_moments(mean, sd * sd),
        Likelihood::Robust { .. } => SD_OVER_MAD * median_deviation(response, weights),
        _ => sd,
    };
    // Half of the rows may be equal.
    if spread > 0.0 { spread.ln() } else { sd.max(f64::MIN_POSITIVE).ln() }
}

/// The median distance from the median, of rows that count by their weights.
fn median_deviation(values: &[f64], weights: &[f64]) -> f64 {
    let centre = median(values, weights);
    let deviations: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    median(&deviations, weights)
}

/// The smallest value that half of the weight does not exceed.
fn median(values: &[f64], weights: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let half = 0.5 * weights.iter().sum::<f64>();
    let mut below = 0.0;
    let reaches = |&&place: &&usize| {
        below += weights[place];
        below >= half
    };
    order.iter().find(reaches).map_or(f64::NAN, |&place| values[place])
}

/// The scale of robust errors is looked for between a twentieth of the root mean square of residuals and twice that, at so many
/// places.
const LOWEST: f64 = 0.05;
const HIGHEST: f64 = 2.0;
const PLACES: usize = 48;

/// Mean and standard deviation of the log scale of robust errors, given predictors and a flat prior. Residuals may be of both
/// kinds of errors or of one alone, which are scales far apart, and a mean does not choose between them.
pub(super) fn log_robust_scale(selection: &Selection, predictors: &[f64]) -> (f64, f64) {
    let design = &selection.design;
    let residuals: Vec<f64> = design.response().iter().zip(predictors).map(|(y, predictor)| y - predictor).collect();
    let squares = residuals.iter().zip(design.weights()).map(|(r, weight)| weight * r * r);
    let typical = (squares.sum::<f64>() / design.total_weight()).sqrt().max(f64::MIN_POSITIVE);
    let (low, high) = ((LOWEST * typical).ln(), (HIGHEST * typical).ln());
    let step = (high - low) / (PLACES - 1) as f64;
    let places: Vec<f64> = (0..PLACES).map(|place| low + step * place as f64).collect();
    let mut row = Vec::with_capacity(predictors.len());
    let mut log_likelihood = |log_scale: &f64| {
        row.clear();
        row.extend_from_slice(predictors);
        let (response, weights, likelihood) = (design.response(), design.weights(), selection.settings.likelihood);
        let scale = log_scale.exp();
        Instructions::detect().run(Pointwise { likelihood, response, weights, scale, predictor: &mut row }).0
    };
    let logs: Vec<f64> = places.iter().map(&mut log_likelihood).collect();
    let total = log_sum_exp(&logs);
    let moment = |power: i32, centre: f64| -> f64 {
        places.iter().zip(&logs).map(|(place, log)| (log - total).exp() * (place - centre).powi(power)).sum()
    };
    let mean = moment(1, 0.0);
    // Between two places nothing is seen.
    (mean, moment(2, mean).sqrt().max(0.3 * step))
}

//! Negative binomial counts: what their log likelihood has beside its sum over predictors.
//!
//! With mean μ = e^η and size r, counts have the variance `μ + μ²/r`, and with t = η − log r
//!
//! ```text
//! log p(y) = y η − (y + r) log(1 + eᵗ) + Σ_{k<y} log(1 + k/r) − log y!
//! ```
//!
//! As r grows they become Poisson counts, and the first sum over k goes to 0 without losing digits.

use super::Selection;
use super::likelihood::Likelihood;
use crate::stats::{digamma, ln_gamma};

/// `Σ_i Σ_{k<y_i} log(1 + k/r)` of a column, for any r.
#[derive(Debug)]
pub(super) struct Rising {
    /// The weight of rows above 0, 1, 2, …
    above: Vec<f64>,
    /// Counts beyond that, and their weights.
    large: Vec<(f64, f64)>,
}

/// Counts up to this are summed one by one.
const SUMMED: f64 = 128.0;

impl Rising {
    pub(super) fn new(counts: &[f64], weights: &[f64]) -> Self {
        let most = counts.iter().copied().fold(0.0, f64::max).min(SUMMED) as usize;
        let rows = || counts.iter().copied().zip(weights.iter().copied());
        let above = |k: usize| rows().filter(|(y, _)| *y > k as f64).map(|(_, weight)| weight).sum();
        let mut beyond: Vec<(f64, f64)> = rows().filter(|(y, _)| *y > SUMMED).collect();
        beyond.sort_by(|a, b| a.0.total_cmp(&b.0));
        let weigh = |same: &[(f64, f64)]| (same[0].0, same.iter().map(|(_, weight)| weight).sum());
        Self { above: (0..most).map(above).collect(), large: beyond.chunk_by(|a, b| a.0 == b.0).map(weigh).collect() }
    }

    /// The sum, and its derivative with respect to log r.
    pub(super) fn at(&self, size: f64) -> (f64, f64) {
        let (mut value, mut by_log_size) = (0.0, 0.0);
        for (k, rows) in self.above.iter().enumerate() {
            let k = k as f64;
            value += rows * (k / size).ln_1p();
            by_log_size -= rows * k / (size + k);
        }
        for &(y, rows) in &self.large {
            let more = y - SUMMED;
            value += rows * (ln_gamma(y + size) - ln_gamma(SUMMED + size) - more * size.ln());
            by_log_size += rows * (size * (digamma(y + size) - digamma(SUMMED + size)) - more);
        }
        (value, by_log_size)
    }
}

/// `log Γ(y + r) − log Γ(r) − y log r`, of one count.
pub(crate) fn log_rising(y: f64, size: f64) -> f64 {
    // Few terms are cheaper than two gamma functions.
    if y <= 20.0 {
        return (1..y as u32).map(|k| (f64::from(k) / size).ln_1p()).sum();
    }
    ln_gamma(y + size) - ln_gamma(size) - y * size.ln()
}

/// The logarithm of the size that makes the variance of all counts, taken together, what it is.
pub(super) fn log_size_by_moments(mean: f64, variance: f64) -> f64 {
    let size = mean * mean / (variance - mean).max(f64::MIN_POSITIVE);
    size.clamp(SMALLEST_SIZE, LARGEST_SIZE).ln()
}

/// Between these a size is taken from the data: beyond, counts are as good as Poisson, or have no mean to speak of.
const SMALLEST_SIZE: f64 = 0.1;
const LARGEST_SIZE: f64 = 100.0;

/// Where the logarithm of the size lies, given predictors.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogSize {
    pub location: f64,
    /// Its negative second derivative there.
    pub information: f64,
}

/// Steps of Newton's are no longer than this.
const LONGEST_STEP: f64 = 1.0;
/// Between points of which derivatives are compared.
const APART: f64 = 1e-4;

impl LogSize {
    /// One step of Newton's up the log density, from here.
    pub(super) fn improved(self, selection: &Selection, predictors: &[f64]) -> Self {
        let [low, at, high] = [-APART, 0.0, APART].map(|off| slope(selection, predictors, self.location + off));
        let (_, sd) = selection.log_scale_prior();
        // Far from the mode it need not be concave; the prior is.
        let information = ((low - high) / (2.0 * APART)).max(0.5 / (sd * sd));
        let step = (at / information).clamp(-LONGEST_STEP, LONGEST_STEP);
        Self { location: self.location + step, information }
    }
}

/// The derivative of log likelihood and prior with respect to log r.
fn slope(selection: &Selection, predictors: &[f64], log_size: f64) -> f64 {
    let (size, (centre, sd)) = (log_size.exp(), selection.log_scale_prior());
    let design = &selection.design;
    let row = |((y, predictor), weight): ((&f64, &f64), &f64)| weight * by_log_size(*y, predictor - log_size, size);
    let rows: f64 = design.response().iter().zip(predictors).zip(design.weights()).map(row).sum();
    let rising = selection.rising.as_ref().map_or(0.0, |rising| rising.at(size).1);
    rows + rising - (log_size - centre) / (sd * sd)
}

/// One row's derivative with respect to log r, but for that of the rising product; t = η − log r.
fn by_log_size(y: f64, t: f64, size: f64) -> f64 {
    let softplus = t.max(0.0) + (-t.abs()).exp().ln_1p();
    (y + size) / (1.0 + (-t).exp()) - size * softplus
}

/// What the likelihood has beside its sum over predictors, with its derivative with respect to log r.
pub(super) fn beside(selection: &Selection, own: f64) -> (f64, f64) {
    match (selection.settings.likelihood, &selection.rising) {
        (Likelihood::NegativeBinomial { size }, Some(rising)) => rising.at(size.unwrap_or(own)),
        _ => (0.0, 0.0),
    }
}

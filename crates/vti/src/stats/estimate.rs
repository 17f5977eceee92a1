//! Estimates from weighted draws in strata, with standard errors.
//!
//! A stratum holds independent draws made in one way, for instance all draws of one model; how many is fixed beforehand.
//! Every weight is the draw's own contribution to the total: Z = Σₛ Σᵢ w_{s,i}. Draws of a stratum that stands for a term
//! Z_s have weights (ratio of densities)/nₛ. Strata are independent, so variances add (Cochran, Sampling Techniques, 1977,
//! chapters 5 and 6).
//!
//! A sum of n draws with contributions cᵢ has the estimated variance n/(n − 1) Σ (cᵢ − c̄)². One draw shows no spread: its
//! variance is taken to be c², as if it could as well have been 0 or 2c. A stratum without draws adds nothing.

/// A number and its standard error.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Its standard error.
    pub se: f64,
}

/// Weighted draws that were made in one way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stratum<'a> {
    /// The log of each draw's contribution to the total; −∞ for none.
    pub log_weights: &'a [f64],
    /// The log of what draws may have missed ([`Smoothed::log_beyond`](super::Smoothed)), an error on top of their spread;
    /// −∞ for nothing.
    pub log_beyond: f64,
}

impl<'a> Stratum<'a> {
    /// Draws that missed nothing.
    pub fn new(log_weights: &'a [f64]) -> Self {
        Self { log_weights, log_beyond: f64::NEG_INFINITY }
    }
}

/// Draws nothing can be estimated from.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EstimateError {
    /// A log weight is NaN or +∞.
    #[error("stratum {stratum}: log weight {draw} is {value}; a finite number or -inf is needed")]
    Weight {
        /// Which stratum, counted from 0.
        stratum: usize,
        /// Which of its draws, counted from 0.
        draw: usize,
        /// The log weight.
        value: f64,
    },
    /// The function is not finite at a draw of positive weight.
    #[error("stratum {stratum}: the function is {value} at draw {draw}")]
    Function {
        /// Which stratum, counted from 0.
        stratum: usize,
        /// Which of its draws, counted from 0.
        draw: usize,
        /// The function's value.
        value: f64,
    },
    /// All weights are zero, or there are none.
    #[error("no draw has a positive weight")]
    NoWeight,
}

/// log Z and its standard error, which is the relative standard error of Z (delta method).
///
/// ```
/// use vti::stats::{Stratum, log_total};
/// // Two draws for a term near 3, two equal ones for a term of 2.
/// let (a, b) = ([1f64.ln(), 2f64.ln()], [0.0, 0.0]);
/// let total = log_total(&[Stratum::new(&a), Stratum::new(&b)])?;
/// assert!((total.value - 5f64.ln()).abs() < 1e-12);
/// assert!((total.se - 1.0 / 5.0).abs() < 1e-12); // √(2/1 · (¼ + ¼)) / 5
/// # Ok::<(), vti::stats::EstimateError>(())
/// ```
pub fn log_total(strata: &[Stratum<'_>]) -> Result<Estimate, EstimateError> {
    let scale = log_scale(strata)?;
    let sums: Vec<Sum> = strata.iter().map(|stratum| Sum::of(stratum, scale)).collect();
    let (total, variance) = sums.iter().fold((0.0, 0.0), |(z, v), sum| (z + sum.total, v + sum.variance));
    Ok(Estimate { value: scale + total.ln(), se: variance.sqrt() / total })
}

/// Σ w f / Σ w for a function of stratum and draw, both counted from 0.
///
/// With r the ratio, the delta method gives the variance Σₛ Var(Σᵢ w_{s,i} (f_{s,i} − r)) / (Σ w)². The function is asked
/// once for each draw of positive weight.
///
/// ```
/// use vti::stats::{Stratum, ratio};
/// let log_weights = [0.0; 4];
/// let indicator = [1.0, 0.0, 1.0, 1.0];
/// let share = ratio(&[Stratum::new(&log_weights)], |_, draw| indicator[draw])?;
/// assert_eq!(share.value, 0.75);
/// assert!((share.se - 0.25).abs() < 1e-12); // √(p(1 − p)/(n − 1)) for equal weights
/// # Ok::<(), vti::stats::EstimateError>(())
/// ```
pub fn ratio(strata: &[Stratum<'_>], f: impl Fn(usize, usize) -> f64) -> Result<Estimate, EstimateError> {
    let scale = log_scale(strata)?;
    let (mut total, mut weighted) = (0.0, 0.0);
    let mut draws = Vec::with_capacity(strata.len());
    for (stratum, Stratum { log_weights, .. }) in strata.iter().enumerate() {
        let mut pairs = Vec::with_capacity(log_weights.len());
        for (draw, log_weight) in log_weights.iter().enumerate() {
            let weight = (log_weight - scale).exp();
            let value = if weight > 0.0 { f(stratum, draw) } else { 0.0 };
            if !value.is_finite() {
                return Err(EstimateError::Function { stratum, draw, value });
            }
            total += weight;
            weighted += weight * value;
            pairs.push((weight, value));
        }
        draws.push(pairs);
    }
    let ratio = weighted / total;
    let variance = |(pairs, stratum): (&Vec<(f64, f64)>, &Stratum<'_>)| {
        let spread = Sum::new(pairs.iter().map(|(weight, value)| weight * (value - ratio))).variance;
        // What was missed may be like any of the draws that were not.
        let farthest = pairs.iter().map(|(_, value)| (value - ratio).abs()).fold(0.0, f64::max);
        let missed = (stratum.log_beyond - scale).exp();
        spread + if missed > 0.0 { (missed * farthest).powi(2) } else { 0.0 }
    };
    let variance: f64 = draws.iter().zip(strata).map(variance).sum();
    Ok(Estimate { value: ratio, se: variance.sqrt() / total })
}

/// Each stratum's share Z_s / Z of the total: [`ratio`] with the indicator of the stratum, for all of them in one pass.
///
/// A stratum whose draws all have weight zero has the share 0 with standard error 0, which says nothing about what its draws
/// missed.
///
/// ```
/// use vti::stats::{Stratum, shares};
/// let (a, b) = ([3f64.ln(); 2], [1f64.ln(); 2]);
/// let shares = shares(&[Stratum::new(&a), Stratum::new(&b)])?;
/// assert!((shares[0].value - 0.75).abs() < 1e-12 && shares[0].se < 1e-12);
/// # Ok::<(), vti::stats::EstimateError>(())
/// ```
pub fn shares(strata: &[Stratum<'_>]) -> Result<Vec<Estimate>, EstimateError> {
    let scale = log_scale(strata)?;
    let sums: Vec<Sum> = strata.iter().map(|stratum| Sum::of(stratum, scale)).collect();
    let total: f64 = sums.iter().map(|sum| sum.total).sum();
    // Variances before and after each stratum: all minus its own would cancel.
    let mut after: Vec<f64> = sums.iter().rev().scan(0.0, |others, sum| accumulate(others, sum.variance)).collect();
    after.reverse();
    let before = sums.iter().scan(0.0, |others, sum| accumulate(others, sum.variance));
    let estimates = sums.iter().zip(before.zip(&after)).map(|(sum, (before, after))| {
        let share = sum.total / total;
        // f − r is 1 − r throughout the stratum and −r elsewhere.
        let variance = (1.0 - share).powi(2) * sum.variance + share * share * (before + after);
        Estimate { value: share, se: variance.sqrt() / total }
    });
    Ok(estimates.collect())
}

/// The sum so far; then adds to it.
#[expect(clippy::unnecessary_wraps, reason = "the shape `scan` asks for")]
fn accumulate(sum: &mut f64, term: f64) -> Option<f64> {
    let before = *sum;
    *sum += term;
    Some(before)
}

/// The sum of a stratum's contributions and the sum's estimated variance.
struct Sum {
    total: f64,
    variance: f64,
}

impl Sum {
    fn of(stratum: &Stratum<'_>, scale: f64) -> Self {
        let sum = Self::new(stratum.log_weights.iter().map(|log_weight| (log_weight - scale).exp()));
        Self { variance: sum.variance + (2.0 * (stratum.log_beyond - scale)).exp(), ..sum }
    }

    fn new(contributions: impl Iterator<Item = f64> + Clone) -> Self {
        let (n, total) = contributions.clone().fold((0.0, 0.0), |(n, total), c| (n + 1.0, total + c));
        let variance = if n > 1.0 {
            n / (n - 1.0) * contributions.map(|c| (c - total / n).powi(2)).sum::<f64>()
        } else {
            total * total
        };
        Self { total, variance }
    }
}

/// The largest log weight of all, after a look at every one.
fn log_scale(strata: &[Stratum<'_>]) -> Result<f64, EstimateError> {
    let mut most = f64::NEG_INFINITY;
    for (stratum, Stratum { log_weights, .. }) in strata.iter().enumerate() {
        for (draw, &value) in log_weights.iter().enumerate() {
            if value.is_nan() || value == f64::INFINITY {
                return Err(EstimateError::Weight { stratum, draw, value });
            }
            most = most.max(value);
        }
    }
    if most == f64::NEG_INFINITY { Err(EstimateError::NoWeight) } else { Ok(most) }
}

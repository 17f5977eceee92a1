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

/// The share of each group of draws in the total: [`ratio`] with the indicator of the group, for all `groups` groups in one
/// pass. `group(stratum, draw)` says to which a draw belongs.
///
/// A group whose draws all have weight zero has the share 0 with standard error 0, which says nothing about what its draws
/// missed.
///
/// ```
/// use vti::stats::{Stratum, shares};
/// let (a, b) = ([3f64.ln(); 2], [1f64.ln(); 2]);
/// let shares = shares(&[Stratum::new(&a), Stratum::new(&b)], 2, |stratum, _| stratum)?;
/// assert!((shares[0].value - 0.75).abs() < 1e-12 && shares[0].se < 1e-12);
/// # Ok::<(), vti::stats::EstimateError>(())
/// ```
pub fn shares(
    strata: &[Stratum<'_>],
    groups: usize,
    group: impl Fn(usize, usize) -> usize,
) -> Result<Vec<Estimate>, EstimateError> {
    let scale = log_scale(strata)?;
    let sums: Vec<Sum> = strata.iter().map(|stratum| Sum::of(stratum, scale)).collect();
    let total: f64 = sums.iter().map(|sum| sum.total).sum();
    let all_variance: f64 = sums.iter().map(|sum| sum.variance).sum();
    // Σw and Σw² of each group within each stratum, stratum by stratum.
    let mut parts: Vec<Vec<Part>> = vec![Vec::new(); groups];
    for (stratum, Stratum { log_weights, .. }) in strata.iter().enumerate() {
        for (draw, log_weight) in log_weights.iter().enumerate() {
            let weight = (log_weight - scale).exp();
            let own = &mut parts[group(stratum, draw)];
            if own.last().is_none_or(|part| part.stratum != stratum) {
                own.push(Part { stratum, weight: 0.0, squares: 0.0, draws: 0 });
            }
            if let Some(part) = own.last_mut() {
                part.weight += weight;
                part.squares += weight * weight;
                part.draws += 1;
            }
        }
    }
    let estimates = parts.iter().map(|own| {
        let share = own.iter().map(|part| part.weight).sum::<f64>() / total;
        // Where the group has no draws, f − r is −r throughout.
        let elsewhere = all_variance - own.iter().map(|part| sums[part.stratum].variance).sum::<f64>();
        let here: f64 = own.iter().map(|part| part.variance(&sums[part.stratum], share)).sum();
        let variance = share * share * elsewhere.max(0.0) + here;
        Estimate { value: share, se: variance.sqrt() / total }
    });
    Ok(estimates.collect())
}

/// What a group has in a stratum.
#[derive(Clone)]
struct Part {
    stratum: usize,
    weight: f64,
    squares: f64,
    draws: usize,
}

impl Part {
    /// Variance of `Σ w (f − r)` over a stratum, f being the indicator of the group and r its share.
    fn variance(&self, stratum: &Sum, share: f64) -> f64 {
        let (inside, outside) = (1.0 - share, -share);
        let missed = stratum.missed * stratum.missed;
        if self.draws as f64 == stratum.draws {
            // All draws are the group's: the spread is that of the weights, without cancellation.
            return inside * inside * stratum.variance;
        }
        let mean = (inside * self.weight + outside * (stratum.total - self.weight)) / stratum.draws;
        let squares = inside * inside * self.squares + outside * outside * (stratum.squares - self.squares);
        let spread = (squares - stratum.draws * mean * mean).max(0.0) * stratum.draws / (stratum.draws - 1.0);
        // What was missed may be like any of the draws that were not.
        spread + missed * inside.max(-outside).powi(2)
    }
}

/// The sum of a stratum's contributions and the sum's estimated variance.
struct Sum {
    draws: f64,
    total: f64,
    squares: f64,
    /// What the draws missed.
    missed: f64,
    variance: f64,
}

impl Sum {
    fn of(stratum: &Stratum<'_>, scale: f64) -> Self {
        let sum = Self::new(stratum.log_weights.iter().map(|log_weight| (log_weight - scale).exp()));
        let missed = (stratum.log_beyond - scale).exp();
        Self { variance: sum.variance + missed * missed, missed, ..sum }
    }

    fn new(contributions: impl Iterator<Item = f64> + Clone) -> Self {
        let sums = |(n, total, squares), c: f64| (n + 1.0, total + c, squares + c * c);
        let (n, total, squares) = contributions.clone().fold((0.0, 0.0, 0.0), sums);
        let variance = if n > 1.0 {
            n / (n - 1.0) * contributions.map(|c| (c - total / n).powi(2)).sum::<f64>()
        } else {
            total * total
        };
        Self { draws: n, total, squares, missed: 0.0, variance }
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

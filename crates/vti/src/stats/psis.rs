//! Pareto-smoothed importance sampling: "Pareto Smoothed Importance Sampling" (Vehtari, Simpson, Gelman, Yao and Gabry,
//! JMLR 25, 2024).
//!
//! The largest importance weights carry most of the variance. Their tail is fitted by a generalised Pareto distribution with
//! shape k, and they are replaced by the expected order statistics of the fit. The estimated shape k̂ says how many moments
//! the weights have (1/k of them), and so whether their average can be trusted.

/// The fewest tail weights a generalised Pareto distribution is fitted to.
const MIN_TAIL: usize = 5;

/// Log weights closer than this are equal: what remains is rounding, and no tail can be read from it.
const EQUAL_SPREAD: f64 = 1e-9;

/// A log weight that is no weight.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("log weight {index} is {value}; a finite number or -inf is needed")]
pub struct WeightError {
    /// Its place in the slice.
    pub index: usize,
    /// NaN or +∞.
    pub value: f64,
}

/// What [`smooth`] found and did.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Smoothed {
    /// The estimated shape k̂ of the weights' tail; smaller is better, compare it with [`threshold`].
    ///
    /// −∞ when the largest weights are all equal, which is the best case. `None` when no tail can be fitted: fewer than 21
    /// draws, all weights zero, or fewer than five weights above the tail's cutoff, as when one draw outweighs all others
    /// beyond what a number can hold. Nothing is then known in favour of the weights.
    pub khat: Option<f64>,
    /// How many weights were replaced; 0 when no tail was fitted.
    pub tail: usize,
    /// log of the weight by which the sum of draws from the fitted tail is expected to exceed the smoothed sum: what draws
    /// beyond the largest would have brought. For this k̂ is taken to be at most 0.95: the tail of a tail without a mean has
    /// no end, even where all weights are equal but for the last digits. −∞ when no tail was fitted.
    ///
    /// With k̂ below ½ it is small beside the standard error of the sum. Between ½ and 1, where weights have no variance and
    /// the standard error says little, it is the larger of the two, and what an honest error bar must have.
    pub log_beyond: f64,
}

impl Smoothed {
    /// Whether k̂ is known and below the [`threshold`] of that many draws.
    pub fn is_reliable(&self, draws: usize) -> bool {
        self.khat.is_some_and(|khat| khat < threshold(draws))
    }
}

/// The largest k̂ at which an estimate from that many draws can be trusted: min(1 − 1/log₁₀ S, 0.7).
///
/// No k̂ is small enough for one draw or none.
///
/// ```
/// assert_eq!(vti::stats::threshold(100), 0.5);
/// assert_eq!(vti::stats::threshold(10_000), 0.7);
/// ```
pub fn threshold(draws: usize) -> f64 {
    if draws < 2 {
        return f64::NEG_INFINITY;
    }
    (1.0 - (draws as f64).log10().recip()).min(0.7)
}

/// log Σ exp(xᵢ), shifted by the largest so that nothing overflows; −∞ for no numbers.
///
/// ```
/// let total = vti::stats::log_sum_exp(&[1e4, 1e4]);
/// assert!((total - (1e4 + 2f64.ln())).abs() < 1e-9);
/// ```
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let most = largest(values);
    // Infinities minus themselves would be NaN. A NaN among finite numbers reaches the sum.
    if most.is_infinite() && !values.iter().any(|value| value.is_nan()) {
        return most;
    }
    most + values.iter().map(|value| (value - most).exp()).sum::<f64>().ln()
}

/// How many equal weights would be worth as much as these: (Σw)² / Σw² (Kish 1965), from log weights.
///
/// 0 for no weights or only zeros, NaN where a weight is NaN or +∞.
///
/// ```
/// use vti::stats::effective_draws;
/// assert_eq!(effective_draws(&[-3.0; 8]), 8.0);
/// assert_eq!(effective_draws(&[0.0, f64::NEG_INFINITY]), 1.0);
/// ```
pub fn effective_draws(log_weights: &[f64]) -> f64 {
    let most = largest(log_weights);
    if log_weights.iter().all(|&log_weight| log_weight == f64::NEG_INFINITY) {
        return 0.0;
    }
    let (sum, squares) = log_weights.iter().fold((0.0, 0.0), |(sum, squares), log_weight| {
        let weight = (log_weight - most).exp();
        (sum + weight, squares + weight * weight)
    });
    sum * sum / squares
}

/// Replaces the largest log weights by the expected order statistics of their fitted tail; returns k̂.
///
/// Of S weights the M = ⌈min(S/5, 3√S)⌉ largest are the tail, and the next one is its cutoff u. A generalised Pareto
/// distribution with shape k̂ and scale σ is fitted to w − u ([`fit_generalised_pareto`]), and the j-th smallest tail weight
/// becomes u + F⁻¹((j − ½)/M), at most the largest raw weight. Weights equal to the cutoff stay out of the tail. The order of
/// the weights is kept. Weights are not normalised: their sum still estimates what the sum of the raw ones does.
///
/// Log weights may have any offset; −∞ is a weight of zero. NaN and +∞ are refused, and nothing is then changed.
///
/// ```
/// use vti::stats::{log_sum_exp, smooth};
/// use vti::random::{Purpose, Stream};
///
/// // Weights u^-0.4 have a tail of shape 0.4 and the mean 1/0.6.
/// let mut stream = Stream::new(1, Purpose::Other(0), 0, 0);
/// let mut log_weights: Vec<f64> = (0..4000).map(|_| -0.4 * (1.0 - stream.uniform()).ln()).collect();
/// let smoothed = smooth(&mut log_weights)?;
/// assert!(smoothed.is_reliable(4000) && smoothed.tail == 190);
/// let mean = log_sum_exp(&log_weights).exp() / 4000.0;
/// assert!((mean * 0.6 - 1.0).abs() < 0.1);
/// # Ok::<(), vti::stats::WeightError>(())
/// ```
pub fn smooth(log_weights: &mut [f64]) -> Result<Smoothed, WeightError> {
    if let Some((index, &value)) = log_weights.iter().enumerate().find(|(_, w)| w.is_nan() || **w == f64::INFINITY) {
        return Err(WeightError { index, value });
    }
    let unknown = Smoothed { khat: None, tail: 0, log_beyond: f64::NEG_INFINITY };
    let most = largest(log_weights);
    let draws = log_weights.len() as f64;
    let tail = (draws / 5.0).min(3.0 * draws.sqrt()).ceil() as usize;
    if most == f64::NEG_INFINITY || tail < MIN_TAIL {
        return Ok(unknown);
    }
    // Ascending; equal weights keep their places so that the result is the same on every machine.
    let mut order: Vec<usize> = (0..log_weights.len()).collect();
    order.sort_by(|&a, &b| log_weights[a].total_cmp(&log_weights[b]));
    // Below the smallest normal number an exceedance has no digits left.
    let cutoff = (log_weights[order[order.len() - 1 - tail]] - most).max(f64::MIN_POSITIVE.ln());
    if cutoff >= -EQUAL_SPREAD {
        return Ok(Smoothed { khat: Some(f64::NEG_INFINITY), ..unknown });
    }
    let start = order.partition_point(|&place| log_weights[place] - most <= cutoff);
    let places = &order[start..];
    let scale = cutoff.exp();
    // w − u without cancellation.
    let exceedances: Vec<f64> =
        places.iter().map(|&place| scale * (log_weights[place] - most - cutoff).exp_m1()).collect();
    let Some((khat, sigma)) = fit_generalised_pareto(&exceedances) else {
        return Ok(unknown);
    };
    for (j, &place) in places.iter().enumerate() {
        let probability = (j as f64 + 0.5) / places.len() as f64;
        log_weights[place] = most + (scale + quantile(probability, khat, sigma)).ln().min(0.0);
    }
    let included = places.last().map_or(0.0, |&place| (log_weights[place] - most).exp());
    let beyond = (scale + top_mean(places.len() as f64, khat, sigma) - included).max(0.0);
    Ok(Smoothed { khat: Some(khat), tail: places.len(), log_beyond: most + beyond.ln() })
}

/// Mean of the largest nth of a generalised Pareto distribution: n ∫ F⁻¹(1 − t) dt over t from 0 to 1/n.
fn top_mean(n: f64, k: f64, sigma: f64) -> f64 {
    let k = k.min(0.95);
    if k.abs() < 1e-8 { sigma * (n.ln() + 1.0) } else { sigma / k * (n.powf(k) / (1.0 - k) - 1.0) }
}

/// The shape k and the scale σ of a generalised Pareto distribution, F(x) = 1 − (1 + kx/σ)^(−1/k), fitted to positive numbers
/// in ascending order.
///
/// The quasi-Bayesian estimate of Zhang and Stephens ("A New and Efficient Estimation Method for the Generalized Pareto
/// Distribution", Technometrics 51, 2009). With b = −k/σ, the shape that maximises the likelihood is
/// k(b) = mean log(1 − b xᵢ), which leaves the profile log-likelihood n(log(−b/k(b)) − k(b) − 1); b is averaged over a grid
/// with the likelihood as its weight. The shape is then drawn towards ½ as if by ten more observations (the weakly
/// informative prior of PSIS); the scale is that of the shape before this.
///
/// `None` for fewer than five numbers, numbers that are not in order, negative or not finite, or where a quarter of them is 0.
///
/// ```
/// // Expected order statistics of an exponential distribution: k = 0, σ = 1.
/// let x: Vec<f64> = (0..1000).map(|j| -(1.0 - (f64::from(j) + 0.5) / 1000.0).ln()).collect();
/// let (k, sigma) = vti::stats::fit_generalised_pareto(&x).ok_or("no fit")?;
/// assert!(k.abs() < 0.02 && (sigma - 1.0).abs() < 0.02);
/// # Ok::<(), &str>(())
/// ```
pub fn fit_generalised_pareto(exceedances: &[f64]) -> Option<(f64, f64)> {
    let (n, x) = (exceedances.len(), exceedances);
    if n < MIN_TAIL || !x.is_sorted() || x[0] < 0.0 || !x[n - 1].is_finite() {
        return None;
    }
    let quartile = x[(n as f64 / 4.0 + 0.5) as usize - 1];
    if quartile <= 0.0 {
        return None;
    }
    // The grid of Zhang and Stephens, quantiles of a prior on b that is itself generalised Pareto and bounded by 1/max x;
    // 30 points instead of their 20 to begin with, as implementations of PSIS have it.
    let points = 30 + n.isqrt();
    let grid: Vec<(f64, f64)> = (1..=points)
        .map(|j| {
            let spread = 1.0 - (points as f64 / (j as f64 - 0.5)).sqrt();
            let b = x[n - 1].recip() + spread / (3.0 * quartile);
            let (k, sigma) = profile(b, x);
            (b, n as f64 * (-sigma.ln() - k - 1.0))
        })
        .filter(|(_, log_likelihood)| log_likelihood.is_finite())
        .collect();
    let most = grid.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
    let (sum, total) = grid.iter().fold((0.0, 0.0), |(sum, total), (b, log_likelihood)| {
        let weight = (log_likelihood - most).exp();
        (sum + weight * b, total + weight)
    });
    let (k, sigma) = profile(sum / total, x);
    let (observed, prior) = (n as f64, 10.0);
    let k = (observed * k + prior * 0.5) / (observed + prior);
    (k.is_finite() && sigma.is_finite() && sigma > 0.0).then_some((k, sigma))
}

/// The shape and the scale of greatest likelihood given b = −k/σ.
fn profile(b: f64, x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    let k = x.iter().map(|x| (-b * x).ln_1p()).sum::<f64>() / n;
    // The limit at b = 0 is the exponential distribution, whose scale is its mean.
    let sigma = if b == 0.0 { x.iter().sum::<f64>() / n } else { -k / b };
    (k, sigma)
}

/// F⁻¹(p) = σ((1 − p)^(−k) − 1)/k, and its limit at k = 0.
fn quantile(p: f64, k: f64, sigma: f64) -> f64 {
    let exponential = -(-p).ln_1p();
    if k == 0.0 { sigma * exponential } else { sigma * (k * exponential).exp_m1() / k }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

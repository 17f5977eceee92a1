//! Diagnostics of several chains of one number: a model indicator, or any function of the state.
//!
//! "Rank-normalization, folding, and localization: an improved R̂ for assessing convergence of MCMC" (Vehtari, Gelman,
//! Simpson, Carpenter and Bürkner, Bayesian Analysis 16, 2021), without the rank normalisation: indicators are 0 or 1, and
//! ranks say nothing more about them. Every chain is split in halves, so that one chain that drifts is caught as well; the
//! middle draw of an odd length takes part in neither half.
//!
//! All functions want chains of one length, at least four draws each; they return `None` for other chains, for numbers that
//! are not finite, and for draws that are all equal. A constant indicator (no chain ever visits, or ever leaves, a model) may
//! mean certainty or chains that never mixed: the draws cannot tell, so no number is given.

/// Split-R̂: √(((n − 1)/n · W + B/n) / W), W the variance within and B/n the variance between half-chains of n draws.
///
/// Near 1 when the chains agree; +∞ when each half stands still and they differ.
///
/// ```
/// use vti::stats::split_rhat;
/// let chains = [[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]];
/// assert!(split_rhat(&[&chains[0], &chains[1]]).is_some_and(|rhat| rhat < 1.0));
/// assert_eq!(split_rhat(&[&[0.0; 4], &[1.0; 4]]), Some(f64::INFINITY));
/// assert_eq!(split_rhat(&[&[1.0; 4], &[1.0; 4]]), None);
/// ```
pub fn split_rhat(chains: &[&[f64]]) -> Option<f64> {
    let halves = Halves::new(chains)?;
    Some((halves.variance() / halves.within).sqrt())
}

/// How many independent draws would give the mean as precisely: S / τ for S draws.
///
/// τ = −1 + 2 Σ (ρ̂₂ₜ + ρ̂₂ₜ₊₁) over Geyer's initial monotone positive sequence ("Practical Markov chain Monte Carlo",
/// Statistical Science 7, 1992), with ρ̂ₜ = 1 − (W − mean autocovariance at lag t) / (variance of all chains together), so
/// that chains that disagree count for little. The first even ρ̂ after the sequence is added when positive. Chains better than
/// independent (τ < 1) are believed up to S log₁₀ S.
///
/// Autocovariances are summed directly, lag by lag until the sequence ends: the cost is draws × lags needed.
///
/// ```
/// use vti::stats::effective_sample_size;
/// use vti::random::{Purpose, Stream};
/// let mut stream = Stream::new(1, Purpose::Other(0), 0, 0);
/// let chains: Vec<Vec<f64>> = (0..4).map(|_| (0..500).map(|_| stream.normal()).collect()).collect();
/// let size = effective_sample_size(&chains.iter().map(Vec::as_slice).collect::<Vec<_>>());
/// assert!(size.is_some_and(|size| (1500.0..2700.0).contains(&size)));
/// ```
pub fn effective_sample_size(chains: &[&[f64]]) -> Option<f64> {
    let halves = Halves::new(chains)?;
    let (n, variance) = (halves.length(), halves.variance());
    let rho = |lag: usize| if lag == 0 { 1.0 } else { 1.0 - (halves.within - halves.autocovariance(lag)) / variance };
    let (mut tau, mut previous, mut lag) = (-1.0, f64::INFINITY, 0);
    loop {
        let even = rho(lag);
        let pair = even + rho(lag + 1);
        // The last lags rest on a few products only: the last pair ends the sequence whatever its sign.
        if pair <= 0.0 || lag + 4 >= n {
            tau += even.max(0.0);
            break;
        }
        previous = pair.min(previous);
        tau += 2.0 * previous;
        lag += 2;
    }
    let draws = (n * halves.parts.len()) as f64;
    Some(draws / tau.max(draws.log10().recip()))
}

/// The standard error of the mean of all draws: their standard deviation / √[`effective_sample_size`].
///
/// ```
/// use vti::stats::standard_error;
/// use vti::random::{Purpose, Stream};
/// let mut stream = Stream::new(1, Purpose::Other(0), 0, 0);
/// let indicator: Vec<f64> = (0..1000).map(|_| if stream.uniform() < 0.5 { 1.0 } else { 0.0 }).collect();
/// let expected = 0.5 / 1000f64.sqrt();
/// assert!(standard_error(&[&indicator]).is_some_and(|se| (0.8..1.3).contains(&(se / expected))));
/// ```
pub fn standard_error(chains: &[&[f64]]) -> Option<f64> {
    let size = effective_sample_size(chains)?;
    let draws = || chains.iter().flat_map(|chain| chain.iter().copied());
    let n = draws().count() as f64;
    let mean = draws().sum::<f64>() / n;
    let variance = draws().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some((variance / size).sqrt())
}

/// The standard error of a share that was found in so many independent draws; where all or none of them had it, what they
/// could have missed (the rule of three).
///
/// ```
/// use vti::stats::share_error;
/// assert_eq!(share_error(0.5, 100.0), 0.05);
/// assert_eq!(share_error(0.0, 100.0), 0.01);
/// ```
pub fn share_error(share: f64, effective: f64) -> f64 {
    let n = effective.max(1.0);
    (share * (1.0 - share) / n).sqrt().max(1.0 / n)
}

/// The worst that was found along several traces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Diagnosis {
    /// The largest split-R̂.
    pub rhat: f64,
    /// The smallest effective sample size.
    pub effective: f64,
}

impl Diagnosis {
    /// Nothing bad so far, in so many draws.
    pub fn new(draws: usize) -> Self {
        Self { rhat: 1.0, effective: draws as f64 }
    }

    /// Takes another trace of all chains; the standard error of its mean, if it moves at all.
    pub fn add(&mut self, chains: &[&[f64]]) -> Option<f64> {
        let rhat = split_rhat(chains)?;
        self.join(&Self { rhat, effective: effective_sample_size(chains).unwrap_or(1.0) });
        Some(standard_error(chains).unwrap_or(f64::INFINITY))
    }

    /// Takes what was found along other traces.
    pub fn join(&mut self, other: &Self) {
        self.rhat = self.rhat.max(other.rhat);
        self.effective = self.effective.min(other.effective);
    }
}

/// Split chains, each less its mean.
struct Halves {
    parts: Vec<Vec<f64>>,
    /// W: the mean variance of the parts.
    within: f64,
    /// B/n: the variance of their means.
    between: f64,
}

impl Halves {
    fn new(chains: &[&[f64]]) -> Option<Self> {
        let length = chains.first()?.len();
        let fit = |chain: &&[f64]| chain.len() == length && chain.iter().all(|value| value.is_finite());
        if length < 4 || !chains.iter().all(fit) {
            return None;
        }
        let half = length / 2;
        let mut parts: Vec<Vec<f64>> =
            chains.iter().flat_map(|chain| [chain[..half].to_vec(), chain[length - half..].to_vec()]).collect();
        let first = parts[0][0];
        // Before any arithmetic: rounding of means would hide that draws are equal.
        if parts.iter().flatten().all(|&value| value == first) {
            return None;
        }
        let means: Vec<f64> = parts.iter().map(|part| mean(part)).collect();
        for (part, mean) in parts.iter_mut().zip(&means) {
            part.iter_mut().for_each(|value| *value -= mean);
        }
        let n = half as f64;
        let within = parts.iter().flatten().map(|value| value * value).sum::<f64>() / ((n - 1.0) * parts.len() as f64);
        let centre = mean(&means);
        let between = means.iter().map(|mean| (mean - centre).powi(2)).sum::<f64>() / (means.len() as f64 - 1.0);
        // Squares of huge numbers overflow, squares of tiny ones vanish.
        (within.is_finite() && between.is_finite() && within + between > 0.0).then_some(Self { parts, within, between })
    }

    /// Draws in a half-chain.
    fn length(&self) -> usize {
        self.parts[0].len()
    }

    /// The variance of all chains together, (n − 1)/n · W + B/n.
    fn variance(&self) -> f64 {
        let n = self.length() as f64;
        (n - 1.0) / n * self.within + self.between
    }

    /// The mean over parts of n⁻¹ Σ (xᵢ − x̄)(xᵢ₊ₗ − x̄).
    fn autocovariance(&self, lag: usize) -> f64 {
        let products =
            self.parts.iter().map(|part| part.iter().zip(part.iter().skip(lag)).map(|(a, b)| a * b).sum::<f64>());
        products.sum::<f64>() / (self.length() * self.parts.len()) as f64
    }
}

/// The mean, summed around the first number so that equal numbers have exactly their own value as mean.
fn mean(values: &[f64]) -> f64 {
    let origin = values.first().copied().unwrap_or_default();
    origin + values.iter().map(|value| value - origin).sum::<f64>() / values.len() as f64
}

//! From one temperature to the next: how far weights allow, and draws by weights.

use super::{effective_draws, log_sum_exp};

/// How precisely the next β is found: enough for likelihoods that differ by millions, as those of millions of rows do.
const HALVINGS: usize = 40;

/// The largest β' up to 1 at which weights `exp((β' − β) ℓ)` still leave this share of the possible particles, in the mean over several
/// runs; ℓ of impossible ones is −∞.
///
/// A run that chose its own β' would stop short of large weights whenever it happens to have one, and its mean weight would be too
/// small: by about 1/n at each β for n particles, which adds up. Among several runs each has little say.
pub(crate) fn next_beta(runs: &[Vec<f64>], beta: f64, share: f64) -> f64 {
    let possible = |run: &Vec<f64>| run.iter().copied().filter(|log| log.is_finite()).collect::<Vec<f64>>();
    let runs: Vec<Vec<f64>> = runs.iter().map(possible).filter(|run| !run.is_empty()).collect();
    let mut log_weights = Vec::new();
    let mut enough = |to: f64| {
        let left = runs.iter().map(|run| {
            log_weights.clear();
            log_weights.extend(run.iter().map(|log| (to - beta) * log));
            effective_draws(&log_weights) / run.len() as f64
        });
        left.sum::<f64>() >= share * runs.len() as f64
    };
    if enough(1.0) {
        return 1.0;
    }
    let (mut low, mut high) = (beta, 1.0);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if enough(middle) { low = middle } else { high = middle }
    }
    high
}

/// As many draws as there are weights, by their weights, equally spaced with one random start from [0, 1); and the logarithm of
/// the mean weight. None where all weights are 0.
pub(crate) fn resample(log_weights: &[f64], start: f64) -> Option<(Vec<usize>, f64)> {
    let chosen = systematic(log_weights, log_weights.len(), start)?;
    Some((chosen, log_sum_exp(log_weights) - (log_weights.len() as f64).ln()))
}

/// `count` draws, likewise.
pub(crate) fn systematic(log_weights: &[f64], count: usize, start: f64) -> Option<Vec<usize>> {
    let log_total = log_sum_exp(log_weights);
    if log_total == f64::NEG_INFINITY {
        return None;
    }
    let (mut chosen, mut sum) = (Vec::with_capacity(count), 0.0);
    for (particle, log_weight) in log_weights.iter().enumerate() {
        sum += (log_weight - log_total).exp() * count as f64;
        while chosen.len() < count && chosen.len() as f64 + start < sum {
            chosen.push(particle);
        }
    }
    // Rounding may leave a place.
    chosen.resize(count, chosen.last().copied().unwrap_or(0));
    Some(chosen)
}

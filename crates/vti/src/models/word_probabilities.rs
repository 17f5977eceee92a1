//! Probabilities of numbered words, kept up to date and drawn from.

use crate::simd::Real;
use crate::simd::{Instructions, Kernel, Vector};
use crate::space::Catalogue;
use crate::state::{State, StateError};
use crate::workers::Workers;

use super::Draw;
use super::descent::MIN_STEP_SHARE;

/// Words per block: a draw finds its block by bisection and then its word by looking at each.
const WORDS_PER_BLOCK: usize = 64;

/// Blocks per task.
const BLOCKS_PER_TASK: usize = 256;

/// `q(m) ∝ exp(logit_m)` over all words of a catalogue.
pub(super) struct WordProbabilities {
    catalogue: Catalogue,
    logits: Vec<f64>,
    /// `exp(logit − top)`.
    weights: Vec<f64>,
    /// Sum of the weights before each block, and of all at the end.
    before: Vec<f64>,
    sums: Vec<Sums>,
    log_total: f64,
    entropy: f64,
}

/// Weights of some blocks of logits.
struct Weigh<'a> {
    top: f64,
    logits: &'a [f64],
    weights: &'a mut [f64],
    sums: &'a mut [Sums],
}

/// Σ weights and Σ weights · (logit − top) of a block.
#[derive(Clone, Copy, Default)]
struct Sums {
    weights: f64,
    energy: f64,
}

impl Kernel<f64> for Weigh<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        let Self { top, logits, weights, sums } = self;
        for ((weights, logits), sums) in
            weights.chunks_mut(WORDS_PER_BLOCK).zip(logits.chunks(WORDS_PER_BLOCK)).zip(sums)
        {
            let (mut total, mut energy) = ([0.0; 8], [0.0; 8]);
            for (weights, logits) in weights.chunks_mut(8).zip(logits.chunks(8)) {
                for (lane, (weight, &logit)) in weights.iter_mut().zip(logits).enumerate() {
                    let possible = logit > f64::NEG_INFINITY;
                    let below = if possible { logit - top } else { 0.0 };
                    let value = if possible { Real::exp(below) } else { 0.0 };
                    *weight = value;
                    total[lane] += value;
                    energy[lane] += value * below;
                }
            }
            *sums = Sums { weights: total.iter().sum(), energy: energy.iter().sum() };
        }
    }
}

impl WordProbabilities {
    /// All words equally likely.
    pub(super) fn new(catalogue: Catalogue) -> Self {
        let count = catalogue.len();
        let uniform = |count: usize| (count as f64).ln();
        let before =
            (0..=count.div_ceil(WORDS_PER_BLOCK)).map(|block| (block * WORDS_PER_BLOCK).min(count) as f64).collect();
        Self {
            logits: vec![0.0; count],
            weights: vec![1.0; count],
            before,
            sums: Vec::new(),
            log_total: uniform(count),
            entropy: uniform(count),
            catalogue,
        }
    }

    pub(super) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Entropy in nats.
    pub(super) fn entropy(&self) -> f64 {
        self.entropy
    }

    /// Probabilities of all words.
    pub(super) fn probabilities(&self) -> impl Iterator<Item = f64> + '_ {
        let total = self.total();
        self.weights.iter().map(move |weight| weight / total)
    }

    /// Log probabilities of a mixture: a share of this distribution, and for the rest words with weights that sum to 1.
    pub(super) fn log_mixture(&self, kept_share: f64, words: &[u16], weights: &[f64]) -> Vec<f64> {
        let width = words.len() / weights.len().max(1);
        let mut mixture: Vec<f64> = self.probabilities().map(|p| kept_share * p).collect();
        for (row, weight) in weights.iter().enumerate() {
            if let Some(index) = self.catalogue.index(&words[row * width..][..width]) {
                mixture[index] += (1.0 - kept_share) * weight;
            }
        }
        mixture.into_iter().map(f64::ln).collect()
    }

    fn total(&self) -> f64 {
        self.before.last().copied().unwrap_or(0.0)
    }

    /// Sets the logits, side by side where there are several workers.
    pub(super) fn set_logits(&mut self, workers: &Workers, logits: impl Iterator<Item = f64>) {
        self.logits.iter_mut().zip(logits).for_each(|(to, logit)| *to = logit);
        let top = self.logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let instructions = Instructions::detect();
        self.sums.resize(self.before.len() - 1, Sums::default());
        let words = WORDS_PER_BLOCK * BLOCKS_PER_TASK;
        let parts =
            self.logits.chunks(words).zip(self.weights.chunks_mut(words)).zip(self.sums.chunks_mut(BLOCKS_PER_TASK));
        let mut tasks: Vec<Weigh<'_>> =
            parts.map(|((logits, weights), sums)| Weigh { top, logits, weights, sums }).collect();
        workers.for_each(&mut tasks, |_, Weigh { top, logits, weights, sums }| {
            instructions.run(Weigh { top: *top, logits, weights, sums });
        });
        let (mut total, mut energy) = (0.0, 0.0);
        for (before, sums) in self.before.iter_mut().zip(&self.sums) {
            *before = total;
            total += sums.weights;
            energy += sums.energy;
        }
        if let Some(last) = self.before.last_mut() {
            *last = total;
        }
        self.log_total = top + total.ln();
        self.entropy = total.ln() - energy / total;
    }

    /// Moves the logits towards `goal` as far as the entropy changes by no more than `limit`: the whole way, or the largest
    /// halving of it that does, starting from twice the share that went last time. Returns the share.
    pub(super) fn approach(&mut self, workers: &Workers, goal: &[f64], limit: f64, last: f64) -> f64 {
        if limit <= 0.0 {
            return 0.0;
        }
        let (start, entropy) = (self.logits.clone(), self.entropy);
        let mut share = if limit < f64::INFINITY { (2.0 * last).min(1.0) } else { 1.0 };
        while share >= MIN_STEP_SHARE {
            // Words of prior probability 0 stay where they are.
            let between = |(&from, &to): (&f64, &f64)| {
                if share < 1.0 && from.is_finite() { from + share * (to - from) } else { to }
            };
            self.set_logits(workers, start.iter().zip(goal).map(between));
            if (self.entropy - entropy).abs() <= limit {
                return share;
            }
            share *= 0.5;
        }
        self.set_logits(workers, start.into_iter());
        0.0
    }

    /// `log q` of word number `index`.
    pub(super) fn log_prob(&self, index: usize) -> f64 {
        self.logits[index] - self.log_total
    }

    /// Draws numbers of words with their log probabilities.
    pub(super) fn sample(&self, draw: Draw, words: &mut [u16], log_q: &mut [f64]) {
        let width = words.len() / log_q.len().max(1);
        for (row, log_q) in log_q.iter_mut().enumerate() {
            let index = self.find(draw.row(row).uniform());
            if self.catalogue.word(index, &mut words[row * width..][..width]).is_err() {
                unreachable!("the number of a word of this catalogue, and room for it");
            }
            *log_q = self.log_prob(index);
        }
    }

    /// The word whose interval of the distribution function holds `uniform`; never one of probability 0.
    fn find(&self, uniform: f64) -> usize {
        let goal = uniform * self.total();
        let block = self.before.partition_point(|&before| before <= goal).clamp(1, self.before.len() - 1) - 1;
        let mut left = goal - self.before[block];
        let mut last = None;
        for (place, &weight) in self.weights[block * WORDS_PER_BLOCK..].iter().take(WORDS_PER_BLOCK).enumerate() {
            if weight > 0.0 {
                last = Some(block * WORDS_PER_BLOCK + place);
                if left < weight {
                    break;
                }
                left -= weight;
            }
        }
        // Sums of a block taken in another order may differ in the last bit: then its last possible word is meant.
        last.unwrap_or(0)
    }

    /// Log probabilities of words; −∞ for those that are not in the catalogue.
    pub(super) fn log_probs(&self, words: &[u16], log_q: &mut [f64]) {
        let width = words.len() / log_q.len().max(1);
        for (row, log_q) in log_q.iter_mut().enumerate() {
            let index = self.catalogue.index(&words[row * width..][..width]);
            *log_q = index.map_or(f64::NEG_INFINITY, |index| self.log_prob(index));
        }
    }

    pub(super) fn put(&self, state: &mut State) {
        state.put("logits", &self.logits);
    }

    pub(super) fn restore(&mut self, workers: &Workers, state: &mut State) -> Result<(), StateError> {
        let logits = state.take::<f64>("logits", self.logits.len())?;
        self.set_logits(workers, logits.into_iter());
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};
    use crate::space::Subsets;
    use crate::workers::Workers;

    /// Random logits, some of them −∞, over 2¹² words: several blocks.
    fn table() -> (WordProbabilities, Vec<f64>) {
        let mut stream = Stream::new(2, Purpose::Other(0), 0, 0);
        let logits: Vec<f64> = (0..4096)
            .map(|m| if m % 7 == 3 || (1024..2048).contains(&m) { f64::NEG_INFINITY } else { 2.0 * stream.normal() })
            .collect();
        let mut table = WordProbabilities::new(Catalogue::new(&Subsets::new(12).unwrap(), 1 << 12).unwrap());
        table.set_logits(&Workers::new(2).unwrap(), logits.iter().copied());
        (table, logits)
    }

    #[test]
    fn probabilities_and_entropy_follow_the_definition() {
        let (table, logits) = table();
        let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
        let entropy: f64 = logits.iter().map(|l| l.exp() / total).filter(|p| *p > 0.0).map(|p| -p * p.ln()).sum();
        assert!((table.entropy() - entropy).abs() < 1e-10);
        for (m, p) in table.probabilities().enumerate() {
            assert!((p - logits[m].exp() / total).abs() < 1e-14 && (table.log_prob(m).exp() - p).abs() < 1e-14);
        }
    }

    #[test]
    fn draws_follow_the_probabilities_and_never_meet_what_is_impossible() {
        let (table, logits) = table();
        let n = 200_000;
        let mut counts = vec![0.0; 4096];
        for i in 0..n {
            // A grid of uniform numbers: counts are then exact up to one.
            counts[table.find((f64::from(i) + 0.5) / f64::from(n))] += 1.0;
        }
        for (m, p) in table.probabilities().enumerate() {
            assert!((counts[m] - p * f64::from(n)).abs() <= 1.5, "{m}: {} {}", counts[m], p * f64::from(n));
        }
        for uniform in [0.0, f64::MIN_POSITIVE, 0.5, 1.0 - f64::EPSILON / 2.0] {
            assert!(logits[table.find(uniform)] > f64::NEG_INFINITY);
        }
    }
}

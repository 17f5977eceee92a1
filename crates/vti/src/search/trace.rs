//! Where chains were: features of their states, summed over blocks of iterations.
//!
//! A trace of every feature in every iteration would be far too long. Sums over blocks are enough: features are 0 or 1, so the
//! variance within chains follows from means, and how slowly chains move from the spread of block means. There are at most
//! [`MOST_BLOCKS`]; neighbours are joined when they would be more.

use super::known::{Key, Packing};
use crate::space::ModelSpace;
use crate::stats::{Diagnosis, share_error, standard_error};
use crate::workers::Workers;

/// The most blocks of a chain.
const MOST_BLOCKS: usize = 512;

/// The most states of a chain that are kept.
const MOST_STATES: usize = 4096;

/// The features that a model has: those above 0.
pub(super) fn mark_features(space: &dyn ModelSpace, word: &[u16], room: &mut Vec<f64>, features: &mut Vec<u32>) {
    room.resize(space.feature_count(), 0.0);
    space.features(word, room);
    features.clear();
    features.extend((0u32..).zip(room.iter()).filter(|(_, value)| **value > 0.0).map(|(feature, _)| feature));
}

/// One chain's blocks.
pub(super) struct Trace {
    features: usize,
    /// Iterations with each feature, block by block.
    sums: Vec<u32>,
    /// Blocks that are complete.
    pub blocks: usize,
    /// States at equal distances.
    states: States,
    /// Iterations of a block.
    pub length: usize,
    /// Features of the current state, and iterations spent there that are not in `sums` yet.
    current: Vec<u32>,
    stayed: u32,
    /// Iterations in the block that is not complete.
    partly: usize,
    room: Vec<f64>,
}

impl Trace {
    pub(super) fn new(features: usize) -> Self {
        let sums = vec![0; features];
        let (current, room) = (Vec::new(), Vec::new());
        Self { features, sums, blocks: 0, states: States::new(), length: 1, current, stayed: 0, partly: 0, room }
    }

    /// The chain has come to another state.
    pub(super) fn arrive(&mut self, space: &dyn ModelSpace, word: &[u16]) {
        self.settle();
        mark_features(space, word, &mut self.room, &mut self.current);
    }

    /// The chain is where it is for another iteration; `key` says where.
    pub(super) fn stay(&mut self, key: &[u64]) {
        self.stayed += 1;
        self.partly += 1;
        self.states.add(key);
        if self.partly == self.length {
            self.settle();
            self.blocks += 1;
            self.partly = 0;
            if self.blocks == MOST_BLOCKS {
                self.join();
            }
            self.sums.resize((self.blocks + 1) * self.features, 0);
        }
    }

    fn settle(&mut self) {
        let block = &mut self.sums[self.blocks * self.features..];
        self.current.iter().for_each(|&feature| block[feature as usize] += self.stayed);
        self.stayed = 0;
    }

    /// Every two neighbours become one.
    fn join(&mut self) {
        let (half, features) = (self.blocks / 2, self.features);
        for block in 0..half {
            for feature in 0..features {
                self.sums[block * features + feature] =
                    self.sums[2 * block * features + feature] + self.sums[(2 * block + 1) * features + feature];
            }
        }
        self.sums.truncate(half * features);
        self.blocks = half;
        self.length *= 2;
    }

    /// Means of a feature in each block.
    fn means(&self, feature: usize) -> Vec<f64> {
        let sums = (0..self.blocks).map(|block| self.sums[block * self.features + feature]);
        sums.map(|sum| f64::from(sum) / self.length as f64).collect()
    }

    /// Iterations in blocks that are complete.
    pub(super) fn iterations(&self) -> usize {
        self.blocks * self.length
    }

    /// States at equal distances, as words.
    pub(super) fn words(&self, packing: &Packing, width: usize) -> Vec<u16> {
        let keys = &self.states.keys;
        let mut words = vec![0; keys.len() * width];
        if width > 0 {
            words.chunks_exact_mut(width).zip(keys).for_each(|(word, key)| packing.unpack(key, word));
        }
        words
    }
}

/// Every so many iterations, where the chain was; every other one is forgotten when there are too many.
struct States {
    keys: Vec<Key>,
    /// Iterations between two.
    distance: usize,
    since: usize,
}

impl States {
    fn new() -> Self {
        Self { keys: Vec::new(), distance: 1, since: 0 }
    }

    fn add(&mut self, key: &[u64]) {
        self.since += 1;
        if self.since < self.distance {
            return;
        }
        self.since = 0;
        self.keys.push(key.into());
        if self.keys.len() == MOST_STATES {
            self.keys = self.keys.drain(..).skip(1).step_by(2).collect();
            self.distance *= 2;
        }
    }
}

/// What chains say about a feature.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FeatureTrace {
    /// The share of iterations in which models had it.
    pub share: f64,
    /// Split-R̂; none where the feature never changed.
    pub rhat: Option<f64>,
    /// Effective sample size; none where the feature never changed.
    pub effective: Option<f64>,
    /// Standard error of the share.
    pub se: f64,
}

/// Looks at every feature.
pub(super) fn diagnose(traces: &[Trace], workers: &Workers) -> (Vec<FeatureTrace>, Diagnosis) {
    let features = traces.first().map_or(0, |trace| trace.features);
    let draws: usize = traces.iter().map(Trace::iterations).sum();
    let mut found = vec![FeatureTrace { share: 0.0, rhat: None, effective: None, se: 0.0 }; features];
    workers.for_each(&mut found, |feature, found| {
        let means: Vec<Vec<f64>> = traces.iter().map(|trace| trace.means(feature)).collect();
        let means: Vec<&[f64]> = means.iter().map(Vec::as_slice).collect();
        *found = look(&means, traces[0].length, draws as f64);
    });
    let mut worst = Diagnosis::new(draws);
    for trace in &found {
        worst.rhat = worst.rhat.max(trace.rhat.unwrap_or(1.0));
        worst.effective = worst.effective.min(trace.effective.unwrap_or(f64::INFINITY));
    }
    for trace in &mut found {
        trace.se = trace.se.max(share_error(trace.share, trace.effective.unwrap_or(worst.effective)));
    }
    (found, worst)
}

/// The largest standard error of a feature's share.
pub(super) fn error_of_visits(features: &[FeatureTrace]) -> f64 {
    features.iter().map(|feature| feature.se).fold(0.0, f64::max)
}

/// A feature, from its means in blocks of so many iterations.
fn look(chains: &[&[f64]], length: usize, draws: f64) -> FeatureTrace {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let share = chains.iter().map(|chain| mean(chain)).sum::<f64>() / chains.len().max(1) as f64;
    let Some(se) = standard_error(chains) else {
        return FeatureTrace { share, rhat: None, effective: None, se: 0.0 };
    };
    let effective = (share * (1.0 - share) / (se * se)).min(draws);
    FeatureTrace { share, rhat: Some(rhat_of_shares(chains, length)), effective: Some(effective), se }
}

/// Split-R̂ of zeros and ones, from their means in blocks: `within` a half-chain with mean m their variance is m(1 − m).
fn rhat_of_shares(chains: &[&[f64]], length: usize) -> f64 {
    let half = chains[0].len() / 2;
    let n = (half * length) as f64;
    let halves = chains.iter().flat_map(|chain| [&chain[..half], &chain[chain.len() - half..]]);
    let means: Vec<f64> = halves.map(|half| half.iter().sum::<f64>() / half.len() as f64).collect();
    let count = means.len() as f64;
    let within = means.iter().map(|m| m * (1.0 - m)).sum::<f64>() / count * n / (n - 1.0);
    let centre = means.iter().sum::<f64>() / count;
    let between = means.iter().map(|m| (m - centre).powi(2)).sum::<f64>() / (count - 1.0);
    (((n - 1.0) / n * within + between) / within).sqrt()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};
    use crate::space::Subsets;
    use crate::stats::{effective_sample_size, split_rhat};

    /// Sticky chains of one bit: sums over blocks say what the whole traces say.
    #[test]
    fn blocks_tell_what_whole_traces_tell() {
        let (space, length) = (Subsets::new(1).unwrap(), 40_000);
        let packing = Packing::new(space.arities());
        let (mut traces, mut whole) = (Vec::new(), Vec::new());
        for chain in 0..3 {
            let mut stream = Stream::new(1, Purpose::Other(0), 0, chain);
            let (mut trace, mut values, mut word) = (Trace::new(1), Vec::new(), [0]);
            let mut key = packing.empty();
            trace.arrive(&space, &word);
            for _ in 0..length {
                if stream.uniform() < if word[0] == 0 { 0.02 } else { 0.1 } {
                    word[0] = 1 - word[0];
                    trace.arrive(&space, &word);
                }
                packing.pack(&word, &mut key);
                trace.stay(&key);
                values.push(f64::from(word[0]));
            }
            traces.push(trace);
            whole.push(values);
        }
        let complete = traces[0].iterations();
        let whole: Vec<&[f64]> = whole.iter().map(|values| &values[..complete]).collect();
        let (found, worst) = diagnose(&traces, &Workers::SINGLE);
        let mean = whole.iter().copied().flatten().sum::<f64>() / (3 * complete) as f64;
        assert!((found[0].share - mean).abs() < 1e-12 && complete > length * 9 / 10);
        assert!((worst.rhat - split_rhat(&whole).unwrap()).abs() < 1e-9);
        let ratio = worst.effective / effective_sample_size(&whole).unwrap();
        // Both estimate one autocorrelation time, from 60,000 correlated or 1,000 nearly independent numbers.
        assert!((0.75..1.33).contains(&ratio), "{ratio}");
    }
}

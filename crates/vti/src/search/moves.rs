//! Moves of chains: the space's own neighbours, and changes at positions that turned out to be undecided.

use crate::random::{Stream, Weighted};
use crate::space::{ModelSpace, change};

/// How proposals are made. Which kind of move is tried does not depend on where the chain is, so each kind keeps the target by
/// itself.
pub(super) struct Moves {
    /// How often each symbol stood at each position, position by position.
    counts: Vec<f64>,
    counted: f64,
    /// Positions by their weights; none before anything was learned.
    positions: Option<Weighted>,
    /// Whether every symbol is a bit.
    bits: bool,
}

/// Share of moves at undecided positions, half of them exchanges.
const ADAPTED: f64 = 0.5;
/// Weight that every position has at least, as a share of the mean.
const FLOOR: f64 = 0.1;

impl Moves {
    pub(super) fn new(arities: &[u16]) -> Self {
        let counts = vec![0.0; arities.iter().map(|&arity| usize::from(arity)).sum()];
        Self { counts, counted: 0.0, positions: None, bits: arities.iter().all(|&arity| arity == 2) }
    }

    /// Counts the symbols of a state.
    pub(super) fn count(&mut self, arities: &[u16], word: &[u16]) {
        let mut start = 0;
        for (&symbol, &arity) in word.iter().zip(arities) {
            self.counts[start + usize::from(symbol)] += 1.0;
            start += usize::from(arity);
        }
        self.counted += 1.0;
    }

    /// Weighs each position by how probable two independent draws differ there, and starts to count anew.
    pub(super) fn adapt(&mut self, arities: &[u16]) {
        if self.counted == 0.0 {
            return;
        }
        let mut counts = self.counts.as_slice();
        let weights = arities.iter().map(|&arity| {
            let (own, rest) = counts.split_at(usize::from(arity));
            counts = rest;
            1.0 - own.iter().map(|count| (count / self.counted).powi(2)).sum::<f64>()
        });
        let weights: Vec<f64> = weights.collect();
        let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
        if mean > 0.0 {
            self.positions = Weighted::new(weights.iter().map(|weight| weight + FLOOR * mean));
        }
        self.counts.fill(0.0);
        self.counted = 0.0;
    }

    /// Replaces a word by a neighbour; the log of how probable the way back is, divided by how probable this move was.
    pub(super) fn propose(&self, space: &dyn ModelSpace, word: &mut [u16], stream: &mut Stream) -> f64 {
        let kind = stream.uniform();
        let Some(positions) = self.positions.as_ref().filter(|_| kind < ADAPTED) else {
            return space.propose(word, stream);
        };
        if self.bits {
            return move_bits(positions, word, kind / ADAPTED, stream);
        }
        let (arities, first) = (space.arities(), positions.draw(stream));
        if kind < 0.5 * ADAPTED {
            change(arities[first], &mut word[first], stream);
        } else {
            let second = positions.draw(stream);
            if arities[first] == arities[second] {
                word.swap(first, second);
            }
        }
        0.0
    }
}

/// Sets a bit, clears one, or one for another: those to set are chosen by weight, those to clear all alike.
fn move_bits(positions: &Weighted, word: &mut [u16], kind: f64, stream: &mut Stream) -> f64 {
    /// With less weight than this among bits that are not set, as a share, no such move is tried from there nor back to there.
    const LEAST: f64 = 0.02;
    let set: Vec<usize> = (0..word.len()).filter(|&place| word[place] != 0).collect();
    let (count, total) = (set.len() as f64, positions.total());
    let unset = total - set.iter().map(|&place| positions.weight(place)).sum::<f64>();
    let enough = |unset: f64| unset > LEAST * total;
    let any = |stream: &mut Stream| set[stream.below(set.len() as u64) as usize];
    if kind < 0.25 {
        if !enough(unset) {
            return 0.0;
        }
        let into = unset_bit(positions, word, stream);
        word[into] = 1;
        unset.ln() - positions.weight(into).ln() - (count + 1.0).ln()
    } else if kind < 0.5 {
        if set.is_empty() {
            return 0.0;
        }
        let out = any(stream);
        let unset = unset + positions.weight(out);
        if !enough(unset) {
            return 0.0;
        }
        word[out] = 0;
        positions.weight(out).ln() - unset.ln() + count.ln()
    } else {
        if set.is_empty() || !enough(unset) {
            return 0.0;
        }
        let (out, into) = (any(stream), unset_bit(positions, word, stream));
        let back = unset - positions.weight(into) + positions.weight(out);
        if !enough(back) {
            return 0.0;
        }
        word.swap(out, into);
        (positions.weight(out) / back).ln() - (positions.weight(into) / unset).ln()
    }
}

/// A bit that is not set, by weight; there is some weight among them.
fn unset_bit(positions: &Weighted, word: &[u16], stream: &mut Stream) -> usize {
    loop {
        let place = positions.draw(stream);
        if word[place] == 0 {
            return place;
        }
    }
}

/// Temperatures between posterior and prior: a chain with inverse temperature β has the target `p(m) p(y | m)^β`.
///
/// The first β is 1. During the warm-up the ratios of neighbours are adapted until an exchange is accepted three times in ten
/// ("Adaptive parallel tempering algorithm", Miasojedow, Moulines and Vihola, Journal of Computational and Graphical Statistics
/// 22, 2013).
pub(super) struct Ladder {
    /// log of log(β of one / β of the next).
    gaps: Vec<f64>,
    pub betas: Vec<f64>,
}

impl Ladder {
    const WANTED: f64 = 0.3;

    pub(super) fn new(rungs: usize) -> Self {
        let mut ladder = Self { gaps: vec![0.4f64.ln(); rungs.saturating_sub(1)], betas: Vec::new() };
        ladder.refresh();
        ladder
    }

    fn refresh(&mut self) {
        let descend = |log_beta: &mut f64, gap: &f64| {
            *log_beta -= gap.exp();
            Some(log_beta.exp())
        };
        self.betas = std::iter::once(1.0).chain(self.gaps.iter().scan(0.0, descend)).collect();
    }

    /// Takes note of how probably an exchange between a rung and the next was accepted.
    pub(super) fn adapt(&mut self, rung: usize, accepted: f64, iteration: usize) {
        let rate = (1.0 + iteration as f64).powf(-0.6);
        self.gaps[rung] = (self.gaps[rung] + rate * (accepted - Self::WANTED)).clamp(1e-3f64.ln(), 5f64.ln());
        self.refresh();
    }
}

//! Random neighbours of a model: where a chain over models may go next.

use crate::random::Stream;

/// A random position.
fn position(len: usize, stream: &mut Stream) -> usize {
    stream.below(len as u64) as usize
}

/// Changes one symbol to another, or exchanges the symbols of two positions that have equally many, each half of the time. Any
/// move is as probable as its reverse.
pub(super) fn change_or_exchange(arities: &[u16], word: &mut [u16], stream: &mut Stream) -> f64 {
    let len = word.len().min(arities.len());
    if len == 0 {
        return 0.0;
    }
    let first = position(len, stream);
    if stream.uniform() < 0.5 {
        change(arities[first], &mut word[first], stream);
    } else {
        let second = position(len, stream);
        if arities[first] == arities[second] {
            word.swap(first, second);
        }
    }
    0.0
}

/// Another symbol, all alike.
pub(crate) fn change(arity: u16, symbol: &mut u16, stream: &mut Stream) {
    if arity > 1 {
        let other = stream.below(u64::from(arity) - 1) as u16;
        *symbol = other + u16::from(other >= *symbol);
    }
}

/// Takes a thing in, or one out, or one in for another, of a subset whose size may be from `low` to `high`.
///
/// As often in as out: of few things among many, one that is in is then tried as often as all others together.
pub(super) fn add_drop_or_swap(low: usize, high: usize, word: &mut [u16], stream: &mut Stream) -> f64 {
    let things = word.len();
    if things == 0 {
        return 0.0;
    }
    // How probable it is to take one in, and to take one out, of a subset of this size.
    let chances = |size: usize| match size {
        0 => (1.0, 0.0),
        _ if size == things => (0.0, 1.0),
        _ if low == high => (0.0, 0.0),
        _ => (0.25, 0.25),
    };
    let size = word.iter().filter(|&&bit| bit != 0).count();
    let ((add, drop), kind) = (chances(size), stream.uniform());
    let (inside, outside) = (size as f64, (things - size) as f64);
    if kind < add {
        word[nth(word, false, position(things - size, stream))] = 1;
        (chances(size + 1).1 / (inside + 1.0)).ln() - (add / outside).ln()
    } else if kind < add + drop {
        word[nth(word, true, position(size, stream))] = 0;
        (chances(size - 1).0 / (outside + 1.0)).ln() - (drop / inside).ln()
    } else {
        let (out, into) = (position(size, stream), position(things - size, stream));
        word.swap(nth(word, true, out), nth(word, false, into));
        0.0
    }
}

/// Which bits of a subset may change, where not all may.
pub(super) struct Choices {
    /// Those that may be set.
    add: Vec<usize>,
    /// Those that may be cleared.
    drop: Vec<usize>,
}

impl Choices {
    fn new(word: &[u16], may_change: impl Fn(&[u16], usize) -> bool) -> Self {
        let (add, drop) = (0..word.len()).filter(|&thing| may_change(word, thing)).partition(|&thing| word[thing] == 0);
        Self { add, drop }
    }

    /// How probable it is to set a bit, and to clear one; the rest is for exchanges.
    fn chances(&self) -> (f64, f64) {
        match (self.add.is_empty(), self.drop.is_empty()) {
            (true, true) => (0.0, 0.0),
            (true, false) => (0.0, 1.0),
            (false, true) => (1.0, 0.0),
            (false, false) => (0.3, 0.3),
        }
    }

    /// Sets a bit or clears one that may change, or clears one and then sets another; all alike.
    pub(super) fn propose(word: &mut [u16], may_change: impl Fn(&[u16], usize) -> bool, stream: &mut Stream) -> f64 {
        let before = Self::new(word, &may_change);
        let (add, drop) = before.chances();
        let kind = stream.uniform();
        if kind < add {
            word[before.add[position(before.add.len(), stream)]] = 1;
            let after = Self::new(word, &may_change);
            (after.chances().1 / after.drop.len() as f64).ln() - (add / before.add.len() as f64).ln()
        } else if kind < add + drop {
            word[before.drop[position(before.drop.len(), stream)]] = 0;
            let after = Self::new(word, &may_change);
            (after.chances().0 / after.add.len() as f64).ln() - (drop / before.drop.len() as f64).ln()
        } else if before.drop.is_empty() || before.add.is_empty() {
            0.0
        } else {
            // Between both there is the same set on the way there and back.
            word[before.drop[position(before.drop.len(), stream)]] = 0;
            let between = Self::new(word, &may_change);
            word[between.add[position(between.add.len(), stream)]] = 1;
            let after = Self::new(word, &may_change);
            let exchange =
                |choices: &Self| (1.0 - choices.chances().0 - choices.chances().1) / choices.drop.len() as f64;
            exchange(&after).ln() - exchange(&before).ln()
        }
    }
}

/// The place of the n-th bit that is set, or not.
fn nth(word: &[u16], set: bool, n: usize) -> usize {
    word.iter().enumerate().filter(|(_, bit)| (**bit != 0) == set).nth(n).map_or(0, |(place, _)| place)
}

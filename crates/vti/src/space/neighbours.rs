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

/// Takes a thing in or out, or one in for another, of a subset whose size may be from `low` to `high`.
///
/// A swap is as probable as its reverse. Of no thing and of all things there is none, so one more or one fewer is then twice as
/// probable as the way back.
pub(super) fn flip_or_swap(low: usize, high: usize, word: &mut [u16], stream: &mut Stream) -> f64 {
    let things = word.len();
    if things == 0 {
        return 0.0;
    }
    let size = word.iter().filter(|&&bit| bit != 0).count();
    let swaps = |size: usize| match size {
        _ if size == 0 || size == things => 0.0,
        _ if low == high => 1.0,
        _ => 0.5,
    };
    if stream.uniform() < swaps(size) {
        let inside = position(size, stream);
        let outside = position(things - size, stream);
        let nth = |word: &[u16], inside: bool, nth: usize| {
            word.iter().enumerate().filter(|(_, bit)| (**bit != 0) == inside).nth(nth).map_or(0, |(place, _)| place)
        };
        let (out, into) = (nth(word, true, inside), nth(word, false, outside));
        word.swap(out, into);
        return 0.0;
    }
    let place = position(things, stream);
    let after = if word[place] == 0 { size + 1 } else { size - 1 };
    word[place] = u16::from(word[place] == 0);
    ((1.0 - swaps(after)) / (1.0 - swaps(size))).ln()
}

//! Where chains start: far apart.

use super::known::Known;
use super::{ModelEvidences, SearchError, SearchProgress, SearchSettings, Target, Watch};
use crate::random::{Purpose, Stream};
use crate::space::ModelSpace;

/// A start for each of so many chains: the end of a greedy climb, words that were given, random ones, and the empty word, in turn.
pub(super) fn starts(
    target: &Target<'_>,
    evidences: &mut dyn ModelEvidences,
    settings: &SearchSettings,
    known: &mut Known,
    count: usize,
    watch: Watch<'_>,
) -> Result<Vec<Vec<u16>>, SearchError> {
    for (start, word) in target.starts.iter().enumerate() {
        target.space.check(word).map_err(|error| SearchError::Start { start, error })?;
    }
    // A few symbols besides the first, of long words; models of long words are mostly near the empty one.
    let share = (8.0 / target.space.arities().len().max(1) as f64).min(0.5);
    let walk_from = |share, row: usize| {
        walk(target.space, share, &mut Stream::new(settings.seed, Purpose::Search, u64::MAX, row as u64))
    };
    let empty = walk_from(0.0, 0);
    let top = climb(target, evidences, settings, known, empty.clone(), watch)?;
    let mut given = target.starts.iter();
    Ok((0..count)
        .map(|chain| match chain % 4 {
            0 if chain == 0 => top.clone(),
            3 => empty.clone(),
            _ => given.next().map_or_else(|| walk_from(share, chain), |word| word.to_vec()),
        })
        .collect())
}

/// An allowed word: the first symbol that is allowed at each position, or any, in a `share` of positions.
fn walk(space: &dyn ModelSpace, share: f64, stream: &mut Stream) -> Vec<u16> {
    let mut word = Vec::with_capacity(space.arities().len());
    for &arity in space.arities() {
        let mut allowed = vec![true; usize::from(arity)];
        if space.is_constrained() {
            space.allow(&word, &mut allowed);
        }
        let symbols: Vec<u16> = (0..arity).filter(|&symbol| allowed[usize::from(symbol)]).collect();
        let place = if stream.uniform() < share { stream.below(symbols.len() as u64) as usize } else { 0 };
        word.push(symbols.get(place).copied().unwrap_or(0));
    }
    word
}

/// Steepest ascent over changes of one symbol, as far as it goes or until somebody has enough of it.
fn climb(
    target: &Target<'_>,
    evidences: &mut dyn ModelEvidences,
    settings: &SearchSettings,
    known: &mut Known,
    start: Vec<u16>,
    watch: Watch<'_>,
) -> Result<Vec<u16>, SearchError> {
    let mut best = start;
    known.learn(target, evidences, &[&best], 0)?;
    for _ in 0..settings.climb {
        let around = neighbours(target.space, &best);
        // A quarter of all evidences at most: the rest is for chains.
        let is_enough = around.is_empty() || known.asked + around.len() > settings.max_models / 4;
        if is_enough || !watch(&SearchProgress { iteration: 0, asked: known.asked, diagnosis: None }) {
            break;
        }
        known.learn(target, evidences, &around.iter().map(Vec::as_slice).collect::<Vec<_>>(), 0)?;
        let mut key = known.packing.empty();
        let mut weight = |word: &[u16]| {
            known.packing.pack(word, &mut key);
            known.entries.get(&key).map_or(f64::NEG_INFINITY, super::known::Entry::log_weight)
        };
        let here = weight(&best);
        let weighed = around.into_iter().map(|word| (weight(&word), word));
        // The first of equals, so that nothing depends on chance.
        let top = weighed.fold(None::<(f64, Vec<u16>)>, |top, next| match top {
            Some(top) if top.0 >= next.0 => Some(top),
            _ => Some(next),
        });
        match top {
            Some((weight, word)) if weight > here => best = word,
            _ => break,
        }
        known.forget();
    }
    Ok(best)
}

/// All allowed words that differ in one symbol.
fn neighbours(space: &dyn ModelSpace, word: &[u16]) -> Vec<Vec<u16>> {
    let mut around = Vec::new();
    for (position, &arity) in space.arities().iter().enumerate() {
        for symbol in (0..arity).filter(|&symbol| symbol != word[position]) {
            let mut next = word.to_vec();
            next[position] = symbol;
            if !space.is_constrained() || space.is_allowed(&next) {
                around.push(next);
            }
        }
    }
    around
}

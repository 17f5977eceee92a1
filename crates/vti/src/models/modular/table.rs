//! What is believed about one block: its keys and their scores.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::ModularSettings;
use crate::models::surrogate::belief::Belief;
use crate::models::surrogate::learner::Learner;
use crate::problem::{BlockModels, KeyScores};
use crate::state::{State, StateError};

/// Bits of an integer that a number holds exactly.
const NUMBER_BITS: u32 = f64::MANTISSA_DIGITS;

/// What is learned about the keys of a block.
pub(super) struct KeyTable {
    pub(super) learner: Learner,
    places: HashMap<u64, u32>,
}

/// Scores and table of a block from estimates of its log evidences.
pub(super) fn from_estimates(
    block: usize,
    models: &dyn BlockModels,
    settings: &ModularSettings,
    mut estimates: Vec<(u64, f64)>,
) -> (KeyScores, KeyTable) {
    estimates.sort_unstable_by_key(|&(key, _)| key);
    fill_gaps(&mut estimates);
    let keys: Vec<u64> = estimates.iter().map(|&(key, _)| key).collect();
    let mean: Vec<f64> = estimates.iter().map(|&(_, estimate)| estimate).collect();
    let log_prior: Vec<f64> = keys.iter().map(|&key| models.log_prior(block, key)).collect();
    let belief = Belief::diagonal(keys.len(), settings.prior_sd * settings.prior_sd);
    let table = KeyTable {
        places: keys.iter().enumerate().map(|(place, &key)| (key, place as u32)).collect(),
        learner: Learner::new(mean.clone(), belief, settings.noise_decay),
    };
    let scores = log_prior.iter().zip(&mean).map(|(log_prior, estimate)| log_prior + settings.start * estimate);
    let scores = KeyScores { scores: scores.collect(), ranked: (0..keys.len() as u32).collect(), log_prior, keys };
    (scores, table)
}

/// Scores and table of a block whose scores are known.
pub(super) fn known(
    block: usize,
    models: &dyn BlockModels,
    settings: &ModularSettings,
    found: &KeyScores,
) -> (KeyScores, KeyTable) {
    let relative = found.scores.iter().zip(&found.log_prior).map(|(score, log_prior)| score - log_prior);
    let (scores, mut table) =
        from_estimates(block, models, settings, found.keys.iter().copied().zip(relative).collect());
    table.learner.end_doubt();
    (scores, table)
}

impl KeyTable {
    /// The place of a key.
    pub(super) fn index(&self, key: u64) -> Option<usize> {
        self.places.get(&key).map(|&place| place as usize)
    }

    /// `log p + μ + βσ`.
    pub(super) fn goal(&self, scores: &KeyScores, index: usize, beta: f64) -> f64 {
        scores.log_prior[index] + self.learner.upper_confidence(index, beta)
    }

    /// Moves all scores a share of the way to their goals.
    pub(super) fn approach(&self, scores: &mut KeyScores, beta: f64, share: f64) {
        for index in 0..scores.scores.len() {
            let goal = self.goal(scores, index, beta);
            // What the prior forbids stays forbidden.
            if goal > f64::NEG_INFINITY {
                scores.scores[index] += share * (goal - scores.scores[index]);
            }
        }
    }

    pub(super) fn state(&self, scores: &KeyScores) -> State {
        let mut state = State::default();
        put_keys(&mut state, &scores.keys);
        state.put("logits", &scores.scores);
        self.learner.put(&mut state);
        state
    }
}

/// Scores and table as they were kept.
pub(super) fn restore(
    block: usize,
    models: &dyn BlockModels,
    settings: &ModularSettings,
    state: &mut State,
) -> Result<(KeyScores, KeyTable), StateError> {
    let wrong = |name: &str, expected| StateError::Values { name: name.into(), expected };
    let keys = take_keys(state)?;
    if keys.is_empty() || !keys.iter().all(|&key| models.has_key(block, key)) {
        return Err(wrong("sets", "keys of the block"));
    }
    let estimates = keys.into_iter().map(|key| (key, 0.0)).collect();
    let (mut scores, mut table) = from_estimates(block, models, settings, estimates);
    if !scores.keys.is_sorted_by(|a, b| a < b) {
        return Err(wrong("sets", "each key once"));
    }
    scores.scores = state.take("logits", scores.keys.len())?;
    if !scores.scores.iter().all(|score| *score < f64::INFINITY) {
        return Err(wrong("logits", "logarithms of weights"));
    }
    table.learner.restore(state)?;
    Ok((scores, table))
}

/// Keeps keys as numbers, those of more than 53 bits in two parts.
fn put_keys(state: &mut State, keys: &[u64]) {
    let bits = |of: fn(u64) -> u64| keys.iter().map(|&key| of(key) as f64).collect::<Vec<_>>();
    state.put("sets", &bits(|key| key & ((1 << NUMBER_BITS) - 1)));
    if keys.iter().any(|key| key >> NUMBER_BITS != 0) {
        state.put("sets_high", &bits(|key| key >> NUMBER_BITS));
    }
}

fn take_keys(state: &mut State) -> Result<Vec<u64>, StateError> {
    let low = state.take_any::<f64>("sets")?;
    let high = match state.take::<f64>("sets_high", low.len()) {
        Err(StateError::Missing { .. }) => vec![0.0; low.len()],
        high => high?,
    };
    Ok(low.iter().zip(&high).map(|(&low, &high)| (high as u64) << NUMBER_BITS | low as u64).collect())
}

/// Where there is no estimate, the worst of the others has to do: a key must not be lost for want of one.
fn fill_gaps(estimates: &mut [(u64, f64)]) {
    let finite = estimates.iter().map(|&(_, estimate)| estimate).filter(|estimate| estimate.is_finite());
    let worst = finite.reduce(f64::min).unwrap_or(0.0);
    estimates.iter_mut().filter(|(_, estimate)| !estimate.is_finite()).for_each(|(_, estimate)| *estimate = worst);
}

/// How many keys of a size a search enlarges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beam {
    width: usize,
    /// Up to this size all are enlarged.
    all_up_to: usize,
}

impl Beam {
    /// The best so many of each size, and all of size 1.
    pub(super) fn of(width: usize) -> Self {
        Self { width, all_up_to: 1 }
    }

    /// The best so many of each size.
    pub(super) fn narrow(width: usize) -> Self {
        Self { width, all_up_to: 0 }
    }
}

/// Keys found by enlarging the best ones of each size, until no larger key is better than the best so far. All that are larger
/// than the smallest by one are among them, and by two unless the beam is narrow. Whoever estimates may end it.
pub(super) fn search<B>(
    models: &dyn BlockModels,
    block: usize,
    beam: Beam,
    mut estimate: impl FnMut(Vec<u64>) -> ControlFlow<B, Vec<(u64, f64)>>,
) -> ControlFlow<B, Vec<(u64, f64)>> {
    let mut found = estimate(vec![models.smallest_key(block)])?;
    let mut last = found.clone();
    let mut best = found.first().map_or(f64::NEG_INFINITY, |(_, first)| *first);
    for size in 1.. {
        let mut larger: Vec<u64> = last.iter().flat_map(|&(key, _)| models.larger_keys(block, key)).collect();
        larger.sort_unstable();
        larger.dedup();
        let mut estimates = estimate(larger)?;
        found.extend_from_slice(&estimates);
        estimates.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let Some(&(_, top)) = estimates.first() else { break };
        if size > 2 && top < best {
            break;
        }
        best = best.max(top);
        if size > beam.all_up_to {
            estimates.truncate(beam.width);
        }
        last = estimates;
    }
    ControlFlow::Continue(found)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_any_number_of_bits_are_kept() {
        for keys in [vec![0, 5, (1 << 53) - 1], vec![3, (1 << 53) + 1, 1 << 63, u64::MAX]] {
            let mut state = State::default();
            put_keys(&mut state, &keys);
            assert_eq!(take_keys(&mut state).unwrap(), keys);
        }
    }
}

//! Keys that training never tried.
//!
//! Where a block has too many keys, only those that a search found have scores, and all others have probability 0 under q. Every key is
//! reached from the smallest by enlarging ([`BlockModels::larger_keys`]), so whatever is missing begins next to a key that is known.
//! From keys that matter the search is taken further, whatever q is, until what it adds hardly matters any more.

use std::time::Instant;

use super::evidences::Summed;
use super::importance::Watch;
use crate::models::{BlockProbabilities, BlockScores};
use crate::problem::{BlockModels, Blocks, KeyScores};
use crate::workers::{Workers, portion_after};

/// How far a search goes.
struct Limits {
    /// Keys of at least this probability are enlarged.
    least: f64,
    /// The most keys of a block that are enlarged in a round, the most probable ones first.
    enlarged: usize,
    /// The most rounds.
    rounds: usize,
    /// New keys whose share of a block is smaller do not matter.
    negligible: f64,
}

/// With evidences that are known, and with estimates, which take their time.
const KNOWN: Limits = Limits { least: 1e-4, enlarged: 256, rounds: 6, negligible: 0.005 };
const ESTIMATED: Limits = Limits { least: 5e-3, enlarged: 16, rounds: 4, negligible: 0.02 };

/// Scores with keys that training never tried.
pub(super) struct Widened {
    /// Scores of all keys, on the scale of q's.
    pub(super) scores: BlockScores,
    /// What all of them have under q: new ones nothing.
    pub(super) q: BlockProbabilities,
    /// Whether the last keys that were found hardly matter.
    pub(super) is_settled: bool,
}

/// Takes the search for keys further; none where nothing is left to be found. Where somebody ends it, it is not settled.
pub(super) fn widen(
    sums: &Summed<'_>,
    blocks: &dyn Blocks,
    scores: &BlockScores,
    q: &BlockProbabilities,
    watch: Watch<'_>,
) -> Option<Widened> {
    let is_open = |(block, known): (usize, &KeyScores)| {
        known.keys.iter().any(|&key| !beyond(sums.models, block, known, key).is_empty())
    };
    if !scores.blocks.iter().enumerate().any(is_open) {
        return None;
    }
    let limits = if blocks.has_exact_evidences() { KNOWN } else { ESTIMATED };
    let mut wide = Widened { scores: scores.clone(), q: q.clone(), is_settled: false };
    // What matters is judged by the problem's own estimates, which are not learned.
    let mut estimated = scores.clone();
    for (block, known) in estimated.blocks.iter_mut().enumerate() {
        let Some(found) = estimates(sums, blocks, block, &known.keys, watch) else { return Some(wide) };
        known.scores = found;
        let worst = known.scores.iter().copied().filter(|score| score.is_finite()).fold(0.0, f64::min);
        known.scores.iter_mut().filter(|score| !score.is_finite()).for_each(|score| *score = worst);
    }
    let mut last: Vec<Vec<u64>> = Vec::new();
    for _ in 0..=limits.rounds {
        let probabilities = sums.probabilities(&estimated).blocks;
        let added = last.iter().enumerate().map(|(block, new)| {
            let known = &estimated.blocks[block];
            new.iter().filter_map(|&key| known.place(key)).map(|place| probabilities[block][place]).sum::<f64>()
        });
        let added = added.fold(f64::NAN, f64::max);
        let next: Vec<Vec<(u64, usize)>> = (0..estimated.blocks.len())
            .map(|block| frontier(sums.models, block, &estimated.blocks[block], &probabilities[block], &limits))
            .collect();
        wide.is_settled = added < limits.negligible || next.iter().all(Vec::is_empty);
        if wide.is_settled {
            break;
        }
        last = next.iter().map(|new| new.iter().map(|(key, _)| *key).collect()).collect();
        for (block, new) in next.into_iter().enumerate() {
            let Some(of_new) = estimates(sums, blocks, block, &last[block], watch) else { return Some(wide) };
            wide.insert(sums.models, block, &mut estimated.blocks[block], &new, &of_new);
        }
    }
    Some(wide)
}

/// Keys that are larger than a known one by one, and are not known themselves.
fn beyond(models: &dyn BlockModels, block: usize, known: &KeyScores, key: u64) -> Vec<u64> {
    let mut larger = models.larger_keys(block, key);
    larger.retain(|&key| known.place(key).is_none());
    larger
}

/// Unknown keys next to known ones that matter, each with the place of the most probable of these; ascending.
fn frontier(
    models: &dyn BlockModels,
    block: usize,
    known: &KeyScores,
    probabilities: &[f64],
    limits: &Limits,
) -> Vec<(u64, usize)> {
    let mut matter: Vec<usize> =
        (0..probabilities.len()).filter(|&place| probabilities[place] >= limits.least).collect();
    matter.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]).then(a.cmp(&b)));
    matter.truncate(limits.enlarged);
    let larger =
        |place: usize| beyond(models, block, known, known.keys[place]).into_iter().map(move |key| (key, place));
    let mut found: Vec<(u64, usize)> = matter.into_iter().flat_map(larger).collect();
    // Equal keys stay in the order of what they were reached from.
    found.sort_by_key(|(key, _)| *key);
    found.dedup_by_key(|(key, _)| *key);
    found
}

/// `log p + log evidence` of keys as the problem estimates it, a few at a time; none where somebody ended it.
fn estimates(sums: &Summed<'_>, blocks: &dyn Blocks, block: usize, keys: &[u64], watch: Watch<'_>) -> Option<Vec<f64>> {
    let workers: &Workers = sums.workers;
    let (mut found, mut portion) = (Vec::with_capacity(keys.len()), workers.threads());
    while found.len() < keys.len() {
        if !watch(0, UNKNOWN) {
            return None;
        }
        let clock = Instant::now();
        let some = &keys[found.len()..][..portion.min(keys.len() - found.len())];
        let mut values = vec![0.0; some.len()];
        workers.for_each(&mut values, |place, value| {
            *value = sums.models.log_prior(block, some[place]) + blocks.log_evidence_estimate(block, some[place]);
        });
        found.append(&mut values);
        portion = portion_after(portion, clock.elapsed(), workers.threads());
    }
    // What was found after somebody had ended it is of no use.
    watch(0, UNKNOWN).then_some(found)
}

/// Parts of which nobody knows yet how many there will be.
const UNKNOWN: usize = 1;

impl Widened {
    /// Puts new keys of a block in their places. Each has the score of the key it was reached from, and as much more as estimates say.
    fn insert(
        &mut self,
        models: &dyn BlockModels,
        block: usize,
        estimated: &mut KeyScores,
        new: &[(u64, usize)],
        of_new: &[f64],
    ) {
        let (scores, q) = (&mut self.scores.blocks[block], &mut self.q.blocks[block]);
        let added: Vec<(u64, f64, f64)> = new
            .iter()
            .zip(of_new)
            .filter(|(_, estimate)| estimate.is_finite())
            .map(|(&(key, from), &estimate)| (key, estimate, scores.scores[from] + estimate - estimated.scores[from]))
            .collect();
        for (key, estimate, score) in added {
            let Err(place) = scores.keys.binary_search(&key) else { continue };
            q.insert(place, 0.0);
            for (to, value) in [(&mut *scores, score), (&mut *estimated, estimate)] {
                to.keys.insert(place, key);
                to.scores.insert(place, value);
                to.log_prior.insert(place, models.log_prior(block, key));
            }
        }
    }

    /// The largest share of a block that keys have which training never tried, given the probabilities of all.
    pub(super) fn share(&self, tried: &BlockScores, probabilities: &BlockProbabilities) -> f64 {
        let blocks = self.scores.blocks.iter().zip(&tried.blocks).zip(&probabilities.blocks);
        let shares = blocks.map(|((all, tried), probabilities)| {
            let new = all.keys.iter().zip(probabilities).filter(|(key, _)| tried.place(**key).is_none());
            new.map(|(_, probability)| probability).sum::<f64>()
        });
        shares.fold(0.0, f64::max)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::check::evidences::exact;
    use crate::problem::dag::simulate::{SimulationSettings, simulate};
    use crate::problem::dag::{Dag, DagSettings, LinearEvidence, Noise, Sem, enumerate};
    use crate::space::ModelSpace;

    /// A search that ended too early is taken to its end: edges are those of a sum over all graphs.
    #[test]
    fn sets_that_were_never_tried_are_found() {
        let made = simulate(&SimulationSettings {
            nodes: 5,
            rows: 25,
            sem: Sem::Linear {},
            edge_probability: 0.8,
            seed: 4,
            ..SimulationSettings::default()
        });
        let table = made.unwrap().table;
        let evidence = LinearEvidence::new(&table, 1.0, 1.0).unwrap();
        let settings =
            DagSettings { sem: Sem::Linear {}, noise: Noise::Known { sigma: 1.0 }, ..DagSettings::default() };
        let dag = Dag::new(table, settings).unwrap();
        let truth = enumerate(dag.prior(), |node, parents| evidence.log_evidence(node, parents)).unwrap().edges;
        let workers = Workers::new(2).unwrap();
        let sums = Summed { models: &dag, features: dag.space().feature_count(), workers: &workers };
        let of_sizes = |most: u32| {
            let blocks = (0..5).map(|node| {
                let keys: Vec<u64> =
                    (0..32u64).filter(|key| key >> node & 1 == 0 && key.count_ones() <= most).collect();
                // As if nothing had been learned but a tenth of what estimates say.
                let scores = keys.iter().map(|&key| 0.1 * evidence.log_evidence(node, key)).collect();
                KeyScores { log_prior: vec![0.0; keys.len()], keys, scores, ranked: Vec::new() }
            });
            BlockScores { blocks: blocks.collect() }
        };
        let tried = of_sizes(1);
        let q = sums.probabilities(&tried);
        let wide = widen(&sums, &dag, &tried, &q, &mut |_, _| true).unwrap();
        assert!(wide.is_settled);
        let found = exact(&sums, &dag, &wide.scores, &wide.q, &[]).evidences;
        let edges = dag.edge_matrix(&found.probabilities.features);
        for (found, truth) in edges.iter().zip(&truth) {
            assert!((found - truth).abs() < 2.0 * KNOWN.negligible, "{found}, truth {truth}");
        }
        // Without it they are far off, and what was missing has most of some node.
        let short = dag.edge_matrix(&exact(&sums, &dag, &tried, &q, &[]).evidences.probabilities.features);
        assert!(short.iter().zip(&truth).any(|(found, truth)| (found - truth).abs() > 0.2), "{short:?} {truth:?}");
        assert!(wide.share(&tried, &found.probabilities) > 0.5);
        // Whenever somebody ends it, it has not settled.
        for calls in [0, 1, 5, 12] {
            let mut left = calls;
            let mut watch = |_, _| {
                let goes_on = left > 0;
                left -= usize::from(goes_on);
                goes_on
            };
            assert!(!widen(&sums, &dag, &tried, &q, &mut watch).unwrap().is_settled, "{calls} calls");
        }
        // Where all are known there is nothing beyond.
        let all = of_sizes(4);
        assert!(widen(&sums, &dag, &all, &sums.probabilities(&all), &mut |_, _| true).is_none());
    }
}

//! The check of densities that are products over blocks, block by block.
//!
//! Where q is a product over blocks given the model, so are its weights, and each block under its key can be corrected on its
//! own: the mean of its weights is its evidence. These have far fewer dimensions than whole models, and every draw says
//! something about all of its blocks. But they look only where q is, so wherever evidences are known exactly, or the problem can be
//! seen from its prior and annealed ([`evidence`](crate::evidence)), these are taken instead. Without that a block whose weights
//! are too uneven gets an error as large as its distance from its bound, so that what follows says how much hangs on it. Exact sums
//! over models then turn the evidences of blocks and keys into the probabilities of models and of their features: of graphs
//! and edges, where the blocks are nodes.

use std::collections::HashMap;

use serde::Serialize;

use super::CheckError;
use super::annealing::{Annealing, Runs};
use super::beyond::widen;
use super::correction::{Correction, ModelCorrection, khat as serialize_khat};
use super::evidences::{Annealed, Evidences, Summed, anneal, effort, exact};
use super::importance::{CheckSettings, Found, Watch};
use super::opinion::Depth;
use super::verdict::{Basis, Beyond, BlockMethod, Verdict};
use crate::device::Device;
use crate::evidence::{Evidence, EvidenceMethod};
use crate::models::{BlockProbabilities, BlockScores, Draw};
use crate::posterior::{Draws, Posterior};
use crate::problem::{BlockModels, Blocks, KeyScores};
use crate::random::Purpose;
use crate::space::Model;
use crate::stats::{self, Estimate, Stratum};
use crate::train::TrainSettings;

/// Keys with fewer draws are not corrected on their own.
pub(super) const MIN_BLOCK_DRAWS: usize = 25;

/// k̂ counts for keys of at least this probability.
const MIN_PROBABILITY: f64 = 0.05;

/// What the weights of blocks say.
#[derive(Clone, Debug, Serialize)]
pub struct BlockCheck {
    /// Blocks under keys that were drawn often enough or annealed, most probable first.
    pub blocks: Vec<BlockCorrection>,
    /// How many more of them may matter than [`AnnealSettings`](crate::evidence::AnnealSettings) allowed to anneal.
    pub left_out: usize,
    /// Probabilities of the space's features under q: of edges, where models are graphs.
    pub features_q: Vec<f64>,
    /// Corrected ones.
    pub features: Vec<Estimate>,
    /// Corrected scores, of keys that q never tried too.
    #[serde(skip)]
    pub(super) scores: BlockScores,
    /// Whether they were found without q.
    pub(super) is_seconded: bool,
    /// Runs of annealed particles that it rests on.
    #[serde(skip)]
    pub(super) runs: Runs,
    /// Words drawn from the corrected distribution, as many as there are draws from q, one after another.
    #[serde(skip)]
    pub words: Vec<u16>,
}

impl BlockCheck {
    /// Whether evidences were found by annealing.
    pub fn annealed(&self) -> bool {
        self.blocks.iter().any(BlockCorrection::is_annealed)
    }

    fn method(&self, is_exact: bool) -> BlockMethod {
        match is_exact {
            true => BlockMethod::Exact,
            false if self.annealed() => BlockMethod::Annealed,
            false => BlockMethod::Weights,
        }
    }

    /// The largest difference between the probability of a feature under q and the corrected one.
    pub(super) fn distance(&self) -> f64 {
        let off = self.features_q.iter().zip(&self.features).map(|(q, corrected)| (q - corrected.value).abs());
        off.fold(0.0, f64::max)
    }
}

/// One block under a key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockCorrection {
    /// Which block: of graphs, the node.
    pub block: usize,
    /// Its key: of graphs, the set of its parents.
    pub key: u64,
    /// The probability of the key under q.
    pub q: f64,
    /// Corrected.
    pub corrected: f64,
    /// `∫ η_b(θ_b | k) dθ_b`. Where k̂ is not below its threshold and weights are all there is, the error is at least the
    /// distance from the bound.
    pub evidence: Evidence,
    /// k̂ of its weights, −∞ if they are all but equal ("-inf" in JSON).
    #[serde(serialize_with = "serialize_khat")]
    pub khat: Option<f64>,
    /// What k̂ must stay below.
    pub threshold: f64,
    /// How often it was drawn.
    pub draws: usize,
}

impl BlockCorrection {
    /// Whether its evidence was found by annealing.
    pub(super) fn is_annealed(&self) -> bool {
        self.evidence.method == EvidenceMethod::Annealed
    }
}

/// Weights up to so far above their mean, as a logarithm, count as equal to it.
const EQUAL_LOG_SPREAD: f64 = 0.1;

/// Weights are all but equal if less than this share of their sum lies beyond that.
const MAX_TAIL_SHARE: f64 = 0.01;

/// k̂, or −∞ where weights are all but equal: where the tail holds next to nothing of the sum there is nothing to correct,
/// whatever its shape. And its shape would mislead, because beside a bulk of equal weights any tail looks long.
pub(super) fn khat_of(log_weights: &[f64], khat: Option<f64>) -> Option<f64> {
    let count = log_weights.len() as f64;
    let log_mean = stats::log_sum_exp(log_weights) - count.ln();
    let beyond: f64 = log_weights.iter().map(|log| ((log - log_mean).exp() - EQUAL_LOG_SPREAD.exp()).max(0.0)).sum();
    if beyond < MAX_TAIL_SHARE * count { Some(f64::NEG_INFINITY) } else { khat }
}

/// Corrects block by block, where q(m) is a product of scores and blocks have weights of their own.
pub(super) fn correct<D: Device>(
    posterior: &Posterior<D>,
    draws: &Draws,
    models: &[ModelCorrection],
    settings: &CheckSettings,
    earlier: Option<&Runs>,
    watch: Watch<'_>,
) -> Result<Option<Found>, CheckError> {
    let problem = posterior.problem();
    let known = posterior.block_scores().zip(problem.blocks()).filter(|_| !draws.blocks.keys.is_empty());
    let Some((scores, blocks)) = known else { return Ok(None) };
    let Some(combined) = blocks.models() else { return Ok(None) };
    let sums = Summed { models: combined, features: problem.space().feature_count(), workers: posterior.workers() };
    let q = sums.probabilities(scores);
    let weighed = weigh(draws, scores, &q)?;
    // What q draws says nothing about what it has lost: evidences are exact, or found from the prior, also of keys that training has
    // never tried.
    let is_exact = blocks.has_exact_evidences();
    let is_annealed = settings.anneal.runs > 0 && settings.opinion.depth != Depth::None;
    let wide = if is_exact || is_annealed { widen(&sums, blocks, scores, &q, watch) } else { None };
    let (all, q_of_all) = wide.as_ref().map_or((scores, &q), |wide| (&wide.scores, &wide.q));
    let second = if is_exact {
        Some(exact(&sums, blocks, all, q_of_all, &weighed))
    } else if is_annealed {
        let effort = effort(&settings.anneal, all);
        let earlier = earlier.cloned().unwrap_or_default();
        let trained = (&effort, trained_work(posterior, blocks, draws));
        let annealing = Annealing::new(blocks, posterior.seed(), trained, earlier, watch);
        anneal(&sums, annealing, all, q_of_all, &weighed)?
    } else {
        None
    };
    let is_seconded = second.is_some();
    let Annealed { blocks: mut corrections, evidences, left_out, runs } = second.unwrap_or_else(|| {
        let evidences = Evidences::new(&sums, scores, &weighed);
        Annealed { blocks: weighed, evidences, left_out: 0, runs: Runs::new() }
    });
    let corrected = &evidences.probabilities;
    corrections.iter_mut().for_each(|block| block.corrected = evidences.probability(block));
    let spread = evidences.spread(&sums, posterior.seed());
    // log p(m) is a constant and the parts of the blocks.
    let keys = &draws.blocks.keys[..scores.blocks.len()];
    let shared = if combined.words_share() { combined.log_words(keys) } else { 0.0 };
    let parts = block_parts(scores, keys, |block, place| block.log_prior[place]);
    let constant = problem.log_prior(draws.word(0)) + shared - parts;
    let log_evidence = Estimate { value: corrected.log_total + constant, se: spread.log_total };
    let draw = Draw { seed: posterior.seed(), purpose: Purpose::Check, step: u64::MAX - 1 };
    let words = evidences.scores.draw(combined, posterior.workers(), draw, (draws.len(), draws.width));
    let models = with_drawn(posterior, models, &words);
    let ways = Ways {
        blocks,
        models: combined,
        q: (scores, &q),
        corrected: (&evidences.scores, corrected),
        log_total_error: spread.log_total,
    };
    let correction = Correction::known(ways.correct(&models, &corrections));
    let worst = worst(&corrections);
    let (khat, threshold) = worst.map_or((None, stats::threshold(draws.len())), |worst| (worst.khat, worst.threshold));
    let moved = spread.features.iter().copied().fold(0.0, f64::max);
    let features =
        corrected.features.iter().zip(&spread.features).map(|(&value, &se)| Estimate { value, se }).collect();
    let check = BlockCheck {
        blocks: corrections,
        left_out,
        features_q: q.features.clone(),
        features,
        scores: evidences.scores.clone(),
        is_seconded,
        runs,
        words,
    };
    let beyond = wide
        .as_ref()
        .filter(|_| is_seconded)
        .map(|wide| Beyond { held: wide.share(scores, corrected), is_settled: wide.is_settled });
    let basis = Basis { moved, method: check.method(is_exact), left_out, apart: check.distance(), beyond };
    let verdict = Verdict::of_blocks(khat, threshold, &basis, &correction);
    Ok(Some(Found { check: Some(check), khat, threshold, log_evidence, correction, verdict }))
}

/// About how many multiplications densities took while q was trained, by what they take at draws from what it has become: in as many
/// steps as it had, or as many as there are by default where these are more, because what is checked deserves that.
fn trained_work<D: Device>(posterior: &Posterior<D>, blocks: &dyn Blocks, draws: &Draws) -> f64 {
    let keys = draws.blocks.keys.iter().zip((0..blocks.count()).cycle());
    let total: f64 = keys.map(|(&key, block)| blocks.work(block, key)).sum();
    let usual = TrainSettings::blockwise();
    let rows = posterior.trained_rows().max(usual.steps * usual.batch as u64);
    rows as f64 * total / draws.len().max(1) as f64
}

/// Models that draws from q met, and those that only draws from the corrected distribution did.
fn with_drawn<D: Device>(posterior: &Posterior<D>, models: &[ModelCorrection], words: &[u16]) -> Vec<ModelCorrection> {
    let space = posterior.family().space();
    let mut all = models.to_vec();
    let mut places: HashMap<Model, usize> = models.iter().map(|model| model.model.clone()).zip(0..).collect();
    for word in words.chunks_exact(space.arities().len()) {
        let mut word = word.to_vec();
        space.canonical(&mut word);
        let model = Model::from(word);
        let next = all.len();
        let place = *places.entry(model).or_insert_with_key(|model| {
            all.push(ModelCorrection {
                label: space.label(model),
                model: model.clone(),
                q: 0.0,
                corrected: Estimate { value: 0.0, se: 0.0 },
                evidence: None,
                khat: None,
                draws: 0,
            });
            next
        });
        all[place].draws += 1;
    }
    all
}

/// The block that matters, among those that were drawn, whose k̂ is furthest beyond its threshold.
fn worst(blocks: &[BlockCorrection]) -> Option<&BlockCorrection> {
    let beyond = |block: &BlockCorrection| block.khat.map_or(f64::INFINITY, |khat| khat - block.threshold);
    let matter = blocks.iter().filter(|block| block.draws > 0 && block.q.max(block.corrected) >= MIN_PROBABILITY);
    matter.max_by(|a, b| beyond(a).total_cmp(&beyond(b)))
}

/// The sum over blocks of something about their keys; −∞ if one is unknown.
fn block_parts(scores: &BlockScores, keys: &[u64], part: impl Fn(&KeyScores, usize) -> f64) -> f64 {
    let blocks = scores.blocks.iter().zip(keys);
    blocks.map(|(block, &key)| block.place(key).map_or(f64::NEG_INFINITY, |at| part(block, at))).sum()
}

/// Sorts blocks by the probabilities of their keys under q.
pub(super) fn most_probable_first(blocks: &mut [BlockCorrection]) {
    blocks.sort_by(|a, b| b.q.total_cmp(&a.q).then((a.block, a.key).cmp(&(b.block, b.key))));
}

/// Evidence and k̂ of every block under a key that was drawn often enough.
fn weigh(draws: &Draws, scores: &BlockScores, q: &BlockProbabilities) -> Result<Vec<BlockCorrection>, CheckError> {
    let count = scores.blocks.len();
    let mut groups: HashMap<(usize, u64), Vec<f64>> = HashMap::new();
    for (place, (&key, &log_weight)) in draws.blocks.keys.iter().zip(&draws.blocks.log_weights).enumerate() {
        let log_weight = if log_weight.is_nan() { f64::NEG_INFINITY } else { log_weight };
        groups.entry((place % count, key)).or_default().push(log_weight);
    }
    let mut found = Vec::new();
    for ((block, key), raw) in groups {
        let Some(at) = scores.blocks[block].place(key).filter(|_| raw.len() >= MIN_BLOCK_DRAWS) else { continue };
        let defined = raw.iter().filter(|log_weight| log_weight.is_finite());
        let bound = defined.clone().sum::<f64>() / defined.count().max(1) as f64;
        let mut log_weights = raw.clone();
        let smoothed = stats::smooth(&mut log_weights)?;
        let khat = khat_of(&raw, smoothed.khat);
        // A tail that only looks long must not be made as long as it looks.
        let log_weights = if khat == Some(f64::NEG_INFINITY) { raw } else { log_weights };
        let stratum = Stratum { log_weights: &log_weights, log_beyond: smoothed.log_beyond };
        let Ok(total) = stats::log_total(&[stratum]) else { continue };
        let count = log_weights.len();
        let value = total.value - (count as f64).ln();
        // Where weights are too uneven, their own error says little: the evidence lies somewhere beyond the bound.
        let reliable = khat.is_some_and(|khat| khat < stats::threshold(count));
        let se = if reliable { total.se } else { total.se.max(value - bound) };
        found.push(BlockCorrection {
            block,
            key,
            q: q.blocks[block][at],
            corrected: 0.0,
            evidence: Evidence { log_evidence: value, se, method: EvidenceMethod::Importance, calls: count },
            khat,
            threshold: stats::threshold(count),
            draws: count,
        });
    }
    most_probable_first(&mut found);
    Ok(found)
}

/// Both ways from keys to probabilities of models: by the scores of q, and by the corrected ones.
struct Ways<'a> {
    blocks: &'a dyn Blocks,
    models: &'a dyn BlockModels,
    q: (&'a BlockScores, &'a BlockProbabilities),
    corrected: (&'a BlockScores, &'a BlockProbabilities),
    /// The error of the logarithm of the corrected sum over all models.
    log_total_error: f64,
}

/// The error of a share e/(e + r), where log e is off by `own` and the logarithm of the sum by `total`: with ρ the error of log r,
/// `total² = (share·own)² + ((1 − share)·ρ)²`, and the share is off by `share·(1 − share)·√(own² + ρ²)`.
fn relative_share_error(share: f64, own: f64, total: f64) -> f64 {
    let of_others = (total * total - (share * own).powi(2)).max(0.0).sqrt();
    share * f64::hypot((1.0 - share).max(0.0) * own, of_others)
}

impl Ways<'_> {
    /// Exact probabilities of the models under q and under the corrected scores.
    fn correct(&self, models: &[ModelCorrection], blocks: &[BlockCorrection]) -> Vec<ModelCorrection> {
        let known: HashMap<(usize, u64), &BlockCorrection> =
            blocks.iter().map(|block| ((block.block, block.key), block)).collect();
        let mut keys = vec![0; self.blocks.count()];
        let models = models.iter().map(|model| {
            self.blocks.keys(&model.model, &mut keys);
            // Words of one model share its probability.
            let words = if self.models.words_share() { 0.0 } else { self.models.log_words(&keys) };
            let of = |(scores, probabilities): (&BlockScores, &BlockProbabilities)| {
                (block_parts(scores, &keys, |block, at| block.scores[at]) + words - probabilities.log_total).exp()
            };
            let own: Option<Vec<&BlockCorrection>> =
                keys.iter().enumerate().map(|(block, &key)| known.get(&(block, key)).copied()).collect();
            let value = of(self.corrected);
            let evidence = own.as_ref().map(|own| Evidence::product(own.iter().map(|block| block.evidence)));
            let se = relative_share_error(value, evidence.map_or(1.0, |evidence| evidence.se), self.log_total_error);
            // The k̂ of weights says nothing about evidences that were found without them.
            let khat = |block: &&BlockCorrection| block.khat.filter(|_| !block.is_annealed());
            let khats = own.map(|own| own.iter().map(khat).collect::<Option<Vec<f64>>>());
            ModelCorrection {
                q: of(self.q),
                corrected: Estimate { value, se },
                evidence,
                khat: khats.flatten().map(|khats| khats.into_iter().fold(f64::NEG_INFINITY, f64::max)),
                ..model.clone()
            }
        });
        models.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    /// What is said of 4,000 weights with normal logarithms of this spread, some of them moved.
    fn said(spread: f64, moved: impl Fn(usize, f64) -> f64) -> Option<f64> {
        let mut stream = Stream::new(1, Purpose::Other(1), 0, 0);
        let mut log_weights: Vec<f64> = (0..4000).map(|draw| moved(draw, spread * stream.normal())).collect();
        let khat = stats::smooth(&mut log_weights.clone()).ok()?.khat;
        log_weights.iter_mut().for_each(|log| *log += 2000.0);
        khat_of(&log_weights, khat)
    }

    #[test]
    fn a_tail_counts_if_it_holds_something() {
        let equal = Some(f64::NEG_INFINITY);
        assert_eq!(said(0.0, |_, log| log), equal);
        assert_eq!(said(0.05, |_, log| log), equal);
        // A long tail that holds half a per cent of the sum, and one that holds as much as the rest.
        assert_eq!(
            said(0.001, |draw, log| if draw % 200 == 0 { log + 0.3 * (draw as f64 / 4000.0) } else { log }),
            equal
        );
        let held = said(0.001, |draw, log| if draw % 200 == 0 { log + 8.0 * (draw as f64 / 4000.0) } else { log });
        assert!(held.is_some_and(|khat| khat > 0.7), "{held:?}");
        assert!(said(0.5, |_, log| log).is_some_and(f64::is_finite));
        assert!(said(3.0, |_, log| log).is_some_and(|khat| khat > 0.5));
    }
}

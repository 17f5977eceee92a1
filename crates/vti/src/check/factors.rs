//! The check of densities with factors, block by block.
//!
//! Where q is a product over blocks given the model, so are its weights, and each factor under its key can be corrected on its
//! own: the mean of its weights is its evidence. These have far fewer dimensions than whole models, and every draw says
//! something about all of its blocks. Where the weights of a factor that matters are too uneven, and the problem can be seen
//! from its prior, evidences are found by annealing instead ([`AnnealSettings`](super::AnnealSettings)). Without that a factor
//! gets an error as large as its distance from its bound, so that what follows for graphs says how much hangs on it. For graphs
//! the exact sums over orders then turn the evidences of nodes and sets of parents into the probabilities of graphs and edges.

use std::collections::HashMap;

use serde::Serialize;

use super::CheckError;
use super::anneal::AnnealSettings;
use super::correction::{Correction, ModelCorrection, khat as serialize_khat};
use super::evidences::{Annealed, Annealing, Evidences, anneal, place};
use super::importance::{Found, Watch};
use super::verdict::{Basis, Verdict};
use crate::device::Device;
use crate::graph::Graph;
use crate::models::{Draw, NodeScores, ParentProbabilities, ParentScores};
use crate::posterior::{Draws, Posterior};
use crate::problem::Topology;
use crate::random::Purpose;
use crate::space::Model;
use crate::stats::{self, Estimate, Stratum};

/// Factors with fewer draws are not corrected on their own.
pub(super) const MIN_BLOCK_DRAWS: usize = 25;

/// k̂ counts for factors of at least this probability.
const MIN_PROBABILITY: f64 = 0.05;

/// Weights with such a k̂ are too uneven, however many there are (Vehtari et al. 2024).
const MAX_KHAT: f64 = 0.7;

/// What the weights of factors say.
#[derive(Clone, Debug, Serialize)]
pub struct FactorCheck {
    /// Factors that were drawn often enough or annealed, most probable first.
    pub factors: Vec<FactorCorrection>,
    /// How many more factors may matter than [`AnnealSettings::most`] allowed to anneal.
    pub left_out: usize,
    /// Probabilities of edges under q, n × n row by row: `[i * n + j]` is that of i → j.
    pub edges_q: Vec<f64>,
    /// Corrected ones.
    pub edges: Vec<Estimate>,
    /// Words drawn from the corrected distribution, as many as there are draws from q, one after another.
    #[serde(skip)]
    pub words: Vec<u16>,
}

impl FactorCheck {
    /// Whether evidences were found by annealing.
    pub fn annealed(&self) -> bool {
        self.factors.iter().any(|factor| factor.annealed)
    }
}

/// One factor under a key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactorCorrection {
    /// The block: which node.
    pub block: usize,
    /// The key: the set of its parents.
    pub key: u64,
    /// The probability of the key under q.
    pub q: f64,
    /// Corrected.
    pub corrected: f64,
    /// `log ∫ η_b(θ_b | k) dθ_b`. Where k̂ is not below its threshold and nothing was annealed, the error is at least the
    /// distance from the bound.
    pub log_evidence: Estimate,
    /// Whether the evidence was found by annealing rather than by weights.
    pub annealed: bool,
    /// k̂ of its weights, −∞ if they are all but equal ("-inf" in JSON).
    #[serde(serialize_with = "serialize_khat")]
    pub khat: Option<f64>,
    /// What k̂ must stay below.
    pub threshold: f64,
    /// How often it was drawn.
    pub draws: usize,
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

/// Corrects factor by factor, where q(m) is a product of scores and blocks have weights of their own.
pub(super) fn correct<D: Device>(
    posterior: &Posterior<D>,
    draws: &Draws,
    models: &[ModelCorrection],
    settings: &AnnealSettings,
    watch: Watch<'_>,
) -> Result<Option<Found>, CheckError> {
    let Some(scores) = posterior.parent_scores().filter(|_| !draws.blocks.keys.is_empty()) else { return Ok(None) };
    let workers = posterior.family().device.workers();
    let q = scores.probabilities(workers);
    let weighed = weigh(draws, &scores, &q)?;
    let annealed = match (posterior.problem().factors(), posterior.family().space().blocks()) {
        (Some(problem), Some(blocks)) if settings.runs > 0 && are_uneven(&weighed) => {
            let annealing = Annealing::new(problem, blocks, posterior.seed(), settings, watch);
            anneal(workers, annealing, &scores, &q, &weighed)
        }
        _ => None,
    };
    let Annealed { mut factors, evidences, left_out } = annealed.unwrap_or_else(|| {
        let evidences = Evidences::new(workers, &scores, &weighed);
        Annealed { factors: weighed, evidences, left_out: 0 }
    });
    let corrected = &evidences.probabilities;
    factors.iter_mut().for_each(|factor| factor.corrected = evidences.probability(factor));
    let spread = evidences.spread(workers, posterior.seed());
    // log p(m) is a constant and the parts of the nodes.
    let keys = &draws.blocks.keys[..scores.nodes.len()];
    let orders = match scores.topology {
        Topology::Orders => 0.0,
        Topology::Graphs => log_orders(keys),
    };
    let parts = block_parts(&scores, keys, |node, place| node.log_prior[place]);
    let constant = posterior.problem().log_prior(draws.word(0)) + orders - parts;
    let log_evidence = Estimate { value: corrected.log_total + constant, se: spread.log_total };
    let words = draw_words(posterior, &evidences.scores, draws.len());
    let models = with_drawn(posterior, models, &words);
    let models = correct_models(posterior, &models, (&scores, &q), (&evidences.scores, corrected), &factors);
    let correction = Correction::known(models);
    let worst = worst(&factors);
    let (khat, threshold) = worst.map_or((None, stats::threshold(draws.len())), |worst| (worst.khat, worst.threshold));
    let moved = spread.edges.iter().copied().fold(0.0, f64::max);
    let edges = corrected.edges.iter().zip(&spread.edges).map(|(&value, &se)| Estimate { value, se }).collect();
    let check = FactorCheck { factors, left_out, edges_q: q.edges, edges, words };
    let basis = Basis { moved, annealed: check.annealed(), left_out };
    let verdict = Verdict::of_factors(khat, threshold, &basis, &correction);
    Ok(Some(Found { check: Some(check), khat, threshold, log_evidence, correction, verdict }))
}

/// Words drawn from the corrected scores; none where the space has no graphs.
fn draw_words<D: Device>(posterior: &Posterior<D>, scores: &ParentScores, count: usize) -> Vec<u16> {
    let draw = Draw { seed: posterior.seed(), purpose: Purpose::Check, step: u64::MAX - 1 };
    let graphs = posterior.family().space().graphs();
    graphs.map_or_else(Vec::new, |graphs| scores.draw(posterior.family().device.workers(), graphs, draw, count))
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
                log_evidence: None,
                khat: None,
                draws: 0,
            });
            next
        });
        all[place].draws += 1;
    }
    all
}

/// Whether factors of a node that have too uneven weights matter together.
fn are_uneven(factors: &[FactorCorrection]) -> bool {
    let mut sums: HashMap<usize, f64> = HashMap::new();
    for factor in factors.iter().filter(|factor| factor.khat.is_none_or(|khat| khat >= MAX_KHAT)) {
        *sums.entry(factor.block).or_insert(0.0) += factor.q;
    }
    sums.values().any(|&sum| sum >= MIN_PROBABILITY)
}

/// The factor that matters, among those that were drawn, whose k̂ is furthest beyond its threshold.
fn worst(factors: &[FactorCorrection]) -> Option<&FactorCorrection> {
    let beyond = |factor: &FactorCorrection| factor.khat.map_or(f64::INFINITY, |khat| khat - factor.threshold);
    let matter = factors.iter().filter(|factor| factor.draws > 0 && factor.q.max(factor.corrected) >= MIN_PROBABILITY);
    matter.max_by(|a, b| beyond(a).total_cmp(&beyond(b)))
}

/// The sum over nodes of something about their sets of parents; −∞ if one is unknown.
fn block_parts(scores: &ParentScores, keys: &[u64], part: impl Fn(&NodeScores, usize) -> f64) -> f64 {
    let nodes = keys.iter().enumerate();
    nodes
        .map(|(node, &set)| place(scores, node, set).map_or(f64::NEG_INFINITY, |at| part(&scores.nodes[node], at)))
        .sum()
}

/// The logarithm of the number of orders of a graph.
fn log_orders(parents: &[u64]) -> f64 {
    Graph::from_parents(parents.to_vec()).ok().and_then(|graph| graph.log_orders()).unwrap_or(0.0)
}

/// Sorts factors by the probabilities of their keys under q.
pub(super) fn most_probable_first(factors: &mut [FactorCorrection]) {
    factors.sort_by(|a, b| b.q.total_cmp(&a.q).then((a.block, a.key).cmp(&(b.block, b.key))));
}

/// Evidence and k̂ of every factor that was drawn often enough.
fn weigh(draws: &Draws, scores: &ParentScores, q: &ParentProbabilities) -> Result<Vec<FactorCorrection>, CheckError> {
    let nodes = scores.nodes.len();
    let mut groups: HashMap<(usize, u64), Vec<f64>> = HashMap::new();
    for (piece, (&key, &log_weight)) in draws.blocks.keys.iter().zip(&draws.blocks.log_weights).enumerate() {
        let log_weight = if log_weight.is_nan() { f64::NEG_INFINITY } else { log_weight };
        groups.entry((piece % nodes, key)).or_default().push(log_weight);
    }
    let mut found = Vec::new();
    for ((block, key), raw) in groups {
        let Some(at) = place(scores, block, key).filter(|_| raw.len() >= MIN_BLOCK_DRAWS) else { continue };
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
        found.push(FactorCorrection {
            block,
            key,
            q: q.nodes[block][at],
            corrected: 0.0,
            log_evidence: Estimate { value, se },
            annealed: false,
            khat,
            threshold: stats::threshold(count),
            draws: count,
        });
    }
    most_probable_first(&mut found);
    Ok(found)
}

/// Exact probabilities of the models under q and under the corrected scores.
fn correct_models<D: Device>(
    posterior: &Posterior<D>,
    models: &[ModelCorrection],
    (scores, q): (&ParentScores, &ParentProbabilities),
    (corrected_scores, corrected): (&ParentScores, &ParentProbabilities),
    factors: &[FactorCorrection],
) -> Vec<ModelCorrection> {
    let known: HashMap<(usize, u64), &FactorCorrection> =
        factors.iter().map(|factor| ((factor.block, factor.key), factor)).collect();
    let blocks = posterior.family().space().blocks();
    let mut keys = vec![0; scores.nodes.len()];
    let models = models.iter().map(|model| {
        if let Some(blocks) = blocks {
            blocks.keys(&model.model, &mut keys);
        }
        // Words of one graph share its probability.
        let of_orders = match scores.topology {
            Topology::Graphs => 0.0,
            Topology::Orders => log_orders(&keys),
        };
        let of = |scores: &ParentScores, log_total: f64| {
            (block_parts(scores, &keys, |node, at| node.logits[at]) + of_orders - log_total).exp()
        };
        let own: Option<Vec<&FactorCorrection>> =
            keys.iter().enumerate().map(|(node, &key)| known.get(&(node, key)).copied()).collect();
        let value = of(corrected_scores, corrected.log_total);
        let log_evidence = own.as_ref().map(|own| Estimate {
            value: own.iter().map(|factor| factor.log_evidence.value).sum(),
            se: own.iter().map(|factor| factor.log_evidence.se.powi(2)).sum::<f64>().sqrt(),
        });
        // The evidence of the model against that of all others.
        let se = value * (1.0 - value).max(0.0) * log_evidence.map_or(1.0, |evidence| evidence.se);
        // The k̂ of weights says nothing about evidences that were found without them.
        let khat = |factor: &&FactorCorrection| factor.khat.filter(|_| !factor.annealed);
        let khats = own.map(|own| own.iter().map(khat).collect::<Option<Vec<f64>>>());
        ModelCorrection {
            q: of(scores, q.log_total),
            corrected: Estimate { value, se },
            log_evidence,
            khat: khats.flatten().map(|khats| khats.into_iter().fold(f64::NEG_INFINITY, f64::max)),
            ..model.clone()
        }
    });
    models.collect()
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

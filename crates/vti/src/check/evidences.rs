//! Evidences of keys in place of their bounds: what they make of scores, which of them are still missing, and how much hangs
//! on their errors.

use std::collections::HashMap;

use super::annealing::{Annealing, BlockKey, Runs};
use super::blocks::{BlockCorrection, MIN_BLOCK_DRAWS, most_probable_first};
use super::line::Line;
use crate::evidence::{AnnealSettings, Evidence};
use crate::models::{BlockProbabilities, BlockScores};
use crate::problem::{BatchError, BlockModels, Blocks};
use crate::random::{Purpose, Stream};
use crate::smc;
use crate::stats;
use crate::workers::Workers;

/// Repetitions with evidences moved within their errors.
const REPEATS: u64 = 24;

/// Above so many blocks, fewer repetitions: each takes seconds.
const MANY_BLOCKS: usize = 15;
const FEW_REPEATS: u64 = 6;

/// Keys are annealed if they would have this probability, were their evidence so many standard errors better than expected.
const MIN_PROBABILITY: f64 = 5e-3;
const SIGMAS_OF_HOPE: f64 = 2.0;

/// And if all that are left of a node had more than this together.
const MAX_LEFT_OVER: f64 = 0.25;

/// Runs are added, so many times as many as there were at first, where an error moves a probability by this much, or by less where
/// keys are few; for no more keys than this at a time.
const MIN_MOVE: f64 = 0.01;
const MIN_MOVE_OF_FEW: f64 = 0.005;
const MORE_RUNS: usize = 3;
const MAX_CONTESTED_KEYS: usize = 24;

/// So many keys, those of graphs of four nodes, are all annealed.
const MAX_ALL_KEYS: usize = 32;

/// Fewer points than this make no line.
const MIN_LINE_POINTS: usize = 4;

/// How often, at most, keys that have come to matter are looked for: a few times do, unless each that is found brings another.
const MAX_ROUNDS: usize = 100;

/// Sums over models, with what they need.
pub(super) struct Summed<'a> {
    pub(super) models: &'a dyn BlockModels,
    /// Features of the space.
    pub(super) features: usize,
    pub(super) workers: &'a Workers,
}

impl Summed<'_> {
    pub(super) fn probabilities(&self, scores: &BlockScores) -> BlockProbabilities {
        scores.probabilities(self.models, self.features, self.workers)
    }
}

/// Scores with evidences in place of bounds, the error of each, and the probabilities that follow from them.
pub(super) struct Evidences {
    pub(super) scores: BlockScores,
    errors: Vec<Vec<f64>>,
    pub(super) probabilities: BlockProbabilities,
}

impl Evidences {
    /// Keys whose evidence is not known keep their score, moved by as much as one would expect from those that are: a straight
    /// line in the size of the key (the number of parents), of the same block where enough are known of it, with its own error.
    /// Under a key of size 0 there is next to nothing to integrate over, so these say nothing about others.
    pub(super) fn new(sums: &Summed<'_>, scores: &BlockScores, blocks: &[BlockCorrection]) -> Self {
        let mut known: Vec<Vec<(usize, Evidence)>> = vec![Vec::new(); scores.blocks.len()];
        for block in blocks {
            let at = scores.blocks[block.block].place(block.key);
            known[block.block].extend(at.map(|at| (at, block.evidence)));
        }
        let size = |key: u64| f64::from(sums.models.size(key));
        let moves = |number: usize| {
            let block = &scores.blocks[number];
            let sized = known[number].iter().filter(|(at, _)| size(block.keys[*at]) > 0.0);
            let moves = sized.map(|&(at, evidence)| {
                (size(block.keys[at]), block.log_prior[at] + evidence.log_evidence - block.scores[at])
            });
            moves.filter(|(_, by)| by.is_finite()).collect::<Vec<(f64, f64)>>()
        };
        let own: Vec<Vec<(f64, f64)>> = (0..scores.blocks.len()).map(moves).collect();
        let common = Line::through(&own.concat());
        let mut corrected = scores.clone();
        let mut errors = Vec::with_capacity(known.len());
        for ((block, known), own) in corrected.blocks.iter_mut().zip(known).zip(&own) {
            let line = if own.len() < MIN_LINE_POINTS { common } else { Line::through(own) };
            let sizes = block.keys.iter().map(|&key| size(key));
            let mut error: Vec<f64> = sizes.clone().map(|size| line.error(size)).collect();
            block.scores.iter_mut().zip(sizes).for_each(|(score, size)| *score += line.at(size));
            for (at, evidence) in known {
                block.scores[at] = block.log_prior[at] + evidence.log_evidence;
                error[at] = evidence.se;
            }
            errors.push(error);
        }
        let probabilities = sums.probabilities(&corrected);
        Self { scores: corrected, errors, probabilities }
    }

    /// How much probabilities move when evidences move within their errors.
    pub(super) fn spread(&self, sums: &Summed<'_>, seed: u64) -> Spread {
        let centre = &self.probabilities;
        let repeats = if self.scores.blocks.len() > MANY_BLOCKS { FEW_REPEATS } else { REPEATS };
        let mut squares = vec![0.0; centre.features.len()];
        let mut total = 0.0;
        for number in 0..repeats {
            let mut stream = Stream::new(seed, Purpose::Check, u64::MAX, number);
            let mut moved = self.scores.clone();
            for (block, errors) in moved.blocks.iter_mut().zip(&self.errors) {
                // What lies beyond hope was not looked for among keys without evidence.
                let by = errors.iter().map(|error| error * stream.normal().clamp(-SIGMAS_OF_HOPE, SIGMAS_OF_HOPE));
                block.scores.iter_mut().zip(by).for_each(|(score, by)| *score += by);
            }
            let found = sums.probabilities(&moved);
            let off = found.features.iter().zip(&centre.features);
            squares.iter_mut().zip(off).for_each(|(s, (a, b))| *s += (a - b) * (a - b));
            total += (found.log_total - centre.log_total).powi(2);
        }
        let share = repeats as f64;
        Spread {
            features: squares.into_iter().map(|s| (s / share).sqrt()).collect(),
            log_total: (total / share).sqrt(),
        }
    }

    /// Keys whose evidence is not known but that would matter, were it a little better than expected, and as many more of each
    /// block as leave next to nothing to those that are left; the most probable first.
    fn hopeful(&self, is_open: impl Fn(BlockKey) -> bool) -> Vec<BlockKey> {
        let mut found = Vec::new();
        for (block, probabilities) in self.probabilities.blocks.iter().enumerate() {
            let key = |at: usize| (block, self.scores.blocks[block].keys[at]);
            let open = probabilities.iter().enumerate().filter(|(at, _)| is_open(key(*at)));
            let mut open: Vec<(usize, f64)> = open.map(|(at, &p)| (at, p)).collect();
            open.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let mut left: f64 = open.iter().map(|(_, p)| p).sum();
            for (at, p) in open {
                // Its own evidence alone being so much better.
                let odds = p / (1.0 - p).max(f64::MIN_POSITIVE) * (SIGMAS_OF_HOPE * self.errors[block][at]).exp();
                if left > MAX_LEFT_OVER || odds / (1.0 + odds) >= MIN_PROBABILITY {
                    found.push((key(at), p));
                }
                left -= p;
            }
        }
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.into_iter().map(|(key, _)| key).collect()
    }

    /// Annealed keys whose errors matter most: by how far they move their own probability.
    fn contested(&self, blocks: &[BlockCorrection]) -> Vec<BlockKey> {
        let least = if are_few(&self.scores) { MIN_MOVE_OF_FEW } else { MIN_MOVE };
        let matters = |block: &BlockCorrection| {
            let p = self.probability(block);
            (p * (1.0 - p) * block.evidence.se, (block.block, block.key))
        };
        let annealed = blocks.iter().filter(|block| block.is_annealed());
        let mut found: Vec<(f64, BlockKey)> = annealed.map(matters).filter(|(by, _)| *by >= least).collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        found.into_iter().take(MAX_CONTESTED_KEYS).map(|(_, key)| key).collect()
    }

    /// The probability of a block's key.
    pub(super) fn probability(&self, block: &BlockCorrection) -> f64 {
        let at = self.scores.blocks[block.block].place(block.key);
        at.map_or(0.0, |at| self.probabilities.blocks[block.block][at])
    }
}

/// Standard errors of what follows from scores.
pub(super) struct Spread {
    pub(super) features: Vec<f64>,
    pub(super) log_total: f64,
}

/// What annealing found.
pub(super) struct Annealed {
    /// Annealed keys and those whose weights are all but equal, most probable first.
    pub(super) blocks: Vec<BlockCorrection>,
    pub(super) evidences: Evidences,
    /// How many more may matter than settings allow for.
    pub(super) left_out: usize,
    /// What it rests on.
    pub(super) runs: Runs,
}

/// Finds evidences by annealing, of all keys that may matter: at first a few of every block, which say how far bounds are off,
/// then those that matter if all bounds are so far off, and so on; at last more runs for those whose errors matter most. None
/// where the problem cannot be seen from its prior.
pub(super) fn anneal(
    sums: &Summed<'_>,
    mut annealing: Annealing<'_>,
    scores: &BlockScores,
    q: &BlockProbabilities,
    weighed: &[BlockCorrection],
) -> Result<Option<Annealed>, BatchError> {
    let settings = annealing.settings;
    let known_by_weights = by_key(weighed);
    let join = |runs: &Runs| {
        let annealed = runs.iter().filter_map(|(&key, runs)| {
            Some(with_evidence(key, smc::Annealed::join(runs)?, scores, q, &known_by_weights))
        });
        let mut blocks: Vec<BlockCorrection> = annealed.collect();
        most_probable_first(&mut blocks);
        let evidences = Evidences::new(sums, scores, &blocks);
        (blocks, evidences)
    };
    // Bounds that are far off hide the keys that matter: where there are few, none is left to them.
    let mut wanted = if are_few(scores) { keys(scores).collect() } else { first(sums.models, scores) };
    let mut known = (!annealing.runs.is_empty()).then(|| join(&annealing.runs));
    wanted.retain(|key| !annealing.runs.contains_key(key));
    if let (Some((_, evidences)), true) = (&known, wanted.is_empty()) {
        wanted = evidences.hopeful(|key| !annealing.runs.contains_key(&key));
    }
    let mut rounds = 0..MAX_ROUNDS;
    let left_out = loop {
        let most = if rounds.next().is_some() && !annealing.is_ended { settings.most } else { 0 };
        let room = most.saturating_sub(annealing.runs.len()).min(annealing.affordable(&wanted, settings.runs));
        let left_out = wanted.len().saturating_sub(room);
        wanted.truncate(room);
        if wanted.is_empty() {
            break left_out;
        }
        annealing.run(sums.workers, &wanted, settings.runs)?;
        let (blocks, evidences) = known.insert(join(&annealing.runs));
        if blocks.is_empty() {
            return Ok(None);
        }
        wanted = evidences.hopeful(|key| !annealing.runs.contains_key(&key));
    };
    let Some((mut blocks, mut evidences)) = known else { return Ok(None) };
    for _ in 0..settings.sharpen {
        let mut wanted = evidences.contested(&blocks);
        wanted.truncate(annealing.affordable(&wanted, MORE_RUNS * settings.runs));
        if wanted.is_empty() || annealing.is_ended {
            break;
        }
        annealing.run(sums.workers, &wanted, MORE_RUNS * settings.runs)?;
        (blocks, evidences) = join(&annealing.runs);
    }
    Ok(Some(Annealed { blocks, evidences, left_out, runs: annealing.runs }))
}

fn are_few(scores: &BlockScores) -> bool {
    keys(scores).count() <= MAX_ALL_KEYS
}

/// Few keys are worth more effort each: more particles have smaller errors, and more runs say better how large these are.
pub(super) fn effort(settings: &AnnealSettings, scores: &BlockScores) -> AnnealSettings {
    let (runs, particles) = if are_few(scores) { (2, 4) } else { (1, 1) };
    AnnealSettings { runs: runs * settings.runs, particles: particles * settings.particles, ..settings.clone() }
}

/// All keys that q has.
fn keys(scores: &BlockScores) -> impl Iterator<Item = BlockKey> {
    scores.blocks.iter().enumerate().flat_map(|(block, known)| known.keys.iter().map(move |&key| (block, key)))
}

/// What weights say, by block and key.
fn by_key(weighed: &[BlockCorrection]) -> HashMap<BlockKey, &BlockCorrection> {
    weighed.iter().map(|block| ((block.block, block.key), block)).collect()
}

/// A block under a key whose evidence was found without q, beside what weights say about it.
fn with_evidence(
    (block, key): BlockKey,
    evidence: Evidence,
    scores: &BlockScores,
    q: &BlockProbabilities,
    weighed: &HashMap<BlockKey, &BlockCorrection>,
) -> BlockCorrection {
    let q = scores.blocks[block].place(key).map_or(0.0, |at| q.blocks[block][at]);
    let weighed = weighed.get(&(block, key));
    let (khat, draws) = weighed.map_or((None, 0), |weighed| (weighed.khat, weighed.draws));
    let evidence = weighed.map_or(evidence, |weighed| evidence.reaching(&weighed.evidence));
    let threshold = stats::threshold(draws.max(MIN_BLOCK_DRAWS));
    BlockCorrection { block, key, q, corrected: 0.0, evidence, khat, threshold, draws }
}

/// The evidences of all keys that q has, where they are known exactly.
pub(super) fn exact(
    sums: &Summed<'_>,
    blocks: &dyn Blocks,
    scores: &BlockScores,
    q: &BlockProbabilities,
    weighed: &[BlockCorrection],
) -> Annealed {
    let weighed = by_key(weighed);
    let known = keys(scores).map(|(block, key)| {
        let exact = Evidence::exactly(blocks.log_evidence_estimate(block, key));
        with_evidence((block, key), exact, scores, q, &weighed)
    });
    let mut found: Vec<BlockCorrection> = known.filter(|found| found.evidence.log_evidence.is_finite()).collect();
    most_probable_first(&mut found);
    let evidences = Evidences::new(sums, scores, &found);
    Annealed { blocks: found, evidences, left_out: 0, runs: Runs::new() }
}

/// Of every block the best key as far as known, the smallest one, and the best ones that are larger by one or two or smaller by
/// one; those of one kind for all blocks, then those of the next.
fn first(models: &dyn BlockModels, scores: &BlockScores) -> Vec<BlockKey> {
    let mut found: Vec<(usize, BlockKey)> = Vec::new();
    for (block, known) in scores.blocks.iter().enumerate() {
        let best = |size: Option<u32>| {
            let keys = known.keys.iter().zip(&known.scores);
            let keys = keys.filter(|(key, _)| size.is_none_or(|size| size == models.size(**key)));
            keys.max_by(|a, b| a.1.total_cmp(b.1)).map(|(&key, _)| key)
        };
        let size = best(None).map_or(0, |key| models.size(key)).max(1);
        let mut sizes = vec![size, 0, size - 1, size + 1, size + 2];
        if size == 1 {
            sizes.remove(1);
        }
        let keys = sizes.into_iter().enumerate();
        found.extend(keys.filter_map(|(kind, size)| Some((kind, (block, best(Some(size))?)))));
    }
    found.sort_by_key(|(kind, _)| *kind);
    found.into_iter().map(|(_, key)| key).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::graph::nodes_of;
    use crate::problem::KeyScores;
    use crate::problem::dag::simulate::{SimulationSettings, simulate};
    use crate::problem::dag::{Dag, DagSettings, LinearEvidence, NodeData, Noise, Sem, enumerate};
    use crate::space::ModelSpace;
    use crate::workers::Workers;

    /// Three nodes of 12 rows that hang together.
    fn table() -> NodeData {
        let mut stream = Stream::new(3, Purpose::Other(1), 0, 0);
        let first: Vec<f64> = (0..12).map(|_| stream.normal()).collect();
        let second: Vec<f64> = first.iter().map(|x| 0.8 * x + stream.normal()).collect();
        let third: Vec<f64> = second.iter().map(|x| -1.2 * x + stream.normal()).collect();
        NodeData::new(["a", "b", "c"].map(String::from).to_vec(), vec![first, second, third])
    }

    fn dag(sem: Sem, noise: Noise) -> Dag {
        Dag::new(table(), DagSettings { sem, noise, weight_scale: 0.7, ..DagSettings::default() }).unwrap()
    }

    /// Annealed evidences of factors, with 16 runs each.
    fn annealed(dag: &Dag, factors: &[BlockKey]) -> Vec<Evidence> {
        let workers = Workers::new(2).unwrap();
        let settings = AnnealSettings::default();
        let mut silent = |_, _| true;
        let mut annealing = Annealing::new(dag, 1, (&settings, f64::INFINITY), Runs::new(), &mut silent);
        annealing.run(&workers, factors, 4).unwrap();
        // What is added later goes on where the first runs ended.
        annealing.run(&workers, factors, 12).unwrap();
        factors.iter().map(|factor| smc::Annealed::join(&annealing.runs[factor]).unwrap()).collect()
    }

    #[test]
    fn linear_equations_have_their_evidence() {
        let dag = dag(Sem::Linear {}, Noise::Known { sigma: 1.0 });
        let exact = LinearEvidence::new(&table(), 1.0, 0.7).unwrap();
        let factors = [(0, 0b000), (0, 0b110), (1, 0b001), (2, 0b010), (2, 0b011)];
        for (factor, found) in factors.iter().zip(annealed(&dag, &factors)) {
            let off = found.log_evidence - exact.log_evidence(factor.0, factor.1);
            assert!(off.abs() < 4.0 * found.se + 1e-3 && found.se < 0.1, "{factor:?}: {found:?} is off by {off}");
        }
    }

    /// Against sums over a fine grid of both weights of one hidden unit, and of log σ where it is unknown.
    #[test]
    fn hidden_units_have_their_evidence() {
        let columns = table().columns;
        let log_density = |weights: [f64; 2], log_sigma: f64, parent: &[f64], own: &[f64]| {
            let rows = parent.iter().zip(own).map(|(x, y)| {
                let error = (y - weights[0] * (weights[1] * x).max(0.0)) / log_sigma.exp();
                -0.5 * error * error - log_sigma - 0.5 * std::f64::consts::TAU.ln()
            });
            let prior = |x: f64, s: f64| -0.5 * (x / s).powi(2) - s.ln() - 0.5 * std::f64::consts::TAU.ln();
            rows.sum::<f64>() + prior(weights[0], 0.7) + prior(weights[1], 0.7)
        };
        let grid = |reach: f64, count: usize| {
            let step = 2.0 * reach / count as f64;
            (0..count).map(move |i| (i as f64 + 0.5) * step - reach)
        };
        for noise in [Noise::Known { sigma: 0.5 }, Noise::Unknown {}] {
            let dag = dag(Sem::Mlp { hidden: 1, bias: false }, noise);
            let factors = [(1, 0b001), (2, 0b010), (0, 0b100)];
            for (factor, found) in factors.iter().zip(annealed(&dag, &factors)) {
                let (own, parent) = (&columns[factor.0], &columns[nodes_of(factor.1).next().unwrap()]);
                let (sigmas, volume): (Vec<f64>, f64) = match noise {
                    Noise::Known { sigma } => (vec![sigma.ln()], 0.05 * 0.05),
                    Noise::Unknown {} => (grid(3.0, 60).collect(), 0.05 * 0.05 * 0.1),
                };
                let mut logs = Vec::new();
                for &log_sigma in &sigmas {
                    let prior = match noise {
                        Noise::Known { .. } => 0.0,
                        Noise::Unknown {} => -0.5 * log_sigma * log_sigma - 0.5 * std::f64::consts::TAU.ln(),
                    };
                    for w2 in grid(4.0, 160) {
                        logs.extend(grid(4.0, 160).map(|w1| prior + log_density([w2, w1], log_sigma, parent, own)));
                    }
                }
                let off = found.log_evidence - stats::log_sum_exp(&logs) - volume.ln();
                assert!(off.abs() < 4.0 * found.se + 2e-3 && found.se < 0.12, "{factor:?}: {found:?} is off by {off}");
            }
        }
    }

    /// Bounds that are off by many nats, by how much depending on the set, are mended: those of the sets that matter are found.
    #[test]
    fn sets_that_matter_are_found_whatever_bounds_say() {
        let made = simulate(&SimulationSettings {
            nodes: 5,
            rows: 25,
            sem: Sem::Linear {},
            edge_probability: 0.7,
            seed: 4,
            ..SimulationSettings::default()
        });
        let table = made.unwrap().table;
        let exact = LinearEvidence::new(&table, 1.0, 1.0).unwrap();
        let settings =
            DagSettings { sem: Sem::Linear {}, noise: Noise::Known { sigma: 1.0 }, ..DagSettings::default() };
        let dag = Dag::new(table, settings).unwrap();
        let truth = enumerate(dag.prior(), |node, parents| exact.log_evidence(node, parents)).unwrap().edges;
        let mut stream = Stream::new(2, Purpose::Other(1), 0, 0);
        let nodes = (0..5).map(|node| {
            let sets: Vec<u64> = (0..32).filter(|set| set >> node & 1 == 0).collect();
            let bound = |&set: &u64| match set.count_ones() {
                0 => exact.log_evidence(node, 0),
                size => exact.log_evidence(node, set) - 6.0 - f64::from(size) - stream.normal().abs(),
            };
            let scores = sets.iter().map(bound).collect();
            KeyScores { log_prior: vec![0.0; sets.len()], keys: sets, scores, ranked: Vec::new() }
        });
        let scores = BlockScores { blocks: nodes.collect() };
        let workers = Workers::new(2).unwrap();
        let settings = AnnealSettings::default();
        let mut seen = Vec::new();
        let mut watch = |done, runs| {
            seen.push((done, runs));
            true
        };
        let annealing = Annealing::new(&dag, 1, (&settings, f64::INFINITY), Runs::new(), &mut watch);
        let sums = Summed { models: &dag, features: dag.space().feature_count(), workers: &workers };
        let q = sums.probabilities(&scores);
        let Annealed { blocks, evidences, left_out, runs } =
            anneal(&sums, annealing, &scores, &q, &[]).unwrap().unwrap();
        let found = &evidences.probabilities;
        let spread = evidences.spread(&sums, 1);
        let worst = |edges: &[f64]| edges.iter().zip(&truth).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(
            worst(&dag.edge_matrix(&q.features)) > 0.3,
            "bounds are not far enough off: {}",
            worst(&dag.edge_matrix(&q.features))
        );
        assert!(
            worst(&dag.edge_matrix(&found.features)) < 0.05,
            "{} with errors {:?}",
            worst(&dag.edge_matrix(&found.features)),
            spread.features
        );
        let (edges, errors) = (dag.edge_matrix(&found.features), dag.edge_matrix(&spread.features));
        for ((edge, se), truth) in edges.iter().zip(&errors).zip(&truth) {
            assert!((edge - truth).abs() < 4.0 * se + 0.01, "{edge} ± {se}, truth {truth}");
        }
        assert!(blocks.iter().all(|block| block.is_annealed() && block.evidence.calls > 0));
        assert_eq!(left_out, 0);
        assert!(seen.is_sorted() && seen.last().is_some_and(|(done, runs)| done == runs && *done >= 4 * blocks.len()));

        // From there on nothing is left to do.
        let mut never = |_, _| panic!("nothing is left to do");
        let annealing = Annealing::new(&dag, 1, (&settings, f64::INFINITY), runs, &mut never);
        let again = anneal(&sums, annealing, &scores, &q, &[]).unwrap().unwrap();
        assert_eq!((again.blocks, again.left_out), (blocks, 0));

        // Where densities may take nothing, the first ones are annealed all the same, and none of them again.
        let first_only = AnnealSettings { work: Some(0.0), ..settings.clone() };
        let mut silent = |_, _| true;
        let annealing = Annealing::new(&dag, 1, (&first_only, f64::INFINITY), Runs::new(), &mut silent);
        let Annealed { blocks, left_out, runs, .. } = anneal(&sums, annealing, &scores, &q, &[]).unwrap().unwrap();
        assert!(left_out > 0 && runs.values().all(|runs| runs.len() == settings.runs));
        assert_eq!(blocks.len(), first(&dag, &scores).len());

        // With room for the first ones only, the others are counted.
        let few = AnnealSettings { most: 12, ..settings };
        let mut silent = |_, _| true;
        let annealing = Annealing::new(&dag, 1, (&few, f64::INFINITY), Runs::new(), &mut silent);
        let Annealed { blocks, left_out, .. } = anneal(&sums, annealing, &scores, &q, &[]).unwrap().unwrap();
        assert!(left_out > 0);
        assert_eq!(blocks.len(), 12);
    }
}

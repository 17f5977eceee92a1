//! Sums over graphs against brute force, and what a modular distribution learns, keeps and forgets.

use super::table::{Beam, search};
use super::*;
use crate::device::Cpu;
use crate::graph::{Graph, nodes_of};
use crate::models::BlockLosses;
use crate::problem::dag::{Dag, DagSettings, GraphPrior, NodeData, Noise, Rules, Sem};
use crate::problem::{DensityError, KeyScores};
use crate::random::{Purpose, Stream};
use crate::space::{Catalogue, Dags, ModelSpace};
use crate::stats::log_sum_exp;

const PRIORS: [GraphPrior; 2] = [GraphPrior::Orders, GraphPrior::Graphs];

/// A function of a node and a set of parents.
type OfSet = Box<dyn Fn(usize, u64) -> f64 + Send + Sync>;

/// Nodes with a prior and an estimate for every set of parents, and nothing to be learned about parameters.
struct Given {
    prior: GraphPrior,
    log_prior: OfSet,
    estimate: OfSet,
}

impl Given {
    /// Random estimates of this spread.
    fn random(prior: GraphPrior, spread: f64, seed: u64) -> Self {
        Self {
            prior,
            log_prior: Box::new(|_, _| 0.0),
            estimate: Box::new(move |node, set| spread * normal(seed, node, set)),
        }
    }

    /// Sets of parents are forbidden with this probability, but for the empty ones.
    fn with_gaps(mut self, share: f64, seed: u64) -> Self {
        self.log_prior = Box::new(move |node, set| {
            let gone = set != 0 && Stream::new(seed, Purpose::Other(2), node as u64, set).uniform() < share;
            if gone { f64::NEG_INFINITY } else { -0.3 * f64::from(set.count_ones()) }
        });
        self
    }

    fn score(&self, node: usize, set: u64) -> f64 {
        (self.log_prior)(node, set) + (self.estimate)(node, set)
    }
}

fn normal(seed: u64, node: usize, set: u64) -> f64 {
    Stream::new(seed, Purpose::Other(1), node as u64, set).normal()
}

/// Graphs whose nodes are scored by what is given; the rest is that of linear equations.
struct Question {
    dag: Dag,
    given: Arc<Given>,
}

/// Linear equations over so many nodes, with a parameter for each edge.
fn linear(nodes: usize, prior: GraphPrior, rules: Rules) -> Dag {
    let columns = (0..nodes).map(|node| (0..3).map(|row| normal(7, node, row)).collect()).collect();
    let data = NodeData::new((1..=nodes).map(|node| format!("x{node}")).collect(), columns);
    let noise = Noise::Known { sigma: 1.0 };
    Dag::new(data, DagSettings { sem: Sem::Linear {}, noise, prior, rules, ..DagSettings::default() }).unwrap()
}

impl Problem for Question {
    fn space(&self) -> &dyn ModelSpace {
        self.dag.space()
    }

    fn log_density(&self, _: &[u16], _: &[f64], _: &mut [f64]) -> Result<f64, DensityError> {
        Ok(0.0)
    }

    fn blocks(&self) -> Option<&dyn Blocks> {
        Some(self)
    }
}

impl Blocks for Question {
    blocks_of_dag!();

    fn log_density(&self, _: usize, _: u64, _: &[f64], _: &mut [f64]) -> Result<f64, DensityError> {
        Ok(0.0)
    }

    fn log_evidence_estimate(&self, node: usize, parents: u64) -> f64 {
        (self.given.estimate)(node, parents)
    }

    fn models(&self) -> Option<&dyn BlockModels> {
        self.dag.models().map(|_| self as &dyn BlockModels)
    }
}

impl BlockModels for Question {
    fn log_prior(&self, node: usize, parents: u64) -> f64 {
        (self.given.log_prior)(node, parents)
    }

    block_models_of_dag!();
}

/// A distribution that has asked for nothing yet.
fn unprepared(nodes: usize, given: &Arc<Given>, settings: &ModularSettings) -> Result<Modular, ModelsError> {
    let dag = linear(nodes, given.prior, Rules::default());
    Modular::new(Arc::new(Question { dag, given: Arc::clone(given) }), settings)
}

/// A distribution that can be drawn from.
fn modular(nodes: usize, given: &Arc<Given>, settings: &ModularSettings) -> Modular {
    let mut models = unprepared(nodes, given, settings).unwrap();
    prepare(&mut models);
    models
}

/// As before every step of training.
fn prepare(models: &mut Modular) {
    let mut preparing = Preparing { until: None, watch: &mut |_, _| ControlFlow::Continue(()) };
    assert_eq!(models.prepare(&Cpu::<f64>::single(), &mut preparing), ControlFlow::Continue(Prepared::Whole));
}

fn scores_of(models: &Modular) -> BlockScores {
    ModelDistribution::<Cpu<f64>>::block_scores(models).unwrap().clone()
}

/// What follows from scores of so many nodes.
fn probabilities(scores: &BlockScores, prior: GraphPrior) -> BlockProbabilities {
    let dag = linear(scores.blocks.len(), prior, Rules::default());
    scores.probabilities(&dag, dag.space().feature_count(), &Workers::SINGLE)
}

/// Some cases of 4 nodes: near and far scores, with and without gaps.
fn cases() -> Vec<Arc<Given>> {
    let spreads = [(1.0, 0.0), (4.0, 0.4), (3000.0, 0.0), (3000.0, 0.4)];
    let cases = PRIORS.into_iter().flat_map(|prior| spreads.map(|(spread, gaps)| (prior, spread, gaps)));
    cases
        .zip(10..)
        .map(|((prior, spread, gaps), seed)| Arc::new(Given::random(prior, spread, seed).with_gaps(gaps, seed)))
        .collect()
}

/// q is what the estimates say from the start.
fn trusting() -> ModularSettings {
    ModularSettings { start: 1.0, ..ModularSettings::default() }
}

/// All words, one after another.
fn all_words(space: &Dags) -> Vec<u16> {
    Catalogue::new(space, 1 << 20).unwrap().words()
}

/// Log weights of words from the definition, and the parents of the nodes of each.
fn by_definition(given: &Given, space: &Dags, words: &[u16]) -> Vec<(f64, Vec<u64>)> {
    let of = |word: &[u16]| {
        let mut parents = vec![0; space.nodes()];
        space.parents(word, &mut parents);
        let scores: f64 = parents.iter().enumerate().map(|(node, &set)| given.score(node, set)).sum();
        let log_orders = match given.prior {
            GraphPrior::Orders => 0.0,
            GraphPrior::Graphs => Graph::from_parents(parents.clone()).unwrap().log_orders().unwrap(),
        };
        (scores - log_orders, parents)
    };
    words.chunks_exact(space.arities().len()).map(of).collect()
}

fn log_probs(models: &Modular, words: &[u16]) -> Vec<f64> {
    let mut log_q = vec![0.0; words.len() / models.problem.space().arities().len()];
    models.log_prob(&Cpu::<f64>::single(), words, &mut log_q).unwrap();
    log_q
}

#[test]
fn sums_are_those_over_all_words() {
    let space = Dags::new(4, 1).unwrap();
    let words = all_words(&space);
    for given in cases() {
        let models = modular(space.nodes(), &given, &trusting());
        let weights = by_definition(&given, &space, &words);
        let log_total = log_sum_exp(&weights.iter().map(|&(log, _)| log).collect::<Vec<_>>());
        let scores = scores_of(&models);
        let found = probabilities(&scores, given.prior);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-11 * (1.0 + a.abs());
        assert!(close(found.log_total, log_total), "{} {log_total}", found.log_total);
        let probability = |of: &dyn Fn(&[u64]) -> bool| -> f64 {
            weights.iter().filter(|(_, parents)| of(parents)).map(|(log, _)| (log - log_total).exp()).sum()
        };
        for (node, (scores, found)) in scores.blocks.iter().zip(&found.blocks).enumerate() {
            for (&set, &found) in scores.keys.iter().zip(found) {
                let expected = probability(&|parents| parents[node] == set);
                assert!((found - expected).abs() < 1e-10, "{node} {set:b}: {found} {expected}");
            }
        }
        for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))).filter(|(from, to)| from != to) {
            let expected = probability(&|parents| parents[to] >> from & 1 == 1);
            assert!((found.features[space.edge_feature(from, to)] - expected).abs() < 1e-10);
        }
        for (found, (log, _)) in log_probs(&models, &words).into_iter().zip(&weights) {
            assert!(found == log - log_total || close(found, log - log_total), "{found} {}", log - log_total);
        }
    }
}

#[test]
fn graphs_and_orders_are_counted() {
    let nodes = 8;
    let sets = |node: usize| (0..1u64 << nodes).filter(move |set| set >> node & 1 == 0).collect::<Vec<_>>();
    let free = |node: usize| KeyScores {
        keys: sets(node),
        scores: vec![0.0; 128],
        log_prior: vec![0.0; 128],
        ranked: Vec::new(),
    };
    let count = |prior| probabilities(&BlockScores { blocks: (0..nodes).map(free).collect() }, prior);
    // The number of acyclic graphs of 8 labelled nodes, and 8! orders of 28 edges each.
    let (graphs, orders) = (count(GraphPrior::Graphs), count(GraphPrior::Orders));
    assert!((graphs.log_total - 783_702_329_343f64.ln()).abs() < 1e-11);
    assert!((orders.log_total - (40_320.0 * 2f64.powi(28)).ln()).abs() < 1e-11);
    // An edge points one way in half of the orders, and is there in half of these.
    assert!(orders.features.len() == 56 && orders.features.iter().all(|edge| (edge - 0.25).abs() < 1e-12));
    for sums in graphs.blocks.iter().chain(&orders.blocks) {
        assert!((sums.iter().sum::<f64>() - 1.0).abs() < 1e-11);
    }
}

#[test]
fn draws_are_as_frequent_as_they_are_probable() {
    let (space, device) = (Dags::new(4, 1).unwrap(), Cpu::<f64>::single());
    let (words, width, count) = (all_words(&space), space.arities().len(), 20_000);
    for given in cases() {
        let models = modular(space.nodes(), &given, &trusting());
        let expected: Vec<f64> = log_probs(&models, &words).iter().map(|log| count as f64 * log.exp()).collect();
        let (mut drawn, mut log_q) = (vec![0; count * width], vec![0.0; count]);
        models.sample(&device, Draw { seed: 5, purpose: Purpose::Models, step: 1 }, &mut drawn, &mut log_q).unwrap();
        for (of_draw, of_word) in log_q.iter().zip(log_probs(&models, &drawn)) {
            assert!((of_draw - of_word).abs() < 1e-9 * (1.0 + of_word.abs()), "{of_draw} {of_word}");
        }
        let catalogue = Catalogue::new(&space, 1 << 20).unwrap();
        let mut found = vec![0.0; expected.len()];
        drawn.chunks_exact(width).for_each(|word| found[catalogue.index(word).unwrap()] += 1.0);
        // Pearson's statistic, words that are hardly expected taken together.
        let (mut statistic, mut freedom, mut rest) = (0.0, -1.0, (0.0, 0.0));
        for (found, expected) in found.into_iter().zip(expected) {
            if expected >= 5.0 {
                statistic += (found - expected) * (found - expected) / expected;
                freedom += 1.0;
            } else {
                rest = (rest.0 + found, rest.1 + expected);
            }
        }
        let (found, expected) = rest;
        assert!((found - expected).abs() <= 5.0 * (expected + 1e-3).sqrt(), "{found} {expected}");
        assert!(statistic <= freedom + 5.0 * f64::sqrt(2.0 * freedom) + 1e-9, "{statistic} with {freedom}");
    }
}

#[test]
fn rules_have_no_exceptions() {
    let device = Cpu::<f64>::single();
    // All but six edges are forbidden, two of these are required.
    let allowed = [[2, 0], [1, 3], [0, 3], [3, 0], [2, 1], [0, 1]];
    let pairs = (0..4).flat_map(|from| (0..4).map(move |to| [from, to]));
    let rules = Rules {
        required: vec![[2, 0], [1, 3]],
        forbidden: pairs.filter(|edge| edge[0] != edge[1] && !allowed.contains(edge)).collect(),
        max_parents: Some(2),
        ..Rules::default()
    };
    let words = all_words(&Dags::new(4, 1).unwrap());
    for prior in PRIORS {
        let (dag, given) = (linear(4, prior, rules.clone()), Arc::new(Given::random(prior, 2.0, 3)));
        let space = dag.space().clone();
        let mut models = Modular::new(Arc::new(Question { dag, given }), &trusting()).unwrap();
        prepare(&mut models);
        let log_q = log_probs(&models, &words);
        for (word, log_q) in words.chunks_exact(9).zip(&log_q) {
            assert_eq!(*log_q > f64::NEG_INFINITY, space.is_allowed(word), "{word:?}");
        }
        assert!(log_sum_exp(&log_q).abs() < 1e-11);
        let (mut drawn, mut log_q) = (vec![0; 500 * 9], vec![0.0; 500]);
        models.sample(&device, Draw { seed: 1, purpose: Purpose::Models, step: 0 }, &mut drawn, &mut log_q).unwrap();
        assert!(drawn.chunks_exact(9).all(|word| space.is_allowed(word)));
    }
}

/// A step of learning from what the given scores say, with noise.
fn learn(models: &mut Modular, truth: &Given, step: u64, noise: f64) {
    let device = Cpu::<f64>::single();
    prepare(models);
    let problem = Arc::clone(&models.problem);
    let (blocks, _) = parts(&*problem).unwrap();
    let (rows, nodes, width) = (64, blocks.count(), problem.space().arities().len());
    let (mut words, mut log_q) = (vec![0; rows * width], vec![0.0; rows]);
    models.sample(&device, Draw { seed: 8, purpose: Purpose::Models, step }, &mut words, &mut log_q).unwrap();
    let (mut keys, mut log_h) = (vec![0; rows * nodes], vec![0.0; rows * nodes]);
    for (row, word) in words.chunks_exact(width).enumerate() {
        blocks.keys(word, &mut keys[row * nodes..][..nodes]);
        let mut stream = Stream::new(8, Purpose::Other(3), step, row as u64);
        for node in 0..nodes {
            // A level that all sets of a node share says nothing about them.
            let level = 7.0 * step as f64;
            log_h[row * nodes + node] =
                level - (truth.estimate)(node, keys[row * nodes + node]) - noise * stream.normal();
        }
    }
    // A row that was dropped teaches nothing, whatever stands there.
    let mut kept = vec![true; rows];
    kept[3] = false;
    log_h[3 * nodes + 1] = f64::NAN;
    let batch = ScoredBatch {
        words: &words,
        log_q: &log_q,
        log_prior: &vec![0.0; rows],
        log_h: &vec![0.0; rows],
        kept: &kept,
        blocks: Some(BlockLosses { keys: &keys, log_h: &log_h }),
        pace: 1.0,
        information_limit: f64::INFINITY,
    };
    models.update(&device, &batch).unwrap();
}

#[test]
fn what_is_learned_is_the_truth_once_exploration_ends() {
    let (space, device) = (Dags::new(4, 1).unwrap(), Cpu::<f64>::single());
    for prior in PRIORS {
        let truth = Arc::new(Given::random(prior, 1.5, 4));
        // The estimates are off by about 1 nat.
        let estimate = |node: usize, set: u64| 1.5 * normal(4, node, set) + normal(5, node, set);
        let estimates = Arc::new(Given { estimate: Box::new(estimate), ..Given::random(prior, 0.0, 0) });
        let settings = ModularSettings { inflation: 0.0, ..ModularSettings::default() };
        let mut models = modular(space.nodes(), &estimates, &settings);
        (0..200).for_each(|step| learn(&mut models, &truth, step, 0.3));
        let exact = probabilities(&scores_of(&modular(space.nodes(), &truth, &trusting())), prior);
        let before = scores_of(&models);
        models.end_exploration(&device);
        let after = scores_of(&models);
        // An upper confidence bound is a standard deviation above, at most that of a set nobody has seen.
        for (before, after) in before.blocks.iter().zip(&after.blocks) {
            let above = || before.scores.iter().zip(&after.scores).map(|(before, after)| before - after);
            assert!(above().all(|by| by > 0.0 && by <= settings.prior_sd + 1e-9));
        }
        for (found, exact) in probabilities(&after, prior).features.iter().zip(&exact.features) {
            // A score known to 0.03 nats, several of them in each edge.
            assert!((found - exact).abs() < 0.03, "{prior:?}: {found} {exact}");
        }
    }
}

#[test]
fn a_state_goes_on_bit_for_bit() {
    let (space, device) = (Dags::new(4, 1).unwrap(), Cpu::<f64>::single());
    let words = all_words(&space);
    for given in cases() {
        let truth = Given::random(given.prior, 2.0, 1);
        let new = || unprepared(space.nodes(), &given, &ModularSettings::default()).unwrap();
        let state = |models: &Modular| ModelDistribution::<Cpu<f64>>::state(models, &device).unwrap();
        let mut first = new();
        // Before anything was asked there is nothing to draw or keep, and that can be kept too.
        let mut nothing = new();
        let drawn = ModelDistribution::<Cpu<f64>>::log_prob(&nothing, &device, &words, &mut vec![0.0; words.len()]);
        assert_eq!(drawn, Err(ModelsError::NotPrepared));
        nothing.restore(&device, &mut state(&first)).unwrap();
        (0..3).for_each(|step| learn(&mut first, &truth, step, 1.0));
        (0..3).for_each(|step| learn(&mut nothing, &truth, step, 1.0));
        let mut second = new();
        second.restore(&device, &mut state(&first)).unwrap();
        (3..6).for_each(|step| learn(&mut first, &truth, step, 1.0));
        let bits = |models: &Modular| -> Vec<u64> { log_probs(models, &words).into_iter().map(f64::to_bits).collect() };
        let expected = bits(&first);
        for models in [&mut second, &mut nothing] {
            (3..6).for_each(|step| learn(models, &truth, step, 1.0));
            assert_eq!(bits(models), expected);
        }
    }
}

#[test]
fn sets_without_an_estimate_are_not_lost() {
    let space = Dags::new(3, 1).unwrap();
    let words = all_words(&space);
    let truth = Given::random(GraphPrior::Orders, 1.0, 1);
    let nothing = |node: usize, set: u64| match (node, set.count_ones()) {
        (0, _) | (_, 2) => f64::NEG_INFINITY,
        (1, 1) => f64::NAN,
        _ => normal(2, node, set),
    };
    let given = Arc::new(Given { estimate: Box::new(nothing), ..Given::random(GraphPrior::Orders, 1.0, 1) });
    for start in [0.0, 0.1, 1.0] {
        let settings = ModularSettings { start, ..ModularSettings::default() };
        let mut models = modular(space.nodes(), &given, &settings);
        for step in 0..5 {
            let log_q = log_probs(&models, &words);
            assert!(log_q.iter().all(|log_q| log_q.is_finite()) && log_sum_exp(&log_q).abs() < 1e-11, "{log_q:?}");
            learn(&mut models, &truth, step, 1.0);
        }
    }
}

#[test]
fn entropy_moves_no_faster_than_it_may() {
    let (space, device) = (Dags::new(4, 1).unwrap(), Cpu::<f64>::single());
    let words = all_words(&space);
    let given = Arc::new(Given::random(GraphPrior::Orders, 4.0, 6));
    let entropy = |models: &Modular| -> f64 { log_probs(models, &words).into_iter().map(|log| -log.exp() * log).sum() };
    let mut models = modular(space.nodes(), &given, &ModularSettings::default());
    let (rows, width) = (2000, space.arities().len());
    for (step, limit) in [0.0, 0.05, 0.05, 0.05].into_iter().enumerate() {
        let before = entropy(&models);
        let (mut words, mut log_q) = (vec![0; rows * width], vec![0.0; rows]);
        let draw = Draw { seed: 8, purpose: Purpose::Models, step: step as u64 };
        models.sample(&device, draw, &mut words, &mut log_q).unwrap();
        let (mut keys, zeros) = (vec![0; rows * 4], vec![0.0; rows * 4]);
        words.chunks_exact(width).zip(keys.chunks_exact_mut(4)).for_each(|(word, keys)| space.parents(word, keys));
        let batch = ScoredBatch {
            words: &words,
            log_q: &log_q,
            log_prior: &zeros[..rows],
            log_h: &zeros[..rows],
            kept: &vec![true; rows],
            blocks: Some(BlockLosses { keys: &keys, log_h: &zeros }),
            pace: 1.0,
            information_limit: limit,
        };
        let scale = models.update(&device, &batch).unwrap().scale;
        let change = (entropy(&models) - before).abs();
        // The change is that of a tangent, estimated from the batch.
        assert!(change <= 1.2 * limit + 1e-12, "{change} of {limit}");
        assert!(limit == 0.0 || (scale > 0.0 && scale < 1.0 && change > 0.5 * limit), "{change} {scale}");
    }
}

#[test]
fn a_search_finds_what_matters() {
    // Four parents help, six do not; two that help do so less together.
    let gains = [3.0, -5.0, 4.0, -6.0, f64::NAN, 3.5, -5.5, -7.0, 5.0, -5.0, -8.0];
    let score = |set: u64| {
        let both = if set & 0b101 == 0b101 { -1.0 } else { 0.0 };
        nodes_of(set).map(|node| gains[node]).sum::<f64>() + both
    };
    let ask = |sets: Vec<u64>| sets.into_iter().map(|set| (set, score(set))).collect::<Vec<_>>();
    let search = |dag: &Dag, beam| match search(dag, 4, beam, |sets| ControlFlow::<(), _>::Continue(ask(sets))) {
        ControlFlow::Continue(found) => found,
        ControlFlow::Break(()) => Vec::new(),
    };
    let to_four = |from: &[usize]| from.iter().map(|&from| [from, 4]).collect::<Vec<_>>();
    for rules in [
        Rules::default(),
        Rules { required: to_four(&[3]), ..Rules::default() },
        Rules { required: to_four(&[10, 2]), max_parents: Some(4), ..Rules::default() },
        Rules { forbidden: to_four(&[3, 7, 8, 9, 10]), ..Rules::default() },
    ] {
        let dag = linear(11, GraphPrior::Orders, rules);
        let (rules, required) = (dag.prior().rules(), dag.smallest_key(4));
        let everything = ask(dag.all_keys(4, usize::MAX).unwrap());
        let best = everything.iter().map(|&(_, score)| score).fold(f64::NEG_INFINITY, f64::max);
        let mut found = search(&dag, Beam::of(12));
        let count = found.len();
        found.sort_unstable_by_key(|&(set, _)| set);
        found.dedup_by_key(|&mut (set, _)| set);
        assert_eq!(found.len(), count, "no set twice");
        assert!(found.iter().all(|&(set, _)| rules.allows(4, set)));
        let small = |set: u64| (set & !required).count_ones() <= 2;
        for (set, score) in everything.into_iter().filter(|&(set, score)| small(set) || score >= best - 4.5) {
            assert!(found.binary_search_by_key(&set, |&(set, _)| set).is_ok(), "{set:b} with {score}, best {best}");
        }
    }
}

#[test]
fn what_is_no_graph_of_few_nodes_is_refused() {
    let new = |nodes: usize, prior| {
        let given = Arc::new(Given::random(prior, 1.0, 0));
        unprepared(nodes, &given, &ModularSettings::default()).err()
    };
    assert_eq!(new(12, GraphPrior::Graphs), None);
    for (nodes, prior) in [(1, GraphPrior::Orders), (21, GraphPrior::Orders), (13, GraphPrior::Graphs)] {
        assert_eq!(new(nodes, prior), Some(ModelsError::NotModular), "{nodes}");
    }
}

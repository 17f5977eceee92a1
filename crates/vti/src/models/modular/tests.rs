//! Sums over graphs against brute force, and what a modular distribution learns, keeps and forgets.

use super::table::{all_sets, search};
use super::*;
use crate::device::Cpu;
use crate::graph::{Graph, nodes_of};
use crate::models::BlockScores;
use crate::problem::{DensityError, Topology};
use crate::random::{Purpose, Stream};
use crate::space::Catalogue;
use crate::stats::log_sum_exp;

const TOPOLOGIES: [Topology; 2] = [Topology::Orders, Topology::Graphs];

/// Nodes with a prior and a estimate for every set of parents, and nothing to be learned about parameters.
struct Given {
    topology: Topology,
    log_prior: Box<dyn Fn(usize, u64) -> f64 + Send + Sync>,
    estimate: Box<dyn Fn(usize, u64) -> f64 + Send + Sync>,
}

impl Given {
    /// Random estimates of this spread.
    fn random(topology: Topology, spread: f64, seed: u64) -> Self {
        Self {
            topology,
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

impl Factors for Given {
    fn log_density(&self, _: usize, _: u64, _: &[f64], _: &mut [f64]) -> Result<f64, DensityError> {
        Ok(0.0)
    }

    fn log_evidence_estimate(&self, node: usize, parents: u64) -> f64 {
        (self.estimate)(node, parents)
    }

    fn log_prior(&self, node: usize, parents: u64) -> f64 {
        (self.log_prior)(node, parents)
    }

    fn topology(&self) -> Topology {
        self.topology
    }
}

/// Some cases of 4 nodes: near and far scores, with and without gaps.
fn cases() -> Vec<Given> {
    let spreads = [(1.0, 0.0), (4.0, 0.4), (3000.0, 0.0), (3000.0, 0.4)];
    let cases = TOPOLOGIES.into_iter().flat_map(|topology| spreads.map(|(spread, gaps)| (topology, spread, gaps)));
    cases
        .zip(10..)
        .map(|((topology, spread, gaps), seed)| Given::random(topology, spread, seed).with_gaps(gaps, seed))
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
        let log_orders = match given.topology {
            Topology::Orders => 0.0,
            Topology::Graphs => Graph::from_parents(parents.clone()).unwrap().log_orders().unwrap(),
        };
        (scores - log_orders, parents)
    };
    words.chunks_exact(space.arities().len()).map(of).collect()
}

fn log_probs(models: &mut Modular<'_>, words: &[u16]) -> Vec<f64> {
    let mut log_q = vec![0.0; words.len() / models.space.arities().len()];
    models.log_prob(&Cpu::<f64>::single(), words, &mut log_q);
    log_q
}

#[test]
fn sums_are_those_over_all_words() {
    let (space, device) = (Dags::new(4, 1).unwrap(), Cpu::<f64>::single());
    let words = all_words(&space);
    for given in cases() {
        let mut models = Modular::new(&device, &space, &given, &trusting()).unwrap();
        let weights = by_definition(&given, &space, &words);
        let log_total = log_sum_exp(&weights.iter().map(|&(log, _)| log).collect::<Vec<_>>());
        let scores = ModelDistribution::<Cpu<f64>>::parent_scores(&mut models, &device).unwrap();
        let found = scores.probabilities(&device);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-11 * (1.0 + a.abs());
        assert!(close(found.log_total, log_total), "{} {log_total}", found.log_total);
        let probability = |of: &dyn Fn(&[u64]) -> bool| -> f64 {
            weights.iter().filter(|(_, parents)| of(parents)).map(|(log, _)| (log - log_total).exp()).sum()
        };
        for (node, (scores, found)) in scores.nodes.iter().zip(&found.nodes).enumerate() {
            for (&set, &found) in scores.sets.iter().zip(found) {
                let expected = probability(&|parents| parents[node] == set);
                assert!((found - expected).abs() < 1e-10, "{node} {set:b}: {found} {expected}");
            }
        }
        for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
            let expected = probability(&|parents| parents[to] >> from & 1 == 1);
            assert!((found.edges[from * 4 + to] - expected).abs() < 1e-10);
        }
        for (found, (log, _)) in log_probs(&mut models, &words).into_iter().zip(&weights) {
            assert!(found == log - log_total || close(found, log - log_total), "{found} {}", log - log_total);
        }
    }
}

#[test]
fn graphs_and_orders_are_counted() {
    let device = Cpu::<f64>::single();
    let nodes = 8;
    let sets = |node: usize| (0..1u64 << nodes).filter(move |set| set >> node & 1 == 0).collect::<Vec<_>>();
    let free = |node: usize| NodeScores { logits: vec![0.0; 128], log_prior: vec![0.0; 128], sets: sets(node) };
    let count = |topology| ParentScores { topology, nodes: (0..nodes).map(free).collect() }.probabilities(&device);
    // The number of acyclic graphs of 8 labelled nodes, and 8! orders of 28 edges each.
    let (graphs, orders) = (count(Topology::Graphs), count(Topology::Orders));
    assert!((graphs.log_total - 783_702_329_343f64.ln()).abs() < 1e-11);
    assert!((orders.log_total - (40_320.0 * 2f64.powi(28)).ln()).abs() < 1e-11);
    // An edge points one way in half of the orders, and is there in half of these.
    assert!(
        orders.edges.iter().enumerate().all(|(i, edge)| (edge - if i % 9 == 0 { 0.0 } else { 0.25 }).abs() < 1e-12)
    );
    for sums in graphs.nodes.iter().chain(&orders.nodes) {
        assert!((sums.iter().sum::<f64>() - 1.0).abs() < 1e-11);
    }
}

#[test]
fn draws_are_as_frequent_as_they_are_probable() {
    let (space, device) = (Dags::new(4, 1).unwrap(), Cpu::<f64>::single());
    let (words, width, count) = (all_words(&space), space.arities().len(), 20_000);
    for given in cases() {
        let mut models = Modular::new(&device, &space, &given, &trusting()).unwrap();
        let expected: Vec<f64> = log_probs(&mut models, &words).iter().map(|log| count as f64 * log.exp()).collect();
        let (mut drawn, mut log_q) = (vec![0; count * width], vec![0.0; count]);
        models.sample(&device, Draw { seed: 5, purpose: Purpose::Models, step: 1 }, &mut drawn, &mut log_q);
        for (of_draw, of_word) in log_q.iter().zip(log_probs(&mut models, &drawn)) {
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
    let graph = |edges: &[(usize, usize)]| Graph::from_edges(4, edges).unwrap();
    let rules = EdgeRules::new(graph(&[(2, 0), (1, 3)]), graph(&[(2, 0), (1, 3), (0, 3), (3, 0), (2, 1), (0, 1)]), 2);
    let space = Dags::new(4, 1).unwrap().with_rules(rules.unwrap()).unwrap();
    let words = all_words(&Dags::new(4, 1).unwrap());
    for topology in TOPOLOGIES {
        let given = Given::random(topology, 2.0, 3);
        let mut models = Modular::new(&device, &space, &given, &trusting()).unwrap();
        let log_q = log_probs(&mut models, &words);
        for (word, log_q) in words.chunks_exact(9).zip(&log_q) {
            assert_eq!(*log_q > f64::NEG_INFINITY, space.is_allowed(word), "{word:?}");
        }
        assert!(log_sum_exp(&log_q).abs() < 1e-11);
        let (mut drawn, mut log_q) = (vec![0; 500 * 9], vec![0.0; 500]);
        models.sample(&device, Draw { seed: 1, purpose: Purpose::Models, step: 0 }, &mut drawn, &mut log_q);
        assert!(drawn.chunks_exact(9).all(|word| space.is_allowed(word)));
    }
}

/// A step of learning from what the given scores say, with noise.
fn learn(models: &mut Modular<'_>, truth: &Given, step: u64, noise: f64) {
    let device = Cpu::<f64>::single();
    let (rows, nodes, width) = (64, models.space.nodes(), models.space.arities().len());
    let (mut words, mut log_q) = (vec![0; rows * width], vec![0.0; rows]);
    models.sample(&device, Draw { seed: 8, purpose: Purpose::Models, step }, &mut words, &mut log_q);
    let (mut keys, mut log_h) = (vec![0; rows * nodes], vec![0.0; rows * nodes]);
    for (row, word) in words.chunks_exact(width).enumerate() {
        models.space.parents(word, &mut keys[row * nodes..][..nodes]);
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
        blocks: Some(BlockScores { keys: &keys, log_h: &log_h }),
        pace: 1.0,
        information_limit: f64::INFINITY,
    };
    models.update(&device, &batch);
}

#[test]
fn what_is_learned_is_the_truth_once_optimism_is_gone() {
    let (space, device) = (Dags::new(4, 1).unwrap(), Cpu::<f64>::single());
    for topology in TOPOLOGIES {
        let truth = Given::random(topology, 1.5, 4);
        // The estimates are off by about 1 nat.
        let estimate = |node: usize, set: u64| 1.5 * normal(4, node, set) + normal(5, node, set);
        let estimates = Given { estimate: Box::new(estimate), ..Given::random(topology, 0.0, 0) };
        let settings = ModularSettings { inflation: 0.0, ..ModularSettings::default() };
        let mut models = Modular::new(&device, &space, &estimates, &settings).unwrap();
        (0..200).for_each(|step| learn(&mut models, &truth, step, 0.3));
        let exact = {
            let mut models = Modular::new(&device, &space, &truth, &trusting()).unwrap();
            ModelDistribution::<Cpu<f64>>::parent_scores(&mut models, &device).unwrap().probabilities(&device)
        };
        let before = ModelDistribution::<Cpu<f64>>::parent_scores(&mut models, &device).unwrap();
        models.settle(&device);
        let after = ModelDistribution::<Cpu<f64>>::parent_scores(&mut models, &device).unwrap();
        // Optimism is a standard deviation, at most that of a set nobody has seen.
        for (before, after) in before.nodes.iter().zip(&after.nodes) {
            let optimism = || before.logits.iter().zip(&after.logits).map(|(before, after)| before - after);
            assert!(optimism().all(|by| by > 0.0 && by <= settings.prior_sd + 1e-9));
        }
        for (found, exact) in after.probabilities(&device).edges.iter().zip(&exact.edges) {
            // A score known to 0.03 nats, several of them in each edge.
            assert!((found - exact).abs() < 0.03, "{topology:?}: {found} {exact}");
        }
    }
}

#[test]
fn a_state_goes_on_bit_for_bit() {
    let (space, device) = (Dags::new(4, 1).unwrap(), Cpu::<f64>::single());
    let words = all_words(&space);
    for given in cases() {
        let truth = Given::random(given.topology, 2.0, 1);
        let new = || Modular::new(&device, &space, &given, &ModularSettings::default()).unwrap();
        let mut first = new();
        // Before anything was asked there is nothing to keep, and that can be kept too.
        let mut nothing = new();
        nothing.restore(&device, &mut ModelDistribution::<Cpu<f64>>::state(&first, &device)).unwrap();
        (0..3).for_each(|step| learn(&mut first, &truth, step, 1.0));
        (0..3).for_each(|step| learn(&mut nothing, &truth, step, 1.0));
        let mut second = new();
        second.restore(&device, &mut ModelDistribution::<Cpu<f64>>::state(&first, &device)).unwrap();
        (3..6).for_each(|step| learn(&mut first, &truth, step, 1.0));
        let bits = |models: &mut Modular<'_>| -> Vec<u64> {
            log_probs(models, &words).into_iter().map(f64::to_bits).collect()
        };
        let expected = bits(&mut first);
        for models in [&mut second, &mut nothing] {
            (3..6).for_each(|step| learn(models, &truth, step, 1.0));
            assert_eq!(bits(models), expected);
        }
    }
}

#[test]
fn sets_without_a_guess_are_not_lost() {
    let (space, device) = (Dags::new(3, 1).unwrap(), Cpu::<f64>::single());
    let words = all_words(&space);
    let truth = Given::random(Topology::Orders, 1.0, 1);
    let nothing = |node: usize, set: u64| match (node, set.count_ones()) {
        (0, _) | (_, 2) => f64::NEG_INFINITY,
        (1, 1) => f64::NAN,
        _ => normal(2, node, set),
    };
    let given = Given { estimate: Box::new(nothing), ..Given::random(Topology::Orders, 1.0, 1) };
    for start in [0.0, 0.1, 1.0] {
        let settings = ModularSettings { start, ..ModularSettings::default() };
        let mut models = Modular::new(&device, &space, &given, &settings).unwrap();
        for step in 0..5 {
            let log_q = log_probs(&mut models, &words);
            assert!(log_q.iter().all(|log_q| log_q.is_finite()) && log_sum_exp(&log_q).abs() < 1e-11, "{log_q:?}");
            learn(&mut models, &truth, step, 1.0);
        }
    }
}

#[test]
fn entropy_moves_no_faster_than_it_may() {
    let (space, device) = (Dags::new(4, 1).unwrap(), Cpu::<f64>::single());
    let words = all_words(&space);
    let given = Given::random(Topology::Orders, 4.0, 6);
    let entropy =
        |models: &mut Modular<'_>| -> f64 { log_probs(models, &words).into_iter().map(|log| -log.exp() * log).sum() };
    let mut models = Modular::new(&device, &space, &given, &ModularSettings::default()).unwrap();
    let (rows, width) = (2000, space.arities().len());
    for (step, limit) in [0.0, 0.05, 0.05, 0.05].into_iter().enumerate() {
        let before = entropy(&mut models);
        let (mut words, mut log_q) = (vec![0; rows * width], vec![0.0; rows]);
        let draw = Draw { seed: 8, purpose: Purpose::Models, step: step as u64 };
        models.sample(&device, draw, &mut words, &mut log_q);
        let (mut keys, zeros) = (vec![0; rows * 4], vec![0.0; rows * 4]);
        words.chunks_exact(width).zip(keys.chunks_exact_mut(4)).for_each(|(word, keys)| space.parents(word, keys));
        let batch = ScoredBatch {
            words: &words,
            log_q: &log_q,
            log_prior: &zeros[..rows],
            log_h: &zeros[..rows],
            kept: &vec![true; rows],
            blocks: Some(BlockScores { keys: &keys, log_h: &zeros }),
            pace: 1.0,
            information_limit: limit,
        };
        let scale = models.update(&device, &batch).scale;
        let change = (entropy(&mut models) - before).abs();
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
    let graph = |edges: &[(usize, usize)]| Graph::from_edges(11, edges).unwrap();
    let all = || Graph::complete(11).unwrap();
    for rules in [
        EdgeRules::none(11).unwrap(),
        EdgeRules::new(graph(&[(3, 4)]), all(), 10).unwrap(),
        EdgeRules::new(graph(&[(10, 4), (2, 4)]), all(), 4).unwrap(),
        EdgeRules::new(graph(&[]), graph(&[(0, 4), (1, 4), (2, 4), (5, 4), (6, 4)]), 10).unwrap(),
    ] {
        let everything = ask(all_sets(&rules, 4));
        let best = everything.iter().map(|&(_, score)| score).fold(f64::NEG_INFINITY, f64::max);
        let mut found = search(&rules, 4, 12, ask);
        let count = found.len();
        found.sort_unstable_by_key(|&(set, _)| set);
        found.dedup_by_key(|&mut (set, _)| set);
        assert_eq!(found.len(), count, "no set twice");
        assert!(found.iter().all(|&(set, _)| rules.allows(4, set)));
        let small = |set: u64| (set & !rules.required(4)).count_ones() <= 2;
        for (set, score) in everything.into_iter().filter(|&(set, score)| small(set) || score >= best - 4.5) {
            assert!(found.binary_search_by_key(&set, |&(set, _)| set).is_ok(), "{set:b} with {score}, best {best}");
        }
    }
}

#[test]
fn what_is_no_graph_of_few_nodes_is_refused() {
    let device = Cpu::<f64>::single();
    let new = |nodes: usize, topology| {
        let space = Dags::new(nodes, 1).unwrap();
        let given = Given::random(topology, 1.0, 0);
        Modular::new(&device, &space, &given, &ModularSettings::default()).err()
    };
    assert_eq!(new(12, Topology::Graphs), None);
    for (nodes, topology) in [(1, Topology::Orders), (21, Topology::Orders), (13, Topology::Graphs)] {
        assert_eq!(new(nodes, topology), Some(ModelsError::NotModular), "{nodes}");
    }
}

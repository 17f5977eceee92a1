//! Linear graphs, where the probability of every edge is known.

use std::sync::Arc;

use vti::check::{Check, VerdictKind};
use vti::device::Cpu;
use vti::family::{FamilySettings, Structure};
use vti::models::{AutoregressiveSettings, LearningSettings, ModelsSettings, WordNetSettings};
use vti::posterior::Posterior;
use vti::problem::dag::simulate::{SimulationSettings, simulate};
use vti::problem::dag::{
    Dag, DagSettings, Enumeration, GraphPrior, LinearEvidence, NodeData, Noise, Rules, Sem, enumerate,
};
use vti::space::Dags;
use vti::stats::log_sum_exp;

use crate::{affine, check_with, train};

const KNOWN: Noise = Noise::Known { sigma: 1.0 };

fn simulated(nodes: usize, rows: usize, seed: u64) -> NodeData {
    let settings =
        SimulationSettings { nodes, rows, sem: Sem::Linear {}, edge_probability: 0.6, seed, ..Default::default() };
    simulate(&settings).unwrap().table
}

fn problem(table: NodeData, prior: GraphPrior, noise: Noise, rules: Rules) -> Arc<Dag> {
    let settings = DagSettings { sem: Sem::Linear {}, noise, prior, rules, ..DagSettings::default() };
    Arc::new(Dag::new(table, settings).unwrap())
}

fn exact(problem: &Dag) -> Enumeration {
    let table = problem.table();
    let evidence = match problem.settings().noise {
        Noise::Known { sigma } => LinearEvidence::new(table, sigma, 1.0),
        Noise::Unknown {} => LinearEvidence::with_unknown_noise(table, 1.0),
    };
    let evidence = evidence.unwrap();
    enumerate(problem.prior(), |node, parents| evidence.log_evidence(node, parents)).unwrap()
}

/// The default family is right about all edges, the evidence and the leading graphs.
fn assert_edges(name: &str, problem: &Arc<Dag>) -> Enumeration {
    // With known noise flows start from the posterior; otherwise they have its skewness to learn.
    let steps = if problem.settings().noise == KNOWN { 300 } else { 1000 };
    let device = Cpu::<f32>::new(2).unwrap();
    let exact = exact(problem);
    let posterior = train(problem, &device, &FamilySettings::default(), steps, 128);
    let check = check_with(&posterior, 4000);
    let blocks = check.blocks.as_ref().unwrap();
    let edges_q = problem.edge_matrix(&blocks.features_q);
    let edges = problem.edge_matrix(&blocks.features.iter().map(|edge| edge.value).collect::<Vec<_>>());
    assert_eq!(check.verdict.kind, VerdictKind::Trust, "{name}: {}", check.verdict.text);
    for (place, &truth) in exact.edges.iter().enumerate() {
        let (q, corrected) = (edges_q[place], edges[place]);
        assert!((q - truth).abs() < 0.03, "{name}: edge {place}: q says {q}, truth {truth}");
        assert!((corrected - truth).abs() < 0.01, "{name}: edge {place}: corrected {corrected}, truth {truth}");
    }
    // Graphs drawn from the corrected distribution show the same edges: five standard errors of so many draws.
    let nodes = problem.space().nodes();
    let mut shares = vec![0.0; nodes * nodes];
    for (word, weight) in check.corrected_words() {
        let graph = problem.graph(&word).unwrap();
        graph.edges().for_each(|(from, to)| shares[from * nodes + to] += weight);
    }
    for (share, truth) in shares.iter().zip(&exact.edges) {
        let error = 5.0 * ((truth * (1.0 - truth)).max(0.0) / check.draws.len() as f64).sqrt();
        assert!((share - truth).abs() < error + 1e-3, "{name}: draws show {share}, truth {truth}");
    }
    let found = check.log_evidence;
    assert!(
        (found.value - exact.log_evidence).abs() < 3.0 * found.se + 1e-3,
        "{name}: {found:?}, {}",
        exact.log_evidence
    );
    for model in check.correction.models.iter().take(3) {
        let graph = problem.graph(&model.model).unwrap();
        let place = exact.graphs.iter().position(|other| *other == graph).unwrap();
        let truth = exact.probabilities[place];
        assert!((model.q - truth).abs() < 0.03, "{name}: {}: {} {truth}", model.label, model.q);
        assert!((model.corrected.value - truth).abs() < 0.01, "{name}: {}: {model:?} {truth}", model.label);
    }
    exact
}

#[test]
fn few_data_leave_many_graphs() {
    for (prior, seed) in [(GraphPrior::Orders, 1), (GraphPrior::Graphs, 2)] {
        for (nodes, rows) in [(3, 20), (3, 50), (4, 20), (4, 50), (5, 50)] {
            let name = format!("{nodes} nodes, {rows} rows, {prior:?}");
            let exact = assert_edges(&name, &problem(simulated(nodes, rows, seed), prior, KNOWN, Rules::default()));
            let best = exact.probabilities[exact.ranking()[0]];
            assert!(best < 0.8, "{name}: there is nothing to be unsure about: {best}");
        }
    }
}

#[test]
fn noise_may_be_unknown() {
    for (prior, nodes) in [(GraphPrior::Orders, 3), (GraphPrior::Graphs, 4)] {
        let problem = problem(simulated(nodes, 30, 3), prior, Noise::Unknown {}, Rules::default());
        assert_edges(&format!("unknown noise, {prior:?}"), &problem);
    }
}

#[test]
fn rules_are_kept() {
    let rules = Rules { required: vec![[1, 0]], forbidden: vec![[2, 3]], max_parents: Some(2), ..Rules::default() };
    let exact = assert_edges("rules", &problem(simulated(4, 30, 4), GraphPrior::Orders, KNOWN, rules));
    assert!((exact.edges[4] - 1.0).abs() < 1e-12 && exact.edges[2 * 4 + 3] == 0.0);
}

/// Columns with a given part along each of some orthogonal waves, all of the same length.
fn waves(rows: usize, parts: &[&[f64]]) -> NodeData {
    let wave =
        |number: usize, row: usize| ((number + 1) as f64 * std::f64::consts::TAU * row as f64 / rows as f64).sin();
    let column = |parts: &&[f64]| {
        let at = |row: usize| 2f64.sqrt() * parts.iter().enumerate().map(|(k, part)| part * wave(k, row)).sum::<f64>();
        (0..rows).map(at).collect()
    };
    let names = (1..=parts.len()).map(|number| format!("x{number}")).collect();
    NodeData::new(names, parts.iter().map(column).collect())
}

#[test]
fn what_cannot_be_told_apart_is_equally_likely() {
    for prior in [GraphPrior::Orders, GraphPrior::Graphs] {
        let pair = waves(40, &[&[1.0, 0.0], &[0.8, 0.6]]);
        let exact = assert_edges("pair", &problem(pair, prior, KNOWN, Rules::default()));
        assert!((exact.edges[1] - exact.edges[2]).abs() < 1e-9 && exact.edges[1] > 0.4, "{:?}", exact.edges);
        // x1 and x3 are independent given x2, and mirror images of each other.
        let chain = waves(60, &[&[0.8, 0.6, 0.0], &[1.0, 0.0, 0.0], &[0.8, 0.0, 0.6]]);
        let exact = assert_edges("chain", &problem(chain, prior, KNOWN, Rules::default()));
        let edge = |from: usize, to: usize| exact.edges[from * 3 + to];
        assert!((edge(0, 1) - edge(2, 1)).abs() < 1e-9 && (edge(1, 0) - edge(1, 2)).abs() < 1e-9);
        assert!(edge(0, 1) > 0.2 && edge(1, 0) > 0.2, "{:?}", exact.edges);
    }
}

/// Probabilities of edges under q, all words being few.
fn edges_q(posterior: &Posterior<Cpu<f32>>, space: &Dags) -> Vec<f64> {
    let nodes = space.nodes();
    let (mut edges, mut adjacency) = (vec![0.0; nodes * nodes], vec![false; nodes * nodes]);
    for model in posterior.model_probabilities(1).unwrap() {
        space.adjacency(&model.model, &mut adjacency);
        let there = edges.iter_mut().zip(&adjacency).filter(|(_, there)| **there);
        there.for_each(|(edge, _)| *edge += model.probability.value);
    }
    edges
}

/// The corrected probability of an edge, and its standard error.
fn corrected(check: &Check, space: &Dags, place: usize) -> (f64, f64) {
    let there = |draw: usize| {
        let mut adjacency = vec![false; space.nodes() * space.nodes()];
        space.adjacency(check.draws.word(draw), &mut adjacency);
        f64::from(u8::from(adjacency[place]))
    };
    let found = check.mean(there).unwrap();
    (found.value, found.se)
}

#[test]
fn one_flow_over_all_coordinates_is_right_too() {
    let problem = problem(simulated(3, 20, 1), GraphPrior::Orders, KNOWN, Rules::default());
    let (exact, device) = (exact(&problem), Cpu::<f32>::new(2).unwrap());
    let network = WordNetSettings { hidden: 32, ..WordNetSettings::default() };
    let words = AutoregressiveSettings { network, learning: LearningSettings::new(0.01) };
    let distributions = [ModelsSettings::Auto {}, ModelsSettings::Autoregressive(words)];
    for (models, steps) in distributions.into_iter().zip([400, 1200]) {
        let family =
            FamilySettings { structure: Structure::Joint, models, flow: affine(), ..FamilySettings::default() };
        let posterior = train(&problem, &device, &family, steps, 256);
        let found = edges_q(&posterior, problem.space());
        let check = check_with(&posterior, 8000);
        assert!(check.blocks.is_none());
        assert_eq!(check.verdict.kind, VerdictKind::Trust, "{}", check.verdict.text);
        for (place, &truth) in exact.edges.iter().enumerate() {
            assert!((found[place] - truth).abs() < 0.03, "{:?}: {place}: {} {truth}", family.models, found[place]);
            let (value, se) = corrected(&check, problem.space(), place);
            assert!((value - truth).abs() < 3.0 * se + 1e-4, "{:?}: {place}: {value} ± {se} {truth}", family.models);
        }
    }
}

/// The evidence of node y given x with one hidden unit and σ = 1, by a fine grid of both weights.
fn one_unit(x: &[f64], y: &[f64]) -> f64 {
    let step = 0.04;
    let grid = || (-125..125).map(|i| (f64::from(i) + 0.5) * step);
    let logs = grid().flat_map(|w2| {
        grid().map(move |w1| {
            let squares: f64 = x.iter().zip(y).map(|(x, y)| (y - w2 * (w1 * x).max(0.0)).powi(2)).sum();
            -0.5 * (squares + w1 * w1 + w2 * w2)
        })
    });
    let rows = y.len() as f64;
    log_sum_exp(&logs.collect::<Vec<_>>()) + 2.0 * step.ln() - (0.5 * rows + 1.0) * std::f64::consts::TAU.ln()
}

/// Bounds of non-linear nodes are far off and weights too uneven to mend them; evidences from the prior do.
#[test]
fn graphs_of_hidden_units_are_corrected_from_the_prior() {
    for (rows, seed) in [(15, 1), (40, 2), (40, 3)] {
        let sem = Sem::Mlp { hidden: 1, bias: false };
        let made =
            simulate(&SimulationSettings { nodes: 2, rows, sem, edge_probability: 1.0, seed, ..Default::default() });
        let table = made.unwrap().table;
        let problem = Dag::new(
            table.clone(),
            DagSettings { sem, noise: KNOWN, prior: GraphPrior::Orders, ..DagSettings::default() },
        );
        let problem = Arc::new(problem.unwrap());
        let columns = &table.columns;
        let alone = |node: usize| {
            let squares: f64 = columns[node].iter().map(|x| x * x).sum();
            -0.5 * (squares + rows as f64 * std::f64::consts::TAU.ln())
        };
        // The graph without an edge has two orders.
        let logs = [
            one_unit(&columns[0], &columns[1]) + alone(0),
            one_unit(&columns[1], &columns[0]) + alone(1),
            2f64.ln() + alone(0) + alone(1),
        ];
        let total = log_sum_exp(&logs);
        let device = Cpu::<f32>::new(2).unwrap();
        let posterior = train(&problem, &device, &FamilySettings::default(), 300, 128);
        let check = check_with(&posterior, 4000);
        let edges = &check.blocks.as_ref().unwrap().features;
        for (edge, log) in [(0, logs[0]), (1, logs[1])] {
            let (found, truth) = (edges[edge], (log - total).exp());
            let off = (found.value - truth).abs();
            assert!(off < 4.0 * found.se + 0.005, "{rows} rows, seed {seed}: {found:?}, truth {truth}");
            assert!(found.se < 0.05, "{rows} rows, seed {seed}: {found:?}");
        }
        let (found, truth) = (check.log_evidence, total - 4f64.ln());
        assert!((found.value - truth).abs() < 4.0 * found.se + 0.02, "{rows} rows, seed {seed}: {found:?}, {truth}");
    }
}

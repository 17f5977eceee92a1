//! Causal graphs: against exact answers, against DAGMA and DiBS+, and over 20 nodes.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use vti::check::{Check, CheckSettings, check};
use vti::device::Cpu;
use vti::family::FamilySettings;
use vti::graph::Graph;
use vti::graph::metrics::{Better, Convention, Scores, conventions};
use vti::problem::dag::simulate::{Simulated, SimulationSettings, simulate};
use vti::problem::dag::{Dag, DagSettings, GraphPrior, LinearEvidence, Noise, Sem, enumerate};
use vti::train::{Silent, TrainSettings, Trainer};
use vti_paper::peers::{DagmaSettings, DibsSettings, FEW_LAMBDAS, Peers};

use super::{Figures, peak_memory};
use crate::Options;
use crate::report::{Line, Report};

/// Simulated data sets of each exact case, and of the comparison with peers.
const EXACT_SETS: u64 = 4;
const PEER_SETS: u64 = 5;

/// What the cases are.
pub(super) fn notes() -> Vec<String> {
    let (dagma, dibs) = peer_settings();
    vec![
        format!(
            "Graphs, exact: linear equations with known noise, {EXACT_SETS} simulated data sets (30 rows, then 300, and so on), \
             edge probabilities against those of all graphs enumerated; means over data sets of the largest error over all edges."
        ),
        format!(
            "Graphs, dag-10: the paper's simulation, 10 nodes, 10 hidden units, 1,024 rows, {PEER_SETS} data sets; ours is q, or \
             corrected where it says so. DAGMA: the best over λ from {:?} for each score by itself, {} and {} steps of size {} \
             (its own: 50,000 and 80,000 of 0.0002). DiBS+: {} particles, {} steps of size {}, {} draws a gradient (its own: 5,000 \
             of 0.005 with 128; both with their own settings: bench/results/paper). Seconds of DAGMA are those of all λ, those of DiBS+ without compiling.",
            dagma.lambdas,
            dagma.warm_iter,
            dagma.max_iter,
            dagma.lr,
            dibs.particles,
            dibs.steps,
            dibs.stepsize,
            dibs.n_grad_mc_samples,
        ),
        "Graphs, dag-20: one data set each of 20 nodes, 500 rows, an edge between two nodes with probability 0.2."
            .into(),
    ]
}

/// All cases.
pub(super) fn run(report: &mut Report, device: &Cpu<f32>, options: &Options) -> Result<()> {
    for nodes in [3, 4, 5] {
        for (name, prior) in [("orders", GraphPrior::Orders), ("graphs", GraphPrior::Graphs)] {
            let case = format!("dag-exact-{nodes}-{name}");
            if options.wants(&case) {
                exact(report, device, &case, nodes, prior, if options.quick { 2 } else { EXACT_SETS })?;
            }
        }
    }
    if options.wants("dag-10") {
        against_peers(report, device, options)?;
    }
    let sems = [("dag-20-linear", Sem::Linear {}), ("dag-20-mlp", Sem::Mlp { hidden: 10, bias: false })];
    for (case, sem) in sems.into_iter().filter(|(case, _)| options.wants(case)) {
        large(report, device, case, sem, options.quick)?;
    }
    Ok(())
}

/// A fit with default settings, checked.
fn fit(device: &Cpu<f32>, dag: &Arc<Dag>, train: &TrainSettings) -> Result<(Check, f64)> {
    let start = Instant::now();
    let fit = Trainer::new(dag.clone(), device.clone(), &FamilySettings::default(), train)?.run(&mut Silent)?;
    let check = check(&fit.posterior, &CheckSettings::default())?;
    Ok((check, start.elapsed().as_secs_f64()))
}

pub(super) fn dag(made: &Simulated, sem: Sem, prior: GraphPrior) -> Result<Arc<Dag>> {
    let noise = Noise::Known { sigma: 1.0 };
    Ok(Arc::new(Dag::new(made.table.clone(), DagSettings { sem, noise, prior, ..DagSettings::default() })?))
}

/// Linear equations with known noise: every graph's evidence is known.
fn exact(report: &mut Report, device: &Cpu<f32>, case: &str, nodes: usize, prior: GraphPrior, sets: u64) -> Result<()> {
    let (mut q, mut corrected, mut seconds) = (vec![], vec![], vec![]);
    let sem = Sem::Linear {};
    for seed in 1..=sets {
        let rows = if seed % 2 == 1 { 30 } else { 300 };
        let made = simulate(&SimulationSettings { nodes, rows, sem, seed, ..SimulationSettings::default() })?;
        let dag = dag(&made, sem, prior)?;
        let evidence = LinearEvidence::new(&made.table, 1.0, 1.0)?;
        let exact = enumerate(dag.prior(), |node, parents| evidence.log_evidence(node, parents))?.edges;
        let (check, time) = fit(device, &dag, &TrainSettings { seed, ..TrainSettings::blockwise() })?;
        let worst =
            |found: &[f64]| exact.iter().zip(found).map(|(exact, found)| (exact - found).abs()).fold(0.0, f64::max);
        let [edges_q, edges] = edges(&dag, &check)?;
        q.push(worst(&edges_q));
        corrected.push(worst(&edges));
        seconds.push(time);
    }
    report.push(Figures(q).line(case, "error of edge probabilities, q", "", "≤ 0.03"))?;
    report.push(Figures(corrected).line(case, "error of edge probabilities, corrected", "", "≤ 0.01"))?;
    report.push(Figures(seconds).line(case, "training and check", "s", ""))
}

/// What the peers get: far less than their own settings, which take hours.
fn peer_settings() -> (DagmaSettings, DibsSettings) {
    let dagma = DagmaSettings { lambdas: FEW_LAMBDAS.into(), ..DagmaSettings::short() };
    (dagma, DibsSettings::short())
}

/// Scores that are compared: the paper's, and the area under the curve of edge probabilities.
fn compared() -> impl Iterator<Item = &'static Convention> {
    conventions().iter().take(5)
}

/// Scores and seconds of one method on all data sets.
#[derive(Default)]
struct Found {
    /// On each data set, the answers among which each score may choose its best.
    scores: Vec<Vec<Scores>>,
    seconds: Vec<f64>,
}

impl Found {
    fn add(&mut self, scores: Vec<Scores>, seconds: f64) {
        self.scores.push(scores);
        self.seconds.push(seconds);
    }

    /// The mean over data sets; none where a data set has no answer.
    fn mean(&self, convention: &Convention) -> Option<f64> {
        let best = |answers: &Vec<Scores>| {
            let values = answers.iter().filter_map(|scores| (convention.value)(scores));
            values.reduce(match convention.better {
                Better::Higher => f64::max,
                Better::Lower => f64::min,
            })
        };
        let values: Vec<f64> = self.scores.iter().map(best).collect::<Option<_>>()?;
        mean(&values)
    }
}

/// None of none.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The paper's simulation at its largest, with the peers where there are any.
fn against_peers(report: &mut Report, device: &Cpu<f32>, options: &Options) -> Result<()> {
    let case = "dag-10";
    let sets = if options.quick { 1 } else { PEER_SETS };
    let (mut q, mut corrected) = (Found::default(), Found::default());
    let made: Vec<Simulated> = (1..=sets)
        .map(|seed| simulate(&SimulationSettings { seed, ..SimulationSettings::default() }))
        .collect::<Result<_, _>>()?;
    for (made, seed) in made.iter().zip(1..) {
        let dag = dag(made, Sem::default(), GraphPrior::Orders)?;
        let (check, seconds) = fit(device, &dag, &TrainSettings { seed, ..TrainSettings::blockwise() })?;
        let [by_q, by_evidence] = scores(&dag, &made.truth, &check)?;
        q.add(vec![by_q], seconds);
        corrected.add(vec![by_evidence], seconds);
    }
    let python = options.peer_python.as_deref();
    let peers = python.map(|python| ask(python, options, &made)).transpose()?;
    let (dagma, dibs) = peers.as_ref().map_or((None, None), |(dagma, dibs)| (Some(dagma), Some(dibs)));
    for (ours, by) in [(&q, ""), (&corrected, ", corrected")] {
        for (peer, name) in [(dagma, "DAGMA, best λ"), (dibs, "DiBS+")] {
            for convention in compared() {
                let what = format!("{}{by}; peer: {name}", convention.label);
                let target = if convention.better == Better::Higher { "> 1" } else { "< 1" };
                let ours = ours.mean(convention).unwrap_or(f64::NAN);
                let peer = peer.and_then(|peer| peer.mean(convention));
                report.push(Line { unit: "", ..Line::against(case, &what, ours, peer, target) })?;
            }
        }
    }
    let longest = q.seconds.iter().copied().fold(0.0, f64::max);
    for (peer, name) in [(dagma, "DAGMA, all λ"), (dibs, "DiBS+")] {
        let what = format!("a data set (longest {longest:.1}); peer: {name}");
        let (ours, peer) = (mean(&q.seconds).unwrap_or(f64::NAN), peer.and_then(|peer| mean(&peer.seconds)));
        report.push(Line { unit: "s", ..Line::against(case, &what, ours, peer, "ours ≤ 600 s") })?;
    }
    Ok(())
}

/// Probabilities of edges under q, and corrected, n × n row by row.
fn edges(dag: &Dag, check: &Check) -> Result<[Vec<f64>; 2]> {
    let blocks = check.blocks.as_ref().context("nodes are weighed one by one")?;
    let corrected: Vec<f64> = blocks.features.iter().map(|edge| edge.value).collect();
    Ok([dag.edge_matrix(&blocks.features_q), dag.edge_matrix(&corrected)])
}

/// What q says, and what the evidences of nodes make of it.
fn scores(dag: &Dag, truth: &Graph, check: &Check) -> Result<[Scores; 2]> {
    let [edges_q, edges] = edges(dag, check)?;
    let corrected = check.corrected_words();
    let corrected = corrected.iter().map(|(word, weight)| (&word[..], *weight));
    let learned = check.q_weights.iter().enumerate().map(|(row, &weight)| (check.draws.word(row), weight));
    Ok([
        Scores::of_posterior(truth, &edges_q, &dag.graphs(learned))?,
        Scores::of_posterior(truth, &edges, &dag.graphs(corrected))?,
    ])
}

/// DAGMA and DiBS+ on the same data, one after the other with all threads.
fn ask(python: &Path, options: &Options, made: &[Simulated]) -> Result<(Found, Found)> {
    let mut peers = Peers::start(python, options.threads)?;
    let (dagma_settings, dibs_settings) = peer_settings();
    let (mut dagma, mut dibs) = (Found::default(), Found::default());
    for (Simulated { table, truth }, seed) in made.iter().zip(1..) {
        let rows = table.rows();
        let found = peers.dagma(table, rows, seed, &dagma_settings)?;
        let path = found.path.into_iter().map(|point| Scores::of_samples(truth, &[(point.graph, 1.0)]));
        dagma.add(path.collect::<Result<_, _>>()?, found.cost.seconds);
        let found = peers.dibs(table, rows, seed, &dibs_settings)?;
        let scores = if found.plus.is_empty() { vec![] } else { vec![Scores::of_samples(truth, &found.plus)?] };
        dibs.add(scores, found.cost.seconds - found.compile_seconds);
    }
    Ok((dagma, dibs))
}

/// 20 nodes: how long, how much memory, and how good.
fn large(report: &mut Report, device: &Cpu<f32>, case: &str, sem: Sem, quick: bool) -> Result<()> {
    let rows = if quick { 100 } else { 500 };
    let settings = SimulationSettings { nodes: 20, rows, sem, edge_probability: 0.2, ..SimulationSettings::default() };
    let made = simulate(&settings)?;
    let dag = dag(&made, sem, GraphPrior::Orders)?;
    let mut train = TrainSettings::blockwise();
    if quick {
        train.steps /= 10;
    }
    let (check, seconds) = fit(device, &dag, &train)?;
    let [q, corrected] = scores(&dag, &made.truth, &check)?;
    for (scores, by) in [(q, ""), (corrected, ", corrected")] {
        for convention in compared() {
            let value = (convention.value)(&scores).unwrap_or(f64::NAN);
            report.push(Line::figure(case, &format!("{}{by}", convention.label), value, "", ""))?;
        }
    }
    report.push(Line::figure(case, "training and check", seconds, "s", "< 3600"))?;
    if let Some(peak) = peak_memory() {
        report.push(Line::figure(case, "peak memory of the process so far", peak, "MB", "< 4000"))?;
    }
    Ok(())
}

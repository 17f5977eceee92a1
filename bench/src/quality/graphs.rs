//! Causal graphs: against exact answers, and over 20 nodes.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use vti::check::{Check, CheckSettings, check_and_learn};
use vti::device::Cpu;
use vti::family::FamilySettings;
use vti::graph::Graph;
use vti::graph::metrics::{Convention, Scores, conventions};
use vti::problem::dag::simulate::{Simulated, SimulationSettings, simulate};
use vti::problem::dag::{Dag, DagSettings, GraphPrior, LinearEvidence, Noise, Sem, enumerate};
use vti::train::{Silent, TrainSettings, Trainer};

use super::{Figures, peak_memory};
use crate::Options;
use crate::report::{Line, Report};

/// Simulated data sets of each exact case.
const EXACT_SETS: u64 = 4;

/// What the cases are.
pub(super) fn notes() -> Vec<String> {
    vec![
        format!(
            "Graphs, exact: linear equations with known noise, {EXACT_SETS} simulated data sets (30 rows, then 300, and so on), \
             edge probabilities against those of all graphs enumerated; means over data sets of the largest error over all edges."
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
    let (_, check, _) = check_and_learn(fit.posterior, &CheckSettings::default(), None, &mut |_| true)?;
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

/// Scores that are compared: the paper's, and the area under the curve of edge probabilities.
fn compared() -> impl Iterator<Item = &'static Convention> {
    conventions().iter().take(5)
}

/// None of none.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
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

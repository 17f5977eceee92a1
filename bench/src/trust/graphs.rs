//! Causal graphs. Linear equations have evidences in closed form. Of non-linear ones the output weights are integrated out in closed
//! form too, given the hidden weights and the noise; the noise is summed over a grid, and hidden weights are drawn from the prior:
//! an answer that shares nothing with annealing, with flows or with their bounds.

use std::sync::Arc;

use anyhow::{Context, Result};
use vti::problem::dag::simulate::{SimulationSettings, simulate};
use vti::problem::dag::{
    Dag, DagSettings, Enumeration, GraphPrior, LinearEvidence, NodeData, Noise, Scaling, Sem, enumerate,
};
use vti::random::{Purpose, Stream};
use vti::stats::Estimate;
use vti::workers::Workers;

use super::brute::mean_of;
use super::known::{MIN_PROBABILITY, Plan, Question, Truth, exactly};

const KNOWN: Noise = Noise::Known { sigma: 1.0 };
const UNKNOWN: Noise = Noise::Unknown {};

/// Batches of draws whose differences are the error, and draws of each.
const BATCHES: usize = 16;
const DRAWS: usize = 4000;

/// Points of the grid of log σ, and how far it reaches from 0: columns have unit deviations, so σ is not much smaller than 1.
const GRID: usize = 49;
const REACH: f64 = 1.2;

/// Linear and non-linear equations.
pub(super) fn plans() -> Vec<Plan> {
    let linear = |nodes, rows, seed, noise, prior| {
        let name = format!("linear {nodes} x {rows}{}", if noise == KNOWN { "" } else { " unknown noise" });
        let simulation = SimulationSettings { nodes, rows, seed, sem: Sem::Linear {}, ..SimulationSettings::default() };
        let settings = DagSettings { sem: Sem::Linear {}, noise, prior, ..DagSettings::default() };
        plan("linear graph", name, move || Ok(simulate(&simulation)?.table), settings)
    };
    let mlp = |nodes, rows, hidden, noise| {
        let name =
            format!("mlp {nodes} x {rows} hidden {hidden}{}", if noise == KNOWN { "" } else { " unknown noise" });
        let sem = Sem::Mlp { hidden, bias: false };
        let table = move || Ok(chain(nodes, rows));
        plan("non-linear graph", name, table, DagSettings { sem, noise, ..DagSettings::default() })
    };
    vec![
        linear(3, 30, 1, KNOWN, GraphPrior::Orders),
        linear(3, 300, 2, UNKNOWN, GraphPrior::Graphs),
        linear(4, 30, 3, UNKNOWN, GraphPrior::Orders),
        linear(4, 100, 4, KNOWN, GraphPrior::Graphs),
        mlp(2, 20, 1, KNOWN),
        mlp(2, 100, 1, KNOWN),
        mlp(2, 100, 3, UNKNOWN),
        mlp(2, 100, 10, UNKNOWN),
        mlp(2, 400, 10, KNOWN),
        mlp(3, 30, 1, KNOWN),
        mlp(3, 30, 3, UNKNOWN),
        mlp(3, 60, 10, UNKNOWN),
        mlp(4, 20, 3, KNOWN),
        mlp(3, 30, 64, KNOWN),
    ]
}

fn plan(
    group: &'static str,
    name: String,
    table: impl Fn() -> Result<NodeData> + 'static,
    settings: DagSettings,
) -> Plan {
    let question = move || Ok(Question::Dag(Arc::new(Dag::new(table()?, settings.clone())?)));
    Plan { group, name, question: Box::new(question), log_evidence: None }
}

/// Each node follows the one before it with correlation 0.42, as a table of measurements scaled to unit deviations.
fn chain(nodes: usize, rows: usize) -> NodeData {
    let mut stream = Stream::new(9, Purpose::Other(15), nodes as u64, rows as u64);
    let mut columns: Vec<Vec<f64>> = vec![(0..rows).map(|_| stream.normal()).collect()];
    for node in 1..nodes {
        let next = columns[node - 1].iter().map(|x| 0.42 * x + 0.91 * stream.normal()).collect();
        columns.push(next);
    }
    let mut table = NodeData::new((1..=nodes).map(|node| format!("x{node}")).collect(), columns);
    table.scale(Scaling::Columns);
    table
}

/// By the sum over all graphs.
pub(super) fn truth(dag: &Dag, workers: &Workers) -> Result<Truth> {
    let DagSettings { sem, noise, weight_scale, .. } = dag.settings();
    match (sem, noise) {
        (Sem::Linear {}, Noise::Known { .. }) => of_enumeration(dag, &Enumeration::of(dag)?),
        (Sem::Linear {}, Noise::Unknown {}) => {
            let evidence = LinearEvidence::with_unknown_noise(dag.table(), *weight_scale)?;
            of_enumeration(dag, &enumerate(dag.prior(), |node, parents| evidence.log_evidence(node, parents))?)
        }
        (&Sem::Mlp { hidden, .. }, noise) => by_draws(dag, hidden, *noise, workers),
    }
}

fn of_enumeration(dag: &Dag, exact: &Enumeration) -> Result<Truth> {
    let nodes = dag.space().nodes();
    let off_diagonal = (0..nodes * nodes).filter(|place| place / nodes != place % nodes);
    let parts = off_diagonal.map(|place| exactly(exact.edges[place])).collect();
    let likely = exact.ranking().into_iter().take_while(|&place| exact.probabilities[place] >= MIN_PROBABILITY / 5.0);
    let model = |place: usize| -> Result<(String, Estimate)> {
        let word = dag.word(&exact.graphs[place]).context("graphs have words")?;
        Ok((word.to_string(), exactly(exact.probabilities[place])))
    };
    Ok(Truth { parts, models: likely.map(model).collect::<Result<_>>()? })
}

/// Errors are those of probabilities by one batch of draws and by another: all graphs share the evidences of nodes.
fn by_draws(dag: &Dag, hidden: usize, noise: Noise, workers: &Workers) -> Result<Truth> {
    let nodes = dag.space().nodes();
    let mut asked: Vec<(usize, u64, Vec<f64>)> = (0..nodes)
        .flat_map(|node| {
            (0..1u64 << nodes).filter(move |parents| parents >> node & 1 == 0).map(move |parents| (node, parents))
        })
        .map(|(node, parents)| (node, parents, Vec::new()))
        .collect();
    workers.for_each(&mut asked, |_, (node, parents, found)| {
        *found = (0..BATCHES as u64).map(|batch| log_evidence(dag, *node, *parents, hidden, noise, batch)).collect();
    });
    let logs = |node: usize, parents: u64| {
        asked.iter().find(|asked| (asked.0, asked.1) == (node, parents)).map_or(&[][..], |asked| &asked.2)
    };
    let all = enumerate(dag.prior(), |node, parents| mean_of(logs(node, parents)).value)?;
    // Moving the evidence of one node and one set of parents by its error moves all probabilities.
    let mut truth = of_enumeration(dag, &all)?;
    for (node, parents, found) in &asked {
        let se = mean_of(found).se;
        let moved = enumerate(dag.prior(), |other, set| {
            mean_of(logs(other, set)).value + if (other, set) == (*node, *parents) { se } else { 0.0 }
        })?;
        let moved = of_enumeration(dag, &moved)?;
        let add = |to: &mut Estimate, other: Option<&Estimate>| {
            let by = other.map_or(0.0, |other| other.value - to.value);
            to.se = f64::hypot(to.se, by);
        };
        truth.parts.iter_mut().zip(&moved.parts).for_each(|(part, moved)| add(part, Some(moved)));
        truth.models.iter_mut().for_each(|(word, model)| add(model, moved.models.get(word)));
    }
    Ok(truth)
}

/// `log E_{W¹} ∫ dσ p(σ) N(x_j; 0, σ² I + s² Φ Φᵀ)` with Φ = relu(X_pa W¹ᵀ), by some draws of W¹.
fn log_evidence(dag: &Dag, node: usize, parents: u64, hidden: usize, noise: Noise, batch: u64) -> f64 {
    let (table, scale) = (dag.table(), dag.settings().weight_scale);
    let inputs: Vec<&[f64]> =
        (0..table.columns.len()).filter(|from| parents >> from & 1 == 1).map(|from| &table.columns[from][..]).collect();
    let y = &table.columns[node][..];
    let units = if inputs.is_empty() { 0 } else { hidden };
    let draws = if units == 0 { 1 } else { DRAWS };
    let place = (node as u64) << 32 | parents;
    let mut stream = Stream::new(1 + batch, Purpose::Other(16), place, hidden as u64);
    let sigmas: Vec<(f64, f64)> = match noise {
        Noise::Known { sigma } => vec![(sigma, 0.0)],
        Noise::Unknown {} => {
            let step = 2.0 * REACH / (GRID - 1) as f64;
            let at = |point: usize| -REACH + step * point as f64;
            let log = |z: f64| step.ln() - 0.5 * z * z - 0.5 * std::f64::consts::TAU.ln();
            (0..GRID).map(|point| (at(point).exp(), log(at(point)))).collect()
        }
    };
    let mut features = vec![vec![0.0; y.len()]; units];
    let mut logs = Vec::with_capacity(draws * sigmas.len());
    for _ in 0..draws {
        for feature in &mut features {
            let weights: Vec<f64> = inputs.iter().map(|_| scale * stream.normal()).collect();
            for (row, value) in feature.iter_mut().enumerate() {
                let sum: f64 = inputs.iter().zip(&weights).map(|(input, weight)| input[row] * weight).sum();
                *value = scale * sum.max(0.0);
            }
        }
        let fit = Ridge::new(&features, y);
        logs.extend(sigmas.iter().map(|&(sigma, log)| log + fit.log_marginal(sigma)));
    }
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + (logs.iter().map(|log| (log - most).exp()).sum::<f64>() / draws as f64).ln()
}

/// What the marginal density of y with standard normal weights of features needs.
struct Ridge {
    rows: f64,
    squares: f64,
    products: Vec<f64>,
    gram: Vec<Vec<f64>>,
}

impl Ridge {
    fn new(features: &[Vec<f64>], y: &[f64]) -> Self {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        Self {
            rows: y.len() as f64,
            squares: dot(y, y),
            products: features.iter().map(|feature| dot(feature, y)).collect(),
            gram: (0..features.len()).map(|i| (0..=i).map(|j| dot(&features[i], &features[j])).collect()).collect(),
        }
    }

    /// `log N(y; 0, σ² I + Φ Φᵀ)`, with A = I + ΦᵀΦ/σ² = L Lᵀ: |σ² I + ΦΦᵀ| = σ²ⁿ |A| and
    /// yᵀ(…)⁻¹y = (yᵀy − |L⁻¹ Φᵀy|²/σ²)/σ².
    fn log_marginal(&self, sigma: f64) -> f64 {
        let (units, variance) = (self.products.len(), sigma * sigma);
        let mut lower = vec![vec![0.0; units]; units];
        let (mut explained, mut log_determinant) = (0.0, 0.0);
        let mut solved = vec![0.0; units];
        for i in 0..units {
            for j in 0..=i {
                let own = self.gram[i][j] / variance + if i == j { 1.0 } else { 0.0 };
                let rest: f64 = own - (0..j).map(|k| lower[i][k] * lower[j][k]).sum::<f64>();
                lower[i][j] = if i == j { rest.sqrt() } else { rest / lower[j][j] };
            }
            let before: f64 = (0..i).map(|k| lower[i][k] * solved[k]).sum();
            solved[i] = (self.products[i] - before) / lower[i][i];
            explained += solved[i] * solved[i];
            log_determinant += 2.0 * lower[i][i].ln();
        }
        let constant = self.rows * (variance.ln() + std::f64::consts::TAU.ln());
        -0.5 * (constant + log_determinant + (self.squares - explained / variance) / variance)
    }
}

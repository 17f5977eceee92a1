//! What a page says about causal graphs.

use vti_report::{BestGraph, Better, Comparison, Effect, GraphSection, Metric, OrderStatistics, Report, Truth};

use super::{MODELS, model_row, pairs, thin};
use crate::question;
use crate::samples::{Samples, quantiles};
use crate::summary::{BetterWord, DagFound, EdgesSummary, NamedEdge, Summary, TruthSummary};

/// What was found about causal graphs.
pub(super) fn dag(summary: &Summary, found: &DagFound, samples: &Samples) -> Report {
    let spaced = |label: &str| label.replace('→', " → ");
    let linear = found.coefficients.is_some();
    Report {
        title: format!("What causes what among {} variables?", found.edges.nodes.len()),
        subtitle: format!("{} rows, {} nodes", summary.data.rows, found.edges.nodes.len()),
        models: summary.models.iter().take(MODELS).map(|model| model_row(spaced(&model.label), model)).collect(),
        pairs: if linear { pairs(summary, samples, |model| spaced(&model.label)) } else { None },
        graph: Some(section(found, samples)),
        ..Report::default()
    }
}

fn section(found: &DagFound, samples: &Samples) -> GraphSection {
    let EdgesSummary { nodes: names, .. } = &found.edges;
    let nodes = names.len();
    let comparison = |from: usize, to: usize| {
        let edge = found.edges.edge(from, to);
        Comparison { q: edge.q, corrected: edge.corrected, se: edge.se, exact: edge.exact }
    };
    let numbered = |edges: &[NamedEdge]| numbered(names, edges);
    let graph = &found.graph;
    GraphSection {
        names: names.clone(),
        edges: (0..nodes).map(|from| (0..nodes).map(|to| comparison(from, to)).collect()).collect(),
        effects: if found.coefficients.is_some() { effects(names, samples) } else { Vec::new() },
        best: BestGraph {
            edges: numbered(&graph.most_probable),
            directed: numbered(&graph.cpdag.directed),
            undirected: numbered(&graph.cpdag.undirected),
        },
        order: OrderStatistics {
            mean_position: graph.mean_position.0.iter().map(|(_, position)| *position).collect(),
            parents: graph.parents.0.iter().map(|(_, parents)| *parents).collect(),
            ancestor: graph.ancestor.clone(),
            edge_counts: graph.edge_counts.clone(),
        },
        truth: found.truth.as_ref().map(|found| truth(found, numbered(&found.edges))),
    }
}

/// Edges by the numbers of their ends.
fn numbered(names: &[String], edges: &[NamedEdge]) -> Vec<(usize, usize)> {
    let place = |name: &String| names.iter().position(|other| other == name);
    edges.iter().filter_map(|[from, to]| Some((place(from)?, place(to)?))).collect()
}

/// Draws that an effect is told from at most.
const DRAWS: usize = 4000;

/// Weights of linear equations, given that the edge is there.
fn effects(names: &[String], samples: &Samples) -> Vec<Effect> {
    let weights = samples.weights();
    let effect = |(from, to): (usize, usize)| {
        let name = format!("{}→{}", names[from], names[to]);
        let parameter = samples.names.iter().position(|other| *other == name)?;
        let rows: Vec<usize> =
            (0..samples.len()).filter(|&row| weights[row] > 0.0 && samples.value(row, parameter).is_some()).collect();
        let rows = thin(&rows, &weights, DRAWS);
        let values: Vec<f64> = rows.iter().filter_map(|&row| samples.value(row, parameter)).collect();
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let mut pairs: Vec<(f64, f64)> = values.into_iter().map(|value| (value, 1.0)).collect();
        let [low, high] = quantiles(&mut pairs, [0.025, 0.975]);
        Some(Effect { from, to, text: format!("weight {mean:.3}, 95 % interval {low:.3} to {high:.3}") })
    };
    question::pairs(names.len()).filter_map(effect).collect()
}

fn truth(found: &TruthSummary, edges: Vec<(usize, usize)>) -> Truth {
    let name = std::path::Path::new(&found.path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let metric = |metric: &crate::summary::MetricSummary| Metric {
        name: metric.label.clone(),
        note: metric.meaning.clone(),
        better: match metric.better {
            BetterWord::Higher => Better::Higher,
            BetterWord::Lower => Better::Lower,
        },
        value: metric.corrected.unwrap_or(f64::NAN),
        baselines: metric.baselines.iter().map(|value| value.unwrap_or(f64::NAN)).collect(),
    };
    Truth {
        name,
        edges,
        baselines: found.baselines.iter().map(|baseline| baseline.name.clone()).collect(),
        metrics: found.metrics.iter().map(metric).collect(),
    }
}

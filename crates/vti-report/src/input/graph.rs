//! What a page says about causal graphs. Everywhere `[i][j]` speaks of the edge from node i to node j.

use serde::{Deserialize, Serialize};

use super::Comparison;

/// The posterior over causal graphs. Lists that are too short and indices of nodes that do not exist are shown as unknown
/// or left out, never an error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GraphSection {
    /// Names of the nodes, in the order of the data.
    pub names: Vec<String>,
    /// `edges[i][j]`: how probable i → j is. The diagonal is not read. The probability that i and j are not joined is what
    /// both directions leave of 1.
    pub edges: Vec<Vec<Comparison>>,
    /// What is known about the effects of some edges.
    pub effects: Vec<Effect>,
    /// The most probable graph.
    pub best: BestGraph,
    /// Where the nodes stand and how many edges there are.
    pub order: OrderStatistics,
    /// The graph that made the data, where known, and how far the answer is from it.
    pub truth: Option<Truth>,
}

/// What is known about the effect of an edge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// The cause.
    pub from: usize,
    /// What it acts on.
    pub to: usize,
    /// One line, e.g. "weight 0.8, 95 % interval 0.6 to 1.0".
    pub text: String,
}

/// The most probable graph and its equivalence class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BestGraph {
    /// Its edges, (from, to). It has no cycle.
    pub edges: Vec<(usize, usize)>,
    /// Edges of its CPDAG whose direction is the same in all Markov equivalent graphs, (from, to).
    pub directed: Vec<(usize, usize)>,
    /// Edges of its CPDAG that point either way in some Markov equivalent graph, each once.
    pub undirected: Vec<(usize, usize)>,
}

/// Where the nodes stand and how many edges there are; corrected averages over graphs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OrderStatistics {
    /// Mean position of each node in the order of causes before effects, from 0 to the number of nodes − 1.
    pub mean_position: Vec<f64>,
    /// Expected number of parents of each node.
    pub parents: Vec<f64>,
    /// `ancestor[i][j]`: probability that a directed path leads from i to j.
    pub ancestor: Vec<Vec<f64>>,
    /// Numbers of edges and their probabilities, ascending.
    pub edge_counts: Vec<(usize, f64)>,
}

/// A known graph and the distance of the answer from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Truth {
    /// Where it comes from, e.g. "truth.csv"; may be empty.
    pub name: String,
    /// Its edges, (from, to). It may have cycles: published ones do.
    pub edges: Vec<(usize, usize)>,
    /// Names of the trivial answers that metrics are compared with, e.g. "no edges", "every edge at 0.5".
    pub baselines: Vec<String>,
    /// The metrics.
    pub metrics: Vec<Metric>,
}

/// One way to measure the distance from the truth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Its name with its convention, e.g. "SHD, a reversed edge counts once".
    pub name: String,
    /// What it measures and how, in a sentence; may be empty.
    pub note: String,
    /// Which values are good.
    pub better: Better,
    /// Its value for this answer.
    pub value: f64,
    /// Its values for the trivial answers, in the order of [`Truth::baselines`].
    pub baselines: Vec<f64>,
}

/// Which values of a metric are good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// High ones.
    #[default]
    Higher,
    /// Low ones.
    Lower,
}

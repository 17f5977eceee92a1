//! What a summary says about causal graphs. Everywhere `[i][j]` is about the edge from node i to node j.

use serde::{Deserialize, Serialize};
use vti::graph::metrics::Better;

use super::{Coefficient, Inclusion, Ordered};
use crate::question::pairs;

/// What causes what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DagFound {
    pub(crate) edges: EdgesSummary,
    pub(crate) graph: GraphSummary,
    /// Where a truth was given.
    pub(crate) truth: Option<TruthSummary>,
    /// Weights and noise of linear equations.
    pub(crate) coefficients: Option<Ordered<Coefficient>>,
}

/// How probable edges are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EdgesSummary {
    pub(crate) nodes: Vec<String>,
    pub(crate) q: Vec<Vec<f64>>,
    pub(crate) corrected: Vec<Vec<f64>>,
    /// Standard errors of `corrected`.
    pub(crate) se: Vec<Vec<f64>>,
    /// Where the exact answer is known.
    pub(crate) exact: Option<Vec<Vec<f64>>>,
}

/// An edge with all that is known about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) q: f64,
    pub(crate) corrected: f64,
    pub(crate) se: f64,
    /// The probability of the edge in the other direction, corrected.
    pub(crate) reverse: f64,
    /// The probability that the nodes are not joined, corrected.
    pub(crate) none: f64,
    pub(crate) exact: Option<f64>,
}

impl EdgesSummary {
    /// From probabilities of all edges, in the order of a space's features.
    pub(crate) fn new(names: &[String], edges: &[Inclusion]) -> Self {
        let nodes = names.len();
        let matrix = |of: &dyn Fn(&Inclusion) -> f64| {
            let mut matrix = vec![vec![0.0; nodes]; nodes];
            pairs(nodes).zip(edges).for_each(|((from, to), edge)| matrix[from][to] = of(edge));
            matrix
        };
        let known = edges.iter().all(|edge| edge.exact.is_some());
        Self {
            nodes: names.to_vec(),
            q: matrix(&|edge| edge.q),
            corrected: matrix(&|edge| edge.corrected),
            se: matrix(&|edge| edge.se),
            exact: known.then(|| matrix(&|edge| edge.exact.unwrap_or(f64::NAN))),
        }
    }

    pub(crate) fn edge(&self, from: usize, to: usize) -> Edge {
        let (corrected, reverse) = (self.corrected[from][to], self.corrected[to][from]);
        Edge {
            from,
            to,
            q: self.q[from][to],
            corrected,
            se: self.se[from][to],
            reverse,
            none: (1.0 - corrected - reverse).clamp(0.0, 1.0),
            exact: self.exact.as_ref().map(|exact| exact[from][to]),
        }
    }

    /// All edges there could be, most probable first.
    pub(crate) fn ranked(&self) -> Vec<Edge> {
        let mut edges: Vec<Edge> = pairs(self.nodes.len()).map(|(from, to)| self.edge(from, to)).collect();
        edges.sort_by(|a, b| b.corrected.total_cmp(&a.corrected));
        edges
    }
}

/// An edge by the names of its ends.
pub(crate) type NamedEdge = [String; 2];

/// What graphs have in common; corrected averages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GraphSummary {
    pub(crate) most_probable: Vec<NamedEdge>,
    /// The Markov equivalence class of the most probable graph.
    pub(crate) cpdag: CpdagSummary,
    pub(crate) expected_edges: f64,
    /// Numbers of edges with their probabilities.
    pub(crate) edge_counts: Vec<(usize, f64)>,
    /// Expected number of parents.
    pub(crate) parents: Ordered<f64>,
    /// Mean place in the order of causes before effects, from 0.
    pub(crate) mean_position: Ordered<f64>,
    /// Probability that a directed path leads from one node to the other.
    pub(crate) ancestor: Vec<Vec<f64>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CpdagSummary {
    /// Edges of the same direction in all equivalent graphs.
    pub(crate) directed: Vec<NamedEdge>,
    /// Edges of either direction, each once.
    pub(crate) undirected: Vec<NamedEdge>,
}

/// How far the answer is from a known graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TruthSummary {
    pub(crate) path: String,
    pub(crate) edges: Vec<NamedEdge>,
    /// Answers that use no data.
    pub(crate) baselines: Vec<BaselineSummary>,
    pub(crate) metrics: Vec<MetricSummary>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BaselineSummary {
    pub(crate) name: String,
    pub(crate) meaning: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MetricSummary {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) meaning: String,
    pub(crate) better: BetterWord,
    /// None where it has no meaning.
    pub(crate) q: Option<f64>,
    pub(crate) corrected: Option<f64>,
    /// In the order of the baselines.
    pub(crate) baselines: Vec<Option<f64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BetterWord {
    Higher,
    Lower,
}

impl From<Better> for BetterWord {
    fn from(better: Better) -> Self {
        match better {
            Better::Higher => Self::Higher,
            Better::Lower => Self::Lower,
        }
    }
}

//! Scores of nodes and sets of parents, and the distribution over graphs that follows from them.

use super::orders::Scores;
use super::sums::Sums;
use crate::engine::Engine;
use crate::graph::nodes_of;
use crate::problem::Topology;

/// A distribution over graphs that is a product over nodes: `q ∝ exp Σ_j s_j(π_j)`.
#[derive(Clone, Debug, PartialEq)]
pub struct ParentScores {
    /// Over pairs of orders and graphs, or over graphs.
    pub topology: Topology,
    /// One for each node.
    pub nodes: Vec<NodeScores>,
}

/// The sets of parents that a node may have.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeScores {
    /// The sets, a bit for each parent.
    pub sets: Vec<u64>,
    /// Their scores s_j(π), log prior included.
    pub logits: Vec<f64>,
    /// Their part of the log prior.
    pub log_prior: Vec<f64>,
}

/// Probabilities that follow from scores.
#[derive(Clone, Debug, PartialEq)]
pub struct ParentProbabilities {
    /// For each node, the probability of each of its sets of parents.
    pub nodes: Vec<Vec<f64>>,
    /// Probability of each edge, n × n row by row: `[i * n + j]` is that of i → j.
    pub edges: Vec<f64>,
    /// The logarithm of the sum over all graphs.
    pub log_total: f64,
}

impl ParentScores {
    /// Exact probabilities, by sums over all orders and graphs: for up to 20 nodes, or 12 where graphs count, in reasonable
    /// time.
    pub fn probabilities<E: Engine>(&self, engine: &E) -> ParentProbabilities {
        let count = self.nodes.len();
        if count == 0 {
            return ParentProbabilities { nodes: Vec::new(), edges: Vec::new(), log_total: 0.0 };
        }
        let mut sums = Sums::new(self.topology, count);
        let scores = |node: usize| Scores { sets: &self.nodes[node].sets, logits: &self.nodes[node].logits };
        sums.update(engine, scores);
        let nodes = sums.marginals(engine, scores);
        let mut edges = vec![0.0; count * count];
        for (to, (node, probabilities)) in self.nodes.iter().zip(&nodes).enumerate() {
            for (&set, probability) in node.sets.iter().zip(probabilities) {
                nodes_of(set).for_each(|from| edges[from * count + to] += probability);
            }
        }
        // Rounding may take a certain edge beyond 1.
        edges.iter_mut().for_each(|edge| *edge = edge.min(1.0));
        ParentProbabilities { nodes, edges, log_total: sums.log_total() }
    }
}

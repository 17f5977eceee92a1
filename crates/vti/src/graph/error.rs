//! Graphs that cannot be.

use thiserror::Error;

/// A graph that cannot be, or about which the question makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// No node at all.
    #[error("a graph needs at least one node")]
    NoNodes,
    /// More nodes than there may be.
    #[error("{nodes} nodes are too many, at most {most} are possible here")]
    TooManyNodes {
        /// How many there are.
        nodes: usize,
        /// How many there may be.
        most: usize,
    },
    /// An edge of a node that does not exist.
    #[error("node {node} does not exist, there are {nodes}, counted from 0")]
    UnknownNode {
        /// The node.
        node: usize,
        /// How many there are.
        nodes: usize,
    },
    /// An edge from a node to itself.
    #[error("node {node} points at itself")]
    Loop {
        /// The node.
        node: usize,
    },
    /// A cycle where none is allowed.
    #[error("the graph has a cycle")]
    Cycle,
    /// Graphs or matrices over different numbers of nodes.
    #[error("a graph over {found} nodes is compared with one over {expected}")]
    Nodes {
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// A matrix of another size.
    #[error("an edge-probability matrix of {found} entries, but {nodes} nodes need {}", nodes * nodes)]
    Matrix {
        /// Its entries.
        found: usize,
        /// The nodes.
        nodes: usize,
    },
    /// A number that is no probability.
    #[error("the probability of edge {from} → {to} is not between 0 and 1")]
    Probability {
        /// Where the edge starts.
        from: usize,
        /// Where it ends.
        to: usize,
    },
    /// A density of edges that is no probability.
    #[error("the probability of an edge must be between 0 and 1")]
    EdgeProbability,
    /// Weights that are negative, not finite, or all zero.
    #[error("weights of graphs must be non-negative, finite and not all zero")]
    Weights,
}

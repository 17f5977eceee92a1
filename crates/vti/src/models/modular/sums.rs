//! Sums over everything that q is a distribution of.

use super::layers::{self, LayerSums, draw_order};
use super::orders::{self, OrderSums, Scores};
use super::scores::Ranked;
use crate::graph::Graph;
use crate::problem::Topology;
use crate::random::Stream;
use crate::workers::Workers;

/// Sums over pairs of an order and a graph along it, or over graphs.
pub(super) enum Sums {
    Orders(OrderSums),
    Graphs(LayerSums),
}

impl Sums {
    /// The most nodes that sums can be over.
    pub(super) fn most_nodes(topology: Topology) -> usize {
        match topology {
            Topology::Orders => orders::MOST_NODES,
            Topology::Graphs => layers::MOST_NODES,
        }
    }

    pub(super) fn new(topology: Topology, nodes: usize) -> Self {
        match topology {
            Topology::Orders => Self::Orders(OrderSums::new(nodes)),
            Topology::Graphs => Self::Graphs(LayerSums::new(nodes)),
        }
    }

    pub(super) fn update<'s>(&mut self, workers: &Workers, scores: impl Fn(usize) -> Scores<'s> + Sync) {
        match self {
            Self::Orders(sums) => sums.update(workers, scores),
            Self::Graphs(sums) => sums.update(workers, scores),
        }
    }

    /// The logarithm of the sum over everything.
    pub(super) fn log_total(&self) -> f64 {
        match self {
            Self::Orders(sums) => sums.log_total(),
            Self::Graphs(sums) => sums.log_total(),
        }
    }

    /// The probability of each set of parents of each node.
    pub(super) fn marginals<'s>(
        &self,
        workers: &Workers,
        scores: impl Fn(usize) -> Scores<'s> + Sync,
    ) -> Vec<Vec<f64>> {
        match self {
            Self::Orders(sums) => sums.marginals(workers, scores),
            Self::Graphs(sums) => sums.marginals(workers, scores),
        }
    }

    /// Draws a graph and an order of it; the logarithm of their probability.
    pub(super) fn draw(
        &self,
        stream: &mut Stream,
        nodes: &[Ranked<'_>],
        parents: &mut [u64],
        order: &mut [u16],
    ) -> f64 {
        match self {
            Self::Orders(sums) => {
                sums.draw_order(stream, order);
                let (mut before, mut sum) = (0, 0.0);
                for &node in &*order {
                    let node = usize::from(node);
                    let own = &nodes[node];
                    let index = own.draw(stream, sums.local(node, before), |parents| parents & !before == 0);
                    parents[node] = own.sets[index];
                    sum += own.logits[index];
                    before |= 1 << node;
                }
                sum - sums.log_total()
            }
            Self::Graphs(sums) => {
                let sum = sums.draw(stream, nodes, parents);
                sum - sums.log_total() - draw_order(stream, parents, order)
            }
        }
    }

    /// What is subtracted from the logits of a word: log total, and where graphs are what counts, log of their orders.
    pub(super) fn log_share(&self, parents: &[u64]) -> f64 {
        let orders = match self {
            Self::Orders(_) => 0.0,
            Self::Graphs(_) => {
                let graph = Graph::from_parents(parents.to_vec());
                graph.ok().and_then(|graph| graph.log_orders()).unwrap_or(f64::INFINITY)
            }
        };
        self.log_total() + orders
    }

    /// Updates after which sums are made again: with many nodes they take longer than a step of everything else.
    pub(super) fn patience(&self, nodes: usize) -> u64 {
        let terms = match self {
            Self::Orders(_) => (nodes as u64) << nodes,
            Self::Graphs(_) => 1 << (2 * nodes).saturating_sub(2),
        };
        (terms >> 17).max(1)
    }
}

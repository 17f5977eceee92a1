//! Exact sums over all graphs of weights that are products over nodes: `exp Σ_j s_j(π_j)`, with a score s_j for every node and
//! each set π_j of parents that it may have.

mod layers;
mod orders;

use self::layers::{LayerSums, draw_order};
use self::orders::{OrderSums, choose};
use super::{Graph, nodes_of};
use crate::random::Stream;
use crate::workers::Workers;

/// What sums are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumOver {
    /// Pairs of an order and a graph along it: graphs with many orders weigh more.
    Orders,
    /// Graphs, each once.
    Graphs,
}

impl SumOver {
    /// The most nodes over which a sum takes a reasonable time.
    pub fn max_nodes(self) -> usize {
        match self {
            Self::Orders => orders::MAX_NODES,
            Self::Graphs => layers::MAX_NODES,
        }
    }
}

/// Scores of a node: the sets of parents it may have, ascending, with a bit for each parent, and the score of each.
#[derive(Clone, Copy, Debug)]
pub struct SetScores<'a> {
    /// The sets.
    pub sets: &'a [u64],
    /// Their scores.
    pub scores: &'a [f64],
}

/// Scores of a node with the places of its sets, best first: so that draws find theirs early.
#[derive(Clone, Copy, Debug)]
pub struct RankedSets<'a> {
    /// The sets and their scores.
    pub of: SetScores<'a>,
    /// Their places, best first.
    pub ranked: &'a [u32],
}

impl RankedSets<'_> {
    /// Draws one of the sets that are `possible`, the sum of whose weights is `exp log_total`; its place.
    fn draw(&self, stream: &mut Stream, log_total: f64, possible: impl Fn(u64) -> bool) -> usize {
        let SetScores { sets, scores } = self.of;
        let possible = self.ranked.iter().map(|&index| index as usize).filter(|&index| possible(sets[index]));
        let shares = possible.map(|index| (index, (scores[index] - log_total).exp()));
        choose(stream.uniform(), shares).unwrap_or(0)
    }
}

/// Sums over pairs of an order and a graph along it, or over graphs.
#[derive(Debug)]
pub struct GraphSums(Sums);

#[derive(Debug)]
enum Sums {
    Orders(OrderSums),
    Graphs(LayerSums),
}

impl GraphSums {
    /// For so many nodes, at most [`SumOver::max_nodes`]; without scores yet.
    pub fn new(over: SumOver, nodes: usize) -> Self {
        Self(match over {
            SumOver::Orders => Sums::Orders(OrderSums::new(nodes)),
            SumOver::Graphs => Sums::Graphs(LayerSums::new(nodes)),
        })
    }

    /// Sums up the scores of all nodes.
    pub fn update(&mut self, workers: &Workers, nodes: &[SetScores<'_>]) {
        match &mut self.0 {
            Sums::Orders(sums) => sums.update(workers, nodes),
            Sums::Graphs(sums) => sums.update(workers, nodes),
        }
    }

    /// The logarithm of the sum over everything.
    pub fn log_total(&self) -> f64 {
        match &self.0 {
            Sums::Orders(sums) => sums.log_total(),
            Sums::Graphs(sums) => sums.log_total(),
        }
    }

    /// The probability of each set of parents of each node, in the order of its scores.
    pub fn marginals(&self, workers: &Workers, nodes: &[SetScores<'_>]) -> Vec<Vec<f64>> {
        match &self.0 {
            Sums::Orders(sums) => sums.marginals(workers, nodes),
            Sums::Graphs(sums) => sums.marginals(workers, nodes),
        }
    }

    /// Draws the parents of all nodes and an order of them; the logarithm of the probability of both.
    pub fn draw(&self, stream: &mut Stream, nodes: &[RankedSets<'_>], parents: &mut [u64], order: &mut [u16]) -> f64 {
        match &self.0 {
            Sums::Orders(sums) => {
                sums.draw_order(stream, order);
                let (mut before, mut sum) = (0, 0.0);
                for &node in &*order {
                    let node = usize::from(node);
                    let own = &nodes[node];
                    let index = own.draw(stream, sums.local(node, before), |parents| parents & !before == 0);
                    parents[node] = own.of.sets[index];
                    sum += own.of.scores[index];
                    before |= 1 << node;
                }
                sum - sums.log_total()
            }
            Sums::Graphs(sums) => {
                let sum = sums.draw(stream, nodes, parents);
                sum - sums.log_total() - draw_order(stream, parents, order)
            }
        }
    }

    /// Terms of the sums: with many nodes, making them anew takes longer than everything else.
    pub fn terms(&self) -> u64 {
        match &self.0 {
            Sums::Orders(sums) => (sums.nodes() as u64) << sums.nodes(),
            Sums::Graphs(sums) => 1 << (2 * sums.nodes()).saturating_sub(2),
        }
    }
}

/// The logarithm of the number of topological orders of a graph, given the parents of each node; −∞ if they form a cycle.
pub fn log_orders(parents: &[u64]) -> f64 {
    let graph = Graph::from_parents(parents.to_vec()).ok();
    graph.and_then(|graph| graph.log_orders()).unwrap_or(f64::NEG_INFINITY)
}

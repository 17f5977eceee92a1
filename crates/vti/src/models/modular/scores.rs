//! Scores of nodes and sets of parents, and the distribution over graphs that follows from them.

use super::orders::{Scores, choose};
use super::sums::Sums;
use crate::graph::nodes_of;
use crate::models::Draw;
use crate::problem::Topology;
use crate::random::Stream;
use crate::space::{Dags, ModelSpace};
use crate::workers::Workers;

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

/// Sets of parents of a node, ascending, with their logits and with their places, most probable first.
#[derive(Clone, Copy)]
pub(super) struct Ranked<'a> {
    pub(super) sets: &'a [u64],
    pub(super) logits: &'a [f64],
    pub(super) ranked: &'a [u32],
}

impl Ranked<'_> {
    /// Draws one of the sets that are `possible`, the sum of whose weights is `exp log_total`; its place.
    pub(super) fn draw(&self, stream: &mut Stream, log_total: f64, possible: impl Fn(u64) -> bool) -> usize {
        let sets = self.ranked.iter().map(|&index| index as usize).filter(|&index| possible(self.sets[index]));
        let shares = sets.map(|index| (index, (self.logits[index] - log_total).exp()));
        choose(stream.uniform(), shares).unwrap_or(0)
    }
}

/// Sorts places by their logits.
pub(super) fn rank(logits: &[f64], ranked: &mut [u32]) {
    let key = |&place: &u32| logits[place as usize];
    ranked.sort_unstable_by(|a, b| key(b).total_cmp(&key(a)).then(a.cmp(b)));
}

/// Draws words from the sums over graphs and orders; their log probabilities.
pub(super) fn draw_words(
    workers: &Workers,
    (space, sums): (&Dags, &Sums),
    nodes: &[Ranked<'_>],
    draw: Draw,
    words: &mut [u16],
    log_q: &mut [f64],
) {
    let width = space.arities().len();
    let mut rows: Vec<(&mut [u16], &mut f64)> = words.chunks_exact_mut(width).zip(log_q).collect();
    workers.for_each(&mut rows, |row, (word, log_q)| {
        let mut stream = draw.row(row);
        let (mut order, mut parents) = (vec![0u16; nodes.len()], vec![0u64; nodes.len()]);
        **log_q = sums.draw(&mut stream, nodes, &mut parents, &mut order);
        space.write_word(&order, &parents, word);
    });
}

impl ParentScores {
    /// Exact probabilities, by sums over all orders and graphs: for up to 20 nodes, or 12 where graphs count, in reasonable
    /// time.
    pub fn probabilities(&self, workers: &Workers) -> ParentProbabilities {
        let count = self.nodes.len();
        if count == 0 {
            return ParentProbabilities { nodes: Vec::new(), edges: Vec::new(), log_total: 0.0 };
        }
        let sums = self.sums(workers);
        let nodes = sums.marginals(workers, |node| self.nodes[node].scores());
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

    /// Independent draws of words of the space whose scores these are.
    pub fn draw(&self, workers: &Workers, space: &Dags, draw: Draw, count: usize) -> Vec<u16> {
        let mut words = vec![0; count * space.arities().len()];
        let ranked: Vec<Vec<u32>> = self.nodes.iter().map(NodeScores::ranked).collect();
        let nodes = self.nodes.iter().zip(&ranked);
        let nodes: Vec<Ranked<'_>> =
            nodes.map(|(node, ranked)| Ranked { sets: &node.sets, logits: &node.logits, ranked }).collect();
        draw_words(workers, (space, &self.sums(workers)), &nodes, draw, &mut words, &mut vec![0.0; count]);
        words
    }

    fn sums(&self, workers: &Workers) -> Sums {
        let mut sums = Sums::new(self.topology, self.nodes.len());
        sums.update(workers, |node| self.nodes[node].scores());
        sums
    }
}

impl NodeScores {
    fn scores(&self) -> Scores<'_> {
        Scores { sets: &self.sets, logits: &self.logits }
    }

    fn ranked(&self) -> Vec<u32> {
        let mut ranked: Vec<u32> = (0..self.sets.len() as u32).collect();
        rank(&self.logits, &mut ranked);
        ranked
    }
}

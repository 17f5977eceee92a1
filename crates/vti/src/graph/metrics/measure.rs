//! Distances of one graph, or one matrix, from another.

use super::super::{Graph, low_bits};

/// All places off the diagonal, row by row.
pub(super) fn entries(nodes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..nodes).flat_map(move |from| (0..nodes).map(move |to| (from, to))).filter(|(from, to)| from != to)
}

/// The graph of all edges that are more probable than a threshold.
pub(super) fn likely(nodes: usize, edges: &[f64], threshold: f64) -> Graph {
    let parents = |to: usize| {
        let is_parent = |from: &usize| *from != to && edges[from * nodes + to] > threshold;
        (0..nodes).filter(is_parent).fold(0, |mask, from| mask | 1 << from)
    };
    Graph { parents: (0..nodes).map(parents).collect() }
}

/// The number of entries in which two adjacency matrices differ: a structural Hamming distance with a reversed edge counted
/// as 2.
pub fn shd_entries(a: &Graph, b: &Graph) -> f64 {
    f64::from((0..a.nodes()).map(|node| differing(a, b, node).count_ones()).sum::<u32>())
}

/// The number of pairs of nodes between which two graphs differ: a structural Hamming distance with a reversed edge counted
/// as 1.
pub fn shd_pairs(a: &Graph, b: &Graph) -> f64 {
    let differs = |from: usize, to: usize| differing(a, b, to) >> from & 1 == 1;
    let pairs = (0..a.nodes()).flat_map(|from| (0..from).map(move |to| (from, to)));
    pairs.filter(|&(from, to)| differs(from, to) || differs(to, from)).count() as f64
}

/// Parents of a node in one of two graphs, but not in both.
fn differing(a: &Graph, b: &Graph, node: usize) -> u64 {
    a.parents(node) ^ b.parents(node)
}

/// How many edges a graph has right and wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confusion {
    /// Edges of both.
    pub true_positives: u32,
    /// Edges that the truth does not have.
    pub false_positives: u32,
    /// Edges that only the truth has.
    pub false_negatives: u32,
    /// Pairs of different nodes without an edge in either.
    pub true_negatives: u32,
}

impl Confusion {
    /// Of a graph against a truth over as many nodes.
    pub fn new(truth: &Graph, graph: &Graph) -> Self {
        let n = truth.nodes();
        let count = |of: fn(u64, u64) -> u64| {
            let places = |node: usize| low_bits(n) & !(1 << node);
            (0..n).map(|node| (of(truth.parents(node), graph.parents(node)) & places(node)).count_ones()).sum()
        };
        Self {
            true_positives: count(|truth, graph| truth & graph),
            false_positives: count(|truth, graph| !truth & graph),
            false_negatives: count(|truth, graph| truth & !graph),
            true_negatives: count(|truth, graph| !truth & !graph),
        }
    }

    /// The same with the n entries of the diagonal among those without an edge.
    pub(super) fn with_diagonal(self, nodes: usize) -> Self {
        Self { true_negatives: self.true_negatives + nodes as u32, ..self }
    }

    /// 2 TP / (2 TP + FP + FN); 1 where neither has an edge.
    pub fn f1(self) -> f64 {
        let (right, wrong) = (2 * self.true_positives, self.false_positives + self.false_negatives);
        if right + wrong == 0 { 1.0 } else { f64::from(right) / f64::from(right + wrong) }
    }

    /// The mean of the shares of true edges that are there and of false edges that are not; none where either are missing.
    pub fn balanced_accuracy(self) -> Option<f64> {
        let edges = self.true_positives + self.false_negatives;
        let others = self.true_negatives + self.false_positives;
        let share = |part: u32, whole: u32| (whole > 0).then(|| f64::from(part) / f64::from(whole));
        Some(0.5 * (share(self.true_positives, edges)? + share(self.true_negatives, others)?))
    }
}

/// The area under the receiver operating curve of scores, each with whether it belongs to something true: the probability
/// that a true one is scored higher than a false one, ties counted half (Mann and Whitney's statistic, by mid-ranks). None
/// where there are no true ones or no false ones.
///
/// ```
/// use vti::graph::metrics::auroc;
/// assert_eq!(auroc(&[(true, 0.9), (false, 0.2), (false, 0.9)]), Some(0.75));
/// ```
pub fn auroc(scored: &[(bool, f64)]) -> Option<f64> {
    let mut sorted = scored.to_vec();
    sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (mut below, mut wins) = (0.0, 0.0);
    for tied in sorted.chunk_by(|a, b| a.1 == b.1) {
        let hits = tied.iter().filter(|(truth, _)| *truth).count() as f64;
        let misses = tied.len() as f64 - hits;
        wins += hits * (below + 0.5 * misses);
        below += misses;
    }
    let hits = scored.iter().filter(|(truth, _)| *truth).count() as f64;
    (hits > 0.0 && below > 0.0).then(|| wins / (hits * below))
}

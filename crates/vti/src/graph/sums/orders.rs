//! Sums over all orders of nodes and all sets of parents along them.
//!
//! With a score s_j(π) for every node j and set of parents π,
//!
//! ```text
//! z_j(S) = Σ_{π ⊆ S} exp s_j(π),                         what node j is worth after the nodes S,
//! f(S)   = Σ_{j ∈ S} f(S \ j) z_j(S \ j),   f(∅) = 1,    the sum over all orders of S,
//! ```
//!
//! and f of all nodes is the sum over all pairs of an order and a graph along it (Koivisto and Sood 2004). Everything is kept
//! as logarithms: scores differ by thousands.

use super::{SetScores, nodes_of};
use crate::random::Stream;
use crate::workers::Workers;

/// The most nodes: there are 2ⁿ sets of them.
pub(super) const MAX_NODES: usize = 20;

/// The first of some things whose shares together exceed `left`. Rounding may leave a little at the end: the last thing with any
/// share takes it. None where nothing has a share.
pub(super) fn choose<T>(mut left: f64, shares: impl Iterator<Item = (T, f64)>) -> Option<T> {
    let mut chosen = None;
    for (thing, share) in shares.filter(|&(_, share)| share > 0.0) {
        chosen = Some(thing);
        left -= share;
        if left < 0.0 {
            break;
        }
    }
    chosen
}

/// `log z_j` and `log f`.
#[derive(Debug)]
pub(super) struct OrderSums {
    nodes: usize,
    /// For each node, by the set before it, without the bit of the node itself.
    local: Vec<Vec<f64>>,
    /// By set of nodes.
    before: Vec<f64>,
}

/// `log(exp a + exp b)`.
pub(super) fn log_add(a: f64, b: f64) -> f64 {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    // Beyond this the smaller is lost in rounding.
    if low < high - 40.0 || low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// A set without the bit of `node`, higher bits moved down.
pub(super) fn without(set: u64, node: usize) -> usize {
    let low = (1u64 << node) - 1;
    (set & low | set >> 1 & !low) as usize
}

/// `log z_j(S)` of every node by the set before it.
pub(super) fn subset_sums(workers: &Workers, local: &mut [Vec<f64>], nodes: &[SetScores<'_>]) {
    workers.for_each(local, |node, sums| {
        sums.fill(f64::NEG_INFINITY);
        let SetScores { sets, scores } = nodes[node];
        sets.iter().zip(scores).for_each(|(&set, &score)| sums[without(set, node)] = score);
        for_each_pair(sums, |lower, upper| *upper = log_add(*upper, *lower));
    });
}

/// Replaces the number of each set by the sum over all sets that contain it.
pub(super) fn superset_sums(sums: &mut [f64]) {
    for_each_pair(sums, |lower, upper| *lower = log_add(*lower, *upper));
}

/// Calls `visit` with the numbers of sets without and with each bit, one bit after another.
fn for_each_pair(sums: &mut [f64], visit: impl Fn(&mut f64, &mut f64)) {
    let mut half = 1;
    while half < sums.len() {
        for pair in sums.chunks_exact_mut(2 * half) {
            let (lower, upper) = pair.split_at_mut(half);
            lower.iter_mut().zip(upper).for_each(|(lower, upper)| visit(lower, upper));
        }
        half *= 2;
    }
}

impl OrderSums {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            nodes,
            local: vec![vec![f64::NEG_INFINITY; 1 << (nodes - 1)]; nodes],
            before: vec![f64::NEG_INFINITY; 1 << nodes],
        }
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    /// Sums up the scores of all nodes.
    pub(super) fn update(&mut self, workers: &Workers, nodes: &[SetScores<'_>]) {
        subset_sums(workers, &mut self.local, nodes);
        self.before[0] = 0.0;
        for set in 1..1u64 << self.nodes {
            let mut sum = f64::NEG_INFINITY;
            for node in nodes_of(set) {
                sum = log_add(sum, self.last(set, node));
            }
            self.before[set as usize] = sum;
        }
    }

    /// `log f(S \ j) z_j(S \ j)`: orders of S that end with j.
    fn last(&self, set: u64, node: usize) -> f64 {
        let before = set & !(1 << node);
        self.before[before as usize] + self.local[node][without(before, node)]
    }

    /// `log z_j(S)`.
    pub(super) fn local(&self, node: usize, before: u64) -> f64 {
        self.local[node][without(before, node)]
    }

    /// The logarithm of the sum over everything.
    pub(super) fn log_total(&self) -> f64 {
        self.before.last().copied().unwrap_or(0.0)
    }

    /// The probability of each set of parents of each node, in the order of its scores.
    ///
    /// With g(S) the sum over orders of all other nodes after S, node j has the parents π with weight
    /// `exp s_j(π) Σ_{S ⊇ π} f(S) g(S ∪ j)`.
    pub(super) fn marginals(&self, workers: &Workers, nodes: &[SetScores<'_>]) -> Vec<Vec<f64>> {
        let all = (1u64 << self.nodes) - 1;
        let mut after = vec![f64::NEG_INFINITY; self.before.len()];
        after[all as usize] = 0.0;
        for set in (0..all).rev() {
            let mut sum = f64::NEG_INFINITY;
            for node in nodes_of(all & !set) {
                sum = log_add(sum, self.local(node, set) + after[(set | 1 << node) as usize]);
            }
            after[set as usize] = sum;
        }
        let mut found: Vec<Vec<f64>> = vec![Vec::new(); self.nodes];
        workers.for_each(&mut found, |node, found| {
            let mut sums = vec![f64::NEG_INFINITY; self.local[node].len()];
            for set in (0..=all).filter(|set| set >> node & 1 == 0) {
                let around = self.before[set as usize] + after[(set | 1 << node) as usize];
                sums[without(set, node)] = around;
            }
            superset_sums(&mut sums);
            let SetScores { sets, scores } = nodes[node];
            let weight = |(&set, &score): (&u64, &f64)| (score + sums[without(set, node)] - self.log_total()).exp();
            *found = sets.iter().zip(scores).map(weight).collect();
        });
        found
    }

    /// Draws an order, the last node first.
    pub(super) fn draw_order(&self, stream: &mut Stream, order: &mut [u16]) {
        let mut set = (1u64 << self.nodes) - 1;
        for place in order.iter_mut().rev() {
            let total = self.before[set as usize];
            let shares = nodes_of(set).map(|node| (node, (self.last(set, node) - total).exp()));
            let chosen = choose(stream.uniform(), shares).unwrap_or(0);
            *place = chosen as u16;
            set &= !(1 << chosen);
        }
    }
}

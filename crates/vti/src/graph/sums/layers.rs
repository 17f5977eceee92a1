//! Sums over all graphs, each counted once.
//!
//! A graph falls into layers in one way only: first the nodes without parents, then those whose parents are all there and
//! among which at least one belongs to the layer before, and so on (Kuipers and Moffa 2015). So with S the nodes so far, R the
//! last layer and T the next one,
//!
//! ```text
//! y_j(S, R) = z_j(S) − z_j(S \ R),                       sets of parents within S, not without R,
//! F(S ∪ T, T) = Σ_R F(S, R) Π_{j ∈ T} y_j(S, R),         F(T, T) = Π_{j ∈ T} z_j(∅) for the first layer,
//! ```
//!
//! and the sum over all graphs is that of F over the last layers. There are 4ⁿ terms. Everything is kept as logarithms.

use super::orders::{choose, log_add, subset_sums, superset_sums, without};
use super::{RankedSets, SetScores, nodes_of};
use crate::graph::orders_by_set;
use crate::random::Stream;
use crate::workers::Workers;

/// The most nodes.
pub(super) const MAX_NODES: usize = 12;

/// `log z_j` and `log F`.
#[derive(Debug)]
pub(super) struct LayerSums {
    nodes: usize,
    local: Vec<Vec<f64>>,
    /// F(S, R) for R ⊆ S, from `starts[S]` on.
    sums: Vec<f64>,
    starts: Vec<usize>,
    log_total: f64,
}

/// `log(exp a − exp b)` for a ≥ b but for rounding.
fn log_subtract(a: f64, b: f64) -> f64 {
    if b >= a { f64::NEG_INFINITY } else { a + (-(b - a).exp()).ln_1p() }
}

/// All subsets of a set but the empty one, ascending.
fn subsets(set: u64) -> impl Iterator<Item = u64> {
    let mut last = 0u64;
    std::iter::from_fn(move || {
        last = last.wrapping_sub(set) & set;
        (last != 0).then_some(last)
    })
}

/// The rank of a subset among all subsets of a set.
fn rank(subset: u64, set: u64) -> usize {
    nodes_of(set).enumerate().fold(0, |rank, (place, node)| rank | ((subset >> node & 1) as usize) << place)
}

impl LayerSums {
    pub(super) fn new(nodes: usize) -> Self {
        let mut starts = Vec::with_capacity(1 << nodes);
        let mut count = 0;
        for set in 0..1u64 << nodes {
            starts.push(count);
            count += 1 << set.count_ones();
        }
        let local = vec![vec![f64::NEG_INFINITY; 1 << (nodes - 1)]; nodes];
        Self { nodes, local, sums: vec![f64::NEG_INFINITY; count], starts, log_total: f64::NEG_INFINITY }
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    fn all(&self) -> u64 {
        (1 << self.nodes) - 1
    }

    fn place(&self, set: u64, layer: u64) -> usize {
        self.starts[set as usize] + rank(layer, set)
    }

    /// `log y_j(S, R)`.
    fn next(&self, node: usize, set: u64, layer: u64) -> f64 {
        log_subtract(self.local[node][without(set, node)], self.local[node][without(set & !layer, node)])
    }

    /// Calls `visit` with every next layer T and `log Π_{j ∈ T} y_j(S, R)`; the state before all layers is (∅, ∅).
    fn for_each_next(&self, set: u64, layer: u64, mut visit: impl FnMut(u64, f64)) {
        let left = self.all() & !set;
        let mut single = [f64::NEG_INFINITY; MAX_NODES];
        for node in nodes_of(left) {
            single[node] = if set == 0 { self.local[node][0] } else { self.next(node, set, layer) };
        }
        // By rank: a layer is one with its lowest node less, and that node.
        let mut products = vec![0.0; 1 << left.count_ones()];
        for (rank, next) in (1..).zip(subsets(left)) {
            let rest: usize = rank & (rank - 1);
            products[rank] = products[rest] + single[next.trailing_zeros() as usize];
            if products[rank] > f64::NEG_INFINITY {
                visit(next, products[rank]);
            }
        }
    }

    /// Sums up the scores of all nodes.
    pub(super) fn update(&mut self, workers: &Workers, nodes: &[SetScores<'_>]) {
        subset_sums(workers, &mut self.local, nodes);
        let mut sums = std::mem::take(&mut self.sums);
        sums.fill(f64::NEG_INFINITY);
        self.for_each_next(0, 0, |next, log| sums[self.place(next, next)] = log);
        for set in 1..self.all() {
            for layer in subsets(set) {
                let here = sums[self.place(set, layer)];
                if here > f64::NEG_INFINITY {
                    self.for_each_next(set, layer, |next, log| {
                        let to = &mut sums[self.place(set | next, next)];
                        *to = log_add(*to, here + log);
                    });
                }
            }
        }
        let last = self.starts[self.all() as usize];
        self.log_total = sums[last..].iter().fold(f64::NEG_INFINITY, |sum, &log| log_add(sum, log));
        self.sums = sums;
    }

    pub(super) fn log_total(&self) -> f64 {
        self.log_total
    }

    /// Draws the parents of all nodes, the last layer first; the sum of their scores.
    pub(super) fn draw(&self, stream: &mut Stream, own: &[RankedSets<'_>], parents: &mut [u64]) -> f64 {
        let (mut set, mut sum) = (self.all(), 0.0);
        let mut layer = pick(stream, subsets(set).map(|layer| (layer, self.sums[self.place(set, layer)])));
        loop {
            let before = set & !layer;
            let previous = (before != 0).then(|| {
                let weight = |previous: u64| {
                    let nodes = nodes_of(layer).map(|node| self.next(node, before, previous));
                    self.sums[self.place(before, previous)] + nodes.sum::<f64>()
                };
                pick(stream, subsets(before).map(|previous| (previous, weight(previous))))
            });
            for node in nodes_of(layer) {
                let index = match previous {
                    // No parents: the first of its sets.
                    None => 0,
                    Some(previous) => own[node].draw(stream, self.next(node, before, previous), |parents| {
                        parents & !before == 0 && parents & previous != 0
                    }),
                };
                parents[node] = own[node].of.sets[index];
                sum += own[node].of.scores[index];
            }
            let Some(previous) = previous else { return sum };
            (set, layer) = (before, previous);
        }
    }

    /// The probability of each set of parents of each node, in the order of its scores.
    ///
    /// With B(S, R) the sum over all layers after (S, R), what all other nodes make of node j in the layer after (S, R) is
    /// `G_j(S, R) = F(S, R) Σ_{T ∋ j} B(S ∪ T, T) Π_{i ∈ T} y_i / y_j`, and π is worth `exp s_j(π)` times the sum of G_j over
    /// S ⊇ π with R ∩ π ≠ ∅: all S ⊇ π less those with S \ R ⊇ π.
    pub(super) fn marginals(&self, workers: &Workers, nodes: &[SetScores<'_>]) -> Vec<Vec<f64>> {
        let size = 1 << (self.nodes - 1);
        let empty = || vec![vec![f64::NEG_INFINITY; size]; self.nodes];
        let (mut with, mut less) = (empty(), empty());
        let mut roots = vec![f64::NEG_INFINITY; self.nodes];
        let mut after = vec![f64::NEG_INFINITY; self.sums.len()];
        after[self.starts[self.all() as usize]..].fill(0.0);
        let mut through = vec![f64::NEG_INFINITY; self.nodes];
        for set in (1..self.all()).rev() {
            for layer in subsets(set) {
                let here = self.sums[self.place(set, layer)];
                if here == f64::NEG_INFINITY {
                    continue;
                }
                through.fill(f64::NEG_INFINITY);
                let mut sum = f64::NEG_INFINITY;
                self.for_each_next(set, layer, |next, log| {
                    let log = log + after[self.place(set | next, next)];
                    sum = log_add(sum, log);
                    nodes_of(next).for_each(|node| through[node] = log_add(through[node], log));
                });
                after[self.place(set, layer)] = sum;
                for node in nodes_of(self.all() & !set) {
                    let log = here + through[node] - self.next(node, set, layer);
                    if log > f64::NEG_INFINITY {
                        let (with, less) = (&mut with[node], &mut less[node]);
                        with[without(set, node)] = log_add(with[without(set, node)], log);
                        let rest = without(set & !layer, node);
                        less[rest] = log_add(less[rest], log);
                    }
                }
            }
        }
        self.for_each_next(0, 0, |next, log| {
            let log = log + after[self.place(next, next)];
            nodes_of(next).for_each(|node| roots[node] = log_add(roots[node], log));
        });
        let mut found: Vec<_> = with.into_iter().zip(less).map(|sums| (sums, Vec::new())).collect();
        workers.for_each(&mut found, |node, ((with, less), found)| {
            superset_sums(with);
            superset_sums(less);
            let SetScores { sets, scores } = nodes[node];
            *found = sets
                .iter()
                .zip(scores)
                .map(|(&set, &score)| {
                    let at = without(set, node);
                    let log = if set == 0 { roots[node] } else { score + log_subtract(with[at], less[at]) };
                    (log - self.log_total).exp()
                })
                .collect();
        });
        found.into_iter().map(|(_, found)| found).collect()
    }
}

/// Draws one of some things by the logarithms of their weights.
fn pick(stream: &mut Stream, choices: impl Iterator<Item = (u64, f64)>) -> u64 {
    let choices: Vec<(u64, f64)> = choices.collect();
    let top = choices.iter().fold(f64::NEG_INFINITY, |top, &(_, log)| top.max(log));
    let weights = || choices.iter().map(|&(choice, log)| (choice, (log - top).exp()));
    let total: f64 = weights().map(|(_, weight)| weight).sum();
    choose(stream.uniform() * total, weights()).unwrap_or(choices[0].0)
}

/// Draws one of the topological orders of a graph, all equally likely; the logarithm of how many there are.
pub(super) fn draw_order(stream: &mut Stream, parents: &[u64], order: &mut [u16]) -> f64 {
    let counts = orders_by_set(parents);
    let mut set = counts.len() as u64 - 1;
    let log_orders = f64::ln(counts[set as usize]);
    for place in order.iter_mut().rev() {
        // A node that another one still needs leaves a set without any order.
        let last = nodes_of(set).map(|node| (node as u64, counts[(set & !(1 << node)) as usize].ln()));
        let last = pick(stream, last);
        *place = last as u16;
        set &= !(1 << last);
    }
    log_orders
}

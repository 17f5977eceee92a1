//! Sums over all graphs that keep the rules, each with the weight w^{|E|}, w = e^{−γ}, once or once for each of its orders.

use super::GraphPrior;
use crate::graph::{low_bits, nodes_of};
use crate::space::EdgeRules;
use crate::stats::log_sum_exp;

/// The most nodes for which rules are summed over all sets of nodes, 2ⁿ of them.
const MAX_NODES_BY_SETS: usize = 20;

/// The most nodes for which rules are summed over all pairs of disjoint sets, 3ⁿ of them.
const MAX_NODES_BY_PAIRS: usize = 16;

/// What the logarithm of a prior lacks to be that of a probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Normaliser {
    /// Nothing: the sum over all graphs that keep the rules is known.
    Exact {
        /// Its logarithm.
        log: f64,
    },
    /// The sum over all graphs, whether they keep the rules or not: with that many nodes and rules it is not known how many
    /// do. All probabilities are too small by one unknown factor, and so is the evidence; what is learned is the same.
    WithoutRules {
        /// Its logarithm.
        log: f64,
    },
}

impl Normaliser {
    /// The logarithm of the sum.
    pub fn log(self) -> f64 {
        let (Self::Exact { log } | Self::WithoutRules { log }) = self;
        log
    }
}

/// That of a prior.
pub(super) fn normaliser(prior: GraphPrior, penalty: f64, rules: &EdgeRules) -> Normaliser {
    let nodes = rules.nodes();
    let most = match prior {
        GraphPrior::Orders => MAX_NODES_BY_SETS,
        GraphPrior::Graphs => MAX_NODES_BY_PAIRS,
    };
    let without_rules = || match prior {
        GraphPrior::Orders => log_orders_and_edges(nodes, penalty),
        GraphPrior::Graphs => all_graphs(nodes, penalty).log,
    };
    if rules.is_free() {
        return Normaliser::Exact { log: without_rules() };
    }
    if nodes > most {
        return Normaliser::WithoutRules { log: without_rules() };
    }
    let log = match prior {
        GraphPrior::Orders => log_ruled_orders(penalty, rules),
        GraphPrior::Graphs => log_ruled_graphs(penalty, rules),
    };
    Normaliser::Exact { log }
}

/// n! (1 + w)^{n(n−1)/2}.
fn log_orders_and_edges(nodes: usize, penalty: f64) -> f64 {
    let log_factorial: f64 = (2..=nodes).map(|node| (node as f64).ln()).sum();
    log_factorial + (nodes * (nodes - 1) / 2) as f64 * (-penalty).exp().ln_1p()
}

/// Sums over all acyclic graphs.
#[derive(Clone, Copy, Debug)]
struct GraphSum {
    /// `ln Σ_G w^{|E|}`.
    log: f64,
    /// The mean number of edges of a graph drawn with these weights.
    edges: f64,
}

impl GraphSum {
    fn add(parts: &[Self]) -> Self {
        let log = log_sum_exp(&parts.iter().map(|part| part.log).collect::<Vec<_>>());
        Self { log, edges: parts.iter().map(|part| (part.log - log).exp() * part.edges).sum() }
    }
}

/// `Σ_G w^{|E|}` over all acyclic graphs.
///
/// Robinson's recursion (1973) alternates in sign and loses all digits where w is small. Counting by the number of sources
/// does not (as Kuipers and Moffa 2015 count to draw graphs): of n nodes choose k sources; of the others, j are sources once
/// these are gone, and have one of the k as a parent at least; the rest may have any of them.
///
/// a(n, k) = C(n, k) Σ_j ((1 + w)^k − 1)^j (1 + w)^{k (n − k − j)} a(n − k, j), a(n, n) = 1.
fn all_graphs(nodes: usize, penalty: f64) -> GraphSum {
    let log_any = (-penalty).exp().ln_1p();
    let chance = 1.0 / (1.0 + penalty.exp());
    // ln((1 + w)^k − 1), and the mean number of edges from k nodes that are not 0. For tiny w the first terms of their
    // series, as e^{−γ} may be 0 in double precision.
    let some = |k: usize| {
        let (k, log) = (k as f64, k as f64 * log_any);
        if log > 1e-12 {
            GraphSum { log: log.exp_m1().ln(), edges: -k * chance / (-log).exp_m1() }
        } else {
            GraphSum { log: k.ln() - penalty, edges: 1.0 }
        }
    };
    // by_sources[n][k − 1] = a(n, k).
    let mut by_sources: Vec<Vec<GraphSum>> = vec![Vec::new()];
    for n in 1..=nodes {
        let with = |k: usize| {
            if k == n {
                return GraphSum { log: 0.0, edges: 0.0 };
            }
            let (log_choices, some) = (log_choose(n, k), some(k));
            let part = |(below, j): (&GraphSum, usize)| {
                let (sources, others) = (j as f64, (k * (n - k - j)) as f64);
                GraphSum {
                    log: log_choices + sources * some.log + others * log_any + below.log,
                    edges: sources * some.edges + others * chance + below.edges,
                }
            };
            GraphSum::add(&by_sources[n - k].iter().zip(1..).map(part).collect::<Vec<_>>())
        };
        let row = (1..=n).map(with).collect();
        by_sources.push(row);
    }
    GraphSum::add(&by_sources[nodes])
}

/// `ln C(n, k)`.
fn log_choose(n: usize, k: usize) -> f64 {
    (1..=k).map(|i| ((n - k + i) as f64 / i as f64).ln()).sum()
}

/// Prior probability of any one edge where there are no rules: all edges are alike.
pub(super) fn free_edge_probability(prior: GraphPrior, penalty: f64, nodes: usize) -> f64 {
    match prior {
        // Half of the orders allow it.
        GraphPrior::Orders => 0.5 / (1.0 + penalty.exp()),
        GraphPrior::Graphs => all_graphs(nodes, penalty).edges / (nodes * (nodes - 1)) as f64,
    }
}

/// Sums over the sets of parents that a node may have. Required edges are taken out: each graph has them, and without them
/// no sum is smaller than 1.
struct ParentSums<'a> {
    rules: &'a EdgeRules,
    /// `sums[j][a] = Σ_{i ≤ room of j} C(a, i) wⁱ`.
    sums: Vec<Vec<f64>>,
}

impl<'a> ParentSums<'a> {
    fn new(penalty: f64, rules: &'a EdgeRules) -> Self {
        let (nodes, weight) = (rules.nodes(), (-penalty).exp());
        let sum = |room: usize, choices: usize| {
            let mut term = 1.0;
            let mut sum = 1.0;
            for i in 1..=room.min(choices) {
                term *= weight * (choices - i + 1) as f64 / i as f64;
                sum += term;
            }
            sum
        };
        let of = |node: usize| {
            let room = rules.max_parents() - rules.required(node).count_ones() as usize;
            (0..nodes).map(|choices| sum(room, choices)).collect()
        };
        Self { rules, sums: (0..nodes).map(of).collect() }
    }

    /// `Σ w^{|π|}` over the sets π ⊆ `from` that the node may have as parents.
    fn of(&self, node: usize, from: u64) -> f64 {
        let required = self.rules.required(node);
        if required & !from != 0 {
            return 0.0;
        }
        let choices = from & self.rules.allowed(node) & !required;
        self.sums[node][choices.count_ones() as usize]
    }

    /// What was taken out.
    fn log_required(&self, penalty: f64) -> f64 {
        let required: u32 = (0..self.rules.nodes()).map(|node| self.rules.required(node).count_ones()).sum();
        -penalty * f64::from(required)
    }
}

/// Z(S ∪ {j}) = Σ_j Z(S) Σ_{π ⊆ S} w^{|π|}: which node comes last, and its parents.
fn log_ruled_orders(penalty: f64, rules: &EdgeRules) -> f64 {
    let sums = ParentSums::new(penalty, rules);
    let everyone = low_bits(rules.nodes());
    let mut totals = vec![0.0; 1 << rules.nodes()];
    totals[0] = 1.0;
    for set in 0..everyone {
        let own = totals[set as usize];
        if own > 0.0 {
            for node in nodes_of(everyone & !set) {
                totals[(set | 1 << node) as usize] += own * sums.of(node, set);
            }
        }
    }
    totals[everyone as usize].ln() + sums.log_required(penalty)
}

/// Inclusion and exclusion over sets K of sinks, whose parents lie in the rest R of the set S = R ∪ K:
///
/// Z(S) = Σ_{∅ ≠ K ⊆ S} (−1)^{|K|+1} Z(S ∖ K) Π_{j ∈ K} Σ_{π ⊆ S ∖ K} w^{|π|}.
///
/// The terms add up to at most 2^{|S|} Z(S) in size, and an error in one Z grows no further: of 16 digits at least eight are
/// left.
fn log_ruled_graphs(penalty: f64, rules: &EdgeRules) -> f64 {
    let sums = ParentSums::new(penalty, rules);
    let everyone = low_bits(rules.nodes());
    let mut totals = vec![0.0; 1 << rules.nodes()];
    totals[0] = 1.0;
    for rest in 0..everyone {
        let start = Sinks { set: rest, left: everyone & !rest, product: -totals[rest as usize] };
        add_sinks(&sums, rest, &start, &mut totals);
    }
    totals[everyone as usize].ln() + sums.log_required(penalty)
}

/// A set with some sinks already chosen.
struct Sinks {
    /// The rest, and the sinks.
    set: u64,
    /// Nodes that may be sinks too.
    left: u64,
    /// Their part of the sum, with its sign.
    product: f64,
}

/// Adds the parts of all sets with one more sink, or several.
fn add_sinks(sums: &ParentSums<'_>, rest: u64, chosen: &Sinks, totals: &mut [f64]) {
    for node in nodes_of(chosen.left) {
        let product = -chosen.product * sums.of(node, rest);
        if product != 0.0 {
            let set = chosen.set | 1 << node;
            totals[set as usize] += product;
            let later = chosen.left & !low_bits(node + 1);
            add_sinks(sums, rest, &Sinks { set, left: later, product }, totals);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::problem::dag::Rules;

    #[test]
    fn graphs_are_counted() {
        // OEIS A003024.
        let known = [1.0, 3.0, 25.0, 543.0, 29_281.0, 3_781_503.0, 1_138_779_265.0, 783_702_329_343.0];
        for (nodes, count) in (1..).zip(known) {
            assert!((all_graphs(nodes, 0.0).log.exp() / count - 1.0f64).abs() < 1e-12, "{nodes}");
        }
    }

    #[test]
    fn rules_that_ask_nothing_of_many_nodes_change_no_sum() {
        for penalty in [0.0, 1.5, 200.0] {
            let free = Rules::default().compile(10).unwrap();
            let (orders, graphs) = (log_ruled_orders(penalty, &free), log_ruled_graphs(penalty, &free));
            assert!((orders - log_orders_and_edges(10, penalty)).abs() < 1e-10);
            let expected = all_graphs(10, penalty).log;
            assert!((graphs - expected).abs() < 1e-9, "{penalty}: {graphs} {expected}");
        }
    }

    #[test]
    fn harsh_penalties_lose_no_digits() {
        // e^{−1000} is 0 in double precision.
        let total = all_graphs(40, 1000.0);
        assert!(total.log.abs() < 1e-9 && total.edges.abs() < 1e-9);
        // One edge in n(n − 1) places, to the first order in w.
        let (total, w) = (all_graphs(40, 30.0), (-30f64).exp());
        assert!((total.edges / (40.0 * 39.0 * w) - 1.0).abs() < 1e-6, "{}", total.edges);
    }
}

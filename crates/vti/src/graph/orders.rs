//! How many topological orders a graph has.

use std::collections::HashMap;

use super::{Graph, low_bits, nodes_of};

/// Down-sets of so few nodes are numbered densely from the start.
const MAX_NODES_BY_SETS: usize = 12;

/// Down-sets of so many nodes are numbered densely where there are many: 8 MiB of counts at most.
const MAX_DENSE_NODES: usize = 20;

/// So many down-sets of one size are many.
const MAX_SETS: usize = 1 << 11;

/// The most down-sets of one size that are kept for larger graphs.
const MAX_DOWN_SETS: usize = 1 << 20;

impl Graph {
    /// `ln` of the number of topological orders. None with a cycle, or where counting would take too much memory (never up
    /// to 20 nodes).
    ///
    /// A down-set is a set of nodes with all their parents. The number of ways to place its nodes first is a sum over which
    /// of them comes last: exact, in as many steps as there are down-sets. Parts of the graph that no edge connects are
    /// counted apart and shuffled into each other. Counts are kept in double precision, where 64! has room.
    ///
    /// ```
    /// use vti::graph::Graph;
    /// let wet = Graph::from_edges(3, &[(0, 2), (1, 2)])?; // 0, 1 in any order, then 2
    /// assert_eq!(wet.log_orders(), Some(2f64.ln()));
    /// # Ok::<(), vti::graph::GraphError>(())
    /// ```
    pub fn log_orders(&self) -> Option<f64> {
        let order = self.order()?;
        let mut left = low_bits(self.nodes());
        let (mut placed, mut log_orders) = (0, 0.0);
        while left != 0 {
            let part = self.connected(left);
            left &= !part;
            for size in 1..=part.count_ones() {
                placed += 1;
                // A product of these is the binomial coefficient: which places of those so far this part takes.
                log_orders += (f64::from(placed) / f64::from(size)).ln();
            }
            let members: Vec<usize> = order.iter().copied().filter(|&node| part >> node & 1 == 1).collect();
            log_orders += count(&self.renumbered(&members))?.ln();
        }
        Some(log_orders)
    }

    /// The nodes of a set that edges connect, in either direction, with its first one.
    fn connected(&self, set: u64) -> u64 {
        let mut part = set & set.wrapping_neg();
        loop {
            let touches = |&node: &usize| {
                part >> node & 1 == 1
                    || self.parents[node] & part != 0
                    || nodes_of(part).any(|member| self.parents[member] >> node & 1 == 1)
            };
            let grown = nodes_of(set).filter(touches).fold(0, |mask, node| mask | 1 << node);
            if grown == part {
                return part;
            }
            part = grown;
        }
    }

    /// Parents of some nodes, all among them, numbered by their places in the list.
    fn renumbered(&self, members: &[usize]) -> Vec<u64> {
        let parents = |&node: &usize| {
            let is_parent = |&place: &usize| self.parents[node] >> members[place] & 1 == 1;
            (0..members.len()).filter(is_parent).fold(0, |mask, place| mask | 1 << place)
        };
        members.iter().map(parents).collect()
    }
}

/// Number of topological orders of an acyclic graph.
fn count(parents: &[u64]) -> Option<f64> {
    let nodes = parents.len();
    if nodes > MAX_DENSE_NODES {
        return count_sparsely(parents, MAX_DOWN_SETS);
    }
    let sparsely = if nodes > MAX_NODES_BY_SETS { count_sparsely(parents, MAX_SETS) } else { None };
    Some(sparsely.unwrap_or_else(|| count_densely(parents)))
}

fn count_densely(parents: &[u64]) -> f64 {
    orders_by_set(parents).last().copied().unwrap_or(0.0)
}

/// How many orders each set of nodes has that holds with a node all its parents; 0 for other sets.
pub(crate) fn orders_by_set(parents: &[u64]) -> Vec<f64> {
    let mut ways = vec![0.0; 1 << parents.len()];
    ways[0] = 1.0;
    // A set comes after all its subsets.
    for set in 0..ways.len() {
        let own = ways[set];
        if own > 0.0 {
            for (node, mask) in parents.iter().enumerate() {
                if set >> node & 1 == 0 && mask & !(set as u64) == 0 {
                    ways[set | 1 << node] += own;
                }
            }
        }
    }
    ways
}

/// Size by size, with only the down-sets that there are; none where there are more than `most` of one size.
fn count_sparsely(parents: &[u64], most: usize) -> Option<f64> {
    let mut ways = HashMap::from([(0u64, 1.0)]);
    for _ in 0..parents.len() {
        let mut larger = HashMap::with_capacity(ways.len());
        for (set, own) in ways {
            for (node, mask) in parents.iter().enumerate() {
                if set >> node & 1 == 0 && mask & !set == 0 {
                    *larger.entry(set | 1 << node).or_insert(0.0) += own;
                }
            }
            if larger.len() > most {
                return None;
            }
        }
        ways = larger;
    }
    ways.into_values().next()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    /// Orders counted one by one.
    fn counted_slowly(graph: &Graph, placed: u64) -> u64 {
        if placed == low_bits(graph.nodes()) {
            return 1;
        }
        nodes_of(graph.sources(placed)).map(|node| counted_slowly(graph, placed | 1 << node)).sum()
    }

    fn random(nodes: usize, probability: f64, seed: u64) -> Graph {
        let mut stream = Stream::new(seed, Purpose::Other(0), 0, nodes as u64);
        let pairs = (0..nodes).flat_map(|a| (0..a).map(move |b| (a, b)));
        let edges: Vec<(usize, usize)> = pairs.filter(|_| stream.uniform() < probability).collect();
        Graph::from_edges(nodes, &edges).unwrap()
    }

    #[test]
    fn orders_are_as_many_as_can_be_listed() {
        for seed in 0..60 {
            let graph = random(1 + seed as usize % 7, 0.1 * (seed % 8) as f64, seed);
            let expected = (counted_slowly(&graph, 0) as f64).ln();
            assert!((graph.log_orders().unwrap() - expected).abs() < 1e-12, "{graph:?}");
        }
    }

    #[test]
    fn both_ways_of_counting_agree() {
        for seed in 0..20 {
            let graph = random(12, 0.2, seed);
            let members: Vec<usize> = graph.order().unwrap();
            let parents = graph.renumbered(&members);
            assert_eq!(Some(count_densely(&parents)), count_sparsely(&parents, MAX_DOWN_SETS));
        }
    }

    #[test]
    fn large_graphs_have_their_known_numbers_of_orders() {
        let log_factorial = |n: u32| (1..=n).map(|i| f64::from(i).ln()).sum::<f64>();
        assert!((Graph::empty(64).unwrap().log_orders().unwrap() - log_factorial(64)).abs() < 1e-9);
        let chain: Vec<(usize, usize)> = (1..64).map(|node| (node, node - 1)).collect();
        assert_eq!(Graph::from_edges(64, &chain).unwrap().log_orders(), Some(0.0));
        // Two connected chains of 15 with a common end: which places does the first take?
        let arms = (1..15).flat_map(|i| [(i - 1, i), (15 + i - 1, 15 + i)]);
        let edges: Vec<(usize, usize)> = arms.chain([(14, 30), (29, 30)]).collect();
        let expected = log_factorial(30) - 2.0 * log_factorial(15);
        let found = Graph::from_edges(31, &edges).unwrap().log_orders().unwrap();
        assert!((found - expected).abs() < 1e-10, "{found} {expected}");
    }

    #[test]
    fn many_down_sets_of_a_few_nodes_can_be_counted() {
        // A star of 15 leaves, in any order after its centre.
        let star: Vec<(usize, usize)> = (1..16).map(|leaf| (0, leaf)).collect();
        let found = Graph::from_edges(16, &star).unwrap().log_orders().unwrap();
        assert!((found - (1..=15).map(|i| f64::from(i).ln()).sum::<f64>()).abs() < 1e-10);
    }

    #[test]
    fn what_cannot_be_counted_is_admitted() {
        assert_eq!(Graph::from_edges(3, &[(0, 1), (1, 0)]).unwrap().log_orders(), None);
        // A star of 63 leaves has 2^63 down-sets.
        let star: Vec<(usize, usize)> = (1..64).map(|leaf| (0, leaf)).collect();
        assert_eq!(Graph::from_edges(64, &star).unwrap().log_orders(), None);
    }
}

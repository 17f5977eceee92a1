//! Directed graphs over a few nodes: orders, equivalence classes, and how far a posterior over them is from a truth.
//!
//! Everywhere `A[i][j] = 1` means i → j: i is a parent of j.

mod all;
mod cpdag;
mod error;
pub mod metrics;
mod orders;
mod random;
pub mod sums;

pub use all::all_dags;
pub use cpdag::Cpdag;
pub use error::GraphError;
pub(crate) use orders::orders_by_set;

/// A directed graph without loops on at most 64 nodes. It may have cycles: published truths do.
///
/// ```
/// use vti::graph::Graph;
/// let wet = Graph::from_edges(3, &[(0, 2), (1, 2)])?; // rain → wet ← sprinkler
/// assert_eq!(wet.parents(2), 0b011);
/// assert_eq!(wet.order(), Some(vec![0, 1, 2]));
/// # Ok::<(), vti::graph::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Graph {
    /// Bit i of `parents[j]` says i → j.
    parents: Vec<u64>,
}

impl Graph {
    /// The most nodes a graph can have.
    pub const MAX_NODES: usize = 64;

    /// No edges at all.
    pub fn empty(nodes: usize) -> Result<Self, GraphError> {
        if nodes > Self::MAX_NODES {
            return Err(GraphError::TooManyNodes { nodes, most: Self::MAX_NODES });
        }
        Self::from_parents(vec![0; nodes])
    }

    /// The graph in which bit i of `parents[j]` says i → j.
    pub fn from_parents(parents: Vec<u64>) -> Result<Self, GraphError> {
        let nodes = parents.len();
        if nodes == 0 {
            return Err(GraphError::NoNodes);
        }
        if nodes > Self::MAX_NODES {
            return Err(GraphError::TooManyNodes { nodes, most: Self::MAX_NODES });
        }
        for (node, &mask) in parents.iter().enumerate() {
            let unknown = mask & !low_bits(nodes);
            if unknown != 0 {
                return Err(GraphError::UnknownNode { node: unknown.trailing_zeros() as usize, nodes });
            }
            if mask >> node & 1 == 1 {
                return Err(GraphError::Loop { node });
            }
        }
        Ok(Self { parents })
    }

    /// The graph with these edges, each (from, to).
    pub fn from_edges(nodes: usize, edges: &[(usize, usize)]) -> Result<Self, GraphError> {
        let mut graph = Self::empty(nodes)?;
        for &(from, to) in edges {
            if let Some(node) = [from, to].into_iter().find(|&node| node >= nodes) {
                return Err(GraphError::UnknownNode { node, nodes });
            }
            if from == to {
                return Err(GraphError::Loop { node: from });
            }
            graph.parents[to] |= 1 << from;
        }
        Ok(graph)
    }

    /// Every edge in both directions.
    pub fn complete(nodes: usize) -> Result<Self, GraphError> {
        let mut graph = Self::empty(nodes)?;
        graph.parents.iter_mut().enumerate().for_each(|(node, mask)| *mask = low_bits(nodes) & !(1 << node));
        Ok(graph)
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.parents.len()
    }

    /// The parents of a node: bit i says i → node. None for a node that does not exist.
    pub fn parents(&self, node: usize) -> u64 {
        self.parents.get(node).copied().unwrap_or(0)
    }

    /// Whether from → to.
    pub fn has(&self, from: usize, to: usize) -> bool {
        from < self.nodes() && self.parents(to) >> from & 1 == 1
    }

    /// All edges (from, to), ascending.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> {
        ordered_pairs(self.nodes()).filter(|&(from, to)| self.has(from, to))
    }

    /// Number of edges.
    pub fn edge_count(&self) -> usize {
        self.parents.iter().map(|mask| mask.count_ones() as usize).sum()
    }

    /// The lexicographically smallest topological order: parents stand before their children. None with a cycle.
    pub fn order(&self) -> Option<Vec<usize>> {
        let mut placed = 0u64;
        let mut order = Vec::with_capacity(self.nodes());
        while order.len() < self.nodes() {
            let node = nodes_of(self.sources(placed)).next()?;
            placed |= 1 << node;
            order.push(node);
        }
        Some(order)
    }

    /// A node on a cycle; none where there is no cycle.
    pub fn node_on_cycle(&self) -> Option<usize> {
        let mut placed = 0u64;
        loop {
            match self.sources(placed) {
                0 => break,
                more => placed |= more,
            }
        }
        // Each node that is left has a parent among them: going from child to parent often enough ends on a cycle.
        let left = low_bits(self.nodes()) & !placed;
        let start = nodes_of(left).next()?;
        (0..self.nodes()).try_fold(start, |node, _| nodes_of(self.parents[node] & left).next())
    }

    /// Nodes outside a set all of whose parents are in it.
    fn sources(&self, set: u64) -> u64 {
        let free = |&node: &usize| set >> node & 1 == 0 && self.parents[node] & !set == 0;
        (0..self.nodes()).filter(free).fold(0, |mask, node| mask | 1 << node)
    }
}

/// Ordered pairs (from, to) of different nodes, row by row: the entries of a matrix without its diagonal.
///
/// ```
/// assert!(vti::graph::ordered_pairs(3).eq([(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]));
/// ```
pub fn ordered_pairs(nodes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..nodes).flat_map(move |from| (0..nodes).filter(move |&to| to != from).map(move |to| (from, to)))
}

/// The set of the first `count` nodes.
pub(crate) fn low_bits(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// The nodes of a set, ascending.
pub(crate) fn nodes_of(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let node = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(node)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn edges_go_in_and_come_out() {
        let edges = [(0, 3), (1, 0), (3, 2), (3, 4)];
        let graph = Graph::from_edges(5, &edges).unwrap();
        assert!(graph.edges().eq(edges));
        assert_eq!((graph.nodes(), graph.edge_count(), graph.parents(3), graph.parents(9)), (5, 4, 1, 0));
        assert!(graph.has(0, 3) && !graph.has(3, 0) && !graph.has(64, 3) && !graph.has(0, 9));
        assert_eq!(Graph::from_parents((0..5).map(|node| graph.parents(node)).collect()).unwrap(), graph);
        assert_eq!(Graph::complete(64).unwrap().edge_count(), 64 * 63);
    }

    #[test]
    fn orders_are_the_smallest_and_cycles_have_none() {
        let graph = Graph::from_edges(5, &[(4, 0), (3, 1), (1, 2)]).unwrap();
        assert_eq!(graph.order().unwrap(), [3, 1, 2, 4, 0]);
        assert_eq!(graph.node_on_cycle(), None);
        // 0 → 3 → 1 → 3 and 1 → 4 → 2: only 1 and 3 are on a cycle.
        let graph = Graph::from_edges(5, &[(0, 3), (3, 1), (1, 3), (1, 4), (4, 2)]).unwrap();
        assert_eq!(graph.order(), None);
        assert!(matches!(graph.node_on_cycle(), Some(1 | 3)));
    }

    #[test]
    fn what_is_no_graph_is_refused() {
        assert_eq!(Graph::empty(0), Err(GraphError::NoNodes));
        assert_eq!(Graph::empty(65), Err(GraphError::TooManyNodes { nodes: 65, most: 64 }));
        assert_eq!(Graph::from_parents(vec![0; 65]), Err(GraphError::TooManyNodes { nodes: 65, most: 64 }));
        assert_eq!(Graph::from_parents(vec![4, 0]), Err(GraphError::UnknownNode { node: 2, nodes: 2 }));
        assert_eq!(Graph::from_parents(vec![0, 2]), Err(GraphError::Loop { node: 1 }));
        assert_eq!(Graph::from_edges(2, &[(0, 2)]), Err(GraphError::UnknownNode { node: 2, nodes: 2 }));
        assert_eq!(Graph::from_edges(2, &[(1, 1)]), Err(GraphError::Loop { node: 1 }));
    }
}

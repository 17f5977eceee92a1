//! Directed acyclic graphs.

use super::error::{at_most, check_names, default_names};
use super::{MAX_DIM, Model, ModelSpace, SpaceError};

/// Directed acyclic graphs over n nodes (appendix "Model identifier for directed acyclic graphs").
///
/// A word is an order of the nodes and the edges along it. First come n − 1 Lehmer digits: digit i, counted from 0, has
/// n − i choices and picks one of the nodes that are left, in ascending order; the last node is forced. Then come
/// n(n − 1)/2 bits U_{ij}, i < j, row by row: whether the node at position i points at the node at position j. So
///
/// A = Pᵀ U P, where P_{i,a} = 1 if node a stands at position i,
///
/// and `A[a][b] = 1` means a → b. (The paper's algorithm stores the transpose of this P.)
///
/// Several words mean one graph, one for each of its topological orders. Their representative is the
/// [`canonical`](ModelSpace::canonical) word, that of the lexicographically smallest order; it is also the smallest word.
///
/// Each edge owns a block of coordinates of θ: a → b the block number [`Dags::edge_index`].
///
/// ```
/// use vti::space::{Dags, ModelSpace};
/// let space = Dags::new(3, 1)?.with_names(["rain", "sprinkler", "wet"].map(String::from).to_vec())?;
/// let word = [1, 0, 0, 1, 1]; // order: sprinkler, rain, wet
/// assert_eq!(space.order(&word), [1, 0, 2]);
/// assert_eq!(space.label(&word), "rain→wet, sprinkler→wet");
///
/// let mut adjacency = [false; 9];
/// space.adjacency(&word, &mut adjacency);
/// assert_eq!(&space.encode(&adjacency)?[..], [0, 0, 0, 1, 1]); // order: rain, sprinkler, wet
/// # Ok::<(), vti::space::SpaceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dags {
    nodes: usize,
    parameters_per_edge: usize,
    arities: Vec<u16>,
    names: Vec<String>,
}

impl Dags {
    /// The most nodes a graph can have.
    pub const MAX_NODES: usize = 4096;

    /// Graphs over these many nodes, whose edges have this many parameters each.
    pub fn new(nodes: usize, parameters_per_edge: usize) -> Result<Self, SpaceError> {
        if nodes == 0 {
            return Err(SpaceError::NoModels);
        }
        at_most("nodes", nodes, Self::MAX_NODES)?;
        let pairs = nodes * (nodes - 1);
        at_most("coordinates", pairs.saturating_mul(parameters_per_edge), MAX_DIM)?;
        let digits = (2..=nodes as u16).rev();
        let arities = digits.chain(std::iter::repeat_n(2, pairs / 2)).collect();
        Ok(Self { nodes, parameters_per_edge, arities, names: default_names(nodes) })
    }

    /// Names the nodes for labels; by default `x1`, `x2`, ….
    pub fn with_names(mut self, names: Vec<String>) -> Result<Self, SpaceError> {
        check_names(&names, self.nodes)?;
        self.names = names;
        Ok(self)
    }

    /// Number of nodes n.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Names of the nodes.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The rank of the ordered pair (a, b), a ≠ b, among the n(n − 1) of them; none for a pair that cannot be an edge.
    ///
    /// Edge a → b owns the coordinates from `edge_index * parameters_per_edge` on.
    pub fn edge_index(&self, from: usize, to: usize) -> Option<usize> {
        let exists = from < self.nodes && to < self.nodes && from != to;
        exists.then(|| from * (self.nodes - 1) + to - usize::from(to > from))
    }

    /// The node at each position of a word's order (appendix "Lehmer Code Decoding").
    ///
    /// ```
    /// use vti::space::Dags;
    /// // The paper's example, counted from 0: the code 2, 1, 0, 0 is the order 3, 2, 1, 4, 5.
    /// let word = [[2, 1, 0, 0].as_slice(), &[0; 10]].concat();
    /// assert_eq!(Dags::new(5, 1)?.order(&word), [2, 1, 0, 3, 4]);
    /// # Ok::<(), vti::space::SpaceError>(())
    /// ```
    pub fn order(&self, word: &[u16]) -> Vec<u16> {
        // At most MAX_NODES, so they fit.
        let mut order: Vec<u16> = (0..self.nodes as u16).collect();
        for (position, &digit) in word.iter().take(self.nodes - 1).enumerate() {
            // What is left stands, ascending, from this position on: bring the chosen node to its front.
            let chosen = (position + usize::from(digit)).min(self.nodes - 1);
            order[position..=chosen].rotate_right(1);
        }
        order
    }

    /// Overwrites `to`, n × n row by row, with the word's adjacency matrix: `to[a * n + b]` says whether a → b.
    pub fn adjacency(&self, word: &[u16], to: &mut [bool]) {
        to.fill(false);
        self.for_each_edge(word, |from, towards| {
            if let Some(entry) = to.get_mut(from * self.nodes + towards) {
                *entry = true;
            }
        });
    }

    /// The canonical word of a graph given by its adjacency matrix, n × n row by row.
    ///
    /// ```
    /// use vti::space::{Dags, SpaceError};
    /// let cycle = Dags::new(2, 1)?.encode(&[false, true, true, false]);
    /// assert_eq!(cycle.unwrap_err().to_string(), "the graph has a cycle through `x1`");
    /// # Ok::<(), SpaceError>(())
    /// ```
    pub fn encode(&self, adjacency: &[bool]) -> Result<Model, SpaceError> {
        let n = self.nodes;
        if adjacency.len() != n * n {
            return Err(SpaceError::Adjacency { found: adjacency.len(), nodes: n });
        }
        let edge = |from: usize, to: usize| adjacency[from * n + to];
        let mut parents: Vec<usize> = (0..n).map(|node| (0..n).filter(|&from| edge(from, node)).count()).collect();
        // Nodes that are left, ascending: the place of the chosen one is its Lehmer digit.
        let mut left: Vec<usize> = (0..n).collect();
        let mut order = Vec::with_capacity(n);
        let mut word = Vec::with_capacity(self.arities.len());
        while !left.is_empty() {
            let Some(digit) = left.iter().position(|&node| parents[node] == 0) else {
                let node = on_cycle(&left, edge);
                return Err(SpaceError::Cycle { node, name: self.names[node].clone() });
            };
            let node = left.remove(digit);
            for &child in &left {
                parents[child] -= usize::from(edge(node, child));
            }
            order.push(node);
            if order.len() < n {
                word.push(digit as u16);
            }
        }
        for (position, &from) in order.iter().enumerate() {
            word.extend(order[position + 1..].iter().map(|&to| u16::from(edge(from, to))));
        }
        Ok(word.into())
    }

    /// Calls `visit` with both ends of every edge.
    fn for_each_edge(&self, word: &[u16], mut visit: impl FnMut(usize, usize)) {
        let order = self.order(word);
        let mut bits = word.iter().skip(self.nodes - 1);
        for (position, &from) in order.iter().enumerate() {
            for (&to, &bit) in order[position + 1..].iter().zip(bits.by_ref()) {
                if bit != 0 {
                    visit(from.into(), to.into());
                }
            }
        }
    }
}

/// A node on a cycle, where each of the nodes that are left has a parent among them.
fn on_cycle(left: &[usize], edge: impl Fn(usize, usize) -> bool) -> usize {
    // Going from child to parent as often as there are nodes ends on a cycle, wherever it starts.
    left.iter().fold(left[0], |node, _| left.iter().copied().find(|&parent| edge(parent, node)).unwrap_or(node))
}

impl ModelSpace for Dags {
    fn arities(&self) -> &[u16] {
        &self.arities
    }

    fn max_dim(&self) -> usize {
        self.nodes * (self.nodes - 1) * self.parameters_per_edge
    }

    fn mark_active(&self, word: &[u16], active: &mut [bool]) {
        active.fill(false);
        let width = self.parameters_per_edge;
        self.for_each_edge(word, |from, to| {
            let block = self.edge_index(from, to).and_then(|edge| active.get_mut(edge * width..(edge + 1) * width));
            block.into_iter().for_each(|block| block.fill(true));
        });
    }

    /// Edges like `a→b, b→c`.
    fn label(&self, word: &[u16]) -> String {
        let mut edges = Vec::new();
        self.for_each_edge(word, |from, to| edges.push((from, to)));
        if edges.is_empty() {
            return "no edges".into();
        }
        edges.sort_unstable();
        let edges: Vec<_> =
            edges.into_iter().map(|(from, to)| format!("{}→{}", self.names[from], self.names[to])).collect();
        edges.join(", ")
    }

    /// One for each ordered pair of nodes.
    fn feature_count(&self) -> usize {
        self.nodes * (self.nodes - 1)
    }

    /// Entries of the adjacency matrix without its diagonal, row by row: 1 for an edge, −1 for none.
    fn features(&self, word: &[u16], to: &mut [f64]) {
        to.fill(-1.0);
        self.for_each_edge(word, |from, towards| {
            if let Some(feature) = self.edge_index(from, towards).and_then(|edge| to.get_mut(edge)) {
                *feature = 1.0;
            }
        });
    }

    fn canonical(&self, word: &mut [u16]) {
        let mut adjacency = vec![false; self.nodes * self.nodes];
        self.adjacency(word, &mut adjacency);
        // Edges along an order form no cycle; only a word of another length is left as it is.
        if let Ok(model) = self.encode(&adjacency)
            && model.len() == word.len()
        {
            word.copy_from_slice(&model);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn wrong_graphs_are_refused() {
        assert_eq!(Dags::new(0, 1).unwrap_err(), SpaceError::NoModels);
        assert!(matches!(Dags::new(5000, 1), Err(SpaceError::TooLarge { what: "nodes", .. })));
        assert!(matches!(Dags::new(9, usize::MAX), Err(SpaceError::TooLarge { what: "coordinates", .. })));
        let space = Dags::new(4, 1).unwrap();
        let short = space.encode(&[false; 9]).unwrap_err();
        assert_eq!(short.to_string(), "an adjacency matrix of 9 entries, but 4 nodes need 16");
    }

    #[test]
    fn the_node_named_is_on_the_cycle() {
        let space = Dags::new(5, 1).unwrap();
        // 0 → 3 → 1 → 3 and 1 → 4 → 2: only 1 and 3 are on a cycle.
        let mut adjacency = [false; 25];
        for (from, to) in [(0, 3), (3, 1), (1, 3), (1, 4), (4, 2)] {
            adjacency[from * 5 + to] = true;
        }
        let Err(SpaceError::Cycle { node, name }) = space.encode(&adjacency) else { panic!("a cycle") };
        assert!(matches!((node, name.as_str()), (1, "x2") | (3, "x4")), "{node} {name}");
        let mut own = [false; 25];
        own[2 * 5 + 2] = true;
        assert!(matches!(space.encode(&own), Err(SpaceError::Cycle { node: 2, .. })));
    }

    #[test]
    fn a_single_node_has_one_graph() {
        let space = Dags::new(1, 3).unwrap();
        assert_eq!((space.arities().len(), space.max_dim(), space.feature_count()), (0, 0, 0));
        assert_eq!(space.label(&[]), "no edges");
        assert_eq!(space.encode(&[false]).unwrap().len(), 0);
    }

    #[test]
    fn words_of_other_spaces_do_no_harm() {
        let space = Dags::new(3, 2).unwrap();
        for word in [&[][..], &[9], &[9, 9, 9, 9, 9, 9, 9, 9]] {
            space.mark_active(word, &mut [false; 1]);
            space.features(word, &mut [0.0; 1]);
            space.canonical(&mut word.to_vec());
            space.label(word);
        }
    }
}

//! Directed acyclic graphs.

use std::ops::Range;

use super::error::{at_most, check_names, default_names};
use super::{EdgeRules, MAX_DIM, Model, ModelSpace, SpaceError};
use crate::graph::{nodes_of, ordered_pairs};

/// Directed acyclic graphs over n nodes (appendix G.7, "Model identifier for directed acyclic graphs").
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
/// Parameters belong to nodes, never to positions, so that all words of a graph share them: node b owns a block of
/// consecutive coordinates, first those it always has, then those it has if it has a parent, then those of each edge a → b,
/// a ascending ([`Dags::edge_coordinates`]). Blocks are equally wide: where nodes differ, the last coordinates of the narrower ones
/// belong to no graph.
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
    counts: Vec<NodeParameters>,
    /// Inputs of all nodes before each, and of all.
    inputs_before: Vec<usize>,
    /// Coordinates of the widest block.
    width: usize,
    arities: Vec<u16>,
    names: Vec<String>,
    rules: Option<EdgeRules>,
}

/// How many parameters the nodes of a graph have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeParameters {
    /// Whatever its parents.
    pub always: usize,
    /// Besides, if it has a parent.
    pub with_parents: usize,
    /// For each parent, and if that has several inputs, for each of them.
    pub per_edge: usize,
}

impl NodeParameters {
    /// How many there are with so many inputs of possible parents.
    fn with_inputs(self, inputs: usize) -> usize {
        inputs.saturating_mul(self.per_edge).saturating_add(self.always).saturating_add(self.with_parents)
    }
}

impl Dags {
    /// The most nodes a graph can have.
    pub const MAX_NODES: usize = 4096;

    /// Graphs over these many nodes, whose edges have this many parameters each, and nodes none besides.
    pub fn new(nodes: usize, parameters_per_edge: usize) -> Result<Self, SpaceError> {
        Self::with_parameters(nodes, NodeParameters { per_edge: parameters_per_edge, ..NodeParameters::default() })
    }

    /// Graphs over these many nodes with these many parameters.
    pub fn with_parameters(nodes: usize, counts: NodeParameters) -> Result<Self, SpaceError> {
        at_most("nodes", nodes, Self::MAX_NODES)?;
        Self::with_inputs(&vec![(counts, 1); nodes])
    }

    /// Graphs over nodes each of which has its own number of parameters, and enters the equations of its children by so many inputs.
    ///
    /// ```
    /// use vti::space::{Dags, NodeParameters};
    /// let counts = |always| NodeParameters { always, with_parents: 0, per_edge: 1 };
    /// let space = Dags::with_inputs(&[(counts(1), 1), (counts(2), 3), (counts(1), 1)])?;
    /// assert_eq!(space.node_width(), 5); // of the last node: its own, 0 → 2 and the three of 1 → 2
    /// assert_eq!(space.edge_coordinates(1, 2), Some(10 + 2..10 + 5));
    /// # Ok::<(), vti::space::SpaceError>(())
    /// ```
    pub fn with_inputs(each: &[(NodeParameters, usize)]) -> Result<Self, SpaceError> {
        let nodes = each.len();
        if nodes == 0 {
            return Err(SpaceError::NoModels);
        }
        at_most("nodes", nodes, Self::MAX_NODES)?;
        let mut all = 0usize;
        let before = each.iter().map(|(_, inputs)| {
            all = all.saturating_add(*inputs);
            all
        });
        let inputs_before: Vec<usize> = std::iter::once(0).chain(before).collect();
        let width = |(own, inputs): &(NodeParameters, usize)| own.with_inputs(all - inputs);
        let width = each.iter().map(width).max().unwrap_or(0);
        at_most("coordinates", width.saturating_mul(nodes), MAX_DIM)?;
        let digits = (2..=nodes as u16).rev();
        let arities = digits.chain(std::iter::repeat_n(2, nodes * (nodes - 1) / 2)).collect();
        let (counts, names) = (each.iter().map(|(counts, _)| *counts).collect(), default_names(nodes));
        Ok(Self { nodes, counts, inputs_before, width, arities, names, rules: None })
    }

    /// Only graphs that keep the rules, which must be for as many nodes.
    pub fn with_rules(mut self, rules: EdgeRules) -> Result<Self, SpaceError> {
        if rules.nodes() != self.nodes {
            return Err(SpaceError::Rules { found: rules.nodes(), nodes: self.nodes });
        }
        self.rules = (!rules.is_free()).then_some(rules);
        Ok(self)
    }

    /// What edges must be and must not be there; none where everything is allowed.
    pub fn rules(&self) -> Option<&EdgeRules> {
        self.rules.as_ref()
    }

    /// How many parameters a node has; none where there is no such node.
    pub fn parameters(&self, node: usize) -> NodeParameters {
        self.counts.get(node).copied().unwrap_or_default()
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

    /// The coordinates of an edge; none for a pair that cannot be one.
    ///
    /// ```
    /// use vti::space::{Dags, NodeParameters};
    /// let space = Dags::with_parameters(3, NodeParameters { always: 1, with_parents: 2, per_edge: 5 })?;
    /// assert_eq!(space.edge_coordinates(2, 1), Some(13 + 3 + 5..13 + 3 + 10)); // after those of node 0 and of 0 → 1
    /// # Ok::<(), vti::space::SpaceError>(())
    /// ```
    pub fn edge_coordinates(&self, from: usize, to: usize) -> Option<Range<usize>> {
        let exists = from < self.nodes && to < self.nodes && from != to;
        exists.then(|| {
            let NodeParameters { always, with_parents, per_edge } = self.counts[to];
            let own = if from > to { self.inputs(to) } else { 0 };
            let first = to * self.width + always + with_parents + (self.inputs_before[from] - own) * per_edge;
            first..first + self.inputs(from) * per_edge
        })
    }

    /// By how many inputs a node enters the equations of its children.
    fn inputs(&self, node: usize) -> usize {
        self.inputs_before[node + 1] - self.inputs_before[node]
    }

    /// Coordinates of a node: those it may have with all others as parents, for the node that may have most.
    pub fn node_width(&self) -> usize {
        self.width
    }

    /// How many of them the node itself may have; the others, which come last, belong to no graph.
    pub fn used_width(&self, node: usize) -> usize {
        if node < self.nodes {
            self.counts[node].with_inputs(self.inputs_before[self.nodes] - self.inputs(node))
        } else {
            0
        }
    }

    /// The set of parents of each node, a bit for each; nodes from 64 on have no bit.
    pub fn parents(&self, word: &[u16], to: &mut [u64]) {
        to.fill(0);
        self.for_each_edge(word, |from, towards| {
            if let Some(parents) = to.get_mut(towards) {
                *parents |= 1u64.checked_shl(from as u32).unwrap_or(0);
            }
        });
    }

    /// Overwrites `word` with that of an order and the parents of each node, all of which come before it.
    pub fn write_word(&self, order: &[u16], parents: &[u64], word: &mut [u16]) {
        let mut left: Vec<u16> = (0..self.nodes as u16).collect();
        let mut symbols = word.iter_mut();
        for &node in order.iter().take(self.nodes - 1) {
            let Some(digit) = left.iter().position(|&other| other == node) else { continue };
            left.remove(digit);
            if let Some(symbol) = symbols.next() {
                *symbol = digit as u16;
            }
        }
        for (position, &from) in order.iter().enumerate() {
            for (&to, symbol) in order[position + 1..].iter().zip(symbols.by_ref()) {
                let set = parents.get(usize::from(to)).copied().unwrap_or(0);
                *symbol = u16::from(set.checked_shr(from.into()).unwrap_or(0) & 1 == 1);
            }
        }
    }

    /// The node at each position of a word's order (appendix G.6, "Lehmer Code Decoding").
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
        self.nodes * self.node_width()
    }

    fn mark_active(&self, word: &[u16], active: &mut [bool]) {
        active.fill(false);
        let mut mark = |range: Range<usize>| active.get_mut(range).into_iter().for_each(|block| block.fill(true));
        let own = |node: usize| node * self.width..node * self.width + self.counts[node].always;
        (0..self.nodes).for_each(|node| mark(own(node)));
        self.for_each_edge(word, |from, to| {
            mark(own(to).end..own(to).end + self.counts[to].with_parents);
            self.edge_coordinates(from, to).into_iter().for_each(&mut mark);
        });
    }

    fn allow(&self, prefix: &[u16], allowed: &mut [bool]) {
        allowed.fill(true);
        if let Some(rules) = &self.rules {
            rules.allow_next(self, prefix, allowed);
        }
    }

    fn is_constrained(&self) -> bool {
        self.rules.is_some()
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
            if let Some(feature) = to.get_mut(self.edge_feature(from, towards)) {
                *feature = 1.0;
            }
        });
    }

    fn part_names(&self) -> Vec<String> {
        let name = |(from, to): (usize, usize)| format!("{}→{}", self.names[from], self.names[to]);
        ordered_pairs(self.nodes).map(name).collect()
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

/// What belongs to one node.
impl Dags {
    /// Overwrites `active`, of length [`node_width`](Self::node_width), with the coordinates that a node with these parents
    /// uses, a bit for each parent.
    pub fn mark_node(&self, node: usize, parents: u64, active: &mut [bool]) {
        let NodeParameters { always, with_parents, .. } = self.parameters(node);
        active.fill(false);
        active.iter_mut().take(always).for_each(|active| *active = true);
        if parents != 0 {
            active.iter_mut().skip(always).take(with_parents).for_each(|active| *active = true);
        }
        let start = node * self.width;
        for from in nodes_of(parents) {
            let edge = self.edge_coordinates(from, node).map(|edge| edge.start - start..edge.end - start);
            edge.and_then(|edge| active.get_mut(edge)).into_iter().for_each(|edge| edge.fill(true));
        }
    }

    /// Number of [`node_features`](Self::node_features).
    pub fn node_feature_count(&self) -> usize {
        2 * self.nodes
    }

    /// Which node, one-hot, and its parents, 1 or −1.
    pub fn node_features(&self, node: usize, parents: u64, to: &mut [f64]) {
        for (place, feature) in to.iter_mut().enumerate() {
            *feature = match place.checked_sub(self.nodes) {
                None => f64::from(u8::from(place == node)),
                Some(from) => f64::from(u8::from(parents.checked_shr(from as u32).unwrap_or(0) & 1 == 1)) * 2.0 - 1.0,
            };
        }
    }

    /// The place of an edge among the [features](ModelSpace::features).
    pub fn edge_feature(&self, from: usize, to: usize) -> usize {
        from * (self.nodes - 1) + to - usize::from(to > from)
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

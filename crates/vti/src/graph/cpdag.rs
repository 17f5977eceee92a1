//! Markov equivalence classes.

use super::{Graph, GraphError, nodes_of};

/// The completed partially directed graph of an acyclic graph: what all graphs of its Markov equivalence class have in
/// common. They are those with the same skeleton and the same v-structures a → c ← b with a and b not adjacent (Verma and
/// Pearl 1990); an edge that all of them direct alike is directed here, the others are not.
///
/// Two acyclic graphs are Markov equivalent if and only if these are equal.
///
/// ```
/// use vti::graph::{Cpdag, Graph};
/// let chain = Cpdag::of(&Graph::from_edges(3, &[(0, 1), (1, 2)])?)?;
/// let fork = Cpdag::of(&Graph::from_edges(3, &[(1, 0), (1, 2)])?)?;
/// let collider = Cpdag::of(&Graph::from_edges(3, &[(0, 1), (2, 1)])?)?;
/// assert!(chain == fork && chain != collider);
/// assert!(chain.undirected(0, 1) && collider.directed(0, 1));
/// # Ok::<(), vti::graph::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpdag {
    /// Bit i of `parents[j]`: i → j.
    parents: Vec<u64>,
    /// Bit i of `neighbours[j]`: i — j.
    neighbours: Vec<u64>,
}

impl Cpdag {
    /// The class of a graph; an error if it has a cycle.
    pub fn of(graph: &Graph) -> Result<Self, GraphError> {
        Self::under(graph, &[])
    }

    /// The class of a graph where also data are known in which these sets of nodes were set from outside, bit i for node i: an
    /// edge of which a set has one end only is directed, too (the essential graphs of Hauser and Bühlmann, "Characterization and
    /// greedy learning of interventional Markov equivalence classes of directed acyclic graphs", Journal of Machine Learning
    /// Research 13, 2012).
    ///
    /// ```
    /// use vti::graph::{Cpdag, Graph};
    /// let chain = Graph::from_edges(3, &[(0, 1), (1, 2)])?;
    /// // The first node was set, and so the second edge has a direction as well: there is no collider.
    /// assert!(Cpdag::under(&chain, &[0b001])?.directed(1, 2));
    /// # Ok::<(), vti::graph::GraphError>(())
    /// ```
    pub fn under(graph: &Graph, targets: &[u64]) -> Result<Self, GraphError> {
        if graph.node_on_cycle().is_some() {
            return Err(GraphError::Cycle);
        }
        let nodes = graph.nodes();
        let mut adjacent = graph.parents.clone();
        for (from, to) in graph.edges() {
            adjacent[from] |= 1 << to;
        }
        let mut class = Self { parents: vec![0; nodes], neighbours: adjacent.clone() };
        for node in 0..nodes {
            let parents = graph.parents[node];
            for parent in nodes_of(parents) {
                if parents & !adjacent[parent] & !(1 << parent) != 0 {
                    class.direct(parent, node);
                }
            }
        }
        for (from, to) in graph.edges() {
            if targets.iter().any(|target| (target >> from ^ target >> to) & 1 == 1) {
                class.direct(from, to);
            }
        }
        while class.direct_more(&adjacent) {}
        Ok(class)
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.parents.len()
    }

    /// Whether every graph of the class has from → to.
    pub fn directed(&self, from: usize, to: usize) -> bool {
        from < self.nodes() && self.parents.get(to).is_some_and(|mask| mask >> from & 1 == 1)
    }

    /// Whether some graphs of the class have a → b, and others b → a.
    pub fn undirected(&self, a: usize, b: usize) -> bool {
        a < self.nodes() && self.neighbours.get(b).is_some_and(|mask| mask >> a & 1 == 1)
    }

    /// The graph in which an undirected edge is an edge in both directions.
    pub fn both_directions(&self) -> Graph {
        Graph { parents: self.parents.iter().zip(&self.neighbours).map(|(parents, others)| parents | others).collect() }
    }

    fn direct(&mut self, from: usize, to: usize) {
        self.neighbours[from] &= !(1 << to);
        self.neighbours[to] &= !(1 << from);
        self.parents[to] |= 1 << from;
    }

    /// Directs edges that must be, as there would be another v-structure or a cycle otherwise (Meek 1995, rules 1 to 3);
    /// whether there were any.
    fn direct_more(&mut self, adjacent: &[u64]) -> bool {
        let mut any = false;
        for to in 0..self.nodes() {
            for from in nodes_of(self.neighbours[to]) {
                if self.must_direct(from, to, adjacent) {
                    self.direct(from, to);
                    any = true;
                }
            }
        }
        any
    }

    /// Whether an undirected edge must go this way.
    fn must_direct(&self, from: usize, to: usize, adjacent: &[u64]) -> bool {
        // a → from — to with a and `to` not adjacent.
        let away = self.parents[from] & !adjacent[to] != 0;
        // from → a → to.
        let along = nodes_of(self.parents[to]).any(|middle| self.directed(from, middle));
        // from — a → to and from — b → to with a and b not adjacent.
        let between = self.neighbours[from] & self.parents[to];
        let apart = nodes_of(between).any(|a| between & !adjacent[a] & !(1 << a) != 0);
        away || along || apart
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;
    use crate::graph::all_dags;

    /// What defines a class: pairs with an edge, and v-structures.
    fn definition(graph: &Graph) -> (Vec<[usize; 2]>, Vec<[usize; 3]>) {
        let n = graph.nodes();
        let adjacent = |a: usize, b: usize| graph.has(a, b) || graph.has(b, a);
        let pairs = (0..n).flat_map(|b| (0..b).map(move |a| [a, b]));
        let skeleton = pairs.clone().filter(|&[a, b]| adjacent(a, b)).collect();
        let apart = pairs.filter(|&[a, b]| !adjacent(a, b));
        let colliders = apart.flat_map(|[a, b]| (0..n).map(move |c| [a, c, b]));
        (skeleton, colliders.filter(|&[a, c, b]| graph.has(a, c) && graph.has(b, c)).collect())
    }

    /// A graph without edges into the nodes of a set.
    fn mutilated(graph: &Graph, target: u64) -> Graph {
        let edges: Vec<(usize, usize)> = graph.edges().filter(|(_, to)| target >> to & 1 == 0).collect();
        Graph::from_edges(graph.nodes(), &edges).unwrap()
    }

    /// Graphs by class: equivalent as they are, and with the same pairs joined wherever nodes were set.
    fn classes(nodes: usize, targets: &[u64]) -> Vec<Vec<Graph>> {
        let mut members: HashMap<_, Vec<Graph>> = HashMap::new();
        for graph in all_dags(nodes).unwrap() {
            let cut: Vec<_> = targets.iter().map(|&target| definition(&mutilated(&graph, target)).0).collect();
            members.entry((definition(&graph), cut)).or_default().push(graph);
        }
        members.into_values().collect()
    }

    fn law(nodes: usize, targets: &[u64], count: Option<usize>) {
        let members = classes(nodes, targets);
        assert!(count.is_none_or(|count| members.len() == count));
        let mut found = HashSet::new();
        for class in &members {
            let of: HashSet<Cpdag> = class.iter().map(|graph| Cpdag::under(graph, targets).unwrap()).collect();
            assert_eq!(of.len(), 1);
            let cpdag = of.into_iter().next().unwrap();
            for (a, b) in (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b))) {
                let all = class.iter().all(|graph| graph.has(a, b));
                let some = |a, b| class.iter().any(|graph| graph.has(a, b));
                assert_eq!(cpdag.directed(a, b), all);
                assert_eq!(cpdag.undirected(a, b), !all && some(a, b) && some(b, a));
                assert_eq!(cpdag.both_directions().has(a, b), some(a, b));
            }
            assert!(found.insert(cpdag), "two classes, one picture");
        }
    }

    #[test]
    fn classes_have_the_same_picture_and_their_members_agree_on_what_is_directed() {
        // OEIS A007984.
        law(3, &[], Some(11));
        law(4, &[], Some(185));
    }

    #[test]
    fn interventions_leave_smaller_classes() {
        for targets in [&[0b0001][..], &[0b0011], &[0b0101, 0b0010], &[0b0001, 0b0010, 0b0100, 0b1000]] {
            law(4, targets, (targets.len() == 4).then_some(543));
        }
    }

    #[test]
    fn five_nodes_have_as_many_classes_as_are_known() {
        let classes: HashSet<Cpdag> = all_dags(5).unwrap().iter().map(|graph| Cpdag::of(graph).unwrap()).collect();
        assert_eq!(classes.len(), 8782);
    }

    #[test]
    fn cyclic_graphs_have_no_class() {
        assert_eq!(Cpdag::of(&Graph::complete(2).unwrap()), Err(GraphError::Cycle));
    }
}

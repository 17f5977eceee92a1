//! What is known of the graph beforehand: edges that must be, edges that cannot be, and how many parents are enough.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::graph::{Graph, GraphError};

/// What is known of the graph beforehand. Nodes are counted from 0.
///
/// ```
/// use vti::problem::dag::Rules;
/// // Node 2 is measured last and cannot be a cause of the others; node 0 is known to cause node 1.
/// let rules = Rules { required: vec![[0, 1]], tiers: vec![vec![0, 1], vec![2]], ..Rules::default() };
/// let rules = rules.compile(3)?;
/// assert!(rules.allows(1, 0b001) && !rules.allows(1, 0b000) && !rules.allows(1, 0b101));
/// assert!(rules.allows(2, 0b000) && rules.allows(2, 0b011));
/// # Ok::<(), vti::problem::dag::RulesError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// Edges [from, to] that every graph has.
    pub required: Vec<[usize; 2]>,
    /// Edges [from, to] that no graph has.
    pub forbidden: Vec<[usize; 2]>,
    /// Groups of nodes, earliest first: a node of a later group is never a parent of one of an earlier group. Edges within a
    /// group are free, and so are those of nodes in no group.
    pub tiers: Vec<Vec<usize>>,
    /// The most parents a node may have.
    pub max_parents: Option<usize>,
}

/// Rules that contradict each other, or that are about something else.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RulesError {
    /// A number of nodes no graph can have, or an edge of a node to itself.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A node that does not exist.
    #[error("a rule names node {node}, but there are only {nodes}, counted from 0")]
    UnknownNode {
        /// The node.
        node: usize,
        /// How many there are.
        nodes: usize,
    },
    /// An edge that must be and cannot be.
    #[error("edge {from} → {to} is required and forbidden\nhint: remove one of the two rules")]
    RequiredAndForbidden {
        /// Where it starts.
        from: usize,
        /// Where it ends.
        to: usize,
    },
    /// An edge that must be and goes back in time.
    #[error(
        "edge {from} → {to} is required, but the tier of node {from} comes after that of node {to}\nhint: tiers are listed earliest first"
    )]
    RequiredAgainstTiers {
        /// Where it starts.
        from: usize,
        /// Where it ends.
        to: usize,
    },
    /// Required edges that close a cycle.
    #[error("the required edges form a cycle through node {node}")]
    RequiredCycle {
        /// A node on it.
        node: usize,
    },
    /// More parents required than allowed.
    #[error("node {node} has {required} required parents, but at most {most} are allowed\nhint: raise max_parents")]
    TooManyRequired {
        /// The node.
        node: usize,
        /// How many must be.
        required: usize,
        /// How many may be.
        most: usize,
    },
    /// A node in two tiers, or twice in one.
    #[error("node {node} is listed twice in the tiers")]
    TwoTiers {
        /// The node.
        node: usize,
    },
}

impl Rules {
    /// Whether anything is asked at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The rules as sets of parents, if they do not contradict each other.
    pub fn compile(&self, nodes: usize) -> Result<CompiledRules, RulesError> {
        let required = edges(&self.required, nodes)?;
        let forbidden = edges(&self.forbidden, nodes)?;
        let tier_of = self.tier_of(nodes)?;
        let everyone = Graph::complete(nodes)?;
        let mut allowed = Vec::with_capacity(nodes);
        for to in 0..nodes {
            let later = |from: &usize| matches!((tier_of[*from], tier_of[to]), (Some(a), Some(b)) if a > b);
            let against = (0..nodes).filter(later).fold(0, |mask, from| mask | 1 << from);
            if let Some(from) = first(required.parents(to) & forbidden.parents(to)) {
                return Err(RulesError::RequiredAndForbidden { from, to });
            }
            if let Some(from) = first(required.parents(to) & against) {
                return Err(RulesError::RequiredAgainstTiers { from, to });
            }
            allowed.push(everyone.parents(to) & !forbidden.parents(to) & !against);
        }
        if let Some(node) = required.node_on_cycle() {
            return Err(RulesError::RequiredCycle { node });
        }
        // An edge against a chain of required ones would close a cycle; no order has it, and none needs to be forbidden it.
        let most = self.max_parents.map_or(nodes - 1, |most| most.min(nodes - 1));
        for node in 0..nodes {
            let count = required.parents(node).count_ones() as usize;
            if count > most {
                return Err(RulesError::TooManyRequired { node, required: count, most });
            }
        }
        let required = (0..nodes).map(|node| required.parents(node)).collect();
        Ok(CompiledRules { required, allowed, max_parents: most })
    }

    /// The tier of each node, if it has one.
    fn tier_of(&self, nodes: usize) -> Result<Vec<Option<usize>>, RulesError> {
        let mut tier_of = vec![None; nodes];
        for (tier, members) in self.tiers.iter().enumerate() {
            for &node in members {
                let place = tier_of.get_mut(node).ok_or(RulesError::UnknownNode { node, nodes })?;
                if place.replace(tier).is_some() {
                    return Err(RulesError::TwoTiers { node });
                }
            }
        }
        Ok(tier_of)
    }
}

fn edges(pairs: &[[usize; 2]], nodes: usize) -> Result<Graph, RulesError> {
    if let Some(&node) = pairs.iter().flatten().find(|&&node| node >= nodes) {
        return Err(RulesError::UnknownNode { node, nodes });
    }
    let pairs: Vec<(usize, usize)> = pairs.iter().map(|&[from, to]| (from, to)).collect();
    Ok(Graph::from_edges(nodes, &pairs)?)
}

/// The first node of a set.
fn first(set: u64) -> Option<usize> {
    (set != 0).then(|| set.trailing_zeros() as usize)
}

/// Rules as sets of parents: bit i stands for node i.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledRules {
    required: Vec<u64>,
    allowed: Vec<u64>,
    max_parents: usize,
}

impl CompiledRules {
    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.required.len()
    }

    /// Parents the node must have.
    pub fn required(&self, node: usize) -> u64 {
        self.required[node]
    }

    /// Parents the node may have, the required ones among them.
    pub fn allowed(&self, node: usize) -> u64 {
        self.allowed[node]
    }

    /// The most parents a node may have.
    pub fn max_parents(&self) -> usize {
        self.max_parents
    }

    /// Whether nothing is asked: every acyclic graph is allowed.
    pub fn is_free(&self) -> bool {
        let nodes = self.nodes();
        let free = |node: usize| self.required[node] == 0 && self.allowed[node].count_ones() as usize == nodes - 1;
        self.max_parents + 1 >= nodes && (0..nodes).all(free)
    }

    /// Whether a node may have exactly these parents.
    pub fn allows(&self, node: usize, parents: u64) -> bool {
        parents & self.required[node] == self.required[node]
            && parents & !self.allowed[node] == 0
            && parents.count_ones() as usize <= self.max_parents
    }

    /// These rules and one more required edge; none if that contradicts them.
    pub fn requiring(&self, from: usize, to: usize) -> Option<Self> {
        let mut rules = self.clone();
        let required = rules.required.get_mut(to)?;
        *required |= 1 << from;
        let possible = *required & !self.allowed[to] == 0 && required.count_ones() as usize <= self.max_parents;
        let graph = possible.then(|| Graph::from_parents(rules.required.clone()).ok())??;
        graph.node_on_cycle().is_none().then_some(rules)
    }

    /// Whether a graph keeps all rules.
    pub fn allow(&self, graph: &Graph) -> bool {
        graph.nodes() == self.nodes() && (0..self.nodes()).all(|node| self.allows(node, graph.parents(node)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::graph::all_dags;

    #[test]
    fn compiled_rules_are_the_rules() {
        let rules = Rules {
            required: vec![[1, 3]],
            forbidden: vec![[0, 2], [3, 2]],
            tiers: vec![vec![1, 2], vec![3]],
            max_parents: Some(2),
        };
        let compiled = rules.compile(4).unwrap();
        assert!(!compiled.is_free() && !rules.is_empty());
        let mut kept = 0;
        for graph in all_dags(4).unwrap() {
            let keeps = graph.has(1, 3)
                && !graph.has(0, 2)
                && !graph.has(3, 2)
                && !graph.has(3, 1)
                && (0..4).all(|to| (0..4).filter(|&from| graph.has(from, to)).count() <= 2);
            assert_eq!(compiled.allow(&graph), keeps, "{graph:?}");
            kept += usize::from(keeps);
        }
        assert!(kept > 10);
        assert!(!compiled.allow(&Graph::empty(3).unwrap()));
    }

    #[test]
    fn no_rules_allow_everything() {
        let free = Rules::default().compile(4).unwrap();
        assert!(free.is_free());
        assert!(all_dags(4).unwrap().iter().all(|graph| free.allow(graph)));
        assert!(Rules { max_parents: Some(7), ..Rules::default() }.compile(4).unwrap().is_free());
        assert!(!Rules { max_parents: Some(2), ..Rules::default() }.compile(4).unwrap().is_free());
    }

    #[test]
    fn contradictions_are_found() {
        let error = |rules: Rules| rules.compile(3).unwrap_err();
        let required = |edges: &[[usize; 2]]| Rules { required: edges.to_vec(), ..Rules::default() };
        assert_eq!(
            error(Rules { forbidden: vec![[0, 1]], ..required(&[[0, 1]]) }),
            RulesError::RequiredAndForbidden { from: 0, to: 1 }
        );
        assert_eq!(
            error(Rules { tiers: vec![vec![1], vec![2, 0]], ..required(&[[0, 1]]) }),
            RulesError::RequiredAgainstTiers { from: 0, to: 1 }
        );
        assert!(matches!(error(required(&[[0, 1], [1, 2], [2, 0]])), RulesError::RequiredCycle { .. }));
        assert_eq!(
            error(Rules { max_parents: Some(1), ..required(&[[0, 1], [2, 1]]) }),
            RulesError::TooManyRequired { node: 1, required: 2, most: 1 }
        );
        assert_eq!(error(required(&[[0, 3]])), RulesError::UnknownNode { node: 3, nodes: 3 });
        assert_eq!(error(required(&[[1, 1]])), RulesError::Graph(GraphError::Loop { node: 1 }));
        let tiers =
            |tiers: &[&[usize]]| Rules { tiers: tiers.iter().map(|t| t.to_vec()).collect(), ..Rules::default() };
        assert_eq!(error(tiers(&[&[0], &[5]])), RulesError::UnknownNode { node: 5, nodes: 3 });
        assert_eq!(error(tiers(&[&[0], &[1, 0]])), RulesError::TwoTiers { node: 0 });
        assert_eq!(Rules::default().compile(0).unwrap_err(), RulesError::Graph(GraphError::NoNodes));
    }
}

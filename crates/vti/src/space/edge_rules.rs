//! Edges that must be there, and edges that must not.

use super::{Dags, ModelSpace};
use crate::graph::{Graph, GraphError, nodes_of};

/// What a graph must look like: parents that each node must have, parents that it may have, and how many are enough.
///
/// Every prefix of a word that keeps the rules can be continued: an order is one of the required edges, and every node has
/// room for the parents it still needs.
///
/// ```
/// use vti::graph::Graph;
/// use vti::space::EdgeRules;
/// // Node 0 causes node 1, and no node has two parents.
/// let rules = EdgeRules::new(Graph::from_edges(3, &[(0, 1)])?, Graph::complete(3)?, 1)?;
/// assert!(rules.allows(1, 0b001) && !rules.allows(1, 0b100) && !rules.allows(1, 0b101));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeRules {
    required: Graph,
    allowed: Graph,
    max_parents: usize,
}

/// Rules that contradict each other, or that are about something else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// A number of nodes no graph can have, or an edge of a node to itself.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// Required and allowed edges of different nodes.
    #[error("the required edges are those of {required} nodes, the allowed ones those of {allowed}")]
    Nodes {
        /// Nodes of the required edges.
        required: usize,
        /// Nodes of the allowed edges.
        allowed: usize,
    },
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

impl EdgeRules {
    /// Every graph has the required edges and none but the allowed ones, and no node has more parents than that.
    pub fn new(required: Graph, allowed: Graph, max_parents: usize) -> Result<Self, RulesError> {
        let nodes = allowed.nodes();
        if required.nodes() != nodes {
            return Err(RulesError::Nodes { required: required.nodes(), allowed: nodes });
        }
        let most = max_parents.min(nodes - 1);
        for to in 0..nodes {
            let parents = required.parents(to);
            if let Some(from) = nodes_of(parents & !allowed.parents(to)).next() {
                return Err(RulesError::RequiredAndForbidden { from, to });
            }
            let count = parents.count_ones() as usize;
            if count > most {
                return Err(RulesError::TooManyRequired { node: to, required: count, most });
            }
        }
        if let Some(node) = required.node_on_cycle() {
            return Err(RulesError::RequiredCycle { node });
        }
        // An allowed edge against a chain of required ones would close a cycle; no order has it, so it need not be forbidden.
        Ok(Self { required, allowed, max_parents: most })
    }

    /// Everything is allowed.
    pub fn none(nodes: usize) -> Result<Self, RulesError> {
        Self::new(Graph::empty(nodes)?, Graph::complete(nodes)?, nodes)
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.required.nodes()
    }

    /// Parents the node must have.
    pub fn required(&self, node: usize) -> u64 {
        self.required.parents(node)
    }

    /// Parents the node may have, the required ones among them.
    pub fn allowed(&self, node: usize) -> u64 {
        self.allowed.parents(node)
    }

    /// Parents the node may have and need not.
    pub fn optional(&self, node: usize) -> u64 {
        self.allowed(node) & !self.required(node)
    }

    /// The most parents a node may have.
    pub fn max_parents(&self) -> usize {
        self.max_parents
    }

    /// Whether nothing is asked: every acyclic graph is allowed.
    pub fn is_free(&self) -> bool {
        let nodes = self.nodes();
        self.required.edge_count() == 0
            && self.allowed.edge_count() == nodes * (nodes - 1)
            && self.max_parents + 1 == nodes
    }

    /// Whether a node may have exactly these parents.
    pub fn allows(&self, node: usize, parents: u64) -> bool {
        let (required, allowed) = (self.required(node), self.allowed(node));
        parents & required == required && parents & !allowed == 0 && parents.count_ones() as usize <= self.max_parents
    }

    /// Whether a graph keeps all rules.
    pub fn allow(&self, graph: &Graph) -> bool {
        graph.nodes() == self.nodes() && (0..self.nodes()).all(|node| self.allows(node, graph.parents(node)))
    }

    /// These rules and one more required edge; none if that contradicts them.
    pub fn requiring(&self, from: usize, to: usize) -> Option<Self> {
        let edges: Vec<(usize, usize)> = self.required.edges().chain([(from, to)]).collect();
        let required = Graph::from_edges(self.nodes(), &edges).ok()?;
        Self::new(required, self.allowed.clone(), self.max_parents).ok()
    }

    /// Forbids what would break the rules after a prefix; `allowed` comes all true.
    pub(super) fn allow_next(&self, space: &Dags, prefix: &[u16], allowed: &mut [bool]) {
        let digits = space.nodes() - 1;
        if prefix.len() >= space.arities().len() {
            return;
        }
        let order = space.order(prefix);
        if prefix.len() < digits {
            // What is left stands ascending behind what was chosen: a node may come once all its required parents are there.
            let placed = order[..prefix.len()].iter().fold(0u64, |set, &node| set | 1 << node);
            for (allowed, &node) in allowed.iter_mut().zip(&order[prefix.len()..]) {
                *allowed = self.required(node.into()) & !placed == 0;
            }
            return;
        }
        let (from, to, parents) = bit_of(space.nodes(), &order, &prefix[digits..]);
        let (required, may) = (self.required.has(from, to), self.allowed.has(from, to));
        // Required parents that are already there, or are decided by this bit, need no room.
        let needed = (self.required(to) & !parents & !(1 << from)).count_ones() as usize;
        let room = parents.count_ones() as usize + needed < self.max_parents;
        if let [without, with] = allowed {
            *without = !required;
            *with = required || may && room;
        }
    }
}

/// Which edge the next bit decides, and the parents that its end has already.
fn bit_of(nodes: usize, order: &[u16], bits: &[u16]) -> (usize, usize, u64) {
    let (mut row, mut first) = (0, 0);
    while first + (nodes - 1 - row) <= bits.len() {
        first += nodes - 1 - row;
        row += 1;
    }
    let column = row + 1 + (bits.len() - first);
    let (mut parents, mut start) = (0u64, 0);
    for position in 0..row {
        let bit = bits[start + column - position - 1];
        parents |= u64::from(bit) << order[position];
        start += nodes - 1 - position;
    }
    (order[row].into(), order[column].into(), parents)
}

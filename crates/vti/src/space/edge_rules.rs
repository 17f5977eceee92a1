//! Edges that must be there, and edges that must not.

use super::{Dags, ModelSpace, SpaceError};

/// What a graph must look like, as sets of nodes with a bit for each; for at most 64 nodes.
///
/// Every prefix of a word that keeps the rules can be continued: an order is one of the required edges, and every node has
/// room for the parents it still needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeRules {
    /// Parents that each node must have.
    pub required: Vec<u64>,
    /// Parents that each node may have.
    pub allowed: Vec<u64>,
    /// The most parents of a node.
    pub max_parents: usize,
}

impl EdgeRules {
    /// Everything is allowed.
    pub fn none(nodes: usize) -> Self {
        let all = if nodes >= 64 { u64::MAX } else { (1 << nodes) - 1 };
        let allowed = (0..nodes.min(64)).map(|node| all & !(1 << node)).collect();
        Self { required: vec![0; nodes.min(64)], allowed, max_parents: nodes }
    }

    /// Whether a node may have these parents.
    pub fn allows(&self, node: usize, parents: u64) -> bool {
        let (Some(required), Some(allowed)) = (self.required.get(node), self.allowed.get(node)) else { return false };
        parents & required == *required && parents & !allowed == 0 && parents.count_ones() as usize <= self.max_parents
    }

    /// Whether every graph keeps the rules.
    pub(super) fn allow_all(&self) -> bool {
        let nodes = self.allowed.len();
        let free = Self::none(nodes);
        self.required == free.required && self.allowed == free.allowed && self.max_parents + 1 >= nodes
    }

    /// Whether some graph of these nodes keeps the rules.
    pub(super) fn check(&self, names: &[String]) -> Result<(), SpaceError> {
        let nodes = names.len();
        if self.required.len() != nodes || self.allowed.len() != nodes {
            return Err(SpaceError::Rules { found: self.required.len().min(self.allowed.len()), nodes });
        }
        for (node, (&required, &allowed)) in self.required.iter().zip(&self.allowed).enumerate() {
            if required & !allowed != 0 || required.count_ones() as usize > self.max_parents {
                return Err(SpaceError::Contradiction { node, name: names[node].clone() });
            }
        }
        let mut placed = 0u64;
        while let Some(next) = (0..nodes).find(|&node| placed >> node & 1 == 0 && self.required[node] & !placed == 0) {
            placed |= 1 << next;
        }
        match (0..nodes).find(|&node| placed >> node & 1 == 0) {
            Some(node) => Err(SpaceError::Cycle { node, name: names[node].clone() }),
            None => Ok(()),
        }
    }

    /// Forbids what would break the rules after a prefix; `allowed` comes all true.
    pub(super) fn allow(&self, space: &Dags, prefix: &[u16], allowed: &mut [bool]) {
        let digits = space.nodes() - 1;
        if prefix.len() >= space.arities().len() {
            return;
        }
        let order = space.order(prefix);
        if prefix.len() < digits {
            // What is left stands ascending behind what was chosen: a node may come once all its required parents are there.
            let placed = order[..prefix.len()].iter().fold(0u64, |set, &node| set | 1 << node);
            for (allowed, &node) in allowed.iter_mut().zip(&order[prefix.len()..]) {
                *allowed = self.required[usize::from(node)] & !placed == 0;
            }
            return;
        }
        let (from, to, parents) = bit_of(space.nodes(), &order, &prefix[digits..]);
        let (required, may) = (self.required[to] >> from & 1 == 1, self.allowed[to] >> from & 1 == 1);
        // Required parents that are already there, or are decided by this bit, need no room.
        let needed = (self.required[to] & !parents & !(1 << from)).count_ones() as usize;
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

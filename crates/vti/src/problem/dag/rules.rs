//! What is known of the graph beforehand: edges that must be, edges that cannot be, and how many parents are enough.

use serde::{Deserialize, Serialize};

use crate::graph::Graph;
use crate::space::{EdgeRules, RulesError};

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

impl Rules {
    /// Whether anything is asked at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The rules as sets of parents, if they do not contradict each other.
    pub fn compile(&self, nodes: usize) -> Result<EdgeRules, RulesError> {
        let required = edges(&self.required, nodes)?;
        let forbidden = edges(&self.forbidden, nodes)?;
        let tier_of = self.tier_of(nodes)?;
        let goes_back = |from: usize, to: usize| matches!((tier_of[from], tier_of[to]), (Some(a), Some(b)) if a > b);
        // That an edge is forbidden is plainer than that it goes back, so tiers are looked at afterwards.
        if let Some((from, to)) = required.edges().find(|&(from, to)| goes_back(from, to) && !forbidden.has(from, to)) {
            return Err(RulesError::RequiredAgainstTiers { from, to });
        }
        let may_be = |&(from, to): &(usize, usize)| !forbidden.has(from, to) && !goes_back(from, to);
        let allowed: Vec<(usize, usize)> = Graph::complete(nodes)?.edges().filter(may_be).collect();
        EdgeRules::new(required, Graph::from_edges(nodes, &allowed)?, self.max_parents.unwrap_or(nodes))
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::graph::{GraphError, all_dags};

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

//! Every acyclic graph over a few nodes.

use super::{Graph, GraphError, low_bits};

/// The most nodes whose graphs are listed.
const MAX_NODES: usize = 5;

/// Every directed acyclic graph over at most 5 nodes: 1, 3, 25, 543 or 29,281 of them, ascending.
///
/// ```
/// assert_eq!(vti::graph::all_dags(4)?.len(), 543);
/// # Ok::<(), vti::graph::GraphError>(())
/// ```
pub fn all_dags(nodes: usize) -> Result<Vec<Graph>, GraphError> {
    if nodes > MAX_NODES {
        return Err(GraphError::TooManyNodes { nodes, most: MAX_NODES });
    }
    let mut graph = Graph::empty(nodes)?;
    let mut found = Vec::new();
    extend(&mut graph, 0, &mut found);
    Ok(found)
}

/// Gives parents to `node` and the nodes after it in every way that makes no cycle.
fn extend(graph: &mut Graph, node: usize, found: &mut Vec<Graph>) {
    if node == graph.nodes() {
        found.push(graph.clone());
        return;
    }
    for mask in (0..=low_bits(graph.nodes())).filter(|mask| mask >> node & 1 == 0) {
        graph.parents[node] = mask;
        if graph.node_on_cycle().is_none() {
            extend(graph, node + 1, found);
        }
    }
    graph.parents[node] = 0;
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_as_are_known() {
        // OEIS A003024.
        for (nodes, count) in [(1, 1), (2, 3), (3, 25), (4, 543), (5, 29_281)] {
            let graphs = all_dags(nodes).unwrap();
            assert_eq!(graphs.len(), count);
            assert!(graphs.windows(2).all(|pair| pair[0] < pair[1]), "ascending, so no two alike");
            assert!(graphs.iter().all(|graph| graph.order().is_some()));
        }
        assert_eq!(all_dags(6), Err(GraphError::TooManyNodes { nodes: 6, most: 5 }));
        assert_eq!(all_dags(0), Err(GraphError::NoNodes));
    }
}

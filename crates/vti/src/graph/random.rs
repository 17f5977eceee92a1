//! Graphs drawn at random.

use super::Graph;
use crate::random::Stream;

impl Graph {
    /// A uniform order of at most 64 nodes, and a graph in which each node has each one before it as a parent with this
    /// probability (paper, appendix G.1, "Data generating process").
    pub(crate) fn draw(stream: &mut Stream, nodes: usize, edge_probability: f64) -> (Vec<usize>, Self) {
        let mut order: Vec<usize> = (0..nodes).collect();
        for place in 0..nodes {
            order.swap(place, place + stream.below((nodes - place) as u64) as usize);
        }
        let mut parents = vec![0; nodes];
        for (place, &node) in order.iter().enumerate() {
            for &earlier in &order[..place] {
                if stream.uniform() < edge_probability {
                    parents[node] |= 1 << earlier;
                }
            }
        }
        (order, Self { parents })
    }
}

//! Which layer each node is in.

use super::{Plan, ROW_WIDTH};
use crate::layered::place::NODE_GAP;

/// A layer for each node: edges of `plan.down` lead to a later one; nodes without any line come last.
pub(super) fn layers(plan: &Plan<'_>) -> Vec<usize> {
    let nodes = plan.widths.len();
    let arcs = arcs(plan);
    let wanted = tightened(longest_paths(nodes, &arcs).unwrap_or_else(|| vec![0; nodes]), &arcs);
    let joined = |node: usize| plan.pairs.iter().chain(plan.down).any(|&(a, b)| a == node || b == node);
    let mut order: Vec<usize> = (0..nodes).collect();
    order.sort_by_key(|&node| (!joined(node), wanted[node]));
    let mut layers = vec![0; nodes];
    let mut used: Vec<f64> = Vec::new();
    let mut last_joined = 0;
    for node in order {
        let after_parents = arcs.iter().filter(|arc| arc.1 == node).map(|arc| layers[arc.0] + 1).max().unwrap_or(0);
        let earliest = if joined(node) { after_parents.max(wanted[node]) } else { last_joined };
        let width = plan.widths[node] + NODE_GAP;
        let mut layer = earliest;
        while used.get(layer).is_some_and(|used| *used > 0.0 && used + width > ROW_WIDTH) {
            layer += 1;
        }
        used.resize(used.len().max(layer + 1), 0.0);
        used[layer] += width;
        layers[node] = layer;
        if joined(node) {
            last_joined = last_joined.max(layer + 1);
        }
    }
    without_gaps(layers)
}

/// The edges that point downwards: all of `down` and as many pairs as fit.
fn arcs(plan: &Plan<'_>) -> Vec<(usize, usize)> {
    let nodes = plan.widths.len();
    let depth =
        |arcs: &[(usize, usize)]| longest_paths(nodes, arcs).map(|layers| layers.into_iter().max().unwrap_or(0));
    let mut arcs = Vec::new();
    let mut add = |edges: &[(usize, usize)], most: usize| {
        for edge in edges.iter().filter(|edge| edge.0 != edge.1) {
            if !arcs.contains(edge) {
                arcs.push(*edge);
                if depth(&arcs).is_none_or(|depth| depth > most) {
                    arcs.pop();
                }
            }
        }
        depth(&arcs).unwrap_or(0)
    };
    let least = add(plan.down, usize::MAX);
    // More layers than this make a drawing tall and thin, and its lines long.
    let most = least.max((1.8 * (nodes as f64).sqrt()) as usize + 1);
    add(plan.pairs, most);
    arcs
}

/// For each node the number of edges on the longest path to it; `None` with a cycle.
fn longest_paths(nodes: usize, arcs: &[(usize, usize)]) -> Option<Vec<usize>> {
    let mut waiting = vec![0; nodes];
    arcs.iter().for_each(|arc| waiting[arc.1] += 1);
    let mut ready: Vec<usize> = (0..nodes).filter(|&node| waiting[node] == 0).collect();
    let mut layers = vec![0; nodes];
    let mut done = 0;
    while let Some(node) = ready.pop() {
        done += 1;
        for arc in arcs.iter().filter(|arc| arc.0 == node) {
            layers[arc.1] = layers[arc.1].max(layers[node] + 1);
            waiting[arc.1] -= 1;
            if waiting[arc.1] == 0 {
                ready.push(arc.1);
            }
        }
    }
    (done == nodes).then_some(layers)
}

/// Nodes with more children than parents move down to just above their first child: lines become shorter.
fn tightened(mut layers: Vec<usize>, arcs: &[(usize, usize)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..layers.len()).collect();
    order.sort_by_key(|&node| std::cmp::Reverse(layers[node]));
    for node in order {
        let children = arcs.iter().filter(|arc| arc.0 == node).count();
        let parents = arcs.iter().filter(|arc| arc.1 == node).count();
        let first_child = arcs.iter().filter(|arc| arc.0 == node).map(|arc| layers[arc.1]).min();
        if let Some(first) = first_child.filter(|_| children > parents) {
            layers[node] = first - 1;
        }
    }
    layers
}

/// The same order of layers, none of them empty.
fn without_gaps(layers: Vec<usize>) -> Vec<usize> {
    let mut present: Vec<usize> = layers.clone();
    present.sort_unstable();
    present.dedup();
    layers.into_iter().map(|layer| present.partition_point(|&other| other < layer)).collect()
}

//! Laws of layouts, on many graphs.

use super::*;

/// Even numbers from a fixed start.
fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A graph without cycle whose nodes are in a random order, and some more pairs.
struct Case {
    widths: Vec<f64>,
    down: Vec<(usize, usize)>,
    pairs: Vec<(usize, usize)>,
}

fn case(nodes: usize, seed: u64) -> Case {
    let mut even = numbers(seed);
    let mut order: Vec<usize> = (0..nodes).collect();
    order.sort_by_cached_key(|_| (even() * 1e9) as u64);
    let (sure, unsure) = (even(), 0.3 * even());
    let mut pairs = Vec::new();
    let mut down = Vec::new();
    for i in 0..nodes {
        for j in i + 1..nodes {
            let edge = (order[i], order[j]);
            if even() < sure * 3.0 / nodes as f64 {
                down.push(edge);
                pairs.push(edge);
            } else if even() < unsure {
                pairs.push(if even() < 0.5 { edge } else { (edge.1, edge.0) });
            }
        }
    }
    Case { widths: (0..nodes).map(|_| 30.0 + 100.0 * even()).collect(), down, pairs }
}

fn cases() -> impl Iterator<Item = Case> {
    [1, 2, 3, 4, 5, 8, 11, 16, 20, 25, 40].into_iter().flat_map(|nodes| (0..8).map(move |seed| case(nodes, seed + 1)))
}

fn drawn(case: &Case) -> Layout {
    layout(&Plan { widths: &case.widths, down: &case.down, pairs: &case.pairs })
}

#[test]
fn no_two_nodes_overlap_and_all_are_inside() {
    for case in cases() {
        let layout = drawn(&case);
        assert_eq!(layout.nodes.len(), case.widths.len());
        for (i, a) in layout.nodes.iter().enumerate() {
            let half = case.widths[i] / 2.0;
            assert!(a.0 - half >= 0.0 && a.0 + half <= layout.size.0, "{a:?} in {:?}", layout.size);
            assert!(a.1 >= NODE_HEIGHT / 2.0 && a.1 + NODE_HEIGHT / 2.0 <= layout.size.1);
            for (j, b) in layout.nodes.iter().enumerate().skip(i + 1) {
                let apart_across = (a.0 - b.0).abs() >= half + case.widths[j] / 2.0 + 4.0;
                assert!(apart_across || (a.1 - b.1).abs() >= NODE_HEIGHT + 10.0, "{i} {a:?} and {j} {b:?}");
            }
        }
    }
}

#[test]
fn edges_that_must_point_down_do() {
    for case in cases() {
        let layout = drawn(&case);
        for &(from, to) in &case.down {
            assert!(layout.nodes[from].1 + NODE_HEIGHT < layout.nodes[to].1, "{from} → {to}");
        }
    }
}

#[test]
fn lines_start_and_end_at_their_nodes() {
    for case in cases() {
        let layout = drawn(&case);
        assert_eq!(layout.routes.len(), case.pairs.len());
        for (route, &(a, b)) in layout.routes.iter().zip(&case.pairs) {
            assert!((route.start, route.end) == (a, b) || (route.start, route.end) == (b, a));
            let at = |node: usize, point: (f64, f64), side: f64| {
                let (x, y) = layout.nodes[node];
                assert!((point.0 - x).abs() <= case.widths[node] / 2.0, "{point:?} is not at {node}");
                assert!((point.1 - y - side * NODE_HEIGHT / 2.0).abs() < 1e-9, "{point:?} is not at {node}");
            };
            assert_eq!(route.points.len() % 2, 0);
            at(route.start, route.points[0], 1.0);
            at(route.end, route.points[route.points.len() - 1], if route.arc.is_some() { 1.0 } else { -1.0 });
        }
    }
}

/// Straight pieces pass layers, curves lie between them: so no line runs through a node.
#[test]
fn lines_go_around_nodes() {
    for case in cases() {
        let layout = drawn(&case);
        for route in layout.routes.iter().filter(|route| route.arc.is_none()) {
            assert!(route.points.windows(2).all(|pair| pair[0].1 < pair[1].1), "{:?}", route.points);
            for pass in route.points[1..route.points.len() - 1].chunks(2) {
                assert_eq!(pass[0].0, pass[1].0);
                for (node, at) in layout.nodes.iter().enumerate() {
                    let same_layer = (at.1 - (pass[0].1 + pass[1].1) / 2.0).abs() < NODE_HEIGHT;
                    assert!(!same_layer || (at.0 - pass[0].0).abs() > case.widths[node] / 2.0 + 5.0, "{pass:?} {at:?}");
                }
            }
        }
    }
}

#[test]
fn arcs_stay_above_the_next_layer() {
    let mut arcs = 0;
    for case in cases() {
        let layout = drawn(&case);
        for route in &layout.routes {
            let Some(depth) = route.arc else { continue };
            arcs += 1;
            // A cubic curve whose inner points are both `depth` below its ends reaches three quarters of that.
            let lowest = route.points[0].1 + 0.75 * depth;
            let next = layout.nodes.iter().map(|at| at.1 - NODE_HEIGHT / 2.0).filter(|top| *top > route.points[0].1);
            assert!(lowest < next.fold(layout.size.1, f64::min), "{route:?}");
        }
    }
    assert!(arcs > 20, "{arcs}");
}

#[test]
fn a_tree_is_drawn_without_crossings() {
    // A binary tree whose nodes are numbered badly.
    let number = |node: usize| node * 7 % 15;
    let down: Vec<(usize, usize)> = (1..15).map(|node| (number((node - 1) / 2), number(node))).collect();
    let plan = Plan { widths: &[50.0; 15], down: &down, pairs: &down };
    let proper = Proper::new(&plan, &layers::layers(&plan));
    let rows = order::rows(&proper);
    let mut places = vec![0; proper.vertices.len()];
    rows.iter().for_each(|row| row.iter().enumerate().for_each(|(place, &vertex)| places[vertex] = place));
    assert_eq!(order::crossings(&proper.vertices, &rows, &places), 0);
}

#[test]
fn cycles_and_crowds_are_drawn_too() {
    let cycle = [(0, 1), (1, 2), (2, 0)];
    let layout = layout(&Plan { widths: &[40.0; 3], down: &cycle, pairs: &cycle });
    assert!(layout.nodes[0].1 < layout.nodes[1].1 && layout.nodes[1].1 < layout.nodes[2].1);
    // Nodes without lines fill several rows rather than one endless one.
    let alone = super::layout(&Plan { widths: &[100.0; 40], down: &[], pairs: &[] });
    assert!(alone.size.0 < ROW_WIDTH + 3.0 * MARGIN && alone.size.1 > 3.0 * NODE_HEIGHT, "{:?}", alone.size);
}

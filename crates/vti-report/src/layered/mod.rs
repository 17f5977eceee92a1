//! Layered drawings of graphs: causes above effects, few crossings, edges that go around nodes.
//!
//! The usual steps of Sugiyama, Tagawa and Toda: nodes are given layers ([`layers`]), edges that pass a layer get a bend in
//! it, the order within each layer is improved by sweeps ([`order`]), and horizontal places follow from it ([`place`]).
//! Everything is deterministic: the same graph always gives the same drawing.

mod layers;
mod order;
mod place;

/// Height of a node in pixels.
pub(crate) const NODE_HEIGHT: f64 = 30.0;

/// Room around the drawing.
const MARGIN: f64 = 14.0;
/// Nodes of one layer together are at most this wide.
const ROW_WIDTH: f64 = 960.0;
/// Least and most room between two layers.
const GAP: (f64, f64) = (54.0, 120.0);
/// Radius of the corners of a node: lines end at the straight part of its sides.
pub(crate) const CORNER: f64 = 11.0;
/// Distance between the ends of lines at one side of a node, where there is room.
pub(crate) const PORT: f64 = 11.0;

/// What is to be drawn.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// Widths of the nodes in pixels.
    pub(crate) widths: &'a [f64],
    /// Edges that must point downwards. Those that would close a cycle are not heeded.
    pub(crate) down: &'a [(usize, usize)],
    /// All pairs to be joined by a line, each once and the most important first. They point downwards where that costs
    /// neither a cycle nor too many layers.
    pub(crate) pairs: &'a [(usize, usize)],
}

/// Where things are.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) size: (f64, f64),
    /// Middles of the nodes.
    pub(crate) nodes: Vec<(f64, f64)>,
    /// A line for each pair, in the order of the plan.
    pub(crate) routes: Vec<Route>,
}

/// The line that joins a pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Route {
    /// The node at its start: the upper one, or the left one where both are in one layer.
    pub(crate) start: usize,
    /// The node at its end.
    pub(crate) end: usize,
    /// Both are in one layer: the line is an arc below them, as deep as this.
    pub(crate) arc: Option<f64>,
    /// From the lower side of `start` through the bends to the upper side (of an arc: the lower side) of `end`. Between an
    /// even point and the odd one after it the line is a curve that is upright at both, after it a straight one.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A node, or the bend of a pair in a layer it passes.
#[derive(Clone, Debug)]
struct Vertex {
    layer: usize,
    width: f64,
    is_bend: bool,
    above: Vec<usize>,
    below: Vec<usize>,
}

/// Nodes first, then bends; the bends of each pair from above.
struct Proper {
    vertices: Vec<Vertex>,
    /// For each pair: its upper node, its lower node, its bends. `None`: both in one layer.
    chains: Vec<Option<(usize, usize, Vec<usize>)>>,
    rows: usize,
}

impl Proper {
    fn new(plan: &Plan<'_>, layers: &[usize]) -> Self {
        let node = |(layer, width): (&usize, &f64)| Vertex {
            layer: *layer,
            width: *width,
            is_bend: false,
            above: Vec::new(),
            below: Vec::new(),
        };
        let vertices: Vec<Vertex> = layers.iter().zip(plan.widths).map(node).collect();
        let rows = layers.iter().max().map_or(0, |last| last + 1);
        let mut proper = Self { vertices, chains: Vec::new(), rows };
        for &(a, b) in plan.pairs {
            let (upper, lower) = if layers[a] <= layers[b] { (a, b) } else { (b, a) };
            let chain = (layers[a] != layers[b]).then(|| (upper, lower, proper.chain(upper, lower)));
            proper.chains.push(chain);
        }
        proper
    }

    /// Joins two nodes, with a bend in every layer between them.
    fn chain(&mut self, upper: usize, lower: usize) -> Vec<usize> {
        let mut last = upper;
        let mut bends = Vec::new();
        for layer in self.vertices[upper].layer + 1..self.vertices[lower].layer {
            let bend = self.vertices.len();
            self.vertices.push(Vertex { layer, width: 0.0, is_bend: true, above: Vec::new(), below: Vec::new() });
            self.join(last, bend);
            bends.push(bend);
            last = bend;
        }
        self.join(last, lower);
        bends
    }

    fn join(&mut self, upper: usize, lower: usize) {
        self.vertices[upper].below.push(lower);
        self.vertices[lower].above.push(upper);
    }
}

/// Draws the plan. Pairs and edges must name nodes that exist, and no node is joined to itself.
pub(crate) fn layout(plan: &Plan<'_>) -> Layout {
    let layers = layers::layers(plan);
    let proper = Proper::new(plan, &layers);
    let rows = order::rows(&proper);
    let x = place::across(&proper, &rows);
    let y = place::down(&proper, plan.pairs, &x);
    let ends = ends(plan, &proper, &x);
    let routes: Vec<Route> = (0..plan.pairs.len()).map(|pair| route(plan, &proper, pair, &ends, &x, &y)).collect();
    let nodes: Vec<(f64, f64)> = (0..plan.widths.len()).map(|node| (x[node], y.middles[layers[node]])).collect();
    let right = nodes.iter().zip(plan.widths).map(|(at, width)| at.0 + width / 2.0);
    let right = right.chain(routes.iter().flat_map(|route| route.points.iter().map(|point| point.0)));
    Layout { size: (right.fold(0.0, f64::max) + MARGIN, y.height), nodes, routes }
}

/// Where the two ends of each pair leave its nodes, as distances from the middles of the nodes: in the order in which the
/// lines go on, so that they do not cross at once.
fn ends(plan: &Plan<'_>, proper: &Proper, x: &[f64]) -> Vec<[f64; 2]> {
    let mut offsets = vec![[0.0; 2]; plan.pairs.len()];
    // For each node and side: where the line goes on, the pair, which end of it.
    let mut sides: Vec<[Vec<(f64, usize, usize)>; 2]> = vec![Default::default(); plan.widths.len()];
    for (pair, chain) in proper.chains.iter().enumerate() {
        let (start, end) = nodes_of(plan, proper, pair, x);
        match chain {
            Some((upper, lower, bends)) => {
                sides[*upper][1].push((x[bends.first().copied().unwrap_or(*lower)], pair, 0));
                sides[*lower][0].push((x[bends.last().copied().unwrap_or(*upper)], pair, 1));
            }
            None => {
                // Arcs lie outside of what goes down.
                sides[start][1].push((f64::INFINITY, pair, 0));
                sides[end][1].push((f64::NEG_INFINITY, pair, 1));
            }
        }
    }
    for (node, both) in sides.iter_mut().enumerate() {
        for side in both {
            side.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let gaps = side.len().saturating_sub(1) as f64;
            let room = (plan.widths[node] - 2.0 * CORNER).max(0.0);
            let step = if gaps > 0.0 { (room / gaps).min(PORT) } else { 0.0 };
            for (place, (_, pair, end)) in side.iter().enumerate() {
                offsets[*pair][*end] = step * (place as f64 - gaps / 2.0);
            }
        }
    }
    offsets
}

/// The nodes at the start and at the end of a pair's line.
fn nodes_of(plan: &Plan<'_>, proper: &Proper, pair: usize, x: &[f64]) -> (usize, usize) {
    match &proper.chains[pair] {
        Some((upper, lower, _)) => (*upper, *lower),
        None => {
            let (a, b) = plan.pairs[pair];
            if x[a] <= x[b] { (a, b) } else { (b, a) }
        }
    }
}

fn route(plan: &Plan<'_>, proper: &Proper, pair: usize, ends: &[[f64; 2]], x: &[f64], y: &place::Rows) -> Route {
    let half = NODE_HEIGHT / 2.0;
    let (start, end) = nodes_of(plan, proper, pair, x);
    let middle = |vertex: usize| y.middles[proper.vertices[vertex].layer];
    let first = (x[start] + ends[pair][0], middle(start) + half);
    let Some((_, _, bends)) = &proper.chains[pair] else {
        let last = (x[end] + ends[pair][1], middle(end) + half);
        let depth = y.arc_depth(proper.vertices[start].layer, last.0 - first.0);
        return Route { start, end, arc: Some(depth), points: vec![first, last] };
    };
    let passes = bends.iter().flat_map(|&bend| [(x[bend], middle(bend) - half), (x[bend], middle(bend) + half)]);
    let last = (x[end] + ends[pair][1], middle(end) - half);
    let points = [first].into_iter().chain(passes).chain([last]).collect();
    Route { start, end, arc: None, points }
}

#[cfg(test)]
mod tests;

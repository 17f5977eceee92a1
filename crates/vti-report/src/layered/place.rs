//! Where vertices and layers are in pixels.

use super::{GAP, MARGIN, NODE_HEIGHT, Proper, Vertex};

/// Room between two nodes of one layer.
pub(super) const NODE_GAP: f64 = 26.0;
/// Room between a node and a line that passes it, and between two lines.
const BEND_GAP: f64 = 15.0;

/// Rounds of improvement.
const MAX_ROUNDS: usize = 80;
/// How strongly vertices are drawn to the middle of the drawing: just enough to decide what lines leave open.
const ANCHOR: f64 = 0.02;

/// Horizontal places: with the order in each row fixed, the weighted sum of squared horizontal runs of all lines is made
/// small, row by row, each row exactly.
pub(super) fn across(proper: &Proper, rows: &[Vec<usize>]) -> Vec<f64> {
    let vertices = &proper.vertices;
    let mut x = vec![0.0; vertices.len()];
    for row in rows {
        let steps = steps(vertices, row);
        let total: f64 = steps.iter().sum();
        let mut place = -total / 2.0;
        for (&vertex, step) in row.iter().zip(&steps) {
            place += step;
            x[vertex] = place;
        }
    }
    let anchors = x.clone();
    for round in 0..MAX_ROUNDS {
        for step in 0..rows.len() {
            let row = &rows[if round % 2 == 0 { step } else { rows.len() - 1 - step }];
            let wanted: Vec<(f64, f64)> = row.iter().map(|&vertex| wanted(vertices, vertex, &x, &anchors)).collect();
            for (&vertex, place) in row.iter().zip(apart(&wanted, &steps(vertices, row))) {
                x[vertex] = place;
            }
        }
    }
    let left = x.iter().zip(vertices).map(|(x, vertex)| x - vertex.width / 2.0).fold(f64::INFINITY, f64::min);
    x.iter().map(|x| x - left + MARGIN).collect()
}

/// Least distance of each vertex of a row from the one before it; 0 for the first.
fn steps(vertices: &[Vertex], row: &[usize]) -> Vec<f64> {
    let between = |(a, b): (&Vertex, &Vertex)| {
        let gap = if a.is_bend || b.is_bend { BEND_GAP } else { NODE_GAP };
        (a.width + b.width) / 2.0 + gap
    };
    let later = row.windows(2).map(|pair| between((&vertices[pair[0]], &vertices[pair[1]])));
    [0.0].into_iter().chain(later).take(row.len()).collect()
}

/// Where a vertex would best be, and how much that matters. Long lines shall be straight, so bends weigh more.
fn wanted(vertices: &[Vertex], vertex: usize, x: &[f64], anchors: &[f64]) -> (f64, f64) {
    let own = &vertices[vertex];
    let (mut sum, mut total) = (ANCHOR * anchors[vertex], ANCHOR);
    for &other in own.above.iter().chain(&own.below) {
        let weight = match (own.is_bend, vertices[other].is_bend) {
            (true, true) => 8.0,
            (false, false) => 1.0,
            _ => 2.0,
        };
        sum += weight * x[other];
        total += weight;
    }
    (sum / total, total)
}

/// The places closest to the wanted ones (weighted squares) that are at least `steps` apart. Without the distances this is
/// regression on an increasing sequence, solved exactly by pooling neighbours that want to pass each other.
fn apart(wanted: &[(f64, f64)], steps: &[f64]) -> Vec<f64> {
    let mut offset = 0.0;
    // Blocks: mean, weight, members.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for ((place, weight), step) in wanted.iter().zip(steps) {
        offset += step;
        let mut block = (place - offset, *weight, 1);
        while let Some(last) = blocks.last().copied().filter(|last| last.0 >= block.0) {
            let weight = last.1 + block.1;
            block = ((last.0 * last.1 + block.0 * block.1) / weight, weight, last.2 + block.2);
            blocks.pop();
        }
        blocks.push(block);
    }
    let means = blocks.iter().flat_map(|block| std::iter::repeat_n(block.0, block.2));
    let mut offset = 0.0;
    let mut placed = Vec::with_capacity(wanted.len());
    for (mean, step) in means.zip(steps) {
        offset += step;
        placed.push(mean + offset);
    }
    placed
}

/// Vertical places.
pub(super) struct Rows {
    /// Middles of the layers.
    pub(super) middles: Vec<f64>,
    /// Room below each layer.
    gaps: Vec<f64>,
    /// Of the whole drawing.
    pub(super) height: f64,
}

impl Rows {
    /// How far the control points of an arc below a layer are from its ends.
    pub(super) fn arc_depth(&self, layer: usize, run: f64) -> f64 {
        (24.0 + 0.12 * run.abs()).min(0.9 * self.gaps[layer])
    }
}

/// Vertical places: more room where many or long lines go.
pub(super) fn down(proper: &Proper, pairs: &[(usize, usize)], x: &[f64]) -> Rows {
    let gap = |layer: usize| {
        let here = || proper.vertices.iter().enumerate().filter(move |(_, vertex)| vertex.layer == layer);
        let lines: usize = here().map(|(_, vertex)| vertex.below.len()).sum();
        let run = |(upper, vertex): (usize, &Vertex)| {
            vertex.below.iter().map(|&lower| (x[upper] - x[lower]).abs()).fold(0.0, f64::max)
        };
        (GAP.0 + 0.12 * here().map(run).fold(0.0, f64::max) + 1.5 * lines as f64).min(GAP.1)
    };
    let gaps: Vec<f64> = (0..proper.rows).map(gap).collect();
    let has_arc = |layer: usize| {
        pairs.iter().any(|&(a, b)| proper.vertices[a].layer == layer && proper.vertices[b].layer == layer)
    };
    let mut middles = Vec::with_capacity(proper.rows);
    let mut top = MARGIN;
    for (layer, gap) in gaps.iter().enumerate() {
        middles.push(top + NODE_HEIGHT / 2.0);
        let is_last = layer + 1 == proper.rows;
        top += NODE_HEIGHT + if is_last && !has_arc(layer) { MARGIN } else { *gap };
    }
    Rows { middles, gaps, height: top }
}

#[cfg(test)]
mod tests {
    use super::apart;

    /// Against a fine search over the only freedom two vertices have.
    #[test]
    fn places_are_apart_and_closest_to_the_wanted_ones() {
        let placed = apart(&[(3.0, 1.0), (0.0, 3.0)], &[0.0, 2.0]);
        let cost = |first: f64| (first - 3.0).powi(2) + 3.0 * (first + 2.0).powi(2);
        let best = (-5000..5000).map(|i| f64::from(i) / 1000.0).min_by(|a, b| cost(*a).total_cmp(&cost(*b)));
        assert!((placed[0] - best.unwrap_or(f64::NAN)).abs() < 1e-3, "{placed:?} {best:?}");
        assert!((placed[1] - placed[0] - 2.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_apart_already_stays() {
        assert_eq!(apart(&[(0.0, 1.0), (5.0, 2.0), (9.0, 1.0)], &[0.0, 2.0, 2.0]), [0.0, 5.0, 9.0]);
    }
}

//! Lines of equal height on a grid, by marching squares.

use std::collections::HashMap;

use super::density::{SIDE, Surface};

/// An edge of the grid: its place and whether it runs upwards.
type Edge = (usize, bool);

/// The closed lines on which `surface` has height `level`. They are closed because the surface is zero at its border.
pub(crate) fn contours(surface: &Surface, level: f64) -> Vec<Vec<(f64, f64)>> {
    let mut next = segments(surface, level);
    let mut starts: Vec<Edge> = next.keys().copied().collect();
    starts.sort_unstable();
    let mut loops = Vec::new();
    for start in starts {
        let mut line = Vec::new();
        let mut edge = start;
        while let Some(to) = next.remove(&edge) {
            line.push(crossing(surface, level, edge));
            edge = to;
        }
        if line.len() > 2 {
            loops.push(line);
        }
    }
    loops
}

/// Where the contour enters and leaves each cell, with the higher ground always on the same side: so each crossed edge is
/// left towards exactly one other.
fn segments(surface: &Surface, level: f64) -> HashMap<Edge, Edge> {
    let high = |place: usize| surface.heights[place] > level;
    let mut next = HashMap::new();
    for row in 0..SIDE - 1 {
        for column in 0..SIDE - 1 {
            let place = row * SIDE + column;
            let corners = [place, place + 1, place + SIDE + 1, place + SIDE];
            let edges = [(place, false), (place + 1, true), (place + SIDE, false), (place, true)];
            let inside = corners.map(high);
            // Going round the cell, the contour enters where low ground becomes high and leaves where high becomes low.
            // Where that happens twice (a saddle), each entrance is joined with the exit that follows it.
            for entrance in (0..4).filter(|&side| !inside[side] && inside[(side + 1) % 4]) {
                let exit =
                    (1..4).map(|turn| (entrance + turn) % 4).find(|&side| inside[side] && !inside[(side + 1) % 4]);
                if let Some(exit) = exit {
                    next.insert(edges[entrance], edges[exit]);
                }
            }
        }
    }
    next
}

/// Where on an edge the height is `level`.
fn crossing(surface: &Surface, level: f64, (place, upwards): Edge) -> (f64, f64) {
    let (column, row) = ((place % SIDE) as f64, (place / SIDE) as f64);
    let (here, there) = (surface.heights[place], surface.heights[place + if upwards { SIDE } else { 1 }]);
    let share = ((level - here) / (there - here)).clamp(0.0, 1.0);
    let (column, row) = if upwards { (column, row + share) } else { (column + share, row) };
    (surface.low.0 + column * surface.step.0, surface.low.1 + row * surface.step.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surface(height: impl Fn(f64, f64) -> f64) -> Surface {
        let step = 2.0 / (SIDE - 1) as f64;
        let at = |i: usize| -1.0 + i as f64 * step;
        let heights = (0..SIDE * SIDE).map(|place| height(at(place % SIDE), at(place / SIDE))).collect();
        Surface { low: (-1.0, -1.0), step: (step, step), heights }
    }

    #[test]
    fn the_contour_of_a_cone_is_a_circle() {
        let loops = contours(&surface(|x, y| 1.0 - x.hypot(y)), 0.5);
        assert_eq!(loops.len(), 1);
        assert!(loops[0].iter().all(|(x, y)| (x.hypot(*y) - 0.5).abs() < 0.01));
        let length: f64 = (0..loops[0].len())
            .map(|i| (loops[0][i], loops[0][(i + 1) % loops[0].len()]))
            .map(|(a, b)| (a.0 - b.0).hypot(a.1 - b.1))
            .sum();
        assert!((length - std::f64::consts::PI).abs() < 0.05, "{length}");
    }

    #[test]
    fn two_hills_have_two_contours() {
        let hill = |x: f64, y: f64| (-20.0 * (x * x + y * y)).exp();
        assert_eq!(contours(&surface(|x, y| hill(x - 0.5, y) + hill(x + 0.5, y)), 0.5).len(), 2);
    }

    #[test]
    fn flat_ground_has_none() {
        assert!(contours(&surface(|_, _| 0.0), 0.5).is_empty());
    }
}

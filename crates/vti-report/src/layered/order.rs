//! In which order the vertices of each layer stand, so that few lines cross.

use super::{Proper, Vertex};

/// Sweeps over all layers.
const SWEEPS: usize = 24;

/// The layers, each from left to right.
pub(super) fn rows(proper: &Proper) -> Vec<Vec<usize>> {
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); proper.rows];
    for (index, vertex) in proper.vertices.iter().enumerate() {
        rows[vertex.layer].push(index);
    }
    let vertices = &proper.vertices;
    let mut places = vec![0; vertices.len()];
    rows.iter().for_each(|row| renumber(row, &mut places));
    let mut best = (crossings(vertices, &rows, &places), rows.clone());
    for sweep in 0..SWEEPS {
        let downwards = sweep % 2 == 0;
        for step in 0..rows.len() {
            let row = if downwards { step } else { rows.len() - 1 - step };
            by_barycentre(vertices, &mut rows[row], &mut places, downwards);
        }
        for row in &mut rows {
            swap_neighbours(vertices, row, &mut places);
        }
        let count = crossings(vertices, &rows, &places);
        if count < best.0 {
            best = (count, rows.clone());
        }
        if best.0 == 0 {
            break;
        }
    }
    best.1
}

fn renumber(row: &[usize], places: &mut [usize]) {
    row.iter().enumerate().for_each(|(place, &vertex)| places[vertex] = place);
}

/// Sorts a row by the mean place of the neighbours in the row before; vertices without any keep theirs.
fn by_barycentre(vertices: &[Vertex], row: &mut [usize], places: &mut [usize], downwards: bool) {
    let key = |vertex: usize| {
        let neighbours = if downwards { &vertices[vertex].above } else { &vertices[vertex].below };
        let sum: usize = neighbours.iter().map(|&other| places[other]).sum();
        (!neighbours.is_empty()).then(|| sum as f64 / neighbours.len() as f64)
    };
    let mut moved: Vec<(f64, usize)> = row.iter().filter_map(|&vertex| Some((key(vertex)?, vertex))).collect();
    moved.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut next = moved.into_iter();
    for slot in row.iter_mut().filter(|slot| key(**slot).is_some()) {
        if let Some((_, vertex)) = next.next() {
            *slot = vertex;
        }
    }
    renumber(row, places);
}

/// Swaps vertices that stand side by side as long as that removes crossings.
fn swap_neighbours(vertices: &[Vertex], row: &mut [usize], places: &mut [usize]) {
    let crossed = |left: usize, right: usize, places: &[usize]| {
        let of = |left: &[usize], right: &[usize]| -> usize {
            left.iter().map(|&a| right.iter().filter(|&&b| places[b] < places[a]).count()).sum()
        };
        of(&vertices[left].above, &vertices[right].above) + of(&vertices[left].below, &vertices[right].below)
    };
    // Each swap removes a crossing, so this ends; the bound only keeps it short.
    for _ in 0..row.len() {
        let mut changed = false;
        for place in 1..row.len() {
            let (left, right) = (row[place - 1], row[place]);
            if crossed(right, left, places) < crossed(left, right, places) {
                row.swap(place - 1, place);
                (places[left], places[right]) = (place, place - 1);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
}

/// How many pairs of lines between neighbouring layers cross.
pub(super) fn crossings(vertices: &[Vertex], rows: &[Vec<usize>], places: &[usize]) -> usize {
    let between = |row: &Vec<usize>| {
        let lines: Vec<(usize, usize)> = row
            .iter()
            .flat_map(|&upper| vertices[upper].below.iter().map(move |&lower| (upper, lower)))
            .map(|(upper, lower)| (places[upper], places[lower]))
            .collect();
        let crossing = |(i, a): (usize, &(usize, usize))| {
            lines[i + 1..].iter().filter(|b| (a.0 < b.0 && a.1 > b.1) || (a.0 > b.0 && a.1 < b.1)).count()
        };
        lines.iter().enumerate().map(crossing).sum::<usize>()
    };
    rows.iter().map(between).sum()
}

//! Moving numbers about: host memory, tables, reversals.

use super::TILE;
use super::memory::{CpuMatrix, CpuRows};
use crate::engine::{CpuEngine, Placement, Reach, Real, Table};

/// Features handled together: a block of this many features × one tile stays in the first-level cache.
const SIDE: usize = 16;

pub(super) fn import<T: Real>(rows: &CpuRows, tile: usize, from: &[T], at: Placement, to: &mut [T]) {
    let features = to.len() / TILE;
    let top = if let Placement::Whole { .. } = at { features } else { rows.tile_dim(tile) as usize };
    to[..top * TILE].fill(T::ZERO);
    for (lane, &row) in rows.tile_order(tile).iter().enumerate() {
        let place = tile * TILE + lane;
        let dim = rows.dims[place] as usize;
        match at {
            Placement::LeftAligned { stride } => {
                for (i, &value) in from[row as usize * stride..][..dim].iter().enumerate() {
                    to[i * TILE + lane] = value;
                }
            }
            Placement::Saturated { stride } => {
                let from = &from[row as usize * stride..][..stride];
                for (i, &coordinate) in rows.active(place).iter().enumerate() {
                    to[i * TILE + lane] = from[coordinate as usize];
                }
            }
            Placement::Whole { stride } => {
                for (i, &value) in from[row as usize * stride..][..features].iter().enumerate() {
                    to[i * TILE + lane] = value;
                }
            }
        }
    }
}

pub(super) fn export<T: Real>(rows: &CpuRows, from: &CpuMatrix<T>, at: Placement, to: &mut [T]) {
    let features = from.features;
    for tile in 0..rows.tiles() {
        let from = from.tile(tile);
        for (lane, &row) in rows.tile_order(tile).iter().enumerate() {
            let place = tile * TILE + lane;
            let dim = rows.dims[place] as usize;
            match at {
                Placement::LeftAligned { stride } => {
                    for (i, value) in to[row as usize * stride..][..dim].iter_mut().enumerate() {
                        *value = from[i * TILE + lane];
                    }
                }
                Placement::Saturated { stride } => {
                    let to = &mut to[row as usize * stride..][..stride];
                    for (i, &coordinate) in rows.active(place).iter().enumerate() {
                        to[coordinate as usize] = from[i * TILE + lane];
                    }
                }
                Placement::Whole { stride } => {
                    for (i, value) in to[row as usize * stride..][..features].iter_mut().enumerate() {
                        *value = from[i * TILE + lane];
                    }
                }
            }
        }
    }
}

pub(super) fn gather<T: Real>(
    table: &Table<'_, CpuEngine<T>>,
    first: usize,
    units: usize,
    rows: &CpuRows,
    tile: usize,
    to: &mut [T],
) {
    let places = tile * TILE..(tile + 1) * TILE;
    for start in (0..units).step_by(SIDE) {
        let block = start..units.min(start + SIDE);
        let to = &mut to[block.start * TILE..block.end * TILE];
        match table {
            Table::Parameters { buffer, at, width } => {
                for (lane, &context) in rows.contexts[places.clone()].iter().enumerate() {
                    let line = &buffer[at + context as usize * width + first + block.start..][..block.len()];
                    for (i, &value) in line.iter().enumerate() {
                        to[i * TILE + lane] = value;
                    }
                }
            }
            Table::Computed(matrix) => {
                for (i, unit) in block.enumerate() {
                    for (value, &slot) in to[i * TILE..][..TILE].iter_mut().zip(&rows.slots[places.clone()]) {
                        *value = matrix.data[index(matrix, first + unit, slot)];
                    }
                }
            }
        }
    }
}

/// Where (feature, column) stands.
#[inline(always)]
fn index<T>(matrix: &CpuMatrix<T>, feature: usize, column: u32) -> usize {
    let column = column as usize;
    ((column / TILE) * matrix.features + feature) * TILE + column % TILE
}

pub(super) fn scatter_parameters<T: Real>(
    from: &CpuMatrix<T>,
    first: usize,
    reach: &Reach,
    rows: &CpuRows,
    table: &mut [T],
    width: usize,
) {
    for tile in 0..rows.tiles() {
        let units = reach.units(rows.tile_dim(tile));
        let contexts = &rows.contexts[tile * TILE..][..rows.tile_order(tile).len()];
        let from = from.tile(tile);
        for start in (0..units).step_by(SIDE) {
            let block = start..units.min(start + SIDE);
            for (lane, &context) in contexts.iter().enumerate() {
                let line = &mut table[context as usize * width + first..][block.clone()];
                for (value, unit) in line.iter_mut().zip(block.clone()) {
                    *value += from[unit * TILE + lane];
                }
            }
        }
    }
}

pub(super) fn scatter_computed<T: Real>(
    from: &CpuMatrix<T>,
    first: usize,
    reach: &Reach,
    rows: &CpuRows,
    table: &mut CpuMatrix<T>,
) {
    for tile in 0..rows.tiles() {
        let units = reach.units(rows.tile_dim(tile));
        let slots = &rows.slots[tile * TILE..][..rows.tile_order(tile).len()];
        for (unit, row) in from.tile(tile).chunks_exact(TILE).take(units).enumerate() {
            for (&value, &slot) in row.iter().zip(slots) {
                let place = index(table, first + unit, slot);
                table.data[place] += value;
            }
        }
    }
}

/// Calls `visit(feature of the row's parameters, lane, feature of the table, slot)` for every active coordinate.
fn each_coordinate(
    k: usize,
    rows: &CpuRows,
    reversed: bool,
    tile: usize,
    mut visit: impl FnMut(usize, usize, usize, u32),
) {
    for lane in 0..rows.tile_order(tile).len() {
        let place = tile * TILE + lane;
        let active = rows.active(place);
        for i in 0..active.len() {
            let coordinate = active[if reversed { active.len() - 1 - i } else { i }] as usize;
            for j in 0..k {
                visit(i * k + j, lane, coordinate * k + j, rows.slots[place]);
            }
        }
    }
}

pub(super) fn gather_coordinates<T: Real>(
    table: &CpuMatrix<T>,
    k: usize,
    rows: &CpuRows,
    reversed: bool,
    tile: usize,
    to: &mut [T],
) {
    to[..rows.tile_dim(tile) as usize * k * TILE].fill(T::ZERO);
    each_coordinate(k, rows, reversed, tile, |feature, lane, source, slot| {
        to[feature * TILE + lane] = table.data[index(table, source, slot)];
    });
}

pub(super) fn scatter_coordinates<T: Real>(
    from: &CpuMatrix<T>,
    k: usize,
    rows: &CpuRows,
    reversed: bool,
    table: &mut CpuMatrix<T>,
) {
    table.data.fill(T::ZERO);
    for tile in 0..rows.tiles() {
        let from = from.tile(tile);
        each_coordinate(k, rows, reversed, tile, |feature, lane, source, slot| {
            let place = index(table, source, slot);
            table.data[place] += from[feature * TILE + lane];
        });
    }
}

pub(super) fn reverse<T: Real>(dims: &[u32; TILE], from: &[T], to: &mut [T]) {
    let top = dims[0] as usize;
    for (i, to) in to.chunks_exact_mut(TILE).take(top).enumerate() {
        for (lane, (value, &dim)) in to.iter_mut().zip(dims).enumerate() {
            let dim = dim as usize;
            let source = if i < dim { dim - 1 - i } else { i };
            *value = from[source * TILE + lane];
        }
    }
}

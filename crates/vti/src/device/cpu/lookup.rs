//! Moving numbers about: host memory, tables, reversals.

use std::ops::Range;

use super::TILE;
use super::memory::{CpuMatrix, CpuRows, active_rows};
use crate::device::{Placement, Reach};
use crate::simd::{Kernel, Real, SIDE, Vector};

/// The run of features that [`Placement::Whole`] names in a matrix of `features`.
fn whole(first: usize, stride: usize, features: usize) -> Range<usize> {
    first.min(features)..features.min(first + stride)
}

pub(super) fn import<T: Real>(rows: &CpuRows, tile: usize, from: &[T], at: Placement<'_>, to: &mut [T]) {
    let run = match at {
        Placement::Whole { stride, first } => whole(first, stride, to.len() / TILE),
        _ => 0..rows.tile_dim(tile) as usize,
    };
    let to = &mut to[run.start * TILE..run.end * TILE];
    to.fill(T::ZERO);
    for (lane, &row) in rows.tile_order(tile).iter().enumerate() {
        let place = tile * TILE + lane;
        let dim = rows.dims[place] as usize;
        match at {
            Placement::LeftAligned { stride } | Placement::Whole { stride, .. } => {
                let count = if let Placement::Whole { .. } = at { run.len() } else { dim };
                for (i, &value) in from[row as usize * stride..][..count].iter().enumerate() {
                    to[i * TILE + lane] = value;
                }
            }
            Placement::Saturated { stride, active, starts } => {
                let from = &from[row as usize * stride..][..stride];
                let active = &active[starts[row as usize] as usize..][..dim];
                for (i, &coordinate) in active.iter().enumerate() {
                    to[i * TILE + lane] = from[coordinate as usize];
                }
            }
        }
    }
}

pub(super) fn export<T: Real>(rows: &CpuRows, from: &CpuMatrix<T>, at: Placement<'_>, to: &mut [T]) {
    for tile in 0..rows.tiles() {
        let from = match at {
            Placement::Whole { stride, first } => {
                let run = whole(first, stride, from.features);
                &from.tile(tile)[run.start * TILE..run.end * TILE]
            }
            _ => from.tile(tile),
        };
        for (lane, &row) in rows.tile_order(tile).iter().enumerate() {
            let place = tile * TILE + lane;
            let dim = rows.dims[place] as usize;
            match at {
                Placement::LeftAligned { stride } | Placement::Whole { stride, .. } => {
                    let count = if let Placement::Whole { .. } = at { from.len() / TILE } else { dim };
                    for (i, value) in to[row as usize * stride..][..count].iter_mut().enumerate() {
                        *value = from[i * TILE + lane];
                    }
                }
                Placement::Saturated { stride, active, starts } => {
                    let to = &mut to[row as usize * stride..][..stride];
                    let active = &active[starts[row as usize] as usize..][..dim];
                    for (i, &coordinate) in active.iter().enumerate() {
                        to[coordinate as usize] = from[i * TILE + lane];
                    }
                }
            }
        }
    }
}

/// Rows of a table of parameters to the rows of a tile.
pub(super) struct Gather<'a, T> {
    pub table: &'a [T],
    pub width: usize,
    pub units: usize,
    pub rows: &'a CpuRows,
    pub tile: usize,
    pub to: &'a mut [T],
}

#[allow(unsafe_code)]
impl<T: Real> Kernel<T> for Gather<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { table, width, units, rows, tile, to } = self;
        let contexts = &rows.contexts[tile * TILE..][..TILE];
        let whole = units - units % SIDE;
        assert!(units <= width && units * TILE <= to.len());
        for (group, contexts) in contexts.chunks_exact(SIDE).enumerate() {
            let lines: [&[T]; SIDE] = std::array::from_fn(|i| &table[contexts[i] as usize * width..][..units]);
            for first in (0..whole).step_by(SIDE) {
                let to = to[first * TILE + group * SIDE..].as_mut_ptr();
                // SAFETY: each line has `SIDE` units left, and `to` holds `SIDE` units of `TILE` rows from here.
                unsafe { V::transpose(|i| lines[i].as_ptr().add(first), to, TILE) };
            }
            for unit in whole..units {
                for (value, line) in to[unit * TILE + group * SIDE..][..SIDE].iter_mut().zip(lines) {
                    *value = line[unit];
                }
            }
        }
    }
}

/// Whether the rows of a tile look up the columns of the same tile, one by one: every row has a context of its own.
fn in_step(rows: &CpuRows, tile: usize) -> bool {
    let first = (tile * TILE) as u32;
    let slots = &rows.slots[tile * TILE..][..rows.tile_order(tile).len()];
    slots.iter().zip(first..).all(|(&slot, own)| slot == own)
}

pub(super) fn gather_computed<T: Real>(table: &CpuMatrix<T>, units: usize, rows: &CpuRows, tile: usize, to: &mut [T]) {
    if in_step(rows, tile) {
        to[..units * TILE].copy_from_slice(&table.tile(tile)[..units * TILE]);
        return;
    }
    for (unit, to) in to.chunks_exact_mut(TILE).take(units).enumerate() {
        for (value, &slot) in to.iter_mut().zip(&rows.slots[tile * TILE..]) {
            *value = table.data[index(table, unit, slot)];
        }
    }
}

/// Where (feature, column) stands.
#[inline(always)]
fn index<T>(matrix: &CpuMatrix<T>, feature: usize, column: u32) -> usize {
    let column = column as usize;
    ((column / TILE) * matrix.features + feature) * TILE + column % TILE
}

/// Sums the rows of tiles by context into a table of parameters.
pub(super) struct Scatter<'a, T> {
    pub from: &'a CpuMatrix<T>,
    pub reach: &'a Reach,
    pub rows: &'a CpuRows,
    pub table: &'a mut [T],
    pub width: usize,
}

#[allow(unsafe_code)]
impl<T: Real> Kernel<T> for Scatter<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { from, reach, rows, table, width } = self;
        table.fill(T::ZERO);
        let mut block = [T::ZERO; SIDE * SIDE];
        for tile in 0..rows.tiles() {
            let units = reach.units(rows.tile_dim(tile));
            let whole = units - units % SIDE;
            let from = from.tile(tile);
            let contexts = &rows.contexts[tile * TILE..][..rows.tile_order(tile).len()];
            for (group, contexts) in contexts.chunks(SIDE).enumerate() {
                for first in (0..whole).step_by(SIDE) {
                    let lines = from[first * TILE..(first + SIDE) * TILE].as_ptr();
                    // SAFETY: `SIDE` lines of `TILE` rows start there, and the block holds `SIDE` lines of `SIDE` numbers.
                    unsafe { V::transpose(|i| lines.add(i * TILE + group * SIDE), block.as_mut_ptr(), SIDE) };
                    for (line, &context) in block.chunks_exact(SIDE).zip(contexts) {
                        let to = &mut table[context as usize * width + first..][..SIDE];
                        to.iter_mut().zip(line).for_each(|(to, &value)| *to += value);
                    }
                }
                for unit in whole..units {
                    for (lane, &context) in contexts.iter().enumerate() {
                        table[context as usize * width + unit] += from[unit * TILE + group * SIDE + lane];
                    }
                }
            }
        }
    }
}

pub(super) fn scatter_computed<T: Real>(from: &CpuMatrix<T>, reach: &Reach, rows: &CpuRows, table: &mut CpuMatrix<T>) {
    let units = |tile: usize| reach.units(rows.tile_dim(tile));
    if (0..rows.tiles()).all(|tile| in_step(rows, tile)) {
        for tile in 0..rows.tiles() {
            let (start, len) = (tile * table.features * TILE, units(tile) * TILE);
            table.data[start..start + len].copy_from_slice(&from.tile(tile)[..len]);
        }
        return;
    }
    table.data.fill(T::ZERO);
    for tile in 0..rows.tiles() {
        let slots = &rows.slots[tile * TILE..][..rows.tile_order(tile).len()];
        for (unit, row) in from.tile(tile).chunks_exact(TILE).take(units(tile)).enumerate() {
            for (&value, &slot) in row.iter().zip(slots) {
                let place = index(table, unit, slot);
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

/// Reverses the active block of every row of a tile.
pub(super) struct Reverse<'a, T> {
    pub dims: &'a [u32; TILE],
    pub from: &'a [T],
    pub to: &'a mut [T],
}

impl<T: Real> Kernel<T> for Reverse<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { dims, from, to } = self;
        let top = dims[0] as usize;
        let from = &from[..top * TILE];
        if dims[TILE - 1] == dims[0] {
            // All rows alike: whole features change places.
            for (to, from) in to.chunks_exact_mut(TILE).zip(from.chunks_exact(TILE).rev()) {
                to.copy_from_slice(from);
            }
            return;
        }
        for (i, to) in to.chunks_exact_mut(TILE).take(top).enumerate() {
            let active = active_rows(dims, i);
            let (reversed, rest) = to.split_at_mut(active);
            for (lane, (value, &dim)) in reversed.iter_mut().zip(dims).enumerate() {
                *value = from[(dim as usize - 1 - i) * TILE + lane];
            }
            rest.copy_from_slice(&from[i * TILE + active..(i + 1) * TILE]);
        }
    }
}

/// The sums over coordinates and rows of `k` numbers for each coordinate.
pub(super) fn broadcast_gradient<T: Real>(from: &CpuMatrix<T>, rows: &CpuRows, k: usize, sums: &mut [T]) {
    sums.fill(T::ZERO);
    for tile in 0..rows.tiles() {
        let features = rows.tile_dim(tile) as usize * k;
        for (feature, row) in from.tile(tile).chunks_exact(TILE).take(features).enumerate() {
            sums[feature % k] += row.iter().copied().sum::<T>();
        }
    }
}

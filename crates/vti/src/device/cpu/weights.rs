//! Gradients of weights: products of the tiles of dy with the transposed tiles of x.

use std::ops::Range;

use super::memory::{CpuMatrix, CpuRows};
use super::product::{BLOCK, Finish, Scalars, Vectors, strip};
use super::{Cpu, TILE};
use crate::device::Linear;
use crate::simd::{AlignedVec, Kernel, Real, SIDE, Vector};
use crate::workers::Chunks;

/// `dW = dy xᵀ` and `db = Σ dy`, shared out by groups of outputs.
pub(super) fn weight_gradient<T: Real>(
    device: &Cpu<T>,
    linear: &Linear,
    rows: &CpuRows,
    (input, gradient): (&CpuMatrix<T>, &CpuMatrix<T>),
    scratch: &mut CpuMatrix<T>,
    to: &mut AlignedVec<T>,
) {
    /// Outputs per task: enough tasks to share out evenly, enough blocks in each to reuse a panel of inputs.
    const GROUP: usize = 24;
    let (inputs, outputs) = (linear.stairs.inputs(), linear.stairs.outputs());
    let panel = panel_width(inputs);
    let tiles = rows.tiles();
    debug_assert!(padded(inputs) <= scratch.features);
    let scratch_len = scratch.tile_len();
    let transpose = |tile: usize, to: &mut [T]| {
        let features = linear.inputs.units(rows.tile_dim(tile));
        device.run(Transpose { tile: input.tile(tile), features, panel, to });
    };
    let (weights, bias) = to[linear.weight..linear.bias + outputs].split_at_mut(outputs * inputs);
    let group = |first: usize, weights: &mut [T], bias: &mut [T], transposed: &[T]| {
        // Outputs that the same tiles computed go together.
        let end = first + bias.len();
        let mut start = first;
        while start < end {
            let seen = |output: usize| {
                (0..tiles).take_while(|&tile| linear.outputs.units(rows.tile_dim(tile)) > output).count()
            };
            let tiles = seen(start);
            let stop = (start + 1..end).find(|&output| seen(output) != tiles).unwrap_or(end);
            device.run(WeightGradient {
                linear,
                outputs: start..stop,
                tiles,
                gradient: &gradient.data,
                gradient_features: gradient.features,
                transposed,
                tile_stride: scratch_len,
                weights: &mut weights[(start - first) * inputs..(stop - first) * inputs],
                bias: &mut bias[start - first..stop - first],
            });
            start = stop;
        }
    };
    if inputs == 0 {
        // Nothing but a bias: one "row" of no weights per output.
        group(0, &mut [], bias, &[]);
        return;
    }
    let workers = device.workers_for(tiles * TILE * linear.stairs.nonzeros());
    workers.for_each_part(Chunks::new(&mut scratch.data, scratch_len), tiles, transpose);
    let transposed = &*scratch.data;
    let size = if workers.threads() > 1 { GROUP } else { outputs };
    let groups = (Chunks::new(weights, size * inputs), Chunks::new(bias, size));
    workers.for_each_part(groups, usize::MAX, |index, (weights, bias)| group(index * size, weights, bias, transposed));
}

/// Inputs per panel of xᵀ. Panels are stored one after another, so that reading one walks through memory without the long
/// power-of-two strides that crowd a few sets of the caches; a panel of 1,024 rows fits the second-level cache.
const PANEL: usize = 64;

/// Columns of each panel of xᵀ: narrower when there are few inputs.
fn panel_width(inputs: usize) -> usize {
    inputs.next_multiple_of(SIDE).min(PANEL)
}

/// Columns of xᵀ, with the last panel filled up.
pub(super) fn padded(inputs: usize) -> usize {
    inputs.next_multiple_of(panel_width(inputs).max(1))
}

/// `dW = dy xᵀ` and `db = Σ dy` for the outputs `outputs`, which all see the same tiles.
struct WeightGradient<'a, T> {
    pub linear: &'a Linear,
    pub outputs: Range<usize>,
    /// Tiles in which these outputs were computed.
    pub tiles: usize,
    /// dy: `gradient_features` features per tile.
    pub gradient: &'a [T],
    pub gradient_features: usize,
    /// xᵀ: panels of [`TILE`] rows per tile.
    pub transposed: &'a [T],
    /// Distance between the tiles of xᵀ.
    pub tile_stride: usize,
    /// Rows `outputs` of dW, and their db.
    pub weights: &'a mut [T],
    pub bias: &'a mut [T],
}

/// Copies a block into the staircase part of dW.
struct FinishWeightGradient<'a, T> {
    rows: &'a mut [T],
    inputs: usize,
    column: usize,
    prefix: [usize; BLOCK],
}

#[allow(unsafe_code)]
impl<T: Real, V: Vector<T>> Finish<T, V> for FinishWeightGradient<'_, T> {
    #[inline(always)]
    unsafe fn finish(&mut self, row: usize, column: usize, sum: V) {
        let from = self.column + column;
        let prefix = self.prefix[row];
        // SAFETY: the caller vouches for the instructions; a full vector is stored only where it fits the prefix.
        unsafe {
            if from + V::LANES <= prefix {
                sum.store(self.rows[row * self.inputs + from..][..V::LANES].as_mut_ptr());
            } else if from < prefix {
                let mut lanes = [T::ZERO; 16];
                sum.store(lanes.as_mut_ptr());
                self.rows[row * self.inputs + from..row * self.inputs + prefix]
                    .copy_from_slice(&lanes[..prefix - from]);
            }
        }
    }
}

#[allow(unsafe_code)]
impl<T: Real> Kernel<T> for WeightGradient<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { linear, outputs, tiles, gradient, gradient_features, transposed, tile_stride, weights, bias } = self;
        let (stairs, inputs) = (&linear.stairs, linear.stairs.inputs());
        let panel = panel_width(inputs);
        assert!(outputs.end <= gradient_features && V::LANES <= 16);
        assert!(tiles * gradient_features * TILE <= gradient.len());
        assert!(inputs == 0 || TILE * padded(inputs) <= tile_stride && tiles * tile_stride <= transposed.len());
        assert!(weights.len() == outputs.len() * inputs);
        if outputs.is_empty() {
            return;
        }
        let mut column = 0;
        while column < stairs.prefix(outputs.end - 1) {
            let mut output = outputs.start;
            while output < outputs.end {
                let rows = BLOCK.min(outputs.end - output);
                let width = stairs.prefix(output + rows - 1).saturating_sub(column).min(panel);
                let mut finish = FinishWeightGradient {
                    rows: &mut weights[(output - outputs.start) * inputs..],
                    inputs,
                    column,
                    prefix: std::array::from_fn(|row| stairs.prefix((output + row).min(outputs.end - 1))),
                };
                let a = Scalars {
                    at: gradient[output * TILE..].as_ptr(),
                    row: TILE,
                    step: 1,
                    segment: gradient_features * TILE,
                };
                let b = Vectors { at: transposed[column * TILE..].as_ptr(), step: panel, segment: tile_stride };
                // SAFETY: `tiles` tiles of dy hold features `output..output + rows` and `tiles` tiles of xᵀ hold this panel,
                // whose width is a multiple of every vector's (asserted above).
                unsafe { strip::<T, V>(rows, width, a, b, tiles, TILE, &mut finish) };
                output += rows;
            }
            column += panel;
        }
        for (bias, output) in bias.iter_mut().zip(outputs.clone()) {
            let row = &mut weights[(output - outputs.start) * inputs..][..inputs];
            row[stairs.prefix(output)..].fill(T::ZERO);
            let mut sums = [T::ZERO; 16];
            for tile in 0..tiles {
                for sixteen in gradient[(tile * gradient_features + output) * TILE..][..TILE].chunks_exact(16) {
                    for (sum, &dy) in sums.iter_mut().zip(sixteen) {
                        *sum += dy;
                    }
                }
            }
            *bias = sums.into_iter().sum();
        }
    }
}

/// xᵀ of one tile, by panels.
struct Transpose<'a, T> {
    pub tile: &'a [T],
    /// Features that are present; later columns are left as they are.
    pub features: usize,
    /// Width of the panels.
    pub panel: usize,
    pub to: &'a mut [T],
}

#[allow(unsafe_code)]
impl<T: Real> Kernel<T> for Transpose<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { tile, features, panel, to } = self;
        assert!(features * TILE <= tile.len() && panel.is_multiple_of(SIDE) && TILE.is_multiple_of(SIDE));
        assert!(features.next_multiple_of(panel.max(1)) * TILE <= to.len());
        for first in (0..features).step_by(SIDE) {
            let block = tile[first * TILE..].as_ptr();
            let present = SIDE.min(features - first);
            let panel_start = first / panel * panel;
            for row in (0..TILE).step_by(SIDE) {
                let to = to[panel_start * TILE + row * panel + first - panel_start..].as_mut_ptr();
                // SAFETY: `present` features of `TILE` rows start at `block`, and `SIDE` columns of `SIDE` rows at `to`.
                // Lines beyond the last feature repeat it: they fill padding that is never used.
                unsafe {
                    if present == SIDE {
                        V::transpose(|line| block.add(line * TILE + row), to, panel);
                    } else {
                        V::transpose(|line| block.add(line.min(present - 1) * TILE + row), to, panel);
                    }
                }
            }
        }
    }
}

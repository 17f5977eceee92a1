//! Matrix products with staircase weights, on tiles of rows.
//!
//! A matrix is stored tile by tile; inside a tile each feature holds [`TILE`] neighbouring rows. So a tile *is* the packed
//! operand of a product kernel: no packing, and vectors run along the rows. One register kernel serves all three products:
//!
//! | product | left operand (one number at a time) | right operand (vectors) |
//! |---|---|---|
//! | `y = W x + b` | weights, by row | the tile of `x` |
//! | `dx = Wᵀ dy` | weights, by column | the tile of `dy` |
//! | `dW = dy xᵀ` | the tiles of `dy` | the transposed tiles of `x` |
//!
//! Each element is one chain of multiply-adds in a fixed order, so results do not depend on how rows or units are grouped:
//! one thread or two, a whole layer or a unit at a time, the bits are the same.

use std::ops::Range;

use super::memory::{CpuMatrix, CpuRows};
use super::{Cpu, TILE};
use crate::device::{Activation, Linear, Output};
use crate::simd::{Kernel, Real, Vector};

/// Rows of the register block: with 4 vectors abreast this fills 24 of 32 registers (with 2 abreast, 12 of 16).
pub(super) const BLOCK: usize = 6;

/// The operand that is read one number at a time: element (row, k) of segment `s` is at `at + row·row + k·step + s·segment`.
#[derive(Clone, Copy)]
pub(super) struct Scalars<T> {
    pub at: *const T,
    pub row: usize,
    pub step: usize,
    pub segment: usize,
}

/// The operand that is read in vectors: element (k, column) of segment `s` is at `at + k·step + column + s·segment`.
#[derive(Clone, Copy)]
pub(super) struct Vectors<T> {
    pub at: *const T,
    pub step: usize,
    pub segment: usize,
}

/// Begins and takes the sums of a block.
#[allow(unsafe_code)]
pub(super) trait Finish<T: Real, V: Vector<T>> {
    /// What the sum of row `row` of the block and the vector at `column` starts from.
    ///
    /// # Safety
    ///
    /// As for [`Finish::finish`].
    #[inline(always)]
    unsafe fn begin(&self, _row: usize, _column: usize) -> V {
        // SAFETY: the caller vouches for the instructions.
        unsafe { V::splat(T::ZERO) }
    }

    /// `sum` belongs to row `row` of the block and the vector that starts at `column`.
    ///
    /// # Safety
    ///
    /// Only where `V`'s instructions are enabled and (row, column) lies in the destination.
    unsafe fn finish(&mut self, row: usize, column: usize, sum: V);
}

/// `M` rows × `N` vectors of a product: Σ over `segments` × `depth`.
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn block<T: Real, V: Vector<T>, const M: usize, const N: usize>(
    a: Scalars<T>,
    b: Vectors<T>,
    segments: usize,
    depth: usize,
    finish: &mut impl Finish<T, V>,
    column: usize,
) {
    // SAFETY: the caller vouches that all addressed elements exist and that `V`'s instructions are enabled.
    unsafe {
        let mut sums = [[V::splat(T::ZERO); N]; M];
        for (m, sums) in sums.iter_mut().enumerate() {
            for (n, sum) in sums.iter_mut().enumerate() {
                *sum = finish.begin(m, column + n * V::LANES);
            }
        }
        for segment in 0..segments {
            let mut scalar = a.at.add(segment * a.segment);
            let mut vector = b.at.add(segment * b.segment);
            for _ in 0..depth {
                let mut right = [V::splat(T::ZERO); N];
                for (n, right) in right.iter_mut().enumerate() {
                    *right = V::load(vector.add(n * V::LANES));
                }
                for (m, sums) in sums.iter_mut().enumerate() {
                    let left = V::splat(*scalar.add(m * a.row));
                    for (sum, &right) in sums.iter_mut().zip(&right) {
                        *sum = left.mul_add(right, *sum);
                    }
                }
                scalar = scalar.add(a.step);
                vector = vector.add(b.step);
            }
        }
        for (m, sums) in sums.iter().enumerate() {
            for (n, &sum) in sums.iter().enumerate() {
                finish.finish(m, column + n * V::LANES, sum);
            }
        }
    }
}

/// Up to [`BLOCK`] rows × `N` vectors.
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn rows_block<T: Real, V: Vector<T>, const N: usize>(
    rows: usize,
    a: Scalars<T>,
    b: Vectors<T>,
    segments: usize,
    depth: usize,
    finish: &mut impl Finish<T, V>,
    column: usize,
) {
    // SAFETY: passed on from the caller.
    unsafe {
        match rows {
            6 => block::<T, V, 6, N>(a, b, segments, depth, finish, column),
            5 => block::<T, V, 5, N>(a, b, segments, depth, finish, column),
            4 => block::<T, V, 4, N>(a, b, segments, depth, finish, column),
            3 => block::<T, V, 3, N>(a, b, segments, depth, finish, column),
            2 => block::<T, V, 2, N>(a, b, segments, depth, finish, column),
            _ => block::<T, V, 1, N>(a, b, segments, depth, finish, column),
        }
    }
}

/// Up to [`BLOCK`] rows × `width` columns (a multiple of the vector length, or memory padded to one).
#[inline(always)]
#[allow(unsafe_code)]
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn strip<T: Real, V: Vector<T>>(
    rows: usize,
    width: usize,
    a: Scalars<T>,
    b: Vectors<T>,
    segments: usize,
    depth: usize,
    finish: &mut impl Finish<T, V>,
) {
    let mut column = 0;
    // SAFETY: passed on from the caller; `column < width` in every round.
    unsafe {
        while column < width {
            let b = Vectors { at: b.at.add(column), ..b };
            let left = (width - column).div_ceil(V::LANES);
            let abreast = if V::ABREAST == 4 && left >= 4 {
                rows_block::<T, V, 4>(rows, a, b, segments, depth, finish, column);
                4
            } else if left >= 2 {
                rows_block::<T, V, 2>(rows, a, b, segments, depth, finish, column);
                2
            } else {
                rows_block::<T, V, 1>(rows, a, b, segments, depth, finish, column);
                1
            };
            column += abreast * V::LANES;
        }
    }
}

/// Destination of `y = W x + b` inside a tile.
pub(super) struct TileOutput<'a, T> {
    /// The tile that is written.
    pub to: &'a mut [T],
    /// Add to it.
    pub accumulate: bool,
    /// Rectify it.
    pub relu: bool,
    /// Where the rectified copy goes.
    pub copy: Option<&'a mut [T]>,
}

/// `y = W x + b` on one tile.
pub(super) struct Forward<'a, T> {
    pub linear: &'a Linear,
    pub parameters: &'a [T],
    pub units: Range<usize>,
    pub input: &'a [T],
    pub output: TileOutput<'a, T>,
}

/// Bias and activation.
pub(super) struct FinishForward<'a, T> {
    pub bias: &'a [T],
    pub to: *mut T,
    pub copy: Option<*mut T>,
    pub accumulate: bool,
    pub relu: bool,
}

#[allow(unsafe_code)]
impl<T: Real, V: Vector<T>> Finish<T, V> for FinishForward<'_, T> {
    #[inline(always)]
    unsafe fn finish(&mut self, row: usize, column: usize, sum: V) {
        // SAFETY: the caller vouches for the place and the instructions.
        unsafe {
            let to = self.to.add(row * TILE + column);
            let mut y = sum.add(V::splat(*self.bias.get_unchecked(row)));
            if self.accumulate {
                y = y.add(V::load(to));
            }
            if self.relu {
                y = y.relu();
            }
            y.store(to);
            if let Some(copy) = self.copy {
                y.relu().store(copy.add(row * TILE + column));
            }
        }
    }
}

#[allow(unsafe_code)]
impl<T: Real> Kernel<T> for Forward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { linear, parameters, units, input, mut output } = self;
        let inputs = linear.stairs.inputs();
        if units.is_empty() {
            return;
        }
        let weights = &parameters[linear.weight..linear.bias];
        let bias = &parameters[linear.bias..][..linear.stairs.outputs()];
        assert!(weights.len() == bias.len() * inputs);
        assert!(units.end <= bias.len() && units.end * TILE <= output.to.len());
        assert!(linear.stairs.prefix(units.end - 1) * TILE <= input.len());
        assert!(output.copy.as_ref().is_none_or(|copy| units.end * TILE <= copy.len()));
        let mut unit = units.start;
        while unit < units.end {
            let rows = BLOCK.min(units.end - unit);
            let depth = linear.stairs.prefix(unit + rows - 1);
            let mut finish = FinishForward {
                bias: &bias[unit..unit + rows],
                to: output.to[unit * TILE..].as_mut_ptr(),
                copy: output.copy.as_mut().map(|copy| copy[unit * TILE..].as_mut_ptr()),
                accumulate: output.accumulate,
                relu: output.relu,
            };
            let a = Scalars { at: weights[unit * inputs..].as_ptr(), row: inputs, step: 1, segment: 0 };
            let b = Vectors { at: input.as_ptr(), step: TILE, segment: 0 };
            // SAFETY: rows `unit..unit + rows` of W exist and are `inputs ≥ depth` long; the tile of x holds `depth`
            // features and the destinations hold `units.end` (asserted above).
            unsafe { strip::<T, V>(rows, TILE, a, b, 1, depth, &mut finish) };
            unit += rows;
        }
    }
}

/// `dx = Wᵀ dy` on one tile.
pub(super) struct InputGradient<'a, T> {
    pub linear: &'a Linear,
    pub parameters: &'a [T],
    /// Outputs whose gradient this tile holds.
    pub outputs: usize,
    /// Inputs whose gradient is wanted.
    pub inputs: Range<usize>,
    pub gradient: &'a [T],
    pub to: &'a mut [T],
    pub accumulate: bool,
    pub residual: Option<&'a [T]>,
    pub gate: Option<&'a [T]>,
}

struct FinishInputGradient<T> {
    to: *mut T,
    gate: Option<*const T>,
    residual: Option<*const T>,
    accumulate: bool,
}

#[allow(unsafe_code)]
impl<T: Real, V: Vector<T>> Finish<T, V> for FinishInputGradient<T> {
    #[inline(always)]
    unsafe fn finish(&mut self, row: usize, column: usize, sum: V) {
        // SAFETY: the caller vouches for the place and the instructions.
        unsafe {
            let place = row * TILE + column;
            let mut dx = sum;
            if let Some(gate) = self.gate {
                dx = dx.gated(V::load(gate.add(place)));
            }
            if let Some(residual) = self.residual {
                dx = dx.add(V::load(residual.add(place)));
            }
            if self.accumulate {
                dx = dx.add(V::load(self.to.add(place)));
            }
            dx.store(self.to.add(place));
        }
    }
}

#[allow(unsafe_code)]
impl<T: Real> Kernel<T> for InputGradient<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { linear, parameters, outputs, inputs, gradient, to, accumulate, residual, gate } = self;
        let stride = linear.stairs.inputs();
        let weights = &parameters[linear.weight..linear.bias];
        assert!(weights.len() == linear.stairs.outputs() * stride);
        assert!(outputs <= linear.stairs.outputs() && outputs * TILE <= gradient.len());
        assert!(inputs.end <= stride && inputs.end * TILE <= to.len());
        assert!([gate, residual].into_iter().flatten().all(|other| inputs.end * TILE <= other.len()));
        let mut input = inputs.start;
        while input < inputs.end {
            let rows = BLOCK.min(inputs.end - input);
            let first = linear.stairs.first(input).min(outputs);
            let mut finish = FinishInputGradient {
                to: to[input * TILE..].as_mut_ptr(),
                gate: gate.map(|gate| gate[input * TILE..].as_ptr()),
                residual: residual.map(|residual| residual[input * TILE..].as_ptr()),
                accumulate,
            };
            let at = if first < outputs { weights[first * stride + input..].as_ptr() } else { weights.as_ptr() };
            let a = Scalars { at, row: 1, step: stride, segment: 0 };
            let b = Vectors { at: gradient[first * TILE..].as_ptr(), step: TILE, segment: 0 };
            // SAFETY: columns `input..input + rows` of rows `first..outputs` of W exist; the tile of dy holds `outputs`
            // features and the destinations `inputs.end` (asserted above).
            unsafe { strip::<T, V>(rows, TILE, a, b, 1, outputs - first, &mut finish) };
            input += rows;
        }
    }
}

/// `y = W x + b` of all tiles, for the outputs in `units`.
pub(super) fn forward<T: Real>(
    device: &Cpu<T>,
    linear: &Linear,
    parameters: &[T],
    rows: &CpuRows,
    input: &CpuMatrix<T>,
    units: Range<usize>,
    output: Output<'_, CpuMatrix<T>>,
) {
    let Output { to, accumulate, activation } = output;
    let cost = TILE * linear.stairs.nonzeros() * units.len() / linear.stairs.outputs().max(1);
    let relu = matches!(activation, Activation::Relu);
    let tile_product = |tile: usize, to: &mut [T], copy: Option<&mut [T]>| {
        let units = units.start..units.end.min(linear.outputs.units(rows.tile_dim(tile)));
        device.run(Forward {
            linear,
            parameters,
            units,
            input: input.tile(tile),
            output: TileOutput { to, accumulate, relu, copy },
        });
    };
    match activation {
        Activation::ReluInto(copy) => device.each_tile_pair(rows, (to, copy), cost, |tile, to, copy| {
            tile_product(tile, to, Some(copy));
        }),
        _ => device.each_tile(rows, to, cost, |tile, to| tile_product(tile, to, None)),
    }
}

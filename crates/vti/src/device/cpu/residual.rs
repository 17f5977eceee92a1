//! Parts of a residual network on tiles of rows, all maps in one go.
//!
//! A part is a handful of units, so its products are tiny: two or three rows of weights against everything known so far.
//! Done one at a time they spend their time on getting started and on waiting for the second-level cache, where a tile's
//! activations of all layers are: each vector that comes from there serves only two or three multiply-adds. So
//!
//! * when a [`Group`] of parts begins, what is known by then is summed for all its units in full register blocks, and each
//!   part goes on from those sums with the few inputs that the group itself has added;
//! * a part runs through all maps inside one kernel.
//!
//! A sum that is put down and taken up again is still one chain of multiply-adds in the order of the inputs, so the bits are
//! those of a product that does not stop.

use std::ops::Range;

use super::memory::{CpuMatrix, CpuRows};
use super::product::{BLOCK, Finish, FinishForward, Scalars, Vectors, strip};
use super::{Cpu, TILE};
use crate::device::{Group, Linear, Part, Residual, ResidualUnits};
use crate::simd::{AlignedVec, Kernel, Real, Vector};

/// A part of a group, tile by tile on the caller's thread.
pub(super) fn part<T: Real>(
    device: &Cpu<T>,
    net: &Residual<'_>,
    parameters: &AlignedVec<T>,
    rows: &CpuRows,
    (part, group): (&Part<'_>, &Group),
    values: ResidualUnits<'_, CpuMatrix<T>>,
) {
    let ResidualUnits { input, hidden, activated, inner, output, sums } = values;
    let begins = part.outputs.start == group.outputs.start;
    for tile in 0..rows.tiles() {
        let dim = rows.tile_dim(tile);
        let (units, outputs) = (net.initial.outputs.units(dim), net.output.outputs.units(dim));
        let within = |range: &Range<usize>, end: usize| range.start..range.end.min(end);
        device.run(TilePart {
            net,
            parameters,
            group,
            ahead: begins.then(|| (within(&group.units, units), within(&group.outputs, outputs))),
            units: within(&part.units, units),
            outputs: within(&part.outputs, outputs),
            tile,
            input: input.tile(tile),
            hidden: hidden.tile_mut(tile),
            activated,
            inner,
            output: output.tile_mut(tile),
            sums: sums.tile_mut(tile),
        });
    }
}

/// A part on one tile.
struct TilePart<'a, T> {
    net: &'a Residual<'a>,
    parameters: &'a [T],
    group: &'a Group,
    /// Units and outputs to sum ahead for.
    ahead: Option<(Range<usize>, Range<usize>)>,
    units: Range<usize>,
    outputs: Range<usize>,
    tile: usize,
    input: &'a [T],
    hidden: &'a mut [T],
    activated: &'a mut [CpuMatrix<T>],
    inner: &'a mut [CpuMatrix<T>],
    output: &'a mut [T],
    sums: &'a mut [T],
}

impl<T: Real> Kernel<T> for TilePart<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { net, parameters, group, ahead, units, outputs, tile, input, hidden, activated, inner, output, sums } =
            self;
        let (width, blocks) = (group.units.len() * TILE, net.blocks.len());
        let known = group.units.start;
        let (unit_sums, output_sums) = sums.split_at_mut((1 + 2 * blocks) * width);
        let map = |linear, first: usize, known| Continued { linear, parameters, known, first };
        let initial = map(net.initial, group.units.start, group.known_inputs);
        let last = map(net.output, group.outputs.start, known);
        // No closures around vectors: they would be compiled without the instructions.
        if let Some((units, outputs)) = ahead {
            let mut sums = unit_sums.chunks_exact_mut(width.max(1));
            let mut sums = || sums.next().unwrap_or(&mut []);
            if !units.is_empty() {
                initial.ahead::<V>(units.clone(), input, sums());
                for (index, [first, second]) in net.blocks.iter().enumerate() {
                    let (activated, inner) = (activated[index].tile(tile), inner[index].tile(tile));
                    map(first, group.units.start, known).ahead::<V>(units.clone(), activated, sums());
                    map(second, group.units.start, known).ahead::<V>(units.clone(), inner, sums());
                }
            }
            last.ahead::<V>(outputs, hidden, output_sums);
        }
        if !units.is_empty() {
            let mut sums = unit_sums.chunks_exact(width);
            let mut sums = || sums.next().unwrap_or(&[]);
            let copy = activated.first_mut().map(|first| first.tile_mut(tile));
            let to = Destination { to: hidden, copy, accumulate: net.in_context, relu: false };
            initial.finish::<V>(units.clone(), input, sums(), to);
            for (index, [first, second]) in net.blocks.iter().enumerate() {
                let (before, after) = activated.split_at_mut(index + 1);
                let (activated, inner) = (before[index].tile(tile), inner[index].tile_mut(tile));
                let to = Destination { to: inner, copy: None, accumulate: net.in_context, relu: true };
                map(first, group.units.start, known).finish::<V>(units.clone(), activated, sums(), to);
                let copy = after.first_mut().map(|next| next.tile_mut(tile));
                let to = Destination { to: hidden, copy, accumulate: true, relu: false };
                map(second, group.units.start, known).finish::<V>(units.clone(), inner, sums(), to);
            }
        }
        let to = Destination { to: output, copy: None, accumulate: false, relu: false };
        last.finish::<V>(outputs, hidden, output_sums, to);
    }
}

/// A map whose sums are taken in two goes: over the `known` inputs, then over the rest.
struct Continued<'a, T> {
    linear: &'a Linear,
    parameters: &'a [T],
    known: usize,
    /// The output to which the first sums belong.
    first: usize,
}

/// Where finished units go.
struct Destination<'a, T> {
    to: &'a mut [T],
    copy: Option<&'a mut [T]>,
    accumulate: bool,
    relu: bool,
}

#[allow(unsafe_code)]
impl<T: Real> Continued<'_, T> {
    /// Weights and biases, after checks that all units' weights, inputs and sums exist.
    #[inline(always)]
    fn checked(&self, units: &Range<usize>, inputs: usize, input: &[T], sums: &[T]) -> (&[T], &[T]) {
        let Linear { weight, bias, stairs, .. } = self.linear;
        let (weights, bias) = (&self.parameters[*weight..*bias], &self.parameters[*bias..][..stairs.outputs()]);
        assert!(weights.len() == stairs.outputs() * stairs.inputs());
        assert!(self.first <= units.start && units.end <= stairs.outputs());
        assert!((units.end - self.first) * TILE <= sums.len());
        assert!(inputs <= stairs.inputs() && inputs * TILE <= input.len());
        (weights, bias)
    }

    /// Sums over the known inputs.
    #[inline(always)]
    fn ahead<V: Vector<T>>(&self, units: Range<usize>, input: &[T], sums: &mut [T]) {
        if units.is_empty() {
            return;
        }
        let (weights, _) = self.checked(&units, self.known, input, sums);
        let stride = self.linear.stairs.inputs();
        for unit in units.clone().step_by(BLOCK) {
            let rows = BLOCK.min(units.end - unit);
            let mut finish = PutDown { sums: sums[(unit - self.first) * TILE..].as_mut_ptr() };
            let a = Scalars { at: weights[unit * stride..].as_ptr(), row: stride, step: 1, segment: 0 };
            let b = Vectors { at: input.as_ptr(), step: TILE, segment: 0 };
            // SAFETY: rows `unit..unit + rows` of W exist and have at least `known` columns; the tile of inputs holds
            // `known` features and that of sums as many as there are units (all checked).
            unsafe { strip::<T, V>(rows, TILE, a, b, 1, self.known, &mut finish) };
        }
    }

    /// Goes on from the sums with the inputs that were not known then.
    #[inline(always)]
    fn finish<V: Vector<T>>(&self, units: Range<usize>, input: &[T], sums: &[T], output: Destination<'_, T>) {
        if units.is_empty() {
            return;
        }
        let Destination { to, mut copy, accumulate, relu } = output;
        // All units of a part read the same inputs.
        let inputs = self.linear.stairs.prefix(units.end - 1);
        let (weights, bias) = self.checked(&units, inputs, input, sums);
        assert!(self.known <= inputs && units.end * TILE <= to.len());
        assert!(copy.as_ref().is_none_or(|copy| units.end * TILE <= copy.len()));
        let stride = self.linear.stairs.inputs();
        for unit in units.clone().step_by(BLOCK) {
            let rows = BLOCK.min(units.end - unit);
            let mut finish = TakeUp {
                sums: sums[(unit - self.first) * TILE..].as_ptr(),
                finish: FinishForward {
                    bias: &bias[unit..unit + rows],
                    to: to[unit * TILE..].as_mut_ptr(),
                    copy: copy.as_mut().map(|copy| copy[unit * TILE..].as_mut_ptr()),
                    accumulate,
                    relu,
                },
            };
            // SAFETY: rows `unit..unit + rows` of W exist and have at least `inputs ≥ known` columns; the tile of inputs
            // holds `inputs` features, and sums and destinations hold these units (all checked). An offset may be the end.
            unsafe {
                let at = weights[unit * stride..].as_ptr().add(self.known);
                let a = Scalars { at, row: stride, step: 1, segment: 0 };
                let b = Vectors { at: input.as_ptr().add(self.known * TILE), step: TILE, segment: 0 };
                strip::<T, V>(rows, TILE, a, b, 1, inputs - self.known, &mut finish);
            }
        }
    }
}

/// Puts sums down as they are.
struct PutDown<T> {
    sums: *mut T,
}

#[allow(unsafe_code)]
impl<T: Real, V: Vector<T>> Finish<T, V> for PutDown<T> {
    #[inline(always)]
    unsafe fn finish(&mut self, row: usize, column: usize, sum: V) {
        // SAFETY: the caller vouches for the place and the instructions.
        unsafe { sum.store(self.sums.add(row * TILE + column)) }
    }
}

/// Takes sums up where they were put down.
struct TakeUp<'a, T> {
    sums: *const T,
    finish: FinishForward<'a, T>,
}

#[allow(unsafe_code)]
impl<T: Real, V: Vector<T>> Finish<T, V> for TakeUp<'_, T> {
    #[inline(always)]
    unsafe fn begin(&self, row: usize, column: usize) -> V {
        // SAFETY: the caller vouches for the place and the instructions.
        unsafe { V::load(self.sums.add(row * TILE + column)) }
    }

    #[inline(always)]
    unsafe fn finish(&mut self, row: usize, column: usize, sum: V) {
        // SAFETY: passed on from the caller.
        unsafe { self.finish.finish(row, column, sum) }
    }
}

//! The univariate bijections on a tile, coordinate by coordinate, 64 rows at a time.
//!
//! Every pass computes all rows of a tile and then blends: rows in which the coordinate is inactive keep their value and
//! contribute neither log-determinant nor gradient. That is the CoSMIC mask (paper, equation cosmic-rho-m): the static
//! point is the identity, so an inactive coordinate is simply not touched.

use std::ops::Range;

use super::TILE;
use super::memory::active_rows;
use super::simd::{Kernel, Vector};
use super::spline::{self, SplineTile};
use crate::engine::{Real, Scale, Transform};

/// One number per row of a tile.
pub(super) type Lanes<T> = [T; TILE];

/// Feature `feature` of a tile.
#[inline(always)]
pub(super) fn lanes<T>(tile: &[T], feature: usize) -> &Lanes<T> {
    match tile[feature * TILE..][..TILE].try_into() {
        Ok(lanes) => lanes,
        Err(_) => unreachable!("a slice of TILE numbers"),
    }
}

/// Feature `feature` of a tile, to write.
#[inline(always)]
pub(super) fn lanes_mut<T>(tile: &mut [T], feature: usize) -> &mut Lanes<T> {
    match (&mut tile[feature * TILE..][..TILE]).try_into() {
        Ok(lanes) => lanes,
        Err(_) => unreachable!("a slice of TILE numbers"),
    }
}

/// `y = τ_ρ(x)` on one tile.
pub(super) struct Forward<'a, T> {
    pub transform: &'a Transform,
    pub dims: &'a [u32; TILE],
    pub rho: &'a [T],
    pub x: &'a [T],
    pub y: &'a mut [T],
    pub log_det: &'a mut [T],
}

impl<T: Real> Kernel<T> for Forward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { transform, dims, rho, x, y, log_det } = self;
        let k = transform.parameters();
        let log_det = lanes_mut(log_det, 0);
        for i in 0..dims[0] as usize {
            let active = active_rows(dims, i);
            let rho = &rho[i * k * TILE..(i + 1) * k * TILE];
            let (x, y) = (lanes(x, i), lanes_mut(y, i));
            let mut change = [T::ZERO; TILE];
            match transform {
                Transform::Affine(scale) => affine(*scale, rho, x, y, &mut change),
                Transform::Spline(settings) => {
                    spline::forward(&SplineTile::at(settings, rho, x), x, y, &mut change);
                }
            }
            for lane in 0..TILE {
                let active = lane < active;
                y[lane] = if active { y[lane] } else { x[lane] };
                log_det[lane] += if active { change[lane] } else { T::ZERO };
            }
        }
    }
}

/// Gradients of [`Forward`].
pub(super) struct Gradient<'a, T> {
    pub transform: &'a Transform,
    pub dims: &'a [u32; TILE],
    /// In: ρ. Out: dρ.
    pub rho: &'a mut [T],
    pub x: &'a [T],
    pub log_det_gradient: &'a [T],
    /// In: dy. Out: dx.
    pub gradient: &'a mut [T],
}

impl<T: Real> Kernel<T> for Gradient<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { transform, dims, rho, x, log_det_gradient, gradient } = self;
        let k = transform.parameters();
        for i in 0..dims[0] as usize {
            let active = active_rows(dims, i);
            let rho = &mut rho[i * k * TILE..(i + 1) * k * TILE];
            let (x, gradient) = (lanes(x, i), lanes_mut(gradient, i));
            let dy = *gradient;
            let d_log_det = lanes(log_det_gradient, 0);
            match transform {
                Transform::Affine(scale) => affine_gradient(*scale, rho, x, d_log_det, gradient),
                Transform::Spline(settings) => {
                    spline::gradient(&SplineTile::at(settings, rho, x), x, rho, d_log_det, gradient);
                }
            }
            gradient[active..].copy_from_slice(&dy[active..]);
            for feature in rho.chunks_exact_mut(TILE) {
                feature[active..].fill(T::ZERO);
            }
        }
    }
}

/// `x = τ_ρ⁻¹(y)` on one tile.
pub(super) struct Inverse<'a, T> {
    pub transform: &'a Transform,
    pub dims: &'a [u32; TILE],
    pub coordinates: Range<usize>,
    pub rho: &'a [T],
    pub y: &'a [T],
    pub x: &'a mut [T],
    pub log_det: &'a mut [T],
}

impl<T: Real> Kernel<T> for Inverse<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { transform, dims, coordinates, rho, y, x, log_det } = self;
        let k = transform.parameters();
        let log_det = lanes_mut(log_det, 0);
        for i in coordinates {
            let active = active_rows(dims, i);
            let rho = &rho[i * k * TILE..(i + 1) * k * TILE];
            let (y, x) = (lanes(y, i), lanes_mut(x, i));
            let mut change = [T::ZERO; TILE];
            match transform {
                Transform::Affine(scale) => affine_inverse(*scale, rho, y, x, &mut change),
                Transform::Spline(settings) => {
                    spline::inverse(&SplineTile::at_value(settings, rho, y), y, x, &mut change);
                }
            }
            for lane in 0..TILE {
                let active = lane < active;
                x[lane] = if active { x[lane] } else { y[lane] };
                log_det[lane] += if active { change[lane] } else { T::ZERO };
            }
        }
    }
}

/// `s(raw)` and `s'(raw)` of a [`Scale`].
#[inline(always)]
pub(super) fn scale_of<T: Real>(raw: T, offset: T, minimum: T) -> (T, T) {
    let shifted = raw + offset;
    let e = (-shifted.abs()).exp();
    let value = shifted.relu() + (T::ONE + e).ln() + minimum;
    let slope = if shifted < T::ZERO { e } else { T::ONE } / (T::ONE + e);
    (value, slope)
}

#[inline(always)]
fn affine<T: Real>(scale: Scale, rho: &[T], x: &Lanes<T>, y: &mut Lanes<T>, change: &mut Lanes<T>) {
    let (offset, minimum) = (T::from_f64(scale.offset()), T::from_f64(scale.minimum));
    let (shift, raw) = (lanes(rho, 0), lanes(rho, 1));
    for lane in 0..TILE {
        let (scale, _) = scale_of(raw[lane], offset, minimum);
        y[lane] = x[lane].mul_add(scale, shift[lane]);
        change[lane] = scale.ln();
    }
}

#[inline(always)]
fn affine_gradient<T: Real>(scale: Scale, rho: &mut [T], x: &Lanes<T>, d_log_det: &Lanes<T>, dy: &mut Lanes<T>) {
    let (offset, minimum) = (T::from_f64(scale.offset()), T::from_f64(scale.minimum));
    let (shift, raw) = rho.split_at_mut(TILE);
    let (shift, raw) = (lanes_mut(shift, 0), lanes_mut(raw, 0));
    for lane in 0..TILE {
        let (scale, slope) = scale_of(raw[lane], offset, minimum);
        shift[lane] = dy[lane];
        raw[lane] = (dy[lane] * x[lane] + d_log_det[lane] / scale) * slope;
        dy[lane] *= scale;
    }
}

#[inline(always)]
fn affine_inverse<T: Real>(scale: Scale, rho: &[T], y: &Lanes<T>, x: &mut Lanes<T>, change: &mut Lanes<T>) {
    let (offset, minimum) = (T::from_f64(scale.offset()), T::from_f64(scale.minimum));
    let (shift, raw) = (lanes(rho, 0), lanes(rho, 1));
    for lane in 0..TILE {
        let (scale, _) = scale_of(raw[lane], offset, minimum);
        x[lane] = (y[lane] - shift[lane]) / scale;
        change[lane] = scale.ln();
    }
}

/// Draws a symbol per row from its logits.
pub(super) struct Choose<'a, T> {
    /// The logit of 1, or one logit per symbol.
    pub logits: &'a [T],
    pub uniforms: &'a [T],
    pub scale: T,
    pub words: &'a mut [T],
    pub log_prob: &'a mut [T],
}

impl<T: Real> Kernel<T> for Choose<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { logits, uniforms, scale, words, log_prob } = self;
        let (uniforms, words, log_prob) = (lanes(uniforms, 0), lanes_mut(words, 0), lanes_mut(log_prob, 0));
        if logits.len() == TILE {
            let logits = lanes(logits, 0);
            for lane in 0..TILE {
                let logit = logits[lane];
                // Intervals in order of the symbols: 0 first.
                let one = uniforms[lane] >= (-logit).sigmoid();
                words[lane] = if one { scale } else { T::ZERO };
                log_prob[lane] -= if one { -logit } else { logit }.softplus();
            }
            return;
        }
        let mut top = *lanes(logits, 0);
        for logits in logits.chunks_exact(TILE) {
            for (top, &logit) in top.iter_mut().zip(logits) {
                *top = top.max(logit);
            }
        }
        let mut total = [T::ZERO; TILE];
        for logits in logits.chunks_exact(TILE) {
            for lane in 0..TILE {
                total[lane] += (logits[lane] - top[lane]).exp();
            }
        }
        let mut sum = [T::ZERO; TILE];
        let mut chosen = *lanes(logits, 0);
        for (symbol, logits) in logits.chunks_exact(TILE).enumerate() {
            let value = T::from_f64(symbol as f64) * scale;
            for lane in 0..TILE {
                // The last symbol whose interval starts at or below the uniform number.
                let reached = uniforms[lane] * total[lane] >= sum[lane];
                words[lane] = if reached { value } else { words[lane] };
                chosen[lane] = if reached { logits[lane] } else { chosen[lane] };
                sum[lane] += (logits[lane] - top[lane]).exp();
            }
        }
        for lane in 0..TILE {
            log_prob[lane] += chosen[lane] - top[lane] - total[lane].ln();
        }
    }
}

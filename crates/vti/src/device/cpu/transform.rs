//! The univariate bijections on a tile, coordinate by coordinate, 64 rows at a time.
//!
//! Every pass computes all rows of a tile and then blends: rows in which the coordinate is inactive keep their value and
//! contribute neither log-determinant nor gradient. That is the CoSMIC mask (paper, eq. 7 (cosmic-rho-m)): the static
//! point is the identity, so an inactive coordinate is simply not touched.

use std::ops::Range;

use super::TILE;
use super::memory::active_rows;
use super::spline::{self, SplineTile};
use crate::device::{Scale, Spline, Transform};
use crate::simd::{Kernel, Real, Vector};

/// The most parameters a transform has.
const MAX_PARAMETERS: usize = 3 * Spline::MAX_BINS + 1;

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
            self::gradient(transform, rho, x, d_log_det, gradient);
            gradient[active..].copy_from_slice(&dy[active..]);
            for feature in rho.chunks_exact_mut(TILE) {
                feature[active..].fill(T::ZERO);
            }
        }
    }
}

/// Carries a score through [`Forward`], see `Device::transform_score`.
pub(super) struct Score<'a, T> {
    pub transform: &'a Transform,
    pub dims: &'a [u32; TILE],
    pub coordinates: Range<usize>,
    pub rho: &'a [T],
    pub x: &'a [T],
    pub later: &'a [T],
    pub score: &'a mut [T],
    pub rho_gradient: &'a mut [T],
}

impl<T: Real> Kernel<T> for Score<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { transform, dims, coordinates, rho, x, later, score, rho_gradient } = self;
        let k = transform.parameters();
        let mut by_value = [[T::ZERO; TILE]; MAX_PARAMETERS];
        for i in coordinates {
            let active = active_rows(dims, i);
            let (x, later, score) = (lanes(x, i), lanes(later, i), lanes_mut(score, i));
            let rho = &rho[i * k * TILE..(i + 1) * k * TILE];
            let by_log_slope = &mut rho_gradient[i * k * TILE..(i + 1) * k * TILE];
            let by_value = &mut by_value.as_flattened_mut()[..k * TILE];
            // Gradients are linear in (dy, d log τ'): one pass for each gives everything.
            by_value.copy_from_slice(rho);
            by_log_slope.copy_from_slice(rho);
            let (mut slope, mut bend) = ([T::ONE; TILE], [T::ZERO; TILE]);
            gradient(transform, by_value, x, &[T::ZERO; TILE], &mut slope);
            gradient(transform, by_log_slope, x, &[T::ONE; TILE], &mut bend);
            for lane in 0..TILE {
                let carried = (score[lane] - later[lane] - bend[lane]) / slope[lane];
                score[lane] = if lane < active { carried } else { score[lane] };
            }
            for (sum, part) in by_log_slope.chunks_exact_mut(TILE).zip(by_value.chunks_exact(TILE)) {
                for lane in 0..TILE {
                    let value = part[lane].mul_add(score[lane], sum[lane]);
                    sum[lane] = if lane < active { value } else { T::ZERO };
                }
            }
        }
    }
}

/// Gradients of one coordinate: turns `dy` into dx and `rho` into dρ.
#[inline(always)]
fn gradient<T: Real>(transform: &Transform, rho: &mut [T], x: &Lanes<T>, d_log_det: &Lanes<T>, dy: &mut Lanes<T>) {
    match transform {
        Transform::Affine(scale) => affine_gradient(*scale, rho, x, d_log_det, dy),
        Transform::Spline(settings) => {
            spline::gradient(&SplineTile::at(settings, rho, x), x, rho, d_log_det, dy);
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

//! The rational-quadratic spline between a logistic function and its inverse.
//!
//! With `u = σ(x)`, `c = σ(−x)` and, inside the bin of `u`, `ξ = (u − x₀)/w` and `ζ = 1 − ξ = (c − x_r)/w`, where `x_r` is
//! the width to the right of the bin, Durkan et al.'s spline is symmetric in the two ends:
//!
//! ```text
//! N₀ = ξ (s ξ + δ₀ ζ)    N₁ = ζ (s ζ + δ₁ ξ)    s = h / w
//! y  = y₀ + h N₀ / (N₀ + N₁)       1 − y = y_r + h N₁ / (N₀ + N₁)
//! y' = s² (δ₁ ξ² + 2 s ξ ζ + δ₀ ζ²) / (N₀ + N₁)²
//! ```
//!
//! Keeping both distances (`u` and `c`, `y` and `1 − y`) instead of subtracting from 1 makes `logit(y)` accurate far into
//! the tails, in single precision too. Beyond ±[`Real::TAIL`] the asymptote `x ∓ ln δ` is exact to rounding.

use super::TILE;
use super::transform::{Lanes, lanes, lanes_mut, scale_of};
use crate::device::Spline;
use crate::simd::Real;

const BINS: usize = Spline::MAX_BINS;

/// What each row of a tile knows of its spline: all shares (softmax of the raw widths and heights) and the bin its argument
/// fell into.
pub(super) struct SplineTile<T> {
    bins: usize,
    width_share: [Lanes<T>; BINS],
    height_share: [Lanes<T>; BINS],
    /// Share × scale + minimum = width (height).
    width_scale: T,
    width_min: T,
    height_scale: T,
    height_min: T,
    /// The argument and 1 − the argument: `u` and `c` forward, `y` and `1 − y` inverse.
    from_left: Lanes<T>,
    from_right: Lanes<T>,
    index: Lanes<T>,
    /// The bin, and what lies left and right of it.
    x_left: Lanes<T>,
    width: Lanes<T>,
    x_right: Lanes<T>,
    y_left: Lanes<T>,
    height: Lanes<T>,
    y_right: Lanes<T>,
    /// Slopes at its two knots, and their derivatives with respect to the raw numbers.
    slope0: Lanes<T>,
    slope1: Lanes<T>,
    slope0_raw: Lanes<T>,
    slope1_raw: Lanes<T>,
    /// Slopes at 0 and 1, whose logarithms shift the tails.
    lowest: Lanes<T>,
    highest: Lanes<T>,
}

/// Which coordinate of the plane an argument is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    X,
    Y,
}

impl<T: Real> SplineTile<T> {
    /// The splines with raw parameters `rho` (widths, heights, slopes), each at its row's argument `σ(x)`.
    #[inline(always)]
    pub(super) fn at(settings: &Spline, rho: &[T], x: &Lanes<T>) -> Self {
        Self::new(settings, rho, x, Axis::X)
    }

    /// The same, each at its row's value `σ(y)`.
    #[inline(always)]
    pub(super) fn at_value(settings: &Spline, rho: &[T], y: &Lanes<T>) -> Self {
        let mut shifted = *y;
        let slopes = settings.slope;
        let (offset, minimum) = (T::from_f64(slopes.offset()), T::from_f64(slopes.minimum));
        let (low, high) = (lanes(rho, 2 * settings.bins), lanes(rho, 3 * settings.bins));
        // Where the tails begin on the side of the values.
        for lane in 0..TILE {
            let lower = -T::TAIL + scale_of(low[lane], offset, minimum).0.ln();
            let upper = T::TAIL - scale_of(high[lane], offset, minimum).0.ln();
            shifted[lane] = y[lane].max(lower).min(upper);
        }
        Self::new(settings, rho, &shifted, Axis::Y)
    }

    #[inline(always)]
    fn new(settings: &Spline, rho: &[T], logit: &Lanes<T>, axis: Axis) -> Self {
        let zero = [T::ZERO; TILE];
        let bins = settings.bins;
        let share = |minimum: f64| T::from_f64(1.0 - minimum * bins as f64);
        let mut tile = Self {
            bins,
            width_share: [zero; BINS],
            height_share: [zero; BINS],
            width_scale: share(settings.min_width),
            width_min: T::from_f64(settings.min_width),
            height_scale: share(settings.min_height),
            height_min: T::from_f64(settings.min_height),
            from_left: zero,
            from_right: zero,
            index: zero,
            x_left: zero,
            width: zero,
            x_right: zero,
            y_left: zero,
            height: zero,
            y_right: zero,
            slope0: zero,
            slope1: zero,
            slope0_raw: zero,
            slope1_raw: zero,
            lowest: zero,
            highest: zero,
        };
        softmax(&rho[..bins * TILE], &mut tile.width_share);
        softmax(&rho[bins * TILE..2 * bins * TILE], &mut tile.height_share);
        for lane in 0..TILE {
            let x = if axis == Axis::X { logit[lane].max(-T::TAIL).min(T::TAIL) } else { logit[lane] };
            let e = (-x.abs()).exp();
            let (large, small) = (T::ONE / (T::ONE + e), e / (T::ONE + e));
            tile.from_left[lane] = if x < T::ZERO { small } else { large };
            tile.from_right[lane] = if x < T::ZERO { large } else { small };
        }
        tile.find_bin(&rho[2 * bins * TILE..], settings, axis);
        tile
    }

    /// Walks over the bins; the last one that starts at or left of the argument wins.
    #[inline(always)]
    fn find_bin(&mut self, raw_slopes: &[T], settings: &Spline, axis: Axis) {
        let (mut x, mut y) = ([T::ZERO; TILE], [T::ZERO; TILE]);
        let (mut raw0, mut raw1) = ([T::ZERO; TILE], [T::ZERO; TILE]);
        for bin in 0..self.bins {
            let (before, after) = (lanes(raw_slopes, bin), lanes(raw_slopes, bin + 1));
            let number = T::from_f64(bin as f64);
            for lane in 0..TILE {
                let width = self.width_share[bin][lane].mul_add(self.width_scale, self.width_min);
                let height = self.height_share[bin][lane].mul_add(self.height_scale, self.height_min);
                let edge = if axis == Axis::X { x[lane] } else { y[lane] };
                let inside = self.from_left[lane] >= edge || bin == 0;
                self.index[lane] = if inside { number } else { self.index[lane] };
                self.x_left[lane] = if inside { x[lane] } else { self.x_left[lane] };
                self.width[lane] = if inside { width } else { self.width[lane] };
                self.x_right[lane] = if inside { T::ZERO } else { self.x_right[lane] + width };
                self.y_left[lane] = if inside { y[lane] } else { self.y_left[lane] };
                self.height[lane] = if inside { height } else { self.height[lane] };
                self.y_right[lane] = if inside { T::ZERO } else { self.y_right[lane] + height };
                raw0[lane] = if inside { before[lane] } else { raw0[lane] };
                raw1[lane] = if inside { after[lane] } else { raw1[lane] };
                x[lane] += width;
                y[lane] += height;
            }
        }
        let (offset, minimum) = (T::from_f64(settings.slope.offset()), T::from_f64(settings.slope.minimum));
        let (low, high) = (lanes(raw_slopes, 0), lanes(raw_slopes, self.bins));
        for lane in 0..TILE {
            (self.slope0[lane], self.slope0_raw[lane]) = scale_of(raw0[lane], offset, minimum);
            (self.slope1[lane], self.slope1_raw[lane]) = scale_of(raw1[lane], offset, minimum);
            self.lowest[lane] = scale_of(low[lane], offset, minimum).0;
            self.highest[lane] = scale_of(high[lane], offset, minimum).0;
        }
    }

    /// ξ and ζ of a forward argument, kept inside the bin against rounding.
    #[inline(always)]
    fn position(&self, lane: usize) -> (T, T) {
        let inside = |t: T| t.max(T::ZERO).min(T::ONE);
        let w = self.width[lane];
        (
            inside((self.from_left[lane] - self.x_left[lane]) / w),
            inside((self.from_right[lane] - self.x_right[lane]) / w),
        )
    }

    /// N₀, N₁, `y'`'s numerator δ₁ξ² + 2sξζ + δ₀ζ², and s.
    #[inline(always)]
    fn terms(&self, lane: usize, xi: T, zeta: T) -> (T, T, T, T) {
        let s = self.height[lane] / self.width[lane];
        let (d0, d1) = (self.slope0[lane], self.slope1[lane]);
        let n0 = xi * (s * xi + d0 * zeta);
        let n1 = zeta * (s * zeta + d1 * xi);
        let m = d1 * xi * xi + (s + s) * xi * zeta + d0 * zeta * zeta;
        (n0, n1, m, s)
    }
}

/// Softmax over the 64-row features of `raw`.
#[inline(always)]
fn softmax<T: Real>(raw: &[T], to: &mut [Lanes<T>; BINS]) {
    let mut top = *lanes(raw, 0);
    for raw in raw.chunks_exact(TILE) {
        for (top, &raw) in top.iter_mut().zip(raw) {
            *top = top.max(raw);
        }
    }
    let mut total = [T::ZERO; TILE];
    for (to, raw) in to.iter_mut().zip(raw.chunks_exact(TILE)) {
        for lane in 0..TILE {
            to[lane] = (raw[lane] - top[lane]).exp();
            total[lane] += to[lane];
        }
    }
    for total in &mut total {
        *total = T::ONE / *total;
    }
    for to in to.iter_mut().take(raw.len() / TILE) {
        for lane in 0..TILE {
            to[lane] *= total[lane];
        }
    }
}

/// `y = logit(spline(σ(x)))` and the logarithm of its derivative.
#[inline(always)]
pub(super) fn forward<T: Real>(tile: &SplineTile<T>, x: &Lanes<T>, y: &mut Lanes<T>, change: &mut Lanes<T>) {
    for lane in 0..TILE {
        let (xi, zeta) = tile.position(lane);
        let (n0, n1, m, s) = tile.terms(lane, xi, zeta);
        let d = n0 + n1;
        let value = tile.height[lane].mul_add(n0 / d, tile.y_left[lane]);
        let rest = tile.height[lane].mul_add(n1 / d, tile.y_right[lane]);
        let slope = (s / d) * (s / d) * m;
        let inner = (value / rest).ln();
        let log_slope = (slope * (tile.from_left[lane] / value) * (tile.from_right[lane] / rest)).ln();
        let (low, high) = (x[lane] < -T::TAIL, x[lane] > T::TAIL);
        let edge = if low { tile.lowest[lane].ln() } else { -tile.highest[lane].ln() };
        let in_tail = low || high;
        y[lane] = if in_tail { x[lane] + edge } else { inner };
        change[lane] = if in_tail { T::ZERO } else { log_slope };
    }
}

/// Gradients of [`forward`]: `rho` receives dρ, `gradient` holds dy and receives dx.
#[inline(always)]
pub(super) fn gradient<T: Real>(
    tile: &SplineTile<T>,
    x: &Lanes<T>,
    rho: &mut [T],
    d_log_det: &Lanes<T>,
    gradient: &mut Lanes<T>,
) {
    let zero = [T::ZERO; TILE];
    let (mut g_x_left, mut g_width, mut g_x_right) = (zero, zero, zero);
    let (mut g_y_left, mut g_height, mut g_y_right) = (zero, zero, zero);
    let (mut g_raw0, mut g_raw1) = (zero, zero);
    let two = T::ONE + T::ONE;
    for lane in 0..TILE {
        let (xi, zeta) = tile.position(lane);
        let (n0, n1, m, s) = tile.terms(lane, xi, zeta);
        let (w, h) = (tile.width[lane], tile.height[lane]);
        let (d0, d1) = (tile.slope0[lane], tile.slope1[lane]);
        let (u, c) = (tile.from_left[lane], tile.from_right[lane]);
        let (dy, dl) = (gradient[lane], d_log_det[lane]);
        let d = n0 + n1;
        let (f0, f1) = (n0 / d, n1 / d);
        let value = h.mul_add(f0, tile.y_left[lane]);
        let rest = h.mul_add(f1, tile.y_right[lane]);
        // logit and log-derivative: y = ln value − ln rest, L = 2 ln s + ln m − 2 ln d + ln u + ln c − ln value − ln rest.
        let g_value = (dy - dl) / value;
        let g_rest = -(dy + dl) / rest;
        let (g_f0, g_f1) = (g_value * h, g_rest * h);
        let g_d = -(g_f0 * f0 + g_f1 * f1 + two * dl) / d;
        let (g_n0, g_n1) = (g_f0 / d + g_d, g_f1 / d + g_d);
        let g_m = dl / m;
        let both = xi * zeta;
        let g_s = two * dl / s + g_m * two * both + g_n0 * xi * xi + g_n1 * zeta * zeta;
        let g_d0 = g_m * zeta * zeta + g_n0 * both;
        let g_d1 = g_m * xi * xi + g_n1 * both;
        let g_xi = g_m * two * (d1 * xi + s * zeta) + g_n0 * (two * s * xi + d0 * zeta) + g_n1 * d1 * zeta;
        let g_zeta = g_m * two * (d0 * zeta + s * xi) + g_n1 * (two * s * zeta + d1 * xi) + g_n0 * d0 * xi;
        let (a, b) = (g_xi / w, g_zeta / w);
        let g_x = (a * u + dl) * c - (b * c + dl) * u;
        let (low, high) = (x[lane] < -T::TAIL, x[lane] > T::TAIL);
        let in_tail = low || high;
        let inner = |g: T| if in_tail { T::ZERO } else { g };
        g_x_left[lane] = inner(-a);
        g_x_right[lane] = inner(-b);
        g_width[lane] = inner(-(g_s * s + g_xi * xi + g_zeta * zeta) / w);
        g_y_left[lane] = inner(g_value);
        g_y_right[lane] = inner(g_rest);
        g_height[lane] = inner(g_value * f0 + g_rest * f1 + g_s / w);
        g_raw0[lane] = if low { dy / d0 } else { inner(g_d0) } * tile.slope0_raw[lane];
        g_raw1[lane] = if high { -dy / d1 } else { inner(g_d1) } * tile.slope1_raw[lane];
        gradient[lane] = if in_tail { dy } else { g_x };
    }
    let bins = tile.bins;
    let (widths, rest) = rho.split_at_mut(bins * TILE);
    let (heights, slopes) = rest.split_at_mut(bins * TILE);
    softmax_gradient(tile, &tile.width_share, tile.width_scale, [&g_x_left, &g_width, &g_x_right], widths);
    softmax_gradient(tile, &tile.height_share, tile.height_scale, [&g_y_left, &g_height, &g_y_right], heights);
    for (knot, slopes) in slopes.chunks_exact_mut(TILE).enumerate() {
        let (knot, slopes) = (T::from_f64(knot as f64), lanes_mut(slopes, 0));
        for lane in 0..TILE {
            let bin = tile.index[lane];
            let before = if bin == knot { g_raw0[lane] } else { T::ZERO };
            slopes[lane] = if bin + T::ONE == knot { g_raw1[lane] } else { before };
        }
    }
}

/// Gradients of raw widths (heights) from those of what lies left of the bin, of the bin, and of what lies right of it.
#[inline(always)]
fn softmax_gradient<T: Real>(
    tile: &SplineTile<T>,
    share: &[Lanes<T>; BINS],
    scale: T,
    [left, own, right]: [&Lanes<T>; 3],
    raw: &mut [T],
) {
    let mut mean = [T::ZERO; TILE];
    for (bin, raw) in raw.chunks_exact_mut(TILE).enumerate() {
        let (number, raw) = (T::from_f64(bin as f64), lanes_mut(raw, 0));
        for lane in 0..TILE {
            let index = tile.index[lane];
            let beside = if number < index { left[lane] } else { right[lane] };
            let g = scale * if number == index { own[lane] } else { beside };
            raw[lane] = g;
            mean[lane] += g * share[bin][lane];
        }
    }
    for (bin, raw) in raw.chunks_exact_mut(TILE).enumerate() {
        for lane in 0..TILE {
            raw[lane] = share[bin][lane] * (raw[lane] - mean[lane]);
        }
    }
}

/// `x` with `y = logit(spline(σ(x)))`, and the logarithm of the spline's derivative there.
///
/// With `η = (y − y₀)/h` and `η' = 1 − η`, the ratio `t = ξ/ζ` solves `s η' t² + (δ₀ η' − δ₁ η) t − s η = 0`.
#[inline(always)]
pub(super) fn inverse<T: Real>(tile: &SplineTile<T>, y: &Lanes<T>, x: &mut Lanes<T>, change: &mut Lanes<T>) {
    let two = T::ONE + T::ONE;
    for lane in 0..TILE {
        let (w, h) = (tile.width[lane], tile.height[lane]);
        let s = h / w;
        let below = ((tile.from_left[lane] - tile.y_left[lane]) / h).max(T::ZERO).min(T::ONE);
        let above = ((tile.from_right[lane] - tile.y_right[lane]) / h).max(T::ZERO).min(T::ONE);
        let (a, c) = (s * above, s * below);
        let b = tile.slope0[lane] * above - tile.slope1[lane] * below;
        let root = (b * b + two * two * a * c).sqrt();
        // ξ : ζ by whichever form of the root does not cancel.
        let falling = b < T::ZERO;
        let p = if falling { root - b } else { two * c };
        let q = if falling { two * a } else { root + b };
        let (xi, zeta) = (p / (p + q), q / (p + q));
        let (n0, n1, m, _) = tile.terms(lane, xi, zeta);
        let d = n0 + n1;
        let u = w.mul_add(xi, tile.x_left[lane]);
        let rest = w.mul_add(zeta, tile.x_right[lane]);
        let inner = (u / rest).ln();
        let slope = (s / d) * (s / d) * m;
        let log_slope = (slope * (u / tile.from_left[lane]) * (rest / tile.from_right[lane])).ln();
        let (low, high) = (y[lane] - tile.lowest[lane].ln(), y[lane] + tile.highest[lane].ln());
        let in_tail = low < -T::TAIL || high > T::TAIL;
        let tail = if low < -T::TAIL { low } else { high };
        x[lane] = if in_tail { tail } else { inner };
        change[lane] = if in_tail { T::ZERO } else { log_slope };
    }
}

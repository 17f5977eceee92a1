//! A piece of a density as a polynomial, by its values at Chebyshev points, and the integral of it.

use std::f64::consts::PI;

use super::super::PriorError;
use super::Map;

/// Number of Chebyshev points.
const POINTS: usize = 16;

/// How small the last coefficients must be, beside the largest value.
const TOLERANCE: f64 = 1e-13;

/// The largest ratio of values in a panel, so that small ones have about as many digits as large ones.
const RATIO: f64 = 1e3;

/// Panels that are narrower than that are not halved any more.
const NARROWEST: f64 = 1e-9;

/// ∫ g(v) dv from the left end to u, as a series of Chebyshev polynomials in t, which goes from −1 to 1.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    left: f64,
    right: f64,
    /// Coefficients of the density in t.
    density: [f64; POINTS],
    /// Coefficients of its integral from the left end.
    integral: [f64; POINTS + 1],
    /// The integral over all of the panel.
    total: f64,
}

impl Panel {
    /// Panels from `left` to `right`, halved until polynomials fit.
    pub(super) fn fit(
        left: f64,
        right: f64,
        map: &Map,
        g: &impl Fn(f64) -> Result<f64, PriorError>,
        panels: &mut Vec<Self>,
    ) -> Result<(), PriorError> {
        let (middle, half) = (0.5 * (left + right), 0.5 * (right - left));
        let mut values = [0.0; POINTS];
        for (k, value) in values.iter_mut().enumerate() {
            *value = g(middle + half * node(k))?;
        }
        let (largest, smallest) = values.iter().fold((0f64, f64::INFINITY), |(a, b), v| (a.max(*v), b.min(*v)));
        let density = coefficients(&values);
        let last = density[POINTS - 2..].iter().fold(0f64, |a, c| a.max(c.abs()));
        let tolerance = TOLERANCE + 10.0 * map.rounding(left).max(map.rounding(right));
        if (last <= tolerance * largest && largest <= RATIO * smallest) || half < NARROWEST * (1.0 + middle.abs()) {
            panels.push(Self::new(left, right, density.map(|c| c * half)));
            return Ok(());
        }
        Self::fit(left, middle, map, g, panels)?;
        Self::fit(middle, right, map, g, panels)
    }

    fn new(left: f64, right: f64, density: [f64; POINTS]) -> Self {
        let c = |k: usize| if k < POINTS { density[k] } else { 0.0 };
        let mut integral = [0.0; POINTS + 1];
        // ∫ T₀ = T₁, ∫ T₁ = T₂/4, ∫ Tₖ = Tₖ₊₁/(2k + 2) − Tₖ₋₁/(2k − 2), up to constants.
        for (k, coefficient) in integral.iter_mut().enumerate().skip(1) {
            let before = if k == 1 { 2.0 * c(0) } else { c(k - 1) };
            *coefficient = (before - c(k + 1)) / (2.0 * k as f64);
        }
        integral[0] = -clenshaw(&integral, -1.0);
        let total = clenshaw(&integral, 1.0);
        Self { left, right, density, integral, total }
    }

    pub(super) fn left(&self) -> f64 {
        self.left
    }

    pub(super) fn right(&self) -> f64 {
        self.right
    }

    /// The integral over all of it.
    pub(super) fn total(&self) -> f64 {
        self.total
    }

    /// The integral from the left end to u.
    pub(super) fn integral(&self, u: f64) -> f64 {
        let t = (2.0 * u - self.left - self.right) / (self.right - self.left);
        clenshaw(&self.integral, t).clamp(0.0, self.total)
    }

    /// The u up to which the integral has this value: Newton's method, kept between what is known to be too low and too high.
    pub(super) fn solve(&self, value: f64) -> f64 {
        let (mut low, mut high) = (-1.0, 1.0);
        let mut t = (2.0 * value / self.total - 1.0).clamp(low, high);
        for _ in 0..100 {
            let excess = clenshaw(&self.integral, t) - value;
            (low, high) = if excess > 0.0 { (low, t) } else { (t, high) };
            let newton = t - excess / clenshaw(&self.density, t);
            let next = if newton >= low && newton <= high { newton } else { 0.5 * (low + high) };
            let step = (next - t).abs();
            t = next;
            if step < 4.0 * f64::EPSILON {
                break;
            }
        }
        0.5 * ((self.left + self.right) + t * (self.right - self.left))
    }

    /// Multiplies the density.
    pub(super) fn scale(&mut self, factor: f64) {
        self.density.iter_mut().chain(&mut self.integral).for_each(|coefficient| *coefficient *= factor);
        self.total *= factor;
    }
}

/// Chebyshev point k.
fn node(k: usize) -> f64 {
    (PI * (k as f64 + 0.5) / POINTS as f64).cos()
}

/// Coefficients of the polynomial through values at the Chebyshev points.
fn coefficients(values: &[f64; POINTS]) -> [f64; POINTS] {
    std::array::from_fn(|j| {
        let cosine = |k: usize| (PI * j as f64 * (k as f64 + 0.5) / POINTS as f64).cos();
        let sum: f64 = values.iter().enumerate().map(|(k, value)| value * cosine(k)).sum();
        sum * if j == 0 { 1.0 } else { 2.0 } / POINTS as f64
    })
}

/// Σ cₖ Tₖ(t), by the recurrence of Clenshaw.
fn clenshaw(coefficients: &[f64], t: f64) -> f64 {
    let (mut one, mut two) = (0.0, 0.0);
    for c in coefficients[1..].iter().rev() {
        (one, two) = (2.0 * t * one - two + c, one);
    }
    t * one - two + coefficients[0]
}

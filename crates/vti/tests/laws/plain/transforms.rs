//! Transforms of single coordinates, from their definitions; derivatives by dual numbers.

use vti::device::Transform;

use crate::number::{Dual, Number};
use crate::slow;

/// `τ_ρ(x)` and its log-derivative.
pub(super) fn evaluate<N: Number>(transform: &Transform, rho: &[N], x: N) -> (N, N) {
    match transform {
        Transform::Affine(scale) => slow::affine(rho, scale.minimum, true, x),
        Transform::Spline(s) => slow::spline(rho, s.bins, (s.min_width, s.min_height, s.slope.minimum), true, x),
    }
}

/// Derivatives of `τ_ρ(x)` and of its log-derivative.
pub(super) struct Derivatives {
    pub(super) by_x: [f64; 2],
    pub(super) by_rho: Vec<[f64; 2]>,
}

impl Derivatives {
    pub(super) fn new(transform: &Transform, rho: &[f64], x: f64) -> Self {
        let constants: Vec<Dual> = rho.iter().map(|&r| r.into()).collect();
        let of = |rho: &[Dual], x: Dual| {
            let (value, log_slope) = evaluate(transform, rho, x);
            [value.derivative, log_slope.derivative]
        };
        let by_rho = |j: usize| {
            let mut moved = constants.clone();
            moved[j] = Dual::variable(rho[j]);
            of(&moved, x.into())
        };
        Self { by_x: of(&constants, Dual::variable(x)), by_rho: (0..rho.len()).map(by_rho).collect() }
    }
}

/// `τ_ρ⁻¹(y)`, by halving an interval.
pub(super) fn invert(transform: &Transform, rho: &[f64], y: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if evaluate(transform, rho, middle).0 < y { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

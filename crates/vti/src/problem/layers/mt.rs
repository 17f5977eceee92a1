//! Magnetotelluric data of a layered earth: apparent resistivity and phase.
//!
//! With the impedance Z = √(iωμ₀) z, a half space of resistivity ρ has z = √ρ. A layer of resistivity ρ and thickness h above an earth
//! of z′ has (Wait 1954)
//!
//! > z = s (1 − r e)/(1 + r e),  s = √ρ,  r = (s − z′)/(s + z′),  e = exp(−2 √(iωμ₀) h/s).
//!
//! Apparent resistivity is |z|², and the phase of Z is 45° more than that of z.

use std::f64::consts::{LN_10, PI};

use super::complex::Complex;
use super::{Earth, Forward, View};
use crate::problem::DensityError;
use crate::workers::Workers;

/// The permeability of free space, in H/m.
pub(super) const PERMEABILITY: f64 = 4e-7 * PI;

/// Magnetotelluric soundings at some periods: log₁₀ of apparent resistivity in Ωm at each, then the phase in degrees at each.
///
/// ```
/// use vti::problem::layers::{Earth, Forward, Magnetotelluric};
/// use vti::workers::Workers;
/// let sounding = Magnetotelluric::new(&[0.01, 1.0]);
/// let mut data = [0.0; 4];
/// let half_space = Earth { depths: vec![], values: vec![100.0] };
/// sounding.predict(&[half_space], &mut data, &Workers::SINGLE)?;
/// assert!((data[0] - 2.0).abs() < 1e-12 && (data[3] - 45.0).abs() < 1e-12);
/// # Ok::<(), vti::problem::DensityError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Magnetotelluric {
    /// √(iωμ₀) of each period.
    rates: Vec<Complex>,
    periods: Vec<f64>,
}

impl Magnetotelluric {
    /// At these periods, in seconds.
    pub fn new(periods: &[f64]) -> Self {
        // √i = (1 + i)/√2.
        let rate = |period: &f64| Complex { re: 1.0, im: 1.0 }.scale((PI * PERMEABILITY / period).sqrt());
        Self { rates: periods.iter().map(rate).collect(), periods: periods.to_vec() }
    }
}

/// A layer above an earth of `below`.
struct Layer {
    s: Complex,
    /// How much of a reflection is left at its upper end, and of that at its lower end.
    e: Complex,
    q: Complex,
    below: Complex,
    /// −2 √(iωμ₀) h/s.
    exponent: Complex,
}

impl Layer {
    fn new(rate: Complex, resistivity: f64, thickness: f64, below: Complex) -> Self {
        let s = Complex::real(resistivity.sqrt());
        let r = (s - below) / (s + below);
        let exponent = rate.scale(-2.0 * thickness / s.re);
        let e = exponent.exp();
        Self { s, e, q: r * e, below, exponent }
    }

    /// z at its upper end.
    fn z(&self) -> Complex {
        self.s * (Complex::ONE - self.q) / (Complex::ONE + self.q)
    }

    /// dz by z below, by s and by the exponent.
    fn derivatives(&self) -> [Complex; 3] {
        let open = Complex::ONE + self.q;
        let by_q = self.s.scale(-2.0) / (open * open);
        let sum = self.s + self.below;
        let by_r = by_q * self.e;
        let by_below = by_r * (self.s.scale(-2.0) / (sum * sum));
        let by_exponent = by_q * self.q;
        // The exponent is in proportion to 1/s.
        let by_s = (Complex::ONE - self.q) / open + by_r * (self.below.scale(2.0) / (sum * sum))
            - by_exponent * self.exponent / self.s;
        [by_below, by_s, by_exponent]
    }
}

/// Layers above the last, from below, and z at the surface.
fn layers(rate: Complex, earth: &Earth, mut keep: impl FnMut(usize, &Layer)) -> Complex {
    let last = earth.depths.len();
    let mut z = Complex::real(earth.values[last].sqrt());
    for layer in (0..last).rev() {
        let top = if layer == 0 { 0.0 } else { earth.depths[layer - 1] };
        let above = Layer::new(rate, earth.values[layer], earth.depths[layer] - top, z);
        keep(layer, &above);
        z = above.z();
    }
    z
}

impl Forward for Magnetotelluric {
    fn len(&self) -> usize {
        2 * self.rates.len()
    }

    fn predict(&self, earths: &[Earth], predicted: &mut [f64], _: &Workers) -> Result<(), DensityError> {
        let periods = self.rates.len();
        for (earth, predicted) in earths.iter().zip(predicted.chunks_exact_mut(2 * periods.max(1))) {
            for (place, rate) in self.rates.iter().enumerate() {
                let z = layers(*rate, earth, |_, _| {});
                predicted[place] = z.norm_squared().log10();
                predicted[periods + place] = 45.0 + z.angle().to_degrees();
            }
        }
        Ok(())
    }

    fn views(&self) -> Vec<View> {
        let view = |name: &str, first: usize, is_power: bool| View {
            name: name.into(),
            x_label: "period (s)".into(),
            x: self.periods.clone(),
            is_log: true,
            first,
            is_power,
        };
        vec![view("apparent resistivity (Ωm)", 0, true), view("phase (°)", self.periods.len(), false)]
    }

    fn units(&self) -> Option<[&'static str; 2]> {
        Some(["m", "Ωm"])
    }

    fn has_gradient(&self) -> bool {
        true
    }

    fn pull_back(&self, earth: &Earth, by_predicted: &[f64], by_depth: &mut [f64], by_value: &mut [f64]) {
        let periods = self.rates.len();
        let last = earth.depths.len();
        let mut kept = vec![[Complex::ONE; 4]; last];
        for (place, rate) in self.rates.iter().enumerate() {
            let z = layers(*rate, earth, |layer, above| {
                let [by_below, by_s, by_exponent] = above.derivatives();
                kept[layer] = [by_below, by_s, by_exponent, above.s];
            });
            // d log₁₀|z|² = 2/log 10 · Re(dz/z), and the phase is Im log z in degrees.
            let (by_log, by_angle) = (2.0 / LN_10 * by_predicted[place], by_predicted[periods + place].to_degrees());
            let pulled = |derivative: Complex| by_log * derivative.re + by_angle * derivative.im;
            // From the surface downwards: 1/z ∂z/∂z of each layer.
            let mut by_z = Complex::ONE / z;
            for (layer, [by_below, by_s, by_exponent, s]) in kept.iter().enumerate() {
                by_value[layer] += pulled(by_z * *by_s) * 0.5 / s.re;
                let by_thickness = pulled(by_z * *by_exponent * rate.scale(-2.0 / s.re));
                by_depth[layer] += by_thickness;
                if layer > 0 {
                    by_depth[layer - 1] -= by_thickness;
                }
                by_z = by_z * *by_below;
            }
            by_value[last] += pulled(by_z) * 0.5 / earth.values[last].sqrt();
        }
    }
}

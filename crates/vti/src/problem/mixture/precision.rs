//! The prior of scaled precisions: a gamma distribution whose quantiles are read from a table, for they are asked for with every draw.

use crate::prior::{Distribution, Gamma};

/// Standard scores in the table reach so far to both sides; others are computed.
const REACH: f64 = 8.0;

/// Intervals of the table for each unit of the score.
const PER_UNIT: f64 = 64.0;

/// A gamma distribution of rate 1: with so many intervals the logarithms of quantiles, interpolated with their slopes, are right to
/// about ten digits.
#[derive(Clone, Debug)]
pub(super) struct QuickGamma {
    gamma: Gamma,
    /// log x and d log x/dz at each score.
    table: Vec<(f64, f64)>,
}

impl QuickGamma {
    pub(super) fn new(shape: f64) -> Self {
        let gamma = Gamma(shape, 1.0);
        let count = (2.0 * REACH * PER_UNIT) as usize;
        let at = |place: usize| {
            let z = place as f64 / PER_UNIT - REACH;
            let x = gamma.from_normal(z);
            let log_normal = -0.5 * z * z - 0.5 * std::f64::consts::TAU.ln();
            (x.ln(), (log_normal - gamma.log_density(x) - x.ln()).exp())
        };
        Self { gamma, table: (0..=count).map(at).collect() }
    }
}

impl Distribution for QuickGamma {
    fn log_density(&self, x: f64) -> f64 {
        self.gamma.log_density(x)
    }

    fn bounds(&self) -> (f64, f64) {
        self.gamma.bounds()
    }

    /// By cubic interpolation of log x.
    fn from_normal(&self, z: f64) -> f64 {
        let is_inside = z > -REACH && z < REACH;
        if !is_inside {
            return self.gamma.from_normal(z);
        }
        let at = (z + REACH) * PER_UNIT;
        let place = at as usize;
        let (Some(&(low, low_slope)), Some(&(high, high_slope))) = (self.table.get(place), self.table.get(place + 1))
        else {
            return self.gamma.from_normal(z);
        };
        let t = at - place as f64;
        let (a, b, rise) = (low_slope / PER_UNIT, high_slope / PER_UNIT, high - low);
        let bend = t * (1.0 - t) * ((a - rise) * (1.0 - t) + (rise - b) * t);
        (low + t * rise + bend).exp()
    }

    fn to_normal(&self, x: f64) -> f64 {
        self.gamma.to_normal(x)
    }

    fn slope(&self, x: f64) -> f64 {
        self.gamma.slope(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_table_is_computed() {
        let (quick, gamma) = (QuickGamma::new(2.0), Gamma(2.0, 1.0));
        for z in [-8.0, 8.0, -12.0, 30.0, 1e300, f64::NEG_INFINITY] {
            assert_eq!(quick.from_normal(z), gamma.from_normal(z), "{z}");
        }
        assert!(quick.from_normal(f64::NAN).is_nan());
    }

    #[test]
    fn quantiles_of_the_table_are_quantiles() {
        for shape in [2.0, 2.5, 0.7] {
            let (quick, gamma) = (QuickGamma::new(shape), Gamma(shape, 1.0));
            for i in -1000..1000 {
                let z = f64::from(i) * 0.00913;
                let (found, exact) = (quick.from_normal(z), gamma.from_normal(z));
                assert!((found / exact - 1.0).abs() < 1e-8, "{shape}: {found} instead of {exact} at {z}");
            }
        }
    }
}

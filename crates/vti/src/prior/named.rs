//! Distributions whose quantiles are elementary functions of normal ones.

use std::f64::consts::{FRAC_1_PI, PI};

use super::{Distribution, between, inside};
use crate::stats::{Tails, normal_cdf, normal_log_cdf, normal_log_density};

/// The whole real line.
const LINE: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

/// Positive numbers.
pub(super) const POSITIVE: (f64, f64) = (0.0, f64::INFINITY);

/// Normal: mean and standard deviation.
///
/// log p(x) = −½ ((x − mean)/sd)² − log sd − ½ log 2π, and x = mean + sd · z.
///
/// ```
/// use vti::prior::{Distribution, Normal};
/// assert_eq!(Normal(5.0, 2.0).from_normal(1.5), 8.0);
/// assert_eq!(Normal(5.0, 2.0).start(), 5.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normal(pub f64, pub f64);

impl Distribution for Normal {
    fn log_density(&self, x: f64) -> f64 {
        normal_log_density((x - self.0) / self.1) - self.1.ln()
    }

    fn bounds(&self) -> (f64, f64) {
        LINE
    }

    fn from_normal(&self, z: f64) -> f64 {
        self.0 + self.1 * z
    }

    fn to_normal(&self, x: f64) -> f64 {
        (x - self.0) / self.1
    }

    fn slope(&self, x: f64) -> f64 {
        (self.0 - x) / (self.1 * self.1)
    }
}

/// Log-normal: mean and standard deviation of log x, so that x = exp(mean + sd · z).
///
/// ```
/// use vti::prior::{Distribution, LogNormal};
/// assert_eq!(LogNormal(0.0, 3.0).start(), 1.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogNormal(pub f64, pub f64);

impl Distribution for LogNormal {
    fn log_density(&self, x: f64) -> f64 {
        // Its limit at 0 is 0, faster than any power.
        if x > 0.0 && x.is_finite() {
            normal_log_density((x.ln() - self.0) / self.1) - self.1.ln() - x.ln()
        } else {
            outside(x)
        }
    }

    fn bounds(&self) -> (f64, f64) {
        POSITIVE
    }

    fn from_normal(&self, z: f64) -> f64 {
        inside(POSITIVE, z, (self.0 + self.1 * z).exp())
    }

    fn to_normal(&self, x: f64) -> f64 {
        between(POSITIVE, x, |x| (x.ln() - self.0) / self.1)
    }

    fn slope(&self, x: f64) -> f64 {
        if x > 0.0 { -(1.0 + (x.ln() - self.0) / (self.1 * self.1)) / x } else { f64::NAN }
    }
}

/// Uniform between two ends, so that x = low + (high − low) Φ(z).
///
/// ```
/// use vti::prior::{Distribution, Uniform};
/// let prior = Uniform(0.0, 10.0);
/// assert_eq!(prior.start(), 5.0);
/// assert_eq!(prior.log_density(10.0), -(10f64.ln()));
/// assert!(prior.to_normal(11.0).is_nan());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uniform(pub f64, pub f64);

impl Distribution for Uniform {
    fn log_density(&self, x: f64) -> f64 {
        if x >= self.0 && x <= self.1 { -(self.1 - self.0).ln() } else { outside(x) }
    }

    fn bounds(&self) -> (f64, f64) {
        (self.0, self.1)
    }

    fn from_normal(&self, z: f64) -> f64 {
        // From the nearer end, so that little is lost close to it.
        let part = (self.1 - self.0) * normal_cdf(-z.abs());
        inside(self.bounds(), z, if z > 0.0 { self.1 - part } else { self.0 + part })
    }

    fn to_normal(&self, x: f64) -> f64 {
        let width = self.1 - self.0;
        between(self.bounds(), x, |x| Tails::of_shares((x - self.0) / width, (self.1 - x) / width).to_normal())
    }

    fn slope(&self, x: f64) -> f64 {
        if x >= self.0 && x <= self.1 { 0.0 } else { f64::NAN }
    }
}

/// Uniform in log x between two positive ends, with a density in proportion to 1/x.
///
/// ```
/// use vti::prior::{Distribution, LogUniform};
/// assert!((LogUniform(0.1, 1000.0).start() - 10.0).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogUniform(pub f64, pub f64);

impl LogUniform {
    /// log high − log low.
    fn width(&self) -> f64 {
        (self.1 / self.0).ln()
    }
}

impl Distribution for LogUniform {
    fn log_density(&self, x: f64) -> f64 {
        if x >= self.0 && x <= self.1 { -self.width().ln() - x.ln() } else { outside(x) }
    }

    fn bounds(&self) -> (f64, f64) {
        (self.0, self.1)
    }

    fn from_normal(&self, z: f64) -> f64 {
        // Differences from the nearer end, in which an end is multiplied by e^±part.
        let part = self.width() * normal_cdf(-z.abs());
        let x = if z > 0.0 { self.1 + self.1 * (-part).exp_m1() } else { self.0 + self.0 * part.exp_m1() };
        inside(self.bounds(), z, x)
    }

    fn to_normal(&self, x: f64) -> f64 {
        let (low, high) = self.bounds();
        between((low, high), x, |x| {
            let (below, above) = (((x - low) / low).ln_1p(), ((high - x) / x).ln_1p());
            Tails::of_shares(below / self.width(), above / self.width()).to_normal()
        })
    }

    fn slope(&self, x: f64) -> f64 {
        if x >= self.0 && x <= self.1 { -1.0 / x } else { f64::NAN }
    }
}

/// Exponential of a rate, so that x = −log Φ(−z)/rate; its mean is 1/rate.
///
/// ```
/// use vti::prior::{Distribution, Exponential};
/// assert!((Exponential(2.0).start() - 2f64.ln() / 2.0).abs() < 1e-15);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential(pub f64);

impl Distribution for Exponential {
    fn log_density(&self, x: f64) -> f64 {
        if x >= 0.0 { self.0.ln() - self.0 * x } else { outside(x) }
    }

    fn bounds(&self) -> (f64, f64) {
        POSITIVE
    }

    fn from_normal(&self, z: f64) -> f64 {
        inside(POSITIVE, z, -normal_log_cdf(-z) / self.0)
    }

    fn to_normal(&self, x: f64) -> f64 {
        between(POSITIVE, x, |x| Tails::of_smaller(-self.0 * x, false).to_normal())
    }

    fn slope(&self, x: f64) -> f64 {
        if x >= 0.0 { -self.0 } else { f64::NAN }
    }
}

/// Cauchy: median and half the width at half the height.
///
/// p(x) = 1/(π scale (1 + ((x − median)/scale)²)), and x = median + scale · tan(π (Φ(z) − ½)).
///
/// ```
/// use vti::prior::{Cauchy, Distribution};
/// assert!((Cauchy(0.0, 1.0).to_normal(1.0) - 0.6744897501960817).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cauchy(pub f64, pub f64);

impl Distribution for Cauchy {
    fn log_density(&self, x: f64) -> f64 {
        let t = (x - self.0).abs() / self.1;
        // Squares of large numbers would overflow.
        let log = if t > 1e100 { 2.0 * t.ln() } else { (t * t).ln_1p() };
        -(PI * self.1).ln() - log
    }

    fn bounds(&self) -> (f64, f64) {
        LINE
    }

    fn from_normal(&self, z: f64) -> f64 {
        let part = self.1 / (PI * normal_cdf(-z.abs())).tan();
        inside(LINE, z, self.0 + part.copysign(z))
    }

    fn to_normal(&self, x: f64) -> f64 {
        let tail = FRAC_1_PI * self.1.atan2((x - self.0).abs());
        Tails::of_shares(tail, 1.0 - tail).to_normal().copysign(x - self.0)
    }

    fn slope(&self, x: f64) -> f64 {
        let t = (x - self.0) / self.1;
        if t.abs() > 1e100 { -2.0 / (t * self.1) } else { -2.0 * t / (self.1 * (1.0 + t * t)) }
    }
}

/// The log density outside the bounds, at a number or at none.
pub(super) fn outside(x: f64) -> f64 {
    if x.is_nan() { x } else { f64::NEG_INFINITY }
}

//! Priors as objects: named distributions and one's own.
//!
//! Every prior gives the bijection x = F⁻¹(Φ(z)) from a standard normal number z, F being its distribution function. In the
//! coordinate z the prior is exactly N(0, 1): annealing starts there, a flow starts there, and draws are made of normal ones.
//! The density of x becomes one of z by adding log dx/dz = log φ(z) − log p(x), so that a posterior density in z is the
//! likelihood times φ(z), whatever the prior.
//!
//! | what | type |
//! |---|---|
//! | a number | [`Prior`]: [`Normal`], [`LogNormal`], [`HalfNormal`], [`Uniform`], [`LogUniform`], [`Exponential`], [`Gamma`], [`InverseGamma`], [`Beta`], [`Cauchy`], [`StudentT`], or any [`Distribution`] |
//! | a number with a density of one's own | [`Tabulated`] |
//! | parts of a whole, or ordered positions by their spacings | [`Dirichlet`] |
//! | a count | [`CountPrior`]: [`Poisson`], [`Geometric`], uniform, or weights |

mod counts;
mod dirichlet;
mod error;
mod gamma;
mod named;
mod tabulated;
mod text;
mod univariate;

pub use counts::{CountPrior, Geometric, Poisson};
pub use dirichlet::Dirichlet;
pub use error::PriorError;
pub use gamma::{Beta, Gamma, HalfNormal, InverseGamma, StudentT};
pub use named::{Cauchy, Exponential, LogNormal, LogUniform, Normal, Uniform};
pub use tabulated::Tabulated;
pub use univariate::Prior;

use crate::random::Stream;

#[cfg(test)]
mod tests;

/// A univariate distribution.
///
/// One's own needs four methods; where only a density is known, [`Tabulated`] finds the rest.
///
/// ```
/// use vti::prior::{Distribution, LogNormal};
/// let prior = LogNormal(1.0, 0.5);
/// let x = prior.from_normal(-1.3);
/// assert!((x - (1.0f64 - 0.5 * 1.3).exp()).abs() < 1e-12);
/// assert!((prior.to_normal(x) + 1.3).abs() < 1e-12);
/// assert_eq!(prior.bounds(), (0.0, f64::INFINITY));
/// assert_eq!(prior.log_density(-2.0), f64::NEG_INFINITY);
/// ```
// `from_normal` is the way from z to x, beside `to_normal`; it makes no object.
#[allow(clippy::wrong_self_convention)]
pub trait Distribution: std::fmt::Debug + Send + Sync {
    /// log p(x), normalised; −∞ outside the bounds. On a finite bound it is the limit from inside.
    fn log_density(&self, x: f64) -> f64;

    /// The ends of the interval in which p(x) > 0; they may be infinite.
    fn bounds(&self) -> (f64, f64);

    /// The x with F(x) = Φ(z), strictly between the bounds for every finite z, as far as numbers go.
    fn from_normal(&self, z: f64) -> f64;

    /// The z with Φ(z) = F(x): ±∞ on the bounds, not a number outside.
    fn to_normal(&self, x: f64) -> f64;

    /// d/dx log p(x); by central differences unless a distribution knows better. Not a number outside the bounds.
    fn slope(&self, x: f64) -> f64 {
        slope_by_differences(self.bounds(), x, |x| self.log_density(x))
    }

    /// A draw.
    fn draw(&self, stream: &mut Stream) -> f64 {
        self.from_normal(stream.normal())
    }

    /// Where to start: the median.
    fn start(&self) -> f64 {
        self.from_normal(0.0)
    }
}

/// d/dx of a log density by central differences, with a step that stays inside the bounds.
fn slope_by_differences((low, high): (f64, f64), x: f64, log_density: impl Fn(f64) -> f64) -> f64 {
    // Errors of rounding and of the third derivative are about equal for steps of the cube root of the precision.
    let mut step = f64::EPSILON.cbrt() * x.abs().max(1e-8);
    if (high - low).is_finite() {
        step = step.min(f64::EPSILON.cbrt() * (high - low));
    }
    // Close to a bound the density may change with the distance from it.
    let step = step.min(1e-3 * (x - low)).min(1e-3 * (high - x));
    if step > 0.0 {
        let (left, right) = (x - step, x + step);
        (log_density(right) - log_density(left)) / (right - left)
    } else {
        f64::NAN
    }
}

/// x for a finite z, kept strictly between the bounds, where rounding may have put it on one of them; the bounds for ±∞.
fn inside((low, high): (f64, f64), z: f64, x: f64) -> f64 {
    if z.is_infinite() {
        return if z > 0.0 { high } else { low };
    }
    // Not the smallest number of all: its inverse is infinite.
    let lowest = if low == 0.0 { f64::MIN_POSITIVE } else { low.next_up() };
    let highest = if high == 0.0 { -f64::MIN_POSITIVE } else { high.next_down() };
    if x.is_nan() { x } else { x.max(lowest).min(highest) }
}

/// z at x: what `within` finds strictly between the bounds, ±∞ on them, not a number outside.
fn between((low, high): (f64, f64), x: f64, within: impl Fn(f64) -> f64) -> f64 {
    if x > low && x < high {
        within(x)
    } else if x == low {
        f64::NEG_INFINITY
    } else if x == high {
        f64::INFINITY
    } else {
        f64::NAN
    }
}

//! Distributions whose quantiles are those of gamma and beta numbers.

use std::f64::consts::LN_2;

use super::named::{POSITIVE, outside};
use super::{Distribution, between, inside};
use crate::stats::{
    Tails, beta_tails, beta_tails_at_logit, gamma_tails, gamma_tails_at_log, ln_beta, ln_gamma, log_gamma_quantile,
    log_logistic, logit_beta_quantile, normal_log_cdf, normal_log_density, normal_quantile_of_log,
};

/// Gamma: shape and rate; its mean is shape/rate.
///
/// log p(x) = shape · log rate − log Γ(shape) + (shape − 1) log x − rate · x.
///
/// ```
/// use vti::prior::{Distribution, Gamma};
/// // Of shape 1 it is exponential.
/// assert!((Gamma(1.0, 2.0).start() - 2f64.ln() / 2.0).abs() < 1e-14);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gamma(pub f64, pub f64);

impl Distribution for Gamma {
    fn log_density(&self, x: f64) -> f64 {
        if x < 0.0 || x.is_nan() {
            return outside(x);
        }
        self.0 * self.1.ln() - ln_gamma(self.0) + power(self.0 - 1.0, x) - self.1 * x
    }

    fn bounds(&self) -> (f64, f64) {
        POSITIVE
    }

    fn from_normal(&self, z: f64) -> f64 {
        inside(POSITIVE, z, log_gamma_quantile(self.0, Tails::of_normal(z)).exp() / self.1)
    }

    fn to_normal(&self, x: f64) -> f64 {
        between(POSITIVE, x, |x| gamma_tails(self.0, self.1 * x).to_normal())
    }

    fn slope(&self, x: f64) -> f64 {
        if x >= 0.0 { over(self.0 - 1.0, x) - self.1 } else { f64::NAN }
    }
}

/// Inverse gamma: shape and scale; 1/x is gamma with this shape and rate, and the mean is scale/(shape − 1).
///
/// log p(x) = shape · log scale − log Γ(shape) − (shape + 1) log x − scale/x.
///
/// ```
/// use vti::prior::{Distribution, Gamma, InverseGamma};
/// let x = InverseGamma(3.0, 2.0).from_normal(0.7);
/// assert!((1.0 / x - Gamma(3.0, 2.0).from_normal(-0.7)).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InverseGamma(pub f64, pub f64);

impl Distribution for InverseGamma {
    fn log_density(&self, x: f64) -> f64 {
        // Its limit at 0 is 0.
        if !(x > 0.0 && x.is_finite()) {
            return outside(x);
        }
        self.0 * self.1.ln() - ln_gamma(self.0) - (self.0 + 1.0) * x.ln() - self.1 / x
    }

    fn bounds(&self) -> (f64, f64) {
        POSITIVE
    }

    fn from_normal(&self, z: f64) -> f64 {
        inside(POSITIVE, z, self.1 * (-log_gamma_quantile(self.0, Tails::of_normal(-z))).exp())
    }

    fn to_normal(&self, x: f64) -> f64 {
        between(POSITIVE, x, |x| -gamma_tails(self.0, self.1 / x).to_normal())
    }

    fn slope(&self, x: f64) -> f64 {
        if x > 0.0 { (self.1 / x - (self.0 + 1.0)) / x } else { f64::NAN }
    }
}

/// The absolute value of a normal number with mean 0 and this standard deviation: x²/(2 sd²) is gamma of shape ½.
///
/// ```
/// use vti::prior::{Distribution, HalfNormal};
/// assert!((HalfNormal(2.0).start() / 2.0 - 0.6744897501960817).abs() < 1e-14);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalfNormal(pub f64);

impl Distribution for HalfNormal {
    fn log_density(&self, x: f64) -> f64 {
        if x >= 0.0 { LN_2 + normal_log_density(x / self.0) - self.0.ln() } else { outside(x) }
    }

    fn bounds(&self) -> (f64, f64) {
        POSITIVE
    }

    fn from_normal(&self, z: f64) -> f64 {
        // By half of the upper tail, which is quicker; far below that would lose all digits.
        let t = if z > -1.0 {
            -normal_quantile_of_log(normal_log_cdf(-z) - LN_2)
        } else {
            absolute_quantile(Tails::of_normal(z))
        };
        inside(POSITIVE, z, self.0 * t)
    }

    fn to_normal(&self, x: f64) -> f64 {
        between(POSITIVE, x, |x| absolute_tails(x / self.0).to_normal())
    }

    fn slope(&self, x: f64) -> f64 {
        if x >= 0.0 { -x / (self.0 * self.0) } else { f64::NAN }
    }
}

/// Tails of the absolute value of a standard normal number at t > 0; half its square is gamma of shape ½.
fn absolute_tails(t: f64) -> Tails {
    gamma_tails_at_log(0.5, 0.5 * t * t, 2.0 * t.ln() - LN_2)
}

/// The absolute value of a standard normal number that has these tails.
fn absolute_quantile(tails: Tails) -> f64 {
    (0.5 * (LN_2 + log_gamma_quantile(0.5, tails))).exp()
}

/// Beta on the interval from 0 to 1.
///
/// log p(x) = (a − 1) log x + (b − 1) log(1 − x) − log B(a, b); the mean is a/(a + b).
///
/// ```
/// use vti::prior::{Beta, Distribution};
/// let prior = Beta(2.0, 1.0);
/// assert!((prior.from_normal(0.3).powi(2) - vti::stats::normal_cdf(0.3)).abs() < 1e-14);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beta(pub f64, pub f64);

impl Distribution for Beta {
    fn log_density(&self, x: f64) -> f64 {
        if !(0.0..=1.0).contains(&x) {
            return outside(x);
        }
        power(self.0 - 1.0, x) + power(self.1 - 1.0, 1.0 - x) - ln_beta(self.0, self.1)
    }

    fn bounds(&self) -> (f64, f64) {
        (0.0, 1.0)
    }

    fn from_normal(&self, z: f64) -> f64 {
        let logit = logit_beta_quantile(self.0, self.1, Tails::of_normal(z));
        inside(self.bounds(), z, log_logistic(logit).exp())
    }

    fn to_normal(&self, x: f64) -> f64 {
        between(self.bounds(), x, |x| beta_tails(self.0, self.1, x, 1.0 - x).to_normal())
    }

    fn slope(&self, x: f64) -> f64 {
        if (0.0..=1.0).contains(&x) { over(self.0 - 1.0, x) - over(self.1 - 1.0, 1.0 - x) } else { f64::NAN }
    }
}

/// Student's t: degrees of freedom, location and scale.
///
/// With t = (x − location)/scale the density is in proportion to (1 + t²/df)^(−(df + 1)/2), and t²/(df + t²) is beta with
/// a = ½ and b = df/2.
///
/// ```
/// use vti::prior::{Cauchy, Distribution, StudentT};
/// let (one, other) = (StudentT(1.0, 3.0, 2.0), Cauchy(3.0, 2.0));
/// assert!((one.from_normal(-1.7) / other.from_normal(-1.7) - 1.0).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StudentT(pub f64, pub f64, pub f64);

impl Distribution for StudentT {
    fn log_density(&self, x: f64) -> f64 {
        let Self(df, location, scale) = *self;
        let t = (x - location).abs() / scale;
        // Squares of large numbers would overflow.
        let log = if t > 1e100 { 2.0 * t.ln() - df.ln() } else { (t * t / df).ln_1p() };
        -ln_beta(0.5, 0.5 * df) - 0.5 * df.ln() - scale.ln() - 0.5 * (df + 1.0) * log
    }

    fn bounds(&self) -> (f64, f64) {
        (f64::NEG_INFINITY, f64::INFINITY)
    }

    fn from_normal(&self, z: f64) -> f64 {
        let Self(df, location, scale) = *self;
        if z == 0.0 || z.is_nan() {
            return location + z;
        }
        let logit = logit_beta_quantile(0.5, 0.5 * df, absolute_tails(z.abs()));
        let t = (0.5 * (logit + df.ln())).exp();
        inside(self.bounds(), z, location + scale * t.copysign(z))
    }

    fn to_normal(&self, x: f64) -> f64 {
        let Self(df, location, scale) = *self;
        let t = (x - location) / scale;
        if t == 0.0 || !t.is_finite() {
            return t;
        }
        let tails = beta_tails_at_logit(0.5, 0.5 * df, 2.0 * t.abs().ln() - df.ln());
        absolute_quantile(tails).copysign(t)
    }

    fn slope(&self, x: f64) -> f64 {
        let Self(df, location, scale) = *self;
        let t = (x - location) / scale;
        if t.abs() > 1e100 { -(df + 1.0) / (t * scale) } else { -(df + 1.0) * t / (scale * (df + t * t)) }
    }
}

/// log x^exponent, which is 0 for an exponent of 0 even where x is 0.
fn power(exponent: f64, x: f64) -> f64 {
    if exponent == 0.0 { 0.0 } else { exponent * x.ln() }
}

/// exponent/x, which is 0 for an exponent of 0 even where x is 0.
fn over(exponent: f64, x: f64) -> f64 {
    if exponent == 0.0 { 0.0 } else { exponent / x }
}

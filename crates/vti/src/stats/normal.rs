//! The normal distribution and its far tails.

use std::f64::consts::{LN_2, TAU};

/// Beyond that, Φ is computed by a continued fraction.
const FAR: f64 = 2.5;

/// Φ(x), the distribution function of a standard normal number; 14 digits of Φ(x) below 0 and of 1 − Φ(x) above.
///
/// ```
/// use vti::stats::normal_cdf;
/// assert!((normal_cdf(1.959963984540054) - 0.975).abs() < 1e-14);
/// ```
pub fn normal_cdf(x: f64) -> f64 {
    let tail = if x.abs() < FAR {
        near_tail(x.abs())
    } else {
        // Written so that a number that is not one fails both comparisons and stays what it is.
        (-0.5 * x * x).exp() / (TAU.sqrt() * inverse_mills(x.abs()))
    };
    if x > 0.0 { 1.0 - tail } else { tail }
}

/// Φ(−z) for 0 ≤ z < [`FAR`]: the rational approximation of Hart (1968) as West gives it ("Better approximations to cumulative
/// normal functions", Wilmott, 2005).
fn near_tail(z: f64) -> f64 {
    const ABOVE: [f64; 7] = [
        3.526_249_659_989_11e-2,
        0.700_383_064_443_688,
        6.373_962_203_531_65,
        33.912_866_078_383,
        112.079_291_497_871,
        221.213_596_169_931,
        220.206_867_912_376,
    ];
    const BELOW: [f64; 8] = [
        8.838_834_764_831_84e-2,
        1.755_667_163_182_64,
        16.064_177_579_207,
        86.780_732_202_946_1,
        296.564_248_779_674,
        637.333_633_378_831,
        793.826_512_519_948,
        440.413_735_824_752,
    ];
    let polynomial = |coefficients: &[f64]| coefficients.iter().fold(0.0, |sum, c| sum * z + c);
    (-0.5 * z * z).exp() * polynomial(&ABOVE) / polynomial(&BELOW)
}

/// φ(z)/Φ(−z) for z ≥ [`FAR`], the inverse of Mills' ratio: Laplace's continued fraction z + 1/(z + 2/(z + 3/(…))).
fn inverse_mills(z: f64) -> f64 {
    // So many terms that the rest is lost in rounding; found by measurement.
    let terms = 12 + (300.0 / (z * z)) as usize;
    (1..=terms).rev().fold(z, |fraction, term| z + term as f64 / fraction)
}

/// log Φ(x), also where Φ(x) itself is too small for a number.
///
/// ```
/// use vti::stats::normal_log_cdf;
/// assert!((normal_log_cdf(0.0) - 0.5f64.ln()).abs() < 1e-15);
/// assert!((normal_log_cdf(-50.0) / -1254.8313611394 - 1.0).abs() < 1e-12);
/// ```
pub fn normal_log_cdf(x: f64) -> f64 {
    if x > 0.0 {
        (-normal_cdf(-x)).ln_1p()
    } else if x > -FAR {
        near_tail(-x).ln()
    } else if x == f64::NEG_INFINITY {
        x
    } else {
        -0.5 * x * x - inverse_mills(-x).ln() - 0.5 * TAU.ln()
    }
}

/// log φ(x), φ being the standard normal density.
pub(crate) fn normal_log_density(x: f64) -> f64 {
    -0.5 * (x * x + TAU.ln())
}

/// Φ⁻¹(p); ±∞ for 0 and 1.
///
/// ```
/// use vti::stats::normal_quantile;
/// assert!((normal_quantile(0.975) - 1.959963984540054).abs() < 1e-12);
/// ```
pub fn normal_quantile(p: f64) -> f64 {
    let p = p.clamp(0.0, 1.0);
    if p > 0.5 { -normal_quantile_of_log((-p).ln_1p()) } else { normal_quantile_of_log(p.ln()) }
}

/// The x with log Φ(x) = `log_p`, also where the probability itself is too small for a number; ±∞ for −∞ and for 0 or more.
///
/// ```
/// use vti::stats::{normal_log_cdf, normal_quantile_of_log};
/// assert!((normal_quantile_of_log(normal_log_cdf(-50.0)) + 50.0).abs() < 1e-12);
/// ```
pub fn normal_quantile_of_log(log_p: f64) -> f64 {
    if log_p >= 0.0 || log_p == f64::NEG_INFINITY || log_p.is_nan() {
        return if log_p >= 0.0 { f64::INFINITY } else { log_p };
    }
    if log_p > -LN_2 {
        return -normal_quantile_of_log((-log_p.exp_m1()).ln());
    }
    // The start of Hastings (1955; Abramowitz and Stegun 26.2.23) is right to 4.5e-4, and each step of Halley's method for
    // log Φ triples the digits: with h = φ/Φ its derivatives are h and −h (x + h).
    let t = (-2.0 * log_p).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let mut x = above / below - t;
    for _ in 0..MAX_STEPS {
        let log_cdf = normal_log_cdf(x);
        let hazard = (normal_log_density(x) - log_cdf).exp();
        let newton = (log_p - log_cdf) / hazard;
        let step = newton / (1.0 + 0.5 * newton * (x + hazard));
        x += step;
        if step.abs() <= 1e-6 * (1.0 + x.abs()) {
            break;
        }
    }
    x
}

/// Of a start that is right to three digits not more than three steps are needed.
const MAX_STEPS: usize = 10;

/// A probability by both of its sides, as logarithms: the smaller side loses no digits, however small it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tails {
    /// log P(X ≤ x).
    pub(crate) lower: f64,
    /// log P(X > x).
    pub(crate) upper: f64,
}

impl Tails {
    /// Of a standard normal number at z.
    pub(crate) fn of_normal(z: f64) -> Self {
        Self { lower: normal_log_cdf(z), upper: normal_log_cdf(-z) }
    }

    /// Of the smaller side's logarithm, which is the lower or the upper one.
    pub(crate) fn of_smaller(log: f64, lower: bool) -> Self {
        let other = if log > -LN_2 { (-log.exp_m1()).ln() } else { (-log.exp()).ln_1p() };
        if lower { Self { lower: log, upper: other } } else { Self { lower: other, upper: log } }
    }

    /// Of a probability, of which at least one of p and 1 − p is exact.
    pub(crate) fn of_shares(p: f64, rest: f64) -> Self {
        if p < rest { Self::of_smaller(p.ln(), true) } else { Self::of_smaller(rest.ln(), false) }
    }

    /// The z at which a standard normal number has these tails.
    pub(crate) fn to_normal(self) -> f64 {
        if self.lower < self.upper { normal_quantile_of_log(self.lower) } else { -normal_quantile_of_log(self.upper) }
    }

    /// With the sides exchanged.
    pub(crate) fn reversed(self) -> Self {
        Self { lower: self.upper, upper: self.lower }
    }
}

/// The probability that a standard normal number is as far from 0 as `z`, or farther.
pub fn two_sided(z: f64) -> f64 {
    (2.0 * normal_cdf(-z.abs())).min(1.0)
}

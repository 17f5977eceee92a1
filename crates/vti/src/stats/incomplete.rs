//! Gamma and beta functions, complete and incomplete, in logarithms, and the inverses of the incomplete ones.
//!
//! The logarithm of a gamma number and the logit of a beta number have log-concave densities, so that their distribution
//! functions F and 1 − F are log-concave, too. Newton's method for log F, or for log(1 − F) where that is smaller, therefore
//! comes to the quantile from any start: after the first step it stays on one side, nearer each time.

use std::f64::consts::TAU;

use super::normal::Tails;

/// Terms after which series and continued fractions are taken to be done.
const MAX_TERMS: usize = 100_000;

/// Where they are done.
const PRECISION: f64 = 1e-16;

/// Steps after which Newton's method is taken to be done.
const MAX_STEPS: usize = 200;

/// `log Γ(x)` for x > 0: Stirling's series, after moving x beyond 10.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut product) = (x, 1.0);
    while x < 10.0 {
        product *= x;
        x += 1.0;
    }
    (x - 0.5) * x.ln() - x + 0.5 * TAU.ln() + stirling(x) - f64::ln(product)
}

/// What Stirling's formula lacks of `log Γ(x)`, for x of at least 10.
fn stirling(x: f64) -> f64 {
    const SERIES: [f64; 6] = [-691.0 / 360_360.0, 1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0];
    let square = 1.0 / (x * x);
    SERIES.iter().fold(0.0, |sum, term| sum * square + term) / x
}

/// ψ(x), the derivative of `log Γ(x)`, for x > 0: its asymptotic series, after moving x beyond 10.
pub(crate) fn digamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift -= 1.0 / x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = square
        * (1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0 - square * (1.0 / 240.0 - square / 132.0))));
    shift + x.ln() - 0.5 / x - series
}

/// `log B(a, b)`.
pub(crate) fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// Tails of a gamma number of shape `a` and rate 1 at x: P(a, x) and Q(a, x), the regularised incomplete gamma functions; a
/// series below a + 1, a continued fraction above.
pub(crate) fn gamma_tails(a: f64, x: f64) -> Tails {
    if x <= 0.0 || x == f64::INFINITY || x.is_nan() {
        return ends(x, x <= 0.0);
    }
    gamma_tails_at_log(a, x, x.ln())
}

/// The same where the logarithm of x is known, which x itself may be too small for.
pub(crate) fn gamma_tails_at_log(a: f64, x: f64, log_x: f64) -> Tails {
    let log_scale = a * log_x - x - ln_gamma(a);
    if x < a + 1.0 {
        let (mut term, mut sum) = (1.0 / a, 1.0 / a);
        for n in 1..MAX_TERMS {
            term *= x / (a + n as f64);
            sum += term;
            if term < PRECISION * sum {
                break;
            }
        }
        return Tails::of_smaller((log_scale + sum.ln()).min(0.0), true);
    }
    let fraction = continued_fraction(x + 1.0 - a, |n| {
        let n = n as f64;
        (-n * (n - a), x + 1.0 - a + 2.0 * n)
    });
    Tails::of_smaller((log_scale - fraction.ln()).min(0.0), false)
}

/// Tails at the lower or the upper end, or where there is no number.
fn ends(x: f64, low: bool) -> Tails {
    if x.is_nan() {
        return Tails { lower: x, upper: x };
    }
    let tails = Tails { lower: f64::NEG_INFINITY, upper: 0.0 };
    if low { tails } else { tails.reversed() }
}

/// The logarithm of the gamma number of shape `a` and rate 1 that has these tails.
pub(crate) fn log_gamma_quantile(a: f64, tails: Tails) -> f64 {
    let density = |u: f64| a * u - u.exp() - ln_gamma(a);
    // The cube root is nearly normal (Wilson and Hilferty 1931); far below only the first term of the series matters; and
    // for shapes below 1 the upper tail is smaller than the exponential one.
    let root = 1.0 - 1.0 / (9.0 * a) + tails.to_normal() / (3.0 * a.sqrt());
    let start = if a > 0.5 && root > 0.3 {
        a.ln() + 3.0 * root.ln()
    } else if tails.lower < tails.upper {
        (tails.lower + ln_gamma(a + 1.0)) / a
    } else {
        (-tails.upper).ln()
    };
    newton(start, tails, density, |u| gamma_tails_at_log(a, u.exp(), u))
}

/// Tails of a beta number at x, with y = 1 − x: `I_x(a, b)`, the regularised incomplete beta function, and the rest.
pub(crate) fn beta_tails(a: f64, b: f64, x: f64, y: f64) -> Tails {
    if x <= 0.0 || y <= 0.0 || x.is_nan() || y.is_nan() {
        return ends(x + y, x <= 0.0);
    }
    beta_tails_at_log(a, b, (x, x.ln()), (y, y.ln()))
}

/// The same where the logarithms of x and y are known, which they themselves may be too small for.
fn beta_tails_at_log(a: f64, b: f64, (x, log_x): (f64, f64), (y, log_y): (f64, f64)) -> Tails {
    if x > (a + 1.0) / (a + b + 2.0) {
        return beta_tails_at_log(b, a, (y, log_y), (x, log_x)).reversed();
    }
    let fraction = continued_fraction(1.0, |n| {
        let m = (n / 2) as f64;
        let (top, at) = match n % 2 {
            0 => (m * (b - m), a + 2.0 * m - 1.0),
            _ => (-(a + m) * (a + b + m), a + 2.0 * m),
        };
        (top * x / (at * (at + 1.0)), 1.0)
    });
    let log = a * log_x + b * log_y - ln_beta(a, b) - (a * fraction).ln();
    Tails::of_smaller(log.min(0.0), true)
}

/// The same at a logit, log(x/(1 − x)).
pub(crate) fn beta_tails_at_logit(a: f64, b: f64, logit: f64) -> Tails {
    let (x, y) = (log_logistic(logit), log_logistic(-logit));
    beta_tails_at_log(a, b, (x.exp(), x), (y.exp(), y))
}

/// The logit log(x/(1 − x)) of the beta number x that has these tails.
pub(crate) fn logit_beta_quantile(a: f64, b: f64, tails: Tails) -> f64 {
    let log_beta = ln_beta(a, b);
    let density = |u: f64| a * log_logistic(u) + b * log_logistic(-u) - log_beta;
    // Where only the first term matters, at either end, or between them the mean.
    let low = (tails.lower + a.ln() + log_beta) / a;
    let high = -(tails.upper + b.ln() + log_beta) / b;
    let mean = (a / b).ln();
    let start = if tails.lower < tails.upper { low.min(mean) } else { high.max(mean) };
    newton(start, tails, density, |u| beta_tails_at_logit(a, b, u))
}

/// σ(x) = 1/(1 + e⁻ˣ), without overflow and with full relative accuracy on both sides.
pub(crate) fn logistic(x: f64) -> f64 {
    let tail = (-x.abs()).exp();
    if x < 0.0 { tail / (1.0 + tail) } else { 1.0 / (1.0 + tail) }
}

/// ln σ(x) = −ln(1 + e⁻ˣ).
pub(crate) fn log_logistic(x: f64) -> f64 {
    x.min(0.0) - (-x.abs()).exp().ln_1p()
}

/// The u at which a number with a log-concave density has the goal's tails, from any start.
fn newton(start: f64, goal: Tails, log_density: impl Fn(f64) -> f64, tails: impl Fn(f64) -> Tails) -> f64 {
    let lower = goal.lower < goal.upper;
    if goal.lower == f64::NEG_INFINITY || goal.upper == f64::NEG_INFINITY || goal.lower.is_nan() {
        return if lower { goal.lower } else { -goal.upper };
    }
    let mut u = start;
    for _ in 0..MAX_STEPS {
        let at = tails(u);
        let step = if lower {
            (goal.lower - at.lower) * (at.lower - log_density(u)).exp()
        } else {
            (at.upper - goal.upper) * (at.upper - log_density(u)).exp()
        };
        u += step;
        if step.abs() <= f64::EPSILON.sqrt() * 1e-1 * (1.0 + u.abs()) {
            break;
        }
    }
    u
}

/// `b₀ + a₁/(b₁ + a₂/(b₂ + …))` by the method of Lentz; `next(n)` are aₙ and bₙ.
fn continued_fraction(first: f64, next: impl Fn(usize) -> (f64, f64)) -> f64 {
    let not_zero = |x: f64| if x.abs() < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { x };
    let mut value = not_zero(first);
    let (mut c, mut d) = (value, 0.0);
    for n in 1..MAX_TERMS {
        let (a, b) = next(n);
        d = 1.0 / not_zero(b + a * d);
        c = not_zero(b + a / c);
        value *= c * d;
        if (c * d - 1.0).abs() < 4.0 * PRECISION {
            break;
        }
    }
    value
}

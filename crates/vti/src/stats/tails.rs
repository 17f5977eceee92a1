//! Distribution functions and tail probabilities of the usual distributions.

use std::f64::consts::{SQRT_2, TAU};

/// Terms after which series and continued fractions are taken to be done.
const MAX_TERMS: usize = 100_000;

/// Where they are done.
const PRECISION: f64 = 1e-15;

/// `log Γ(x)` for x > 0: Stirling's series, after moving x beyond 10.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let (inverse, square) = (1.0 / x, 1.0 / (x * x));
    let series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)));
    shift + (x - 0.5) * x.ln() - x + 0.5 * TAU.ln() + series
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

/// Φ(x), the distribution function of a standard normal number, to about 15 digits: the rational approximations of Hart (1968)
/// as West gives them ("Better approximations to cumulative normal functions", Wilmott, 2005).
///
/// ```
/// use vti::stats::normal_cdf;
/// assert!((normal_cdf(1.959963984540054) - 0.975).abs() < 1e-14);
/// ```
pub fn normal_cdf(x: f64) -> f64 {
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
    let z = x.abs();
    let polynomial = |coefficients: &[f64]| coefficients.iter().fold(0.0, |sum, c| sum * z + c);
    let tail = if z > 37.0 {
        0.0
    } else if z < 5.0 * SQRT_2 {
        (-0.5 * z * z).exp() * polynomial(&ABOVE) / polynomial(&BELOW)
    } else {
        let fraction = z + 1.0 / (z + 2.0 / (z + 3.0 / (z + 4.0 / (z + 0.65))));
        (-0.5 * z * z).exp() / (fraction * TAU.sqrt())
    };
    if x > 0.0 { 1.0 - tail } else { tail }
}

/// Φ⁻¹(p), by halving; ±∞ for 0 and 1.
///
/// ```
/// use vti::stats::normal_quantile;
/// assert!((normal_quantile(0.975) - 1.959963984540054).abs() < 1e-12);
/// ```
pub fn normal_quantile(p: f64) -> f64 {
    if p.is_nan() || p <= 0.0 || p >= 1.0 {
        return if p >= 1.0 {
            f64::INFINITY
        } else if p <= 0.0 {
            f64::NEG_INFINITY
        } else {
            f64::NAN
        };
    }
    let (mut low, mut high) = (-38.0, 38.0);
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if normal_cdf(middle) < p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The probability that a standard normal number is as far from 0 as `z`, or farther.
pub fn two_sided(z: f64) -> f64 {
    (2.0 * normal_cdf(-z.abs())).min(1.0)
}

/// `Q(a, x) = Γ(a, x)/Γ(a)`, the regularised upper incomplete gamma function: a series below a + 1, a continued fraction above.
fn gamma_tail(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let log_scale = a * x.ln() - x - ln_gamma(a);
    if x < a + 1.0 {
        let (mut term, mut sum) = (1.0 / a, 1.0 / a);
        for n in 1..MAX_TERMS {
            term *= x / (a + n as f64);
            sum += term;
            if term < PRECISION * sum {
                break;
            }
        }
        return (1.0 - sum * log_scale.exp()).clamp(0.0, 1.0);
    }
    let fraction = continued_fraction(x + 1.0 - a, |n| {
        let n = n as f64;
        (-n * (n - a), x + 1.0 - a + 2.0 * n)
    });
    (log_scale.exp() / fraction).clamp(0.0, 1.0)
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
        if (c * d - 1.0).abs() < PRECISION {
            break;
        }
    }
    value
}

/// The probability that a χ² number of so many degrees of freedom is `x` or more.
///
/// ```
/// use vti::stats::chi_squared_tail;
/// assert!((chi_squared_tail(2.0 * 3f64.ln(), 2.0) - 1.0 / 3.0).abs() < 1e-12);
/// ```
pub fn chi_squared_tail(x: f64, freedom: f64) -> f64 {
    gamma_tail(0.5 * freedom, 0.5 * x)
}

/// The probability that a Poisson count of this mean is `count` or less; 0 below 0.
///
/// ```
/// use vti::stats::poisson_cdf;
/// assert!((poisson_cdf(1.0, 2.0) - 3.0 * (-2f64).exp()).abs() < 1e-12);
/// ```
pub fn poisson_cdf(count: f64, mean: f64) -> f64 {
    if count < 0.0 { 0.0 } else { gamma_tail(count.floor() + 1.0, mean) }
}

/// The probability that a negative binomial count of this mean and size, its variance being `mean + mean²/size`, is `count` or
/// less; 0 below 0.
///
/// ```
/// use vti::stats::negative_binomial_cdf;
/// // Of size 1 it is geometric.
/// assert!((negative_binomial_cdf(1.0, 3.0, 1.0) - (1.0 - 0.75 * 0.75)).abs() < 1e-12);
/// ```
pub fn negative_binomial_cdf(count: f64, mean: f64, size: f64) -> f64 {
    if count < 0.0 {
        return 0.0;
    }
    let odds = mean / size;
    beta_part(size, count.floor() + 1.0, 1.0 / (1.0 + odds), odds / (1.0 + odds))
}

/// The distribution function of Student's t with so many degrees of freedom.
///
/// ```
/// use vti::stats::student_t_cdf;
/// assert!((student_t_cdf(1.0, 1.0) - 0.75).abs() < 1e-12);
/// ```
pub fn student_t_cdf(x: f64, freedom: f64) -> f64 {
    if x.is_infinite() {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let tail = 0.5 * beta_part(0.5 * freedom, 0.5, freedom / (freedom + x * x), x * x / (freedom + x * x));
    if x > 0.0 { 1.0 - tail } else { tail }
}

/// `I_x(a, b)`, the regularised incomplete beta function, with y = 1 − x.
fn beta_part(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x <= 0.0 || y <= 0.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_part(b, a, y, x);
    }
    let log_scale = a * x.ln() + b * y.ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    let fraction = continued_fraction(1.0, |n| {
        let m = (n / 2) as f64;
        let (top, at) = match n % 2 {
            0 => (m * (b - m), a + 2.0 * m - 1.0),
            _ => (-(a + m) * (a + b + m), a + 2.0 * m),
        };
        (top * x / (at * (at + 1.0)), 1.0)
    });
    (log_scale.exp() / (a * fraction)).clamp(0.0, 1.0)
}

/// The probability that the empirical distribution of `count` uniform numbers is as far as `distance` from the uniform one
/// somewhere, or farther: the limit of Kolmogorov, with Stephens' correction for few numbers (JRSS B 32, 1970).
///
/// ```
/// use vti::stats::kolmogorov_tail;
/// assert!((kolmogorov_tail(0.1340, 100) - 0.05).abs() < 0.002);
/// ```
pub fn kolmogorov_tail(distance: f64, count: usize) -> f64 {
    let root = (count as f64).sqrt();
    let lambda = (root + 0.12 + 0.11 / root) * distance;
    // Below that the series needs many terms, and the probability is 1 to ten digits.
    if lambda < 0.2 {
        return 1.0;
    }
    let term = |k: i32| (-2.0 * f64::from(k * k) * lambda * lambda).exp() * if k % 2 == 1 { 2.0 } else { -2.0 };
    (1..=50).map(term).sum::<f64>().clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The integral of a density from `low` to `high`, by Simpson's rule.
    fn integral(low: f64, high: f64, density: impl Fn(f64) -> f64) -> f64 {
        let count = 20_000;
        let step = (high - low) / f64::from(count);
        let weight = |i: i32| {
            if i == 0 || i == count {
                1.0
            } else if i % 2 == 1 {
                4.0
            } else {
                2.0
            }
        };
        (0..=count).map(|i| weight(i) * density(low + step * f64::from(i))).sum::<f64>() * step / 3.0
    }

    #[test]
    fn distribution_functions_are_integrals_of_their_densities() {
        for x in [-8.0f64, -6.9, -2.5, -0.3, 0.0, 0.7, 3.0, 7.2] {
            let normal = integral(-14.0, x, |t| (-0.5 * t * t).exp() / TAU.sqrt());
            assert!((normal_cdf(x) - normal).abs() < 1e-13 * (1.0 + normal), "{x}: {} {normal}", normal_cdf(x));
            for df in [1.0f64, 3.0, 4.5, 30.0] {
                let constant = ln_gamma(0.5 * (df + 1.0)) - ln_gamma(0.5 * df) - 0.5 * (df * std::f64::consts::PI).ln();
                let density = |t: f64| (constant - 0.5 * (df + 1.0) * (t * t / df).ln_1p()).exp();
                let student = 0.5 + integral(0.0, x, density);
                assert!((student_t_cdf(x, df) - student).abs() < 1e-10, "{x} {df}");
            }
        }
        for (x, df) in [(0.5f64, 2.0f64), (3.0, 7.0), (40.0, 20.0), (90.0, 100.0), (900.0, 1000.0)] {
            let density =
                |t: f64| ((0.5 * df - 1.0) * t.ln() - 0.5 * t - 0.5 * df * 2f64.ln() - ln_gamma(0.5 * df)).exp();
            let tail = integral(x, x + 60.0 + 12.0 * (2.0 * df).sqrt(), density);
            assert!((chi_squared_tail(x, df) - tail).abs() < 1e-8, "{x} {df}");
        }
    }

    #[test]
    fn counts_are_summed() {
        for mean in [0.0f64, 0.3, 4.0, 77.0] {
            let mut sum = 0.0;
            for count in 0..120 {
                let count = f64::from(count);
                sum += if mean == 0.0 {
                    f64::from(u8::from(count == 0.0))
                } else {
                    (count * mean.ln() - mean - ln_gamma(count + 1.0)).exp()
                };
                assert!((poisson_cdf(count, mean) - sum).abs() < 1e-12, "{count} {mean}");
            }
        }
        assert_eq!(poisson_cdf(-1.0, 3.0), 0.0);
    }

    #[test]
    fn mixed_counts_are_summed() {
        for (mean, size) in [(0.3f64, 0.4f64), (4.0, 2.5), (30.0, 60.0)] {
            let mut sum = 0.0;
            for count in 0..200 {
                let count = f64::from(count);
                let log = ln_gamma(count + size) - ln_gamma(size) - ln_gamma(count + 1.0)
                    + size * (size / (size + mean)).ln()
                    + count * (mean / (size + mean)).ln();
                sum += log.exp();
                assert!((negative_binomial_cdf(count, mean, size) - sum).abs() < 1e-11, "{count} {mean} {size}");
            }
        }
        assert_eq!(negative_binomial_cdf(-1.0, 3.0, 1.0), 0.0);
        for x in [0.2, 1.0, 7.3, 400.0] {
            let h = 1e-5 * x;
            let numeric = (ln_gamma(x + h) - ln_gamma(x - h)) / (2.0 * h);
            assert!((digamma(x) - numeric).abs() < 1e-6 * (1.0 + numeric.abs()), "{x}");
        }
        // Euler's constant.
        assert!((digamma(1.0) + 0.577_215_664_901_532_9).abs() < 1e-12);
    }

    #[test]
    fn quantiles_are_the_reverse() {
        for p in [1e-12, 1e-4, 0.2, 0.5, 0.9, 0.999_999] {
            assert!((normal_cdf(normal_quantile(p)) / p - 1.0).abs() < 1e-9, "{p}");
        }
        assert_eq!((normal_quantile(0.0), normal_quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert!(normal_quantile(f64::NAN).is_nan());
        // Of 1,000 numbers the distance exceeds 1.6276/√n with probability 0.01.
        assert!((kolmogorov_tail(1.6276 / 1000f64.sqrt(), 1000) - 0.01).abs() < 1e-3);
    }
}

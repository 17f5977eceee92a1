//! Distribution functions and tail probabilities of the usual distributions.

use super::incomplete::{beta_tails, gamma_tails};

/// The probability that a χ² number of so many degrees of freedom is `x` or more.
///
/// ```
/// use vti::stats::chi_squared_tail;
/// assert!((chi_squared_tail(2.0 * 3f64.ln(), 2.0) - 1.0 / 3.0).abs() < 1e-12);
/// ```
pub fn chi_squared_tail(x: f64, freedom: f64) -> f64 {
    gamma_tails(0.5 * freedom, 0.5 * x).upper.exp()
}

/// The probability that a Poisson count of this mean is `count` or less; 0 below 0.
///
/// ```
/// use vti::stats::poisson_cdf;
/// assert!((poisson_cdf(1.0, 2.0) - 3.0 * (-2f64).exp()).abs() < 1e-12);
/// ```
pub fn poisson_cdf(count: f64, mean: f64) -> f64 {
    if count < 0.0 { 0.0 } else { gamma_tails(count.floor() + 1.0, mean).upper.exp() }
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
    beta_tails(size, count.floor() + 1.0, 1.0 / (1.0 + odds), odds / (1.0 + odds)).lower.exp()
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
    let square = freedom + x * x;
    let tail = 0.5 * beta_tails(0.5 * freedom, 0.5, freedom / square, x * x / square).lower.exp();
    if x > 0.0 { 1.0 - tail } else { tail }
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
    use std::f64::consts::TAU;

    use super::super::{digamma, ln_gamma, normal_cdf, normal_quantile};
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

//! The likelihood of sinusoids over a polynomial background with normal noise, all amplitudes and the background integrated out.
//!
//! With the columns of B the background's polynomials and a cosine and a sine of each frequency, and a ~ N(0, V) their coefficients,
//! y = B a + noise has M = BᵀB/σ² + V⁻¹, m = M⁻¹ Bᵀ y/σ² and
//!
//! ```text
//! −2 log p = |y − B m|²/σ² + mᵀ V⁻¹ m + n log σ² + log |V| + log |M| + n log 2π
//! ```
//!
//! Its gradient is the mean, over the posterior N(m, S = M⁻¹) of a, of that given a: d/dB = (r mᵀ − B S)/σ² with r = y − B m.

use super::Spectrum;
use super::background::Background;
use super::prior::Linear;
use crate::problem::components::ByParts;
use crate::simd::{Instructions, Kernel, Vector};
use crate::triangular;

/// The likelihood of sinusoids.
#[derive(Clone, Debug)]
pub(super) struct SinusoidLikelihood {
    /// Places from the middle, which amplitudes do not depend on in their prior.
    t: Vec<f64>,
    middle: f64,
    /// Values without the mean of the background.
    y: Vec<f64>,
    background: Background,
    linear: Linear,
    instructions: Instructions,
}

/// What is known of coefficients given frequencies and noise.
struct Fit {
    /// Columns, one after another: polynomials, then a cosine and a sine of each frequency.
    columns: Vec<Vec<f64>>,
    /// Cholesky's factor of M, packed, and the mean m.
    factor: Vec<f64>,
    mean: Vec<f64>,
    /// y − B m.
    left: Vec<f64>,
    log_likelihood: f64,
}

struct Look<'a> {
    of: &'a SinusoidLikelihood,
    theta: &'a [f64],
}

impl Kernel<f64> for Look<'_> {
    type Output = Option<Fit>;

    #[inline(always)]
    fn run<V: Vector<f64>>(self) -> Option<Fit> {
        let Self { of, theta } = self;
        let (noise, frequencies) = (theta[0] * theta[0], &theta[1..]);
        let mut columns = of.background.unit.clone();
        for frequency in frequencies {
            let (mut cosine, mut sine) = (vec![0.0; of.t.len()], vec![0.0; of.t.len()]);
            waves(&of.t, *frequency, &mut cosine, &mut sine);
            columns.push(cosine);
            columns.push(sine);
        }
        let views: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let Solved { factor, mean, left, log_likelihood } = of.solve(&views, noise)?;
        Some(Fit { columns, factor, mean, left, log_likelihood })
    }
}

/// A wave and a quarter of a turn before it.
#[inline(always)]
fn waves(t: &[f64], frequency: f64, cosine: &mut [f64], sine: &mut [f64]) {
    for ((cosine, sine), t) in cosine.iter_mut().zip(sine).zip(t) {
        let turns = frequency * t;
        *cosine = sine_of_turns(turns + 0.25);
        *sine = sine_of_turns(turns);
    }
}

/// What is known of coefficients given the columns.
struct Solved {
    factor: Vec<f64>,
    mean: Vec<f64>,
    left: Vec<f64>,
    log_likelihood: f64,
}

impl SinusoidLikelihood {
    /// None where rounding leaves nothing to solve for.
    #[inline(always)]
    fn solve(&self, columns: &[&[f64]], noise: f64) -> Option<Solved> {
        let dim = columns.len();
        let mut factor = Vec::with_capacity(triangular::packed_len(dim));
        for (i, one) in columns.iter().enumerate() {
            factor.extend(columns[..i].iter().map(|other| dot(one, other) / noise));
            factor.push(dot(one, one) / noise + 1.0 / self.prior_variance(i));
        }
        triangular::cholesky(&mut factor, dim).ok()?;
        let mut mean: Vec<f64> = columns.iter().map(|column| dot(column, &self.y) / noise).collect();
        triangular::solve(&factor, &mut mean);
        triangular::solve_transposed(&factor, &mut mean);
        let mut left = self.y.clone();
        for (column, mean) in columns.iter().zip(&mean) {
            left.iter_mut().zip(*column).for_each(|(left, column)| *left -= mean * column);
        }
        let penalty: f64 = mean.iter().enumerate().map(|(i, mean)| mean * mean / self.prior_variance(i)).sum();
        let log_prior: f64 = (0..dim).map(|i| self.prior_variance(i).ln()).sum();
        let rows = left.len() as f64;
        let log_likelihood = -0.5
            * (dot(&left, &left) / noise
                + penalty
                + rows * (noise.ln() + std::f64::consts::TAU.ln())
                + log_prior
                + 2.0 * triangular::log_diagonal(&factor, dim));
        Some(Solved { factor, mean, left, log_likelihood })
    }
}

/// The likelihood of waves that are known at every place.
struct Whole<'a> {
    of: &'a SinusoidLikelihood,
    noise: f64,
    parts: &'a [f64],
}

impl Kernel<f64> for Whole<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<V: Vector<f64>>(self) -> f64 {
        let Self { of, noise, parts } = self;
        let waves = parts.chunks_exact(of.t.len());
        let columns: Vec<&[f64]> = of.background.unit.iter().map(Vec::as_slice).chain(waves).collect();
        of.solve(&columns, noise * noise).map_or(f64::NAN, |solved| solved.log_likelihood)
    }
}

/// A cosine and a sine at every place.
struct Part<'a> {
    of: &'a SinusoidLikelihood,
    frequency: f64,
    to: &'a mut [f64],
}

impl Kernel<f64> for Part<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        let (cosine, sine) = self.to.split_at_mut(self.of.t.len());
        waves(&self.of.t, self.frequency, cosine, sine);
    }
}

impl ByParts for SinusoidLikelihood {
    fn part_len(&self) -> usize {
        2 * self.t.len()
    }

    fn part(&self, _: &[f64], block: &[f64], to: &mut [f64]) {
        self.instructions.run(Part { of: self, frequency: block[0], to });
    }

    fn is_global(&self) -> bool {
        false
    }

    fn whole(&self, theta: &[f64], parts: &[f64]) -> f64 {
        self.instructions.run(Whole { of: self, noise: theta[0], parts })
    }
}

/// sin 2πx: brought to a quarter of a turn around 0, then by its power series.
#[inline(always)]
fn sine_of_turns(x: f64) -> f64 {
    const SERIES: [f64; 10] = [
        1.0,
        -1.0 / 6.0,
        1.0 / 120.0,
        -1.0 / 5_040.0,
        1.0 / 362_880.0,
        -1.0 / 39_916_800.0,
        1.0 / 6_227_020_800.0,
        -1.0 / 1_307_674_368_000.0,
        1.0 / 355_687_428_096_000.0,
        -1.0 / 121_645_100_408_832_000.0,
    ];
    // Whole turns away, by a number so large that nothing smaller than 1 fits beside it.
    const LARGE: f64 = 6_755_399_441_055_744.0;
    let turn = x - ((x + LARGE) - LARGE);
    let folded = if turn > 0.25 {
        0.5 - turn
    } else if turn < -0.25 {
        -0.5 - turn
    } else {
        turn
    };
    let angle = std::f64::consts::TAU * folded;
    let square = angle * angle;
    angle * SERIES.iter().rev().fold(0.0, |sum, term| sum * square + term)
}

#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        lanes.iter_mut().zip(a.iter().zip(b)).for_each(|(lane, (a, b))| *lane += a * b);
    }
    lanes.iter().sum()
}

impl SinusoidLikelihood {
    pub(super) fn new(spectrum: &Spectrum, background: Background, linear: Linear) -> Self {
        let (low, high) = spectrum.ends();
        let middle = 0.5 * (low + high);
        Self {
            t: spectrum.x().iter().map(|x| x - middle).collect(),
            middle,
            y: spectrum.y().iter().map(|y| y - linear.level).collect(),
            background,
            linear,
            instructions: Instructions::detect(),
        }
    }

    /// Of coefficients of unit polynomials, and of amplitudes.
    fn prior_variance(&self, column: usize) -> f64 {
        match column < self.background.len() {
            true => self.linear.background.powi(2) * self.t.len() as f64,
            false => self.linear.amplitude.powi(2),
        }
    }

    fn fit(&self, theta: &[f64]) -> Option<Fit> {
        self.instructions.run(Look { of: self, theta })
    }

    /// Not a number where rounding leaves nothing to solve for.
    pub(super) fn log_likelihood(&self, theta: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let Some(fit) = self.fit(theta) else { return f64::NAN };
        if let Some(gradient) = gradient {
            self.gradient(theta, &fit, gradient);
        }
        fit.log_likelihood
    }

    fn gradient(&self, theta: &[f64], fit: &Fit, gradient: &mut [f64]) {
        let (dim, noise) = (fit.mean.len(), theta[0] * theta[0]);
        let covariance = inverse(&fit.factor, dim);
        let unexplained: f64 = (0..dim).map(|i| covariance[i * dim + i] / self.prior_variance(i)).sum();
        let by_noise = 0.5
            * (dot(&fit.left, &fit.left) / (noise * noise) + (dim as f64 - unexplained) / noise
                - self.t.len() as f64 / noise);
        gradient[0] = 2.0 * theta[0] * by_noise;
        let mut by_column = vec![0.0; self.t.len()];
        for (number, by) in gradient[1..].iter_mut().enumerate() {
            let first = self.background.len() + 2 * number;
            // The derivative of a cosine is minus the sine, and that of a sine the cosine, times 2π t.
            for (column, slope, sign) in [(first, first + 1, -1.0), (first + 1, first, 1.0)] {
                by_column.iter_mut().zip(&fit.left).for_each(|(by, left)| *by = left * fit.mean[column]);
                for (i, other) in fit.columns.iter().enumerate() {
                    let share = covariance[i * dim + column];
                    by_column.iter_mut().zip(other).for_each(|(by, other)| *by -= share * other);
                }
                let slopes = fit.columns[slope].iter().zip(&self.t);
                let sum: f64 = by_column.iter().zip(slopes).map(|(by, (slope, t))| by * slope * t).sum();
                *by += sign * std::f64::consts::TAU * sum / noise;
            }
        }
    }

    /// Coefficients given frequencies and noise, from standard normal numbers: of the background, then a cosine and a sine of each
    /// frequency. All are 0 where there is nothing to solve for.
    pub(super) fn draw_coefficients(&self, theta: &[f64], mut normal: impl FnMut() -> f64) -> Vec<f64> {
        let Some(Fit { mut mean, factor, .. }) = self.fit(theta) else {
            return vec![0.0; self.background.len() + 2 * (theta.len() - 1)];
        };
        let mut off: Vec<f64> = mean.iter().map(|_| normal()).collect();
        triangular::solve_transposed(&factor, &mut off);
        mean.iter_mut().zip(&off).for_each(|(mean, off)| *mean += off);
        let root = (self.t.len() as f64).sqrt();
        mean[..self.background.len()].iter_mut().for_each(|coefficient| *coefficient /= root);
        mean[0] += self.linear.level;
        mean
    }

    /// The whole curve, and the background alone, at a place.
    pub(super) fn at(&self, theta: &[f64], coefficients: &[f64], x: f64) -> (f64, f64) {
        let background = self.background.at(coefficients, x);
        let amplitudes = coefficients[self.background.len()..].chunks_exact(2);
        let wave = |(frequency, pair): (&f64, &[f64])| {
            let (sine, cosine) = (std::f64::consts::TAU * frequency * (x - self.middle)).sin_cos();
            pair[0] * cosine + pair[1] * sine
        };
        (background + theta[1..].iter().zip(amplitudes).map(wave).sum::<f64>(), background)
    }
}

/// The inverse of `C Cᵀ`.
fn inverse(factor: &[f64], dim: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; dim * dim];
    for (i, row) in inverse.chunks_exact_mut(dim.max(1)).enumerate() {
        row[i] = 1.0;
        triangular::solve(factor, row);
        triangular::solve_transposed(factor, row);
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sines_by_series_are_sines() {
        for i in -4000..4000 {
            let x = f64::from(i) * 0.00713;
            assert!((sine_of_turns(x) - (std::f64::consts::TAU * x).sin()).abs() < 1e-13 * (1.0 + x.abs()), "{x}");
        }
    }
}

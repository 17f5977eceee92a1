//! Evidences of segments whose parameters are integrated out, and draws of these.

use super::prior::Conjugate;
use crate::random::Stream;
use crate::stats::{ln_gamma, normal_log_density};

/// Rows between two changes. Places are between rows: a segment from i to j has the rows i, …, j − 1.
pub(super) trait Segments: Sync {
    /// Rows.
    fn rows(&self) -> usize;

    /// The log evidence of rows as one segment.
    fn log_evidence(&self, from: usize, to: usize) -> f64;

    /// Draws the parameters of a segment.
    fn draw(&self, from: usize, to: usize, stream: &mut Stream, parameters: &mut Vec<f64>);

    /// The log density of rows and parameters of a segment.
    fn log_joint(&self, from: usize, to: usize, parameters: &[f64]) -> f64;
}

/// A gamma variable of this shape and rate.
pub(super) fn gamma(stream: &mut Stream, shape: f64, rate: f64) -> f64 {
    0.5 * stream.chi_squared(2.0 * shape) / rate
}

/// The log density of a gamma variable.
pub(super) fn gamma_log_density(x: f64, shape: f64, rate: f64) -> f64 {
    shape * rate.ln() - ln_gamma(shape) + (shape - 1.0) * x.ln() - rate * x
}

/// `log ∫ λⁿ e^{−λ ℓ} Gamma(λ; a, b) dλ` of n events in a time ℓ.
#[derive(Clone, Debug)]
pub(super) struct GammaPoisson {
    shape: f64,
    rate: f64,
    constant: f64,
    /// `log Γ(a + n)`.
    ln_gammas: Vec<f64>,
}

/// So many values of the gamma function are kept.
const KEPT: usize = 1 << 20;

impl GammaPoisson {
    pub(super) fn new((shape, rate): (f64, f64), events: usize) -> Self {
        let ln_gammas = (0..=events.min(KEPT)).map(|n| ln_gamma(shape + n as f64)).collect();
        Self { shape, rate, constant: shape * rate.ln() - ln_gamma(shape), ln_gammas }
    }

    pub(super) fn log_evidence(&self, events: usize, time: f64) -> f64 {
        let shape = self.shape + events as f64;
        let ln_gamma = self.ln_gammas.get(events).copied().unwrap_or_else(|| ln_gamma(shape));
        self.constant + ln_gamma - shape * (self.rate + time).ln()
    }

    pub(super) fn draw(&self, events: usize, time: f64, stream: &mut Stream) -> f64 {
        gamma(stream, self.shape + events as f64, self.rate + time)
    }

    pub(super) fn log_joint(&self, events: usize, time: f64, rate: f64) -> f64 {
        gamma_log_density(rate, self.shape, self.rate) + events as f64 * rate.ln() - rate * time
    }
}

/// Counts with a rate, in proportion to exposures.
#[derive(Clone, Debug)]
pub(super) struct CountSegments {
    of: GammaPoisson,
    /// Sums of counts, of exposures, and of what does not depend on the rate, before each place.
    counts: Vec<usize>,
    exposure: Vec<f64>,
    constant: Vec<f64>,
}

impl CountSegments {
    pub(super) fn new(values: &[f64], exposure: &[f64], prior: &Conjugate) -> Self {
        let (mut counts, mut exposures, mut constants) = (vec![0], vec![0.0], vec![0.0]);
        for (row, value) in values.iter().enumerate() {
            let exposed = exposure.get(row).copied().unwrap_or(1.0);
            counts.push(counts[row] + *value as usize);
            exposures.push(exposures[row] + exposed);
            constants.push(constants[row] + value * exposed.ln() - ln_gamma(value + 1.0));
        }
        let of = GammaPoisson::new(prior.rate, counts[values.len()]);
        Self { of, counts, exposure: exposures, constant: constants }
    }

    fn sums(&self, from: usize, to: usize) -> (usize, f64) {
        (self.counts[to] - self.counts[from], self.exposure[to] - self.exposure[from])
    }

    fn constant(&self, from: usize, to: usize) -> f64 {
        self.constant[to] - self.constant[from]
    }
}

impl Segments for CountSegments {
    fn rows(&self) -> usize {
        self.counts.len() - 1
    }

    fn log_evidence(&self, from: usize, to: usize) -> f64 {
        let (count, exposed) = self.sums(from, to);
        self.of.log_evidence(count, exposed) + self.constant(from, to)
    }

    fn draw(&self, from: usize, to: usize, stream: &mut Stream, parameters: &mut Vec<f64>) {
        let (count, exposed) = self.sums(from, to);
        parameters.push(self.of.draw(count, exposed, stream));
    }

    fn log_joint(&self, from: usize, to: usize, parameters: &[f64]) -> f64 {
        let (count, exposed) = self.sums(from, to);
        self.of.log_joint(count, exposed, parameters[0]) + self.constant(from, to)
    }
}

/// Values around a level, or around a line: sums of which the evidence of any segment is made.
///
/// A line is a level at the mean time of its rows and a slope, so that the two are independent a posteriori, too. Values are
/// less the mean of their prior, and times less their first, which keeps digits.
#[derive(Clone, Debug)]
pub(super) struct LineSums {
    /// Sums before each place: of values, their squares, times, their squares, and products.
    values: Vec<f64>,
    squares: Vec<f64>,
    times: Vec<f64>,
    time_squares: Vec<f64>,
    products: Vec<f64>,
    level: (f64, f64),
    /// None where segments are level.
    slope: Option<(f64, f64)>,
}

impl LineSums {
    pub(super) fn new(times: &[f64], values: &[f64], prior: &Conjugate, has_slopes: bool) -> Self {
        let origin = 0.5 * (times[0] + times[times.len() - 1]);
        let running = |number: &dyn Fn(usize) -> f64| {
            let mut sum = 0.0;
            let sums = (0..values.len()).map(|row| {
                sum += number(row);
                sum
            });
            std::iter::once(0.0).chain(sums).collect::<Vec<f64>>()
        };
        let (value, time) = (|row: usize| values[row] - prior.level.0, |row: usize| times[row] - origin);
        Self {
            values: running(&value),
            squares: running(&|row| value(row).powi(2)),
            times: running(&time),
            time_squares: running(&|row| time(row).powi(2)),
            products: running(&|row| time(row) * value(row)),
            level: prior.level,
            slope: has_slopes.then_some(prior.slope),
        }
    }

    /// The mean value and the squares around it, less the mean of the prior; the products with times, and squares of times,
    /// around their means.
    fn around_means(&self, from: usize, to: usize) -> Around {
        let rows = (to - from) as f64;
        let sum = |sums: &[f64]| sums[to] - sums[from];
        let (value, time) = (sum(&self.values), sum(&self.times));
        Around {
            rows,
            mean: value / rows,
            squares: (sum(&self.squares) - value * value / rows).max(0.0),
            products: sum(&self.products) - value * time / rows,
            time_squares: (sum(&self.time_squares) - time * time / rows).max(0.0),
        }
    }
}

/// Sums of a segment's rows around their means.
#[derive(Clone, Copy, Debug)]
struct Around {
    rows: f64,
    mean: f64,
    squares: f64,
    products: f64,
    time_squares: f64,
}

/// Lines or levels with noise of a known standard deviation.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineSegments<'a> {
    sums: &'a LineSums,
    precision: f64,
    log_noise: f64,
}

impl<'a> LineSegments<'a> {
    pub(super) fn new(sums: &'a LineSums, noise: f64) -> Self {
        Self { sums, precision: noise.powi(-2), log_noise: noise.ln() + 0.5 * std::f64::consts::TAU.ln() }
    }
}

/// Posterior mean and precision of a parameter with a normal prior, of which the data say `precision` and `precision · estimate`.
fn update((mean, sd): (f64, f64), precision: f64, weighted: f64) -> (f64, f64) {
    let prior = sd.powi(-2);
    let total = prior + precision;
    ((prior * mean + weighted) / total, total)
}

impl LineSegments<'_> {
    /// Posterior mean and precision of the level (less the mean of the prior) and of the slope.
    fn posterior(&self, around: &Around) -> [(f64, f64); 2] {
        let rows = self.precision * around.rows;
        let level = update((0.0, self.sums.level.1), rows, rows * around.mean);
        let slope = self.sums.slope.unwrap_or((0.0, 1.0));
        [level, update(slope, self.precision * around.time_squares, self.precision * around.products)]
    }
}

impl Segments for LineSegments<'_> {
    fn rows(&self) -> usize {
        self.sums.values.len() - 1
    }

    fn log_evidence(&self, from: usize, to: usize) -> f64 {
        let Around { rows, mean, squares, products, time_squares } = self.sums.around_means(from, to);
        // y ~ N(0, σ² I + s² 1 1ᵀ): the mean of n rows has the variance s² + σ²/n, and residuals have σ².
        let inflation = self.precision * rows * self.sums.level.1.powi(2) + 1.0;
        let mut twice = self.precision * (squares + rows * mean * mean / inflation);
        let mut determinant = inflation;
        if let Some((slope, sd)) = self.sums.slope {
            // The same along the direction of times, with the products as what is observed.
            let inflation = self.precision * time_squares * sd.powi(2) + 1.0;
            let shifted = products - slope * time_squares;
            // Σ (y − β t)² = squares − 2 β products + β² time_squares, of which the part along t is given a larger variance.
            twice += self.precision * (slope * (slope * time_squares - 2.0 * products));
            twice -= self.precision * shifted * shifted * (self.precision * sd.powi(2) / inflation);
            determinant *= inflation;
        }
        -rows * self.log_noise - 0.5 * (determinant.ln() + twice)
    }

    fn draw(&self, from: usize, to: usize, stream: &mut Stream, parameters: &mut Vec<f64>) {
        let [level, slope] = self.posterior(&self.sums.around_means(from, to));
        parameters.push(self.sums.level.0 + level.0 + stream.normal() / level.1.sqrt());
        if self.sums.slope.is_some() {
            parameters.push(slope.0 + stream.normal() / slope.1.sqrt());
        }
    }

    fn log_joint(&self, from: usize, to: usize, parameters: &[f64]) -> f64 {
        let (around, (mean, sd)) = (self.sums.around_means(from, to), self.sums.level);
        let off = around.mean - (parameters[0] - mean);
        let mut squares = around.squares + around.rows * off * off;
        let mut log_prior = normal_log_density((parameters[0] - mean) / sd) - sd.ln();
        if let (Some((mean, sd)), Some(&slope)) = (self.sums.slope, parameters.get(1)) {
            squares += slope * (slope * around.time_squares - 2.0 * around.products);
            log_prior += normal_log_density((slope - mean) / sd) - sd.ln();
        }
        log_prior - around.rows * self.log_noise - 0.5 * self.precision * squares
    }
}

/// The squared residuals of a segment around its own parameters.
pub(super) fn residual_squares(sums: &LineSums, from: usize, to: usize, parameters: &[f64]) -> f64 {
    let around = sums.around_means(from, to);
    let off = around.mean - (parameters[0] - sums.level.0);
    let line = parameters.get(1).map_or(0.0, |slope| slope * (slope * around.time_squares - 2.0 * around.products));
    around.squares + around.rows * off * off + line
}

//! An unknown log σ, or log g of a g-prior: integrals over it, by sums over an even grid where the function matters, and draws.

use crate::random::Stream;
use crate::stats::log_sum_exp;

/// The log of a function of log σ, or of log g, on an even grid, as far as the function matters.
#[derive(Clone, Debug)]
pub(super) struct ScaleGrid {
    /// The first place.
    pub(super) low: f64,
    /// Between two places.
    pub(super) step: f64,
    pub(super) values: Vec<f64>,
}

/// Places of a coarse grid.
const COARSE: usize = 32;
/// Nats below the mode that do not matter.
const NEGLIGIBLE: f64 = 40.0;
/// Prior standard deviations beyond which nothing is.
const FARTHEST: f64 = 9.0;

impl ScaleGrid {
    /// Of `likelihood · prior` with so many rows and a normal prior of log σ with this mean and standard deviation;
    /// `along(low, step, points, values)` writes the logs of that function on a grid. Where it matters is found on coarser
    /// grids first; between their places it may be higher, but not far from the highest of them.
    pub(super) fn find(rows: f64, (center, sd): (f64, f64), along: impl Fn(f64, f64, usize, &mut Vec<f64>)) -> Self {
        let (mut low, mut high) = (center - FARTHEST * sd, center + FARTHEST * sd);
        // The likelihood of log σ has a standard deviation of about 1/√(2n), and the prior can only sharpen it. With few
        // rows the function is not quite a normal one: half of its narrowest width leaves 12 digits or more.
        let step = 0.5 * (2.0 * rows + sd.powi(-2)).sqrt().recip();
        let mut values = Vec::new();
        // Another coarse grid is worth its while if it leaves less than half of the range.
        while (high - low) / step > 2.0 * COARSE as f64 {
            let coarse = (high - low) / (COARSE - 1) as f64;
            along(low, coarse, COARSE, &mut values);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let matters = |value: &f64| *value >= most - NEGLIGIBLE;
            let first = values.iter().position(matters).unwrap_or(0).saturating_sub(1);
            let last = (values.iter().rposition(matters).unwrap_or(COARSE) + 1).min(COARSE - 1);
            (low, high) = (low + coarse * first as f64, low + coarse * last as f64);
            if last - first > COARSE / 2 {
                break;
            }
        }
        let points = ((high - low) / step).ceil() as usize + 1;
        let step = (high - low) / (points - 1).max(1) as f64;
        along(low, step, points, &mut values);
        Self { low, step, values }
    }

    /// The log of the integral: exact to many digits for a smooth function that vanishes at both ends.
    pub(super) fn log_integral(&self) -> f64 {
        log_sum_exp(&self.values) + self.step.ln()
    }

    /// Values of σ, or of g, with their shares of an integral whose log this is.
    pub(super) fn shares(&self, log_integral: f64) -> impl Iterator<Item = (f64, f64)> {
        let log_scale = self.step.ln() - log_integral;
        let at = |place: usize| (self.low + self.step * place as f64).exp();
        self.values.iter().enumerate().map(move |(place, value)| (at(place), (value + log_scale).exp()))
    }
}

/// A density of log σ, or of log g, known exactly at every place: draws by rejection below steps between places of a grid.
#[derive(Clone, Debug)]
pub(super) struct ScaleSteps {
    /// Steps are between its places.
    grid: ScaleGrid,
    /// Logarithms of their heights, and the sums of their shares of the area up to each.
    log_heights: Vec<f64>,
    shares: Vec<f64>,
    log_total: f64,
}

/// Steps end so far above both of their ends. Between neighbouring places of the grid the density has its mode, if it has one,
/// less than a tenth of a nat above the higher of them.
const MARGIN: f64 = 0.3;

/// Draws beyond which the density does not look like one; half of them and more are accepted.
const MAX_TRIES: usize = 10_000;

impl ScaleSteps {
    /// Of the density whose log is `log_joint`, up to a constant; the rest as for [`ScaleGrid::find`].
    pub(super) fn new(rows: f64, prior: (f64, f64), log_joint: impl Fn(f64) -> f64) -> Self {
        let grid = ScaleGrid::find(rows, prior, |low, step, points, values| {
            values.clear();
            values.extend((0..points).map(|point| log_joint(low + step * point as f64)));
        });
        Self::below(grid)
    }

    /// Of a density with one mode, given on a grid that is dense enough for its integral.
    pub(super) fn below(grid: ScaleGrid) -> Self {
        let log_heights: Vec<f64> = grid.values.windows(2).map(|ends| ends[0].max(ends[1]) + MARGIN).collect();
        let log_area = log_sum_exp(&log_heights);
        let add = |sum: &mut f64, height: &f64| {
            *sum += (height - log_area).exp();
            Some(*sum)
        };
        let shares = log_heights.iter().scan(0.0, add).collect();
        Self { log_total: grid.log_integral(), grid, log_heights, shares }
    }

    /// The log of the integral of the density.
    pub(super) fn log_total(&self) -> f64 {
        self.log_total
    }

    /// Values of σ, or of g, with the shares of the posterior that they stand for.
    pub(super) fn weights(&self) -> impl Iterator<Item = (f64, f64)> {
        self.grid.shares(self.log_total)
    }

    /// A draw of log σ, or of log g, with the density that it was made of.
    pub(super) fn draw(&self, log_joint: impl Fn(f64) -> f64, stream: &mut Stream) -> f64 {
        for _ in 0..MAX_TRIES {
            let place = stream.uniform();
            let step = self.shares.partition_point(|&share| share <= place).min(self.shares.len() - 1);
            let log_sigma = self.grid.low + self.grid.step * (step as f64 + stream.uniform());
            if stream.uniform().ln() < log_joint(log_sigma) - self.log_heights[step] {
                return log_sigma;
            }
        }
        f64::NAN
    }
}

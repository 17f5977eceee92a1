//! Integrals over an unknown log σ, by sums over an even grid where the function matters.

use crate::stats::log_sum_exp;

/// The log of a function of log σ on an even grid, as far as the function matters.
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

    /// Values of σ.
    pub(super) fn sigmas(&self) -> impl Iterator<Item = f64> {
        (0..self.values.len()).map(|place| (self.low + self.step * place as f64).exp())
    }
}

//! Where the coordinates of a model that a particle jumps to come from.

use crate::random::Stream;

/// New coordinates are drawn from the reference with this probability, and otherwise from a normal density like that of the
/// particles that have them, so much wider.
const FROM_REFERENCE: f64 = 0.1;
const WIDER: f64 = 1.2;

/// The log density of a normal number.
pub(super) fn log_normal(x: f64, (mean, sd): (f64, f64)) -> f64 {
    -0.5 * ((x - mean) / sd).powi(2) - sd.ln() - 0.5 * std::f64::consts::TAU.ln()
}

/// Where new coordinates are drawn from.
pub(super) struct Birth<'a> {
    /// Mean and standard deviation of each coordinate over particles that have it, and in the reference.
    pub(super) moments: &'a [(f64, f64)],
    pub(super) reference: &'a [(f64, f64)],
}

impl Birth<'_> {
    pub(super) fn draw(&self, i: usize, stream: &mut Stream) -> f64 {
        if stream.uniform() < FROM_REFERENCE {
            let (mean, sd) = self.reference[i];
            return mean + sd * stream.normal();
        }
        let (mean, sd) = self.moments[i];
        mean + WIDER * sd * stream.normal()
    }

    pub(super) fn log_density(&self, i: usize, x: f64) -> f64 {
        let (mean, sd) = self.moments[i];
        let near = log_normal(x, (mean, WIDER * sd)) + (1.0 - FROM_REFERENCE).ln();
        let far = log_normal(x, self.reference[i]) + FROM_REFERENCE.ln();
        near.max(far) + (-(near - far).abs()).exp().ln_1p()
    }
}

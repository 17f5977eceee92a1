//! Spectra of known peaks, and sums of known sinusoids.

use super::PeakShape;
use crate::random::{Purpose, Stream};

/// A peak, or a sinusoid of which `position` is the frequency, `height` the amplitude and `width` the phase in radians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Where it is.
    pub position: f64,
    /// How high.
    pub height: f64,
    /// How wide: full width at half maximum.
    pub width: f64,
}

/// What a spectrum is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// What peaks look like; pseudo-Voigt profiles are half and half.
    pub shape: PeakShape,
    /// The peaks.
    pub peaks: Vec<Peak>,
    /// The background: its value at the first place, and its slope.
    pub background: (f64, f64),
    /// The standard deviation of the noise.
    pub noise: f64,
}

impl Truth {
    /// So many peaks between 0 and 10, of different heights and widths; or so many sinusoids.
    pub fn spread(shape: PeakShape, count: usize, noise: f64) -> Self {
        let peak = |number: usize| {
            let share = (number as f64 + 1.0) / (count as f64 + 1.0);
            match shape {
                PeakShape::Sinusoid => Peak {
                    position: 0.4 + 2.0 * share,
                    height: 1.0 / (1.0 + number as f64),
                    width: 1.0 + number as f64,
                },
                _ => Peak {
                    position: 10.0 * share,
                    height: [1.0, 0.6, 1.5][number % 3],
                    width: [0.8, 0.5, 1.2][number % 3],
                },
            }
        };
        Self { shape, peaks: (0..count).map(peak).collect(), background: (1.0, 0.05), noise }
    }

    /// The curve without noise.
    pub fn curve(&self, x: f64) -> f64 {
        let at = |peak: &Peak| match self.shape {
            PeakShape::Sinusoid => peak.height * (std::f64::consts::TAU * peak.position * x + peak.width).cos(),
            shape => peak.height * shape.profile((x - peak.position) / peak.width, 0.5),
        };
        self.background.0 + self.background.1 * x + self.peaks.iter().map(at).sum::<f64>()
    }

    /// So many values at even places from 0 to 10.
    pub fn draw(&self, rows: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let place = |row: usize| 10.0 * row as f64 / (rows.max(2) - 1) as f64;
        let x: Vec<f64> = (0..rows).map(place).collect();
        let value = |(row, x): (usize, &f64)| {
            self.curve(*x) + self.noise * Stream::new(seed, Purpose::Simulate, 0, row as u64).normal()
        };
        let y = x.iter().enumerate().map(value).collect();
        (x, y)
    }
}

//! A curve that was measured: values at places.

use thiserror::Error;

/// Values at places, in the order of the places.
#[derive(Clone, Debug, PartialEq)]
pub struct Spectrum {
    x: Vec<f64>,
    y: Vec<f64>,
}

/// Measurements in which nothing can be looked for.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SpectrumError {
    /// A number that is infinite or not a number.
    #[error("row {row}: {what} is not finite")]
    NotFinite {
        /// Which row, counted from 1.
        row: usize,
        /// Which of the two.
        what: &'static str,
    },
    /// Columns of different lengths.
    #[error("there are {x} places and {y} values")]
    Length {
        /// Places.
        x: usize,
        /// Values.
        y: usize,
    },
    /// Too few rows.
    #[error("{found} rows at {places} different places are too few, at least {needed} places are needed")]
    TooFew {
        /// Rows.
        found: usize,
        /// Different places.
        places: usize,
        /// How many there must be.
        needed: usize,
    },
    /// Values that never change.
    #[error("all values are {value}: there is no noise to tell anything from")]
    Constant {
        /// Their value.
        value: f64,
    },
}

impl Spectrum {
    /// Rows in any order; says where they were out of order or at equal places.
    pub fn new(x: &[f64], y: &[f64]) -> Result<(Self, Vec<String>), SpectrumError> {
        if x.len() != y.len() {
            return Err(SpectrumError::Length { x: x.len(), y: y.len() });
        }
        for (what, values) in [("the place", x), ("the value", y)] {
            if let Some(row) = values.iter().position(|value| !value.is_finite()) {
                return Err(SpectrumError::NotFinite { row: row + 1, what });
            }
        }
        let mut order: Vec<usize> = (0..x.len()).collect();
        order.sort_by(|&a, &b| x[a].total_cmp(&x[b]));
        let mut notes = Vec::new();
        if !order.is_sorted() {
            notes.push("rows were out of order and have been sorted by their places".into());
        }
        let of = |values: &[f64]| order.iter().map(|&row| values[row]).collect::<Vec<f64>>();
        let spectrum = Self { x: of(x), y: of(y) };
        let places = spectrum.places();
        if places < spectrum.x.len() {
            notes.push(format!("{} rows share their place with another one", spectrum.x.len() - places));
        }
        let (low, high) = ends(&spectrum.y);
        if !spectrum.y.is_empty() && low == high {
            return Err(SpectrumError::Constant { value: low });
        }
        Ok((spectrum, notes))
    }

    /// Refuses fewer different places.
    pub(super) fn need(&self, needed: usize) -> Result<(), SpectrumError> {
        let places = self.places();
        if places >= needed { Ok(()) } else { Err(SpectrumError::TooFew { found: self.rows(), places, needed }) }
    }

    fn places(&self) -> usize {
        self.x.chunk_by(|a, b| a == b).count()
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.x.len()
    }

    /// Places, ascending.
    pub fn x(&self) -> &[f64] {
        &self.x
    }

    /// Values.
    pub fn y(&self) -> &[f64] {
        &self.y
    }

    /// The first and the last place.
    pub fn ends(&self) -> (f64, f64) {
        ends(&self.x)
    }

    /// What is in the middle of the values, their range, and their standard deviation.
    pub(super) fn spread(&self) -> (f64, f64, f64) {
        let mut sorted = self.y.clone();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let median = 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
        let mean = sorted.iter().sum::<f64>() / n as f64;
        let variance = sorted.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / n as f64;
        (median, sorted[n - 1] - sorted[0], variance.sqrt())
    }

    /// The typical distance of neighbouring places.
    pub(super) fn spacing(&self) -> f64 {
        let (low, high) = self.ends();
        (high - low) / (self.places() - 1) as f64
    }
}

fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)))
}

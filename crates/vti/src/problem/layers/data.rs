//! What was measured.

use std::f64::consts::{LN_10, PI};

use thiserror::Error;

use super::mt::PERMEABILITY;

/// Numbers that an earth predicts, as they were measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Measured numbers, not a number where one is missing.
    pub values: Vec<f64>,
    /// Standard deviations of their errors.
    pub errors: Vec<f64>,
}

/// Data that no earth can be found for.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum LayerDataError {
    /// No data at all.
    #[error("there are no data: {0}")]
    Empty(&'static str),
    /// Columns of different lengths.
    #[error("there are {found} {what}, but {rows} rows")]
    Length {
        /// Of what.
        what: &'static str,
        /// How many.
        found: usize,
        /// Rows.
        rows: usize,
    },
    /// A number that cannot be.
    #[error("row {row}: the {what} is {value}, it must be {range}{hint}")]
    Value {
        /// Which row, counted from 1.
        row: usize,
        /// What it is.
        what: &'static str,
        /// What stands there.
        value: f64,
        /// What it may be.
        range: &'static str,
        /// What to do.
        hint: &'static str,
    },
}

impl LayerDataError {
    fn check(row: usize, what: &'static str, value: f64, fine: bool, range: &'static str) -> Result<(), Self> {
        if fine { Ok(()) } else { Err(Self::Value { row: row + 1, what, value, range, hint: "" }) }
    }
}

impl Observed {
    /// Measured numbers with the standard deviations of their errors. Missing ones are not numbers, and do not count.
    pub fn new(values: Vec<f64>, errors: Vec<f64>) -> Result<Self, LayerDataError> {
        if errors.len() != values.len() {
            return Err(LayerDataError::Length { what: "errors", found: errors.len(), rows: values.len() });
        }
        for (row, (value, error)) in values.iter().zip(&errors).enumerate() {
            LayerDataError::check(row, "value", *value, !value.is_infinite(), "finite, or missing")?;
            let is_missing = value.is_nan();
            LayerDataError::check(row, "error", *error, is_missing || is_positive(*error), "positive and finite")?;
        }
        let observed = Self { values, errors };
        if observed.present().next().is_none() {
            return Err(LayerDataError::Empty("no row has a value"));
        }
        Ok(observed)
    }

    /// Places of the data that are there.
    pub fn present(&self) -> impl Iterator<Item = usize> {
        (0..self.values.len()).filter(|&place| !self.values[place].is_nan())
    }
}

/// A magnetotelluric sounding: a row for each period. Missing values are not numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sounding {
    /// Periods, in seconds.
    pub periods: Vec<f64>,
    /// Apparent resistivities, in Ωm.
    pub resistivity: Vec<f64>,
    /// Standard deviations of their errors, in Ωm.
    pub resistivity_error: Vec<f64>,
    /// Phases, in degrees; those of a half space are 45.
    pub phase: Vec<f64>,
    /// Standard deviations of their errors, in degrees.
    pub phase_error: Vec<f64>,
}

impl Sounding {
    /// As data that [`Magnetotelluric`](super::Magnetotelluric) predicts: log₁₀ of apparent resistivities, then phases.
    pub fn observed(&self) -> Result<Observed, LayerDataError> {
        self.check()?;
        let logs = self.resistivity.iter().map(|resistivity| resistivity.log10());
        let log_errors = self.resistivity_error.iter().zip(&self.resistivity).map(|(error, rho)| error / (rho * LN_10));
        let values = logs.chain(self.phase.iter().copied()).collect();
        let errors = log_errors.chain(self.phase_error.iter().copied()).collect();
        Ok(Observed { values, errors })
    }

    fn check(&self) -> Result<(), LayerDataError> {
        let rows = self.periods.len();
        let columns = [
            (&self.resistivity, "apparent resistivities"),
            (&self.resistivity_error, "errors of apparent resistivities"),
            (&self.phase, "phases"),
            (&self.phase_error, "errors of phases"),
        ];
        for (column, what) in columns {
            if column.len() != rows {
                return Err(LayerDataError::Length { what, found: column.len(), rows });
            }
        }
        for row in 0..rows {
            let (period, rho, phase) = (self.periods[row], self.resistivity[row], self.phase[row]);
            LayerDataError::check(row, "period", period, is_positive(period), "positive and finite")?;
            let fine = rho.is_nan() || is_positive(rho);
            LayerDataError::check(row, "apparent resistivity", rho, fine, "positive and finite")?;
            if !phase.is_nan() && !(-90.0..180.0).contains(&phase) {
                let hint =
                    "\nhint: phases are in degrees, 45 over a half space; add 180 to those of the third quadrant";
                let range = "between −90 and 180";
                return Err(LayerDataError::Value { row: row + 1, what: "phase", value: phase, range, hint });
            }
            let errors = [
                ("error of the apparent resistivity", rho, self.resistivity_error[row]),
                ("error of the phase", phase, self.phase_error[row]),
            ];
            for (what, value, error) in errors {
                LayerDataError::check(row, what, error, value.is_nan() || is_positive(error), "positive and finite")?;
            }
        }
        if (0..rows).all(|row| self.resistivity[row].is_nan() && self.phase[row].is_nan()) {
            return Err(LayerDataError::Empty("no row has an apparent resistivity or a phase"));
        }
        Ok(())
    }

    /// The smallest and the largest depth to which fields of these periods reach, √(2ρ/(ωμ₀)) with the apparent resistivity of the
    /// period, or the mean of them all where there is none.
    pub fn reach(&self) -> (f64, f64) {
        let (low, high) = self.resistivities();
        let middle = (low * high).sqrt();
        let depth = |(period, rho): (&f64, &f64)| {
            let rho = if rho.is_nan() { middle } else { *rho };
            (rho * period / (PI * PERMEABILITY)).sqrt()
        };
        ends(self.periods.iter().zip(&self.resistivity).map(depth))
    }

    /// The smallest and the largest apparent resistivity; 100 Ωm where there is none.
    pub fn resistivities(&self) -> (f64, f64) {
        let (low, high) = ends(self.resistivity.iter().copied().filter(|rho| !rho.is_nan()));
        if low <= high { (low, high) } else { (100.0, 100.0) }
    }
}

fn ends(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| (low.min(number), high.max(number)))
}

fn is_positive(number: f64) -> bool {
    number > 0.0 && number.is_finite()
}

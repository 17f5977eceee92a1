//! Observations in one or several columns.

use thiserror::Error;

/// The fewest rows that anything can be learned from.
const MIN_ROWS: usize = 3;

/// Observations: numbers in one or several columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Observations {
    names: Vec<String>,
    columns: Vec<Vec<f64>>,
}

/// Observations that no mixture can be fitted to.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ObservationsError {
    /// A number that is infinite or not a number.
    #[error("row {row}: {column} is not finite")]
    NotFinite {
        /// Which row, counted from 1.
        row: usize,
        /// Which column.
        column: String,
    },
    /// A column without spread has no scale, and a component that fits it has an infinite density.
    #[error("all values of {column} are {value}: a column must have different values")]
    Constant {
        /// Which column.
        column: String,
        /// Its value.
        value: f64,
    },
    /// Too little to look for components in.
    #[error("{found} rows are too few, at least {MIN_ROWS} are needed")]
    TooFew {
        /// How many there are.
        found: usize,
    },
    /// Columns of different lengths, or none at all.
    #[error("columns must be as many as their names, at least one, and of one length")]
    Shape,
}

impl Observations {
    /// Columns with their names.
    pub fn new(names: Vec<String>, columns: Vec<Vec<f64>>) -> Result<Self, ObservationsError> {
        let rows = columns.first().map_or(0, Vec::len);
        if names.is_empty() || names.len() != columns.len() || columns.iter().any(|column| column.len() != rows) {
            return Err(ObservationsError::Shape);
        }
        if rows < MIN_ROWS {
            return Err(ObservationsError::TooFew { found: rows });
        }
        for (name, column) in names.iter().zip(&columns) {
            if let Some(row) = column.iter().position(|value| !value.is_finite()) {
                return Err(ObservationsError::NotFinite { row: row + 1, column: name.clone() });
            }
            let (low, high) = ends(column);
            if !((high - low).is_finite() && high > low) {
                return Err(ObservationsError::Constant { column: name.clone(), value: low });
            }
        }
        Ok(Self { names, columns })
    }

    /// How many there are.
    pub fn rows(&self) -> usize {
        self.columns[0].len()
    }

    /// Names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The columns.
    pub fn columns(&self) -> &[Vec<f64>] {
        &self.columns
    }

    /// The smallest and the largest value of a column.
    pub fn ends(&self, column: usize) -> (f64, f64) {
        ends(&self.columns[column])
    }
}

fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)))
}

//! Tables that come from Python.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use vti_cli::api::{self, Values};

use crate::{arrow, numpy};

/// A table in our own memory.
#[pyclass(frozen, module = "vti._vti")]
pub(crate) struct Table(Vec<(String, Values)>);

impl Table {
    /// As a run takes it.
    pub(crate) fn handed_over(&self) -> PyResult<api::Table> {
        api::Table::new(&self.0).map_err(|error| PyValueError::new_err(plain(&error.to_string())))
    }
}

/// What went wrong, without the name of a file format.
fn plain(message: &str) -> String {
    message.trim_start_matches("Parquet error: ").into()
}

#[pymethods]
impl Table {
    /// The columns of anything with an Arrow stream.
    #[staticmethod]
    fn from_arrow(table: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(arrow::columns(table)?))
    }

    /// Columns of NumPy arrays: each with its name, what it holds (`numbers`, `truths`, `times` or `texts`) and its values.
    #[staticmethod]
    fn from_columns(columns: Vec<(String, String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let read = |(name, kind, values): (String, String, Bound<'_, PyAny>)| {
            let values = match kind.as_str() {
                "numbers" => Values::Numbers(numpy::read(&values)?),
                "truths" => Values::Truths(values.extract::<Vec<Option<bool>>>()?),
                "times" => {
                    let missing = |time: i64| (time != i64::MIN).then_some(time);
                    Values::Times(numpy::read(&values)?.into_iter().map(missing).collect())
                }
                "texts" => Values::Texts(values.cast::<PyList>()?.extract()?),
                other => return Err(PyTypeError::new_err(format!("column {name}: {other} are not known"))),
            };
            Ok((name, values))
        };
        Ok(Self(columns.into_iter().map(read).collect::<PyResult<Vec<_>>>()?))
    }

    /// With the columns of another behind its own.
    fn beside(&self, other: &Self) -> Self {
        Self(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// Names of its columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.first().map_or(0, |(_, values)| values.len())
    }
}

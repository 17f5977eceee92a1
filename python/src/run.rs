//! Finished runs: answers, draws, densities, predictions, pages.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use vti::answer::Samples;
use vti_cli::api;
use vti_report::files::column_name;

use crate::density::Density;
use crate::failure::exception;
use crate::numpy;
use crate::space::Space;
use crate::table::Table;

/// A run in its directory.
#[pyclass(frozen, module = "vti._vti")]
pub(crate) struct Run {
    run: api::Run,
    /// The density, where it is one of Python's.
    density: Option<Density>,
}

impl Run {
    pub(crate) fn new(run: api::Run, density: Option<Density>) -> Self {
        Self { run, density }
    }

    /// Does something without the interpreter; what a density raised meanwhile is raised here.
    fn without_python<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&api::Run) -> Result<T, api::ApiError> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| work(&self.run));
        let raised = self.density.as_ref().and_then(|density| density.take_raised());
        match (done, raised) {
            (_, Some(raised)) => Err(raised),
            (done, None) => done.map_err(|error| exception(&error)),
        }
    }
}

#[pymethods]
impl Run {
    /// The run in a directory, with its density where that is one of Python's.
    #[staticmethod]
    #[pyo3(signature = (path, log_density=None, space=None))]
    fn open(path: PathBuf, log_density: Option<Py<PyAny>>, space: Option<&Space>) -> PyResult<Self> {
        let run = api::Run::open(&path).map_err(|error| exception(&error))?;
        let density = log_density.zip(space).map(|(function, space)| Density::new(function, space));
        let run = match &density {
            Some(density) => run.with_problem(density.problem()),
            None => run,
        };
        Ok(Self { run, density })
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.run.path()
    }

    /// All settings, as TOML.
    fn settings(&self) -> PyResult<String> {
        self.run.settings().map_err(|error| exception(&error))
    }

    /// `summary.json`.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        self.without_python(py, |run| Ok(run.answer()?.to_json().map_err(anyhow::Error::from)?))
    }

    /// The tables that the command prints.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        self.without_python(py, |run| Ok(vti_report::text(&run.answer()?)))
    }

    /// The page.
    fn page(&self, py: Python<'_>) -> PyResult<String> {
        self.without_python(py, api::Run::page)
    }

    /// One section of the page as SVG, if the page has it.
    fn figure(&self, py: Python<'_>, section: &str) -> PyResult<Option<String>> {
        self.without_python(py, |run| run.figure(section))
    }

    /// The draws that the answer was made of.
    fn draws<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let samples = self.without_python(py, api::Run::draws)?;
        columns(py, &samples)
    }

    /// Draws of the posterior that count alike.
    fn equal_draws<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyDict>> {
        let samples = self.without_python(py, |run| Ok(run.draws()?.resampled(count)))?;
        columns(py, &samples)
    }

    /// Fresh draws.
    fn sample<'py>(&self, py: Python<'py>, count: usize, batch: u32) -> PyResult<Bound<'py, PyDict>> {
        let samples = self.without_python(py, |run| run.sample(count, batch))?;
        columns(py, &samples)
    }

    /// Log densities at points.
    fn log_prob<'py>(&self, py: Python<'py>, points: &Table) -> PyResult<Bound<'py, PyDict>> {
        let points = points.handed_over()?;
        let found = self.without_python(py, |run| run.log_prob(&points))?;
        let columns = PyDict::new(py);
        columns.set_item("model", found.iter().map(|point| point.label.as_str()).collect::<Vec<_>>())?;
        columns.set_item("word", found.iter().map(|point| point.word.as_str()).collect::<Vec<_>>())?;
        let numbers = |of: fn(&api::PointDensity) -> f64| found.iter().map(of).collect::<Vec<f64>>();
        columns.set_item("log_q", numpy::floats(py, &numbers(|point| point.log_q), &[found.len()])?)?;
        columns.set_item("log_target", numpy::floats(py, &numbers(|point| point.log_target), &[found.len()])?)?;
        Ok(columns)
    }

    /// Predictions of new rows, and what could not be read of them.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        new: &Table,
        interval: f64,
    ) -> PyResult<(Bound<'py, PyDict>, Option<String>)> {
        let new = new.handed_over()?;
        let (found, note) = self.without_python(py, |run| run.predict(&new, interval))?;
        let columns = PyDict::new(py);
        for (name, numbers) in found {
            columns.set_item(name, numpy::floats(py, &numbers, &[numbers.len()])?)?;
        }
        Ok((columns, note))
    }
}

/// Draws as arrays: a row for each, and not a number where its model has no such parameter.
fn columns<'py>(py: Python<'py>, samples: &Samples) -> PyResult<Bound<'py, PyDict>> {
    let (rows, width) = (samples.len(), samples.names.len());
    let columns = PyDict::new(py);
    columns.set_item("names", samples.names.clone())?;
    columns.set_item("columns", samples.names.iter().map(|name| column_name(name)).collect::<Vec<_>>())?;
    columns.set_item("labels", samples.models.iter().map(|model| model.label.as_str()).collect::<Vec<_>>())?;
    columns.set_item("words", samples.models.iter().map(|model| model.word.as_str()).collect::<Vec<_>>())?;
    let places: Vec<i64> = samples.model.iter().map(|&model| model as i64).collect();
    columns.set_item("model", numpy::integers(py, &places, &[rows])?)?;
    let active: Vec<u8> =
        samples.models.iter().flat_map(|model| model.active.iter().map(|&active| u8::from(active))).collect();
    columns.set_item("active", numpy::truths(py, &active, &[samples.models.len(), width])?)?;
    columns.set_item("values", numpy::floats(py, &samples.values, &[rows, width])?)?;
    for (name, numbers) in
        [("log_q", &samples.log_q), ("log_target", &samples.log_target), ("log_weight", &samples.log_weight)]
    {
        columns.set_item(name, numpy::floats(py, numbers, &[numbers.len()])?)?;
    }
    Ok(columns)
}

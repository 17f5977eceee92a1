//! Runs in threads of their own: asked, watched, paused, stopped.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use vti_cli::api::{self, ApiError, Request, Watch};

use crate::density::Density;
use crate::failure::exception;
use crate::run::Run;
use crate::space::Space;
use crate::table::Table;

/// A run that is under way, or was.
#[pyclass(frozen, module = "vti._vti")]
pub(crate) struct Job {
    watch: Watch,
    density: Option<Density>,
    end: Arc<End>,
}

/// How a run ended, once it has.
#[derive(Default)]
struct End {
    result: Mutex<Option<Result<api::Run, ApiError>>>,
    is_over: Mutex<bool>,
    ended: Condvar,
}

fn hold<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Job {
    fn start(py: Python<'_>, request: Request, density: Option<Density>) -> PyResult<Self> {
        let job =
            Self { watch: density.as_ref().map(Density::watch).unwrap_or_default(), density, end: Arc::default() };
        let (watch, end) = (job.watch.clone(), Arc::clone(&job.end));
        let work = move || {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| request.run(&watch)));
            let broken =
                |_| ApiError { message: "vti broke; this is a defect of ours".into(), fault: api::Fault::Other };
            *hold(&end.result) = Some(result.unwrap_or_else(|panic| Err(broken(panic))));
            *hold(&end.is_over) = true;
            end.ended.notify_all();
        };
        py.detach(|| std::thread::Builder::new().name("vti".into()).spawn(work))?;
        Ok(job)
    }
}

#[pymethods]
impl Job {
    /// A run of a command, with a table where one is handed over.
    #[staticmethod]
    #[pyo3(signature = (arguments, table=None))]
    fn ask(py: Python<'_>, arguments: Vec<String>, table: Option<&Table>) -> PyResult<Self> {
        let request = Request::of_arguments(&arguments, table.map(Table::handed_over).transpose()?);
        Self::start(py, request.map_err(|error| exception(&error))?, None)
    }

    /// A run of a configuration, as JSON.
    #[staticmethod]
    #[pyo3(signature = (config, options, table=None))]
    fn configured(py: Python<'_>, config: &str, options: Vec<String>, table: Option<&Table>) -> PyResult<Self> {
        let request = Request::of_config(config, &options, table.map(Table::handed_over).transpose()?);
        Self::start(py, request.map_err(|error| exception(&error))?, None)
    }

    /// A run of a density of Python's.
    #[staticmethod]
    fn of_density(
        py: Python<'_>,
        log_density: Py<PyAny>,
        space: &Space,
        name: &str,
        title: Option<String>,
        options: Vec<String>,
    ) -> PyResult<Self> {
        let density = Density::new(log_density, space);
        let request = Request::of_problem(density.problem(), (name, title), &options);
        Self::start(py, request.map_err(|error| exception(&error))?, Some(density))
    }

    /// Waits so many seconds for its end; whether that has come.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        py.detach(|| {
            let is_over = hold(&self.end.is_over);
            let waited = self.end.ended.wait_timeout_while(is_over, limit, |is_over| !*is_over);
            *waited.unwrap_or_else(PoisonError::into_inner).0
        })
    }

    /// How far it has come.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let told = self.watch.told();
        let progress = PyDict::new(py);
        progress.set_item("text", told.text)?;
        progress.set_item("step", told.step)?;
        progress.set_item("steps", told.steps)?;
        progress.set_item("bound", told.bound)?;
        progress.set_item("entropy", told.entropy)?;
        progress.set_item("seconds_left", told.seconds_left)?;
        Ok(progress)
    }

    /// What the user should know about how the data were understood.
    fn notes(&self) -> Vec<String> {
        self.watch.notes()
    }

    fn pause(&self) {
        self.watch.pause();
    }

    fn go_on(&self) {
        self.watch.go_on();
    }

    #[getter]
    fn is_paused(&self) -> bool {
        self.watch.is_paused()
    }

    fn stop(&self) {
        self.watch.stop();
    }

    #[getter]
    fn is_stopped(&self) -> bool {
        self.watch.is_stopped()
    }

    /// The finished run, once; raises what went wrong.
    fn take(&self) -> PyResult<Run> {
        let result = hold(&self.end.result).take();
        let raised = self.density.as_ref().and_then(Density::take_raised);
        match (result, raised) {
            (_, Some(raised)) => Err(raised),
            (Some(Ok(run)), None) => Ok(Run::new(run, self.density.clone())),
            (Some(Err(error)), None) => Err(exception(&error)),
            (None, None) => Err(PyRuntimeError::new_err("the run is not over, or its result was taken already")),
        }
    }
}

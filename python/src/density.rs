//! Densities that are functions of Python's: one call for each batch, with the interpreter held for nothing else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use vti::problem::{BatchError, Constraint, Constraints, DensityBatch, DensityError, Problem};
use vti::space::ModelSpace;
use vti::workers::Workers;
use vti_cli::api::Watch;

use crate::numpy;
use crate::space::Space;

/// A density of Python's with its space; clones are of the same.
#[derive(Clone)]
pub(crate) struct Density(Arc<Asked>);

struct Asked {
    function: Py<PyAny>,
    space: Space,
    names: Vec<String>,
    /// Of each parameter, the free coordinate that says whether a model has it.
    free: Vec<usize>,
    /// Whether it gave values without gradients, which are then taken from differences.
    lacks_gradients: AtomicBool,
    /// What it raised.
    raised: Mutex<Option<PyErr>>,
    watch: Watch,
}

impl Density {
    pub(crate) fn new(function: Py<PyAny>, space: &Space) -> Self {
        let count = space.constraints.as_ref().map_or(space.models.max_dim(), Constraints::natural_len);
        let default = || (1..=count).map(|number| format!("theta{number}")).collect();
        Self(Arc::new(Asked {
            function,
            names: space.names.clone().unwrap_or_else(default),
            free: first_free(space),
            space: space.clone(),
            lacks_gradients: AtomicBool::new(false),
            raised: Mutex::new(None),
            watch: Watch::default(),
        }))
    }

    pub(crate) fn problem(&self) -> Arc<dyn Problem> {
        self.0.clone()
    }

    pub(crate) fn watch(&self) -> Watch {
        self.0.watch.clone()
    }

    /// What the function raised since it was asked last.
    pub(crate) fn take_raised(&self) -> Option<PyErr> {
        self.0.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Of each natural parameter, the first free coordinate of its constraint.
fn first_free(space: &Space) -> Vec<usize> {
    let Some(constraints) = &space.constraints else { return (0..space.models.max_dim()).collect() };
    let mut first = 0;
    let of_constraint = |constraint: &Constraint| {
        let places = std::iter::repeat_n(first, constraint.natural());
        first += constraint.free();
        places
    };
    constraints.list().into_iter().flatten().flat_map(of_constraint).collect()
}

/// Seconds that a batch of so many rows takes, with what the function itself takes.
#[pyfunction]
pub(crate) fn seconds_per_batch(
    py: Python<'_>,
    log_density: Py<PyAny>,
    space: &Space,
    rows: usize,
    batches: usize,
) -> PyResult<f64> {
    let density = Density::new(log_density, space);
    let (width, stride) = (density.0.width(), density.0.names.len());
    // Models with all parameters.
    let words: Vec<u16> = space.models.arities().iter().map(|arity| arity - 1).cycle().take(rows * width).collect();
    let theta: Vec<f64> = (0..rows * stride).map(|place| (place as f64).sin()).collect();
    let (dims, mut log_density, mut gradient) = (vec![stride; rows], vec![0.0; rows], vec![0.0; rows * stride]);
    let mut ask = || {
        let (log_density, gradient) = (&mut log_density[..], &mut gradient[..]);
        density.0.ask(DensityBatch { words: &words, width, theta: &theta, stride, dims: &dims, log_density, gradient })
    };
    let found = py.detach(|| {
        ask()?;
        let start = Instant::now();
        (0..batches).try_for_each(|_| ask())?;
        Ok::<f64, BatchError>(start.elapsed().as_secs_f64() / batches.max(1) as f64)
    });
    match density.take_raised() {
        Some(raised) => Err(raised),
        None => found.map_err(|error| PyValueError::new_err(error.to_string())),
    }
}

/// Rows as the function sees them: every parameter has its column, 0 where the model does not have it.
struct Rows {
    words: Vec<u16>,
    theta: Vec<f64>,
    mask: Vec<u8>,
}

/// What the function found.
struct Found {
    values: Vec<f64>,
    gradients: Option<Vec<f64>>,
}

/// Steps of differences: relative to a parameter, and to this where it is smaller.
const STEP: f64 = 1e-5;
const SMALL: f64 = 1e-2;

fn step(value: f64) -> f64 {
    STEP * value.abs().max(SMALL)
}

impl Asked {
    fn width(&self) -> usize {
        self.space.models.arities().len()
    }

    /// Calls the function once.
    fn call(&self, rows: &Rows) -> PyResult<Found> {
        let (width, count) = (self.width(), self.names.len());
        let number = rows.words.len() / width.max(1);
        Python::attach(|py| {
            let words = numpy::words(py, &rows.words, width)?;
            let theta = numpy::floats(py, &rows.theta, &[number, count])?;
            let mask = numpy::truths(py, &rows.mask, &[number, count])?;
            let found = self.function.bind(py).call1((words, theta, mask))?;
            let (values, gradients) = match found.cast::<PyTuple>() {
                Ok(both) if both.len() == 2 => (both.get_item(0)?, Some(both.get_item(1)?)),
                _ => (found, None),
            };
            let read = |what: &str, array: &Bound<'_, PyAny>, shape: &[usize]| {
                let (found, numbers) = numpy::read_floats(array)?;
                if found != shape {
                    let text = format!("log_density returned {what} of shape {found:?} for a batch of shape {shape:?}");
                    return Err(PyValueError::new_err(text));
                }
                Ok(numbers)
            };
            let values = read("values", &values, &[number])?;
            let gradients = gradients.filter(|gradients| !gradients.is_none());
            let gradients = gradients.map(|gradients| read("gradients", &gradients, &[number, count])).transpose()?;
            Ok(Found { values, gradients })
        })
    }

    /// Values and gradients of a batch, by one call; by two where it turns out that there are no gradients.
    fn evaluate(&self, batch: &mut DensityBatch<'_>) -> PyResult<()> {
        let count = self.names.len();
        let rows = self.lay_out(batch);
        if !self.lacks_gradients.load(Ordering::Relaxed) {
            let Found { values, gradients } = self.call(&rows)?;
            batch.log_density.copy_from_slice(&values);
            if let Some(gradients) = gradients {
                for row in 0..batch.rows() {
                    let to = batch.gradient[row * batch.stride..].iter_mut();
                    rows.active(row, count).zip(to).for_each(|(place, to)| *to = gradients[row * count + place]);
                }
                return Ok(());
            }
            self.lacks_gradients.store(true, Ordering::Relaxed);
        }
        let stacked = self.call(&rows.stacked(self.width(), count))?;
        let mut values = stacked.values.into_iter();
        let mut next = || values.next().unwrap_or(f64::NAN);
        for row in 0..batch.rows() {
            batch.log_density[row] = next();
            let to = batch.gradient[row * batch.stride..].iter_mut();
            for (place, to) in rows.active(row, count).zip(to) {
                let (above, below) = (next(), next());
                *to = (above - below) / (2.0 * step(rows.theta[row * count + place]));
            }
        }
        Ok(())
    }

    /// Rows with a column for each parameter.
    fn lay_out(&self, batch: &DensityBatch<'_>) -> Rows {
        let (count, number) = (self.names.len(), batch.rows());
        let mut active = vec![false; self.space.models.max_dim()];
        let (mut theta, mut mask) = (vec![0.0; number * count], vec![0; number * count]);
        for row in 0..number {
            self.space.models.mark_active(&batch.words[row * batch.width..][..batch.width], &mut active);
            let mut values = batch.theta[row * batch.stride..][..batch.dims[row]].iter();
            for (place, _) in self.free.iter().enumerate().filter(|(_, free)| active[**free]) {
                theta[row * count + place] = values.next().copied().unwrap_or(0.0);
                mask[row * count + place] = 1;
            }
        }
        Rows { words: batch.words.to_vec(), theta, mask }
    }
}

impl Rows {
    /// Columns of the parameters that a row's model has.
    fn active(&self, row: usize, count: usize) -> impl Iterator<Item = usize> {
        self.mask[row * count..][..count].iter().enumerate().filter(|(_, active)| **active == 1).map(|(place, _)| place)
    }

    /// Each row, and then itself with each of its parameters a step higher and lower.
    fn stacked(&self, width: usize, count: usize) -> Self {
        let mut stacked = Self { words: Vec::new(), theta: Vec::new(), mask: Vec::new() };
        for (row, word) in self.words.chunks_exact(width.max(1)).enumerate() {
            let theta = &self.theta[row * count..][..count];
            let mut push = |moved: Option<(usize, f64)>| {
                let start = stacked.theta.len();
                stacked.words.extend_from_slice(word);
                stacked.mask.extend_from_slice(&self.mask[row * count..][..count]);
                stacked.theta.extend_from_slice(theta);
                if let Some((place, by)) = moved {
                    stacked.theta[start + place] += by;
                }
            };
            push(None);
            for place in self.active(row, count) {
                push(Some((place, step(theta[place]))));
                push(Some((place, -step(theta[place]))));
            }
        }
        stacked
    }
}

impl Problem for Asked {
    fn space(&self) -> &dyn ModelSpace {
        &*self.space.models
    }

    fn log_density(&self, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        let mut log_density = [f64::NAN];
        let batch = DensityBatch {
            words: model,
            width: model.len(),
            theta,
            stride: theta.len(),
            dims: &[theta.len()],
            log_density: &mut log_density,
            gradient,
        };
        self.ask(batch).map_err(|BatchError { error, .. }| error)?;
        Ok(log_density[0])
    }

    fn log_density_batch(&self, batch: DensityBatch<'_>, _: &Workers) -> Result<(), BatchError> {
        self.ask(batch)
    }

    fn log_prior(&self, model: &[u16]) -> f64 {
        match &self.space.log_prior {
            Some(known) => known.get(model).copied().unwrap_or(f64::NEG_INFINITY),
            None => -self.space.models.log_count(),
        }
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.space.constraints.as_ref()
    }

    fn reference(&self) -> Option<Vec<(f64, f64)>> {
        self.space.reference.clone()
    }

    fn parameter_names(&self) -> Vec<String> {
        self.names.clone()
    }
}

impl Asked {
    /// What the function says; what it raises ends the run, and is kept.
    fn ask(&self, mut batch: DensityBatch<'_>) -> Result<(), BatchError> {
        self.evaluate(&mut batch).map_err(|raised| {
            let reason = Python::attach(|py| raised.value(py).to_string());
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(raised);
            BatchError { row: 0, error: DensityError::Fatal { reason } }
        })
    }
}

//! Spaces of models, and what else is known of a problem of Python's beside its density.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use vti::problem::{Constraint, Constraints};
use vti::space::{Catalogue, ModelSpace, OneOf, Product, Subsets};

use crate::numpy;

/// Up to so many models a prior is asked for once and for all.
const MAX_MODELS: usize = 1 << 16;

/// A space of models with their parameters.
#[pyclass(frozen, skip_from_py_object, module = "vti._vti")]
#[derive(Clone)]
pub(crate) struct Space {
    pub(crate) models: Arc<dyn ModelSpace>,
    /// Names of the parameters, where they have some.
    pub(crate) names: Option<Vec<String>>,
    pub(crate) constraints: Option<Constraints>,
    pub(crate) reference: Option<Vec<(f64, f64)>>,
    /// `log p(m)`, normalised, where it is not uniform.
    pub(crate) log_prior: Option<HashMap<Vec<u16>, f64>>,
}

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

impl Space {
    fn of(models: impl ModelSpace + 'static) -> Self {
        Self { models: Arc::new(models), names: None, constraints: None, reference: None, log_prior: None }
    }
}

#[pymethods]
impl Space {
    /// Subsets of named things that own so many coordinates each, after those that are always in.
    #[staticmethod]
    fn subsets(names: Vec<String>, blocks: Vec<usize>, always: usize, sizes: Option<(usize, usize)>) -> PyResult<Self> {
        let mut space = Subsets::of_blocks(always, &blocks).map_err(wrong)?.with_names(names).map_err(wrong)?;
        if let Some((low, high)) = sizes {
            space = space.with_sizes(low..=high).map_err(wrong)?;
        }
        Ok(Self::of(space))
    }

    /// One of several models, each with the coordinates it uses.
    #[staticmethod]
    fn one_of(coordinates: usize, models: Vec<Vec<u32>>, names: Option<Vec<String>>) -> PyResult<Self> {
        let space = OneOf::new(coordinates, models).map_err(wrong)?;
        Ok(Self::of(match names {
            Some(names) => space.with_names(names).map_err(wrong)?,
            None => space,
        }))
    }

    /// A model of each of two spaces.
    #[staticmethod]
    fn product(first: &Self, second: &Self) -> PyResult<Self> {
        Ok(Self::of(Product::new(Arc::clone(&first.models), Arc::clone(&second.models)).map_err(wrong)?))
    }

    /// The same with names, constraints (as JSON), a normal density for each free coordinate that reaches wherever parameters may
    /// lie, and a prior: a function of all words.
    fn described(
        &self,
        py: Python<'_>,
        names: Option<Vec<String>>,
        constraints: Option<&str>,
        reference: Option<Vec<(f64, f64)>>,
        log_prior: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut space = self.clone();
        let free = self.models.max_dim();
        if let Some(json) = constraints {
            let list: Vec<Constraint> =
                serde_json::from_str(json).map_err(|error| wrong(format!("constraints: {error}")))?;
            let constraints = Constraints::new(list).map_err(wrong)?;
            if constraints.free_len() != free {
                let found = constraints.free_len();
                return Err(wrong(format!("constraints for {found} free coordinates, but the space has {free}")));
            }
            space.constraints = Some(constraints);
        }
        let natural = space.constraints.as_ref().map_or(free, Constraints::natural_len);
        if let Some(names) = &names
            && names.len() != natural
        {
            return Err(wrong(format!("{} names of parameters, but there are {natural}", names.len())));
        }
        if let Some(reference) = &reference {
            if reference.len() != free {
                let found = reference.len();
                return Err(wrong(format!("a reference for {found} coordinates, but the space has {free}")));
            }
            if reference.iter().any(|(mean, sd)| !mean.is_finite() || !sd.is_finite() || *sd <= 0.0) {
                return Err(wrong("a reference needs finite means and positive standard deviations"));
            }
        }
        (space.names, space.reference) = (names, reference);
        space.log_prior = log_prior.map(|prior| space.prior(py, &prior)).transpose()?;
        Ok(space)
    }

    /// Symbols at each position of a word.
    #[getter]
    fn arities(&self) -> Vec<u16> {
        self.models.arities().to_vec()
    }

    /// Free coordinates of all models together.
    #[getter]
    fn coordinates(&self) -> usize {
        self.models.max_dim()
    }

    /// What people read for a word.
    fn label(&self, word: Vec<u16>) -> PyResult<String> {
        self.models.check(&word).map_err(wrong)?;
        Ok(self.models.label(&word))
    }

    fn __repr__(&self) -> String {
        format!("<space of words of {} symbols, {} coordinates>", self.models.arities().len(), self.models.max_dim())
    }
}

impl Space {
    /// Asks for the prior of all words, and normalises it.
    fn prior(&self, py: Python<'_>, function: &Bound<'_, PyAny>) -> PyResult<HashMap<Vec<u16>, f64>> {
        let catalogue = Catalogue::new(&*self.models, MAX_MODELS)
            .map_err(|error| wrong(format!("log_prior: {error}; add log p(m) to the log density instead")))?;
        let (words, width) = (catalogue.words(), self.models.arities().len());
        let shown = numpy::words(py, &words, width)?;
        let (shape, values) = numpy::read_floats(&function.call1((shown,))?)?;
        if shape != [catalogue.len()] || values.iter().any(|value| value.is_nan() || *value == f64::INFINITY) {
            let text = "log_prior must return a number below infinity for each of";
            return Err(wrong(format!("{text} {} words", catalogue.len())));
        }
        let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total = top + values.iter().map(|value| (value - top).exp()).sum::<f64>().ln();
        Ok(words.chunks_exact(width).map(<[u16]>::to_vec).zip(values.iter().map(|value| value - total)).collect())
    }
}

//! Problems from closures.

use super::{Constraints, DensityError, Problem, default_names};
use crate::space::ModelSpace;

/// A log prior given by a closure.
type LogPrior = Box<dyn Fn(&[u16]) -> f64 + Send + Sync>;

/// A problem whose density is a closure, see [`from_fn`].
pub struct FromFn<S, F> {
    space: S,
    log_density: F,
    log_prior: Option<LogPrior>,
    constraints: Option<Constraints>,
    names: Option<Vec<String>>,
    reference: Option<Vec<(f64, f64)>>,
}

impl<S: std::fmt::Debug, F> std::fmt::Debug for FromFn<S, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FromFn").field("space", &self.space).finish_non_exhaustive()
    }
}

/// A problem from a space and `log η(θ_m | m)`, which also writes its gradient. The prior over models is uniform, parameters
/// are real and called `theta1`, `theta2`, …, unless [`FromFn::with_log_prior`], [`FromFn::with_constraints`] and
/// [`FromFn::with_parameter_names`] say otherwise.
pub fn from_fn<S, F>(space: S, log_density: F) -> FromFn<S, F>
where
    S: ModelSpace,
    F: Fn(&[u16], &[f64], &mut [f64]) -> f64 + Send + Sync,
{
    FromFn { space, log_density, log_prior: None, constraints: None, names: None, reference: None }
}

impl<S, F> FromFn<S, F> {
    /// With a prior over models, normalised.
    pub fn with_log_prior(mut self, log_prior: impl Fn(&[u16]) -> f64 + Send + Sync + 'static) -> Self {
        self.log_prior = Some(Box::new(log_prior));
        self
    }

    /// With constraints on the parameters; the closure sees natural ones.
    pub fn with_constraints(mut self, constraints: Constraints) -> Self {
        self.constraints = Some(constraints);
        self
    }

    /// With names of all natural parameters, in the order of the space's coordinates.
    pub fn with_parameter_names(mut self, names: Vec<String>) -> Self {
        self.names = Some(names);
        self
    }

    /// With a mean and a standard deviation for each free coordinate, which together reach wherever parameters may lie: a check
    /// looks for the posterior from there.
    pub fn with_reference(mut self, reference: Vec<(f64, f64)>) -> Self {
        self.reference = Some(reference);
        self
    }
}

impl<S, F> Problem for FromFn<S, F>
where
    S: ModelSpace,
    F: Fn(&[u16], &[f64], &mut [f64]) -> f64 + Send + Sync,
{
    fn space(&self) -> &dyn ModelSpace {
        &self.space
    }

    fn log_density(&self, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        Ok((self.log_density)(model, theta, gradient))
    }

    fn log_prior(&self, model: &[u16]) -> f64 {
        self.log_prior.as_ref().map_or_else(|| -self.space.log_count(), |log_prior| log_prior(model))
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.constraints.as_ref()
    }

    fn reference(&self) -> Option<Vec<(f64, f64)>> {
        self.reference.clone()
    }

    fn parameter_names(&self) -> Vec<String> {
        self.names.clone().unwrap_or_else(|| default_names(self))
    }
}

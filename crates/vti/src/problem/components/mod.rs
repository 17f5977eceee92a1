//! How many? A likelihood over components of which a model has any number, with priors as objects and, if need be, no gradient.
//!
//! ```
//! use vti::prior::{HalfNormal, LogNormal, Poisson, Uniform};
//! use vti::problem::{self, Problem};
//! use vti::space::Components;
//!
//! // How many bumps are in a curve, where, and how high?
//! let y: Vec<f64> = (0..50).map(|i| (-0.5 * (0.2 * f64::from(i) - 4.0).powi(2)).exp()).collect();
//! let space = Components::new("peak", 0..=8)
//!     .each("position", Uniform(0.0, 10.0))
//!     .ordered()
//!     .each("height", LogNormal(0.0, 1.0))
//!     .with("noise", HalfNormal(1.0));
//! let problem = problem::components(space, Poisson(2.0), move |draw| {
//!     let (peaks, noise) = (draw.block("peak"), draw.global("noise"));
//!     let curve = |x: f64| peaks.iter().map(|peak| peak[1] * (-0.5 * (x - peak[0]).powi(2)).exp()).sum::<f64>();
//!     let off = |(i, y): (usize, &f64)| -0.5 * ((y - curve(0.2 * i as f64)) / noise).powi(2) - noise.ln();
//!     y.iter().enumerate().map(off).sum()
//! })?;
//! assert_eq!(problem.space().label(&[1]), "1 peak");
//! assert!((problem.log_prior(&[1]) - problem.log_prior(&[0]) - 2f64.ln()).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bijection;
mod draw;
mod jumps;
mod walk;

use std::sync::Arc;

pub use draw::{Block, Draw, direction};
pub use walk::ByParts;

use self::bijection::{ComponentBijection, log_prior};
use super::{BatchError, Constraints, DensityBatch, DensityError, Gradient, Jumps, Moves, Problem, row_by_row};
use crate::prior::{CountPrior, PriorError};
use crate::space::{Components, ModelSpace, SpaceError};
use crate::workers::Workers;

/// The likelihood of components, `log p(y | θ, m)`. One method is required; closures have it.
pub trait ComponentLikelihood: Send + Sync {
    /// `log p(y | θ, m)`.
    fn log_likelihood(&self, draw: &Draw<'_>) -> Result<f64, DensityError>;

    /// Whether [`ComponentLikelihood::with_gradient`] gives one. By default it does not.
    fn has_gradient(&self) -> bool {
        false
    }

    /// The same, and its gradient with respect to all parameters as [`Draw::theta`] has them; `gradient` starts at 0.
    fn with_gradient(&self, draw: &Draw<'_>, gradient: &mut [f64]) -> Result<f64, DensityError> {
        let _ = gradient;
        self.log_likelihood(draw)
    }

    /// All rows of one model at once: `theta` holds `values.len()` rows, one after another. True if it has done so; by default it
    /// does not, and each row is asked for on its own.
    fn batch(
        &self,
        space: &Components,
        word: &[u16],
        theta: &[f64],
        values: &mut [f64],
        workers: &Workers,
    ) -> Result<bool, DensityError> {
        let _ = (space, word, theta, values, workers);
        Ok(false)
    }

    /// Whether [`ComponentLikelihood::batch`] is to be asked.
    fn is_batched(&self) -> bool {
        false
    }

    /// The same through numbers that each component has of its own, where that is quicker.
    fn by_parts(&self) -> Option<&dyn ByParts> {
        None
    }
}

impl<F: Fn(&Draw<'_>) -> f64 + Send + Sync> ComponentLikelihood for F {
    fn log_likelihood(&self, draw: &Draw<'_>) -> Result<f64, DensityError> {
        Ok(self(draw))
    }
}

/// A problem of components, see [`components`].
pub struct ComponentProblem<L> {
    space: Components,
    likelihood: L,
    constraints: Constraints,
    /// Log probabilities of the numbers of each kind, by symbol.
    log_counts: Vec<Vec<f64>>,
}

impl<L> std::fmt::Debug for ComponentProblem<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ComponentProblem").field("space", &self.space).finish_non_exhaustive()
    }
}

/// Components that cannot be made a problem of.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ComponentsError {
    /// The space contradicts itself.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// A prior of numbers of components that is none.
    #[error("numbers of {kind}s: {error}")]
    Counts {
        /// The kind.
        kind: String,
        /// Why.
        error: PriorError,
    },
}

/// A problem from components with their priors, the prior of their number (for kinds that have none of their own), and the log
/// likelihood, of which no factor that depends on the model may be left out. It needs no gradient.
pub fn components<F: Fn(&Draw<'_>) -> f64 + Send + Sync>(
    space: Components,
    count_prior: impl Into<CountPrior>,
    log_likelihood: F,
) -> Result<ComponentProblem<F>, ComponentsError> {
    components_with(space, count_prior, log_likelihood)
}

/// The same of any likelihood: one that has a gradient, or answers whole batches.
pub fn components_with<L: ComponentLikelihood>(
    space: Components,
    count_prior: impl Into<CountPrior>,
    likelihood: L,
) -> Result<ComponentProblem<L>, ComponentsError> {
    let space = space.build()?;
    let count_prior = count_prior.into();
    let log_counts = space.kinds().iter().map(|kind| {
        let prior = kind.count_prior.as_ref().unwrap_or(&count_prior);
        let found = prior.log_probabilities(kind.counts.clone());
        found.map_err(|error| ComponentsError::Counts { kind: kind.name.clone(), error })
    });
    let log_counts = log_counts.collect::<Result<_, _>>()?;
    let constraints = Constraints::whole(Arc::new(ComponentBijection { space: space.clone() }));
    Ok(ComponentProblem { space, likelihood, constraints, log_counts })
}

impl<L: ComponentLikelihood> ComponentProblem<L> {
    /// The space, as components.
    pub fn components(&self) -> &Components {
        &self.space
    }

    /// The likelihood.
    pub fn likelihood(&self) -> &L {
        &self.likelihood
    }

    fn counts(&self, word: &[u16]) -> Vec<usize> {
        (0..self.space.kinds().len()).map(|kind| self.space.count(kind, word)).collect()
    }

    /// Rows of the same model at once.
    fn by_models(&self, batch: &mut DensityBatch<'_>, workers: &Workers) -> Result<(), BatchError> {
        let rows = batch.rows();
        let mut order: Vec<usize> = (0..rows).collect();
        let word = |row: usize| &batch.words[row * batch.width..][..batch.width];
        order.sort_by_key(|&row| word(row));
        for group in order.chunk_by(|&a, &b| word(a) == word(b)) {
            let mut theta = Vec::new();
            for &row in group {
                theta.extend_from_slice(&batch.theta[row * batch.stride..][..batch.dims[row]]);
            }
            let mut values = vec![f64::NAN; group.len()];
            let done = self.likelihood.batch(&self.space, word(group[0]), &theta, &mut values, workers);
            match done {
                Err(error @ DensityError::Fatal { .. }) => return Err(BatchError { row: group[0], error }),
                Err(DensityError::Undefined { .. }) => values.fill(f64::NAN),
                Ok(_) => {}
            }
            let counts = self.counts(word(group[0]));
            for (&row, value) in group.iter().zip(values) {
                let theta = &batch.theta[row * batch.stride..][..batch.dims[row]];
                batch.log_density[row] = value + log_prior(&self.space, &counts, theta);
            }
        }
        Ok(())
    }
}

impl<L: ComponentLikelihood> Problem for ComponentProblem<L> {
    fn space(&self) -> &dyn ModelSpace {
        &self.space
    }

    fn log_density(&self, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        let counts = self.counts(model);
        let draw = Draw { space: &self.space, word: model, theta };
        let log_likelihood = if self.likelihood.has_gradient() {
            let value = self.likelihood.with_gradient(&draw, gradient)?;
            bijection::add_slopes(&self.space, &counts, theta, gradient);
            value
        } else {
            self.likelihood.log_likelihood(&draw)?
        };
        Ok(log_likelihood + log_prior(&self.space, &counts, theta))
    }

    fn log_prior(&self, model: &[u16]) -> f64 {
        let log_counts = self.log_counts.iter().zip(model);
        log_counts.map(|(logs, &symbol)| logs.get(usize::from(symbol)).copied().unwrap_or(f64::NEG_INFINITY)).sum()
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    /// Free coordinates are standard normal under the prior.
    fn reference(&self) -> Option<Vec<(f64, f64)>> {
        Some(vec![(0.0, 1.0); self.space.max_dim()])
    }

    fn gradient(&self) -> Gradient {
        if self.likelihood.has_gradient() { Gradient::Exact } else { Gradient::None }
    }

    fn jumps(&self) -> Option<&dyn Jumps> {
        Some(&self.space)
    }

    fn moves(&self) -> Option<&dyn Moves> {
        self.by_parts().map(|_| self as &dyn Moves)
    }

    fn parameter_names(&self) -> Vec<String> {
        self.space.parameter_names()
    }

    fn log_density_batch(&self, mut batch: DensityBatch<'_>, workers: &Workers) -> Result<(), BatchError> {
        match self.likelihood.is_batched() {
            true => self.by_models(&mut batch, workers),
            false => row_by_row(self, batch, workers),
        }
    }
}

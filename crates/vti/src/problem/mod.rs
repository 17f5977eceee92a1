//! What is to be inferred: a space of models, their prior, and the joint density of data and parameters given a model.
//!
//! ```
//! use vti::problem::{self, Problem};
//! use vti::space::Subsets;
//!
//! // Two optional parameters with standard normal posteriors; each one multiplies the evidence by e.
//! let problem = problem::from_fn(Subsets::new(2)?, |_model, theta, gradient| {
//!     let mut log_density = 0.0;
//!     for (t, g) in theta.iter().zip(gradient) {
//!         *g = -t;
//!         log_density += 1.0 - 0.5 * t * t - 0.5 * std::f64::consts::TAU.ln();
//!     }
//!     log_density
//! });
//! assert_eq!(problem.log_prior(&[0, 1]), -4f64.ln());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blocks;
pub mod changepoints;
mod closure;
pub mod components;
mod constraint;
mod constraints;
pub mod dag;
mod fingerprint;
mod free;
mod gradient;
mod jumps;
pub mod layers;
pub mod mixture;
pub mod peaks;
mod preconditioner;
mod scales;
pub mod selection;

pub use blocks::{BlockBatch, BlockModels, BlockParticles, BlockRow, Blocks, KeyScores, ModelSums};
pub use closure::{FromFn, from_fn};
pub use components::{components, components_with};
pub use constraint::Constraint;
pub use constraints::{Bijection, ConstraintError, Constraints};
pub use fingerprint::Fingerprint;
pub(crate) use fingerprint::{Shape, random_word};
pub(crate) use free::{FreeChunk, FreeRows};
pub use gradient::{Gradient, GradientError, check_gradient};
pub use jumps::{BlockPool, Jump, Jumps, MoveSettings, Moved, Moves};
pub use preconditioner::Preconditioner;

use crate::space::ModelSpace;
use crate::stats::Evidence;
use crate::workers::Workers;

/// A question: which model, and which parameters?
///
/// Two methods are required. Training, checks and chains ask for whole batches, from one thread; by default their rows are
/// shared out over the host's threads. A problem that can do better (by matrix products over many rows, on a device, in another
/// language or on other machines) overrides [`Problem::log_density_batch`].
pub trait Problem: Send + Sync {
    /// The models.
    fn space(&self) -> &dyn ModelSpace;

    /// `log η(θ_m | m) = log p(y, θ_m | m)` and its gradient. `theta` holds the active coordinates of the model in order,
    /// within their constraints (on the edge where rounding takes them there); `gradient` is as long, and starts at 0.
    fn log_density(&self, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError>;

    /// `log p(m)`, normalised. Uniform by default.
    fn log_prior(&self, model: &[u16]) -> f64 {
        let _ = model;
        -self.space().log_count()
    }

    /// Whether [`Problem::log_density`] gives a gradient that may be followed. It does by default.
    fn gradient(&self) -> Gradient {
        Gradient::Exact
    }

    /// Jumps between models, for samplers, where coordinates of one model mean something else in another. By default coordinates
    /// that two models share stay, and others come and go.
    fn jumps(&self) -> Option<&dyn Jumps> {
        None
    }

    /// Moves that the problem makes by itself, of particles that start from its prior; these then need no other. None by default.
    fn moves(&self) -> Option<&dyn Moves> {
        None
    }

    /// Where parameters live; none when all are real. The free numbers of all constraints are the space's coordinates.
    fn constraints(&self) -> Option<&Constraints> {
        None
    }

    /// Mean and standard deviation of a normal density for each free coordinate, that together reach wherever parameters may lie
    /// in any model: the prior where it is such a density. Checks look for the posterior from there, whatever q is. None, the
    /// default, where nothing is known.
    fn reference(&self) -> Option<Vec<(f64, f64)>> {
        None
    }

    /// Where the parameters of a model roughly lie, in free coordinates; none where they are about standard normal, or where
    /// nothing is known. A pure function of the problem and the model: what was learned means nothing without it.
    fn preconditioner(&self, model: &[u16]) -> Option<Preconditioner> {
        let _ = model;
        None
    }

    /// The blocks of parameters that the density is a product over, where it is. The preconditioner of a model is then that of its
    /// blocks, and [`Problem::preconditioner`] is not asked.
    fn blocks(&self) -> Option<&dyn Blocks> {
        None
    }

    /// `log ∫ η(θ_m | m) dθ_m` of a model where that is known without draws: by formula, or by quadrature where parameters are few.
    /// By default that of its blocks, where these know theirs.
    fn evidence(&self, model: &[u16]) -> Option<Evidence> {
        let blocks = self.blocks().filter(|blocks| blocks.has_exact_evidences())?;
        let mut keys = vec![0; blocks.count()];
        blocks.keys(model, &mut keys);
        let of_blocks = keys.iter().enumerate().map(|(block, &key)| blocks.log_evidence_estimate(block, key));
        Some(Evidence::exactly(of_blocks.sum())).filter(|evidence| evidence.log_evidence.is_finite())
    }

    /// Names of all natural parameters.
    fn parameter_names(&self) -> Vec<String> {
        default_names(self)
    }

    /// [`Problem::log_density`] of many rows. An undefined density is not a number; an error that is fatal ends it all.
    fn log_density_batch(&self, batch: DensityBatch<'_>, workers: &Workers) -> Result<(), BatchError> {
        row_by_row(self, batch, workers)
    }
}

/// The densities of a batch, each on its own, shared out over the host's threads.
pub(crate) fn row_by_row<P: Problem + ?Sized>(
    problem: &P,
    batch: DensityBatch<'_>,
    workers: &Workers,
) -> Result<(), BatchError> {
    batch.share_out(workers, |rows| {
        for row in 0..rows.rows() {
            let (model, theta, gradient) = rows.row(row);
            rows.log_density[row] =
                or_undefined(problem.log_density(model, theta, gradient)).map_err(|error| BatchError { row, error })?;
        }
        Ok(())
    })
}

/// Names of natural parameters that have none: `theta1`, `theta2`, ….
fn default_names<P: Problem + ?Sized>(problem: &P) -> Vec<String> {
    let count = problem.constraints().map_or(problem.space().max_dim(), Constraints::natural_len);
    (1..=count).map(|number| format!("theta{number}")).collect()
}

/// A density that could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DensityError {
    /// It has no value there: the draw is dropped and counted.
    #[error("the log density is undefined: {reason}")]
    Undefined {
        /// Why.
        reason: String,
    },
    /// It never will: everything ends.
    #[error("the log density cannot be evaluated: {reason}")]
    Fatal {
        /// Why.
        reason: String,
    },
}

/// The value of a density, not a number where it is undefined.
pub(crate) fn or_undefined(density: Result<f64, DensityError>) -> Result<f64, DensityError> {
    match density {
        Err(DensityError::Undefined { .. }) => Ok(f64::NAN),
        other => other,
    }
}

/// A fatal error in a batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row {row}: {error}")]
pub struct BatchError {
    /// Which row.
    pub row: usize,
    /// What happened.
    pub error: DensityError,
}

/// Rows whose density is wanted.
#[derive(Debug)]
pub struct DensityBatch<'a> {
    /// Words, row-major, `width` symbols each.
    pub words: &'a [u16],
    /// Symbols of a word.
    pub width: usize,
    /// Natural parameters: row r owns the first `dims[r]` numbers from `r · stride` on.
    pub theta: &'a [f64],
    /// Distance between rows of `theta` and `gradient`.
    pub stride: usize,
    /// Natural parameters of each row.
    pub dims: &'a [usize],
    /// Written: `log η` of each row.
    pub log_density: &'a mut [f64],
    /// Written: gradients, laid out like `theta`.
    pub gradient: &'a mut [f64],
}

impl DensityBatch<'_> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.dims.len()
    }

    /// Model, parameters and gradient of a row.
    pub fn row(&mut self, row: usize) -> (&[u16], &[f64], &mut [f64]) {
        let place = row * self.stride..row * self.stride + self.dims[row];
        let model = &self.words[row * self.width..][..self.width];
        (model, &self.theta[place.clone()], &mut self.gradient[place])
    }

    /// Calls `work` with some rows at a time, side by side on the host's threads. How rows are grouped depends on their number
    /// alone. The row of an error is that of the whole batch.
    pub fn share_out(
        self,
        workers: &Workers,
        work: impl Fn(&mut DensityBatch<'_>) -> Result<(), BatchError> + Sync,
    ) -> Result<(), BatchError> {
        let Self { words, width, theta, stride, dims, log_density, gradient } = self;
        let together = rows_together(dims.len());
        let mut gradients = gradient.chunks_mut(together * stride.max(1));
        let groups = log_density.chunks_mut(together).enumerate().map(|(index, log_density)| {
            let first = index * together;
            let rows = first..first + log_density.len();
            DensityBatch {
                words: &words[rows.start * width..rows.end * width],
                width,
                theta: &theta[rows.start * stride..rows.end * stride],
                stride,
                dims: &dims[rows],
                log_density,
                // A space without parameters still has rows.
                gradient: gradients.next().unwrap_or_default(),
            }
        });
        let mut groups: Vec<DensityBatch<'_>> = groups.collect();
        workers.try_for_each(&mut groups, |index, rows| {
            work(rows).map_err(|BatchError { row, error }| BatchError { row: index * together + row, error })
        })
    }
}

/// How many rows of a batch are evaluated together: 64, or fewer where many threads would have nothing to do. Depends on the
/// size of the batch alone, so that results do not depend on threads.
fn rows_together(rows: usize) -> usize {
    rows.div_ceil(16).clamp(1, 64)
}

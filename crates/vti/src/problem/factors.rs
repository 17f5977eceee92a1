//! Densities that are products over blocks.

use super::{BatchError, DensityError, Preconditioner, or_undefined};
use crate::workers::Workers;

/// A density with a factor for each block of its space (see [`Blocks`](crate::space::Blocks)):
///
/// ```text
/// log η(θ_m | m) = Σ_b log η_b(θ_b | k_b(m)),   k_b(m) the block's key.
/// ```
///
/// In a graph the blocks are nodes and their keys are sets of parents: given the graph, each node's parameters have a
/// posterior of their own (paper, appendix mlpdagdescription).
pub trait Factors: Send + Sync {
    /// `log η_b(θ_b | k)` and its gradient, as [`Problem::log_density`](super::Problem::log_density) for the parameters of one
    /// block.
    fn log_density(&self, block: usize, key: u64, theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError>;

    /// [`Factors::log_density`] of all blocks of many rows, asked once for all of them, from one thread. By default rows are
    /// shared out over the host's threads. An undefined density is not a number; an error that is fatal ends it all.
    fn log_density_batch(&self, batch: FactorBatch<'_>, workers: &Workers) -> Result<(), BatchError> {
        batch.share_out(workers, |row| {
            let mut start = 0;
            for block in 0..row.keys.len() {
                let here = start..start + row.dims[block];
                start = here.end;
                let gradient = &mut row.gradient[here.clone()];
                row.log_density[block] =
                    or_undefined(self.log_density(block, row.keys[block], &row.theta[here], gradient))?;
            }
            Ok(())
        })
    }

    /// Where the parameters of a block roughly lie under a key; none as for [`Problem::preconditioner`](super::Problem::preconditioner).
    fn preconditioner(&self, block: usize, key: u64) -> Option<Preconditioner> {
        let _ = (block, key);
        None
    }

    /// A first estimate of `log ∫ η_b(θ_b | k) dθ_b`. Only differences between keys of a block matter.
    fn log_evidence_estimate(&self, block: usize, key: u64) -> f64 {
        let _ = (block, key);
        0.0
    }

    /// `ℓ_b(z | k)` of several z, one after another, and the gradients, where the parameters of a block are a function of standard
    /// normal numbers z, as many as there are parameters, such that
    ///
    /// ```text
    /// ∫ η_b(θ_b | k) dθ_b = E[exp ℓ_b(z | k)],   z ~ N(0, I):
    /// ```
    ///
    /// the likelihood, seen from a normal prior. A check then finds evidences from the prior as well, whatever q is. Not a number
    /// where it is undefined; false, the default, where there is no such way.
    fn log_likelihoods(&self, block: usize, key: u64, z: &[f64], values: &mut [f64], gradients: &mut [f64]) -> bool {
        let _ = (block, key, z, values, gradients);
        false
    }

    /// The block's part of `log p(m)`, which is `Σ_b` of these and a constant, and for [`Topology::Graphs`] minus the logarithm
    /// of the number of orders of the graph.
    fn log_prior(&self, block: usize, key: u64) -> f64;

    /// What the prior is about.
    fn topology(&self) -> Topology;
}

/// Rows whose densities are wanted factor by factor.
#[derive(Debug)]
pub struct FactorBatch<'a> {
    /// Blocks of a row.
    pub count: usize,
    /// Keys, one for each block of each row.
    pub keys: &'a [u64],
    /// Natural parameters of each block of each row.
    pub dims: &'a [usize],
    /// Natural parameters: those of row r stand from `r · stride` on, one block after another.
    pub theta: &'a [f64],
    /// Distance between rows of `theta` and `gradient`.
    pub stride: usize,
    /// Written: `log η_b` of each block of each row.
    pub log_density: &'a mut [f64],
    /// Written: gradients, laid out like `theta`.
    pub gradient: &'a mut [f64],
}

/// One row of a [`FactorBatch`].
#[derive(Debug)]
pub struct FactorRow<'a> {
    /// Keys of its blocks.
    pub keys: &'a [u64],
    /// Natural parameters of each block.
    pub dims: &'a [usize],
    /// Natural parameters, one block after another.
    pub theta: &'a [f64],
    /// Written: `log η_b`.
    pub log_density: &'a mut [f64],
    /// Written: gradients, laid out like `theta`.
    pub gradient: &'a mut [f64],
}

impl FactorBatch<'_> {
    /// Calls `work` with every row, side by side on the host's threads; the error of the first row that has one.
    pub fn share_out(
        self,
        workers: &Workers,
        work: impl Fn(&mut FactorRow<'_>) -> Result<(), DensityError> + Sync,
    ) -> Result<(), BatchError> {
        let Self { count, keys, dims, theta, stride, log_density, gradient } = self;
        let mut gradients = gradient.chunks_mut(stride.max(1));
        let rows = log_density.chunks_mut(count).enumerate().map(|(row, log_density)| FactorRow {
            keys: &keys[row * count..][..count],
            dims: &dims[row * count..][..count],
            theta: &theta[row * stride..][..stride],
            log_density,
            // A space without parameters still has rows.
            gradient: gradients.next().unwrap_or_default(),
        });
        let mut rows: Vec<FactorRow<'_>> = rows.collect();
        workers.try_for_each(&mut rows, |row, factors| work(factors).map_err(|error| BatchError { row, error }))
    }
}

/// What a product of factors is a distribution of, where a model is a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Pairs of an order and a graph along it: graphs with many orders weigh more.
    Orders,
    /// Graphs, their orders being equally likely.
    Graphs,
}

//! Densities that are products over blocks.

use super::{DensityError, Frame};

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

    /// Where the parameters of a block roughly lie under a key; none as for [`Problem::frame`](super::Problem::frame).
    fn frame(&self, block: usize, key: u64) -> Option<Frame> {
        let _ = (block, key);
        None
    }

    /// A first guess of `log ∫ η_b(θ_b | k) dθ_b`. Only differences between keys of a block matter.
    fn guess(&self, block: usize, key: u64) -> f64 {
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

/// What a product of factors is a distribution of, where a model is a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Pairs of an order and a graph along it: graphs with many orders weigh more.
    Orders,
    /// Graphs, their orders being equally likely.
    Graphs,
}

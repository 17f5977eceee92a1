//! Jumps between models whose coordinates mean something else in each.

use crate::random::Stream;

/// Blocks of parameters that other particles have, on a scale on which they are standard normal under the prior: new components are
/// proposed near them.
#[derive(Clone, Debug, Default)]
pub struct BlockPool {
    /// Of each kind of component: the standard scores of blocks.
    pub kinds: Vec<Vec<Vec<f64>>>,
}

/// What a jump did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// A component was born.
    Birth,
    /// One died.
    Death,
    /// One became two.
    Split,
    /// Two became one.
    Merge,
}

/// Jumps between models (Green 1995), in natural parameters.
pub trait Jumps: Send + Sync {
    /// Replaces a model and its parameters by others, and says how: with u the numbers that were drawn on the way and u′ those of the
    /// way back, `log [g(u′) / g(u) · |∂(θ′, u′)/∂(θ, u)|]`. None where nothing can be proposed; both are then as they were.
    fn propose(
        &self,
        word: &mut [u16],
        theta: &mut Vec<f64>,
        pool: &BlockPool,
        stream: &mut Stream,
    ) -> Option<(Jump, f64)>;

    /// Adds the blocks of a model to a pool.
    fn collect(&self, word: &[u16], theta: &[f64], pool: &mut BlockPool);
}

/// How far a particle is moved, and towards what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveSettings {
    /// The exponent of the likelihood and of the prior of models.
    pub beta: f64,
    /// How often another number of components is proposed.
    pub jumps: usize,
    /// How often every parameter is.
    pub scans: usize,
}

/// What became of a particle that was moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// `log p(y | θ, m)` where it is now.
    pub log_likelihood: f64,
    /// How often a likelihood was asked for.
    pub looks: usize,
}

/// Moves that a problem makes by itself, because it need not look at the whole of its density for each of them.
pub trait Moves: Send + Sync {
    /// Moves a particle, in natural parameters, so that `p(θ | m) [p(m) p(y | θ, m)]^β` stays as it is.
    fn walk(
        &self,
        word: &mut [u16],
        theta: &mut Vec<f64>,
        pool: &BlockPool,
        settings: &MoveSettings,
        stream: &mut Stream,
    ) -> Moved;
}

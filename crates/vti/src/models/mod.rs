//! Distributions over models `q_ψ(m)` (paper, section 3).
//!
//! | distribution | for | learns by |
//! |---|---|---|
//! | [`Categorical`] | spaces that can be enumerated, to 2²⁰ models | score-function gradients of its logits |
//! | [`Autoregressive`] | any space | score-function gradients of a MADE+ ([`WordNet`]) |
//! | [`Surrogate`] | spaces that can be enumerated | Bayesian regression of −ℓ(m; φ) on the model |
//! | [`Modular`] | models whose density is a product over blocks, as that of graphs is over nodes | the same for each block and its key |
//!
//! All are behind [`ModelDistribution`]. Words that a space forbids have probability exactly 0 and are never drawn.

mod autoregressive;
mod categorical;
mod choose;
mod control_variate;
mod descent;
mod modular;
mod surrogate;
mod word_probabilities;
mod word_workspace;
mod words;

pub use autoregressive::Autoregressive;
pub use categorical::Categorical;
pub(crate) use choose::resolve;
pub use choose::{
    AutoregressiveSettings, CategoricalSettings, Chosen, LearningSettings, ModelsError, ModelsSettings, build,
};
pub use control_variate::{ControlVariate, ControlVariateKind};
pub use modular::{BlockProbabilities, BlockScores, Modular, ModularSettings};
pub use surrogate::{Covariance, Surrogate, SurrogateSettings};
pub use word_workspace::{WordPasses, WordWorkspace};
pub use words::{DigitInput, WordError, WordNet, WordNetSettings};

use std::ops::ControlFlow;
use std::time::Instant;

use crate::device::{Device, DeviceError, UpdateRecord};
use crate::objective;
use crate::random::{Purpose, Stream};
use crate::space::Catalogue;
use crate::state::{State, StateError};

/// How the first q is made, where that takes long.
pub struct Preparing<'a> {
    /// When it has taken long enough: what is there by then has to do.
    pub until: Option<Instant>,
    /// Hears several times a second how many parts of how many are done, and may end it all.
    pub watch: &'a mut dyn FnMut(usize, usize) -> ControlFlow<()>,
}

impl std::fmt::Debug for Preparing<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Preparing").field("until", &self.until).finish_non_exhaustive()
    }
}

/// What became of a preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// All is there.
    Whole,
    /// There was no time for some of it.
    Cut,
}

/// A distribution over the words of a space, which can be drawn from, evaluated and improved.
///
/// Words are given row-major, one after another; `log_q.len()` says how many.
pub trait ModelDistribution<D: Device>: Send + Sync {
    /// Makes the first q, where that takes long: called before anything else, again and again until it is made. Whoever looks on may
    /// end it; then nothing has changed.
    fn prepare(&mut self, _device: &D, _preparing: &mut Preparing<'_>) -> ControlFlow<(), Prepared> {
        ControlFlow::Continue(Prepared::Whole)
    }

    /// Draws a word for every row, row r from the random stream of `(draw, r)`, with its log probability.
    fn sample(&self, device: &D, draw: Draw, words: &mut [u16], log_q: &mut [f64]) -> Result<(), ModelsError>;

    /// Log probabilities of words; −∞ for forbidden ones.
    fn log_prob(&self, device: &D, words: &[u16], log_q: &mut [f64]) -> Result<(), ModelsError>;

    /// Learns from a batch that was drawn by [`ModelDistribution::sample`] and scored.
    fn update(&mut self, device: &D, batch: &ScoredBatch<'_>) -> Result<ModelUpdate, ModelsError>;

    /// Fits q(m) to words that did not come from it, with weights that sum to 1: minimises the forward divergence `−Σ w log q(m)`,
    /// while a share [`KEPT_SHARE`] stays as it was, so that q gives nothing up. False where it cannot.
    fn fit(&mut self, _device: &D, _draw: Draw, _words: &[u16], _weights: &[f64]) -> Result<bool, ModelsError> {
        Ok(false)
    }

    /// Takes scores of blocks that were found without it, those of keys that it never tried included. False where it cannot.
    fn fit_blocks(&mut self, _device: &D, _scores: &BlockScores) -> bool {
        false
    }

    /// What was seen of the gradients of ψ, where it learns by gradients.
    fn gradients(&self, _device: &D) -> Result<Option<UpdateRecord>, DeviceError> {
        Ok(None)
    }

    /// Everything that [`ModelDistribution::restore`] needs to go on bit for bit.
    fn state(&self, device: &D) -> Result<State, DeviceError>;

    /// Goes on from a kept state.
    fn restore(&mut self, device: &D, state: &mut State) -> Result<(), StateError>;

    /// Learning is over: what was only there to explore (an upper confidence bound) goes.
    fn end_exploration(&mut self, _device: &D) {}

    /// Scores of blocks and their keys, where q is a product of them.
    fn block_scores(&self) -> Option<&BlockScores> {
        None
    }

    /// All words, where they are numbered; their log probabilities are then cheap.
    fn catalogue(&self) -> Option<&Catalogue> {
        None
    }
}

/// The share of q(m) that stays as it was when q is fitted to words that did not come from it.
pub const KEPT_SHARE: f64 = 0.02;

/// Names the random streams of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The run's seed.
    pub seed: u64,
    /// What the draws are for.
    pub purpose: Purpose,
    /// The step, or the number of the batch.
    pub step: u64,
}

impl Draw {
    /// The stream of a row.
    pub fn row(self, row: usize) -> Stream {
        Stream::new(self.seed, self.purpose, self.step, row as u64)
    }
}

/// A batch of models with what was found out about them.
#[derive(Clone, Copy, Debug)]
pub struct ScoredBatch<'a> {
    /// Words, row-major.
    pub words: &'a [u16],
    /// `log q_ψ(m)`.
    pub log_q: &'a [f64],
    /// `log p(m)`.
    pub log_prior: &'a [f64],
    /// `log h_φ(z | m)`, a noisy value of ℓ(m; φ); meaningless in rows that are not kept.
    pub log_h: &'a [f64],
    /// Rows that are finite.
    pub kept: &'a [bool],
    /// What was found out about the blocks of each row, where they are known one by one.
    pub blocks: Option<BlockLosses<'a>>,
    /// How fast learning goes at this step, from 1 (at its peak) to 0: a factor of learning rates.
    pub pace: f64,
    /// How much the entropy of q may change, in nats.
    pub information_limit: f64,
}

/// What was found out about blocks: one after another for each row.
#[derive(Clone, Copy, Debug)]
pub struct BlockLosses<'a> {
    /// Their keys.
    pub keys: &'a [u64],
    /// `log h_b`, a noisy value of the block's part of ℓ(m; φ).
    pub log_h: &'a [f64],
}

impl ScoredBatch<'_> {
    /// The loss of each kept row, `log h + log q − log p` (paper, section 3.3, "Estimation via Monte Carlo gradients").
    fn losses(&self) -> impl Iterator<Item = Option<f64>> + '_ {
        let rows = self.log_h.iter().zip(self.log_q).zip(self.log_prior).zip(self.kept);
        rows.map(|(((log_h, log_q), log_prior), &kept)| kept.then(|| objective::loss(*log_h, *log_q, *log_prior)))
    }
}

/// What an update did.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct ModelUpdate {
    /// Which share of the step the information limit let through; 0 when it was discarded.
    pub scale: f64,
}

//! How far the answer can be trusted, and a correction of it.
//!
//! Draws from q are weighted by `w = p(m) η(θ | m) / q(m, θ)`. The weights say how good q is (Pareto k̂), what the evidence
//! is, and what the model probabilities should have been. Where they are too uneven to be used, chains with q as their
//! proposal ([`refine`]) take over. Where the density is a product over blocks, each has weights of its own ([`BlockCheck`]), or an
//! evidence found from the prior ([`evidence`](crate::evidence)).

mod annealing;
mod beyond;
mod blocks;
mod bridge;
mod chain;
mod correction;
mod error;
mod evidences;
mod groups;
mod importance;
mod lesson;
mod line;
mod opinion;
mod particles;
mod refine;
mod strata;
mod verdict;

pub use blocks::{BlockCheck, BlockCorrection};
pub use correction::{Correction, ModelCorrection};
pub use error::CheckError;
pub use importance::{Check, CheckSettings, Watch, check, check_onwards};
pub use lesson::{Stage, check_and_learn};
pub use opinion::{Depth, Opinion, OpinionSettings};
pub use particles::Particles;
pub use refine::{LocalMove, RefineSettings, Refined, refine, refine_watched};
pub use verdict::{Verdict, VerdictKind};

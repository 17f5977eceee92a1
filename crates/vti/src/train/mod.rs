//! Learning: gradients of the loss, and optimisers that follow them.

mod fit;
mod optimiser;

pub use fit::{FitStep, FlowFit};
pub use optimiser::{AdamW, AdamWSettings, OptimiserError};

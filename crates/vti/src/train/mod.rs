//! Learning: optimisers that move parameters by gradients.

mod optimiser;

pub use optimiser::{AdamW, AdamWSettings};

//! Distributions over models.

mod autoregressive;

pub use autoregressive::{Autoregressive, AutoregressiveSettings, WordError, WordWorkspace};

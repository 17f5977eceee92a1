//! Variational transdimensional inference: one density `q(m) q(θ_m | m)` over models of different dimension.
//!
//! Data flows one way: [`engine`] → [`flow`] → [`models`] → [`train`]; modules import only from earlier ones.
//! [`check`] says how far draws can be trusted.
//!
//! The mathematics is that of "Variational Transdimensional Inference" (Davies, Mackinlay, Oliveira and Sisson); names
//! follow its symbols, and comments name the equation or section.

pub mod check;
pub mod engine;
pub mod flow;
pub mod models;
pub mod random;
pub mod train;

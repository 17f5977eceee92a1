//! Variational transdimensional inference: one density `q(m) q(θ_m | m)` over models of different dimension.
//!
//! Data flows one way: [`space`] → [`problem`], and [`engine`] → [`flow`] → [`models`] → [`train`]; modules import only from
//! earlier ones.
//!
//! The mathematics is that of "Variational Transdimensional Inference" (Davies, Mackinlay, Oliveira and Sisson); names
//! follow its symbols, and comments name the equation or section.

pub mod engine;
pub mod flow;
pub mod models;
pub mod problem;
pub mod random;
pub mod space;
pub mod train;

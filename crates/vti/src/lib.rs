//! Variational transdimensional inference: one density `q(m) q(θ_m | m)` over models of different dimension.
//!
//! Data flows one way; modules import only from earlier ones:
//!
//! | module | what |
//! |---|---|
//! | [`engine`], [`random`], [`state`] | arithmetic, random streams, what must be kept |
//! | [`space`] | models as words of symbols |
//! | [`optimise`] | optimisers and schedules |
//! | [`flow`] | `q_φ(θ_m ∣ m)`: CoSMIC flows |
//! | [`models`] | `q_ψ(m)`: distributions over models |
//!
//! The mathematics is that of "Variational Transdimensional Inference" (Davies, Mackinlay, Oliveira and Sisson); names
//! follow its symbols, and comments name the equation or section.

pub mod engine;
pub mod flow;
pub mod models;
pub mod optimise;
pub mod random;
pub mod space;
pub mod state;

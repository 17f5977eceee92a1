//! Variational transdimensional inference: one density `q(m) q(θ_m | m)` over models of different dimension.
//!
//! Data flows one way; modules import only from earlier ones, in the order of rows and within each (`cargo xtask check`):
//!
//! | module | what |
//! |---|---|
//! | [`simd`], `triangular`, [`workers`], [`random`], [`stats`] | vector kernels, small matrices, the host's threads, random streams, diagnostics of weights and chains |
//! | [`device`] | buffers and network operations |
//! | [`state`], [`store`] | what must be kept, and how |
//! | [`objective`], [`optimise`] | the loss and the bound; optimisers and schedules |
//! | [`graph`] | directed graphs: orders, equivalence classes, distances |
//! | [`prior`] | prior distributions: densities, bounds, draws, and the bijections from standard normal numbers |
//! | [`space`], [`problem`] | models as words of symbols; what is to be inferred |
//! | [`predictive`] | whether a model fits the data: rows predicted without themselves |
//! | [`smc`] | the posterior over all models, or of one, without q, by tempered particles |
//! | [`evidence`] | evidences of models and of blocks, in the cheapest way |
//! | [`flow`] | `q_φ(θ_m ∣ m)`: CoSMIC flows |
//! | [`models`] | `q_ψ(m)`: distributions over models |
//! | [`family`] | both together |
//! | [`posterior`] | what was learned: draws, densities, model probabilities |
//! | [`train`] | learning it |
//! | [`search`] | chains over models, weighed by evidences, whatever was learned |
//! | [`check`] | how far it can be trusted, and a correction of it |
//! | [`rjmcmc`] | reversible jump chains to compare with |
//! | [`memory`] | how much a run will need, before it asks for any |
//! | [`answer`] | what was found, in the units of the data |
//!
//! The mathematics is that of
//!
//! > Laurence Davies, Dan Mackinlay, Rafael Oliveira and Scott A. Sisson. *Variational Transdimensional Inference*. Preprint,
//! > arXiv:2506.04749, version 3, 2025.
//!
//! which comments call the paper. Names follow its symbols; comments name the equation by its number and its label, or the
//! section. Words that stand for one concept each are listed in `docs/notation.md`.

#[cfg(test)]
#[macro_use]
#[path = "../tests/support/wrapped_dag.rs"]
mod wrapped_dag;

pub mod answer;
pub mod check;
pub mod device;
pub mod evidence;
pub mod family;
pub mod flow;
pub mod graph;
pub mod memory;
pub mod models;
pub mod objective;
pub mod optimise;
pub mod posterior;
pub mod predictive;
pub mod prior;
pub mod problem;
pub mod random;
pub mod rjmcmc;
pub mod search;
pub mod simd;
pub mod smc;
pub mod space;
pub mod state;
pub mod stats;
pub mod store;
pub mod train;
mod triangular;
pub mod workers;

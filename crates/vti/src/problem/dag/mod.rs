//! Causal graphs: which variables depend on which, and how (paper, section "Bayesian structure learning via non-linear
//! directed acyclic graph discovery").

mod likelihood;

pub use likelihood::{MlpLikelihood, Scratch};

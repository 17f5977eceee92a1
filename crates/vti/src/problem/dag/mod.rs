//! Causal graphs: which variables depend on which, and how (paper, section "Bayesian structure learning via non-linear
//! directed acyclic graph discovery").

mod layout;
mod likelihood;
mod linear;
mod mean_field;
mod peak;

pub use likelihood::{MlpLikelihood, Scratch};
pub use linear::LinearLikelihood;
pub use mean_field::{MeanField, Moments};
pub use peak::{Peak, Start};

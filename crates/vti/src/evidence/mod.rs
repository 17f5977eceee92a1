//! Evidences `log p(y | m) = log ∫ η(θ_m | m) dθ_m` of models, and of blocks of a density.
//!
//! An [`Evidence`] is a number with its standard error, the way it was found and what that cost. [`Evidences`] finds those of any
//! models of any problem, in the cheapest way there is: by formula, by quadrature where parameters are few, and otherwise by particles
//! that are annealed from a reference into the posterior of each model ([`smc`](crate::smc)). The reference is the prior where
//! that is known, so modes that q has lost are found all the same. Importance weights of draws from q give evidences too, those of a
//! [`check`](crate::check).

mod evidences;

pub use crate::smc::{AnnealSettings, ParticleMove};
pub use crate::stats::{Evidence, EvidenceMethod};
pub use evidences::Evidences;

//! Numbers about numbers: importance weights, chains, estimates with standard errors.

mod chains;
mod estimate;
mod evidence;
mod psis;
mod temper;

pub use chains::{Diagnosis, effective_sample_size, share_error, split_rhat, standard_error};
pub use estimate::{Estimate, EstimateError, Stratum, log_total, ratio, shares};
pub use evidence::{Evidence, EvidenceMethod};
pub use psis::{Smoothed, WeightError, effective_draws, fit_generalised_pareto, log_sum_exp, smooth, threshold};
pub(crate) use temper::{next_beta, resample};

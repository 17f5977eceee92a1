//! Numbers about numbers: importance weights, chains, estimates with standard errors, tail probabilities.

mod chains;
mod estimate;
mod evidence;
mod psis;
mod tails;
mod temper;

pub use chains::{Diagnosis, effective_sample_size, share_error, split_rhat, standard_error};
pub use estimate::{Estimate, EstimateError, Stratum, log_total, ratio, shares};
pub use evidence::{Evidence, EvidenceMethod};
pub use psis::{Smoothed, WeightError, effective_draws, fit_generalised_pareto, log_sum_exp, smooth, threshold};
pub use tails::{
    chi_squared_tail, kolmogorov_tail, negative_binomial_cdf, normal_cdf, normal_quantile, poisson_cdf, student_t_cdf,
    two_sided,
};
pub(crate) use tails::{digamma, ln_gamma};
pub(crate) use temper::{next_beta, resample, systematic};

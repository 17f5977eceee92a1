//! Numbers about numbers: importance weights, chains, estimates with standard errors, tail probabilities.

mod bridge;
mod chains;
mod estimate;
mod evidence;
mod incomplete;
mod normal;
mod psis;
mod tails;
mod temper;

pub(crate) use bridge::Bridge;
pub use chains::{Diagnosis, effective_sample_size, share_error, split_rhat, standard_error};
pub use estimate::{Estimate, EstimateError, Stratum, log_total, ratio, shares};
pub use evidence::{Evidence, EvidenceMethod};
pub(crate) use incomplete::{
    beta_tails, beta_tails_at_logit, digamma, gamma_tails, gamma_tails_at_log, ln_beta, ln_gamma, log_gamma_quantile,
    log_logistic, logistic, logit_beta_quantile,
};
pub(crate) use normal::{Tails, normal_log_density};
pub use normal::{normal_cdf, normal_log_cdf, normal_quantile, normal_quantile_of_log, two_sided};
pub use psis::{Smoothed, WeightError, effective_draws, fit_generalised_pareto, log_sum_exp, smooth, threshold};
pub use tails::{chi_squared_tail, kolmogorov_tail, negative_binomial_cdf, poisson_cdf, student_t_cdf};
pub(crate) use temper::{next_beta, resample, systematic};

//! The objective (paper, section 2, Corollary 2.3): the loss and the bound, once for all who need them.
//!
//! ```text
//! L(ψ, φ) = E_{m ~ q_ψ} E_{z ~ ν} [ log h_φ(z | m) + log q_ψ(m) − log p(m) ],
//! log h_φ(z | m) = log ν(z_m) − log |det ∇T_φ(z | m)| − log η(θ_m | m),   θ_m = T_φ(z | m).
//! ```
//!
//! `−L` is a lower bound of the log evidence, and equal to it where q is the posterior. Its gradient with respect to φ is that
//! of the mean of `log h`, through the reparameterisation `θ = T_φ(z | m)`:
//!
//! ```text
//! ∂ log h/∂φ = −∂ log |det ∇T_φ|/∂φ − (∂ log η/∂θ) ∂θ/∂φ                    all of it, or
//!              (∂ log q_φ(θ | m)/∂θ − ∂ log η/∂θ) ∂θ/∂φ                     along the path,
//! ```
//!
//! where the second leaves out the score of q at fixed θ, whose mean is 0 (Roeder, Wu and Duvenaud 2017). With respect to ψ
//! it is the score-function gradient `E[(log h + log q − log p) ∂ log q_ψ/∂ψ]`.

//!
//! The other way round, from draws of the posterior that did not come from q, the forward divergence `−E_p[log q(m, θ)]` is
//! minimised. With z = T_φ⁻¹(θ) moving so that θ stays, the gradient of its term with respect to φ is
//!
//! ```text
//! −∂ log q_φ(θ | m)/∂φ = ∂ log |det ∇T_φ|/∂φ + (∂ log q_φ(θ | m)/∂θ) ∂θ/∂φ,
//! ```
//!
//! the very part whose mean over q is 0: derivatives at fixed z once more, with the score in place of that of the target.

use crate::stats::Estimate;

/// `log h_φ(z | m)` from `log q(θ | m) = log ν(z) − log |det ∇T|` and `log η(θ | m)`.
pub fn log_h(log_q_theta: f64, log_eta: f64) -> f64 {
    log_q_theta - log_eta
}

/// The loss of a draw, whose mean over draws from q is `L`.
pub fn loss(log_h: f64, log_q_model: f64, log_prior: f64) -> f64 {
    log_h + log_q_model - log_prior
}

/// The term of a draw in the bound `−L`: minus its loss.
pub fn bound_term(log_h: f64, log_q_model: f64, log_prior: f64) -> f64 {
    log_prior - log_q_model - log_h
}

/// `∂ log h/∂θ` at fixed φ: the score of q, where the gradient goes along the path, minus that of the target to the power β.
pub fn theta_gradient(score: Option<f64>, beta: f64, target_score: f64) -> f64 {
    score.unwrap_or(0.0) - beta * target_score
}

/// `∂ log h/∂ log |det ∇T|`, of which a gradient along the path knows nothing: its part is in the score.
pub fn log_det_gradient(along_path: bool) -> f64 {
    if along_path { 0.0 } else { -1.0 }
}

/// The bound from terms `log p(m) η(θ | m) − log q(m, θ)` of draws from q, over those that are numbers.
pub fn bound(terms: impl Iterator<Item = f64> + Clone) -> Estimate {
    let terms = terms.filter(|term| !term.is_nan());
    let count = terms.clone().count() as f64;
    let value = terms.clone().sum::<f64>() / count;
    let variance = terms.map(|x| (x - value) * (x - value)).sum::<f64>() / (count - 1.0).max(1.0);
    Estimate { value, se: (variance / count).sqrt() }
}

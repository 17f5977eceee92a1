//! Parts of a whole, from normal numbers.

use super::PriorError;
use super::error::positive;
use crate::stats::{
    Tails, beta_tails_at_logit, ln_beta, ln_gamma, log_logistic, logit_beta_quantile, normal_log_cdf,
    normal_log_density,
};

/// The symmetric Dirichlet distribution of any number n of shares that sum to 1, by its concentration a.
///
/// n − 1 standard normal numbers give n shares by breaking a stick: share i is the part xᵢ of what the shares before it left,
/// xᵢ being beta with a and a (n − 1 − i), at the quantile Φ(zᵢ); the last share is the rest. With a = 1 all shares that sum to
/// 1 are equally probable, and what is left is a power: 1 − xᵢ = Φ(−zᵢ)^(1/(n − 1 − i)).
///
/// Shares are also the spacings of ordered positions: with a = 1 the running sums of k + 1 shares are k uniform numbers in
/// order.
///
/// ```
/// use vti::prior::Dirichlet;
/// let (z, mut shares) = ([0.3, -1.2], [0.0; 3]);
/// let prior = Dirichlet(1.0);
/// prior.from_normal(&z, &mut shares);
/// assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-15);
/// let mut again = [0.0; 2];
/// prior.to_normal(&shares, &mut again);
/// assert!((again[0] - 0.3).abs() < 1e-12 && (again[1] + 1.2).abs() < 1e-12);
/// // Of three shares every pair is equally probable: a triangle of area 1/2.
/// assert!((prior.log_density(&shares) - 2f64.ln()).abs() < 1e-14);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dirichlet(pub f64);

/// How far from 1 shares may sum to.
const SUM_TOLERANCE: f64 = 1e-6;

// `from_normal` is the way from z to the shares, beside `to_normal`; it makes no object.
#[allow(clippy::wrong_self_convention)]
impl Dirichlet {
    /// Whether there is such a distribution.
    pub fn check(&self) -> Result<(), PriorError> {
        positive("dirichlet", "concentration", self.0)
    }

    /// n shares from n − 1 standard normal numbers.
    pub fn from_normal(&self, z: &[f64], shares: &mut [f64]) {
        let mut rest = 1.0;
        for (i, &z) in z.iter().enumerate() {
            let log_left = self.stick(i, shares.len()).log_left(z);
            shares[i] = -rest * log_left.exp_m1();
            rest *= log_left.exp();
        }
        shares[z.len()] = rest;
    }

    /// The n − 1 standard normal numbers that give these shares; not numbers where the shares are negative or do not sum to 1,
    /// ±∞ where a share is 0.
    pub fn to_normal(&self, shares: &[f64], z: &mut [f64]) {
        if !is_whole(shares) {
            z.fill(f64::NAN);
            return;
        }
        // What remains after each share, summed from the end: no cancellation.
        let mut rest = shares[z.len()];
        for (i, z) in z.iter_mut().enumerate().rev() {
            *z = self.stick(i, shares.len()).to_normal(shares[i], rest);
            rest += shares[i];
        }
    }

    /// The log density of the first n − 1 shares: log Γ(n a) − n log Γ(a) + (a − 1) Σ log shareᵢ over all n; −∞ where the
    /// shares are negative or do not sum to 1.
    pub fn log_density(&self, shares: &[f64]) -> f64 {
        if !is_whole(shares) {
            return f64::NEG_INFINITY;
        }
        let (a, n) = (self.0, shares.len() as f64);
        if a == 1.0 {
            return ln_gamma(n);
        }
        ln_gamma(n * a) - n * ln_gamma(a) + (a - 1.0) * shares.iter().map(|share| share.ln()).sum::<f64>()
    }

    /// ∂f/∂z from z and the ∂f/∂share of all n shares, as if each could change alone: the chain rule.
    pub fn pull_back(&self, z: &[f64], by_shares: &[f64], by_z: &mut [f64]) {
        let n = by_shares.len();
        let mut log_rest = 0.0;
        for (i, &z) in z.iter().enumerate() {
            by_z[i] = self.stick(i, n).log_left(z);
            log_rest += by_z[i];
        }
        // Σ ∂f/∂share · share over the shares after the i-th, in parts of what is left for them.
        let mut later = by_shares[z.len()];
        for (i, &z) in z.iter().enumerate().rev() {
            let log_left = by_z[i];
            log_rest -= log_left;
            let slope = self.stick(i, n).log_slope(z, log_left).exp();
            by_z[i] = log_rest.exp() * slope * (by_shares[i] - later);
            later = -log_left.exp_m1() * by_shares[i] + log_left.exp() * later;
        }
    }

    /// How share `i` of n is broken off.
    fn stick(&self, i: usize, n: usize) -> Stick {
        Stick { a: self.0, b: self.0 * (n - 1 - i) as f64 }
    }
}

/// Whether shares are parts of a whole; written so that a share that is not a number fails, too.
fn is_whole(shares: &[f64]) -> bool {
    (shares.iter().sum::<f64>() - 1.0).abs() <= SUM_TOLERANCE && shares.iter().all(|&share| share >= 0.0)
}

/// A stick of which a beta part x breaks off; it is described by log(1 − x), which says both parts in full.
struct Stick {
    a: f64,
    b: f64,
}

impl Stick {
    /// log(1 − x) with F(x) = Φ(z).
    fn log_left(&self, z: f64) -> f64 {
        let log_left = if self.a == 1.0 {
            normal_log_cdf(-z) / self.b
        } else {
            log_logistic(-logit_beta_quantile(self.a, self.b, Tails::of_normal(z)))
        };
        // So that a share that is too small for a number is not 0.
        log_left.min(-f64::MIN_POSITIVE)
    }

    /// z, where `part` breaks off and `rest` remains.
    fn to_normal(&self, part: f64, rest: f64) -> f64 {
        if self.a == 1.0 {
            let log_left = (-part / (part + rest)).ln_1p();
            Tails::of_smaller(self.b * log_left, false).to_normal()
        } else {
            beta_tails_at_logit(self.a, self.b, part.ln() - rest.ln()).to_normal()
        }
    }

    /// log dx/dz = log φ(z) − log p(x).
    fn log_slope(&self, z: f64, log_left: f64) -> f64 {
        let log_density = if self.a == 1.0 {
            self.b.ln() + (self.b - 1.0) * log_left
        } else {
            (self.a - 1.0) * (-log_left.exp_m1()).ln() + (self.b - 1.0) * log_left - ln_beta(self.a, self.b)
        };
        normal_log_density(z) - log_density
    }
}

//! Linear equations under a normal-Wishart prior of means and precisions: the BGe score (Geiger and Heckerman, "Parameter priors
//! for directed acyclic graphical models and the characterization of several probability distributions", Annals of Statistics
//! 30, 2002; formulas as corrected by Kuipers, Moffa and Heckerman, "Addendum on the scoring of Gaussian directed acyclic
//! graphical models", Annals of Statistics 42, 2014).
//!
//! One prior of the joint distribution of all n nodes, `W ~ Wishart(α_w, T⁻¹)`, `μ | W ~ N(0, (α_μ W)⁻¹)` with T = t I, is the prior
//! of every graph's parameters, so that graphs which allow the same joint distributions have the same evidence. Of a node with p
//! parents it says
//!
//! ```text
//! σ² ~ Inverse-Gamma(½ (α_w − n + p + 1), ½ t),   w | σ ~ N(0, σ²/t I),   intercept | σ ~ N(0, σ²/α_μ),
//! ```
//!
//! which is conjugate. The intercept is integrated out: its part of the rows' covariance, σ²(I + 1 1ᵀ/α_μ), takes
//! `(Σ x_a)(Σ x_b)/(N + α_μ)` from each product of columns.

use std::f64::consts::{LN_2, TAU};

use super::linear::Linear;
use super::products::Products;
use crate::graph::nodes_of;
use crate::problem::Preconditioner;
use crate::random::Stream;
use crate::stats::ln_gamma;
use crate::triangular::{cholesky, dot, log_diagonal, multiply_transposed, packed_len, solve, solve_transposed};

/// Evidences, densities and posteriors of nodes under the prior.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bge {
    /// With products that have lost what belongs to the intercept.
    linear: Linear,
    /// α_μ.
    mean_rows: f64,
    /// α_w − n.
    degrees: f64,
    /// t.
    spread: f64,
}

impl Bge {
    /// T = t I with `t = α_μ (α_w − n − 1)/(α_μ + 1)`, so that data are expected to have unit variance.
    pub(super) fn new(products: Products, mean_rows: f64, degrees: f64) -> Self {
        let spread = mean_rows * (degrees - 1.0) / (mean_rows + 1.0);
        let linear = Linear::new(products.without_mean(mean_rows), None, 1.0);
        Self { linear, mean_rows, degrees, spread }
    }

    /// Shape and rate of the prior of σ⁻² with so many parents.
    fn noise_prior(&self, parents: usize) -> (f64, f64) {
        (0.5 * (self.degrees + parents as f64 + 1.0), 0.5 * self.spread)
    }

    /// What integrating the intercept out leaves: `½ log α_μ/(α_μ + N)`.
    fn log_intercept(&self, node: usize) -> f64 {
        0.5 * (self.mean_rows / (self.mean_rows + self.linear.products.rows(node))).ln()
    }

    /// `log p(x_j | x_pa, σ, w)` and its gradient.
    pub(super) fn log_likelihood(&self, node: usize, parents: u64, theta: &[f64], gradient: &mut [f64]) -> f64 {
        self.linear.log_likelihood(node, parents, theta, gradient) + self.log_intercept(node)
    }

    /// `log p(σ, w)`, its gradient added to `gradient`.
    pub(super) fn add_prior(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let (Some((sigma, weights)), Some((by_sigma, by_weights))) = (theta.split_first(), gradient.split_first_mut())
        else {
            return f64::NAN;
        };
        let (shape, rate) = self.noise_prior(weights.len());
        let (log_sigma, precision) = (sigma.ln(), sigma.powi(-2));
        let mut log_prior =
            shape * rate.ln() - ln_gamma(shape) + LN_2 - (2.0 * shape + 1.0) * log_sigma - rate * precision;
        *by_sigma += (2.0 * rate * precision - 2.0 * shape - 1.0) / sigma;
        for (w, by_weight) in weights.iter().zip(by_weights) {
            let square = self.spread * w * w * precision;
            log_prior += 0.5 * ((self.spread / TAU).ln() - square) - log_sigma;
            *by_weight -= self.spread * w * precision;
            *by_sigma += (square - 1.0) / sigma;
        }
        log_prior
    }

    /// `log p(x_j | x_pa)`. Not a number where rounding leaves a matrix without its decomposition.
    pub(super) fn log_evidence(&self, node: usize, parents: u64) -> f64 {
        self.posterior(node, parents).map_or(f64::NAN, |posterior| posterior.log_evidence)
    }

    /// The posterior of σ and the weights; none where rounding leaves a matrix without its decomposition.
    pub(super) fn posterior(&self, node: usize, parents: u64) -> Option<BgePosterior> {
        let parents: Vec<usize> = nodes_of(parents).collect();
        let products = &self.linear.products;
        let (rows, count) = (products.rows(node), parents.len());
        let mut factor = Vec::with_capacity(packed_len(count));
        for (place, &a) in parents.iter().enumerate() {
            let own = |b: usize| if a == b { self.spread } else { 0.0 };
            factor.extend(parents[..=place].iter().map(|&b| products.get(node, a, b) + own(b)));
        }
        cholesky(&mut factor, count).ok()?;
        let mut mean: Vec<f64> = parents.iter().map(|&a| products.get(node, a, node)).collect();
        solve(&factor, &mut mean);
        let fitted = dot(&mean, &mean);
        solve_transposed(&factor, &mut mean);
        let (prior_shape, prior_rate) = self.noise_prior(count);
        let shape = prior_shape + 0.5 * rows;
        let rate = prior_rate + 0.5 * (products.get(node, node, node) - fitted).max(0.0);
        let log_evidence = self.log_intercept(node) - 0.5 * rows * TAU.ln() + 0.5 * count as f64 * self.spread.ln()
            - log_diagonal(&factor, count)
            + prior_shape * prior_rate.ln()
            - shape * rate.ln()
            + ln_gamma(shape)
            - ln_gamma(prior_shape);
        Some(BgePosterior { mean, factor, shape, rate, log_evidence })
    }

    /// A normal density around the mode of log σ and the mean of the weights.
    pub(super) fn preconditioner(&self, node: usize, parents: u64) -> Option<Preconditioner> {
        let BgePosterior { mean, factor, shape, rate, .. } = self.posterior(node, parents)?;
        let sigma = (rate / shape).sqrt();
        let mut whole = vec![2.0 * shape.sqrt()];
        for row in 0..mean.len() {
            whole.push(0.0);
            whole.extend(factor[packed_len(row)..packed_len(row + 1)].iter().map(|c| c / sigma));
        }
        Preconditioner::from_factor([&[sigma.ln()], &mean[..]].concat(), whole)
    }

    /// The mean of the intercept given the weights.
    pub(super) fn intercept(&self, node: usize, parents: &[usize], weights: &[f64]) -> f64 {
        let products = &self.linear.products;
        let explained: f64 = parents.iter().zip(weights).map(|(&a, w)| w * products.sum(node, a)).sum();
        (products.sum(node, node) - explained) / (products.rows(node) + self.mean_rows)
    }
}

/// `σ² ~ Inverse-Gamma(shape, rate)`, `w | σ ~ N(mean, σ² (C Cᵀ)⁻¹)`.
#[derive(Clone, Debug)]
pub(super) struct BgePosterior {
    mean: Vec<f64>,
    /// C.
    factor: Vec<f64>,
    shape: f64,
    rate: f64,
    log_evidence: f64,
}

impl BgePosterior {
    pub(super) fn draw(&self, stream: &mut Stream) -> Vec<f64> {
        let sigma = (2.0 * self.rate / stream.chi_squared(2.0 * self.shape)).sqrt();
        let mut off: Vec<f64> = self.mean.iter().map(|_| stream.normal()).collect();
        solve_transposed(&self.factor, &mut off);
        let weights = self.mean.iter().zip(off).map(|(mean, off)| mean + sigma * off);
        std::iter::once(sigma).chain(weights).collect()
    }

    /// −∞ where σ is not positive, not a number where there are more or fewer parameters.
    pub(super) fn log_density(&self, theta: &[f64]) -> f64 {
        let Self { mean, factor, shape, rate, .. } = self;
        let Some((&sigma, weights)) = theta.split_first().filter(|(_, weights)| weights.len() == mean.len()) else {
            return f64::NAN;
        };
        if sigma <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let mut off: Vec<f64> = weights.iter().zip(mean).map(|(weight, mean)| (weight - mean) / sigma).collect();
        multiply_transposed(factor, &mut off);
        let (dim, log_sigma) = (mean.len() as f64, sigma.ln());
        let of_sigma =
            shape * rate.ln() - ln_gamma(*shape) + LN_2 - (2.0 * shape + 1.0) * log_sigma - rate * sigma.powi(-2);
        let of_weights = log_diagonal(factor, mean.len()) - dim * log_sigma - 0.5 * (dot(&off, &off) + dim * TAU.ln());
        of_sigma + of_weights
    }

    /// First and second moments of all parameters; of few rows some are infinite.
    pub(super) fn moments(&self) -> Vec<[f64; 2]> {
        let Self { mean, factor, shape, rate, .. } = self;
        let variance = if *shape > 1.0 { rate / (shape - 1.0) } else { f64::INFINITY };
        let mean_sigma = if *shape > 0.5 {
            (0.5 * rate.ln() + ln_gamma(shape - 0.5) - ln_gamma(*shape)).exp()
        } else {
            f64::INFINITY
        };
        let of_weight = |(place, mean): (usize, &f64)| {
            // A variance is σ² times the squared length of a column of C⁻¹.
            let mut column = vec![0.0; self.mean.len()];
            column[place] = 1.0;
            solve(factor, &mut column);
            [*mean, mean * mean + variance * dot(&column, &column)]
        };
        std::iter::once([mean_sigma, variance]).chain(mean.iter().enumerate().map(of_weight)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

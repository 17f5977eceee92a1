//! Linear structural equations: `x_j ~ N(X_π w, σ_j²)`, from products of columns, so that no row is looked at twice.

use std::f64::consts::TAU;

use super::products::Products;
use crate::graph::nodes_of;
use crate::problem::Preconditioner;
use crate::stats::log_sum_exp;
use crate::triangular::{cholesky, dot, log_diagonal, packed_len, solve, solve_transposed};

/// Products of all pairs of columns, and what is assumed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Linear {
    pub(super) products: Products,
    /// None where it is unknown: then log σ_j ~ N(0, 1).
    pub(super) sigma: Option<f64>,
    /// s: prior standard deviation of weights.
    pub(super) scale: f64,
}

/// The weights of a node given σ.
pub(super) struct Weights {
    /// Their posterior mean.
    pub(super) mean: Vec<f64>,
    /// C, where `C Cᵀ = X_πᵀX_π / σ² + I / s²` is their posterior precision.
    pub(super) factor: Vec<f64>,
    /// log N(x_j; 0, σ²I + s² X_π X_πᵀ).
    pub(super) log_evidence: f64,
}

/// Where the density of a node's parameters is highest, if σ is unknown.
struct Mode {
    log_sigma: f64,
    /// Of log σ.
    precision: f64,
    /// Given σ.
    weights: Weights,
}

impl Linear {
    pub(super) fn new(products: Products, sigma: Option<f64>, scale: f64) -> Self {
        Self { products, sigma, scale }
    }

    /// `|x_j − X_π w|²`; `visit` gets the place of each parent and `X_aᵀ (x_j − X_π w)`.
    fn squares(&self, node: usize, parents: &[usize], weights: &[f64], mut visit: impl FnMut(usize, f64)) -> f64 {
        let mut squares = self.products.get(node, node, node);
        for (place, &a) in parents.iter().enumerate() {
            let fitted: f64 = parents.iter().zip(weights).map(|(&b, w)| w * self.products.get(node, a, b)).sum();
            let cross = self.products.get(node, a, node);
            squares += weights[place] * (fitted - 2.0 * cross);
            visit(place, cross - fitted);
        }
        squares
    }

    /// `log p(x_j | x_pa, σ, w)` and its gradient; the parameters are σ, where it is unknown, and a weight for each parent.
    pub(super) fn log_likelihood(&self, node: usize, parents: u64, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let unknown = usize::from(self.sigma.is_none());
        let sigma = self.sigma.unwrap_or_else(|| theta[0]);
        let (precision, rows) = (sigma.powi(-2), self.products.rows(node));
        let parents: Vec<usize> = nodes_of(parents).collect();
        let squares = self.squares(node, &parents, &theta[unknown..], |place, residual| {
            gradient[unknown + place] = precision * residual;
        });
        if unknown == 1 {
            gradient[0] = (squares * precision - rows) / sigma;
        }
        -0.5 * (squares * precision + rows * TAU.ln()) - rows * sigma.ln()
    }

    /// The weights given σ. None where rounding leaves the precision without its decomposition.
    ///
    /// With `b = X_πᵀx_j / σ²`, of k parents and n rows, the evidence is
    ///
    /// −½ n log 2πσ² − Σ log C_ii − k log s − ½ (x_jᵀx_j / σ² − |C⁻¹ b|²).
    pub(super) fn weights(&self, node: usize, parents: &[usize], sigma: f64) -> Option<Weights> {
        let (precision, prior) = (sigma.powi(-2), self.scale.powi(-2));
        let mut factor = Vec::with_capacity(packed_len(parents.len()));
        for (place, &a) in parents.iter().enumerate() {
            let own = |b: usize| if a == b { prior } else { 0.0 };
            factor.extend(parents[..=place].iter().map(|&b| precision * self.products.get(node, a, b) + own(b)));
        }
        cholesky(&mut factor, parents.len()).ok()?;
        let mut mean: Vec<f64> = parents.iter().map(|&a| precision * self.products.get(node, a, node)).collect();
        solve(&factor, &mut mean);
        let fitted = dot(&mean, &mean);
        solve_transposed(&factor, &mut mean);
        let log_evidence = -self.products.rows(node) * (0.5 * TAU.ln() + sigma.ln())
            - log_diagonal(&factor, parents.len())
            - parents.len() as f64 * self.scale.ln()
            - 0.5 * (precision * self.products.get(node, node, node) - fitted);
        Some(Weights { mean, factor, log_evidence })
    }

    /// The posterior of the parameters: exact where σ is known, otherwise normal around the mode of (log σ, w).
    pub(super) fn preconditioner(&self, node: usize, parents: u64) -> Option<Preconditioner> {
        let parents: Vec<usize> = nodes_of(parents).collect();
        match self.sigma {
            Some(sigma) => {
                let Weights { mean, factor, .. } = self.weights(node, &parents, sigma)?;
                Preconditioner::from_factor(mean, factor)
            }
            None => self.preconditioner_of_unknown(node, &parents),
        }
    }

    /// The mode of (log σ, w): alternates between the weights given σ and σ given the weights, until σ stays.
    fn mode(&self, node: usize, parents: &[usize]) -> Option<Mode> {
        const MAX_ROUNDS: usize = 100;
        let (rows, total) = (self.products.rows(node), self.products.get(node, node, node));
        // Where the node was set in every row, the prior alone speaks.
        let mut log_sigma = if rows > 0.0 { 0.5 * (total / rows).max(f64::MIN_POSITIVE).ln() } else { 0.0 };
        let mut weights = self.weights(node, parents, log_sigma.exp())?;
        let mut squares = 0.0;
        for _ in 0..MAX_ROUNDS {
            squares = self.squares(node, parents, &weights.mean, |_, _| {}).max(f64::MIN_POSITIVE);
            let next = mode_of_log_sigma(rows, squares, log_sigma);
            weights = self.weights(node, parents, next.exp())?;
            let moved = (next - log_sigma).abs();
            log_sigma = next;
            if moved < 1e-10 {
                break;
            }
        }
        // The second derivative of the log density of log σ.
        Some(Mode { precision: 2.0 * squares * (-2.0 * log_sigma).exp() + 1.0, log_sigma, weights })
    }

    /// A normal density around the mode of (log σ, w), which are uncorrelated there but for the prior of the weights.
    fn preconditioner_of_unknown(&self, node: usize, parents: &[usize]) -> Option<Preconditioner> {
        let Mode { log_sigma, precision, weights } = self.mode(node, parents)?;
        let location = [&[log_sigma], &weights.mean[..]].concat();
        let mut factor = vec![precision.sqrt()];
        for row in 0..parents.len() {
            factor.push(0.0);
            factor.extend_from_slice(&weights.factor[packed_len(row)..packed_len(row + 1)]);
        }
        Preconditioner::from_factor(location, factor)
    }

    /// `log p(x_j | x_pa)`, σ and weights integrated out. Not a number where rounding leaves a matrix without its
    /// decomposition.
    pub(super) fn log_evidence(&self, node: usize, parents: u64) -> f64 {
        let parents: Vec<usize> = nodes_of(parents).collect();
        match self.sigma {
            Some(sigma) => self.weights(node, &parents, sigma).map_or(f64::NAN, |weights| weights.log_evidence),
            None => self.integrated(node, &parents),
        }
    }

    /// The integral over log σ by a sum over an even grid, exact to many digits for a smooth function that vanishes at both
    /// ends. The grid starts at the mode, and goes on in both directions until nothing is left to be found.
    fn integrated(&self, node: usize, parents: &[usize]) -> f64 {
        /// Nats below the fit that do not matter.
        const NEGLIGIBLE: f64 = 40.0;
        /// The most points in one direction.
        const MAX_KEPT: usize = 100_000;
        let Some(Mode { log_sigma: start, .. }) = self.mode(node, parents) else { return f64::NAN };
        // The likelihood of log σ has a standard deviation of about 1/√(2n), and the prior can only sharpen it.
        let step = 0.5 / (2.0 * self.products.rows(node) + 1.0).sqrt();
        let log_joint = |log_sigma: f64| {
            let given = self.weights(node, parents, log_sigma.exp()).map_or(f64::NAN, |weights| weights.log_evidence);
            given - 0.5 * (log_sigma * log_sigma + TAU.ln())
        };
        let mut found = vec![log_joint(start)];
        let mut highest = found[0];
        for direction in [-step, step] {
            for point in 1..=MAX_KEPT {
                let value = log_joint(start + direction * point as f64);
                // Where σ is next to nothing, the precision may be singular and the value not a number.
                if value.is_nan() || value <= highest - NEGLIGIBLE {
                    break;
                }
                highest = highest.max(value);
                found.push(value);
            }
        }
        log_sum_exp(&found) + step.ln()
    }
}

/// The maximum over u = log σ of `−n u − ½ squares e^{−2u} − ½ u²`, by Newton's method.
fn mode_of_log_sigma(rows: f64, squares: f64, start: f64) -> f64 {
    let mut u = start;
    for _ in 0..100 {
        let spread = squares * (-2.0 * u).exp();
        let step = (spread - rows - u) / (2.0 * spread + 1.0);
        u += step.clamp(-1.0, 1.0);
        if step.abs() < 1e-12 {
            break;
        }
    }
    u
}

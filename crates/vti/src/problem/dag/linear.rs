//! Linear structural equations: `x_j ~ N(w · x_pa, σ_j²)`, from products of columns, so that no row is looked at twice.

use super::Table;
use crate::graph::nodes_of;
use crate::problem::Frame;
use crate::triangular::{dot, packed_len};

/// Products of all pairs of columns.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    nodes: usize,
    rows: f64,
    /// Row-major.
    products: Vec<f64>,
    sigma: Option<f64>,
    /// Prior standard deviation of weights.
    scale: f64,
}

impl Linear {
    pub(super) fn new(table: &Table, sigma: Option<f64>, scale: f64) -> Self {
        let pairs = table.columns.iter().flat_map(|a| table.columns.iter().map(move |b| dot(a, b)));
        let rows = table.columns.first().map_or(0, Vec::len) as f64;
        Self { nodes: table.columns.len(), rows, products: pairs.collect(), sigma, scale }
    }

    fn product(&self, a: usize, b: usize) -> f64 {
        self.products[a * self.nodes + b]
    }

    /// `log p(x_j | x_pa, σ, w)` and its gradient; the parameters are σ, where it is unknown, and a weight for each parent.
    pub(super) fn log_likelihood(&self, node: usize, parents: u64, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let unknown = usize::from(self.sigma.is_none());
        let sigma = self.sigma.unwrap_or_else(|| theta[0]);
        let precision = sigma.powi(-2);
        let parents: Vec<usize> = nodes_of(parents).collect();
        let weights = &theta[unknown..];
        let mut squares = self.product(node, node);
        for (place, &a) in parents.iter().enumerate() {
            // X_aᵀ (X w − x_j).
            let fitted: f64 = parents.iter().zip(weights).map(|(&b, w)| w * self.product(a, b)).sum();
            let cross = self.product(a, node);
            squares += weights[place] * (fitted - 2.0 * cross);
            gradient[unknown + place] = precision * (cross - fitted);
        }
        if unknown == 1 {
            gradient[0] = (squares * precision - self.rows) / sigma;
        }
        -0.5 * (squares * precision + self.rows * std::f64::consts::TAU.ln()) - self.rows * sigma.ln()
    }

    /// The posterior of the parameters: exact where σ is known, otherwise normal around the mode of (log σ, w).
    pub(super) fn frame(&self, node: usize, parents: u64) -> Option<Frame> {
        let Some(sigma) = self.sigma else { return self.frame_of_unknown(node, parents) };
        self.weights(node, parents, sigma)
    }

    /// The posterior of the weights given σ.
    fn weights(&self, node: usize, parents: u64, sigma: f64) -> Option<Frame> {
        let parents: Vec<usize> = nodes_of(parents).collect();
        let (precision, prior) = (sigma.powi(-2), self.scale.powi(-2));
        let mut matrix = Vec::with_capacity(packed_len(parents.len()));
        for (place, &a) in parents.iter().enumerate() {
            let own = |b: usize| if a == b { prior } else { 0.0 };
            matrix.extend(parents[..=place].iter().map(|&b| precision * self.product(a, b) + own(b)));
        }
        let start = Frame::from_precision(vec![0.0; parents.len()], matrix.clone())?;
        // C⁻ᵀ C⁻¹ Xᵀ x_j / σ².
        let mut location: Vec<f64> = parents.iter().map(|&a| precision * self.product(a, node)).collect();
        start.pull_back(&mut location);
        start.to_free(&mut location);
        Frame::from_precision(location, matrix)
    }

    /// Alternates between the weights given σ and σ given the weights, until σ stays.
    fn frame_of_unknown(&self, node: usize, parents: u64) -> Option<Frame> {
        const ROUNDS: usize = 100;
        let mut log_sigma = 0.5 * (self.product(node, node) / self.rows.max(1.0)).max(f64::MIN_POSITIVE).ln();
        let (mut weights, mut squares) = (self.weights(node, parents, log_sigma.exp())?, 0.0);
        for _ in 0..ROUNDS {
            let mut theta = vec![1.0];
            theta.extend_from_slice(weights.location());
            let mut gradient = vec![0.0; theta.len()];
            // With σ = 1 the log likelihood is −½ (squares + n log 2π).
            let at_one = self.log_likelihood(node, parents, &theta, &mut gradient);
            squares = (-2.0 * at_one - self.rows * std::f64::consts::TAU.ln()).max(f64::MIN_POSITIVE);
            let next = mode_of_log_sigma(self.rows, squares, log_sigma);
            weights = self.weights(node, parents, next.exp())?;
            let moved = (next - log_sigma).abs();
            log_sigma = next;
            if moved < 1e-10 {
                break;
            }
        }
        let mut location = vec![log_sigma];
        location.extend_from_slice(weights.location());
        // At the mode of the weights log σ and they are uncorrelated, but for the prior of the weights.
        let mut precision = vec![2.0 * squares * (-2.0 * log_sigma).exp() + 1.0];
        let parents: Vec<usize> = nodes_of(parents).collect();
        for (place, &a) in parents.iter().enumerate() {
            precision.push(0.0);
            let own = |b: usize| if a == b { self.scale.powi(-2) } else { 0.0 };
            let noise = (-2.0 * log_sigma).exp();
            precision.extend(parents[..=place].iter().map(|&b| noise * self.product(a, b) + own(b)));
        }
        Frame::from_precision(location, precision)
    }
}

/// The maximum over u = log σ of `−n u − ½ squares e^{−2u} − ½ u²`, by Newton's method.
pub(super) fn mode_of_log_sigma(rows: f64, squares: f64, start: f64) -> f64 {
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

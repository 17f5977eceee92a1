//! The likelihood of a node of a linear structural equation model, and its gradient: `x_j ~ N(Σ w_i x_i, σ_j²)`.
//!
//! Data enter by their cross products alone, which are summed once: an evaluation costs what its parents cost, squared, and
//! nothing for the rows.

use std::f64::consts::TAU;

/// Likelihoods of the nodes of a linear structural equation model, given their parents.
///
/// The parameters of a node, in order: σ where it is unknown, and the weight of each parent, ascending. There is no
/// intercept: columns are meant to be centred.
///
/// ```
/// use vti::problem::dag::LinearLikelihood;
/// // x₁ = 2 x₀, without any noise, seen with σ = 1.
/// let likelihood = LinearLikelihood::new(&[vec![-1.0, 0.0, 1.0], vec![-2.0, 0.0, 2.0]], Some(1.0));
/// let mut gradient = [0.0];
/// let value = likelihood.node(1, 0b01, &[2.0], &mut gradient);
/// assert!((value + 1.5 * std::f64::consts::TAU.ln()).abs() < 1e-12);
/// assert_eq!(gradient, [0.0]);
/// ```
#[derive(Clone, Debug)]
pub struct LinearLikelihood {
    nodes: usize,
    rows: f64,
    sigma: Option<f64>,
    /// `Σ x_i x_j` over rows of data, nodes × nodes.
    products: Vec<f64>,
}

impl LinearLikelihood {
    /// For data by columns, all of one length, and a known or unknown standard deviation.
    pub fn new(columns: &[Vec<f64>], sigma: Option<f64>) -> Self {
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum();
        let products = columns.iter().flat_map(|a| columns.iter().map(move |b| product(a, b))).collect();
        let rows = columns.first().map_or(0, Vec::len) as f64;
        Self { nodes: columns.len(), rows, sigma, products }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Number of rows of data.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// `Σ x_i x_j` over rows of data.
    pub fn product(&self, i: usize, j: usize) -> f64 {
        self.products[i * self.nodes + j]
    }

    /// Number of parameters of a node with so many parents.
    pub fn dim(&self, parents: usize) -> usize {
        parents + usize::from(self.sigma.is_none())
    }

    /// `log p(x_j | x_pa, w_j, σ_j)` of all rows, and its gradient with respect to the parameters; bit i of `parents` says
    /// that node i is one. Not finite where a parameter is not.
    ///
    /// # Panics
    ///
    /// If there is no such node or parent, or if the numbers of parameters or of the gradient's places are not
    /// [`LinearLikelihood::dim`].
    pub fn node(&self, node: usize, parents: u64, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let dim = self.dim(parents.count_ones() as usize);
        assert!(theta.len() == dim && gradient.len() == dim, "{dim} parameters");
        let unknown = usize::from(self.sigma.is_none());
        let sigma = self.sigma.unwrap_or_else(|| theta[0]);
        let (precision, weights) = (sigma.powi(-2), &theta[unknown..]);
        // wᵀ of cross products with the errors x_j − Σ w_i x_i, which are also the gradient.
        let mut squares = self.product(node, node);
        for ((i, w), to) in members(parents).zip(weights).zip(&mut gradient[unknown..]) {
            let explained: f64 = members(parents).zip(weights).map(|(other, w)| w * self.product(i, other)).sum();
            let (with_node, with_error) = (self.product(i, node), self.product(i, node) - explained);
            squares -= w * (with_node + with_error);
            *to = precision * with_error;
        }
        if unknown == 1 {
            gradient[0] = (squares * precision - self.rows) / sigma;
        }
        -0.5 * (squares * precision + self.rows * TAU.ln()) - self.rows * sigma.ln()
    }
}

/// The nodes of a set, ascending.
fn members(set: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |i| set >> i & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    /// Values and gradients of all sets of parents of a node of five against sums over rows.
    #[test]
    fn cross_products_are_all_that_is_needed() {
        let mut stream = Stream::new(3, Purpose::Other(0), 0, 0);
        let columns: Vec<Vec<f64>> = (0..5).map(|_| (0..40).map(|_| stream.normal()).collect()).collect();
        for sigma in [Some(0.7), None] {
            let likelihood = LinearLikelihood::new(&columns, sigma);
            for parents in (0..32u64).filter(|parents| parents >> 2 & 1 == 0) {
                let dim = likelihood.dim(parents.count_ones() as usize);
                let theta: Vec<f64> = (0..dim).map(|_| 0.5 + stream.uniform()).collect();
                let (unknown, s) = sigma.map_or_else(|| (1, theta[0]), |sigma| (0, sigma));
                let (mut truth, mut slope, mut gradient) = (0.0, vec![0.0; dim], vec![0.0; dim]);
                for (row, observed) in columns[2].iter().enumerate() {
                    let of_row: Vec<f64> = members(parents).map(|i| columns[i][row]).collect();
                    let r = observed - theta[unknown..].iter().zip(&of_row).map(|(w, x)| w * x).sum::<f64>();
                    truth -= 0.5 * (TAU * s * s).ln() + 0.5 * r * r / (s * s);
                    slope[unknown..].iter_mut().zip(&of_row).for_each(|(to, x)| *to += r * x / (s * s));
                    slope[..unknown].iter_mut().for_each(|to| *to += r * r / s.powi(3) - 1.0 / s);
                }
                let value = likelihood.node(2, parents, &theta, &mut gradient);
                assert!((value - truth).abs() < 1e-9 * (1.0 + truth.abs()), "{parents:b}: {value} {truth}");
                for (found, expected) in gradient.iter().zip(&slope) {
                    assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{parents:b}");
                }
            }
        }
    }

    #[test]
    fn parameters_that_are_no_numbers_give_no_number() {
        let likelihood = LinearLikelihood::new(&[vec![1.0, 2.0], vec![0.5, -1.0]], None);
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for theta in [[bad, 1.0], [1.0, bad]] {
                assert!(!likelihood.node(1, 0b01, &theta, &mut [0.0; 2]).is_finite());
            }
        }
    }
}

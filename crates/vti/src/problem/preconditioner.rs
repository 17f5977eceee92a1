//! Where the posterior of a model roughly lies.

use crate::triangular::{cholesky, log_diagonal, multiply_transposed, packed_len, solve, solve_transposed};

/// Location and spread of a model's parameters in free coordinates: `u = a + C⁻ᵀ v`, where v is about standard normal and
/// `C Cᵀ` is the precision.
///
/// A flow whose output is v starts near the posterior, and what it has to learn is of order 1 whatever the units of the
/// parameters. A preconditioner is a fixed affine layer between the flow and the parameters: it need not be right, q stays a
/// density with known values, and Lemma 2.1 holds because inactive coordinates have no part in it.
///
/// ```
/// use vti::problem::Preconditioner;
/// // Two independent parameters: 10 ± 2 and −1 ± 0.5.
/// let preconditioner = Preconditioner::from_precision(vec![10.0, -1.0], vec![0.25, 0.0, 4.0]).expect("positive definite");
/// let mut v = [1.0, 2.0];
/// preconditioner.to_free(&mut v);
/// assert_eq!(v, [12.0, 0.0]);
/// assert!((preconditioner.log_jacobian() - (2.0 * 0.5f64).ln()).abs() < 1e-12);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Preconditioner {
    location: Vec<f64>,
    factor: Factor,
    log_jacobian: f64,
}

/// C.
#[derive(Clone, Debug, PartialEq)]
enum Factor {
    /// Its lower half, row by row.
    Packed(Vec<f64>),
    /// Its diagonal, where that is all of it.
    Diagonal(Vec<f64>),
}

impl Factor {
    fn numbers(&self) -> &[f64] {
        match self {
            Self::Packed(numbers) | Self::Diagonal(numbers) => numbers,
        }
    }
}

impl Preconditioner {
    /// From a location and the lower half of a precision matrix, row by row. None unless it is positive definite and
    /// everything finite.
    pub fn from_precision(location: Vec<f64>, mut precision: Vec<f64>) -> Option<Self> {
        let dim = location.len();
        if precision.len() != packed_len(dim) || cholesky(&mut precision, dim).is_err() {
            return None;
        }
        Self::from_factor(location, precision)
    }

    /// From a location and the precision of each coordinate, all independent. None unless precisions are positive and everything
    /// is finite.
    pub fn diagonal(location: Vec<f64>, precision: &[f64]) -> Option<Self> {
        let factor: Vec<f64> = precision.iter().map(|precision| precision.sqrt()).collect();
        let log_jacobian = -factor.iter().map(|c| c.ln()).sum::<f64>();
        Self::checked(location, Factor::Diagonal(factor), log_jacobian)
            .filter(|preconditioner| preconditioner.dim() == precision.len())
    }

    /// From a location and the packed Cholesky factor of the precision.
    pub(crate) fn from_factor(location: Vec<f64>, factor: Vec<f64>) -> Option<Self> {
        let log_jacobian = -log_diagonal(&factor, location.len());
        Self::checked(location, Factor::Packed(factor), log_jacobian)
    }

    fn checked(location: Vec<f64>, factor: Factor, log_jacobian: f64) -> Option<Self> {
        let finite = log_jacobian.is_finite() && location.iter().chain(factor.numbers()).all(|x| x.is_finite());
        finite.then_some(Self { location, factor, log_jacobian })
    }

    /// Number of parameters.
    pub fn dim(&self) -> usize {
        self.location.len()
    }

    /// Where v = 0 goes.
    pub fn location(&self) -> &[f64] {
        &self.location
    }

    /// C, its lower half row by row.
    pub(crate) fn packed_factor(&self) -> Vec<f64> {
        match &self.factor {
            Factor::Packed(factor) => factor.clone(),
            Factor::Diagonal(diagonal) => {
                let row = |i: usize| (0..=i).map(move |j| if i == j { diagonal[i] } else { 0.0 });
                (0..diagonal.len()).flat_map(row).collect()
            }
        }
    }

    /// How many numbers it keeps.
    pub(crate) fn numbers(&self) -> usize {
        self.location.len() + self.factor.numbers().len()
    }

    /// `log |det ∂u/∂v|`, the same everywhere.
    pub fn log_jacobian(&self) -> f64 {
        self.log_jacobian
    }

    /// From v to u, in place.
    pub fn to_free(&self, v: &mut [f64]) {
        self.spread(v);
        v.iter_mut().zip(&self.location).for_each(|(x, a)| *x += a);
    }

    /// From a difference of two v to that of their u, in place.
    pub(crate) fn spread(&self, v: &mut [f64]) {
        match &self.factor {
            Factor::Packed(factor) => solve_transposed(factor, v),
            Factor::Diagonal(factor) => v.iter_mut().zip(factor).for_each(|(x, c)| *x /= c),
        }
    }

    /// From u to v, in place.
    pub fn from_free(&self, u: &mut [f64]) {
        u.iter_mut().zip(&self.location).for_each(|(x, a)| *x -= a);
        match &self.factor {
            Factor::Packed(factor) => multiply_transposed(factor, u),
            Factor::Diagonal(factor) => u.iter_mut().zip(factor).for_each(|(x, c)| *x *= c),
        }
    }

    /// From d/du to d/dv, in place.
    pub fn pull_back(&self, gradient: &mut [f64]) {
        match &self.factor {
            Factor::Packed(factor) => solve(factor, gradient),
            Factor::Diagonal(factor) => gradient.iter_mut().zip(factor).for_each(|(x, c)| *x /= c),
        }
    }
}

//! Where parameters live, and the bijections from the real line to there.
//!
//! A flow gives free numbers u, any real ones. A problem wants natural numbers θ: positive, in an interval, parts of a
//! whole. A density of θ becomes one of u by adding log |det ∂θ/∂u|.

use serde::{Deserialize, Serialize};

use crate::stats::{log_logistic, logistic};

/// Where a parameter lives; each kind comes with a bijection from the real line.
///
/// ```
/// use vti::problem::Constraint;
/// let share: Constraint = serde_json::from_str(r#"{"kind": "simplex", "parts": 3}"#)?;
/// assert_eq!((share.free(), share.natural()), (2, 3));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", from = "Written")]
pub enum Constraint {
    /// Any real number: θ = u.
    Real,
    /// A positive number: θ = exp u.
    Positive,
    /// A number in an open interval: θ = low + (high − low) σ(u), where σ is the logistic function.
    Interval {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// Positive parts θ₀, …, θₖ₋₁ of 1, from k − 1 free numbers.
    ///
    /// Each part breaks σ(vᵢ) off what the parts before it left, with vᵢ = uᵢ − ln(k − 1 − i), and the last is what
    /// remains; u = 0 gives equal parts. The Jacobian is that of the first k − 1 parts.
    Simplex {
        /// Number of parts k.
        parts: usize,
    },
}

impl Constraint {
    /// How many free numbers it takes.
    pub fn free(&self) -> usize {
        match self {
            Self::Simplex { parts } => parts.saturating_sub(1),
            Self::Real | Self::Positive | Self::Interval { .. } => 1,
        }
    }

    /// How many natural numbers it gives.
    pub fn natural(&self) -> usize {
        if let Self::Simplex { parts } = self { *parts } else { 1 }
    }

    /// θ from u; log |det ∂θ/∂u|.
    pub(super) fn to_natural(self, u: &[f64], theta: &mut [f64]) -> f64 {
        match self {
            Self::Real => {
                theta[0] = u[0];
                0.0
            }
            Self::Positive => {
                theta[0] = u[0].exp();
                u[0]
            }
            Self::Interval { low, high } => {
                let width = high - low;
                // From the nearer end, so that little is lost close to it.
                theta[0] = if u[0] > 0.0 { high - width * logistic(-u[0]) } else { low + width * logistic(u[0]) };
                width.ln() + log_logistic(u[0]) + log_logistic(-u[0])
            }
            Self::Simplex { .. } => {
                // With v as above, ∂θᵢ/∂vᵢ = θᵢ σ(−vᵢ) and the matrix is triangular: the determinant is Π θᵢ over all parts.
                let (mut rest, mut log_rest, mut log_jacobian) = (1.0, 0.0, 0.0);
                for (i, &u) in u.iter().enumerate() {
                    let v = stick(u, theta.len(), i);
                    theta[i] = rest * logistic(v);
                    log_jacobian += log_rest + log_logistic(v);
                    rest *= logistic(-v);
                    log_rest += log_logistic(-v);
                }
                theta[u.len()] = rest;
                log_jacobian + log_rest
            }
        }
    }

    /// u from θ; log |det ∂θ/∂u|.
    pub(super) fn to_free(self, theta: &[f64], u: &mut [f64]) -> f64 {
        match self {
            Self::Real => {
                u[0] = theta[0];
                0.0
            }
            Self::Positive => {
                u[0] = theta[0].ln();
                u[0]
            }
            Self::Interval { low, high } => {
                let (below, above) = ((theta[0] - low).ln(), (high - theta[0]).ln());
                u[0] = below - above;
                below + above - (high - low).ln()
            }
            Self::Simplex { .. } => {
                let sum: f64 = theta.iter().sum();
                // Written so that a part that is not a number fails too.
                if !((sum - 1.0).abs() <= SUM_TOLERANCE && theta.iter().all(|&part| part >= 0.0)) {
                    u.fill(f64::NAN);
                    return f64::NAN;
                }
                // What remains after each part, summed from the end: no cancellation.
                let mut rest = theta[u.len()];
                let mut log_jacobian = rest.ln();
                for (i, u) in u.iter_mut().enumerate().rev() {
                    *u = theta[i].ln() - rest.ln() - stick(0.0, theta.len(), i);
                    log_jacobian += theta[i].ln();
                    rest += theta[i];
                }
                log_jacobian
            }
        }
    }

    /// d/du of f(θ(u)) + log |det ∂θ/∂u|, given df/dθ.
    pub(super) fn pull_back(self, u: &[f64], natural_gradient: &[f64], gradient: &mut [f64]) {
        match self {
            Self::Real => gradient[0] = natural_gradient[0],
            Self::Positive => gradient[0] = natural_gradient[0] * u[0].exp() + 1.0,
            Self::Interval { low, high } => {
                let (up, down) = (logistic(u[0]), logistic(-u[0]));
                gradient[0] = natural_gradient[0] * (high - low) * up * down + (down - up);
            }
            Self::Simplex { parts } => {
                // In terms of ln θ the log-Jacobian is their sum, and each ln θᵢ is a sum of ln σ(±v).
                let mut rest = 1.0;
                for (i, &u) in u.iter().enumerate() {
                    let v = stick(u, parts, i);
                    gradient[i] = natural_gradient[i] * rest * logistic(v) + 1.0;
                    rest *= logistic(-v);
                }
                // d/d ln θ of all parts after the i-th.
                let mut later = natural_gradient[u.len()] * rest + 1.0;
                for (i, &u) in u.iter().enumerate().rev() {
                    let v = stick(u, parts, i);
                    let own = gradient[i];
                    gradient[i] = own * logistic(-v) - later * logistic(v);
                    later += own;
                }
            }
        }
    }
}

/// How far from 1 the parts of a simplex may sum to.
const SUM_TOLERANCE: f64 = 1e-6;

/// vᵢ of a simplex: shifted so that u = 0 breaks off an equal part.
fn stick(u: f64, parts: usize, i: usize) -> f64 {
    u - ((parts - 1 - i) as f64).ln()
}

/// A constraint as it is read. Its kinds without fields have braces: only then does serde refuse unknown keys.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum Written {
    Real {},
    Positive {},
    Interval { low: f64, high: f64 },
    Simplex { parts: usize },
}

impl From<Written> for Constraint {
    fn from(written: Written) -> Self {
        match written {
            Written::Real {} => Self::Real,
            Written::Positive {} => Self::Positive,
            Written::Interval { low, high } => Self::Interval { low, high },
            Written::Simplex { parts } => Self::Simplex { parts },
        }
    }
}

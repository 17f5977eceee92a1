//! Telling problems apart: their shape, and their densities at a few points that depend on nothing else.

use serde::{Deserialize, Serialize};

use super::{Constraints, Problem};
use crate::random::{Purpose, Stream};

/// What a saved run remembers of its problem.
///
/// Another data set, prior or likelihood gives other densities, so a fingerprint finds out without anything having to be
/// declared. Densities are compared to nine digits: the same problem on another machine may differ in the last bits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    arities: Vec<u16>,
    max_dim: usize,
    parameters: Vec<String>,
    constraints: Option<Constraints>,
    /// `log p(m)`, `log η(θ | m)` and the Jacobian of the model's preconditioner at each point; none where they are not finite.
    densities: Vec<[Option<f64>; 3]>,
}

/// Points that are compared.
const POINTS: u64 = 8;

impl Fingerprint {
    /// The fingerprint of a problem.
    pub fn of(problem: &dyn Problem) -> Self {
        let space = problem.space();
        let densities = (0..POINTS).map(|point| densities(problem, Stream::new(0, Purpose::Other(0), 0, point)));
        Self {
            arities: space.arities().to_vec(),
            max_dim: space.max_dim(),
            parameters: problem.parameter_names(),
            constraints: problem.constraints().cloned(),
            densities: densities.collect(),
        }
    }

    /// Whether two fingerprints are of one problem.
    pub fn matches(&self, other: &Self) -> bool {
        let close = |a: &Option<f64>, b: &Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * (1.0 + a.abs()),
            (None, None) => true,
            _ => false,
        };
        let same = |a: &[Option<f64>; 3], b: &[Option<f64>; 3]| a.iter().zip(b).all(|(a, b)| close(a, b));
        self.arities == other.arities
            && self.max_dim == other.max_dim
            && self.parameters == other.parameters
            && self.constraints == other.constraints
            && self.densities.len() == other.densities.len()
            && self.densities.iter().zip(&other.densities).all(|(a, b)| same(a, b))
    }
}

/// Prior, density and preconditioner of a random model at a random point.
fn densities(problem: &dyn Problem, mut stream: Stream) -> [Option<f64>; 3] {
    let space = problem.space();
    let mut word: Vec<u16> = Vec::with_capacity(space.arities().len());
    let mut allowed = Vec::new();
    for &arity in space.arities() {
        allowed.resize(usize::from(arity), true);
        space.allow(&word, &mut allowed);
        let choices: Vec<u16> = (0..arity).filter(|&symbol| allowed[usize::from(symbol)]).collect();
        word.push(choices.get(stream.below(choices.len() as u64) as usize).copied().unwrap_or(0));
    }
    let mut mask = vec![false; space.max_dim()];
    space.mark_active(&word, &mut mask);
    let active: Vec<u32> = (0..space.max_dim() as u32).filter(|&c| mask[c as usize]).collect();
    let free: Vec<f64> = active.iter().map(|_| stream.normal()).collect();
    let theta = match problem.constraints() {
        Some(constraints) => {
            let mut natural = vec![0.0; constraints.natural_dim(&active)];
            constraints.to_natural(&active, &free, &mut natural);
            natural
        }
        None => free,
    };
    let density = problem.log_density(&word, &theta, &mut vec![0.0; theta.len()]);
    let preconditioner = problem.preconditioner(&word).map_or(0.0, |preconditioner| preconditioner.log_jacobian());
    [problem.log_prior(&word), density.unwrap_or(f64::NAN), preconditioner]
        .map(|value| value.is_finite().then_some(value))
}

//! Telling problems apart: their shape, and their densities at a few points that depend on nothing else.

use serde::{Deserialize, Serialize};

use super::{Constraints, Problem};
use crate::random::{Purpose, Stream};
use crate::space::ModelSpace;

/// What tells problems apart whose saved findings do not fit each other: words and parameters.
#[derive(PartialEq, Serialize, Deserialize)]
pub(crate) struct Shape {
    arities: Vec<u16>,
    parameters: Vec<String>,
}

impl Shape {
    pub(crate) fn of(problem: &dyn Problem) -> Self {
        Self { arities: problem.space().arities().to_vec(), parameters: problem.parameter_names() }
    }
}

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
        Self::with(problem, |word, theta| log_density(problem, word, theta))
    }

    /// As versions made it that multiplied the density by the weights of its blocks' arrangements, so that what they saved
    /// can be read.
    pub(crate) fn with_arrangements(problem: &dyn Problem) -> Self {
        Self::with(problem, |word, theta| log_density(problem, word, theta) + log_arrangements(problem, word, theta))
    }

    fn with(problem: &dyn Problem, log_density: impl Fn(&[u16], &[f64]) -> f64) -> Self {
        let space = problem.space();
        let densities = (0..POINTS).map(|point| {
            let (word, theta) = random_point(problem, Stream::new(0, Purpose::Other(0), 0, point));
            let preconditioner = problem.preconditioner(&word).map_or(0.0, |found| found.log_jacobian());
            [problem.log_prior(&word), log_density(&word, &theta), preconditioner]
                .map(|value| value.is_finite().then_some(value))
        });
        Self {
            arities: space.arities().to_vec(),
            max_dim: space.max_dim(),
            parameters: problem.parameter_names(),
            // Of a bijection of whole models densities tell.
            constraints: problem.constraints().filter(|constraints| constraints.list().is_some()).cloned(),
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

fn log_density(problem: &dyn Problem, word: &[u16], theta: &[f64]) -> f64 {
    problem.log_density(word, theta, &mut vec![0.0; theta.len()]).unwrap_or(f64::NAN)
}

fn log_arrangements(problem: &dyn Problem, word: &[u16], theta: &[f64]) -> f64 {
    let Some(blocks) = problem.blocks() else { return 0.0 };
    let (mut keys, mut active) = (vec![0; blocks.count()], vec![false; blocks.width()]);
    blocks.keys(word, &mut keys);
    let (mut sum, mut rest) = (0.0, theta);
    for (block, &key) in keys.iter().enumerate() {
        blocks.mark_active(block, key, &mut active);
        let (here, after) = rest.split_at(active.iter().filter(|&&active| active).count());
        sum += blocks.log_arrangement(block, key, here, &mut vec![0.0; here.len()]);
        rest = after;
    }
    sum
}

/// A random model with random natural parameters.
fn random_point(problem: &dyn Problem, mut stream: Stream) -> (Vec<u16>, Vec<f64>) {
    let space = problem.space();
    let word = random_word(space, &mut stream);
    let mut mask = vec![false; space.max_dim()];
    space.mark_active(&word, &mut mask);
    let active: Vec<u32> = (0..space.max_dim() as u32).filter(|&c| mask[c as usize]).collect();
    let free: Vec<f64> = active.iter().map(|_| stream.normal()).collect();
    let natural = match problem.constraints() {
        Some(constraints) => {
            let mut natural = vec![0.0; constraints.natural_dim(&active)];
            constraints.to_natural(&active, &free, &mut natural);
            natural
        }
        None => free,
    };
    (word, natural)
}

/// A random model, symbol by symbol.
pub(crate) fn random_word(space: &dyn ModelSpace, stream: &mut Stream) -> Vec<u16> {
    let mut word: Vec<u16> = Vec::with_capacity(space.arities().len());
    let mut allowed = Vec::new();
    for &arity in space.arities() {
        allowed.resize(usize::from(arity), true);
        space.allow(&word, &mut allowed);
        let choices: Vec<u16> = (0..arity).filter(|&symbol| allowed[usize::from(symbol)]).collect();
        word.push(choices.get(stream.below(choices.len() as u64) as usize).copied().unwrap_or(0));
    }
    word
}

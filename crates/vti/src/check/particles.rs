//! Particles that a check has found without q, kept for a later one.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::annealing::Runs;
use crate::problem::{Problem, Shape};
use crate::smc::{Annealed, Sampled, SmcSettings};
use crate::state::{State, StateError};
use crate::store::{self, StoreError};

/// Particles that know nothing of q, and how they were found. They stay what they are whatever is learned about the same problem, so
/// that a later check goes on from there.
///
/// ```
/// use std::sync::Arc;
/// use vti::check::{CheckSettings, Particles, check, check_onwards};
/// use vti::device::Cpu;
/// use vti::family::FamilySettings;
/// use vti::problem;
/// use vti::space::OneOf;
/// use vti::train::{Silent, TrainSettings, Trainer};
///
/// let problem = problem::from_fn(OneOf::with_dims(&[0, 1])?, |model, theta, gradient| {
///     if model[0] == 0 {
///         return 0.0;
///     }
///     gradient[0] = -theta[0];
///     1.0 - 0.5 * theta[0].powi(2) - 0.5 * std::f64::consts::TAU.ln()
/// })
/// .with_reference(vec![(0.0, 3.0)]);
/// let problem = Arc::new(problem);
/// let settings = TrainSettings { steps: 1, batch: 64, ..TrainSettings::default() };
/// let trainer = Trainer::new(problem.clone(), Cpu::<f64>::new(2)?, &FamilySettings::default(), &settings)?;
/// let posterior = trainer.run(&mut Silent)?.posterior;
/// let first = check(&posterior, &CheckSettings::default())?;
/// let path = std::env::temp_dir().join(format!("vti-{}-example.safetensors", std::process::id()));
/// first.particles().ok_or("no particles")?.save(&path, &*problem)?;
/// // Nothing is looked for twice.
/// let kept = Particles::load(&path, &*problem)?;
/// let again = check_onwards(&posterior, &CheckSettings::default(), Some(&kept), &mut |_, _| panic!("no more particles"))?;
/// assert_eq!(again.verdict, first.verdict);
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Particles(pub(super) Kept);

/// What is kept of particles.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kept {
    /// Of all models at once.
    Models(Box<Tempered>),
    /// Of blocks under their keys.
    Blocks(Runs),
}

/// Particles of all models, and how they were found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tempered {
    pub(super) how: How,
    pub(super) sampled: Sampled,
}

/// How particles of all models were found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct How {
    /// Rounds before the last.
    pub(super) round: usize,
    /// The sampler of the last round.
    pub(super) smc: SmcSettings,
    /// Whether a smaller population had found the same.
    pub(super) is_repeated: bool,
}

/// The content of a file, beside its arrays.
#[derive(Serialize, Deserialize)]
struct Content {
    shape: Shape,
    /// Of particles of all models.
    how: Option<How>,
    /// Of runs of blocks: block, key, and how many there are.
    blocks: Vec<(usize, u64, usize)>,
}

impl Particles {
    /// Writes them to a file.
    pub fn save(&self, path: &Path, problem: &dyn Problem) -> Result<(), StoreError> {
        let shape = Shape::of(problem);
        match &self.0 {
            Kept::Models(tempered) => {
                let Tempered { how, sampled } = &**tempered;
                store::write(path, &Content { shape, how: Some(how.clone()), blocks: Vec::new() }, &sampled.state())
            }
            Kept::Blocks(runs) => {
                let blocks = runs.iter().map(|(&(block, key), runs)| (block, key, runs.len())).collect();
                let mut state = State::default();
                let all = || runs.values().flatten();
                state.put("log_evidences", &all().map(|run| run.log_evidence).collect::<Vec<f64>>());
                state.put("calls", &all().map(|run| run.calls as f64).collect::<Vec<f64>>());
                store::write(path, &Content { shape, how: None, blocks }, &state)
            }
        }
    }

    /// Reads particles of a problem; those of a problem with other models or parameters are refused. That data and priors are the same
    /// is left to the caller.
    pub fn load(path: &Path, problem: &dyn Problem) -> Result<Self, StoreError> {
        Self::parse(path, &store::bytes(path)?, problem)
    }

    /// The same of the bytes of a file, `path` as errors name it.
    pub fn parse(path: &Path, bytes: &[u8], problem: &dyn Problem) -> Result<Self, StoreError> {
        let (Content { shape, how, blocks }, mut state): (Content, State) = store::parse(path, bytes)?;
        let content = |reason: String| StoreError::Content { path: path.into(), reason };
        if shape != Shape::of(problem) {
            return Err(content("particles of another problem".into()));
        }
        let kept = match how {
            Some(how) => {
                let sampled = Sampled::restore(&mut state, problem);
                sampled.map(|sampled| Kept::Models(Box::new(Tempered { how, sampled })))
            }
            None => restore_runs(&mut state, &blocks).map(Kept::Blocks),
        };
        kept.map(Self).map_err(|error| content(error.to_string()))
    }
}

/// Runs of blocks, so many of each.
fn restore_runs(state: &mut State, blocks: &[(usize, u64, usize)]) -> Result<Runs, StateError> {
    let count = blocks.iter().try_fold(0usize, |sum, (_, _, count)| sum.checked_add(*count));
    let count =
        count.ok_or_else(|| StateError::Values { name: "calls".into(), expected: "as many numbers as runs" })?;
    let (logs, calls) = (state.take::<f64>("log_evidences", count)?, state.take::<f64>("calls", count)?);
    let mut all =
        logs.into_iter().zip(calls).map(|(log_evidence, calls)| Annealed { log_evidence, calls: calls as usize });
    Ok(blocks.iter().map(|&(block, key, count)| ((block, key), all.by_ref().take(count).collect())).collect())
}

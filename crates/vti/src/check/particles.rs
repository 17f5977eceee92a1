//! What a second opinion rests on, kept for a later check.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::smc::{Sampled, SmcSettings};
use crate::state::State;
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
/// first.opinion.ok_or("no opinion")?.particles().save(&path, &*problem)?;
/// // Nothing is looked for twice.
/// let kept = Particles::load(&path, &*problem)?;
/// let again = check_onwards(&posterior, &CheckSettings::default(), Some(&kept), &mut |_, _| panic!("no more particles"))?;
/// assert_eq!(again.verdict, first.verdict);
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Particles {
    pub(super) how: How,
    pub(super) sampled: Sampled,
}

/// How particles were found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct How {
    /// Rounds before the last.
    pub(super) round: usize,
    /// The sampler of the last round.
    pub(super) smc: SmcSettings,
    /// Whether a smaller population had found the same.
    pub(super) is_repeated: bool,
}

/// What tells problems apart whose particles do not fit each other.
#[derive(PartialEq, Serialize, Deserialize)]
struct Shape {
    arities: Vec<u16>,
    parameters: Vec<String>,
}

impl Shape {
    fn of(problem: &dyn Problem) -> Self {
        Self { arities: problem.space().arities().to_vec(), parameters: problem.parameter_names() }
    }
}

/// The content of a file, beside its arrays.
#[derive(Serialize, Deserialize)]
struct Content {
    how: How,
    shape: Shape,
}

impl Particles {
    /// Writes them to a file.
    pub fn save(&self, path: &Path, problem: &dyn Problem) -> Result<(), StoreError> {
        let content = Content { how: self.how.clone(), shape: Shape::of(problem) };
        store::write(path, &content, &self.sampled.state())
    }

    /// Reads particles of a problem; those of a problem with other models or parameters are refused. That data and priors are the same
    /// is left to the caller.
    pub fn load(path: &Path, problem: &dyn Problem) -> Result<Self, StoreError> {
        let (Content { how, shape }, mut state): (Content, State) = store::read(path)?;
        let content = |reason: String| StoreError::Content { path: path.into(), reason };
        if shape != Shape::of(problem) {
            return Err(content("particles of another problem".into()));
        }
        let sampled = Sampled::restore(&mut state, shape.arities.len()).map_err(|error| content(error.to_string()))?;
        Ok(Self { how, sampled })
    }
}

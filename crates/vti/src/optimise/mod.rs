//! Optimisers, and schedules of their learning rates.

mod adamw;
mod lbfgs;
mod peak;
mod schedule;

use serde::{Deserialize, Serialize};

pub use adamw::{AdamW, AdamWSettings, SettingError};
pub(crate) use lbfgs::{Limits, climb_with_metric};
pub(crate) use peak::{Peak, climb, curvature};
pub use schedule::Schedule;

use crate::engine::Engine;
use crate::state::{State, StateError};

/// Which optimiser, written out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum OptimiserSettings {
    /// AdamW.
    Adamw(AdamWSettings),
    /// Stochastic gradient descent.
    Sgd(SgdSettings),
}

impl Default for OptimiserSettings {
    fn default() -> Self {
        Self::Adamw(AdamWSettings::default())
    }
}

/// Settings of stochastic gradient descent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SgdSettings {
    /// Gradients with a larger norm are scaled down to it; none for no limit.
    pub clip_norm: Option<f64>,
}

impl Default for SgdSettings {
    fn default() -> Self {
        Self { clip_norm: Some(50.0) }
    }
}

/// An optimiser and its state.
///
/// ```
/// use vti::engine::{CpuEngine, Engine};
/// use vti::optimise::{Optimiser, OptimiserSettings, SgdSettings};
///
/// let engine = CpuEngine::<f64>::single();
/// let (mut parameters, mut gradient) = (engine.buffer(2), engine.buffer(2));
/// engine.write(&[3.0, 4.0], &mut gradient);
/// let settings = OptimiserSettings::Sgd(SgdSettings { clip_norm: Some(2.5) });
/// let norm = Optimiser::new(&engine, 2, &settings)?.update(&engine, 0.5, &gradient, &mut parameters);
/// let mut found = [0.0; 2];
/// engine.read(&parameters, &mut found);
/// assert_eq!((norm, found), (5.0, [-0.75, -1.0])); // half the gradient, half of that
/// # Ok::<(), vti::optimise::SettingError>(())
/// ```
#[derive(Debug)]
pub enum Optimiser<E: Engine> {
    /// AdamW with its moments.
    Adamw(AdamW<E>),
    /// Stochastic gradient descent, which remembers nothing.
    Sgd(SgdSettings),
}

impl<E: Engine> Optimiser<E> {
    /// For `parameters` parameters.
    pub fn new(engine: &E, parameters: usize, settings: &OptimiserSettings) -> Result<Self, SettingError> {
        match settings {
            OptimiserSettings::Adamw(settings) => Ok(Self::Adamw(AdamW::new(engine, parameters, settings.clone())?)),
            OptimiserSettings::Sgd(settings) => {
                SettingError::check_clip_norm(settings.clip_norm)?;
                Ok(Self::Sgd(settings.clone()))
            }
        }
    }

    /// Moves `parameters` against `gradient` and returns the gradient's norm before clipping. A gradient that is not
    /// finite changes nothing: the caller sees it in the norm.
    ///
    /// # Panics
    ///
    /// If `gradient` or `parameters` are not as long as [`Optimiser::new`] was told.
    pub fn update(&mut self, engine: &E, rate: f64, gradient: &E::Buffer, parameters: &mut E::Buffer) -> f64 {
        match self {
            Self::Adamw(adamw) => adamw.update(engine, rate, gradient, parameters),
            Self::Sgd(SgdSettings { clip_norm }) => {
                let norm = engine.norm(gradient);
                if norm.is_finite() {
                    let clip = clip_norm.map_or(1.0, |limit| if norm > limit { limit / norm } else { 1.0 });
                    engine.combine(-rate * clip, gradient, 1.0, parameters);
                }
                norm
            }
        }
    }

    /// What must be kept to go on.
    pub fn state(&self, engine: &E) -> State {
        match self {
            Self::Adamw(adamw) => adamw.state(engine),
            Self::Sgd(_) => State::default(),
        }
    }

    /// Goes on from a kept state.
    pub fn restore(&mut self, engine: &E, state: &mut State) -> Result<(), StateError> {
        match self {
            Self::Adamw(adamw) => adamw.restore(engine, state),
            Self::Sgd(_) => Ok(()),
        }
    }
}

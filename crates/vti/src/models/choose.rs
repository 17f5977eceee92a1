//! Which distribution over models, written out or chosen by size and structure.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Autoregressive, Categorical, ControlVariateKind, Covariance, ModelDistribution, Modular, ModularSettings,
    Surrogate, SurrogateSettings, WordError, WordNetSettings,
};
use crate::device::{Device, DeviceError};
use crate::optimise::{AdamWSettings, OptimiserError, OptimiserSettings, SettingError};
use crate::problem::Problem;
use crate::space::{Catalogue, ModelSpace, SpaceError};

/// Which distribution over models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ModelsSettings {
    /// Chosen by the size of the space, see [`build`].
    Auto {},
    /// A logit per model.
    Categorical(CategoricalSettings),
    /// MADE+ over words.
    Autoregressive(AutoregressiveSettings),
    /// Surrogate of −ℓ(m; φ).
    Surrogate(SurrogateSettings),
    /// A surrogate for each block, such as a node of a graph.
    Modular(ModularSettings),
}

impl Default for ModelsSettings {
    fn default() -> Self {
        Self::Auto {}
    }
}

/// How ψ learns from score-function gradients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearningSettings {
    /// The optimiser of ψ.
    #[serde(default = "without_decay")]
    pub optimiser: OptimiserSettings,
    /// Its learning rate at the peak; it rises and falls with that of φ.
    pub rate: f64,
    /// The control variate.
    #[serde(default, alias = "baseline")]
    pub control_variate: ControlVariateKind,
}

/// Weights that nobody draws must not decay: they are zeros of the gradient, not of the posterior.
fn without_decay() -> OptimiserSettings {
    OptimiserSettings::Adamw(AdamWSettings { weight_decay: 0.0, ..AdamWSettings::default() })
}

impl LearningSettings {
    /// AdamW and the mean loss of the other rows as control variate.
    pub fn new(rate: f64) -> Self {
        Self { optimiser: without_decay(), rate, control_variate: ControlVariateKind::default() }
    }
}

/// Settings of a [`Categorical`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CategoricalSettings {
    /// How the logits learn.
    pub learning: LearningSettings,
}

impl Default for CategoricalSettings {
    fn default() -> Self {
        Self { learning: LearningSettings::new(0.2) }
    }
}

/// Settings of an [`Autoregressive`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AutoregressiveSettings {
    /// The network.
    pub network: WordNetSettings,
    /// How it learns.
    pub learning: LearningSettings,
}

impl Default for AutoregressiveSettings {
    fn default() -> Self {
        Self { network: WordNetSettings::default(), learning: LearningSettings::new(0.01) }
    }
}

/// A distribution over models that cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelsError {
    /// The space cannot be enumerated.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// The network cannot be built.
    #[error(transparent)]
    Word(#[from] WordError),
    /// A setting out of its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A modular distribution without blocks, or without sums over their combinations.
    #[error(
        "a modular distribution needs a density that is a product over blocks, such as graphs of few nodes, and structure = \"blocks\""
    )]
    NotModular,
    /// Drawing from a distribution whose run was ended before its first step.
    #[error(
        "the run ended while q(m) was prepared, before its first step: there is nothing to draw from yet\nhint: resume it"
    )]
    NotPrepared,
    /// A covariance that would not fit into memory.
    #[error(
        "a full covariance over {models} models is too large, it can be kept for {most}; use covariance = \"diagonal\""
    )]
    TooManyForFullCovariance {
        /// How many models there are.
        models: usize,
        /// How many there may be.
        most: usize,
    },
}

impl From<OptimiserError> for ModelsError {
    fn from(error: OptimiserError) -> Self {
        match error {
            OptimiserError::Setting(error) => error.into(),
            OptimiserError::Device(error) => error.into(),
        }
    }
}

/// A distribution over models, and how it came to be.
pub struct Chosen<D: Device> {
    /// The distribution.
    pub models: Box<dyn ModelDistribution<D>>,
    /// Its settings, written out.
    pub settings: ModelsSettings,
    /// Why it was chosen; none where it was asked for.
    pub reason: Option<String>,
}

impl<D: Device> std::fmt::Debug for Chosen<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chosen").field("settings", &self.settings).field("reason", &self.reason).finish_non_exhaustive()
    }
}

/// The most models that are enumerated.
pub(super) const MAX_ENUMERATED: usize = 1 << 20;

/// Up to so many models `auto` prefers the surrogate: each is then seen often enough to have a mean of its own.
const MAX_SURROGATE_MODELS: usize = 1 << 14;

/// Written-out settings for a space, and the reason.
fn choose(space: &dyn ModelSpace, modular: bool) -> Result<(ModelsSettings, String), ModelsError> {
    if modular {
        let reason = "each block and its key have a score of their own".into();
        return Ok((ModelsSettings::Modular(ModularSettings::default()), reason));
    }
    Ok(match Catalogue::new(space, MAX_SURROGATE_MODELS) {
        Ok(catalogue) => {
            let settings = SurrogateSettings { covariance: Covariance::Diagonal, ..SurrogateSettings::default() };
            let reason = format!("{} models: few enough for an estimate of its own for each", catalogue.len());
            (ModelsSettings::Surrogate(settings), reason)
        }
        Err(SpaceError::TooMany { .. }) => {
            let models = space.log_count() / std::f64::consts::LN_10;
            let count =
                if models.is_nan() { format!("more than {MAX_SURROGATE_MODELS}") } else { format!("10^{models:.1}") };
            let reason = format!("{count} models: too many to keep a number for each");
            (ModelsSettings::Autoregressive(AutoregressiveSettings::default()), reason)
        }
        Err(error) => return Err(error.into()),
    })
}

/// Makes a choice where there is one to make, and says why.
pub(crate) fn resolve(
    problem: &dyn Problem,
    blockwise: bool,
    settings: &ModelsSettings,
) -> Result<(ModelsSettings, Option<String>), ModelsError> {
    if *settings != (ModelsSettings::Auto {}) {
        return Ok((settings.clone(), None));
    }
    let (chosen, reason) = choose(problem.space(), blockwise && Modular::suits(problem))?;
    Ok((chosen, Some(reason)))
}

/// Builds the distribution that `settings` name for a problem's models, for training batches of `rows` rows. `auto` takes the
/// modular one where sums over models are known and the family is `blockwise`, so that blocks are scored one by one; otherwise a diagonal surrogate
/// for up to 2¹⁴ models and MADE+ beyond.
pub fn build<D: Device>(
    device: &D,
    problem: &Arc<dyn Problem>,
    blockwise: bool,
    settings: &ModelsSettings,
    rows: usize,
    seed: u64,
) -> Result<Chosen<D>, ModelsError> {
    let space = problem.space();
    let log_prior = |word: &[u16]| problem.log_prior(word);
    let (settings, reason) = resolve(&**problem, blockwise, settings)?;
    let models: Box<dyn ModelDistribution<D>> = match &settings {
        ModelsSettings::Auto {} => unreachable!("a choice is written out"),
        ModelsSettings::Categorical(CategoricalSettings { learning }) => {
            let catalogue = Catalogue::new(space, MAX_ENUMERATED)?;
            Box::new(Categorical::new(device, catalogue, log_prior, learning)?)
        }
        ModelsSettings::Autoregressive(AutoregressiveSettings { network, learning }) => {
            Box::new(Autoregressive::new(device, Arc::clone(problem), network, learning, rows, seed)?)
        }
        ModelsSettings::Surrogate(settings) => Box::new(Surrogate::new(
            device.workers(),
            space,
            Catalogue::new(space, MAX_ENUMERATED)?,
            log_prior,
            settings,
        )?),
        ModelsSettings::Modular(_) if !blockwise => return Err(ModelsError::NotModular),
        ModelsSettings::Modular(settings) => Box::new(Modular::new(Arc::clone(problem), settings)?),
    };
    Ok(Chosen { models, settings, reason })
}

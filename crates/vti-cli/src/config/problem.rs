//! What is to be inferred: the section `[problem]`.

use serde::{Deserialize, Serialize};
use vti::family::FamilySettings;
use vti::problem::selection::{CoefficientPrior, Likelihood, ModelPrior, SelectionSettings};
use vti::train::TrainSettings;

use crate::data::Choice;

/// Where the numbers come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceConfig {
    /// A CSV or Parquet file.
    pub(crate) data: String,
    #[serde(default)]
    pub(crate) include: Vec<String>,
    #[serde(default)]
    pub(crate) exclude: Vec<String>,
    /// Of the data's content, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fingerprint: Option<String>,
}

impl SourceConfig {
    /// All columns of a file.
    pub(crate) fn all(data: &str) -> Self {
        Self { data: data.into(), ..Self::default() }
    }
}

/// What is asked of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum ProblemConfig {
    /// Which covariates matter for a response?
    Select(SelectConfig),
}

impl ProblemConfig {
    /// How such a problem is learned unless the settings say otherwise.
    pub(crate) fn default_train(&self) -> TrainSettings {
        match self {
            Self::Select(_) => TrainSettings::default(),
        }
    }

    /// By which family.
    pub(crate) fn default_family(&self) -> FamilySettings {
        match self {
            Self::Select(_) => FamilySettings::default(),
        }
    }
}

/// Variable selection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SelectConfig {
    pub(crate) response: String,
    #[serde(default)]
    pub(crate) always: Vec<String>,
    #[serde(default)]
    pub(crate) categorical: Vec<String>,
    #[serde(default = "yes")]
    pub(crate) standardize: bool,
    #[serde(default = "gaussian")]
    pub(crate) likelihood: Likelihood,
    #[serde(default)]
    pub(crate) prior: CoefficientPrior,
    #[serde(default)]
    pub(crate) model_prior: ModelPrior,
}

fn yes() -> bool {
    true
}

fn gaussian() -> Likelihood {
    SelectionSettings::default().likelihood
}

impl SelectConfig {
    /// Default assumptions about a response.
    pub(crate) fn new(response: &str) -> Self {
        let SelectionSettings { likelihood, prior, model_prior } = SelectionSettings::default();
        Self {
            response: response.into(),
            always: Vec::new(),
            categorical: Vec::new(),
            standardize: true,
            likelihood,
            prior,
            model_prior,
        }
    }

    /// What is assumed.
    pub(crate) fn settings(&self) -> SelectionSettings {
        let Self { likelihood, prior, model_prior, .. } = *self;
        SelectionSettings { likelihood, prior, model_prior }
    }

    /// Which columns take part.
    pub(crate) fn choice(&self, source: &SourceConfig) -> Choice {
        let Self { response, always, categorical, .. } = self.clone();
        let SourceConfig { include, exclude, .. } = source.clone();
        Choice { response, include, exclude, always, categorical }
    }
}

//! What is to be inferred: the section `[problem]`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vti::check::CheckSettings;
use vti::prior::CountPrior;
use vti::problem::changepoints::{self, ChangePointSettings, SegmentPriors};
use vti::problem::dag::{DagSettings, GraphPrior, Noise, Scaling, Score, Sem};
use vti::problem::selection::{CoefficientPrior, Likelihood, ModelPrior, SelectionSettings};
use vti::space::Heredity;
use vti::train::TrainSettings;

use super::LayersConfig;
use super::counting::{MixtureConfig, PeaksConfig};
use crate::data::{Choice, DataError, Missing, Offset, Source, Table};

/// Where the numbers come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceConfig {
    /// A CSV or Parquet file, or standard input.
    pub(crate) data: String,
    #[serde(default)]
    pub(crate) include: Vec<String>,
    #[serde(default)]
    pub(crate) exclude: Vec<String>,
    /// What becomes of missing values.
    #[serde(default)]
    pub(crate) missing: Missing,
    /// Words for a missing value beside the usual ones.
    #[serde(default)]
    pub(crate) missing_values: Vec<String>,
    /// Of the data's content, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fingerprint: Option<String>,
    /// The table, where a program handed it over; `data` is then the file in the run directory that keeps it.
    #[serde(skip)]
    pub(crate) table: Option<Table>,
}

impl SourceConfig {
    /// The file where a table is kept that a program handed over.
    pub(crate) const KEPT: &str = "data.parquet";

    /// The table.
    pub(crate) fn read(&self) -> Result<Source, DataError> {
        match &self.table {
            Some(table) => Ok(Source::of_table(&self.data, table)),
            None => Source::read(&self.data),
        }
    }

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
    /// What causes what?
    Dag(DagConfig),
    /// How many changes, and when?
    Changepoints(ChangePointsConfig),
    /// What a density of a program's own says.
    Own(OwnConfig),
    /// How many components?
    Mixture(MixtureConfig),
    /// How many peaks, or sinusoids?
    Peaks(PeaksConfig),
    /// How many layers, where, and of what?
    Layers(LayersConfig),
}

impl ProblemConfig {
    /// Writes out what follows from other settings.
    pub(crate) fn resolve(&mut self) {
        if let Self::Dag(asked) = self {
            asked.scale = Some(asked.scale());
        }
    }

    /// Whether both ask the same; what an answer is compared with is no part of the question.
    pub(crate) fn asks_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dag(a), Self::Dag(b)) => {
                let without = |asked: &DagConfig| DagConfig { truth: None, ..asked.clone() };
                without(a) == without(b)
            }
            // What was left out was set from the data, which are the same.
            (Self::Changepoints(a), Self::Changepoints(b)) => a.filled_from(b) == b.filled_from(a),
            (Self::Mixture(a), Self::Mixture(b)) => a.filled_from(b) == b.filled_from(a),
            (Self::Peaks(a), Self::Peaks(b)) => a.filled_from(b) == b.filled_from(a),
            (Self::Layers(a), Self::Layers(b)) => a.filled_from(b) == b.filled_from(a),
            _ => self == other,
        }
    }

    /// The file of the graph to compare with.
    pub(crate) fn truth_mut(&mut self) -> Option<&mut Option<String>> {
        match self {
            Self::Dag(asked) => Some(&mut asked.truth),
            _ => None,
        }
    }

    /// How its answer is checked unless the settings say otherwise.
    pub(crate) fn default_check(&self) -> CheckSettings {
        match self {
            Self::Select(_) | Self::Dag(_) | Self::Own(_) => CheckSettings::default(),
            Self::Layers(_) => CheckSettings::sparing(),
            // Exact draws, which are needed for curves and tables only.
            Self::Changepoints(_) => CheckSettings { draws: 4000, ..CheckSettings::default() },
            Self::Mixture(_) | Self::Peaks(_) => CheckSettings::counting(),
        }
    }

    /// How such a problem is learned unless the settings say otherwise.
    pub(crate) fn default_train(&self) -> TrainSettings {
        match self {
            Self::Select(_) | Self::Changepoints(_) | Self::Own(_) => TrainSettings::default(),
            Self::Layers(_) => TrainSettings::sparing(),
            Self::Dag(_) => TrainSettings::blockwise(),
            Self::Mixture(_) | Self::Peaks(_) => TrainSettings::counting(),
        }
    }
}

/// Changes of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ChangePointsConfig {
    /// What is constant between changes.
    pub(crate) series: changepoints::Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exposure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_changes: Option<usize>,
    pub(crate) min_spacing: f64,
    pub(crate) count_prior: CountPrior,
    pub(crate) spacing: f64,
    pub(crate) noise: changepoints::Noise,
    pub(crate) prior: SegmentPriors,
}

impl Default for ChangePointsConfig {
    fn default() -> Self {
        let ChangePointSettings { kind, max_changes, min_spacing, count_prior, spacing, noise, prior } =
            ChangePointSettings::default();
        Self {
            series: kind,
            time: None,
            value: None,
            exposure: None,
            start: None,
            end: None,
            max_changes,
            min_spacing,
            count_prior,
            spacing,
            noise,
            prior,
        }
    }
}

impl ChangePointsConfig {
    /// What is assumed.
    pub(crate) fn settings(&self) -> ChangePointSettings {
        let Self { series, max_changes, min_spacing, count_prior, spacing, noise, prior, .. } = self.clone();
        ChangePointSettings { kind: series, max_changes, min_spacing, count_prior, spacing, noise, prior }
    }

    /// With what it leaves out as the other has it.
    fn filled_from(&self, other: &Self) -> Self {
        let mut filled = self.clone();
        filled.max_changes = filled.max_changes.or(other.max_changes);
        let (prior, others) = (&mut filled.prior, other.prior.clone());
        prior.rate = prior.rate.take().or(others.rate);
        prior.level = prior.level.take().or(others.level);
        prior.slope = prior.slope.take().or(others.slope);
        prior.noise = prior.noise.take().or(others.noise);
        filled
    }
}

/// A density of a program's own; the program knows the function, and the file says what it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OwnConfig {
    /// What was asked, as the page says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
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
    /// Added to predictors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) offset: Option<String>,
    /// What counts are proportional to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exposure: Option<String>,
    /// How much rows count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) weights: Option<String>,
    /// The formula of terms; all columns by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) terms: Option<String>,
    /// Whether products may be in without their columns.
    #[serde(default)]
    pub(crate) heredity: Heredity,
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
        let SelectionSettings { likelihood, prior, model_prior, heredity } = SelectionSettings::default();
        Self {
            response: response.into(),
            always: Vec::new(),
            categorical: Vec::new(),
            offset: None,
            exposure: None,
            weights: None,
            terms: None,
            heredity,
            standardize: true,
            likelihood,
            prior,
            model_prior,
        }
    }

    /// What is assumed.
    pub(crate) fn settings(&self) -> SelectionSettings {
        let Self { likelihood, prior, model_prior, heredity, .. } = *self;
        SelectionSettings { likelihood, prior, model_prior, heredity }
    }

    /// Which columns take part.
    pub(crate) fn choice(&self, source: &SourceConfig) -> Choice {
        let Self { response, always, categorical, offset, exposure, weights, terms, heredity, standardize, .. } =
            self.clone();
        let SourceConfig { include, exclude, missing, missing_values, .. } = source.clone();
        let named = [(offset, false), (exposure, true)];
        let offset = |(column, exposure): (Option<String>, bool)| Some(Offset { column: column?, exposure });
        let offsets = named.into_iter().filter_map(offset).collect();
        Choice {
            response,
            include,
            exclude,
            always,
            categorical,
            offsets,
            weights,
            terms,
            heredity,
            centred: standardize,
            missing,
            missing_values,
        }
    }
}

/// Causal graphs. Nodes are named as their columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DagConfig {
    pub(crate) sem: Sem,
    pub(crate) noise: Noise,
    pub(crate) weight_scale: f64,
    /// Prior of weights and noise.
    pub(crate) score: Score,
    pub(crate) prior: GraphPrior,
    pub(crate) edge_penalty: f64,
    /// The column that names the nodes which were set in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interventions: Option<String>,
    /// Nodes that other words in that column mean.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) targets: BTreeMap<String, Vec<String>>,
    /// Edges [from, to] that every graph has.
    pub(crate) require: Vec<[String; 2]>,
    /// Edges [from, to] that no graph has.
    pub(crate) forbid: Vec<[String; 2]>,
    /// Groups of columns, earliest first.
    pub(crate) tiers: Vec<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_parents: Option<usize>,
    /// Of which columns logarithms are taken.
    pub(crate) log: Vec<String>,
    /// Columns that hold categories, though they are numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) categorical: Vec<String>,
    /// Columns of ordered categories with these, lowest first.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) ordered: BTreeMap<String, Vec<String>>,
    /// By the noise where it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scale: Option<Scaling>,
    /// A file with the graph to compare with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) truth: Option<String>,
}

impl Default for DagConfig {
    fn default() -> Self {
        let DagSettings { sem, noise, weight_scale, score, prior, edge_penalty, rules: _ } = DagSettings::default();
        Self {
            sem,
            noise,
            weight_scale,
            score,
            prior,
            edge_penalty,
            interventions: None,
            targets: BTreeMap::new(),
            require: Vec::new(),
            forbid: Vec::new(),
            tiers: Vec::new(),
            max_parents: None,
            log: Vec::new(),
            categorical: Vec::new(),
            ordered: BTreeMap::new(),
            scale: None,
            truth: None,
        }
    }
}

impl DagConfig {
    /// Noise that is known is known in the units of the data.
    pub(crate) fn scale(&self) -> Scaling {
        self.scale.unwrap_or(match self.noise {
            Noise::Unknown {} => Scaling::Columns,
            Noise::Known { .. } => Scaling::None,
        })
    }
}

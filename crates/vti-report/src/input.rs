//! What a page is made of.

mod graph;

use serde::{Deserialize, Serialize};

pub use graph::{BestGraph, Better, Effect, GraphSection, Metric, OrderStatistics, Truth};

/// Everything a page says. Lists may be empty: their sections are then left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Report {
    /// What was asked, e.g. "Which covariates matter for lpsa?".
    pub title: String,
    /// What was done in one line.
    pub subtitle: String,
    /// How far the answer can be trusted.
    pub verdict: Verdict,
    /// Key figures, shown at the top: evidence, bound, k̂, number of models, time.
    pub facts: Vec<Fact>,
    /// Things to know before the answer is used.
    pub warnings: Vec<String>,
    /// How training went.
    pub trace: Vec<Trace>,
    /// The corrected log evidence, a line in the plot of the trace.
    pub log_evidence: Option<f64>,
    /// What `corrected` means, in words that go on from "Corrected …"; by weights if empty.
    pub correction: String,
    /// Name of what `exact` means in `models` and `inclusion`, e.g. "exact (enumeration)" or "reversible jump".
    pub exact_name: Option<String>,
    /// Models, most probable first.
    pub models: Vec<ModelRow>,
    /// Inclusion probabilities of terms, in the order of the data.
    pub inclusion: Vec<Inclusion>,
    /// Coefficients in the units of the data.
    pub coefficients: Vec<Coefficient>,
    /// Joint draws of the leading model.
    pub pairs: Option<Pairs>,
    /// The posterior over causal graphs, where models are graphs. Labels of `models` then list edges, `a → b, b → c`.
    pub graph: Option<GraphSection>,
    /// The resolved settings, as TOML.
    pub settings: String,
    /// Version of the program.
    pub version: String,
}

/// How far an answer can be trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// As a colour.
    pub level: Level,
    /// In words.
    pub text: String,
}

/// Levels of trust.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// q can be used as it is.
    Trust,
    /// The correction can be used.
    Corrected,
    /// Neither can.
    #[default]
    DoNotTrust,
}

/// A key figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// Its name.
    pub name: String,
    /// Its value with its error.
    pub value: String,
    /// What it means, in a few words; may be empty.
    pub note: String,
}

/// A point of the training trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Steps done.
    pub step: u64,
    /// Seconds since the start.
    pub seconds: f64,
    /// The bound.
    pub elbo: f64,
    /// Entropy of q(m) in nats.
    pub entropy: f64,
}

/// One number as learned, as corrected with its standard error, and as known exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Under q.
    pub q: f64,
    /// Corrected.
    pub corrected: f64,
    /// Standard error of the correction.
    pub se: f64,
    /// Exact, where known.
    pub exact: Option<f64>,
}

/// A model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRow {
    /// What people read, e.g. "lcavol + lweight + svi".
    pub label: String,
    /// Number of terms in it.
    pub size: usize,
    /// Its probability.
    pub probability: Comparison,
    /// Its log evidence with standard error, where estimated.
    pub log_evidence: Option<(f64, f64)>,
    /// k̂ of its weights, where known and finite.
    pub khat: Option<f64>,
}

/// How probable it is that a term belongs to the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inclusion {
    /// Name of the term.
    pub name: String,
    /// Its inclusion probability.
    pub probability: Comparison,
}

/// A coefficient averaged over models.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coefficient {
    /// Name of the column.
    pub name: String,
    /// Mean over all models (0 where it is out).
    pub mean: Comparison,
    /// Standard deviation over all models, corrected.
    pub sd: f64,
    /// Ends of the central 95 % interval over all models, corrected.
    pub interval: (f64, f64),
    /// Probability that it is in the model, corrected.
    pub inclusion: f64,
    /// Some of its draws given that it is in the model.
    pub draws: Vec<f64>,
    /// Their corrected weights, summing to 1.
    pub weights: Vec<f64>,
}

/// Joint draws of a model's parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pairs {
    /// The model.
    pub label: String,
    /// Its parameters.
    pub names: Vec<String>,
    /// Draws of each parameter, one list per parameter, from q.
    pub draws: Vec<Vec<f64>>,
    /// Corrected weights of the draws, summing to 1.
    pub weights: Vec<f64>,
}

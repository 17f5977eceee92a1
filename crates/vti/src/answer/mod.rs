//! What was found, in the units of the data: one type that is also the file `summary.json`.
//!
//! A check, chains where there were any and the exact answer where it is known become an [`Answer`]: probabilities of models
//! and of their parts (terms, edges), coefficients, evidence, verdict, and how it was computed. Every number that was learned
//! is a [`Quantity`]: as q has it, corrected with its standard error, and exact where that is known. Where evidences are in
//! closed form, nothing needs to be learned: [`Findings::exact`] and [`Findings::exact_graphs`] where models can be summed, [`Findings::searched`] where
//! chains over models find those that matter. [`Findings`] are an
//! answer with what stands behind it: all models that were met, and draws in the units of the data ([`Samples`]), from which
//! predictions ([`Predictor`]) and plots are made.
//!
//! What an answer is about is a [`Subject`]: any problem, or one of the built-in ones, whose answers say more.
//!
//! ```
//! use std::sync::Arc;
//! use vti::answer::{Findings, Run, Sources, Subject};
//! use vti::check::{CheckSettings, check};
//! use vti::device::Cpu;
//! use vti::family::FamilySettings;
//! use vti::problem;
//! use vti::space::Subsets;
//! use vti::train::{Silent, TrainSettings, Trainer};
//!
//! // Two optional parameters with standard normal posteriors; each one multiplies the evidence by e.
//! let problem = problem::from_fn(Subsets::new(2)?, |_model, theta, gradient| {
//!     gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = -t);
//!     theta.iter().map(|t| 1.0 - 0.5 * t * t - 0.5 * std::f64::consts::TAU.ln()).sum()
//! });
//! let settings = TrainSettings { steps: 300, batch: 128, ..TrainSettings::default() };
//! let trainer = Trainer::new(Arc::new(problem), Cpu::<f64>::new(2)?, &FamilySettings::default(), &settings)?;
//! let fit = trainer.run(&mut Silent)?;
//! let check = check(&fit.posterior, &CheckSettings::default())?;
//! let subject = Subject::of(&**fit.posterior.problem());
//! let found = Findings::new(&fit.posterior, &subject, &Sources::from(&check), Run::of(&fit))?;
//! let inclusion = found.answer.found.inclusion().iter().map(|(_, quantity)| quantity.corrected);
//! let truth = 1f64.exp() / (1.0 + 1f64.exp());
//! assert!(inclusion.into_iter().all(|corrected| (corrected - truth).abs() < 0.02));
//! let json = found.answer.to_json()?;
//! assert_eq!(vti::answer::Answer::from_json(&json)?, found.answer);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod changepoints;
mod classes;
mod closed_form;
mod components;
mod count;
mod error;
mod exact;
mod exact_graphs;
mod features;
mod fit;
mod graph;
mod heed;
mod layers;
mod mixture;
mod peaks;
mod predict;
mod quantity;
mod samples;
mod subject;
mod units;

use serde::{Deserialize, Serialize};

pub use build::{Findings, MAX_MODELS, Sources};
pub use classes::{Classes, ProbableClass};
pub use closed_form::affordable_draws;
pub use count::{
    Band, ComponentTable, Count, CountAnswer, CountEvidence, Counted, Counting, Curve, Described, GivenCount,
    KnownCount, Marginal, Memberships, Observed, Positions, Scale, Shape, leading_counts,
};
pub use error::AnswerError;
pub use exact::Exact;
pub use graph::{Class, Edge, Edges, GraphStatistics, Graphs, Metric, NamedEdge, Trivial, Truth};
pub use predict::{CategoryPrediction, Prediction, Predictor};
pub use quantity::{Coefficient, Ordered, Quantity};
pub use samples::{SampledModel, Samples, quantiles};
pub use subject::Subject;
pub use units::Units;

use crate::check::Verdict;
use crate::device::Device;
use crate::predictive::ModelFit;
use crate::search::Ended;
use crate::simd::Real;
use crate::stats::Estimate;
use crate::train::Fit;

/// Of the library, and so of the answers it writes.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Everything that was found out: the content of `summary.json`, whose form is a promise (docs/run-directory.md).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Of the library that wrote it.
    pub version: String,
    /// What was asked, of a problem of one's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the data were.
    pub data: DataFacts,
    /// How far the answer can be trusted.
    pub verdict: Verdict,
    /// Whether the model fits the data, which is another question; none where nobody has looked.
    #[serde(default)]
    pub fit: Option<ModelFit>,
    /// The bound; none where nothing was learned.
    pub elbo: Option<Bound>,
    /// `log p(y)`.
    pub log_evidence: LogEvidence,
    /// What `corrected` means.
    pub correction: Method,
    /// The question's own answer.
    #[serde(flatten)]
    pub found: Found,
    /// Models, most probable first, at most [`MAX_MODELS`].
    pub models: Vec<ModelAnswer>,
    /// Where the exact answer is known.
    pub exact: Option<ExactComparison>,
    /// Where chains were run.
    pub chains: Option<ChainFacts>,
    /// Where chains over models answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchFacts>,
    /// How it was computed.
    #[serde(flatten)]
    pub run: Run,
}

impl Answer {
    /// Whether it is exact, and nothing was learned.
    pub fn is_exact(&self) -> bool {
        self.correction == Method::Exact
    }

    /// Whether there is a q: nothing is learned where all models are summed, and where chains over models answer, q(m) may learn
    /// what they met.
    pub fn is_learned(&self) -> bool {
        match self.correction {
            Method::Exact => false,
            Method::Search => self.elbo.is_some(),
            _ => true,
        }
    }

    /// As `summary.json` has it.
    pub fn to_json(&self) -> Result<String, AnswerError> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// Reads what [`Answer::to_json`] wrote. An answer that another version wrote in another form is refused by name.
    pub fn from_json(text: &str) -> Result<Self, AnswerError> {
        serde_json::from_str(text).map_err(|error| {
            let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
            match value["version"].as_str() {
                Some(found) if found != VERSION => AnswerError::Version { found: found.into() },
                _ => error.into(),
            }
        })
    }
}

/// What the data were, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataFacts {
    /// Where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Tells their contents apart from others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The column that is explained, of a selection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    /// Rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
    /// Optional terms, of a selection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms: Option<usize>,
    /// Priors of slopes, intercept and scale in words, of a selection; of weights and noise, of causal graphs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<String>,
    /// Nodes, of causal graphs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<usize>,
    /// How columns were scaled, of causal graphs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
    /// In how many rows nodes were set from outside, of causal graphs with interventions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interventions: Option<Ordered<usize>>,
    /// Columns that did not take part, though nobody asked for that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// A column that does not take part, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Its name; empty where it has none.
    pub column: String,
    /// Why, in words.
    pub reason: String,
}

/// The bound `E_q[log p(m) p(y, θ | m) − log q(m, θ)]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Its mean over draws.
    #[serde(deserialize_with = "quantity::or_nan")]
    pub mean: f64,
    /// Standard error of the mean.
    #[serde(deserialize_with = "quantity::or_nan")]
    pub se: f64,
}

/// `log p(y)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogEvidence {
    /// Corrected.
    #[serde(deserialize_with = "quantity::or_nan")]
    pub estimate: f64,
    /// Its standard error.
    #[serde(deserialize_with = "quantity::or_nan")]
    pub se: f64,
    /// k̂ of the weights; none where it is unknown, or where all weights are equal.
    pub khat: Option<f64>,
}

/// How a correction was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Importance weights of whole draws.
    #[default]
    Weights,
    /// Importance weights of each block of the density on its own.
    #[serde(rename = "factors")]
    Blocks,
    /// Evidences of blocks from the prior, by annealed particles.
    Annealed,
    /// Chains with q as their proposal.
    Chains,
    /// Particles that know nothing of q.
    Particles,
    /// All models were summed in closed form: nothing was learned, and nothing is left to correct.
    Exact,
    /// Chains over models whose evidences are in closed form; no parameters were learned.
    Search,
}

/// The question's own answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Found {
    /// Which covariates matter for a response.
    Select(Terms),
    /// What causes what.
    Dag(Box<Graphs>),
    /// How many there are.
    Count(Box<Count>),
    /// What a problem of one's own is made of.
    Own(Terms),
}

impl Default for Found {
    fn default() -> Self {
        Self::Own(Terms::default())
    }
}

impl Found {
    /// Parts of models with their probabilities, unless these are edges of graphs.
    pub fn inclusion(&self) -> &[(String, Quantity)] {
        match self {
            Self::Select(terms) | Self::Own(terms) => &terms.inclusion.0,
            Self::Dag(_) | Self::Count(_) => &[],
        }
    }

    /// Parameters averaged over models.
    pub fn coefficients(&self) -> &[(String, Coefficient)] {
        match self {
            Self::Select(terms) | Self::Own(terms) => &terms.coefficients.0,
            Self::Dag(graphs) => graphs.coefficients.as_ref().map_or(&[], |coefficients| &coefficients.0),
            Self::Count(count) => &count.coefficients.0,
        }
    }

    /// What was found about graphs, where models are graphs.
    pub fn graphs(&self) -> Option<&Graphs> {
        match self {
            Self::Dag(graphs) => Some(graphs),
            Self::Select(_) | Self::Own(_) | Self::Count(_) => None,
        }
    }

    /// What was found about a number of components, where they are counted.
    pub fn count(&self) -> Option<&Count> {
        match self {
            Self::Count(count) => Some(count),
            Self::Select(_) | Self::Own(_) | Self::Dag(_) => None,
        }
    }
}

/// Which parts models have, and their parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The label of the most probable model.
    pub highest_probability_model: String,
    /// The label of the model of the parts that are more probably in than not; none where models have no parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_probability_model: Option<String>,
    /// How probable each part is; empty where models have no parts.
    pub inclusion: Ordered<Quantity>,
    /// Parameters averaged over models.
    pub coefficients: Ordered<Coefficient>,
}

/// A model that was met.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// Its symbols.
    pub word: String,
    /// What people read.
    pub label: String,
    /// How many parts it has: terms, edges.
    pub size: usize,
    /// Its probability.
    #[serde(flatten)]
    pub probability: Quantity,
    /// Its log evidence, where it was met often enough.
    pub log_evidence: Option<Estimate>,
    /// k̂ of the weights within it, where it is known and finite.
    pub khat: Option<f64>,
}

/// The exact answer, and how far the others are from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExactComparison {
    /// `log p(y)`.
    pub log_evidence: f64,
    /// Half the sum of the differences between model probabilities; none where nothing else was found.
    pub total_variation: Option<Distances>,
}

/// A distance of q, and of its correction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distances {
    /// Of q.
    #[serde(deserialize_with = "quantity::or_nan")]
    pub q: f64,
    /// Of its correction, among the models that were met: what is known of the others is only that they were not.
    #[serde(deserialize_with = "quantity::or_nan")]
    pub corrected: f64,
    /// The exact probability of the models that were met, together.
    #[serde(default)]
    pub met: Option<f64>,
}

/// How chains went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChainFacts {
    /// The largest split-R̂; none for chains that stand still in different places.
    pub rhat: Option<f64>,
    /// The smallest effective sample size.
    pub effective: f64,
    /// Share of accepted jumps between models.
    pub accepted_jumps: f64,
}

/// How chains over models went whose evidences are in closed form.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchFacts {
    /// Chains with the posterior as their target.
    pub chains: usize,
    /// Chains of a group: each of these, and hotter ones beside it.
    pub temperatures: usize,
    /// Iterations of each chain that count.
    pub iterations: usize,
    /// Evidences that were computed.
    pub evidences: usize,
    /// The largest split-R̂ of an inclusion; none for chains that stand still in different places.
    pub rhat: Option<f64>,
    /// The smallest effective sample size of an inclusion.
    pub effective: f64,
    /// An estimate of the probability of all models whose evidence is not known.
    pub unmet: f64,
    /// Why it ended.
    pub ended: Ended,
    /// `log p(y)` by weights of q(m), where that has learned what chains met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Estimate>,
}

/// One of several runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replicate {
    /// Its seed.
    pub seed: u64,
    /// Its bound; none where it failed.
    pub elbo: Option<Estimate>,
    /// Why it ended.
    pub ending: String,
}

/// How long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seconds {
    /// Training.
    pub train: f64,
    /// The check and what followed from it.
    pub check: f64,
}

/// How an answer was computed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Of several runs, what became of each.
    pub replicates: Vec<Replicate>,
    /// Steps done.
    pub steps: u64,
    /// Why training ended.
    pub stop: String,
    /// How often q learned what was found beyond it ([`check_and_learn`](crate::check::check_and_learn)).
    #[serde(default)]
    pub lessons: usize,
    /// How long it took.
    pub seconds: Seconds,
    /// Where it was computed.
    pub device: String,
    /// Precision of the networks.
    pub precision: String,
    /// Threads.
    pub threads: usize,
    /// Seed of the run that was kept.
    pub seed: u64,
    /// What to know before the answer is used.
    pub warnings: Vec<String>,
    /// What there was no time for, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Run {
    /// What a fit knows about itself; its device, its threads and the seconds of the check are left to whoever does.
    pub fn of<D: Device>(fit: &Fit<D>) -> Self {
        let dropped =
            fit.first_dropped.as_ref().map(|first| format!("{} draws were dropped; the first: {first}", fit.dropped));
        Self {
            steps: fit.steps,
            stop: fit.stop.to_string(),
            seconds: Seconds { train: fit.seconds, check: 0.0 },
            precision: D::Real::NAME.into(),
            seed: fit.posterior.seed(),
            warnings: fit.posterior.warnings().iter().cloned().chain(dropped).collect(),
            left_out: fit.left_out.clone(),
            ..Self::default()
        }
    }
}

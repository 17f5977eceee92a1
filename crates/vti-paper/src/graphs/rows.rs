//! Answers, how far they are from a truth, and the table of all of them.

use std::fmt::{self, Display, Formatter};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use vti::graph::Graph;
use vti::graph::metrics::{Better, Convention, Scores, conventions, trivial_answers};

use crate::text::{self, as_in_settings, cell};

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Method {
    /// The learned q.
    Vti,
    /// The same, with the evidences of nodes instead of their bounds.
    VtiCorrected,
    /// The paper's family.
    VtiJoint,
    /// DAGMA at one λ.
    Dagma,
    /// At the λ whose graph has the best F1: by an oracle.
    DagmaBestF1,
    /// At the λ whose graph has most nearly as many edges as the truth: the paper's choice, an oracle too.
    DagmaEdgeCount,
    Dibs,
    DibsPlus,
    EmptyGraph,
    Prior,
    RandomOrder,
}

impl Method {
    /// For people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Vti => "VTI",
            Self::VtiCorrected => "VTI, corrected",
            Self::VtiJoint => "VTI, the paper's family",
            Self::Dagma => "DAGMA",
            Self::DagmaBestF1 => "DAGMA, λ of best F1",
            Self::DagmaEdgeCount => "DAGMA, λ by edge count",
            Self::Dibs => "DiBS",
            Self::DibsPlus => "DiBS+",
            Self::EmptyGraph => "empty graph",
            Self::Prior => "prior",
            Self::RandomOrder => "random order",
        }
    }
}

/// In tables for machines.
impl Display for Method {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if *self == Self::DibsPlus { formatter.pad("dibs+") } else { as_in_settings(self, formatter) }
    }
}

/// What a method says: edge probabilities, n × n row by row, and weighted graphs.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) method: Method,
    /// λ, where the method has one.
    pub(crate) setting: Option<f64>,
    pub(crate) edges: Vec<f64>,
    pub(crate) samples: Vec<(Graph, f64)>,
}

/// How far an answer is from the truths.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Scored {
    pub(crate) method: Method,
    pub(crate) setting: Option<f64>,
    /// How many edges it expects.
    pub(crate) edges: Option<f64>,
    /// From each truth.
    pub(crate) scores: Vec<Scores>,
}

impl Scored {
    pub(crate) fn new(answer: &Answer, truths: &[Graph]) -> Result<Self> {
        let scores = truths.iter().map(|truth| Scores::of_posterior(truth, &answer.edges, &answer.samples));
        Ok(Self {
            method: answer.method,
            setting: answer.setting,
            edges: Some(answer.edges.iter().sum()),
            scores: scores.collect::<Result<_, _>>()?,
        })
    }
}

/// Answers that use no data: the empty graph, the prior with its edge probabilities, and random orders with edges of this
/// probability.
pub(crate) fn trivial(truths: &[Graph], prior: Option<&[f64]>, edge_probability: f64) -> Result<Vec<Scored>> {
    let rows =
        truths.iter().map(|truth| trivial_answers(truth, prior, edge_probability)).collect::<Result<Vec<_>, _>>()?;
    let nodes = truths.first().map_or(0, Graph::nodes) as f64;
    let expected = prior.map(|edges| edges.iter().sum());
    let methods = [
        ("empty graph", Method::EmptyGraph, Some(0.0)),
        ("prior", Method::Prior, expected),
        ("random order", Method::RandomOrder, Some(0.5 * edge_probability * nodes * (nodes - 1.0))),
    ];
    let scored = |(name, method, edges): (&str, Method, Option<f64>)| {
        let scores = rows.iter().filter_map(|rows| rows.iter().find(|row| row.name == name).map(|row| row.scores));
        let scores: Vec<Scores> = scores.collect();
        (scores.len() == truths.len()).then_some(Scored { method, setting: None, edges, scores })
    };
    Ok(methods.into_iter().filter_map(scored).collect())
}

/// What one run found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Finished<C> {
    pub(crate) case: C,
    /// The program or package that ran, and its version.
    pub(crate) by: String,
    pub(crate) seconds: f64,
    /// Of all threads, where known.
    pub(crate) processor_seconds: Option<f64>,
    pub(crate) khat: Option<f64>,
    pub(crate) answers: Vec<Scored>,
}

impl<C> Finished<C> {
    /// A run of this program.
    pub(crate) fn own(case: C, answers: Vec<Scored>, seconds: f64, khat: Option<f64>) -> Self {
        let by = format!("vti {}", env!("CARGO_PKG_VERSION"));
        Self { case, by, seconds, processor_seconds: None, khat, answers }
    }
}

/// The paper's four scores.
pub(crate) fn paper_conventions() -> &'static [Convention] {
    let all = conventions();
    &all[..all.len().min(4)]
}

/// Whether a score is better than another.
pub(crate) fn is_better(convention: &Convention, own: f64, other: f64) -> bool {
    match convention.better {
        Better::Higher => own > other,
        Better::Lower => own < other,
    }
}

/// What all conventions mean.
pub(crate) fn conventions_note() -> String {
    let names = conventions().iter().map(|convention| format!("`{}` {}", convention.name, convention.meaning));
    format!("Conventions: {}.", names.collect::<Vec<_>>().join("; "))
}

/// The programs and packages that ran.
pub(crate) fn run_by<C>(fits: &[Finished<C>]) -> String {
    let mut by: Vec<&str> = fits.iter().map(|fit| fit.by.as_str()).collect();
    by.sort_unstable();
    by.dedup();
    by.join("; ")
}

/// Every answer of every run, with all conventions. `case` gives the first cells, under `columns`, of a case and a truth.
pub(crate) fn table<C>(
    columns: &[&str],
    fits: &[Finished<C>],
    case: impl Fn(&C, usize) -> Vec<String>,
) -> Result<String> {
    let own = ["method", "lambda", "expected_edges", "khat", "seconds", "processor_seconds", "by"];
    let names = columns.iter().copied().chain(own).chain(conventions().iter().map(|convention| convention.name));
    let answers = fits.iter().flat_map(|fit| fit.answers.iter().map(move |answer| (fit, answer)));
    let scored = answers.flat_map(|(fit, answer)| (0..answer.scores.len()).map(move |truth| (fit, answer, truth)));
    let row = |(fit, answer, truth): (&Finished<C>, &Scored, usize)| {
        let cells = [
            answer.method.to_string(),
            cell(answer.setting),
            cell(answer.edges),
            cell(fit.khat),
            format!("{:.2}", fit.seconds),
            cell(fit.processor_seconds),
            fit.by.clone(),
        ];
        let scores = conventions().iter().map(|convention| cell((convention.value)(&answer.scores[truth])));
        case(&fit.case, truth).into_iter().chain(cells).chain(scores).collect()
    };
    text::table(names, scored.map(row))
}

//! Answers, how far they are from a truth, and the table of all of them.

use std::fmt::Write;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use vti::graph::Graph;
use vti::graph::metrics::{Better, Convention, Scores, baselines, conventions};

use crate::paper::results::cell;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::paper) enum Method {
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
    /// In tables for machines.
    pub(in crate::paper) fn name(self) -> &'static str {
        match self {
            Self::Vti => "vti",
            Self::VtiCorrected => "vti-corrected",
            Self::VtiJoint => "vti-joint",
            Self::Dagma => "dagma",
            Self::DagmaBestF1 => "dagma-best-f1",
            Self::DagmaEdgeCount => "dagma-edge-count",
            Self::Dibs => "dibs",
            Self::DibsPlus => "dibs+",
            Self::EmptyGraph => "empty-graph",
            Self::Prior => "prior",
            Self::RandomOrder => "random-order",
        }
    }

    /// For people.
    pub(in crate::paper) fn title(self) -> &'static str {
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

/// What a method says: edge probabilities, n × n row by row, and weighted graphs.
#[derive(Clone, Debug)]
pub(in crate::paper) struct Answer {
    pub(in crate::paper) method: Method,
    /// λ, where the method has one.
    pub(in crate::paper) setting: Option<f64>,
    pub(in crate::paper) edges: Vec<f64>,
    pub(in crate::paper) samples: Vec<(Graph, f64)>,
}

/// How far an answer is from the truths.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::paper) struct Scored {
    pub(in crate::paper) method: Method,
    pub(in crate::paper) setting: Option<f64>,
    /// How many edges it expects.
    pub(in crate::paper) edges: Option<f64>,
    /// From each truth.
    pub(in crate::paper) scores: Vec<Scores>,
}

impl Scored {
    pub(in crate::paper) fn new(answer: &Answer, truths: &[&Graph]) -> Result<Self> {
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
pub(in crate::paper) fn trivial(
    truths: &[&Graph],
    prior: Option<&[f64]>,
    edge_probability: f64,
) -> Result<Vec<Scored>> {
    let rows = truths.iter().map(|truth| baselines(truth, prior, edge_probability)).collect::<Result<Vec<_>, _>>()?;
    let nodes = truths.first().map_or(0, |truth| truth.nodes()) as f64;
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
pub(in crate::paper) struct Finished<C> {
    pub(in crate::paper) case: C,
    /// The program or package that ran, and its version.
    pub(in crate::paper) by: String,
    pub(in crate::paper) seconds: f64,
    /// Of all threads, where known.
    pub(in crate::paper) processor_seconds: Option<f64>,
    pub(in crate::paper) khat: Option<f64>,
    pub(in crate::paper) answers: Vec<Scored>,
}

impl<C> Finished<C> {
    /// A run of this program.
    pub(in crate::paper) fn own(case: C, answers: Vec<Scored>, seconds: f64, khat: Option<f64>) -> Self {
        let by = format!("vti {}", env!("CARGO_PKG_VERSION"));
        Self { case, by, seconds, processor_seconds: None, khat, answers }
    }
}

/// The paper's four scores.
pub(in crate::paper) fn paper_conventions() -> &'static [Convention] {
    let all = conventions();
    &all[..all.len().min(4)]
}

/// Whether a score is better than another.
pub(in crate::paper) fn is_better(convention: &Convention, own: f64, other: f64) -> bool {
    match convention.better {
        Better::Higher => own > other,
        Better::Lower => own < other,
    }
}

/// What all conventions mean.
pub(in crate::paper) fn conventions_note() -> String {
    let names = conventions().iter().map(|convention| format!("`{}` {}", convention.name, convention.meaning));
    format!("Conventions: {}.", names.collect::<Vec<_>>().join("; "))
}

/// The programs and packages that ran.
pub(in crate::paper) fn run_by<C>(fits: &[Finished<C>]) -> String {
    let mut by: Vec<&str> = fits.iter().map(|fit| fit.by.as_str()).collect();
    by.sort_unstable();
    by.dedup();
    by.join("; ")
}

/// Every answer of every run, with all conventions. `case` gives the first cells, under `columns`, of a case and a truth.
pub(in crate::paper) fn table<C>(columns: &str, fits: &[Finished<C>], case: impl Fn(&C, usize) -> String) -> String {
    let names: Vec<&str> = conventions().iter().map(|convention| convention.name).collect();
    let mut text =
        format!("{columns},method,lambda,expected_edges,khat,seconds,processor_seconds,by,{}\n", names.join(","));
    for fit in fits {
        for (answer, truth) in fit.answers.iter().flat_map(|answer| (0..answer.scores.len()).map(move |t| (answer, t)))
        {
            let scores = conventions().iter().map(|convention| cell((convention.value)(&answer.scores[truth])));
            let _ = writeln!(
                text,
                "{},{},{},{},{},{:.2},{},{},{}",
                case(&fit.case, truth),
                answer.method.name(),
                cell(answer.setting),
                cell(answer.edges),
                cell(fit.khat),
                fit.seconds,
                cell(fit.processor_seconds),
                fit.by.replace(',', " with"),
                scores.collect::<Vec<_>>().join(",")
            );
        }
    }
    text
}

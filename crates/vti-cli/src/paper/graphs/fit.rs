//! From data to graphs, by the library.

use std::time::Instant;

use anyhow::Result;
use vti::check::{Check, CheckSettings, check};
use vti::device::Cpu;
use vti::family::FamilySettings;
use vti::graph::Graph;
use vti::graph::metrics::edge_probabilities;
use vti::problem::dag::Dag;
use vti::train::{Silent, TrainSettings, Trainer};

use super::rows::{Answer, Method};
use crate::paper::study::khat;

/// What else is to be said about a fit.
#[derive(Clone, Debug)]
pub(in crate::paper) struct Facts {
    /// Training and check.
    pub(in crate::paper) seconds: f64,
    /// The worst of all factors that matter.
    pub(in crate::paper) khat: Option<f64>,
}

/// Learns the graphs: what q says and, where nodes can be weighed one by one, what their evidences make of it.
pub(in crate::paper) fn learn(
    device: &Cpu<f32>,
    dag: &Dag,
    family: &FamilySettings,
    train: &TrainSettings,
    settings: &CheckSettings,
) -> Result<(Vec<Answer>, Facts)> {
    let start = Instant::now();
    let mut fit = Trainer::new(dag, device, family, train)?.run(&mut Silent)?;
    // Without any weight there is nothing to correct; q has an answer all the same.
    let found = check(&mut fit.posterior, settings).ok();
    let answers = match &found {
        Some(check) => checked(dag, check)?,
        None => {
            let drawn = fit.posterior.draw(settings.draws, 0)?;
            let words = (0..drawn.len()).map(|row| (drawn.word(row), 1.0));
            vec![Answer::of_samples(Method::Vti, dag.graphs(words))?]
        }
    };
    Ok((answers, Facts { seconds: start.elapsed().as_secs_f64(), khat: khat(found.as_ref()) }))
}

fn checked(dag: &Dag, check: &Check) -> Result<Vec<Answer>> {
    let learned = check.q_weights.iter().enumerate().map(|(row, &weight)| (check.draws.word(row), weight));
    let samples = dag.graphs(learned);
    let Some(factors) = &check.factors else { return Ok(vec![Answer::of_samples(Method::Vti, samples)?]) };
    let corrected = factors.edges.iter().map(|edge| edge.value).collect();
    Ok(vec![
        Answer { method: Method::Vti, setting: None, edges: factors.edges_q.clone(), samples },
        Answer {
            method: Method::VtiCorrected,
            setting: None,
            edges: corrected,
            samples: dag.graphs(check.corrected_words().iter().map(|(word, weight)| (&word[..], *weight))),
        },
    ])
}

impl Answer {
    /// An answer of weighted graphs alone.
    pub(in crate::paper) fn of_samples(method: Method, samples: Vec<(Graph, f64)>) -> Result<Self> {
        let nodes = samples.first().map_or(0, |(graph, _)| graph.nodes());
        Ok(Self { method, setting: None, edges: edge_probabilities(nodes, &samples)?, samples })
    }
}

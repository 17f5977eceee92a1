//! From data to graphs, by the library.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use vti::check::{Check, CheckSettings, Depth, check};
use vti::device::Cpu;
use vti::family::FamilySettings;
use vti::graph::Graph;
use vti::graph::metrics::edge_probabilities;
use vti::problem::Problem;
use vti::problem::dag::Dag;
use vti::train::{Silent, TrainSettings, Trainer};

use super::rows::{Answer, Method};
use crate::study::khat;

/// Learns the graphs: what q says and, where nodes can be weighed one by one, what their evidences make of it; seconds of
/// training and check; the worst k̂ of all nodes and parents that matter.
pub(crate) fn learn(
    device: &Cpu<f32>,
    dag: &Arc<Dag>,
    family: &FamilySettings,
    train: &TrainSettings,
    settings: &CheckSettings,
) -> Result<(Vec<Answer>, f64, Option<f64>)> {
    let start = Instant::now();
    let problem: Arc<dyn Problem> = dag.clone();
    let fit = Trainer::new(problem, device.clone(), family, train)?.run(&mut Silent)?;
    // Whole draws are corrected by nothing but weights here, as the paper has it.
    let mut settings = settings.clone();
    if fit.posterior.block_scores().is_none() {
        settings.opinion.depth = Depth::None;
    }
    // Without any weight there is nothing to correct; q has an answer all the same.
    let found = check(&fit.posterior, &settings).ok();
    let answers = match &found {
        Some(check) => checked(dag, check)?,
        None => {
            let drawn = fit.posterior.draw(settings.draws, 0)?;
            let words = (0..drawn.len()).map(|row| (drawn.word(row), 1.0));
            vec![Answer::of_samples(Method::Vti, dag.graphs(words))?]
        }
    };
    Ok((answers, start.elapsed().as_secs_f64(), khat(found.as_ref())))
}

fn checked(dag: &Dag, check: &Check) -> Result<Vec<Answer>> {
    let learned = check.q_weights.iter().enumerate().map(|(row, &weight)| (check.draws.word(row), weight));
    let samples = dag.graphs(learned);
    let Some(blocks) = &check.blocks else { return Ok(vec![Answer::of_samples(Method::Vti, samples)?]) };
    let corrected: Vec<f64> = blocks.features.iter().map(|edge| edge.value).collect();
    Ok(vec![
        Answer { method: Method::Vti, setting: None, edges: dag.edge_matrix(&blocks.features_q), samples },
        Answer {
            method: Method::VtiCorrected,
            setting: None,
            edges: dag.edge_matrix(&corrected),
            samples: dag.graphs(check.corrected_words().iter().map(|(word, weight)| (&word[..], *weight))),
        },
    ])
}

impl Answer {
    /// An answer of weighted graphs alone.
    pub(crate) fn of_samples(method: Method, samples: Vec<(Graph, f64)>) -> Result<Self> {
        let nodes = samples.first().map_or(0, |(graph, _)| graph.nodes());
        Ok(Self { method, setting: None, edges: edge_probabilities(nodes, &samples)?, samples })
    }
}

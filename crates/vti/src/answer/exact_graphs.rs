//! The exact answer about linear graphs as findings, without anything that was learned.

use std::collections::BTreeMap;

use super::closed_form::{Known, coefficients};
use super::graph::Weighted;
use super::subject::Asked;
use super::{AnswerError, Edges, Findings, Found, Graphs, ModelAnswer, Quantity, Run, Samples, Subject};
use crate::check::{Verdict, VerdictKind};
use crate::graph::{Graph, all_dags};
use crate::posterior::{Draws, GraphPosterior};
use crate::problem::Problem;
use crate::problem::dag::is_closed;
use crate::problem::selection::Average;
use crate::space::{Model, ModelSpace};
use crate::stats::Estimate;
use crate::workers::Workers;

impl Findings {
    /// What follows from the exact posterior of linear graphs: probabilities of edges and of graphs, and means of weights, by sums
    /// over all graphs; graphs that are listed, intervals and plots from `draws` draws. Numbers under q are not numbers: nothing
    /// was learned.
    pub fn exact_graphs(
        posterior: &GraphPosterior<'_>,
        subject: &Subject<'_>,
        draws: usize,
        workers: &Workers,
        run: Run,
    ) -> Result<Self, AnswerError> {
        let dag = posterior.dag();
        let (found, expected) = (subject.units().names().len(), dag.parameter_names().len());
        let Asked::Dag(_, truth) = &subject.asked else { return Err(AnswerError::OtherProblem { found, expected }) };
        if found != expected {
            return Err(AnswerError::OtherProblem { found, expected });
        }
        let drawn = posterior.draw(draws, 0, workers);
        let samples = Samples::of_graphs(posterior, subject.units(), &drawn);
        let probabilities: Vec<Quantity> =
            posterior.edges().iter().map(|p| Quantity::exactly(p.clamp(0.0, 1.0))).collect();
        let edges = Edges::new(dag.space().names(), &probabilities);
        let words = shares(&drawn);
        let models = models(posterior, &words);
        let graphs = all_graphs(posterior).unwrap_or_else(|| Weighted::new(dag, &words));
        let best = models.first().and_then(|model| dag.graph(&model.0));
        let truth = truth.as_ref().map(|(path, truth)| graphs.distance(path, truth, None, &edges)).transpose()?;
        let graph = graphs.statistics(best.as_ref(), &words, &edges);
        let parameters = averages(posterior, subject, workers);
        let mean = |average: &Average| Quantity::exactly(average.mean);
        let parameters = coefficients(&parameters, &mean, &samples, workers);
        let found = Found::Dag(Box::new(Graphs { edges, graph, truth, coefficients: Some(parameters) }));
        let text = format!(
            "trust: exact, all graphs over {} nodes were summed with evidences of nodes in closed form{}, and draws are \
             independent ones from the posterior",
            dag.space().nodes(),
            if is_closed(dag.settings()) { "" } else { " up to a quadrature over the noise" }
        );
        let known = Known {
            verdict: Verdict { kind: VerdictKind::Trust, text },
            log_evidence: Estimate { value: posterior.log_evidence(), se: 0.0 },
            elbo: None,
            khat: None,
            models: models.into_iter().map(|(_, model)| model).collect(),
            search: None,
        };
        Ok(known.findings(subject, found, samples, posterior.seed(), run))
    }
}

/// All graphs with their exact probabilities, where they are few enough to list, but for those that change no digit.
fn all_graphs<'a>(posterior: &GraphPosterior<'a>) -> Option<Weighted<'a>> {
    const NEGLIGIBLE: f64 = 1e-12;
    let dag = posterior.dag();
    let graphs = all_dags(dag.space().nodes()).ok()?;
    let probability = |graph: Graph| Some((posterior.graph(&dag.word(&graph)?).0, graph));
    let known = graphs.into_iter().filter(|graph| dag.prior().rules().allow(graph)).filter_map(probability);
    let known = known.filter(|(probability, _)| *probability > NEGLIGIBLE);
    Some(Weighted::exactly(dag, known.map(|(probability, graph)| (graph, probability)).collect()))
}

/// Words that were drawn, with their shares of the draws.
fn shares(drawn: &Draws) -> Vec<(Model, f64)> {
    let mut counts: BTreeMap<&[u16], usize> = BTreeMap::new();
    (0..drawn.len()).for_each(|row| *counts.entry(drawn.word(row)).or_default() += 1);
    counts.into_iter().map(|(word, count)| (word.into(), count as f64 / drawn.len() as f64)).collect()
}

/// Graphs that were drawn, with their exact probabilities, most probable first.
fn models(posterior: &GraphPosterior<'_>, words: &[(Model, f64)]) -> Vec<(Model, ModelAnswer)> {
    let mut graphs: Vec<Model> = words.iter().map(|(word, _)| posterior.canonical(word)).collect();
    graphs.sort_unstable_by(|a, b| a[..].cmp(&b[..]));
    graphs.dedup();
    let space = posterior.dag().space();
    let answer = |word: Model| {
        let (probability, log_evidence) = posterior.graph(&word);
        let answer = ModelAnswer {
            label: space.label(&word),
            size: posterior.dag().graph(&word).map_or(0, |graph| graph.edge_count()),
            word: word.to_string(),
            probability: Quantity::exactly(probability),
            log_evidence: Some(Estimate { value: log_evidence, se: 0.0 }),
            khat: None,
        };
        (word, answer)
    };
    let mut found: Vec<(Model, ModelAnswer)> = graphs.into_iter().map(answer).collect();
    found.sort_by(|a, b| b.1.probability.corrected.total_cmp(&a.1.probability.corrected));
    found
}

/// Parameters over all graphs in the units of the data, which are multiples of those that equations have.
fn averages(posterior: &GraphPosterior<'_>, subject: &Subject<'_>, workers: &Workers) -> Vec<Average> {
    let moments = posterior.moments(workers);
    let places: Vec<usize> = (0..moments.len()).collect();
    let measured = |values: Vec<f64>| {
        let mut measured = vec![f64::NAN; values.len()];
        subject.units().to_measured(&places, &values, &mut measured);
        measured
    };
    let sd = |[mean, second]: &[f64; 2]| (second - mean * mean).max(0.0).sqrt();
    let means = measured(moments.iter().map(|[mean, _]| *mean).collect());
    let sds = measured(moments.iter().map(sd).collect());
    means.into_iter().zip(sds).map(|(mean, sd)| Average { mean, se: 0.0, sd }).collect()
}

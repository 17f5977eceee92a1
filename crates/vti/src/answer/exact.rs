//! The exact answer, as far as others are compared with it.

use std::collections::HashMap;
use std::fmt;

use super::heed::CONSIDERABLE;
use crate::graph::ordered_pairs;
use crate::problem::dag::{self, Dag};
use crate::problem::selection::{self, EnumerationLimits, Selection};
use crate::space::Model;
use crate::workers::Workers;

/// The exact answer, as far as others are compared with it.
///
/// ```
/// use vti::answer::Exact;
/// // Two models: without the only term, and with it.
/// let exact = Exact::new(-3.5, vec![0.8], |model| Some(if model[0] == 1 { 0.8 } else { 0.2 }));
/// assert_eq!(exact.probability(&[1]), Some(0.8));
/// ```
pub struct Exact {
    /// `log p(y)`.
    pub log_evidence: f64,
    /// The posterior probability of each part of a model (terms, edges), in the order of the space's features.
    pub parts: Vec<f64>,
    /// Means of the parameters over all models in the units of the data, where they are known.
    pub means: Option<Vec<f64>>,
    /// Models whose probability is not to be overlooked.
    leading: Vec<Model>,
    probability: Box<Probability>,
}

/// The posterior probability of a model, if it is one.
type Probability = dyn Fn(&[u16]) -> Option<f64> + Send + Sync;

impl fmt::Debug for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { log_evidence, parts, .. } = self;
        f.debug_struct("Exact").field("log_evidence", log_evidence).field("parts", parts).finish_non_exhaustive()
    }
}

impl Exact {
    /// From the evidence, the probabilities of parts in the order of the space's features (none where features are not
    /// parts), and the probability of each model; none for what is no model.
    pub fn new(
        log_evidence: f64,
        parts: Vec<f64>,
        probability: impl Fn(&[u16]) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        Self { log_evidence, parts, means: None, leading: Vec::new(), probability: Box::new(probability) }
    }

    /// With models that an answer must not have missed.
    pub fn with_leading(self, leading: Vec<Model>) -> Self {
        Self { leading, ..self }
    }

    /// Models that an answer must not have missed.
    pub fn leading(&self) -> &[Model] {
        &self.leading
    }

    /// The posterior probability of a model, if it is one.
    pub fn probability(&self, model: &[u16]) -> Option<f64> {
        (self.probability)(model)
    }

    /// Of a selection, where that is cheap.
    pub fn of_selection(selection: &Selection, workers: &Workers) -> Option<Result<Self, selection::ExactError>> {
        let method = selection::Enumeration::affordable(selection)?;
        Some(selection::enumerate(selection, workers, &EnumerationLimits::default()).and_then(|exact| {
            let means = match method {
                selection::Method::ClosedForm => {
                    let averages = selection::averages(selection, workers, &exact)?;
                    Some(averages.into_iter().map(|average| average.mean).collect())
                }
                selection::Method::Quadrature => None,
            };
            let probable = |(number, &p): (usize, &f64)| (p > CONSIDERABLE).then(|| exact.model(number));
            let leading = exact.probabilities.iter().enumerate().filter_map(probable).collect();
            let known = Self::new(exact.log_evidence, exact.inclusion.clone(), move |model| exact.probability(model));
            Ok(Self { means, ..known.with_leading(leading) })
        }))
    }

    /// Of causal graphs, where that is cheap.
    pub fn of_dag(dag: &Dag) -> Option<Result<Self, dag::ExactError>> {
        dag::Enumeration::is_affordable(dag).then(|| {
            let dag::Enumeration { graphs, probabilities, edges, log_evidence } = dag::Enumeration::of(dag)?;
            let nodes = edges.len().isqrt();
            let words = graphs.iter().zip(probabilities);
            let known: HashMap<Model, f64> =
                words.filter_map(|(graph, probability)| Some((dag.word(graph)?, probability))).collect();
            let parts = ordered_pairs(nodes).map(|(from, to)| edges[from * nodes + to]).collect();
            let probable = |(model, &p): (&Model, &f64)| (p > CONSIDERABLE).then(|| model.clone());
            let leading = known.iter().filter_map(probable).collect();
            // A graph that the rules forbid has none.
            let probability = move |model: &[u16]| Some(known.get(model).copied().unwrap_or(0.0));
            Ok(Self::new(log_evidence, parts, probability).with_leading(leading))
        })
    }
}

//! Answers that use no data.

use super::super::{Graph, GraphError};
use super::Scores;
use crate::random::{Purpose, Stream};

/// An answer that uses no data, and how good it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrivialAnswer {
    /// What it is called in tables.
    pub name: &'static str,
    /// In words.
    pub meaning: &'static str,
    /// How far it is from the truth.
    pub scores: Scores,
}

/// Graphs that stand for all random ones.
const PRIOR_DRAWS: u64 = 1000;

/// The empty graph; the prior, if its edge probabilities are given (n × n row by row); and graphs along uniform orders with
/// edges of this probability, a thousand of them, always the same.
///
/// ```
/// use vti::graph::{Graph, metrics};
/// let truth = Graph::from_edges(4, &[(0, 1), (1, 2), (2, 3)])?;
/// let rows = metrics::trivial_answers(&truth, None, 0.5)?;
/// assert_eq!((rows[0].name, rows[0].scores.expected_shd2), ("empty graph", Some(3.0)));
/// # Ok::<(), vti::graph::GraphError>(())
/// ```
pub fn trivial_answers(
    truth: &Graph,
    prior_edges: Option<&[f64]>,
    edge_probability: f64,
) -> Result<Vec<TrivialAnswer>, GraphError> {
    if !(0.0..=1.0).contains(&edge_probability) {
        return Err(GraphError::EdgeProbability);
    }
    let mut rows = vec![TrivialAnswer {
        name: "empty graph",
        meaning: "no edges at all",
        scores: Scores::of_samples(truth, &[(Graph::empty(truth.nodes())?, 1.0)])?,
    }];
    if let Some(edges) = prior_edges {
        let scores = Scores::of_edges(truth, edges)?;
        rows.push(TrivialAnswer { name: "prior", meaning: "edge probabilities before any data", scores });
    }
    rows.push(TrivialAnswer {
        name: "random order",
        meaning: "a uniform order, edges along it independently",
        scores: random_order(truth, edge_probability),
    });
    Ok(rows)
}

/// What depends on whole graphs is averaged over draws; probabilities of edges are known.
fn random_order(truth: &Graph, edge_probability: f64) -> Scores {
    let n = truth.nodes();
    let draw = |row| (Graph::draw(&mut Stream::new(0, Purpose::Evaluation, 0, row), n, edge_probability).1, 1.0);
    let samples: Vec<(Graph, f64)> = (0..PRIOR_DRAWS).map(draw).collect();
    Scores::of_marginals(truth, &vec![0.5 * edge_probability; n * n]).with_samples(truth, &samples)
}

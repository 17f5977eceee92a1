//! What the peers found.

use serde::{Deserialize, Deserializer, de};
use vti::graph::Graph;

/// What a run took.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct Cost {
    /// By the clock.
    pub(crate) seconds: f64,
    /// Of all threads: what it costs on a machine that does something else besides.
    pub(crate) processor_seconds: f64,
}

/// DAGMA's answers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Dagma {
    /// One for each λ.
    pub(crate) path: Vec<DagmaPoint>,
    /// Of all of them.
    #[serde(flatten)]
    pub(crate) cost: Cost,
}

/// DAGMA's answer at one λ.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct DagmaPoint {
    /// λ.
    pub(crate) lambda: f64,
    /// Weights that reach the package's threshold; it may have cycles.
    #[serde(deserialize_with = "graph")]
    pub(crate) graph: Graph,
}

/// The answer of DiBS, and of DiBS+.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Dibs {
    #[serde(deserialize_with = "graphs")]
    particles: Vec<Graph>,
    /// DiBS: graphs count the same, but for those with cycles, which count nothing.
    #[serde(rename = "dibs")]
    pub(crate) plain: Mixture,
    /// DiBS+: the same graphs, by their joint density with their parameters.
    #[serde(rename = "dibs+")]
    pub(crate) plus: Mixture,
    /// Of everything.
    #[serde(flatten)]
    pub(crate) cost: Cost,
}

/// What each graph counts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Mixture {
    /// None where all graphs have cycles.
    weights: Option<Vec<f64>>,
}

impl Dibs {
    /// The graphs with what they count; none where all have cycles.
    pub(crate) fn weighted(&self, mixture: &Mixture) -> Vec<(Graph, f64)> {
        self.particles.iter().cloned().zip(mixture.weights.iter().flatten().copied()).collect()
    }
}

/// Adjacency matrices, 1 at `[i][j]` for i → j. Loops say nothing about a graph, and are left out.
fn from_matrix(matrix: &[Vec<f64>]) -> Result<Graph, vti::graph::GraphError> {
    let edges = matrix.iter().enumerate().flat_map(|(from, row)| {
        let present = row.iter().enumerate().filter(move |&(to, &entry)| entry != 0.0 && to != from);
        present.map(move |(to, _)| (from, to))
    });
    Graph::from_edges(matrix.len(), &edges.collect::<Vec<_>>())
}

fn graph<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Graph, D::Error> {
    from_matrix(&Vec::<Vec<f64>>::deserialize(deserializer)?).map_err(de::Error::custom)
}

fn graphs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Graph>, D::Error> {
    let matrices = Vec::<Vec<Vec<f64>>>::deserialize(deserializer)?;
    matrices.iter().map(|matrix| from_matrix(matrix)).collect::<Result<_, _>>().map_err(de::Error::custom)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_where_edges_start() {
        let point: DagmaPoint =
            serde_json::from_str(r#"{"lambda": 0.1, "graph": [[1, 1], [0, 0]], "weights": [], "seconds": 2}"#).unwrap();
        assert_eq!(point.graph, Graph::from_edges(2, &[(0, 1)]).unwrap());
        assert!(serde_json::from_str::<DagmaPoint>(r#"{"lambda": 0.1, "graph": [[0, 1, 0]], "seconds": 2}"#).is_err());
    }

    #[test]
    fn one_run_of_dibs_has_two_sets_of_weights() {
        let text = r#"{"particles": [[[0, 1], [0, 0]], [[0, 0], [1, 0]]], "compile_seconds": 1.5, "seconds": 3,
            "processor_seconds": 4, "dibs": {"weights": [0.5, 0.5], "edges": []}, "dibs+": {"weights": null}}"#;
        let dibs: Dibs = serde_json::from_str(text).unwrap();
        assert_eq!(dibs.weighted(&dibs.plain)[1], (Graph::from_edges(2, &[(1, 0)]).unwrap(), 0.5));
        assert!(dibs.weighted(&dibs.plus).is_empty());
        assert_eq!((dibs.cost.seconds, dibs.cost.processor_seconds), (3.0, 4.0));
    }
}

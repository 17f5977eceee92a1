//! What the peers found.

use serde::{Deserialize, Deserializer, de};
use vti::graph::Graph;

/// What a run took.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Cost {
    /// By the clock.
    pub seconds: f64,
    /// Of all threads: what it costs on a machine that does something else besides.
    pub processor_seconds: f64,
}

/// DAGMA's answers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Dagma {
    /// One for each λ.
    pub path: Vec<DagmaPoint>,
    /// Of all of them.
    #[serde(flatten)]
    pub cost: Cost,
}

/// DAGMA's answer at one λ.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct DagmaPoint {
    /// λ.
    pub lambda: f64,
    /// Weights that reach the package's threshold; it may have cycles.
    #[serde(deserialize_with = "graph")]
    pub graph: Graph,
}

/// The answer of DiBS.
#[derive(Clone, Debug, PartialEq)]
pub struct Dibs {
    /// DiBS: graphs that count the same, but for those with cycles, which count nothing. Empty where all have cycles.
    pub plain: Vec<(Graph, f64)>,
    /// DiBS+: the same graphs, by their joint density with their parameters.
    pub plus: Vec<(Graph, f64)>,
    /// Seconds of compiling, which the first table of a size pays for.
    pub compile_seconds: f64,
    /// Of everything.
    pub cost: Cost,
}

/// An answer of DiBS as it comes.
#[derive(Deserialize)]
struct RawDibs {
    #[serde(deserialize_with = "graphs")]
    particles: Vec<Graph>,
    dibs: Mixture,
    #[serde(rename = "dibs+")]
    plus: Mixture,
    compile_seconds: f64,
    #[serde(flatten)]
    cost: Cost,
}

#[derive(Deserialize)]
struct Mixture {
    /// None where all graphs have cycles.
    weights: Option<Vec<f64>>,
}

impl<'de> Deserialize<'de> for Dibs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawDibs { particles, dibs, plus, compile_seconds, cost } = RawDibs::deserialize(deserializer)?;
        let weighted = |mixture: Mixture| -> Vec<(Graph, f64)> {
            particles.iter().cloned().zip(mixture.weights.unwrap_or_default()).collect()
        };
        Ok(Self { plain: weighted(dibs), plus: weighted(plus), compile_seconds, cost })
    }
}

/// Adjacency matrices, 1 at [i][j] for i → j. Loops say nothing about a graph, and are left out.
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
        assert_eq!(dibs.plain[1], (Graph::from_edges(2, &[(1, 0)]).unwrap(), 0.5));
        assert!(dibs.plus.is_empty());
        assert_eq!((dibs.cost.seconds, dibs.cost.processor_seconds), (3.0, 4.0));
    }
}

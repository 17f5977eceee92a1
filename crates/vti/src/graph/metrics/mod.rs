//! How far graphs, or probabilities of edges, are from a truth: every convention under a name of its own.
//!
//! The literature calls several numbers by one name. Here [`Scores`] has a field for each, [`conventions`] says in words what
//! each means, and [`trivial_answers`] are answers that use no data, without which no number means anything.
//!
//! The diagonal of the matrices never counts, with one exception that says so ([`Scores::auroc_paper`]). A truth may have
//! cycles; what is compared as equivalence classes then has no value.
//!
//! ```
//! use vti::graph::Graph;
//! use vti::graph::metrics::Scores;
//! let truth = Graph::from_edges(3, &[(0, 1), (1, 2)])?;
//! let reversed = Graph::from_edges(3, &[(1, 0), (1, 2)])?;
//! let scores = Scores::of_samples(&truth, &[(truth.clone(), 1.0), (reversed, 1.0)])?;
//! assert_eq!((scores.expected_shd2, scores.expected_shd1), (Some(1.0), Some(0.5)));
//! assert_eq!(scores.expected_cpdag_shd2, Some(0.0)); // both are in one equivalence class
//! # Ok::<(), vti::graph::GraphError>(())
//! ```

mod convention;
mod measure;
mod trivial;

use serde::{Deserialize, Serialize};

pub use convention::{Better, Convention, conventions};
pub use measure::{Confusion, auroc, shd_entries, shd_pairs};
pub use trivial::{TrivialAnswer, trivial_answers};

use super::{Cpdag, Graph, GraphError};

/// An edge is said to be there if its probability is larger.
const THRESHOLD: f64 = 0.5;

/// Distances from a truth, one field per convention; none where it has no meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scores {
    /// Structural Hamming distance, a reversed edge counted as 2: the number of entries of the adjacency matrix that differ,
    /// averaged over graphs (the paper's SHD). It follows from edge probabilities too: Σ |A_ij − p_ij|.
    pub expected_shd2: Option<f64>,
    /// Structural Hamming distance, a reversed edge counted as 1: the number of pairs of nodes between which the graphs
    /// differ, averaged over graphs.
    pub expected_shd1: Option<f64>,
    /// As `expected_shd2`, of the one graph of all edges that are more probable than ½ (which may have cycles).
    pub shd2_threshold: Option<f64>,
    /// As `expected_shd1`, of that graph.
    pub shd1_threshold: Option<f64>,
    /// Σ (A_ij − p_ij)² over all entries (the paper's Brier score).
    pub brier_sum: Option<f64>,
    /// The same, as a mean over the n(n − 1) entries off the diagonal.
    pub brier_mean: Option<f64>,
    /// Area under the receiver operating curve of the edge probabilities: the probability that a true edge has a larger one
    /// than a false edge, ties counted half. None where the truth has no edges, or all.
    pub auroc: Option<f64>,
    /// The mean of the shares of true edges that are there and of false edges that are not, averaged over graphs: the area
    /// under the curve of a single graph.
    pub balanced_accuracy: Option<f64>,
    /// The same with the diagonal among the false edges (the paper's AUROC: its 0.68 on the Sachs data beside F1 0.44 and SHD
    /// 23 is 0.67 without the diagonal).
    pub auroc_paper: Option<f64>,
    /// F1 = 2 TP / (2 TP + FP + FN) over directed edges, averaged over graphs (the paper's F1). 1 where both graphs are empty.
    pub f1_mean: Option<f64>,
    /// The same, of the one graph of all edges that are more probable than ½.
    pub f1_threshold: Option<f64>,
    /// The number of entries in which the matrices of the equivalence classes differ, averaged over graphs; an undirected edge
    /// has 1 in both entries.
    pub expected_cpdag_shd2: Option<f64>,
    /// The number of pairs of nodes between which the equivalence classes differ (no edge, →, ←, —), averaged over graphs.
    pub expected_cpdag_shd1: Option<f64>,
    /// F1 over the entries of the matrices of the equivalence classes, averaged over graphs; an undirected edge has 1 in both
    /// entries.
    pub cpdag_f1_mean: Option<f64>,
}

impl Scores {
    /// Of weighted graphs: draws from a posterior, or a single answer. Weights need not add up to 1.
    pub fn of_samples(truth: &Graph, samples: &[(Graph, f64)]) -> Result<Self, GraphError> {
        let edges = edge_probabilities(truth.nodes(), samples)?;
        Ok(Self::of_marginals(truth, &edges).with_samples(truth, samples))
    }

    /// Of edge probabilities, n × n row by row: `[i * n + j]` is that of i → j. What depends on whole graphs has no value.
    pub fn of_edges(truth: &Graph, edges: &[f64]) -> Result<Self, GraphError> {
        let n = truth.nodes();
        if edges.len() != n * n {
            return Err(GraphError::Matrix { found: edges.len(), nodes: n });
        }
        /// Sums of probabilities are off by so much.
        const ROUNDING: f64 = 1e-9;
        let wrong = |&(from, to): &(usize, usize)| !(-ROUNDING..=1.0 + ROUNDING).contains(&edges[from * n + to]);
        if let Some((from, to)) = measure::entries(n).find(wrong) {
            return Err(GraphError::Probability { from, to });
        }
        Ok(Self::of_marginals(truth, edges))
    }

    /// Of edge probabilities that are known better than weighted graphs show them; what depends on whole graphs is averaged
    /// over these.
    pub fn of_posterior(truth: &Graph, edges: &[f64], samples: &[(Graph, f64)]) -> Result<Self, GraphError> {
        let of_edges = Self::of_edges(truth, edges)?;
        edge_probabilities(truth.nodes(), samples)?;
        Ok(of_edges.with_samples(truth, samples))
    }

    fn of_marginals(truth: &Graph, edges: &[f64]) -> Self {
        let n = truth.nodes();
        let pairs: Vec<(bool, f64)> =
            measure::entries(n).map(|(from, to)| (truth.has(from, to), edges[from * n + to])).collect();
        let off = |&(edge, p): &(bool, f64)| if edge { 1.0 - p } else { p };
        let brier: f64 = pairs.iter().map(|pair| off(pair).powi(2)).sum();
        let likely = measure::likely(n, edges, THRESHOLD);
        Self {
            expected_shd2: Some(pairs.iter().map(off).sum()),
            shd2_threshold: Some(shd_entries(truth, &likely)),
            shd1_threshold: Some(shd_pairs(truth, &likely)),
            brier_sum: Some(brier),
            brier_mean: (n > 1).then(|| brier / pairs.len() as f64),
            auroc: auroc(&pairs),
            f1_threshold: Some(Confusion::new(truth, &likely).f1()),
            ..Self::default()
        }
    }

    fn with_samples(self, truth: &Graph, samples: &[(Graph, f64)]) -> Self {
        let total: f64 = samples.iter().map(|(_, weight)| weight).sum();
        let mean = |measure: &dyn Fn(&Graph) -> Option<f64>| {
            let parts = samples.iter().filter(|(_, weight)| *weight > 0.0);
            parts.map(|(graph, weight)| measure(graph).map(|value| weight * value / total)).sum::<Option<f64>>()
        };
        let (class, n) = (class(truth), truth.nodes());
        let of_classes = |measure: fn(&Graph, &Graph) -> f64| {
            let class = class.as_ref()?;
            mean(&|graph| self::class(graph).map(|other| measure(class, &other)))
        };
        Self {
            expected_shd1: mean(&|graph| Some(shd_pairs(truth, graph))),
            balanced_accuracy: mean(&|graph| Confusion::new(truth, graph).balanced_accuracy()),
            auroc_paper: mean(&|graph| Confusion::new(truth, graph).with_diagonal(n).balanced_accuracy()),
            f1_mean: mean(&|graph| Some(Confusion::new(truth, graph).f1())),
            expected_cpdag_shd2: of_classes(shd_entries),
            expected_cpdag_shd1: of_classes(shd_pairs),
            cpdag_f1_mean: of_classes(|class, other| Confusion::new(class, other).f1()),
            ..self
        }
    }
}

/// The matrix of a graph's equivalence class, undirected edges in both directions; none with a cycle.
fn class(graph: &Graph) -> Option<Graph> {
    Cpdag::of(graph).ok().map(|class| class.both_directions())
}

/// Shares of weighted graphs that have each edge, n × n row by row: `[i * n + j]` is that of i → j.
pub fn edge_probabilities(nodes: usize, samples: &[(Graph, f64)]) -> Result<Vec<f64>, GraphError> {
    if let Some((graph, _)) = samples.iter().find(|(graph, _)| graph.nodes() != nodes) {
        return Err(GraphError::Nodes { found: graph.nodes(), expected: nodes });
    }
    let total: f64 = samples.iter().map(|(_, weight)| weight).sum();
    if !(total > 0.0 && total.is_finite() && samples.iter().all(|(_, weight)| *weight >= 0.0)) {
        return Err(GraphError::Weights);
    }
    let mut edges = vec![0.0; nodes * nodes];
    for (graph, weight) in samples {
        graph.edges().for_each(|(from, to)| edges[from * nodes + to] += weight / total);
    }
    // Sums of shares may be off by rounding.
    edges.iter_mut().for_each(|p| *p = p.min(1.0));
    Ok(edges)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::graph::all_dags;
    use crate::random::{Purpose, Stream};

    fn graph(nodes: usize, edges: &[(usize, usize)]) -> Graph {
        Graph::from_edges(nodes, edges).unwrap()
    }

    fn single(truth: &Graph, graph: &Graph) -> Scores {
        Scores::of_samples(truth, &[(graph.clone(), 1.0)]).unwrap()
    }

    /// Any directed graph over 5 nodes, cycles and all.
    fn random(seed: u64) -> Graph {
        let mut stream = Stream::new(seed, Purpose::Other(0), 0, 0);
        let edges: Vec<(usize, usize)> = measure::entries(5).filter(|_| stream.uniform() < 0.4).collect();
        graph(5, &edges)
    }

    #[test]
    fn the_papers_table_has_numbers_that_belong_together() {
        // A truth of 18 edges over 11 nodes, and 23 edges of which 9 are right, as in the row VTI of its Table 1.
        let all: Vec<(usize, usize)> = measure::entries(11).collect();
        let scores = single(&graph(11, &all[..18]), &graph(11, &all[9..32]));
        let rounded = |score: Option<f64>| (100.0 * score.unwrap()).round() / 100.0;
        assert_eq!(rounded(scores.f1_mean), 0.44);
        assert_eq!((scores.expected_shd2, scores.brier_sum), (Some(23.0), Some(23.0)));
        assert_eq!(rounded(scores.auroc_paper), 0.68);
        assert_eq!((rounded(scores.balanced_accuracy), rounded(scores.auroc)), (0.67, 0.67));
    }

    #[test]
    fn reversed_missing_and_extra_edges_count_as_they_should() {
        let truth = graph(4, &[(0, 1), (1, 2), (2, 3)]);
        let other = graph(4, &[(1, 0), (1, 2), (0, 3)]); // one reversed, one right, one missing, one extra
        let scores = single(&truth, &other);
        assert_eq!((scores.expected_shd2, scores.expected_shd1), (Some(4.0), Some(3.0)));
        assert_eq!((scores.shd2_threshold, scores.shd1_threshold), (Some(4.0), Some(3.0)));
        assert_eq!((scores.brier_sum, scores.brier_mean), (Some(4.0), Some(4.0 / 12.0)));
        assert_eq!((scores.f1_mean, scores.f1_threshold), (Some(1.0 / 3.0), Some(1.0 / 3.0)));
        assert_eq!(scores.balanced_accuracy, Some(0.5 * (1.0 / 3.0 + 7.0 / 9.0)));
        assert_eq!(scores.auroc_paper, Some(0.5 * (1.0 / 3.0 + 11.0 / 13.0)));
    }

    #[test]
    fn a_single_graph_has_its_balanced_accuracy_as_area_under_the_curve() {
        for seed in 0..50 {
            let scores = single(&random(seed), &random(seed + 1000));
            assert!((scores.auroc.unwrap() - scores.balanced_accuracy.unwrap()).abs() < 1e-12);
            // A squared 1 is 1.
            assert_eq!(scores.brier_sum, scores.expected_shd2);
        }
    }

    #[test]
    fn distances_are_metrics_on_four_nodes() {
        let graphs = all_dags(4).unwrap();
        for (a, b) in graphs.iter().step_by(7).flat_map(|a| graphs.iter().step_by(5).map(move |b| (a, b))) {
            let (ab, ba) = (single(a, b), single(b, a));
            for (of, back) in [
                (ab.expected_shd2, ba.expected_shd2),
                (ab.expected_shd1, ba.expected_shd1),
                (ab.f1_mean, ba.f1_mean),
                (ab.expected_cpdag_shd2, ba.expected_cpdag_shd2),
                (ab.expected_cpdag_shd1, ba.expected_cpdag_shd1),
                (ab.cpdag_f1_mean, ba.cpdag_f1_mean),
            ] {
                assert_eq!(of, back);
            }
            let equivalent = Cpdag::of(a) == Cpdag::of(b);
            assert_eq!(ab.expected_cpdag_shd1 == Some(0.0), equivalent);
            assert_eq!(ab.expected_cpdag_shd2 == Some(0.0), equivalent);
            assert_eq!(ab.cpdag_f1_mean == Some(1.0), equivalent);
            assert_eq!(ab.expected_shd1 == Some(0.0), a == b);
            assert!(ab.expected_shd1 <= ab.expected_shd2 && ab.expected_cpdag_shd1 <= ab.expected_cpdag_shd2);
        }
    }

    #[test]
    fn undirected_edges_have_both_entries() {
        // 0 — 1 — 2 against 0 → 1 ← 2.
        let scores = single(&graph(3, &[(0, 1), (1, 2)]), &graph(3, &[(0, 1), (2, 1)]));
        assert_eq!((scores.expected_cpdag_shd2, scores.expected_cpdag_shd1), (Some(2.0), Some(2.0)));
        assert_eq!(scores.cpdag_f1_mean, Some(4.0 / 6.0));
    }

    #[test]
    fn weights_average_and_edge_probabilities_follow() {
        let truth = random(1);
        let samples: Vec<(Graph, f64)> = (2..9).map(|seed| (random(seed), seed as f64)).collect();
        let scores = Scores::of_samples(&truth, &samples).unwrap();
        let mean = |value: fn(&Scores) -> Option<f64>| {
            let total: f64 = samples.iter().map(|(_, weight)| weight).sum();
            samples.iter().map(|(graph, weight)| weight / total * value(&single(&truth, graph)).unwrap()).sum::<f64>()
        };
        for value in [
            (|scores: &Scores| scores.expected_shd2) as fn(&Scores) -> Option<f64>,
            |scores| scores.expected_shd1,
            |scores| scores.f1_mean,
            |scores| scores.balanced_accuracy,
            |scores| scores.auroc_paper,
        ] {
            assert!((value(&scores).unwrap() - mean(value)).abs() < 1e-12);
        }
        let edges = edge_probabilities(5, &samples).unwrap();
        let of_edges = Scores::of_edges(&truth, &edges).unwrap();
        assert_eq!(of_edges.brier_sum, scores.brier_sum);
        assert_eq!((of_edges.expected_shd1, of_edges.f1_mean), (None, None));
        assert_eq!(Scores::of_posterior(&truth, &edges, &samples).unwrap(), scores);
        assert_eq!(Scores::of_posterior(&truth, &edges, &[]).unwrap_err(), GraphError::Weights);
        let brier: f64 = measure::entries(5)
            .map(|(from, to)| (f64::from(u8::from(truth.has(from, to))) - edges[from * 5 + to]).powi(2))
            .sum();
        assert!((brier - of_edges.brier_sum.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn areas_are_shares_of_pairs_in_the_right_order() {
        let mut stream = Stream::new(5, Purpose::Other(0), 0, 0);
        for _ in 0..30 {
            // Few different scores, so that there are ties.
            let scored: Vec<(bool, f64)> = (0..40)
                .map(|_| (stream.uniform() < 0.3, stream.below(6) as f64))
                .chain([(true, 1.0), (false, 2.0)])
                .collect();
            let (mut wins, mut pairs) = (0.0, 0.0);
            for (_, hit) in scored.iter().filter(|(truth, _)| *truth) {
                for (_, miss) in scored.iter().filter(|(truth, _)| !*truth) {
                    pairs += 1.0;
                    wins += if hit > miss { 1.0 } else { 0.5 * f64::from(u8::from(hit == miss)) };
                }
            }
            assert!((auroc(&scored).unwrap() - wins / pairs).abs() < 1e-12);
        }
        assert_eq!((auroc(&[(true, 0.3)]), auroc(&[(false, 0.3)]), auroc(&[])), (None, None, None));
    }

    #[test]
    fn what_has_no_meaning_has_no_value() {
        let empty = Graph::empty(3).unwrap();
        let scores = single(&empty, &graph(3, &[(0, 1)]));
        assert_eq!((scores.auroc, scores.balanced_accuracy, scores.auroc_paper), (None, None, None));
        assert_eq!((scores.f1_mean, single(&empty, &empty).f1_mean), (Some(0.0), Some(1.0)));
        let cyclic = graph(3, &[(0, 1), (1, 2), (2, 0)]);
        let scores = single(&cyclic, &empty);
        assert_eq!((scores.expected_shd2, scores.expected_cpdag_shd2, scores.cpdag_f1_mean), (Some(3.0), None, None));
        assert_eq!(single(&empty, &cyclic).expected_cpdag_shd1, None);
        assert_eq!(single(&Graph::empty(1).unwrap(), &Graph::empty(1).unwrap()).brier_mean, None);
    }

    #[test]
    fn wrong_input_is_refused() {
        let truth = graph(3, &[(0, 1)]);
        let samples = |graph: Graph, weight| Scores::of_samples(&truth, &[(graph, weight)]).unwrap_err();
        assert_eq!(samples(Graph::empty(4).unwrap(), 1.0), GraphError::Nodes { found: 4, expected: 3 });
        assert_eq!(samples(truth.clone(), 0.0), GraphError::Weights);
        assert_eq!(samples(truth.clone(), f64::NAN), GraphError::Weights);
        assert_eq!(Scores::of_samples(&truth, &[]).unwrap_err(), GraphError::Weights);
        assert_eq!(Scores::of_edges(&truth, &[0.0; 4]).unwrap_err(), GraphError::Matrix { found: 4, nodes: 3 });
        let mut edges = [0.5; 9];
        edges[5] = f64::NAN;
        assert_eq!(Scores::of_edges(&truth, &edges).unwrap_err(), GraphError::Probability { from: 1, to: 2 });
        assert_eq!(trivial_answers(&truth, None, 1.5).unwrap_err(), GraphError::EdgeProbability);
    }

    #[test]
    fn trivial_answers_have_their_known_expectations() {
        let truth = graph(5, &[(0, 1), (1, 2), (3, 2), (2, 4)]);
        let prior = [0.3; 25];
        let rows = trivial_answers(&truth, Some(&prior), 0.6).unwrap();
        let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
        assert_eq!(names, ["empty graph", "prior", "random order"]);
        assert_eq!((rows[0].scores.expected_shd2, rows[0].scores.auroc), (Some(4.0), Some(0.5)));
        assert_eq!(rows[0].scores.f1_mean, Some(0.0));
        // The prior of an edge is the same everywhere, and so is that of a random order: 0.3.
        assert_eq!((rows[1].scores.auroc, rows[1].scores.f1_mean), (Some(0.5), None));
        assert_eq!(rows[1].scores.brier_sum, rows[2].scores.brier_sum);
        assert!((rows[2].scores.expected_shd2.unwrap() - (4.0 * 0.7 + 16.0 * 0.3)).abs() < 1e-12);
        // Each of 4 pairs with an edge is right with 0.3; each of 6 without, with 0.4. Five standard errors of 1000 draws.
        let shd1 = 4.0 * 0.7 + 6.0 * 0.6;
        let error = 5.0 * ((4.0 * 0.21 + 6.0 * 0.24) / 1000.0f64).sqrt();
        assert!((rows[2].scores.expected_shd1.unwrap() - shd1).abs() < error);
        assert!((rows[2].scores.balanced_accuracy.unwrap() - 0.5).abs() < 0.03);
    }

    #[test]
    fn every_field_has_its_convention_and_every_convention_its_field() {
        let scores = serde_json::to_value(Scores::default()).unwrap();
        let fields: std::collections::BTreeSet<&str> = scores.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, conventions().iter().map(|convention| convention.name).collect());
        let labels: std::collections::BTreeSet<&str> =
            conventions().iter().map(|convention| convention.label).collect();
        assert_eq!(labels.len(), conventions().len());
        for convention in conventions() {
            let mut one = scores.clone();
            one[convention.name] = serde_json::json!(0.25);
            let one: Scores = serde_json::from_value(one).unwrap();
            assert_eq!((convention.value)(&one), Some(0.25));
        }
    }
}

//! What is said about causal graphs. Everywhere `[i][j]` is about the edge from node i to node j.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Classes, Coefficient, Ordered, Quantity};
use crate::graph::metrics::{Better, Convention, Scores, conventions, trivial_answers};
use crate::graph::{Cpdag, Graph, GraphError, ordered_pairs};
use crate::problem::dag::Dag;
use crate::space::Model;

/// What causes what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Graphs {
    /// How probable edges are.
    pub edges: Edges,
    /// What graphs have in common.
    pub graph: GraphStatistics,
    /// Where a truth was given.
    pub truth: Option<Truth>,
    /// Weights and noise of linear equations.
    pub coefficients: Option<Ordered<Coefficient>>,
}

/// How probable edges are; in JSON a matrix for each of `q`, `corrected`, `se` and `exact`.
///
/// ```
/// use vti::answer::{Edges, Quantity};
/// let edge = |corrected| Quantity { q: 0.0, corrected, se: 0.0, exact: None };
/// let edges = Edges {
///     nodes: vec!["a".into(), "b".into()],
///     probabilities: vec![vec![edge(0.0), edge(0.7)], vec![edge(0.2), edge(0.0)]],
/// };
/// let first = edges.ranked()[0];
/// assert_eq!((first.from, first.to, first.reverse), (0, 1, 0.2));
/// assert!((first.none - 0.1).abs() < 1e-12);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Matrices", into = "Matrices")]
pub struct Edges {
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// `[i][j]` of the edge i → j; 0 on the diagonal.
    pub probabilities: Vec<Vec<Quantity>>,
}

/// Edges as JSON has them.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Matrices {
    nodes: Vec<String>,
    /// None where nothing was learned.
    q: Option<Vec<Vec<f64>>>,
    corrected: Vec<Vec<f64>>,
    se: Vec<Vec<f64>>,
    exact: Option<Vec<Vec<f64>>>,
}

impl From<Edges> for Matrices {
    fn from(Edges { nodes, probabilities }: Edges) -> Self {
        let matrix = |of: fn(&Quantity) -> f64| -> Vec<Vec<f64>> {
            probabilities.iter().map(|row| row.iter().map(of).collect()).collect()
        };
        let known = probabilities.iter().flatten().all(|quantity| quantity.exact.is_some());
        let is_learned = !probabilities.iter().flatten().any(|quantity| quantity.q.is_nan());
        Self {
            nodes,
            q: is_learned.then(|| matrix(|quantity| quantity.q)),
            corrected: matrix(|quantity| quantity.corrected),
            se: matrix(|quantity| quantity.se),
            exact: known.then(|| matrix(|quantity| quantity.exact.unwrap_or(f64::NAN))),
        }
    }
}

impl TryFrom<Matrices> for Edges {
    type Error = String;

    fn try_from(Matrices { nodes, q, corrected, se, exact }: Matrices) -> Result<Self, String> {
        let count = nodes.len();
        let square = |matrix: &[Vec<f64>]| matrix.len() == count && matrix.iter().all(|row| row.len() == count);
        if ![q.as_ref(), Some(&corrected), Some(&se), exact.as_ref()].into_iter().flatten().all(|matrix| square(matrix))
        {
            return Err(format!("the matrices of edges are not {count} × {count}"));
        }
        let quantity = |from: usize, to: usize| Quantity {
            q: q.as_ref().map_or(f64::NAN, |q| q[from][to]),
            corrected: corrected[from][to],
            se: se[from][to],
            exact: exact.as_ref().map(|exact| exact[from][to]),
        };
        let probabilities = (0..count).map(|from| (0..count).map(|to| quantity(from, to)).collect()).collect();
        Ok(Self { nodes, probabilities })
    }
}

/// An edge with all that is known about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// The cause.
    pub from: usize,
    /// What it acts on.
    pub to: usize,
    /// How probable it is.
    pub probability: Quantity,
    /// The probability of the edge in the other direction, corrected.
    pub reverse: f64,
    /// The probability that the nodes are not joined, corrected.
    pub none: f64,
}

impl Edges {
    /// From probabilities of all edges, in the order of a space's features.
    pub(super) fn new(names: &[String], edges: &[Quantity]) -> Self {
        let nodes = names.len();
        let known = edges.iter().all(|edge| edge.exact.is_some());
        let diagonal = Quantity { exact: known.then_some(0.0), ..Quantity::default() };
        let mut probabilities = vec![vec![diagonal; nodes]; nodes];
        ordered_pairs(nodes).zip(edges).for_each(|((from, to), edge)| probabilities[from][to] = *edge);
        Self { nodes: names.to_vec(), probabilities }
    }

    /// One number of each edge, row by row.
    fn flat(&self, of: fn(&Quantity) -> f64) -> Vec<f64> {
        self.probabilities.iter().flatten().map(of).collect()
    }

    /// The edge from one node to another; not numbers where nothing is said about it.
    pub fn get(&self, from: usize, to: usize) -> Quantity {
        let unknown = Quantity { q: f64::NAN, corrected: f64::NAN, se: f64::NAN, exact: None };
        self.probabilities.get(from).and_then(|row| row.get(to)).copied().unwrap_or(unknown)
    }

    /// All edges there could be, most probable first.
    pub fn ranked(&self) -> Vec<Edge> {
        let edge = |(from, to): (usize, usize)| {
            let (probability, reverse) = (self.get(from, to), self.get(to, from).corrected);
            let none = (1.0 - probability.corrected - reverse).clamp(0.0, 1.0);
            Edge { from, to, probability, reverse, none }
        };
        let mut edges: Vec<Edge> = ordered_pairs(self.nodes.len()).map(edge).collect();
        edges.sort_by(|a, b| b.probability.corrected.total_cmp(&a.probability.corrected));
        edges
    }

    /// An edge as `a→b`.
    pub fn name(&self, edge: &Edge) -> String {
        format!("{}→{}", self.nodes[edge.from], self.nodes[edge.to])
    }
}

/// An edge by the names of its ends.
pub type NamedEdge = [String; 2];

/// What graphs have in common; corrected averages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GraphStatistics {
    /// Edges of the most probable graph.
    pub most_probable: Vec<NamedEdge>,
    /// The Markov equivalence class of the most probable graph, as far as interventions leave it.
    pub cpdag: Class,
    /// Expected number of edges.
    pub expected_edges: f64,
    /// Numbers of edges with their probabilities.
    pub edge_counts: Vec<(usize, f64)>,
    /// Expected number of parents.
    pub parents: Ordered<f64>,
    /// Mean place in the order of causes before effects, from 0.
    pub mean_position: Ordered<f64>,
    /// Probability that a directed path leads from one node to the other.
    pub ancestor: Vec<Vec<f64>>,
    /// Averages over Markov equivalence classes.
    #[serde(default)]
    pub classes: Classes,
}

/// A Markov equivalence class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// Edges of the same direction in all equivalent graphs.
    pub directed: Vec<NamedEdge>,
    /// Edges of either direction, each once.
    pub undirected: Vec<NamedEdge>,
}

/// A known graph, and how far the answer is from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// Where it is from.
    pub path: String,
    /// Its edges; there may be cycles.
    pub edges: Vec<NamedEdge>,
    /// Answers that use no data.
    pub baselines: Vec<Trivial>,
    /// Distances.
    pub metrics: Vec<Metric>,
}

/// An answer that uses no data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trivial {
    /// What it is called in tables.
    pub name: String,
    /// In words.
    pub meaning: String,
}

/// A distance from the truth, of one convention.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The field of [`Scores`].
    pub name: String,
    /// A heading.
    pub label: String,
    /// In words.
    pub meaning: String,
    /// Which way it improves.
    pub better: Better,
    /// Of q; none where it has no meaning.
    pub q: Option<f64>,
    /// Of its correction.
    pub corrected: Option<f64>,
    /// Of answers that use no data, in their order.
    pub baselines: Vec<Option<f64>>,
}

/// Graphs with their probabilities.
pub(super) struct Weighted<'a> {
    dag: &'a Dag,
    all: Vec<(Graph, f64)>,
    /// Whether these are all there are, with exact probabilities.
    is_all: bool,
}

impl<'a> Weighted<'a> {
    /// From words with their probabilities; several words may mean one graph.
    pub(super) fn new(dag: &'a Dag, words: &[(Model, f64)]) -> Self {
        let all = dag.graphs(words.iter().map(|(word, weight)| (&word[..], *weight)));
        Self { dag, all, is_all: false }
    }

    /// All graphs, with exact probabilities.
    pub(super) fn exactly(dag: &'a Dag, all: Vec<(Graph, f64)>) -> Self {
        Self { dag, all, is_all: true }
    }

    fn names(&self) -> &'a [String] {
        self.dag.space().names()
    }

    /// What they have in common with the most probable one, and the orders that drawn words name.
    pub(super) fn statistics(&self, best: Option<&Graph>, words: &[(Model, f64)], edges: &Edges) -> GraphStatistics {
        let nodes = self.names().len();
        let mut positions = vec![0.0; nodes];
        for (word, weight) in words {
            let order = self.dag.space().order(word);
            order.iter().enumerate().for_each(|(place, node)| positions[usize::from(*node)] += weight * place as f64);
        }
        let mut counts: BTreeMap<usize, f64> = BTreeMap::new();
        self.all.iter().for_each(|(graph, weight)| *counts.entry(graph.edge_count()).or_insert(0.0) += weight);
        let targets = self.dag.interventions().targets();
        let parents = |node: usize| edges.probabilities.iter().map(|row| row[node].corrected).sum();
        let by_node = |of: &dyn Fn(usize) -> f64| self.names().iter().cloned().zip((0..nodes).map(of)).collect();
        GraphStatistics {
            most_probable: best.map_or_else(Vec::new, |best| self.named(best)),
            cpdag: best
                .and_then(|best| Cpdag::under(best, &targets).ok())
                .map(|class| Class::new(self.names(), &class))
                .unwrap_or_default(),
            expected_edges: edges.flat(|edge| edge.corrected).iter().sum(),
            edge_counts: counts.into_iter().collect(),
            parents: by_node(&parents),
            mean_position: by_node(&|node| positions[node]),
            ancestor: self.ancestors(),
            classes: Classes::new(self.dag, &self.all, edges, self.is_all),
        }
    }

    fn named(&self, graph: &Graph) -> Vec<NamedEdge> {
        graph.edges().map(|edge| self.name(edge)).collect()
    }

    fn name(&self, (from, to): (usize, usize)) -> NamedEdge {
        [self.names()[from].clone(), self.names()[to].clone()]
    }

    /// The probability that a directed path leads from one node to another, for all of them.
    fn ancestors(&self) -> Vec<Vec<f64>> {
        let nodes = self.names().len();
        let mut found = vec![vec![0.0; nodes]; nodes];
        for (graph, weight) in &self.all {
            let mut ancestors = vec![0u64; nodes];
            for node in graph.order().unwrap_or_default() {
                let parents = (0..nodes).filter(|&parent| graph.has(parent, node));
                ancestors[node] = parents.fold(0, |set, parent| set | ancestors[parent] | 1 << parent);
            }
            for (from, to) in ordered_pairs(nodes).filter(|&(from, to)| ancestors[to] >> from & 1 == 1) {
                found[from][to] += weight;
            }
        }
        found
    }

    /// How far they are from a truth, beside graphs under q, where there is one, and answers that use no data.
    ///
    /// What follows from probabilities of edges is found from these: they are known better than those of the graphs.
    pub(super) fn distance(
        &self,
        path: &str,
        truth: &Graph,
        q: Option<&Self>,
        edges: &Edges,
    ) -> Result<Truth, GraphError> {
        let scores = |graphs: &Self, edges: &[f64]| -> Result<[Scores; 2], GraphError> {
            Ok([Scores::of_edges(truth, edges)?, Scores::of_samples(truth, &graphs.all)?])
        };
        let corrected = scores(self, &edges.flat(|edge| edge.corrected))?;
        let learned = q.map(|q| scores(q, &edges.flat(|edge| edge.q))).transpose()?;
        let of = |[by_edges, by_graphs]: &[Scores; 2], convention: &Convention| {
            (convention.value)(by_edges).or_else(|| (convention.value)(by_graphs))
        };
        let prior = self.dag.prior();
        // An edge along a given order has this probability under the prior over orders.
        let edge_probability = 1.0 / (1.0 + prior.edge_penalty().exp());
        let trivial = trivial_answers(truth, prior.edge_probabilities().as_deref(), edge_probability)?;
        let metric = |convention: &Convention| Metric {
            name: convention.name.into(),
            label: convention.label.into(),
            meaning: convention.meaning.into(),
            better: convention.better,
            q: learned.as_ref().and_then(|learned| of(learned, convention)),
            corrected: of(&corrected, convention),
            baselines: trivial.iter().map(|baseline| (convention.value)(&baseline.scores)).collect(),
        };
        Ok(Truth {
            path: path.into(),
            edges: self.named(truth),
            baselines: trivial
                .iter()
                .map(|baseline| Trivial { name: baseline.name.into(), meaning: baseline.meaning.into() })
                .collect(),
            metrics: conventions().iter().map(metric).collect(),
        })
    }
}

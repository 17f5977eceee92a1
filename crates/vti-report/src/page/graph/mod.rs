//! Causal graphs: the drawing, the probabilities of edges, the order of nodes, the distance from a known graph.

mod classes;
mod drawing;
mod edges;
mod lines;
mod listed;
mod matrix;
mod order;
mod said;
mod truth;

pub(super) use classes::{HIDDEN_CAUSES, section as classes};
pub(super) use drawing::section as drawing;
pub(super) use edges::section as edges;
pub(super) use listed::listed;
pub(super) use order::section as order;
pub(super) use truth::section as truth;

use std::path::Path;

use vti::answer::{Graphs, NamedEdge, Quantity, quantiles};
use vti::graph::ordered_pairs;

use super::Versions;
use super::draws::Draws;

/// Edges less probable than this are not drawn.
const FAINT: f64 = 0.1;
/// Edges at least this probable are drawn as certain.
const SURE: f64 = 0.9;
/// Draws that an effect is told from at most.
const DRAWS: usize = 4000;

/// What is known about graphs, with every list made safe to use: nodes exist, what is not there is no number.
pub(super) struct Known<'a> {
    graphs: &'a Graphs,
    /// Which versions of a number there are.
    versions: Versions,
    /// Number of nodes.
    nodes: usize,
    best: Vec<(usize, usize)>,
    directed: Vec<(usize, usize)>,
    undirected: Vec<(usize, usize)>,
    truth: Option<Vec<(usize, usize)>>,
    /// What is known about the effects of some edges.
    effects: Vec<((usize, usize), String)>,
}

impl<'a> Known<'a> {
    /// `None` without nodes.
    pub(super) fn new(graphs: &'a Graphs, versions: Versions, draws: Option<&Draws<'_>>) -> Option<Self> {
        let names = &graphs.edges.nodes;
        let place = |name: &String| names.iter().position(|other| other == name);
        let numbered = |edges: &[NamedEdge]| {
            let mut kept: Vec<(usize, usize)> = Vec::with_capacity(edges.len());
            for edge in edges.iter().filter_map(|[from, to]| Some((place(from)?, place(to)?))) {
                if edge.0 != edge.1 && !kept.contains(&edge) {
                    kept.push(edge);
                }
            }
            kept
        };
        let linear = graphs.coefficients.is_some();
        (!names.is_empty()).then(|| Self {
            graphs,
            versions,
            nodes: names.len(),
            best: numbered(&graphs.graph.most_probable),
            directed: numbered(&graphs.graph.cpdag.directed),
            undirected: numbered(&graphs.graph.cpdag.undirected),
            truth: graphs.truth.as_ref().map(|truth| numbered(&truth.edges)),
            effects: draws.filter(|_| linear).map(|draws| effects(names, draws)).unwrap_or_default(),
        })
    }

    fn name(&self, node: usize) -> &'a str {
        &self.graphs.edges.nodes[node]
    }

    fn quantity(&self, from: usize, to: usize) -> Quantity {
        self.graphs.edges.get(from, to)
    }

    /// The corrected probability of an edge, or that of q where there is none, or no number.
    fn probability(&self, from: usize, to: usize) -> f64 {
        let known = self.quantity(from, to);
        [known.corrected, known.q].into_iter().find(|value| value.is_finite()).map_or(f64::NAN, |p| p.clamp(0.0, 1.0))
    }

    /// The same for decisions: what is not known does not happen.
    fn weight(&self, from: usize, to: usize) -> f64 {
        self.probability(from, to).max(0.0)
    }

    /// How probable it is that no edge joins two nodes.
    fn unjoined(&self, a: usize, b: usize) -> f64 {
        (1.0 - self.probability(a, b) - self.probability(b, a)).max(0.0)
    }

    fn effect(&self, from: usize, to: usize) -> Option<&str> {
        self.effects.iter().find(|(edge, _)| *edge == (from, to)).map(|(_, text)| text.as_str())
    }

    /// The file of the known graph.
    fn truth_name(&self) -> Option<String> {
        let path = Path::new(&self.graphs.truth.as_ref()?.path);
        path.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    /// Whether an edge is in the truth; `None` without truth.
    fn is_true(&self, from: usize, to: usize) -> Option<bool> {
        self.truth.as_ref().map(|edges| edges.contains(&(from, to)))
    }

    /// All pairs of nodes, each once.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let nodes = self.nodes;
        (0..nodes).flat_map(move |a| (a + 1..nodes).map(move |b| (a, b)))
    }
}

/// Weights of linear equations, given that the edge is there.
fn effects(names: &[String], draws: &Draws<'_>) -> Vec<((usize, usize), String)> {
    let effect = |(from, to): (usize, usize)| {
        let name = format!("{}→{}", names[from], names[to]);
        let parameter = draws.samples.names.iter().position(|other| *other == name)?;
        let values = draws.values(&draws.thin(&draws.rows_with(parameter), DRAWS), parameter);
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let mut pairs: Vec<(f64, f64)> = values.into_iter().map(|value| (value, 1.0)).collect();
        let [low, high] = quantiles(&mut pairs, [0.025, 0.975]);
        Some(((from, to), format!("weight {mean:.3}, 95 % interval {low:.3} to {high:.3}")))
    };
    ordered_pairs(names.len()).filter_map(effect).collect()
}

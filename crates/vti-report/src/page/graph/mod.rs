//! Causal graphs: the drawing, the probabilities of edges, the order of nodes, the distance from a known graph.

mod drawing;
mod edges;
mod lines;
mod listed;
mod matrix;
mod order;
mod said;
mod truth;

pub(super) use drawing::section as drawing;
pub(super) use edges::section as edges;
pub(super) use listed::listed;
pub(super) use order::section as order;
pub(super) use truth::section as truth;

use super::exact_name;
use crate::input::{Comparison, GraphSection, Report};

/// Edges less probable than this are not drawn.
const FAINT: f64 = 0.1;
/// Edges at least this probable are drawn as certain.
const SURE: f64 = 0.9;

/// The section with every list made safe to use: indices exist, what is not there is no number.
struct Known<'a> {
    section: &'a GraphSection,
    /// What `exact` is called.
    exact: Option<&'a str>,
    /// Number of nodes.
    nodes: usize,
    best: Vec<(usize, usize)>,
    directed: Vec<(usize, usize)>,
    undirected: Vec<(usize, usize)>,
    truth: Option<Vec<(usize, usize)>>,
}

impl<'a> Known<'a> {
    /// `None` without nodes.
    fn new(report: &'a Report) -> Option<Self> {
        let section = report.graph.as_ref().filter(|section| !section.names.is_empty())?;
        let nodes = section.names.len();
        let usable = |edges: &[(usize, usize)]| {
            let mut kept: Vec<(usize, usize)> = Vec::with_capacity(edges.len());
            for &(from, to) in edges {
                if from < nodes && to < nodes && from != to && !kept.contains(&(from, to)) {
                    kept.push((from, to));
                }
            }
            kept
        };
        Some(Self {
            section,
            exact: exact_name(report),
            nodes,
            best: usable(&section.best.edges),
            directed: usable(&section.best.directed),
            undirected: usable(&section.best.undirected),
            truth: section.truth.as_ref().map(|truth| usable(&truth.edges)),
        })
    }

    fn name(&self, node: usize) -> &'a str {
        &self.section.names[node]
    }

    fn comparison(&self, from: usize, to: usize) -> Comparison {
        let unknown = Comparison { q: f64::NAN, corrected: f64::NAN, se: f64::NAN, exact: None };
        self.section.edges.get(from).and_then(|row| row.get(to)).copied().unwrap_or(unknown)
    }

    /// The corrected probability of an edge, or that of q where there is none, or no number.
    fn probability(&self, from: usize, to: usize) -> f64 {
        let known = self.comparison(from, to);
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

    fn effect(&self, from: usize, to: usize) -> Option<&'a str> {
        let effect = self.section.effects.iter().find(|effect| (effect.from, effect.to) == (from, to))?;
        (!effect.text.is_empty()).then_some(effect.text.as_str())
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

//! Averages over Markov equivalence classes: what independences in the data can tell, and interventions where there were any.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Class, Edges, NamedEdge};
use crate::graph::{Cpdag, Graph, ordered_pairs};
use crate::problem::dag::Dag;

/// The most classes that are listed.
const LISTED: usize = 50;

/// Markov equivalence classes with their probabilities, corrected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Classes {
    /// Whether all graphs were summed; otherwise they were drawn.
    pub is_exact: bool,
    /// How many classes were met.
    pub met: usize,
    /// The most probable ones, at most fifty.
    pub leading: Vec<ProbableClass>,
    /// `[i][j]`: the probability that i and j are joined, in whichever direction.
    pub joined: Vec<Vec<f64>>,
    /// `[i][j]`: the probability of a class in which every graph has i → j.
    pub compelled: Vec<Vec<f64>>,
}

/// A Markov equivalence class and its probability.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbableClass {
    /// Its edges.
    #[serde(flatten)]
    pub class: Class,
    /// Of all its graphs together.
    pub probability: f64,
    /// How many of its graphs were met.
    pub graphs: usize,
}

impl Classes {
    /// Of graphs with their probabilities; those of edges are known better than from graphs that were drawn.
    pub(super) fn new(dag: &Dag, graphs: &[(Graph, f64)], edges: &Edges, is_exact: bool) -> Self {
        let (names, targets) = (dag.space().names(), dag.interventions().targets());
        let nodes = names.len();
        let mut found: BTreeMap<Cpdag, (f64, usize)> = BTreeMap::new();
        for (graph, weight) in graphs {
            if let Ok(class) = Cpdag::under(graph, &targets) {
                let own = found.entry(class).or_default();
                *own = (own.0 + weight, own.1 + 1);
            }
        }
        let mut compelled = vec![vec![0.0; nodes]; nodes];
        for (class, (weight, _)) in &found {
            for (from, to) in ordered_pairs(nodes).filter(|&(from, to)| class.directed(from, to)) {
                compelled[from][to] += weight;
            }
        }
        let joined = |a: usize, b: usize| (edges.get(a, b).corrected + edges.get(b, a).corrected).min(1.0);
        let met = found.len();
        let mut leading: Vec<(Cpdag, (f64, usize))> = found.into_iter().collect();
        leading.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
        leading.truncate(LISTED);
        let listed = |(class, (probability, graphs)): (Cpdag, (f64, usize))| ProbableClass {
            class: Class::new(names, &class),
            probability,
            graphs,
        };
        Self {
            is_exact,
            met,
            leading: leading.into_iter().map(listed).collect(),
            joined: (0..nodes).map(|a| (0..nodes).map(|b| joined(a, b)).collect()).collect(),
            compelled,
        }
    }
}

impl Class {
    pub(super) fn new(names: &[String], class: &Cpdag) -> Self {
        let name = |(from, to): (usize, usize)| -> NamedEdge { [names[from].clone(), names[to].clone()] };
        let all = || ordered_pairs(names.len());
        Self {
            directed: all().filter(|&(from, to)| class.directed(from, to)).map(name).collect(),
            undirected: all().filter(|&(a, b)| a < b && class.undirected(a, b)).map(name).collect(),
        }
    }

    /// "{a→b, c—d}".
    pub fn label(&self) -> String {
        let directed = self.directed.iter().map(|[from, to]| format!("{from}→{to}"));
        let undirected = self.undirected.iter().map(|[a, b]| format!("{a}—{b}"));
        format!("{{{}}}", directed.chain(undirected).collect::<Vec<String>>().join(", "))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::answer::Quantity;
    use crate::problem::dag::{DagSettings, Interventions, NodeData};

    #[test]
    fn graphs_of_a_class_count_together() {
        let names = ["a", "b", "c"].map(String::from);
        let columns = vec![vec![0.5, -1.0]; 3];
        let data = NodeData::new(names.to_vec(), columns);
        let dag = |set: Vec<u64>| {
            Dag::with_interventions(data.clone(), Interventions::new(set), DagSettings::default()).unwrap()
        };
        let graph = |edges: &[(usize, usize)]| Graph::from_edges(3, edges).unwrap();
        // A chain, a fork of the same class, and a collider.
        let graphs =
            [(graph(&[(0, 1), (1, 2)]), 0.3), (graph(&[(1, 0), (1, 2)]), 0.2), (graph(&[(0, 1), (2, 1)]), 0.5)];
        let mut edges = vec![vec![Quantity::default(); 3]; 3];
        for (graph, weight) in &graphs {
            graph.edges().for_each(|(from, to)| edges[from][to].corrected += weight);
        }
        let edges = Edges { nodes: names.to_vec(), probabilities: edges };
        let found = Classes::new(&dag(vec![0, 0]), &graphs, &edges, true);
        assert_eq!((found.met, found.leading.len()), (2, 2));
        let labels: Vec<(String, usize)> =
            found.leading.iter().map(|listed| (listed.class.label(), listed.graphs)).collect();
        assert!(labels.contains(&("{a→b, c→b}".into(), 1)) && labels.contains(&("{a—b, b—c}".into(), 2)), "{labels:?}");
        assert!(found.leading.iter().all(|listed| (listed.probability - 0.5).abs() < 1e-12));
        assert!((found.joined[0][1] - 1.0).abs() < 1e-12 && found.joined[0][2].abs() < 1e-12);
        assert!((found.compelled[0][1] - 0.5).abs() < 1e-12 && found.compelled[1][2].abs() < 1e-12);
        // Where a was set, which way a — b points is known, and then so is b — c unless a → b ← c.
        let found = Classes::new(&dag(vec![0, 1]), &graphs, &edges, true);
        assert!(found.met == 3 && (found.compelled[0][1] - 0.8).abs() < 1e-12);
        assert!((found.compelled[1][2] - 0.3).abs() < 1e-12, "{:?}", found.compelled);
    }
}

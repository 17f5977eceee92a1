//! A posterior over graphs: which there are, where nodes stand in them, and how far they are from a truth.

use std::collections::BTreeMap;

use anyhow::Result;
use vti::graph::metrics::{Convention, Scores, baselines, conventions};
use vti::graph::{Cpdag, Graph};
use vti::problem::Problem;
use vti::problem::dag::Dag;
use vti::space::Model;

use crate::question::pairs;
use crate::summary::{
    BaselineSummary, CpdagSummary, EdgesSummary, GraphSummary, MetricSummary, NamedEdge, Ordered, TruthSummary,
};

/// Graphs with their probabilities.
pub(crate) struct Graphs<'a> {
    dag: &'a Dag,
    all: Vec<(Graph, f64)>,
}

impl<'a> Graphs<'a> {
    /// From words with their probabilities; several words may mean one graph.
    pub(crate) fn new(dag: &'a Dag, words: &[(Model, f64)]) -> Self {
        let all = dag.graphs(words.iter().map(|(word, weight)| (&word[..], *weight)));
        Self { dag, all }
    }

    fn names(&self) -> &'a [String] {
        self.dag.space().names()
    }

    /// What a summary says about them, about the most probable one, and about the orders that drawn words name.
    pub(crate) fn summary(&self, best: Option<&Graph>, words: &[(Model, f64)], edges: &EdgesSummary) -> GraphSummary {
        let nodes = self.names().len();
        let mut positions = vec![0.0; nodes];
        for (word, weight) in words {
            let order = self.dag.space().order(word);
            order.iter().enumerate().for_each(|(place, node)| positions[usize::from(*node)] += weight * place as f64);
        }
        let mut counts: BTreeMap<usize, f64> = BTreeMap::new();
        self.all.iter().for_each(|(graph, weight)| *counts.entry(graph.edge_count()).or_insert(0.0) += weight);
        let parents = |node: usize| edges.corrected.iter().map(|row| row[node]).sum();
        let by_node =
            |of: &dyn Fn(usize) -> f64| Ordered(self.names().iter().cloned().zip((0..nodes).map(of)).collect());
        GraphSummary {
            most_probable: best.map_or_else(Vec::new, |best| self.named(best)),
            cpdag: best.and_then(|best| Cpdag::of(best).ok()).map(|class| self.class(&class)).unwrap_or_default(),
            expected_edges: edges.corrected.iter().flatten().sum(),
            edge_counts: counts.into_iter().collect(),
            parents: by_node(&parents),
            mean_position: by_node(&|node| positions[node]),
            ancestor: self.ancestors(),
        }
    }

    fn named(&self, graph: &Graph) -> Vec<NamedEdge> {
        graph.edges().map(|edge| self.name(edge)).collect()
    }

    fn name(&self, (from, to): (usize, usize)) -> NamedEdge {
        [self.names()[from].clone(), self.names()[to].clone()]
    }

    fn class(&self, class: &Cpdag) -> CpdagSummary {
        let all = || pairs(self.names().len());
        CpdagSummary {
            directed: all().filter(|&(from, to)| class.directed(from, to)).map(|edge| self.name(edge)).collect(),
            undirected: all().filter(|&(a, b)| a < b && class.undirected(a, b)).map(|edge| self.name(edge)).collect(),
        }
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
            for (from, to) in pairs(nodes).filter(|&(from, to)| ancestors[to] >> from & 1 == 1) {
                found[from][to] += weight;
            }
        }
        found
    }

    /// How far they are from a truth, beside graphs under q and answers that use no data.
    ///
    /// What follows from probabilities of edges is found from these: they are known better than those of the graphs.
    pub(crate) fn distance(&self, path: &str, truth: &Graph, q: &Self, edges: &EdgesSummary) -> Result<TruthSummary> {
        let scores = |graphs: &Self, edges: &[Vec<f64>]| -> Result<[Scores; 2]> {
            Ok([Scores::of_edges(truth, &edges.concat())?, Scores::of_samples(truth, &graphs.all)?])
        };
        let (corrected, learned) = (scores(self, &edges.corrected)?, scores(q, &edges.q)?);
        let of = |[by_edges, by_graphs]: &[Scores; 2], convention: &Convention| {
            (convention.value)(by_edges).or_else(|| (convention.value)(by_graphs))
        };
        let prior = self.dag.prior();
        // An edge along a given order has this probability under the prior over orders.
        let edge_probability = 1.0 / (1.0 + prior.edge_penalty().exp());
        let trivial = baselines(truth, prior.edge_probabilities().as_deref(), edge_probability)?;
        let metric = |convention: &Convention| MetricSummary {
            name: convention.name.into(),
            label: convention.label.into(),
            meaning: convention.meaning.into(),
            better: convention.better.into(),
            q: of(&learned, convention),
            corrected: of(&corrected, convention),
            baselines: trivial.iter().map(|baseline| (convention.value)(&baseline.scores)).collect(),
        };
        Ok(TruthSummary {
            path: path.into(),
            edges: self.named(truth),
            baselines: trivial
                .iter()
                .map(|baseline| BaselineSummary { name: baseline.name.into(), meaning: baseline.meaning.into() })
                .collect(),
            metrics: conventions().iter().map(metric).collect(),
        })
    }
}

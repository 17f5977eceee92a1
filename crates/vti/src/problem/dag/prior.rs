//! Priors of graphs (paper, appendix G.7, "Model identifier for directed acyclic graphs").
//!
//! With w = e^{−γ}, an order and edges along it, (P, U), have
//!
//! - `orders`: p(P, U) ∝ w^{|U|};
//! - `graphs`: p(G) ∝ w^{|E|}, shared evenly by the topological orders of G.
//!
//! Both are normalised. Without rules there are formulas; with rules, sums over sets of nodes, as long as there are not too
//! many of these.

use super::normaliser::{free_edge_probability, normaliser};
use super::{GraphPrior, Normaliser};
use crate::graph::Graph;
use crate::optimise::SettingError;
use crate::space::EdgeRules;

/// The most nodes over which the prior `graphs` is offered: it counts the orders of every graph it meets.
pub const MAX_NODES_OF_GRAPHS: usize = 20;

/// The most nodes for which prior probabilities of edges are found, a normaliser for each edge.
const MAX_NODES_OF_EDGES: usize = 12;

/// The prior of a graph and of the words that mean it.
///
/// ```
/// use vti::graph::Graph;
/// use vti::problem::dag::{GraphPrior, Rules, StructurePrior};
/// let free = Rules::default().compile(3)?;
/// let collider = Graph::from_edges(3, &[(0, 2), (1, 2)])?;
/// let graphs = StructurePrior::new(GraphPrior::Graphs, 0.0, free.clone())?;
/// assert!((graphs.log_graph(&collider).exp() - 1.0 / 25.0).abs() < 1e-12);
/// // It has two orders out of six, and each order has eight sets of edges.
/// let orders = StructurePrior::new(GraphPrior::Orders, 0.0, free)?;
/// assert!((orders.log_graph(&collider).exp() - 2.0 / 48.0).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StructurePrior {
    prior: GraphPrior,
    penalty: f64,
    rules: EdgeRules,
    normaliser: Normaliser,
}

impl StructurePrior {
    /// With an edge penalty γ ≥ 0.
    pub fn new(prior: GraphPrior, penalty: f64, rules: EdgeRules) -> Result<Self, SettingError> {
        SettingError::check("edge_penalty", penalty, penalty >= 0.0 && penalty.is_finite(), "0 or positive")?;
        let nodes = rules.nodes();
        let countable = prior == GraphPrior::Orders || nodes <= MAX_NODES_OF_GRAPHS;
        SettingError::check("nodes", nodes as f64, countable, "at most 20 with the prior over graphs")?;
        let normaliser = normaliser(prior, penalty, &rules);
        Ok(Self { prior, penalty, rules, normaliser })
    }

    /// What is uniform.
    pub fn kind(&self) -> GraphPrior {
        self.prior
    }

    /// γ.
    pub fn edge_penalty(&self) -> f64 {
        self.penalty
    }

    /// Which graphs there are.
    pub fn rules(&self) -> &EdgeRules {
        &self.rules
    }

    /// Whether, and by what, it is normalised.
    pub fn normaliser(&self) -> Normaliser {
        self.normaliser
    }

    /// `log p(P, U)` of any one word that means this graph; −∞ if none does, or if the graph breaks a rule.
    pub fn log_word(&self, graph: &Graph) -> f64 {
        match self.prior {
            GraphPrior::Orders => self.log_weight(graph),
            GraphPrior::Graphs => graph.log_orders().map_or(f64::NEG_INFINITY, |log| self.log_weight(graph) - log),
        }
    }

    /// `log p(G)`: that of all words that mean this graph together. Not a number where its orders cannot be counted.
    pub fn log_graph(&self, graph: &Graph) -> f64 {
        match (self.prior, self.log_weight(graph)) {
            (GraphPrior::Graphs, log) => log,
            (GraphPrior::Orders, f64::NEG_INFINITY) => f64::NEG_INFINITY,
            (GraphPrior::Orders, log) => log + graph.log_orders().unwrap_or(f64::NAN),
        }
    }

    /// −γ per edge, less the normaliser; −∞ for a graph that cannot be.
    fn log_weight(&self, graph: &Graph) -> f64 {
        if !self.rules.allow(graph) || graph.node_on_cycle().is_some() {
            return f64::NEG_INFINITY;
        }
        -self.penalty * graph.edge_count() as f64 - self.normaliser.log()
    }

    /// Prior probability of each edge, n × n row by row: `[i * n + j]` is that of i → j. None where rules and more than 12
    /// nodes make that laborious.
    pub fn edge_probabilities(&self) -> Option<Vec<f64>> {
        let n = self.rules.nodes();
        let mut found = vec![0.0; n * n];
        let free = self.rules.is_free().then(|| free_edge_probability(self.prior, self.penalty, n));
        if free.is_none() && n > MAX_NODES_OF_EDGES {
            return None;
        }
        for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))).filter(|(from, to)| from != to) {
            found[from * n + to] = free.unwrap_or_else(|| self.edge_probability(from, to));
        }
        Some(found)
    }

    /// The share of the normaliser that is left when the edge is required too.
    fn edge_probability(&self, from: usize, to: usize) -> f64 {
        self.rules
            .requiring(from, to)
            .map_or(0.0, |rules| (normaliser(self.prior, self.penalty, &rules).log() - self.normaliser.log()).exp())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::graph::all_dags;
    use crate::problem::dag::Rules;

    const PRIORS: [GraphPrior; 2] = [GraphPrior::Orders, GraphPrior::Graphs];

    fn prior(kind: GraphPrior, penalty: f64, rules: &Rules, nodes: usize) -> StructurePrior {
        StructurePrior::new(kind, penalty, rules.compile(nodes).unwrap()).unwrap()
    }

    fn some_rules() -> Vec<Rules> {
        vec![
            Rules::default(),
            Rules { required: vec![[3, 0], [0, 2]], ..Rules::default() },
            Rules { forbidden: vec![[0, 1], [2, 1], [1, 3]], max_parents: Some(2), ..Rules::default() },
            Rules { tiers: vec![vec![2], vec![0, 3]], ..Rules::default() },
            Rules {
                required: vec![[1, 2]],
                forbidden: vec![[3, 1]],
                tiers: vec![vec![1], vec![0, 2]],
                max_parents: Some(1),
            },
        ]
    }

    /// All graphs with their probabilities from the definition.
    fn by_definition(kind: GraphPrior, penalty: f64, rules: &Rules, nodes: usize) -> Vec<(Graph, f64)> {
        let rules = rules.compile(nodes).unwrap();
        let weight = |graph: &Graph| {
            let orders = if kind == GraphPrior::Orders { graph.log_orders().unwrap().exp() } else { 1.0 };
            orders * (-penalty * graph.edge_count() as f64).exp()
        };
        let graphs = all_dags(nodes).unwrap().into_iter().filter(|graph| rules.allow(graph));
        let weighted: Vec<(Graph, f64)> = graphs.map(|graph| (graph.clone(), weight(&graph))).collect();
        let total: f64 = weighted.iter().map(|(_, weight)| weight).sum();
        weighted.into_iter().map(|(graph, weight)| (graph, weight / total)).collect()
    }

    #[test]
    fn probabilities_are_those_of_the_definition() {
        for (kind, penalty) in PRIORS.into_iter().flat_map(|kind| [0.0, 0.7, 6.0].map(|penalty| (kind, penalty))) {
            for rules in some_rules() {
                let prior = prior(kind, penalty, &rules, 4);
                assert!(matches!(prior.normaliser(), Normaliser::Exact { .. }));
                let mut edges = [0.0; 16];
                for (graph, expected) in by_definition(kind, penalty, &rules, 4) {
                    let found = prior.log_graph(&graph).exp();
                    assert!((found / expected - 1.0).abs() < 1e-11, "{kind:?} {penalty} {rules:?}: {found} {expected}");
                    let log_orders = graph.log_orders().unwrap();
                    assert!((prior.log_word(&graph) + log_orders - prior.log_graph(&graph)).abs() < 1e-12);
                    graph.edges().for_each(|(from, to)| edges[from * 4 + to] += expected);
                }
                for (found, expected) in prior.edge_probabilities().unwrap().iter().zip(edges) {
                    assert!((found - expected).abs() < 1e-11, "{kind:?} {penalty} {rules:?}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn words_sum_to_one() {
        // An order of 4 nodes, and 6 bits for the edges along it.
        let swaps = |code: usize| {
            let mut order = [0, 1, 2, 3];
            [(0, code % 4), (1, 1 + code / 4 % 3), (2, 2 + code / 12)].into_iter().for_each(|(a, b)| order.swap(a, b));
            order
        };
        let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
        for (kind, rules) in
            PRIORS.into_iter().flat_map(|kind| some_rules().into_iter().map(move |rules| (kind, rules)))
        {
            let prior = prior(kind, 0.4, &rules, 4);
            let mut total = 0.0;
            for (order, bits) in (0..24).flat_map(|code| (0..64u32).map(move |bits| (swaps(code), bits))) {
                let chosen = pairs.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
                let edges: Vec<(usize, usize)> = chosen.map(|(_, &(a, b))| (order[a], order[b])).collect();
                total += prior.log_word(&Graph::from_edges(4, &edges).unwrap()).exp();
            }
            assert!((total - 1.0).abs() < 1e-11, "{kind:?} {rules:?}: {total}");
        }
    }

    #[test]
    fn five_nodes_sum_to_one() {
        for kind in PRIORS {
            let prior = prior(kind, 0.3, &Rules::default(), 5);
            let total: f64 = all_dags(5).unwrap().iter().map(|graph| prior.log_graph(graph).exp()).sum();
            assert!((total - 1.0).abs() < 1e-10, "{total}");
        }
    }

    #[test]
    fn what_is_not_summed_says_so() {
        let rules = Rules { max_parents: Some(3), ..Rules::default() };
        let large = prior(GraphPrior::Orders, 0.5, &rules, 30);
        let free = prior(GraphPrior::Orders, 0.5, &Rules::default(), 30);
        assert_eq!(large.normaliser(), Normaliser::WithoutRules { log: free.normaliser().log() });
        assert_eq!(large.edge_probabilities(), None);
        let rules = rules.compile(30).unwrap();
        let error = StructurePrior::new(GraphPrior::Graphs, 0.5, rules.clone()).unwrap_err();
        assert_eq!(error.to_string(), "nodes is 30, it must be at most 20 with the prior over graphs");
        assert_eq!(StructurePrior::new(GraphPrior::Orders, -1.0, rules).unwrap_err().what, "edge_penalty");
    }

    #[test]
    fn what_cannot_be_has_no_probability() {
        for kind in PRIORS {
            let prior = prior(kind, 0.5, &Rules { forbidden: vec![[0, 1]], ..Rules::default() }, 3);
            for edges in [&[(0, 1)][..], &[(1, 2), (2, 1)]] {
                let graph = Graph::from_edges(3, edges).unwrap();
                assert_eq!((prior.log_word(&graph), prior.log_graph(&graph)), (f64::NEG_INFINITY, f64::NEG_INFINITY));
            }
        }
    }

    #[test]
    fn harsh_penalties_leave_the_required_edges() {
        let edges = [(0, 1), (1, 2), (3, 2)];
        let rules = Rules { required: edges.iter().map(|&(from, to)| [from, to]).collect(), ..Rules::default() };
        let graph = Graph::from_edges(9, &edges).unwrap();
        for kind in PRIORS {
            // e^{−1000} is 0 in double precision.
            let log = prior(kind, 1000.0, &rules, 9).log_graph(&graph);
            assert!(log.abs() < 1e-9, "{kind:?} {log}");
        }
    }
}

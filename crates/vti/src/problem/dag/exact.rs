//! The exact answer where there is one: all graphs over a few nodes, each node's evidence given its parents known.
//!
//! The evidence of a graph is a product over nodes, so n 2^{n−1} numbers decide the posterior of all graphs.

use super::linear::Linear;
use super::products::Products;
use super::{Dag, DagSettings, Interventions, NodeData, Noise, Score, Sem, StructurePrior};
use crate::graph::{Graph, GraphError, all_dags, nodes_of};
use crate::optimise::SettingError;
use crate::problem::Blocks;
use crate::stats::log_sum_exp;

/// All acyclic graphs with their posterior probabilities.
#[derive(Clone, Debug, PartialEq)]
pub struct Enumeration {
    /// The graphs that keep the rules.
    pub graphs: Vec<Graph>,
    /// Posterior probability of each.
    pub probabilities: Vec<f64>,
    /// Posterior probability of each edge, n × n row by row: `[i * n + j]` is that of i → j.
    pub edges: Vec<f64>,
    /// `log p(y)`, over all graphs.
    pub log_evidence: f64,
}

/// The most nodes over which all graphs are enumerated.
const MAX_NODES: usize = 5;

/// Why there is no exact answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExactError {
    /// Equations whose evidences have no closed form.
    #[error(
        "exact answers are known for linear equations with known noise or under --score bge only\nhint: --sem linear --noise SIGMA, or --sem linear --score bge"
    )]
    NoClosedForm,
    /// Nodes of categories, whose evidences have no closed form.
    #[error(
        "{name} holds categories, and evidences are known in closed form for nodes of numbers only\nhint: --method vti learns the posterior, or leave the column out with --exclude {name}"
    )]
    Categories {
        /// The first of them.
        name: String,
    },
    /// More graphs than can be enumerated.
    #[error(
        "{nodes} nodes are too many to enumerate all graphs, {MAX_NODES} are the most\nhint: leave columns out with --exclude"
    )]
    TooManyNodes {
        /// How many there are.
        nodes: usize,
    },
    /// Equations whose evidences have no closed form, with known noise or without.
    #[error("evidences of nodes are known in closed form for linear equations only (--sem linear)")]
    NotLinear,
    /// More graphs than can be summed.
    #[error("graphs over {nodes} nodes are too many to sum all of them")]
    TooManyGraphs {
        /// How many nodes there are.
        nodes: usize,
    },
    /// A setting out of its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Graphs that cannot be listed.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl Enumeration {
    /// Whether the graphs of a problem are few enough, and their evidences known.
    pub fn is_affordable(dag: &Dag) -> bool {
        is_closed(dag.settings()) && dag.has_exact_evidences() && dag.table().names.len() <= MAX_NODES
    }

    /// The exact answer to a problem, or why there is none.
    pub fn of(dag: &Dag) -> Result<Self, ExactError> {
        Self::check_numbers(dag)?;
        if !is_closed(dag.settings()) {
            return Err(ExactError::NoClosedForm);
        }
        let nodes = dag.table().names.len();
        if nodes > MAX_NODES {
            return Err(ExactError::TooManyNodes { nodes });
        }
        Ok(enumerate(dag.prior(), |node, parents| dag.log_evidence_estimate(node, parents))?)
    }

    /// All nodes must be numbers.
    pub(crate) fn check_numbers(dag: &Dag) -> Result<(), ExactError> {
        match dag.table().first_of_categories() {
            Some(name) => Err(ExactError::Categories { name: name.into() }),
            None => Ok(()),
        }
    }

    /// Places of the graphs, most probable first.
    pub fn ranking(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.probabilities.len()).collect();
        order.sort_by(|&a, &b| self.probabilities[b].total_cmp(&self.probabilities[a]).then(a.cmp(&b)));
        order
    }
}

/// Whether evidences of nodes are formulas, without any quadrature.
pub(crate) fn is_closed(settings: &DagSettings) -> bool {
    let DagSettings { sem, noise, score, .. } = settings;
    *sem == Sem::Linear {} && (matches!(noise, Noise::Known { .. }) || *score != Score::default())
}

/// The posterior over all acyclic graphs of at most 5 nodes. `log_evidence(node, parents)` is the log evidence of a node's
/// column given those of its parents, a set whose bit i stands for node i.
///
/// ```
/// use vti::problem::dag::simulate::{SimulationSettings, simulate};
/// use vti::problem::dag::{GraphPrior, LinearEvidence, Rules, Sem, StructurePrior, enumerate};
/// let settings = SimulationSettings { nodes: 3, rows: 200, sem: Sem::Linear {}, ..SimulationSettings::default() };
/// let evidence = LinearEvidence::new(&simulate(&settings)?.table, 1.0, 1.0)?;
/// let prior = StructurePrior::new(GraphPrior::Graphs, 0.0, Rules::default().compile(3)?)?;
/// let exact = enumerate(&prior, |node, parents| evidence.log_evidence(node, parents))?;
/// assert_eq!(exact.graphs.len(), 25);
/// assert!((exact.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn enumerate(prior: &StructurePrior, log_evidence: impl Fn(usize, u64) -> f64) -> Result<Enumeration, GraphError> {
    let nodes = prior.rules().nodes();
    let graphs: Vec<Graph> = all_dags(nodes)?.into_iter().filter(|graph| prior.rules().allow(graph)).collect();
    let local: Vec<Vec<f64>> = (0..nodes)
        .map(|node| {
            let allowed = |parents: u64| prior.rules().allows(node, parents);
            let of = |parents| if allowed(parents) { log_evidence(node, parents) } else { f64::NEG_INFINITY };
            (0..1 << nodes).map(of).collect()
        })
        .collect();
    let log_joint = |graph: &Graph| {
        let log_evidence: f64 = (0..nodes).map(|node| local[node][graph.parents(node) as usize]).sum();
        log_evidence + prior.log_graph(graph)
    };
    let log_joint: Vec<f64> = graphs.iter().map(log_joint).collect();
    let log_evidence = log_sum_exp(&log_joint);
    let probabilities: Vec<f64> = log_joint.iter().map(|log| (log - log_evidence).exp()).collect();
    let mut edges = vec![0.0; nodes * nodes];
    for (graph, probability) in graphs.iter().zip(&probabilities) {
        graph.edges().for_each(|(from, to)| edges[from * nodes + to] += probability);
    }
    Ok(Enumeration { graphs, probabilities, edges, log_evidence })
}

/// Log evidences of nodes given their parents where nodes are weighted sums of their parents with N(0, s²) weights, plus
/// N(0, σ²) noise: x_j ~ N(0, σ²I + s² X_π X_πᵀ). Where σ is unknown, it is integrated out.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearEvidence(Linear);

impl LinearEvidence {
    /// With noise σ and weights of prior standard deviation s.
    pub fn new(table: &NodeData, sigma: f64, scale: f64) -> Result<Self, SettingError> {
        SettingError::check("sigma", sigma, sigma > 0.0 && sigma.is_finite(), "positive")?;
        Self::with_noise(table, Some(sigma), scale)
    }

    /// With log σ_j ~ N(0, 1) for each node, and weights of prior standard deviation s.
    pub fn with_unknown_noise(table: &NodeData, scale: f64) -> Result<Self, SettingError> {
        Self::with_noise(table, None, scale)
    }

    fn with_noise(table: &NodeData, sigma: Option<f64>, scale: f64) -> Result<Self, SettingError> {
        SettingError::check("weight_scale", scale, scale > 0.0 && scale.is_finite(), "positive")?;
        Ok(Self(Linear::new(Products::new(table, &Interventions::default()), sigma, scale)))
    }

    /// The log evidence of a node given its parents, a set whose bit i stands for node i.
    ///
    /// Not a number for a node that does not exist, or where rounding leaves a matrix without its decomposition.
    pub fn log_evidence(&self, node: usize, parents: u64) -> f64 {
        if nodes_of(parents).chain([node]).any(|node| node >= self.0.products.nodes()) {
            return f64::NAN;
        }
        self.0.log_evidence(node, parents)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::problem::dag::simulate::{SimulationSettings, simulate};
    use crate::problem::dag::{GraphPrior, Rules, Sem};

    fn table(nodes: usize, rows: usize) -> NodeData {
        let settings =
            SimulationSettings { nodes, rows, sem: Sem::Linear {}, edge_probability: 0.8, ..Default::default() };
        simulate(&settings).unwrap().table
    }

    /// log N(x; 0, V) from the n × n covariance itself, by Gauss's elimination.
    fn dense(table: &NodeData, node: usize, parents: &[usize], sigma: f64, scale: f64) -> f64 {
        let n = table.columns[0].len();
        let covariance = |a: usize, b: usize| {
            let shared: f64 = parents.iter().map(|&p| table.columns[p][a] * table.columns[p][b]).sum();
            scale * scale * shared + if a == b { sigma * sigma } else { 0.0 }
        };
        let mut rows: Vec<Vec<f64>> = (0..n).map(|a| (0..n).map(|b| covariance(a, b)).collect()).collect();
        let mut x = table.columns[node].clone();
        let (mut log_determinant, mut form) = (0.0, 0.0);
        for k in 0..n {
            let (pivot, head) = (rows[k].clone(), x[k]);
            log_determinant += pivot[k].ln();
            form += head * head / pivot[k];
            for i in k + 1..n {
                let factor = rows[i][k] / pivot[k];
                rows[i].iter_mut().zip(&pivot).for_each(|(r, p)| *r -= factor * p);
                x[i] -= factor * head;
            }
        }
        -0.5 * (n as f64 * std::f64::consts::TAU.ln() + log_determinant + form)
    }

    #[test]
    fn evidences_are_those_of_the_whole_covariance() {
        let table = table(5, 30);
        for (sigma, scale) in [(1.0, 1.0), (0.4, 2.5)] {
            let evidence = LinearEvidence::new(&table, sigma, scale).unwrap();
            for node in 0..5 {
                for parents in (0..32).filter(|parents| parents >> node & 1 == 0) {
                    let expected = dense(&table, node, &nodes_of(parents).collect::<Vec<_>>(), sigma, scale);
                    let found = evidence.log_evidence(node, parents);
                    assert!((found - expected).abs() < 1e-9, "{node} {parents:b}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn evidence_of_one_parent_is_an_integral_over_its_weight() {
        let (table, sigma, scale) = (table(2, 12), 0.8, 1.5);
        let normal = |x: f64, sd: f64| -0.5 * (x / sd).powi(2) - sd.ln() - 0.5 * std::f64::consts::TAU.ln();
        let (x, y) = (&table.columns[0], &table.columns[1]);
        // A sum over an even grid is exact to rounding for a function that vanishes at both ends.
        let step = 0.002;
        let logs: Vec<f64> = (-5000..=5000)
            .map(|point| {
                let weight = step * f64::from(point);
                normal(weight, scale) + x.iter().zip(y).map(|(x, y)| normal(y - weight * x, sigma)).sum::<f64>()
            })
            .collect();
        let expected = log_sum_exp(&logs) + step.ln();
        let found = LinearEvidence::new(&table, sigma, scale).unwrap().log_evidence(1, 0b01);
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }

    #[test]
    fn unknown_noise_is_integrated_out() {
        let (few, many) = (table(3, 5), table(3, 2000));
        // Also noise far from what the prior expects.
        let scaled = |table: &NodeData, by: f64| {
            NodeData::new(
                table.names.clone(),
                table.columns.iter().map(|column| column.iter().map(|x| by * x).collect()).collect(),
            )
        };
        for table in [few.clone(), many.clone(), scaled(&few, 50.0), scaled(&many, 0.01)] {
            let unknown = LinearEvidence::with_unknown_noise(&table, 1.5).unwrap();
            for (node, parents) in [(0, 0), (1, 0b001), (2, 0b011), (0, 0b110)] {
                // A far finer and wider grid, point by point from the evidence with known noise.
                let step = 1e-3;
                let log = |point: i32| {
                    let log_sigma = step * f64::from(point);
                    let known = LinearEvidence(Linear { sigma: Some(log_sigma.exp()), ..unknown.0.clone() });
                    known.log_evidence(node, parents) - 0.5 * (log_sigma * log_sigma + std::f64::consts::TAU.ln())
                };
                let expected = log_sum_exp(&(-7000..=7000).map(log).collect::<Vec<_>>()) + step.ln();
                let found = unknown.log_evidence(node, parents);
                assert!((found - expected).abs() < 1e-8, "{node} {parents:b}: {found} {expected}");
            }
        }
    }

    #[test]
    fn posteriors_follow_bayes_rule_graph_by_graph() {
        let evidence = LinearEvidence::new(&table(3, 40), 1.0, 1.0).unwrap();
        let rules = Rules { forbidden: vec![[2, 0]], ..Rules::default() }.compile(3).unwrap();
        for kind in [GraphPrior::Orders, GraphPrior::Graphs] {
            let prior = StructurePrior::new(kind, 0.4, rules.clone()).unwrap();
            let exact = enumerate(&prior, |node, parents| evidence.log_evidence(node, parents)).unwrap();
            let log_joint = |graph: &Graph| {
                prior.log_graph(graph) + (0..3).map(|j| evidence.log_evidence(j, graph.parents(j))).sum::<f64>()
            };
            let total: f64 = exact.graphs.iter().map(|graph| (log_joint(graph) - exact.log_evidence).exp()).sum();
            assert!((total - 1.0).abs() < 1e-12);
            for (graph, &probability) in exact.graphs.iter().zip(&exact.probabilities) {
                assert!((probability.ln() - log_joint(graph) + exact.log_evidence).abs() < 1e-9);
                assert!(!graph.has(2, 0));
            }
            for (from, to) in (0..3).flat_map(|from| (0..3).map(move |to| (from, to))) {
                let with = exact.graphs.iter().zip(&exact.probabilities).filter(|(graph, _)| graph.has(from, to));
                let expected: f64 = with.map(|(_, probability)| probability).sum();
                assert!((exact.edges[from * 3 + to] - expected).abs() < 1e-12);
            }
            let ranked: Vec<f64> = exact.ranking().into_iter().map(|place| exact.probabilities[place]).collect();
            assert!(ranked.windows(2).all(|pair| pair[0] >= pair[1]));
        }
    }

    #[test]
    fn without_data_the_posterior_is_the_prior() {
        let prior = StructurePrior::new(GraphPrior::Orders, 0.7, Rules::default().compile(4).unwrap()).unwrap();
        let exact = enumerate(&prior, |_, _| 0.0).unwrap();
        assert!(exact.log_evidence.abs() < 1e-11);
        let expected = prior.edge_probabilities().unwrap();
        assert!(exact.edges.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-11));
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let table = table(3, 10);
        assert_eq!(LinearEvidence::new(&table, 0.0, 1.0).unwrap_err().what, "sigma");
        assert_eq!(LinearEvidence::new(&table, 1.0, f64::NAN).unwrap_err().what, "weight_scale");
        let evidence = LinearEvidence::new(&table, 1.0, 1.0).unwrap();
        assert!(evidence.log_evidence(3, 0).is_nan() && evidence.log_evidence(0, 8).is_nan());
        let prior = StructurePrior::new(GraphPrior::Orders, 0.0, Rules::default().compile(6).unwrap()).unwrap();
        let error = enumerate(&prior, |_, _| 0.0).unwrap_err();
        assert_eq!(error, GraphError::TooManyNodes { nodes: 6, most: 5 });
    }
}

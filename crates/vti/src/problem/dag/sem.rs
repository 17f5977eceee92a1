//! Which graph, and which structural equations along it?

use std::collections::BTreeMap;
use std::sync::Arc;

use super::bge::Bge;
use super::linear::Linear;
use super::nonlinear::Nonlinear;
use super::products::Products;
use super::{
    DagSettings, GraphPrior, Interventions, MlpLikelihood, NodeData, Noise, RulesError, Score, Sem, StructurePrior,
};
use crate::graph::Graph;
use crate::optimise::SettingError;
use crate::problem::{Blocks, Constraint, Constraints, DensityError, Problem};
use crate::space::{Dags, Model, ModelSpace, NodeParameters, SpaceError};

/// Structural equations over all graphs of some nodes (paper, appendix G (mlpdagdescription)).
///
/// Given the graph, each node has a density of its own, given its parents:
///
/// ```text
/// log η(θ_m | m) = Σ_j log N(x_j; f_j(x_pa(j); θ_j), σ_j²) + log N(θ_j; 0, s²).
/// ```
///
/// Parameters of a node, in order: σ_j (unknown noise only); where it has a parent, for [`Sem::Mlp`], hidden biases, output
/// weights and output bias; and for each parent, ascending, its weight or its column of W¹. A node without parents has mean 0.
/// Hidden units can change places without any change of f_j; which arrangement a flow infers is settled by
/// [`Blocks::log_arrangement`], and the density knows nothing of it.
///
/// ```
/// use vti::problem::Problem;
/// use vti::problem::dag::{Dag, DagSettings, Noise, Sem, NodeData};
/// let table = NodeData { names: vec!["a".into(), "b".into()], columns: vec![vec![1.0, -1.0], vec![2.0, -2.1]] };
/// let settings = DagSettings { sem: Sem::Linear {}, noise: Noise::Known { sigma: 1.0 }, ..DagSettings::default() };
/// let problem = Dag::new(table, settings)?;
/// assert_eq!(problem.parameter_names(), ["b→a", "a→b"]);
/// # Ok::<(), vti::problem::dag::DagError>(())
/// ```
#[derive(Debug)]
pub struct Dag {
    table: NodeData,
    interventions: Interventions,
    pub(super) settings: DagSettings,
    pub(super) space: Dags,
    pub(super) prior: StructurePrior,
    pub(super) constraints: Option<Constraints>,
    pub(super) likelihood: Arc<Likelihood>,
}

/// How the likelihood of a node is computed.
#[derive(Debug)]
pub(super) enum Likelihood {
    Linear(Linear),
    Bge(Bge),
    Single(Box<Nonlinear<f32>>),
    Double(Box<Nonlinear<f64>>),
}

/// Data or settings that make no problem.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DagError {
    /// Rules that contradict themselves or the nodes.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// A setting out of its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Nodes that make no space.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// A table without any measurement.
    #[error("there are no rows: nothing was measured")]
    NoRows,
    /// Columns that are not equally long.
    #[error("column {column} has {found} rows, but the first has {rows}")]
    Rows {
        /// Which column, counted from 0.
        column: usize,
        /// Its rows.
        found: usize,
        /// Rows of the first column.
        rows: usize,
    },
    /// A number that is not finite.
    #[error("row {row} of column {column} is not a finite number")]
    NotFinite {
        /// Which column, counted from 0.
        column: usize,
        /// Which row, counted from 0.
        row: usize,
    },
    /// Interventions for another number of rows.
    #[error("nodes that were set are given for {found} rows, but there are {rows}")]
    SetRows {
        /// For how many rows.
        found: usize,
        /// Rows of the table.
        rows: usize,
    },
    /// A node that was set and is none.
    #[error("row {row} says that node {node} was set, but there are {nodes}")]
    SetNode {
        /// Which row, counted from 0.
        row: usize,
        /// Which node, counted from 0.
        node: usize,
        /// How many there are.
        nodes: usize,
    },
    /// BGe of anything but linear equations with unknown noise.
    #[error("the BGe score is one of linear equations with unknown noise\nhint: --sem linear --noise unknown")]
    NotLinearGaussian,
}

impl Dag {
    /// The graphs.
    pub fn space(&self) -> &Dags {
        &self.space
    }

    /// Checks the data and the settings.
    pub fn new(table: NodeData, settings: DagSettings) -> Result<Self, DagError> {
        Self::with_interventions(table, Interventions::default(), settings)
    }

    /// The same where nodes were set from outside in some rows: such a row does not count for the node's own equation.
    pub fn with_interventions(
        table: NodeData,
        interventions: Interventions,
        settings: DagSettings,
    ) -> Result<Self, DagError> {
        check_settings(&settings)?;
        check_columns(&table)?;
        let nodes = table.columns.len();
        interventions.check(nodes, table.rows())?;
        let counts = node_parameters(&settings)?;
        let rules = settings.rules.compile(nodes)?;
        let space = Dags::with_parameters(nodes, counts)?.with_names(table.names.clone())?.with_rules(rules.clone())?;
        let prior = StructurePrior::new(settings.prior, settings.edge_penalty, rules)?;
        let sigma = settings.noise.sigma();
        let likelihood = match (settings.sem, settings.score) {
            (Sem::Linear {}, score) => {
                let products = Products::new(&table, &interventions);
                match score {
                    Score::Independent {} => Likelihood::Linear(Linear::new(products, sigma, settings.weight_scale)),
                    Score::Bge { mean_rows, degrees } => Likelihood::Bge(Bge::new(products, mean_rows, degrees)),
                }
            }
            (Sem::Mlp { hidden, bias }, _) => {
                let likelihood =
                    MlpLikelihood::new(&table.columns, hidden, bias, sigma).without(&table.columns, &interventions);
                Likelihood::Single(Box::new(Nonlinear::new(likelihood, settings.weight_scale)))
            }
        };
        let constraints = match sigma {
            Some(_) => None,
            None => Some(positive_noise(&space)?),
        };
        Ok(Self { table, interventions, settings, space, prior, constraints, likelihood: Arc::new(likelihood) })
    }

    /// The same problem with likelihoods in double precision. Hidden units are otherwise computed in single precision, with sums
    /// over rows in double.
    pub fn in_double_precision(mut self) -> Self {
        if let (Sem::Mlp { hidden, bias }, Likelihood::Single(_)) = (self.settings.sem, &*self.likelihood) {
            let likelihood = MlpLikelihood::new(&self.table.columns, hidden, bias, self.settings.noise.sigma());
            let likelihood = likelihood.without(&self.table.columns, &self.interventions);
            let likelihood = Likelihood::Double(Box::new(Nonlinear::new(likelihood, self.settings.weight_scale)));
            self.likelihood = Arc::new(likelihood);
        }
        self
    }

    /// The same data and equations under another prior over graphs: what is found out about nodes and their parents is shared.
    pub fn with_prior(&self, prior: GraphPrior, edge_penalty: f64) -> Result<Self, DagError> {
        Ok(Self {
            table: self.table.clone(),
            interventions: self.interventions.clone(),
            settings: DagSettings { prior, edge_penalty, ..self.settings.clone() },
            space: self.space.clone(),
            prior: StructurePrior::new(prior, edge_penalty, self.prior.rules().clone())?,
            constraints: self.constraints.clone(),
            likelihood: Arc::clone(&self.likelihood),
        })
    }

    /// The data.
    pub fn table(&self) -> &NodeData {
        &self.table
    }

    /// Which nodes were set in which rows.
    pub fn interventions(&self) -> &Interventions {
        &self.interventions
    }

    /// What is assumed.
    pub fn settings(&self) -> &DagSettings {
        &self.settings
    }

    /// The prior over graphs.
    pub fn prior(&self) -> &StructurePrior {
        &self.prior
    }

    /// The prior of weights and noise, and of graphs.
    pub fn prior_in_words(&self) -> String {
        let DagSettings { sem, noise, weight_scale, score, prior, edge_penalty, .. } = &self.settings;
        let weights = match (sem, score) {
            (_, Score::Bge { mean_rows, degrees }) => format!(
                "normal-Wishart for all nodes together (BGe: means count as {mean_rows} rows, {degrees} degrees of freedom beyond the \
                 number of nodes), which does not tell Markov equivalent graphs apart"
            ),
            (Sem::Linear {}, _) => format!("weights ~ N(0, {weight_scale}²)"),
            (Sem::Mlp { .. }, _) => format!("weights of hidden units ~ N(0, {weight_scale}²)"),
        };
        let noise = match (noise, score) {
            (_, Score::Bge { .. }) => String::new(),
            (Noise::Known { sigma }, _) => format!(", σ = {sigma}"),
            (Noise::Unknown {}, _) => ", log σ ~ N(0, 1) for each node".into(),
        };
        let graphs = match prior {
            GraphPrior::Orders => "orders with edges along them",
            GraphPrior::Graphs => "graphs",
        };
        let penalty = if *edge_penalty == 0.0 {
            String::new()
        } else {
            format!(", each edge e^−{edge_penalty} times less probable")
        };
        format!("{weights}{noise}; all {graphs} equally probable{penalty}")
    }

    /// The graph of a word.
    pub fn graph(&self, word: &[u16]) -> Option<Graph> {
        let mut parents = vec![0; self.space.nodes()];
        self.space.parents(word, &mut parents);
        Graph::from_parents(parents).ok()
    }

    /// The canonical word of a graph; none where it has a cycle or other nodes.
    pub fn word(&self, graph: &Graph) -> Option<Model> {
        let nodes = graph.nodes();
        let mut adjacency = vec![false; nodes * nodes];
        graph.edges().for_each(|(from, to)| adjacency[from * nodes + to] = true);
        self.space.encode(&adjacency).ok()
    }

    /// The graphs of words, each once and in the order of graphs, with the sums of the words' weights. Words that weigh nothing
    /// or mean no graph are left out.
    pub fn graphs<'w>(&self, words: impl IntoIterator<Item = (&'w [u16], f64)>) -> Vec<(Graph, f64)> {
        let mut sums: BTreeMap<Graph, f64> = BTreeMap::new();
        for (word, weight) in words.into_iter().filter(|(_, weight)| *weight > 0.0) {
            if let Some(graph) = self.graph(word) {
                *sums.entry(graph).or_insert(0.0) += weight;
            }
        }
        sums.into_iter().collect()
    }

    /// `log p(θ_j)` of a node with σ and weights, added to a density and its gradient.
    pub(super) fn add_prior(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        if let Likelihood::Bge(bge) = &*self.likelihood {
            return bge.add_prior(theta, gradient);
        }
        let unknown = usize::from(self.constraints.is_some());
        let half_log_tau = 0.5 * std::f64::consts::TAU.ln();
        let mut log_prior = 0.0;
        if let (Some(sigma), Some(gradient)) = (theta.first().filter(|_| unknown == 1), gradient.first_mut()) {
            // log σ ~ N(0, 1).
            let u = sigma.ln();
            log_prior -= u + 0.5 * u * u + half_log_tau;
            *gradient -= (1.0 + u) / sigma;
        }
        let scale = self.settings.weight_scale;
        for (w, gradient) in theta.iter().zip(gradient).skip(unknown) {
            log_prior -= 0.5 * (w / scale).powi(2) + scale.ln() + half_log_tau;
            *gradient -= w / (scale * scale);
        }
        log_prior
    }
}

/// Scales are positive, and BGe has the equations it is a prior of.
fn check_settings(settings: &DagSettings) -> Result<(), DagError> {
    let positive = |what, value: f64| SettingError::check(what, value, value > 0.0 && value.is_finite(), "positive");
    positive("weight_scale", settings.weight_scale)?;
    if let Noise::Known { sigma } = settings.noise {
        positive("sigma", sigma)?;
    }
    if let Score::Bge { mean_rows, degrees } = settings.score {
        positive("mean_rows", mean_rows)?;
        SettingError::check("degrees", degrees, degrees > 1.0 && degrees.is_finite(), "more than 1")?;
        if settings.sem != (Sem::Linear {}) || settings.noise != (Noise::Unknown {}) {
            return Err(DagError::NotLinearGaussian);
        }
    }
    Ok(())
}

/// Finite numbers in columns of one length, at least one in each.
fn check_columns(table: &NodeData) -> Result<(), DagError> {
    let rows = table.rows();
    if rows == 0 {
        return Err(DagError::NoRows);
    }
    for (column, numbers) in table.columns.iter().enumerate() {
        if numbers.len() != rows {
            return Err(DagError::Rows { column, found: numbers.len(), rows });
        }
        if let Some(row) = numbers.iter().position(|x| !x.is_finite()) {
            return Err(DagError::NotFinite { column, row });
        }
    }
    Ok(())
}

/// How many parameters nodes have.
fn node_parameters(settings: &DagSettings) -> Result<NodeParameters, SettingError> {
    let always = usize::from(matches!(settings.noise, Noise::Unknown {}));
    Ok(match settings.sem {
        Sem::Linear {} => NodeParameters { always, with_parents: 0, per_edge: 1 },
        Sem::Mlp { hidden, bias } => {
            SettingError::check("hidden", hidden as f64, (1..=1 << 12).contains(&hidden), "from 1 to 4096")?;
            let biases = if bias { hidden + 1 } else { 0 };
            NodeParameters { always, with_parents: hidden + biases, per_edge: hidden }
        }
    })
}

/// σ of each node is positive, everything else any number.
fn positive_noise(space: &Dags) -> Result<Constraints, SpaceError> {
    let width = space.node_width();
    let constraint = |place: usize| if place.is_multiple_of(width) { Constraint::Positive } else { Constraint::Real };
    let list = (0..space.max_dim()).map(constraint).collect();
    // The space has no more coordinates than a list can cover.
    Constraints::new(list).map_err(|_| SpaceError::TooLarge {
        what: "coordinates",
        found: space.max_dim(),
        max: u32::MAX as usize,
    })
}

impl Problem for Dag {
    fn space(&self) -> &dyn ModelSpace {
        &self.space
    }

    fn log_density(&self, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        let mut parents = vec![0; self.space.nodes()];
        self.space.parents(model, &mut parents);
        let (mut theta, mut gradient, mut sum) = (theta, gradient, 0.0);
        let mut mask = vec![false; self.space.node_width()];
        for (node, &parents) in parents.iter().enumerate() {
            self.space.mark_node(node, parents, &mut mask);
            let dim = mask.iter().filter(|&&active| active).count();
            let (here, rest) = theta.split_at(dim);
            let (gradient_here, gradient_rest) = gradient.split_at_mut(dim);
            sum += Blocks::log_density(self, node, parents, here, gradient_here)?;
            (theta, gradient) = (rest, gradient_rest);
        }
        Ok(sum)
    }

    fn log_prior(&self, model: &[u16]) -> f64 {
        self.graph(model).map_or(f64::NEG_INFINITY, |graph| self.prior.log_word(&graph))
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.constraints.as_ref()
    }

    /// The prior: log σ is standard normal, weights are normal.
    fn reference(&self) -> Option<Vec<(f64, f64)>> {
        let unknown = usize::from(self.constraints.is_some());
        let node = (0..self.space.node_width())
            .map(|place| (0.0, if place < unknown { 1.0 } else { self.settings.weight_scale }));
        Some(std::iter::repeat_n(node, self.space.nodes()).flatten().collect())
    }

    fn blocks(&self) -> Option<&dyn Blocks> {
        (self.space.nodes() <= Graph::MAX_NODES).then_some(self)
    }

    fn parameter_names(&self) -> Vec<String> {
        let names = &self.table.names;
        let mut found = Vec::with_capacity(self.space.max_dim());
        for (node, name) in names.iter().enumerate() {
            found.extend(self.constraints.is_some().then(|| format!("sigma.{name}")));
            let parents = names.iter().enumerate().filter(|&(from, _)| from != node).map(|(_, from)| from);
            match self.settings.sem {
                Sem::Linear {} => found.extend(parents.map(|from| format!("{from}→{name}"))),
                Sem::Mlp { hidden, bias } => {
                    let units = || 1..=hidden;
                    found.extend(units().filter(|_| bias).map(|unit| format!("b1.{name}.{unit}")));
                    found.extend(units().map(|unit| format!("w2.{name}.{unit}")));
                    found.extend(bias.then(|| format!("b2.{name}")));
                    let edges = parents.flat_map(|from| units().map(move |unit| format!("w1.{from}→{name}.{unit}")));
                    found.extend(edges);
                }
            }
        }
        found
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

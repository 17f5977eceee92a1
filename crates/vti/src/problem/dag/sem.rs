//! Which graph, and which structural equations along it?

use std::collections::BTreeMap;
use std::sync::Arc;

use super::bge::Bge;
use super::discrete::{Discrete, add_weight_prior, response};
use super::equations::Equations;
use super::inputs::Inputs;
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
///
/// A node of categories ([`NodeKind::Categories`](super::NodeKind::Categories)) has no σ. Its f_j, one for each category but the first, are what is added to
/// intercepts a to give logits, `p(x_j = k) ∝ exp(a_k + f_jk)`; of ordered categories there is one f_j and cut points c that ascend,
/// `p(x_j < k) = 1/(1 + exp(f_j − c_k))`. Without parents all probabilities of its categories are equally likely beforehand. As a
/// parent it enters equations as 0 or 1 (two categories), as an indicator of each category, or as scores at even distances (ordered
/// categories), less their means; weights of all indicators belong to the one edge. Intercepts, or the first cut point and the gaps
/// to the next ones, stand where other nodes have σ.
///
/// Hidden units can change places without any change of f_j; which arrangement a flow infers is settled by
/// [`Blocks::log_arrangement`], and the density knows nothing of it.
///
/// ```
/// use vti::problem::Problem;
/// use vti::problem::dag::{Dag, DagSettings, Noise, Sem, NodeData};
/// let table = NodeData::new(vec!["a".into(), "b".into()], vec![vec![1.0, -1.0], vec![2.0, -2.1]]);
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
    pub(super) inputs: Inputs,
    pub(super) likelihood: Arc<Likelihood>,
    pub(super) discrete: Arc<Discrete>,
}

/// How the likelihood of a node of numbers is computed, for the columns of [`Inputs`].
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
    /// A category that is none.
    #[error("row {row} of column {column} should be the place of one of {levels} categories")]
    NotCategory {
        /// Which column, counted from 0.
        column: usize,
        /// Which row, counted from 0.
        row: usize,
        /// How many categories there are.
        levels: usize,
    },
    /// Fewer categories than two.
    #[error("column {column} has {levels} categories: at least 2 are needed")]
    FewLevels {
        /// Which column, counted from 0.
        column: usize,
        /// How many.
        levels: usize,
    },
    /// More columns than equations can take in.
    #[error(
        "nodes enter equations as {columns} columns of numbers, one for each category of three and more, but {most} are the most\nhint: leave columns out, join rare categories, or say that they are ordered"
    )]
    ManyInputs {
        /// How many.
        columns: usize,
        /// How many there may be.
        most: usize,
    },
    /// BGe of categories.
    #[error(
        "the BGe score is one of numbers, but {name} holds categories\nhint: leave --score bge out, or the column with --exclude {name}"
    )]
    BgeOfCategories {
        /// Its name.
        name: String,
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
        if let (Score::Bge { .. }, Some(name)) = (settings.score, table.first_of_categories()) {
            return Err(DagError::BgeOfCategories { name: name.into() });
        }
        let inputs = Inputs::new(&table, &interventions);
        // Sets of nodes of numbers alone may be larger than what is summed.
        if table.first_of_categories().is_some() && inputs.count() > Graph::MAX_NODES {
            return Err(DagError::ManyInputs { columns: inputs.count(), most: Graph::MAX_NODES });
        }
        let counts = node_parameters(&settings, &table, &inputs)?;
        let rules = settings.rules.compile(nodes)?;
        let space = Dags::with_inputs(&counts)?.with_names(table.names.clone())?.with_rules(rules.clone())?;
        let prior = StructurePrior::new(settings.prior, settings.edge_penalty, rules)?;
        let sigma = settings.noise.sigma();
        let discrete = Discrete::new(&table, &inputs, &interventions, settings.sem, settings.weight_scale);
        let (columns, set) = (inputs.table(&table), inputs.interventions(&interventions, table.rows()));
        let likelihood = match (settings.sem, settings.score) {
            (Sem::Linear {}, score) => {
                let products = Products::new(columns, &set);
                match score {
                    Score::Independent {} => Likelihood::Linear(Linear::new(products, sigma, settings.weight_scale)),
                    Score::Bge { mean_rows, degrees } => Likelihood::Bge(Bge::new(products, mean_rows, degrees)),
                }
            }
            (Sem::Mlp { hidden, bias }, _) => {
                let likelihood =
                    MlpLikelihood::new(&columns.columns, hidden, bias, sigma).without(&columns.columns, &set);
                Likelihood::Single(Box::new(Nonlinear::new(likelihood, settings.weight_scale)))
            }
        };
        let (likelihood, discrete) = (Arc::new(likelihood), Arc::new(discrete));
        let mut made =
            Self { table, interventions, settings, space, prior, constraints: None, inputs, likelihood, discrete };
        made.constraints = made.own_constraints()?;
        Ok(made)
    }

    /// The same problem with likelihoods in double precision. Hidden units are otherwise computed in single precision, with sums
    /// over rows in double.
    pub fn in_double_precision(mut self) -> Self {
        if let (Sem::Mlp { hidden, bias }, Likelihood::Single(_)) = (self.settings.sem, &*self.likelihood) {
            let columns = &self.inputs.table(&self.table).columns;
            let set = self.inputs.interventions(&self.interventions, self.table.rows());
            let likelihood = MlpLikelihood::new(columns, hidden, bias, self.settings.noise.sigma());
            let likelihood = likelihood.without(columns, &set);
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
            inputs: self.inputs.clone(),
            likelihood: Arc::clone(&self.likelihood),
            discrete: Arc::clone(&self.discrete),
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

    /// `log p(θ_j)` of a node, added to a density and its gradient.
    pub(super) fn add_prior(&self, node: usize, theta: &[f64], gradient: &mut [f64]) -> f64 {
        if let Likelihood::Bge(bge) = &*self.likelihood {
            return bge.add_prior(theta, gradient);
        }
        let own = self.space.parameters(node).always.min(theta.len());
        let mut log_prior = self.discrete.add_own_prior(node, theta, gradient).unwrap_or(0.0);
        if let (false, Some(sigma), Some(gradient)) =
            (self.discrete.has(node), theta[..own].first(), gradient.first_mut())
        {
            // log σ ~ N(0, 1).
            let u = sigma.ln();
            log_prior -= u + 0.5 * u * u + 0.5 * std::f64::consts::TAU.ln();
            *gradient -= (1.0 + u) / sigma;
        }
        add_weight_prior(log_prior, self.settings.weight_scale, &theta[own..], &mut gradient[own..])
    }

    /// Where the coordinates of a node live that it has without parents, too, and a normal density that reaches as far as they may lie.
    fn own_coordinates(&self, node: usize) -> Vec<(Constraint, (f64, f64))> {
        if self.discrete.has(node) {
            return self.discrete.reference(node);
        }
        // σ.
        vec![(Constraint::Positive, (0.0, 1.0)); self.space.parameters(node).always]
    }

    /// What is positive, everything else being any number; none where nothing is.
    fn own_constraints(&self) -> Result<Option<Constraints>, SpaceError> {
        let width = self.space.node_width();
        let mut list = vec![Constraint::Real; self.space.max_dim()];
        for node in 0..self.space.nodes() {
            for (place, (constraint, _)) in self.own_coordinates(node).into_iter().enumerate() {
                list[node * width + place] = constraint;
            }
        }
        if list.iter().all(|constraint| *constraint == Constraint::Real) {
            return Ok(None);
        }
        // The space has no more coordinates than a list can cover.
        let constraints = Constraints::new(list).map_err(|_| SpaceError::TooLarge {
            what: "coordinates",
            found: self.space.max_dim(),
            max: u32::MAX as usize,
        })?;
        Ok(Some(constraints))
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
        let Some(levels) = table.categories(column).map(<[String]>::len) else { continue };
        if levels < 2 {
            return Err(DagError::FewLevels { column, levels });
        }
        if let Some(row) = numbers.iter().position(|&x| x < 0.0 || x >= levels as f64 || x.fract() != 0.0) {
            return Err(DagError::NotCategory { column, row, levels });
        }
    }
    Ok(())
}

/// How many parameters nodes have, and how many inputs they are.
fn node_parameters(
    settings: &DagSettings,
    table: &NodeData,
    inputs: &Inputs,
) -> Result<Vec<(NodeParameters, usize)>, SettingError> {
    if let Sem::Mlp { hidden, .. } = settings.sem {
        SettingError::check("hidden", hidden as f64, (1..=1 << 12).contains(&hidden), "from 1 to 4096")?;
    }
    let unknown = usize::from(matches!(settings.noise, Noise::Unknown {}));
    let of = |node: usize| {
        let (own, outputs) =
            response(table, node).map_or((unknown, 1), |response| (response.own(), response.predictors()));
        (Equations::new(settings.sem, own, outputs).counts(), inputs.columns(node).len())
    };
    Ok((0..table.columns.len()).map(of).collect())
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

    /// The prior: log σ is standard normal, weights are normal. Wider than the prior where it is not normal.
    fn reference(&self) -> Option<Vec<(f64, f64)>> {
        let width = self.space.node_width();
        let mut reference = vec![(0.0, self.settings.weight_scale); self.space.max_dim()];
        for node in 0..self.space.nodes() {
            let own = self.own_coordinates(node).into_iter().map(|(_, own)| own);
            reference[node * width..].iter_mut().zip(own).for_each(|(to, own)| *to = own);
        }
        Some(reference)
    }

    fn blocks(&self) -> Option<&dyn Blocks> {
        (self.space.nodes() <= Graph::MAX_NODES).then_some(self)
    }

    fn parameter_names(&self) -> Vec<String> {
        self.names_of_parameters()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

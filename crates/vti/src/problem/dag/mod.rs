//! Causal graphs: which variable depends on which others, and how (paper, section 5.2, "Bayesian structure learning via
//! non-linear directed acyclic graph discovery").
//!
//! Everywhere `A[i][j] = 1` means i → j: i is a parent of j.

mod arrangement;
mod bge;
mod blocks;
mod conjugate;
mod data;
mod discrete;
mod equations;
mod exact;
mod fits;
mod inputs;
mod interventions;
mod layout;
mod likelihood;
mod linear;
mod mean_field;
mod mean_field_fit;
mod means;
mod nonlinear;
mod normaliser;
mod prior;
mod products;
mod response;
mod rules;
mod sem;
pub mod simulate;
mod view;
mod words;

use serde::{Deserialize, Serialize};

pub use conjugate::NodePosterior;
pub use data::{NodeData, NodeKind, Scaling};
pub(crate) use exact::is_closed;
pub use exact::{Enumeration, ExactError, LinearEvidence, enumerate};
pub use interventions::Interventions;
pub use likelihood::{MlpLikelihood, Scratch};
pub use mean_field::{MeanField, Moments};
pub use mean_field_fit::{MeanFieldFit, Start};
pub use normaliser::Normaliser;
pub use prior::{MAX_NODES_OF_GRAPHS, StructurePrior};
pub use rules::Rules;
pub use sem::{Dag, DagError};

pub use crate::space::RulesError;

/// How a node follows its parents: the structural equation model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sem {
    /// A weighted sum of them.
    Linear {},
    /// One hidden layer of rectified linear units (paper, eq. 50 (apdxmlpdagmapping)).
    Mlp {
        /// H, the number of hidden units.
        #[serde(default = "default_hidden")]
        hidden: usize,
        /// Whether hidden units and the output have biases.
        #[serde(default)]
        bias: bool,
    },
}

fn default_hidden() -> usize {
    10
}

impl Default for Sem {
    fn default() -> Self {
        Self::Mlp { hidden: default_hidden(), bias: false }
    }
}

/// What is known of the standard deviation of a node given its parents.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Noise {
    /// It is this, for every node.
    Known {
        /// σ.
        sigma: f64,
    },
    /// Nothing but log σ_j ~ N(0, 1), for each node its own.
    Unknown {},
}

impl Noise {
    /// σ where it is known.
    pub(crate) fn sigma(self) -> Option<f64> {
        match self {
            Self::Known { sigma } => Some(sigma),
            Self::Unknown {} => None,
        }
    }
}

impl Default for Noise {
    fn default() -> Self {
        Self::Unknown {}
    }
}

/// The prior of weights and noise, and so the evidence of a graph, its score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Score {
    /// Weights and noise are independent beforehand: [`DagSettings::weight_scale`] and [`DagSettings::noise`] say how.
    Independent {},
    /// BGe: a normal-Wishart prior of means and precisions of all nodes together, so that Markov equivalent graphs have the same
    /// evidence. Of linear equations with unknown noise.
    Bge {
        /// α_μ: the prior of the means counts as so many rows.
        #[serde(default = "default_mean_rows")]
        mean_rows: f64,
        /// α_w − n: degrees of freedom of the Wishart distribution beyond the number of nodes.
        #[serde(default = "default_degrees")]
        degrees: f64,
    },
}

fn default_mean_rows() -> f64 {
    1.0
}

fn default_degrees() -> f64 {
    2.0
}

impl Score {
    /// BGe with one row's worth of prior means and n + 2 degrees of freedom.
    pub fn bge() -> Self {
        Self::Bge { mean_rows: default_mean_rows(), degrees: default_degrees() }
    }
}

impl Default for Score {
    fn default() -> Self {
        Self::Independent {}
    }
}

/// What is uniform, but for the edge penalty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GraphPrior {
    /// Orders with the edges along them (the paper's): a graph weighs as much as it has topological orders.
    #[default]
    Orders,
    /// Graphs.
    Graphs,
}

/// What is assumed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DagSettings {
    /// How nodes follow their parents.
    pub sem: Sem,
    /// Of each node given its parents.
    pub noise: Noise,
    /// Prior standard deviation of weights and biases.
    pub weight_scale: f64,
    /// Prior of weights and noise.
    pub score: Score,
    /// Of the graph.
    pub prior: GraphPrior,
    /// γ: the log prior falls by so much with each edge.
    pub edge_penalty: f64,
    /// Which edges there must and may be.
    pub rules: Rules,
}

impl Default for DagSettings {
    fn default() -> Self {
        Self {
            sem: Sem::default(),
            noise: Noise::default(),
            weight_scale: 1.0,
            score: Score::default(),
            prior: GraphPrior::default(),
            edge_penalty: 0.0,
            rules: Rules::default(),
        }
    }
}

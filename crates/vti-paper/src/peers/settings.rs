//! How the peers are run; the names are those of their packages.

use serde::Serialize;

/// Three of the paper's λ, around what is best where 10 nodes are simulated with 16 to 1,024 rows: larger ones were better for two
/// of 36 data sets.
pub(crate) const FEW_LAMBDAS: [f64; 3] = [0.00464, 0.01, 0.0215];

/// Settings of DAGMA with networks. The default: those of the package, with the paper's sweep of λ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DagmaSettings {
    /// Penalties of the weights' size, one answer for each.
    pub(crate) lambdas: Vec<f64>,
    /// Hidden units of each node.
    pub(crate) hidden: usize,
    /// Steps of each but the last of its four problems.
    pub(crate) warm_iter: usize,
    /// Steps of the last.
    pub(crate) max_iter: usize,
    /// Learning rate.
    pub(crate) lr: f64,
    /// Steps after which it looks whether to go on.
    pub(crate) checkpoint: usize,
}

impl Default for DagmaSettings {
    fn default() -> Self {
        let lambdas = (0..10).map(|k| 10f64.powf(-3.0 + f64::from(k) / 3.0)).collect();
        Self { lambdas, hidden: 10, warm_iter: 50_000, max_iter: 80_000, lr: 2e-4, checkpoint: 1000 }
    }
}

impl DagmaSettings {
    /// Seconds instead of many minutes a λ: larger steps, and fewer of them.
    pub(crate) fn short() -> Self {
        Self { warm_iter: 1000, max_iter: 1600, lr: 5e-3, checkpoint: 200, ..Self::default() }
    }
}

/// Settings of DiBS and DiBS+, which share one run. The default: those of the package, with the particles, steps and model of
/// the paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DibsSettings {
    /// Hidden units of each node.
    pub(crate) hidden: usize,
    /// Whether they have biases.
    pub(crate) bias: bool,
    /// σ², the same for every node.
    pub(crate) noise_variance: f64,
    /// Prior standard deviation of weights.
    pub(crate) weight_scale: f64,
    /// Prior probability of an edge between two nodes, in either direction.
    pub(crate) edge_probability: f64,
    /// Graphs that are moved.
    pub(crate) particles: usize,
    /// How often.
    pub(crate) steps: usize,
    /// How far.
    pub(crate) stepsize: f64,
    /// How fast graphs become sharp.
    pub(crate) alpha_linear: f64,
    /// How fast cycles are penalised.
    pub(crate) beta_linear: f64,
    /// Draws of each estimate of a gradient.
    pub(crate) n_grad_mc_samples: usize,
    /// Draws of each estimate of what cycles cost.
    pub(crate) n_acyclicity_mc_samples: usize,
}

impl Default for DibsSettings {
    fn default() -> Self {
        Self {
            hidden: 10,
            bias: false,
            noise_variance: 1.0,
            weight_scale: 1.0,
            edge_probability: 0.5,
            particles: 10,
            steps: 5000,
            stepsize: 0.005,
            alpha_linear: 0.05,
            beta_linear: 1.0,
            n_grad_mc_samples: 128,
            n_acyclicity_mc_samples: 32,
        }
    }
}

impl DibsSettings {
    /// Seconds instead of many minutes: a fifth of the steps, each four times as long, annealed to the same end, with fewer
    /// draws a gradient.
    pub(crate) fn short() -> Self {
        Self {
            steps: 1000,
            stepsize: 0.02,
            alpha_linear: 0.25,
            beta_linear: 5.0,
            n_grad_mc_samples: 2,
            ..Self::default()
        }
    }
}

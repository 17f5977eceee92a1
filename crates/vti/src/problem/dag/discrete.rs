//! Nodes of categories: likelihoods, priors, and where parameters roughly lie.
//!
//! The function f_j of a node of categories is that of a node of numbers, and gives the predictors of a [`Response`]. Nothing here is
//! in closed form, but for nodes without parents: estimates of evidences are Laplace's for linear equations, and for hidden units a
//! mean-field bound ([`field`]) up to an approximation.

mod field;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::arrangement::{expected_log_weight, is_arranged, log_weight};
use super::equations::Equations;
use super::fits::{Find, Fits};
use super::inputs::Inputs;
use super::mean_field_fit::Climb;
use super::response::Response;
use super::{Interventions, MeanFieldFit, NodeData, NodeKind, Sem, Start};
use crate::graph::nodes_of;
use crate::optimise::{curvature, maximise};
use crate::problem::{Constraint, Preconditioner};
use crate::state::{State, StateError};
use crate::triangular::{cholesky, log_diagonal, lower_half};

/// Rows whose predictors are computed together.
const BLOCK: usize = 256;

/// The most steps to the mode.
const STEPS: usize = 500;

/// Mean and standard deviation of a normal density that reaches wherever an intercept or a cut point may lie beforehand, and that of
/// the logarithm of a gap.
const REFERENCE: (f64, f64) = (0.0, 2.0);
const REFERENCE_OF_GAP: (f64, f64) = (0.0, 1.5);

/// All nodes of categories. Sets of parents are sets of columns of [`Inputs`].
#[derive(Debug)]
pub(super) struct Discrete {
    nodes: Vec<Option<Node>>,
    sem: Sem,
    weight_scale: f64,
    fits: Fits,
}

/// One node of categories.
#[derive(Debug)]
struct Node {
    response: Response,
    /// Its own columns among the inputs.
    own_columns: u64,
    /// What was observed in the rows that count for it.
    observed: Vec<usize>,
    /// The inputs of these rows.
    inputs: Arc<Vec<Vec<f64>>>,
}

impl Node {
    /// Rows of each category.
    fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.response.categories];
        self.observed.iter().for_each(|&category| counts[category] += 1);
        counts
    }
}

/// How a node is distributed given its predictors, if its numbers are categories. Two in order are simply two.
pub(super) fn response(table: &NodeData, node: usize) -> Option<Response> {
    match table.kind(node) {
        NodeKind::Number => None,
        NodeKind::Categories { levels, is_ordered } => {
            Some(Response { categories: levels.len(), is_ordered: *is_ordered && levels.len() > 2 })
        }
    }
}

impl Discrete {
    pub(super) fn new(
        table: &NodeData,
        inputs: &Inputs,
        interventions: &Interventions,
        sem: Sem,
        weight_scale: f64,
    ) -> Self {
        let (columns, rows) = (&inputs.table(table).columns, table.rows());
        let set = interventions.counts(table.columns.len());
        let mut whole: Option<Arc<Vec<Vec<f64>>>> = None;
        let node = |node: usize| {
            let response = response(table, node)?;
            let kept = interventions.rows_without(node, rows);
            let inputs_of = if set[node] == 0 {
                Arc::clone(whole.get_or_insert_with(|| Arc::new(columns.clone())))
            } else {
                Arc::new(columns.iter().map(|column| kept.iter().map(|&row| column[row]).collect()).collect())
            };
            let observed = kept.iter().map(|&row| table.columns[node][row] as usize).collect();
            let own_columns = inputs.columns(node).fold(0, |set, column| set | 1 << column);
            Some(Node { response, own_columns, observed, inputs: inputs_of })
        };
        let nodes = (0..table.columns.len()).map(node).collect();
        Self { nodes, sem, weight_scale, fits: Fits::default() }
    }

    fn node(&self, node: usize) -> Option<&Node> {
        self.nodes.get(node)?.as_ref()
    }

    /// Whether a node is one of categories.
    pub(super) fn has(&self, node: usize) -> bool {
        self.node(node).is_some()
    }

    /// Whether any is.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.iter().all(Option::is_none)
    }

    /// What its parameters are called that it has without parents, too, where they live, and how far they reach.
    pub(super) fn reference(&self, node: usize) -> Vec<(Constraint, (f64, f64))> {
        let Some(Node { response, .. }) = self.node(node) else { return Vec::new() };
        let of = |place| match response.is_gap(place) {
            true => (Constraint::Positive, REFERENCE_OF_GAP),
            false => (Constraint::Real, REFERENCE),
        };
        (0..response.own()).map(of).collect()
    }

    fn equations(&self, node: &Node) -> Equations {
        Equations::new(self.sem, node.response.own(), node.response.predictors())
    }

    /// `log p(x_j | x_pa, θ_j)`; its gradient overwrites `gradient`. Not a number where a parameter is not finite.
    pub(super) fn log_likelihood(&self, node: usize, parents: u64, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let Some(node) = self.node(node) else { return f64::NAN };
        if !theta.iter().all(|x| x.is_finite()) {
            gradient.fill(f64::NAN);
            return f64::NAN;
        }
        gradient.fill(0.0);
        let (equations, response) = (self.equations(node), node.response);
        let (own, outputs) = (response.own(), response.predictors());
        let (mut units, mut predictors, mut by) = (Vec::new(), Vec::new(), Vec::new());
        let (mut here, mut by_here) = (vec![0.0; outputs], vec![0.0; outputs]);
        let mut sum = 0.0;
        for start in (0..node.observed.len()).step_by(BLOCK) {
            let observed = &node.observed[start..node.observed.len().min(start + BLOCK)];
            let rows = observed.len();
            let inputs: Vec<&[f64]> = nodes_of(parents).map(|column| &node.inputs[column][start..][..rows]).collect();
            predictors.clear();
            predictors.resize(outputs * rows, 0.0);
            by.resize(outputs * rows, 0.0);
            equations.predictors(theta, &inputs, &mut units, &mut predictors);
            for (row, &category) in observed.iter().enumerate() {
                here.iter_mut().enumerate().for_each(|(output, to)| *to = predictors[output * rows + row]);
                sum += response.log_density(category, &theta[..own], &here, &mut by_here, &mut gradient[..own]);
                by_here.iter().enumerate().for_each(|(output, x)| by[output * rows + row] = *x);
            }
            equations.pull_back(theta, &inputs, &units, &by, gradient);
        }
        sum
    }

    /// `log p` of the parameters that a node has without parents, too, the first of `theta`; its gradient is added. None where its
    /// numbers are no categories.
    pub(super) fn add_own_prior(&self, node: usize, theta: &[f64], gradient: &mut [f64]) -> Option<f64> {
        let response = self.node(node)?.response;
        let own = response.own();
        Some(response.add_prior(&theta[..own], &mut gradient[..own]))
    }

    /// `log p(x_j, θ_j | x_pa)` in free coordinates: in place of gaps between cut points stand their logarithms.
    fn log_joint(&self, node: usize, parents: u64, free: &[f64], gradient: &mut [f64]) -> f64 {
        let Some(Node { response, .. }) = self.node(node) else { return f64::NAN };
        let gaps = || (0..response.own()).filter(|&place| response.is_gap(place));
        let mut theta = free.to_vec();
        gaps().for_each(|place| theta[place] = theta[place].exp());
        let mut value = self.log_likelihood(node, parents, &theta, gradient);
        let own = self.add_own_prior(node, &theta, gradient).unwrap_or(f64::NAN);
        let (weights, by_weights) = (&theta[response.own()..], &mut gradient[response.own()..]);
        value += add_weight_prior(own, self.weight_scale, weights, by_weights);
        for place in gaps() {
            value += free[place];
            gradient[place] = gradient[place] * theta[place] + 1.0;
        }
        value
    }

    /// ℓ(z) of [`Blocks::log_likelihood_batch`](crate::problem::Blocks::log_likelihood_batch), and its gradient: with free coordinates
    /// `u = m + s z`, `∫ η = E[η(u(z)) Π s / N(z)]`. Weights are s z, so that their prior and N(z) are the same and cancel.
    pub(super) fn log_likelihood_of_normal(&self, node: usize, parents: u64, z: &[f64], gradient: &mut [f64]) -> f64 {
        let own = self.reference(node).into_iter().map(|(_, reference)| reference);
        let reference: Vec<(f64, f64)> = own.chain(std::iter::repeat((0.0, self.weight_scale))).take(z.len()).collect();
        let free: Vec<f64> = z.iter().zip(&reference).map(|(z, (mean, sd))| mean + sd * z).collect();
        let mut value = self.log_joint(node, parents, &free, gradient);
        for ((by, z), (_, sd)) in gradient.iter_mut().zip(z).zip(&reference) {
            value += sd.ln() + 0.5 * (z * z + std::f64::consts::TAU.ln());
            *by = *by * sd + z;
        }
        value
    }

    /// Where the density is highest in free coordinates, its logarithm there, and the Cholesky factor of the precision.
    fn mode(&self, node: usize, parents: u64) -> Option<(Vec<f64>, f64, Vec<f64>)> {
        let own = self.node(node)?;
        let mut start = own.response.start(&own.counts());
        let dim = self.equations(own).dim(parents.count_ones() as usize);
        start.resize(dim, 0.0);
        let joint = |free: &[f64], gradient: &mut [f64]| self.log_joint(node, parents, free, gradient);
        let mode = maximise(&start, STEPS, joint)?;
        let mut factor = lower_half(&curvature(&mode.point, joint), dim);
        cholesky(&mut factor, dim).ok()?;
        Some((mode.point, mode.value, factor))
    }

    /// Whether parameters have about one mode: without hidden units.
    fn has_mode(&self, parents: u64) -> bool {
        self.sem == Sem::Linear {} || parents == 0
    }

    /// Around the mode or, of hidden units, where the best independent normal parameters are.
    pub(super) fn preconditioner(&self, node: usize, parents: u64) -> Option<Preconditioner> {
        if self.has_mode(parents) {
            let (mode, _, factor) = self.mode(node, parents)?;
            return Preconditioner::from_factor(mode, factor);
        }
        let fit = self.fit(node, parents, &|| false)?;
        Preconditioner::diagonal(fit.location.clone(), &fit.precision)
    }

    /// Exact without parents; otherwise Laplace's, or about a lower bound for one arrangement of hidden units.
    pub(super) fn log_evidence_estimate(&self, node: usize, parents: u64) -> f64 {
        let Some(own) = self.node(node) else { return f64::NAN };
        if parents == 0 {
            return own.response.log_evidence_alone(&own.counts());
        }
        if self.has_mode(parents) {
            let laplace = |(mode, value, factor): (Vec<f64>, f64, Vec<f64>)| {
                value + 0.5 * mode.len() as f64 * std::f64::consts::TAU.ln() - log_diagonal(&factor, mode.len())
            };
            return self.mode(node, parents).map_or(f64::NEG_INFINITY, laplace);
        }
        let is_stopped = || self.fits.is_stopped();
        let Some(fit) = self.fit(node, parents, &is_stopped) else { return f64::NEG_INFINITY };
        let Equations::Mlp(layout) = self.equations(own) else { return f64::NAN };
        let chosen = is_arranged(layout).then(|| expected_log_weight(layout, parents.count_ones() as usize, &fit));
        fit.lower_bound + chosen.unwrap_or(0.0)
    }

    /// The weight of an arrangement of the hidden units, its gradient added to `gradient`; 0 where they are not told apart.
    pub(super) fn log_arrangement(&self, node: usize, parents: u64, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let (Some(own), false) = (self.node(node), self.has_mode(parents)) else { return 0.0 };
        let Equations::Mlp(layout) = self.equations(own) else { return 0.0 };
        let fit = is_arranged(layout).then(|| self.fit(node, parents, &|| false)).flatten();
        fit.map_or(0.0, |fit| log_weight(layout, parents.count_ones() as usize, &fit, theta, gradient))
    }

    /// The best independent normal parameters, in free coordinates.
    fn fit(&self, node: usize, parents: u64, is_stopped: &dyn Fn() -> bool) -> Option<Arc<MeanFieldFit>> {
        let find = |node: usize, parents: u64, starts: &[Start<'_>], is_stopped: &dyn Fn() -> bool| {
            let own = self.node(node)?;
            let Equations::Mlp(layout) = self.equations(own) else { return None };
            let climb = Climb {
                layout,
                weight_scale: self.weight_scale,
                rows: own.observed.len(),
                own: own.response.start(&own.counts()),
                node,
                parents,
            };
            climb.best(starts, is_stopped, |q, gradient| self.lower_bound(own, layout, parents, q, gradient))
        };
        self.fits.of(node, parents, &find as &Find<'_>, is_stopped)
    }

    /// About as many multiplications as a likelihood takes: exponentials count as several.
    pub(super) fn work(&self, node: usize, parents: u64) -> f64 {
        let Some(own) = self.node(node) else { return 1.0 };
        let units = match self.sem {
            Sem::Linear {} => own.response.predictors(),
            Sem::Mlp { hidden, .. } => hidden * own.response.predictors(),
        };
        let of_row = units as f64 * f64::from(parents.count_ones() + 1) + 20.0 * own.response.categories as f64;
        // Without the machine's vectors.
        4.0 * own.observed.len() as f64 * of_row
    }

    pub(super) fn heed(&self, stop: Arc<AtomicBool>) {
        self.fits.heed(stop);
    }

    pub(super) fn findings(&self) -> State {
        self.fits.findings()
    }

    pub(super) fn restore_findings(&self, findings: &mut State, columns: usize) -> Result<(), StateError> {
        let dim = |node: usize, parents: u64| {
            let own = self.node(node)?;
            let is_there = parents & own.own_columns == 0 && parents.checked_shr(columns as u32).unwrap_or(0) == 0;
            is_there.then(|| self.equations(own).dim(parents.count_ones() as usize))
        };
        self.fits.restore(findings, &dim)
    }
}

/// Adds `log p` of weights to that of what comes before them, and its gradient to `gradient`.
pub(super) fn add_weight_prior(mut log_prior: f64, scale: f64, weights: &[f64], gradient: &mut [f64]) -> f64 {
    for (w, gradient) in weights.iter().zip(gradient) {
        log_prior -= 0.5 * (w / scale).powi(2) + scale.ln() + 0.5 * std::f64::consts::TAU.ln();
        *gradient -= w / (scale * scale);
    }
    log_prior
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

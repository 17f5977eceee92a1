//! Non-linear structural equations: the kernel, with memory for as many threads as there are, and the mean-field fits met so far.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::arrangement::{expected_log_weight, is_arranged, log_weight};
use super::fits::{Fits, are_parents};
use super::{MeanField, MeanFieldFit, MlpLikelihood, Moments, Scratch, Start};
use crate::problem::Preconditioner;
use crate::simd::Real;
use crate::state::{State, StateError};
use crate::workers::Spare;

/// Likelihoods and mean-field fits of nodes given their parents.
#[derive(Debug)]
pub(super) struct Nonlinear<T> {
    likelihood: MlpLikelihood<T>,
    weight_scale: f64,
    scratch: Spare<Scratch<T>>,
    moments: Spare<Moments<T>>,
    fits: Fits,
}

impl<T: Real> Nonlinear<T> {
    pub(super) fn new(likelihood: MlpLikelihood<T>, weight_scale: f64) -> Self {
        let (scratch, moments, fits) = (Spare::default(), Spare::default(), Fits::default());
        Self { likelihood, weight_scale, scratch, moments, fits }
    }

    pub(super) fn heed(&self, stop: Arc<AtomicBool>) {
        self.fits.heed(stop);
    }

    pub(super) fn findings(&self) -> State {
        self.fits.findings()
    }

    /// Takes fits that were found before.
    pub(super) fn restore_findings(&self, state: &mut State) -> Result<(), StateError> {
        let (nodes, layout) = (self.likelihood.nodes(), self.likelihood.layout);
        let dim =
            |node, parents: u64| are_parents(node, parents, nodes).then(|| layout.dim(parents.count_ones() as usize));
        self.fits.restore(state, &dim)
    }

    /// The weight of an arrangement of the hidden units, its gradient added to `gradient`; 0 where they are not told apart.
    pub(super) fn log_arrangement(&self, node: usize, parents: u64, theta: &[f64], gradient: &mut [f64]) -> f64 {
        self.arranged(node, parents)
            .map_or(0.0, |fit| log_weight(self.likelihood.layout, parents.count_ones() as usize, &fit, theta, gradient))
    }

    /// Multiplications of the likelihood: rows × hidden units × (parents + 1).
    pub(super) fn work(&self, node: usize, parents: u64) -> f64 {
        let hidden = self.likelihood.layout.hidden;
        self.likelihood.rows(node) as f64 * hidden as f64 * f64::from(parents.count_ones() + 1)
    }

    /// `log p(x_j | x_pa, θ_j)` of several θ_j, one after another, and its gradients.
    pub(super) fn log_likelihoods(
        &self,
        node: usize,
        parents: u64,
        theta: &[f64],
        values: &mut [f64],
        gradients: &mut [f64],
    ) {
        let mut scratch = self.scratch.take().unwrap_or_else(|| self.likelihood.scratch());
        let dim = theta.len() / values.len().max(1);
        for (row, value) in values.iter_mut().enumerate() {
            let place = row * dim..(row + 1) * dim;
            *value = self.likelihood.node(&mut scratch, node, parents, &theta[place.clone()], &mut gradients[place]);
        }
        self.scratch.put(scratch);
    }

    /// What tells hidden units apart, where there are any and they are few enough.
    fn arranged(&self, node: usize, parents: u64) -> Option<Arc<MeanFieldFit>> {
        (parents != 0 && is_arranged(self.likelihood.layout)).then(|| self.fit(node, parents)).flatten()
    }

    /// Where the best independent normal parameters are.
    pub(super) fn preconditioner(&self, node: usize, parents: u64) -> Option<Preconditioner> {
        let fit = self.fit(node, parents)?;
        Preconditioner::diagonal(fit.location.clone(), &fit.precision)
    }

    /// Their evidence lower bound, for one arrangement.
    pub(super) fn log_evidence_estimate(&self, node: usize, parents: u64) -> f64 {
        let Some(fit) = self.fit_unless(node, parents, &|| self.fits.is_stopped()) else { return f64::NEG_INFINITY };
        let chosen = self
            .arranged(node, parents)
            .map_or(0.0, |fit| expected_log_weight(self.likelihood.layout, parents.count_ones() as usize, &fit));
        fit.lower_bound + chosen
    }

    fn fit(&self, node: usize, parents: u64) -> Option<Arc<MeanFieldFit>> {
        self.fit_unless(node, parents, &|| false)
    }

    fn fit_unless(&self, node: usize, parents: u64, is_stopped: &dyn Fn() -> bool) -> Option<Arc<MeanFieldFit>> {
        let field = MeanField::new(&self.likelihood, self.weight_scale);
        let find = |node, parents, starts: &[Start<'_>], is_stopped: &dyn Fn() -> bool| {
            let mut moments = self.moments.take().unwrap_or_else(|| field.scratch());
            let found = field.fit_unless(&mut moments, node, parents, starts, is_stopped);
            self.moments.put(moments);
            found
        };
        self.fits.of(node, parents, &find, is_stopped)
    }
}

//! Non-linear structural equations: the kernel, with memory for as many threads as there are, and the mean-field fits met so far.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::arrangement::{expected_log_weight, is_arranged, log_weight};
use super::{MeanField, MeanFieldFit, MlpLikelihood, Moments, Scratch, Start};
use crate::problem::Preconditioner;
use crate::simd::Real;
use crate::workers::Spare;

/// Fits by node and parents; none where there is none to be found.
type Fits = HashMap<(usize, u64), Option<Arc<MeanFieldFit>>>;

/// Likelihoods and mean-field fits of nodes given their parents.
#[derive(Debug)]
pub(super) struct Nonlinear<T> {
    likelihood: MlpLikelihood<T>,
    weight_scale: f64,
    scratch: Spare<Scratch<T>>,
    moments: Spare<Moments<T>>,
    fits: Mutex<Fits>,
}

impl<T: Real> Nonlinear<T> {
    pub(super) fn new(likelihood: MlpLikelihood<T>, weight_scale: f64) -> Self {
        let (scratch, moments, fits) = (Spare::default(), Spare::default(), Mutex::default());
        Self { likelihood, weight_scale, scratch, moments, fits }
    }

    fn fits(&self) -> MutexGuard<'_, Fits> {
        // Nothing is left half done where a thread panics.
        self.fits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The weight of an arrangement of the hidden units, its gradient added to `gradient`; 0 where they are not told apart.
    pub(super) fn log_arrangement(&self, node: usize, parents: u64, theta: &[f64], gradient: &mut [f64]) -> f64 {
        self.arranged(node, parents)
            .map_or(0.0, |fit| log_weight(self.likelihood.layout, parents.count_ones() as usize, &fit, theta, gradient))
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
        let Some(fit) = self.fit(node, parents) else { return f64::NEG_INFINITY };
        let chosen = self
            .arranged(node, parents)
            .map_or(0.0, |fit| expected_log_weight(self.likelihood.layout, parents.count_ones() as usize, &fit));
        fit.lower_bound + chosen
    }

    /// The better of two fits: reached from random weights, and from what was found without the last parent. A pure function,
    /// however often and in whatever order it is asked.
    fn fit(&self, node: usize, parents: u64) -> Option<Arc<MeanFieldFit>> {
        if let Some(known) = self.fits().get(&(node, parents)) {
            return known.clone();
        }
        let fewer = parents & !(1u64.checked_shl(63 - parents.leading_zeros().min(63)).unwrap_or(0));
        let nearby = if fewer == 0 { None } else { self.fit(node, fewer) };
        let mut starts = vec![Start::Random(0)];
        starts.extend(nearby.as_deref().map(|fit| Start::Near { parents: fewer, fit }));
        let field = MeanField::new(&self.likelihood, self.weight_scale);
        let mut moments = self.moments.take().unwrap_or_else(|| field.scratch());
        let found = field.fit(&mut moments, node, parents, &starts).map(Arc::new);
        self.moments.put(moments);
        self.fits().insert((node, parents), found.clone());
        found
    }
}

//! Non-linear structural equations: the kernel, with memory for as many threads as there are, and the mean-field fits met so far.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::arrangement::{expected_log_weight, is_arranged, log_weight};
use super::{MeanField, MeanFieldFit, MlpLikelihood, Moments, Scratch, Start};
use crate::problem::Preconditioner;
use crate::simd::Real;
use crate::state::{State, StateError};
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
    /// Whether estimates are of no use any more.
    stop: OnceLock<Arc<AtomicBool>>,
}

impl<T: Real> Nonlinear<T> {
    pub(super) fn new(likelihood: MlpLikelihood<T>, weight_scale: f64) -> Self {
        let (scratch, moments, fits) = (Spare::default(), Spare::default(), Mutex::default());
        Self { likelihood, weight_scale, scratch, moments, fits, stop: OnceLock::new() }
    }

    /// The first flag that is given counts.
    pub(super) fn heed(&self, stop: Arc<AtomicBool>) {
        let _ = self.stop.set(stop);
    }

    fn is_stopped(&self) -> bool {
        self.stop.get().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// All fits, those of a node after those of another: node and parents, the latter in two halves, how many parameters, and these.
    pub(super) fn findings(&self) -> State {
        let fits = self.fits();
        let mut known: Vec<(&(usize, u64), &Arc<MeanFieldFit>)> =
            fits.iter().filter_map(|(key, fit)| Some((key, fit.as_ref()?))).collect();
        known.sort_unstable_by_key(|(key, _)| **key);
        let mut state = State::default();
        if known.is_empty() {
            return state;
        }
        let keys = known.iter().flat_map(|((node, parents), fit)| {
            [*node as f64, (parents >> 32) as f64, (parents & 0xffff_ffff) as f64, fit.location.len() as f64]
        });
        state.put("fits", &keys.collect::<Vec<f64>>());
        state.put("lower_bounds", &known.iter().map(|(_, fit)| fit.lower_bound).collect::<Vec<f64>>());
        state.put("locations", &known.iter().flat_map(|(_, fit)| fit.location.iter().copied()).collect::<Vec<f64>>());
        state.put("precisions", &known.iter().flat_map(|(_, fit)| fit.precision.iter().copied()).collect::<Vec<f64>>());
        state
    }

    /// Takes fits that were found before.
    pub(super) fn restore_findings(&self, state: &mut State) -> Result<(), StateError> {
        let keys = state.take_counts("fits", None, (1u64 << 32) as f64)?;
        let bounds = state.take::<f64>("lower_bounds", keys.len() / 4)?;
        let (nodes, layout) = (self.likelihood.nodes(), self.likelihood.layout);
        let fits_node = |key: &[usize]| {
            let parents = (key[1] as u64) << 32 | key[2] as u64;
            let others = parents & (1u64 << key[0].min(63)) == 0 && parents.checked_shr(nodes as u32).unwrap_or(0) == 0;
            key[0] < nodes && others && key[3] == layout.dim(parents.count_ones() as usize)
        };
        if !keys.chunks_exact(4).all(fits_node) {
            return Err(StateError::Values { name: "fits".into(), expected: "nodes with their parents" });
        }
        let count = keys.chunks_exact(4).map(|key| key[3]).sum();
        let (locations, precisions) = (state.take::<f64>("locations", count)?, state.take::<f64>("precisions", count)?);
        let (mut fits, mut start) = (self.fits(), 0);
        for (key, lower_bound) in keys.chunks_exact(4).zip(bounds) {
            let place = start..start + key[3];
            start = place.end;
            let (node, parents) = (key[0], (key[1] as u64) << 32 | key[2] as u64);
            let (location, precision) = (locations[place.clone()].to_vec(), precisions[place].to_vec());
            fits.insert((node, parents), Some(Arc::new(MeanFieldFit { location, precision, lower_bound })));
        }
        Ok(())
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
        let Some(fit) = self.fit_unless(node, parents, &|| self.is_stopped()) else { return f64::NEG_INFINITY };
        let chosen = self
            .arranged(node, parents)
            .map_or(0.0, |fit| expected_log_weight(self.likelihood.layout, parents.count_ones() as usize, &fit));
        fit.lower_bound + chosen
    }

    /// The better of two fits: reached from random weights, and from what was found without the last parent. A pure function,
    /// however often and in whatever order it is asked.
    fn fit(&self, node: usize, parents: u64) -> Option<Arc<MeanFieldFit>> {
        self.fit_unless(node, parents, &|| false)
    }

    /// The same, or none where nobody wants it any more by the time it is found.
    fn fit_unless(&self, node: usize, parents: u64, is_stopped: &dyn Fn() -> bool) -> Option<Arc<MeanFieldFit>> {
        if let Some(known) = self.fits().get(&(node, parents)) {
            return known.clone();
        }
        let fewer = parents & !(1u64.checked_shl(63 - parents.leading_zeros().min(63)).unwrap_or(0));
        let nearby = if fewer == 0 { None } else { self.fit_unless(node, fewer, is_stopped) };
        let mut starts = vec![Start::Random(0)];
        starts.extend(nearby.as_deref().map(|fit| Start::Near { parents: fewer, fit }));
        let field = MeanField::new(&self.likelihood, self.weight_scale);
        let mut moments = self.moments.take().unwrap_or_else(|| field.scratch());
        let found = field.fit_unless(&mut moments, node, parents, &starts, is_stopped).map(Arc::new);
        self.moments.put(moments);
        // What was ended is no fit.
        if is_stopped() {
            return None;
        }
        self.fits().insert((node, parents), found.clone());
        found
    }
}

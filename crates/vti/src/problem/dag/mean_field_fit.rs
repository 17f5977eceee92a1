//! The best independent normal parameters of a node given its parents.
//!
//! The posterior of a hidden layer has many modes, and its highest one says little: the sharp ones hold little mass. So what
//! is climbed is not the density but the evidence lower bound of [`MeanField`]. It is smooth, free of noise, prefers broad
//! modes, and lets units that are not needed fall back to their prior. Where it was reached from hardly matters then.

use super::layout::Layout;
use super::mean_field::{MeanField, Moments};
use crate::optimise::{Limits, maximise_with_metric};
use crate::random::{Purpose, Stream};
use crate::simd::Real;

/// Independent normal parameters of a node, in free coordinates: in place of an unknown σ stands log σ.
#[derive(Clone, Debug, PartialEq)]
pub struct MeanFieldFit {
    /// Means.
    pub location: Vec<f64>,
    /// One over the variances.
    pub precision: Vec<f64>,
    /// The evidence lower bound: at most `log p(x_j | x_pa)`, in nats.
    pub lower_bound: f64,
}

/// Where to begin.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// From random weights: another number, other weights.
    Random(u64),
    /// From what was found for other parents. Parents that are new there begin without effect.
    Near {
        /// Those parents.
        parents: u64,
        /// What was found.
        fit: &'a MeanFieldFit,
    },
}

/// Standard deviation of random weights, in units of their prior's.
const RANDOM_SPREAD: f64 = 0.7;
/// What is left to a new parent's weights, in units of their uncertainty.
const NEW_SPREAD: f64 = 0.1;
/// Logarithm of the standard deviations that random starts have.
const RANDOM_LOG_SCALE: f64 = -2.0;
/// The most steps of a climb.
const STEPS: usize = 400;
/// When the best climb ends: 0.05 nats in ten steps are noise beside what separates fits. So is more where there are many rows,
/// because the fits that two starts reach lie apart by about a nat for every thousand rows.
const FLAT: f64 = 0.05;
const FLAT_PER_ROW: f64 = 1e-4;
/// When climbs are compared: what is left to gain lies below what separates them.
const COMPARED_PER_ROW: f64 = 2e-3;
/// Logarithms of standard deviations stay within this: single precision holds their squares.
const LOG_SCALES: (f64, f64) = (-15.0, 10.0);

impl<T: Real> MeanField<'_, T> {
    /// The best of the fits reached from `starts`: all climb until they hardly rise, the highest goes on to the top. None where there
    /// are no starts or none of them has a finite lower bound. Depends on nothing but its arguments.
    pub fn fit(
        &self,
        scratch: &mut Moments<T>,
        node: usize,
        parents: u64,
        starts: &[Start<'_>],
    ) -> Option<MeanFieldFit> {
        self.fit_unless(scratch, node, parents, starts, &|| false)
    }

    /// [`MeanField::fit`], until somebody does not want it any more: what is found then is of no use.
    pub(super) fn fit_unless(
        &self,
        scratch: &mut Moments<T>,
        node: usize,
        parents: u64,
        starts: &[Start<'_>],
        is_stopped: &dyn Fn() -> bool,
    ) -> Option<MeanFieldFit> {
        let likelihood = self.likelihood;
        let own = likelihood.sigma().is_none().then(|| self.log_spread(node));
        let climb = Climb {
            layout: likelihood.layout,
            weight_scale: self.weight_scale(),
            rows: likelihood.rows(node),
            own: own.into_iter().collect(),
            node,
            parents,
        };
        climb.best(starts, is_stopped, |q, gradient| self.lower_bound(scratch, node, parents, q, gradient))
    }

    /// Logarithm of the standard deviation of a node about 0, or 0 where it has none.
    fn log_spread(&self, node: usize) -> f64 {
        let likelihood = self.likelihood;
        let spread = 0.5 * (likelihood.squares[node] / likelihood.rows(node) as f64).ln();
        if spread.is_finite() { spread } else { 0.0 }
    }
}

/// Climbs of a lower bound of a node given its parents.
pub(super) struct Climb {
    pub(super) layout: Layout,
    /// Standard deviation of weights and biases under the prior.
    pub(super) weight_scale: f64,
    /// Rows that count for the node.
    pub(super) rows: usize,
    /// Where the parameters begin that a node without parents has, too.
    pub(super) own: Vec<f64>,
    pub(super) node: usize,
    pub(super) parents: u64,
}

impl Climb {
    /// The best of the fits reached from `starts`, as [`MeanField::fit`] has it, for a bound and its gradient.
    pub(super) fn best(
        &self,
        starts: &[Start<'_>],
        is_stopped: &dyn Fn() -> bool,
        mut lower_bound: impl FnMut(&[f64], &mut [f64]) -> f64,
    ) -> Option<MeanFieldFit> {
        let rows = self.rows as f64;
        let flat = FLAT.max(FLAT_PER_ROW * rows);
        let compared = Limits { steps: STEPS, patience: 5, flat: flat.max(COMPARED_PER_ROW * rows) };
        let mut climb = |q: &[f64], limits: Limits| {
            let dim = q.len() / 2;
            // The inverse of q's Fisher information.
            let metric = |q: &[f64], to: &mut [f64]| {
                for i in 0..dim {
                    to[i] = (2.0 * q[dim + i]).exp();
                    to[dim + i] = 0.5;
                }
            };
            maximise_with_metric(q, limits, metric, |q, gradient| {
                let (low, high) = LOG_SCALES;
                if is_stopped() || q[dim..].iter().any(|log_scale| !(low..high).contains(log_scale)) {
                    return f64::NEG_INFINITY;
                }
                lower_bound(q, gradient)
            })
        };
        // Without parents there is one fit, if any.
        let starts = if self.parents == 0 { &starts[..starts.len().min(1)] } else { starts };
        let reached = starts.iter().filter_map(|start| {
            let q = match *start {
                Start::Random(number) => self.random(number),
                Start::Near { parents: others, fit } => self.near(others, fit),
            };
            climb(&q, compared)
        });
        let highest = reached.reduce(|best, found| if best.value >= found.value { best } else { found })?;
        let best = climb(&highest.point, Limits { steps: STEPS, patience: 10, flat });
        best.map(|best| {
            let (location, log_scale) = best.point.split_at(best.point.len() / 2);
            MeanFieldFit {
                location: location.to_vec(),
                precision: log_scale.iter().map(|l| (-2.0 * l).exp()).collect(),
                lower_bound: best.value,
            }
        })
    }

    /// Means and logarithms of standard deviations with random weights.
    fn random(&self, number: u64) -> Vec<f64> {
        let mut stream = Stream::new(number, Purpose::Initialise, self.node as u64, self.parents);
        let dim = self.layout.dim(self.parents.count_ones() as usize);
        let mut q: Vec<f64> = (0..dim).map(|_| RANDOM_SPREAD * self.weight_scale * stream.normal()).collect();
        q.resize(2 * dim, RANDOM_LOG_SCALE);
        q[..self.own.len()].copy_from_slice(&self.own);
        q
    }

    /// What was found for other parents, as far as it goes.
    fn near(&self, others: u64, fit: &MeanFieldFit) -> Vec<f64> {
        let (layout, parents) = (self.layout, self.parents);
        let (count, other_count) = (parents.count_ones() as usize, others.count_ones() as usize);
        let mut q = self.random(others);
        let dim = q.len() / 2;
        let place = |of: u64, parent: usize| layout.column((of & ((1 << parent) - 1)).count_ones() as usize);
        let mut copy = |to: std::ops::Range<usize>, from: std::ops::Range<usize>| {
            for (to, from) in to.zip(from) {
                q[to] = fit.location[from];
                q[dim + to] = -0.5 * fit.precision[from].ln();
            }
        };
        if other_count == 0 || count == 0 || fit.location.len() != layout.dim(other_count) {
            return q;
        }
        let before = 0..layout.column(0).start;
        copy(before.clone(), before);
        for parent in (0..64).filter(|parent| (parents & others) >> parent & 1 == 1) {
            copy(place(parents, parent), place(others, parent));
        }
        for parent in (0..64).filter(|parent| (parents & !others) >> parent & 1 == 1) {
            for (unit, to) in place(parents, parent).enumerate() {
                // As uncertain as the unit's other weights: what fell back to its prior stays there.
                let log_scale =
                    (0..other_count).map(|rank| -0.5 * fit.precision[layout.column(rank).start + unit].ln());
                q[dim + to] = log_scale.sum::<f64>() / other_count as f64;
                q[to] *= NEW_SPREAD * q[dim + to].exp();
            }
        }
        q
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

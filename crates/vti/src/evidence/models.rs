//! Models, seen from a normal reference in free coordinates.

use super::particles::{Asked, Targets};
use crate::problem::{BatchError, FreeRows, Preconditioner, Problem};
use crate::space::Model;
use crate::workers::Workers;

/// A model and where its particles start from.
#[derive(Clone, Debug)]
pub(crate) struct ModelTarget {
    pub(crate) model: Model,
    /// `u = a + C⁻ᵀ z` of standard normal z is a draw from the reference.
    pub(crate) reference: Preconditioner,
}

/// Models as targets of annealing:
///
/// ```text
/// ℓ(z) = log η(θ(u(z)) | m) + log |det ∂θ/∂u| + log |det ∂u/∂z| − log N(z; 0, I),
/// ```
///
/// so that `E[exp ℓ(z)]` is the evidence whatever the reference is. Where that is the prior, ℓ is the log likelihood.
pub(crate) struct ModelTargets<'a> {
    problem: &'a dyn Problem,
    targets: &'a [ModelTarget],
    /// Rows whose models are set, and the targets and numbers of particles that they are set for.
    rows: FreeRows<'a>,
    set_for: Vec<(usize, usize)>,
}

impl<'a> ModelTargets<'a> {
    pub(crate) fn new(problem: &'a dyn Problem, targets: &'a [ModelTarget]) -> Self {
        Self { problem, targets, rows: FreeRows::new(problem, 0), set_for: Vec::new() }
    }

    /// Makes room for particles and sets the models of their rows, unless that is so already.
    fn set(&mut self, asked: &[Asked<'_>]) {
        let is_set = self.set_for.iter().copied().eq(asked.iter().map(|asked| (asked.target, asked.values.len())));
        if is_set {
            return;
        }
        self.set_for = asked.iter().map(|asked| (asked.target, asked.values.len())).collect();
        self.rows = FreeRows::new(self.problem, self.set_for.iter().map(|(_, count)| count).sum());
        let mut row = 0;
        for &(target, count) in &self.set_for {
            for _ in 0..count {
                self.rows.row(row).word.copy_from_slice(&self.targets[target].model);
                self.rows.mark_active(row);
                row += 1;
            }
        }
    }
}

impl Targets for ModelTargets<'_> {
    fn log_likelihoods(&mut self, asked: &mut [Asked<'_>], workers: &Workers) -> Result<(), BatchError> {
        self.set(asked);
        let (targets, mut parts) = (self.targets, Vec::with_capacity(asked.len()));
        let mut first = 0;
        for asked in asked.iter_mut() {
            let (start, count) = (first, asked.values.len());
            first += count;
            parts.push((start, asked));
        }
        let mut places = self.rows.parts_mut(parts.iter().map(|(_, asked)| asked.values.len()));
        let mut fill: Vec<_> = places.iter_mut().zip(&parts).collect();
        workers.for_each(&mut fill, |_, (places, (_, asked))| {
            let (dim, reference) = (asked.z.len() / asked.values.len(), &targets[asked.target].reference);
            for particle in 0..asked.values.len() {
                let free = &mut places.row(particle).free[..dim];
                free.copy_from_slice(&asked.z[particle * dim..][..dim]);
                reference.to_free(free);
            }
        });
        self.rows.evaluate(workers)?;
        let rows = &self.rows;
        workers.for_each(&mut parts, |_, (start, asked)| {
            let (dim, reference) = (asked.z.len() / asked.values.len(), &targets[asked.target].reference);
            let normal = 0.5 * dim as f64 * std::f64::consts::TAU.ln();
            for particle in 0..asked.values.len() {
                let (z, gradient) = (&asked.z[particle * dim..][..dim], &mut asked.gradients[particle * dim..][..dim]);
                rows.gradient(*start + particle, gradient);
                reference.pull_back(gradient);
                gradient.iter_mut().zip(z).for_each(|(gradient, z)| *gradient += z);
                let squares: f64 = z.iter().map(|z| z * z).sum();
                asked.values[particle] =
                    rows.log_density(*start + particle) + reference.log_jacobian() + 0.5 * squares + normal;
            }
        });
        Ok(())
    }
}

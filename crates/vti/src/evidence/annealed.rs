//! Evidences of many models by annealed particles, run by run.

use std::collections::{BTreeSet, HashMap};

use super::join;
use super::models::{ModelTarget, ModelTargets};
use super::particles::{Population, anneal};
use super::settings::{AnnealSettings, MIN_RUNS};
use crate::problem::{BatchError, Preconditioner, Problem};
use crate::random::{Purpose, Stream};
use crate::space::Model;
use crate::stats::Estimate;
use crate::workers::Workers;

/// Numbers that the particles of runs that go side by side take up at most.
const MAX_NUMBERS: usize = 1 << 20;

/// Where the particles of a model start from: a normal density in free coordinates.
pub type Reference<'a> = dyn Fn(&[u16]) -> Preconditioner + Sync + 'a;

/// The log evidences that independent runs found, of all models that were asked for.
///
/// ```
/// use vti::evidence::{AnnealSettings, AnnealedEvidences};
/// use vti::problem::{self, Preconditioner};
/// use vti::space::{Model, Subsets};
/// use vti::workers::Workers;
///
/// // Each parameter multiplies the evidence by e.
/// let problem = problem::from_fn(Subsets::new(2)?, |_, theta, gradient| {
///     gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = -t);
///     theta.iter().map(|t| 1.0 - 0.5 * t * t - 0.5 * std::f64::consts::TAU.ln()).sum()
/// });
/// let wide = |model: &[u16]| {
///     let dim = model.iter().filter(|&&bit| bit == 1).count();
///     Preconditioner::diagonal(vec![0.0; dim], &vec![0.1; dim]).expect("positive precisions")
/// };
/// let settings = AnnealSettings::default();
/// let mut evidences = AnnealedEvidences::new(&problem, &wide, &settings, 1);
/// let both = Model::from(vec![1, 1]);
/// evidences.find(&[both.clone()], &Workers::new(2)?)?;
/// let found = evidences.estimate(&both).expect("not all particles are lost");
/// assert!((found.value - 2.0).abs() < 4.0 * found.se + 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AnnealedEvidences<'a> {
    problem: &'a dyn Problem,
    reference: &'a Reference<'a>,
    settings: &'a AnnealSettings,
    seed: u64,
    runs: HashMap<Model, Vec<f64>>,
}

impl<'a> AnnealedEvidences<'a> {
    /// Nothing is known yet.
    pub fn new(
        problem: &'a dyn Problem,
        reference: &'a Reference<'a>,
        settings: &'a AnnealSettings,
        seed: u64,
    ) -> Self {
        Self { problem, reference, settings, seed, runs: HashMap::new() }
    }

    /// What each run found for a model; none where it was not asked for.
    pub fn runs(&self, model: &[u16]) -> &[f64] {
        self.runs.get(model).map_or(&[], Vec::as_slice)
    }

    /// The estimate that the runs of a model make together; none where it was not asked for, where it has fewer than four, or where
    /// all particles were lost.
    pub fn estimate(&self, model: &[u16]) -> Option<Estimate> {
        let runs = self.runs(model);
        if runs.len() < MIN_RUNS { None } else { join(runs) }
    }

    /// As many runs as the settings say for each of these models that has none yet.
    pub fn find(&mut self, models: &[Model], workers: &Workers) -> Result<(), BatchError> {
        let unknown: BTreeSet<&Model> = models.iter().filter(|model| self.runs(model).is_empty()).collect();
        let wanted: Vec<(Model, usize)> =
            unknown.into_iter().map(|model| (model.clone(), self.settings.runs)).collect();
        self.run(&wanted, workers, &mut |_| true)
    }

    /// Symbols of a word.
    pub(crate) fn width(&self) -> usize {
        self.problem.space().arities().len()
    }

    /// So many more runs for each of these models, as long as `go_on` says so: it is asked every now and then, and told how many
    /// runs are done.
    pub fn run(
        &mut self,
        models: &[(Model, usize)],
        workers: &Workers,
        go_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(), BatchError> {
        let mut mask = vec![false; self.problem.space().max_dim()];
        let together = (MAX_NUMBERS / (self.settings.particles * mask.len()).max(1)).max(1);
        let mut wanted = models.iter().flat_map(|(model, more)| {
            let before = self.runs.get(model).map_or(0, Vec::len);
            (before..before + more).map(move |run| (model, run))
        });
        let mut found: Vec<(Model, f64)> = Vec::new();
        loop {
            let part: Vec<(&Model, usize)> = wanted.by_ref().take(together).collect();
            if part.is_empty() || !go_on(found.len()) {
                break;
            }
            let mut targets: Vec<ModelTarget> = Vec::new();
            let mut populations = Vec::with_capacity(part.len());
            for (model, run) in part {
                if targets.last().is_none_or(|last| last.model != *model) {
                    targets.push(ModelTarget { model: model.clone(), reference: (self.reference)(model) });
                }
                self.problem.space().mark_active(model, &mut mask);
                let dim = mask.iter().filter(|&&active| active).count();
                let stream = Stream::new(self.seed, Purpose::Anneal, run as u64, key(model));
                populations.push(Population::new(targets.len() - 1, dim, self.settings, stream));
            }
            anneal(&mut populations, &mut ModelTargets::new(self.problem, &targets), self.settings, workers)?;
            found.extend(
                populations
                    .iter()
                    .map(|population| (targets[population.target()].model.clone(), population.log_evidence())),
            );
        }
        for (model, log_evidence) in found {
            self.runs.entry(model).or_default().push(log_evidence);
        }
        Ok(())
    }
}

/// A number for the random stream of a model.
fn key(model: &[u16]) -> u64 {
    model.iter().fold(0xcbf2_9ce4_8422_2325, |key, &symbol| (key ^ u64::from(symbol)).wrapping_mul(0x0100_0000_01b3))
}

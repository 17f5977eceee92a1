//! The evidences of the models of one problem.

use std::collections::{BTreeMap, BTreeSet};

use super::{AnnealSettings, Evidence};
use crate::optimise::SettingError;
use crate::problem::{BatchError, Blocks, Problem};
use crate::smc::{Annealed, anneal_blocks, anneal_models, check_reference};
use crate::space::Model;
use crate::workers::Workers;

/// Runs of blocks that go side by side.
const RUNS_TOGETHER: usize = 128;

/// Finds the evidences of models, and of blocks, of a problem.
///
/// ```
/// use vti::evidence::{AnnealSettings, EvidenceMethod, Evidences};
/// use vti::problem;
/// use vti::space::{Model, Subsets};
/// use vti::workers::Workers;
///
/// // Each parameter multiplies the evidence by e.
/// let problem = problem::from_fn(Subsets::new(2)?, |_, theta, gradient| {
///     gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = -t);
///     theta.iter().map(|t| 1.0 - 0.5 * t * t - 0.5 * std::f64::consts::TAU.ln()).sum()
/// })
/// .with_reference(vec![(0.0, 3.0); 2]);
/// let settings = AnnealSettings::default();
/// let evidences = Evidences::new(&problem, &settings, 1)?;
/// let found = evidences.of_models(&[Model::from(vec![1, 1])], &Workers::new(2)?)?;
/// let both = found[0].expect("not all particles are lost");
/// assert!((both.log_evidence - 2.0).abs() < 4.0 * both.se + 0.01);
/// assert_eq!(both.method, EvidenceMethod::Annealed);
/// assert!(both.calls >= settings.runs * settings.particles);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Evidences<'a> {
    problem: &'a dyn Problem,
    settings: &'a AnnealSettings,
    seed: u64,
    reference: Option<Vec<(f64, f64)>>,
}

impl<'a> Evidences<'a> {
    /// Particles, where they are needed, start from the problem's own reference.
    pub fn new(problem: &'a dyn Problem, settings: &'a AnnealSettings, seed: u64) -> Result<Self, SettingError> {
        settings.check()?;
        SettingError::check("anneal.runs", settings.runs as f64, settings.runs > 0, "at least 4")?;
        let reference = problem.reference();
        reference.as_deref().map_or(Ok(()), |reference| check_reference(problem, reference))?;
        Ok(Self { problem, settings, seed, reference })
    }

    /// The problem.
    pub fn problem(&self) -> &'a dyn Problem {
        self.problem
    }

    /// Of each of these models, in the cheapest way: by formula or quadrature, where the problem knows one; as the product over its
    /// blocks, where it has any; and otherwise by annealed particles. None where nothing says where parameters may lie, or where all
    /// particles are lost.
    pub fn of_models(&self, models: &[Model], workers: &Workers) -> Result<Vec<Option<Evidence>>, BatchError> {
        let mut found: Vec<Option<Evidence>> = vec![None; models.len()];
        workers.for_each(&mut found, |place, found| *found = self.problem.evidence(&models[place]));
        self.fill(models, &mut found, |models| self.by_blocks(models, workers))?;
        self.fill(models, &mut found, |models| self.annealed(models, workers))?;
        Ok(found)
    }

    /// Fills in what is not known yet.
    fn fill(
        &self,
        models: &[Model],
        found: &mut [Option<Evidence>],
        find: impl FnOnce(&[Model]) -> Result<Vec<Option<Evidence>>, BatchError>,
    ) -> Result<(), BatchError> {
        let unknown: Vec<usize> = (0..models.len()).filter(|&place| found[place].is_none()).collect();
        let wanted: Vec<Model> = unknown.iter().map(|&place| models[place].clone()).collect();
        for (place, evidence) in unknown.into_iter().zip(find(&wanted)?) {
            found[place] = evidence;
        }
        Ok(())
    }

    /// As products over blocks, none of which is looked at twice.
    fn by_blocks(&self, models: &[Model], workers: &Workers) -> Result<Vec<Option<Evidence>>, BatchError> {
        let Some(blocks) = self.problem.blocks() else { return Ok(Vec::new()) };
        let keys = |model: &Model| {
            let mut keys = vec![0; blocks.count()];
            blocks.keys(model, &mut keys);
            keys.into_iter().enumerate().collect::<Vec<(usize, u64)>>()
        };
        let asked: BTreeSet<(usize, u64)> = models.iter().flat_map(keys).collect();
        let asked: Vec<(usize, u64)> = asked.into_iter().collect();
        let known: BTreeMap<(usize, u64), Option<Evidence>> =
            asked.iter().copied().zip(self.of_blocks(blocks, &asked, workers)?).collect();
        let product = |model: &Model| {
            let of_blocks: Option<Vec<Evidence>> = keys(model).iter().map(|key| known[key]).collect();
            of_blocks.map(Evidence::product)
        };
        Ok(models.iter().map(product).collect())
    }

    /// Of each of these blocks under their keys: by formula, where there is one, and otherwise by particles that are annealed from the
    /// prior. None where the problem cannot be seen from there.
    pub fn of_blocks(
        &self,
        blocks: &dyn Blocks,
        keys: &[(usize, u64)],
        workers: &Workers,
    ) -> Result<Vec<Option<Evidence>>, BatchError> {
        if blocks.has_exact_evidences() {
            let exact = |&(block, key): &(usize, u64)| {
                let value = blocks.log_evidence_estimate(block, key);
                value.is_finite().then(|| Evidence::exactly(value))
            };
            return Ok(keys.iter().map(exact).collect());
        }
        let asked: Vec<((usize, u64), usize)> =
            keys.iter().flat_map(|&key| (0..self.settings.runs).map(move |run| (key, run))).collect();
        let mut found = Vec::with_capacity(asked.len());
        for part in asked.chunks(RUNS_TOGETHER) {
            let runs = anneal_blocks(blocks, part, self.settings, self.seed, workers, &mut |_| true)?;
            found.extend(runs.into_iter().flatten());
        }
        Ok(self.join(&found))
    }

    /// Of each of these models by annealed particles, whatever else is known. None without a reference, or where all particles are
    /// lost.
    pub fn annealed(&self, models: &[Model], workers: &Workers) -> Result<Vec<Option<Evidence>>, BatchError> {
        let Some(reference) = &self.reference else { return Ok(vec![None; models.len()]) };
        let asked: Vec<(&Model, usize)> =
            models.iter().flat_map(|model| (0..self.settings.runs).map(move |run| (model, run))).collect();
        Ok(self.join(&anneal_models(self.problem, reference, &asked, self.settings, self.seed, workers)?))
    }

    /// As many runs together as each had.
    fn join(&self, runs: &[Annealed]) -> Vec<Option<Evidence>> {
        runs.chunks(self.settings.runs).map(Annealed::join).collect()
    }
}

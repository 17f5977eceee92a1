//! A sequential Monte Carlo sampler across models: the posterior over models and parameters, found without q.
//!
//! Particles are models with parameters. They start where models are drawn symbol by symbol, with probability p₀(m), and
//! parameters from a reference r that reaches wherever they may lie (the prior, where it is known), and follow
//!
//! ```text
//! π_β(m, θ) ∝ p₀(m) r(θ_m) [p(m) η(θ_m | m) / (p₀(m) r(θ_m))]^β,   β from 0 to 1
//! ```
//!
//! (Del Moral, Doucet and Jasra 2006; across models Jasra, Doucet, Stephens and Holmes 2008). From one β to the next they are
//! weighted and drawn anew; at each β they jump between neighbouring models, new coordinates being drawn from where other particles
//! have them (reversible jump, Green 1995), and move within their models. The product of the mean weights estimates the evidence
//! `p(y)` without bias. Nothing comes from q: a model, or a mode of its parameters, that q has lost is found as easily as any other.
//! Several independent populations say how far the answer may be off.

mod population;
mod sampled;
mod settings;

pub use sampled::{Points, Sampled, SampledModel};
pub use settings::SmcSettings;

use self::population::{Common, Population, Stage};
use self::sampled::Run;
use crate::evidence::ParticleMove;
use crate::optimise::SettingError;
use crate::problem::{BatchError, FreeRows, Problem};
use crate::random::{Purpose, Stream};
use crate::space::{Catalogue, Model, ModelSpace};
use crate::workers::Workers;

/// With so many models at most each has particles of its own: how probable a model is on the way from the reference to the posterior
/// then does not matter.
const MAX_EACH: f64 = 64.0;

/// The fewest particles of one model.
const MIN_PARTICLES: usize = 64;

/// Numbers that the parameters of the particles of all runs may take up.
pub(crate) const MAX_NUMBERS: usize = 1 << 23;

/// All models, where there are few.
fn each_model(space: &dyn ModelSpace) -> Option<Vec<Model>> {
    let is_few = space.log_count() <= MAX_EACH.ln() + 1e-9;
    let catalogue = Catalogue::new(space, MAX_EACH as usize).ok().filter(|_| is_few)?;
    (0..catalogue.len()).map(|number| catalogue.model(number).ok()).collect()
}

/// Asked between two temperatures whether to go on, with how far runs have come, from 0 to 1.
pub type GoOn<'a> = &'a mut dyn FnMut(f64) -> bool;

/// A sampler with the runs it has done so far.
pub struct Sampler<'a> {
    common: Common<'a>,
    seed: u64,
    runs: Vec<Run>,
}

impl<'a> Sampler<'a> {
    /// Nothing is done yet. `reference` has a mean and a positive standard deviation for each free coordinate.
    pub fn new(
        problem: &'a dyn Problem,
        reference: &'a [(f64, f64)],
        settings: &'a SmcSettings,
        seed: u64,
    ) -> Result<Self, SettingError> {
        settings.check()?;
        let is_complete = reference.len() == problem.space().max_dim();
        SettingError::check("reference", reference.len() as f64, is_complete, "as many as free coordinates")?;
        let odd = reference.iter().find(|(mean, sd)| !(mean.is_finite() && *sd > 0.0 && sd.is_finite()));
        let is_fine = odd.is_none();
        SettingError::check("reference", odd.map_or(0.0, |(_, sd)| *sd), is_fine, "finite means, positive deviations")?;
        Ok(Self { common: Common { problem, reference, settings }, seed, runs: Vec::new() })
    }

    /// So many more independent runs, side by side. False if it was ended early; these runs are then lost.
    pub fn run(&mut self, more: usize, workers: &Workers, go_on: GoOn<'_>) -> Result<bool, BatchError> {
        let common = &self.common;
        let models = each_model(common.problem.space());
        let mut populations = self.populations(models.as_deref(), more, workers);
        let mut open: Vec<&mut (Population, Run)> = populations.iter_mut().collect();
        let (mut looks, all) = (Looks::new(common, workers), open.len());
        looks.look(&mut open)?;
        workers.for_each(&mut open, |_, (population, _)| population.start());
        let kept = common.settings.kept;
        while !open.is_empty() {
            let done: f64 = open.iter().map(|(population, _)| population.progress(kept)).sum();
            if !go_on((done + (all - open.len()) as f64) / all as f64) {
                return Ok(false);
            }
            workers.for_each(&mut open, |_, (population, _)| {
                if population.stage == Stage::Tempering {
                    population.temper();
                }
            });
            open.retain(|(population, _)| population.stage != Stage::Lost);
            for _ in 0..common.settings.sweeps {
                looks.sweep(&mut open)?;
            }
            workers.for_each(&mut open, |_, (population, run)| {
                if let Stage::Kept(rounds) = &mut population.stage {
                    *rounds += 1;
                    run.count(&population.particles);
                }
            });
            open.retain(|(population, _)| population.stage != Stage::Kept(kept));
        }
        let mut found = populations.into_iter().map(|(population, mut run)| {
            run.finish(common, &population);
            run
        });
        for _ in 0..more {
            // Populations of all models are one run together.
            let together = found.by_ref().take(models.as_ref().map_or(1, Vec::len)).collect();
            self.runs.push(Run::join(together));
        }
        Ok(true)
    }

    /// Populations of so many runs: one each, or one of every model, where these are given.
    fn populations(&self, models: Option<&[Model]>, more: usize, workers: &Workers) -> Vec<(Population, Run)> {
        let (common, first) = (&self.common, self.runs.len());
        let each = models.map_or(1, <[Model]>::len);
        let particles = common.settings.particles;
        let count = if models.is_some() { self.particles_of_each(each, more) } else { particles };
        let mut slots: Vec<Option<(Population, Run)>> = (0..more * each).map(|_| None).collect();
        workers.for_each(&mut slots, |slot, population| {
            let (run, model) = (first + slot / each, slot % each);
            let stream = Stream::new(self.seed, Purpose::Anneal, u64::MAX - model as u64, run as u64);
            let model = models.map(|models| &*models[model]);
            *population = Some((Population::new(common, model, count, stream), Run::default()));
        });
        slots.into_iter().flatten().collect()
    }

    /// Particles of each of so many models: twice as many as one population of all would have, but no fewer of a model than an eighth
    /// of that, unless the runs together took up too much memory.
    fn particles_of_each(&self, models: usize, runs: usize) -> usize {
        let Common { settings: &SmcSettings { particles, .. }, reference, .. } = self.common;
        let most = MAX_NUMBERS / (runs * models * reference.len()).max(1);
        (2 * particles / models)
            .max(particles.div_ceil(8))
            .max(MIN_PARTICLES.min(particles))
            .min(most.max(MIN_PARTICLES))
    }

    /// What all runs found; none if all particles of all runs were lost.
    pub fn found(&self) -> Option<Sampled> {
        Sampled::of(&self.common, &self.runs)
    }
}

/// Looks at the proposals of all populations at once, in memory that is kept.
struct Looks<'a, 'p> {
    common: &'a Common<'p>,
    rows: FreeRows<'p>,
    workers: &'a Workers,
}

impl<'a, 'p> Looks<'a, 'p> {
    fn new(common: &'a Common<'p>, workers: &'a Workers) -> Self {
        Self { common, rows: FreeRows::new(common.problem, 0), workers }
    }

    fn look(&mut self, open: &mut [&mut (Population, Run)]) -> Result<(), BatchError> {
        let Some(each) = open.first().map(|(population, _)| population.particles.len()) else { return Ok(()) };
        if self.rows.len() != open.len() * each {
            self.rows = FreeRows::new(self.common.problem, open.len() * each);
        }
        let mut chunks = self.rows.chunks_mut(each);
        let mut filled: Vec<_> = chunks.iter_mut().zip(&*open).collect();
        self.workers.for_each(&mut filled, |_, (chunk, pair)| pair.0.fill(chunk));
        self.rows.evaluate(self.workers)?;
        let rows = &self.rows;
        self.workers.for_each(open, |number, (population, _)| population.read(rows, number * each));
        Ok(())
    }

    /// One round of moves of all populations: between models, then within them.
    fn sweep(&mut self, open: &mut [&mut (Population, Run)]) -> Result<(), BatchError> {
        let (common, workers) = (self.common, self.workers);
        workers.for_each(open, |_, (population, _)| population.measure(common));
        let jumps = if open.iter().any(|(population, _)| population.jumps) { common.settings.jumps } else { 0 };
        for _ in 0..jumps {
            workers.for_each(open, |_, (population, _)| population.propose_jumps(common));
            self.look(open)?;
            workers.for_each(open, |_, (population, _)| population.decide_jumps());
        }
        // A trajectory has several steps; every random step is decided on its own.
        let (decisions, steps) = match common.settings.by {
            ParticleMove::Hamiltonian => (1, common.settings.steps),
            ParticleMove::RandomWalk => (common.settings.steps, 1),
        };
        for _ in 0..decisions {
            workers.for_each(open, |_, (population, _)| population.set_out());
            for _ in 0..steps {
                workers.for_each(open, |_, (population, _)| population.drift(common));
                self.look(open)?;
                workers.for_each(open, |_, (population, _)| population.looked(common));
            }
            workers.for_each(open, |_, (population, _)| population.decide_moves(common));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::problem;
    use crate::space::Subsets;

    /// Models that have particles of their own get more where all would share more, down to the fewest.
    #[test]
    fn particles_of_each_model_grow_with_those_of_all() {
        let problem = problem::from_fn(Subsets::new(6).unwrap(), |_, _, _| 0.0);
        let reference = [(0.0, 1.0); 6];
        let each = |particles: usize, models: usize| {
            let settings = SmcSettings { particles, ..SmcSettings::default() };
            Sampler::new(&problem, &reference, &settings, 1).unwrap().particles_of_each(models, settings.runs)
        };
        assert_eq!([512, 1024, 2048].map(|particles| each(particles, 64)), [64, 128, 256]);
        assert_eq!([512, 1024].map(|particles| each(particles, 2)), [512, 1024]);
        assert_eq!([32, 256].map(|particles| each(particles, 64)), [32, 64]);
        // However many are asked for, there is memory for no more.
        assert_eq!(each(1 << 24, 64), MAX_NUMBERS / (8 * 64 * 6));
    }
}

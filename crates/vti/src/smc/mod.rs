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

mod anneal;
mod birth;
mod density;
mod population;
mod sampled;
mod settings;
mod tempering;

pub(crate) use anneal::{Annealed, anneal_blocks, anneal_models};
pub use sampled::{Points, Sampled, SampledModel};
pub use settings::{AnnealSettings, ParticleMove, SmcSettings, TEMPERATURES};

use self::density::ModelDensity;
use self::population::Population;
use self::sampled::Run;
use crate::optimise::SettingError;
use crate::problem::{BatchError, Problem};
use crate::random::{Purpose, Stream};
use crate::space::{Catalogue, Model};
use crate::workers::Workers;

/// With so many models at most each has particles of its own: how probable a model is on the way from the reference to the posterior
/// then does not matter.
const MAX_EACH: f64 = 64.0;

/// The fewest particles of one model.
const MIN_PARTICLES: usize = 64;

/// Numbers that the parameters of the particles of all runs may take up.
pub(crate) const MAX_NUMBERS: usize = 1 << 23;

/// All models, where there are few and none is reached from another better than from the reference.
fn each_model(problem: &dyn Problem) -> Option<Vec<Model>> {
    if problem.jumps().is_some() {
        return None;
    }
    let space = problem.space();
    let is_few = space.log_count() <= MAX_EACH.ln() + 1e-9;
    let catalogue = Catalogue::new(space, MAX_EACH as usize).ok().filter(|_| is_few)?;
    (0..catalogue.len()).map(|number| catalogue.model(number).ok()).collect()
}

/// Asked between two temperatures whether to go on, with how far runs have come, from 0 to 1.
pub type GoOn<'a> = &'a mut dyn FnMut(f64) -> bool;

/// A sampler with the runs it has done so far.
pub struct Sampler<'a> {
    problem: &'a dyn Problem,
    reference: &'a [(f64, f64)],
    settings: SmcSettings,
    seed: u64,
    runs: Vec<Run>,
    has_all_rounds: bool,
}

impl<'a> Sampler<'a> {
    /// Nothing is done yet. `reference` has a mean and a positive standard deviation for each free coordinate.
    pub fn new(
        problem: &'a dyn Problem,
        reference: &'a [(f64, f64)],
        settings: &SmcSettings,
        seed: u64,
    ) -> Result<Self, SettingError> {
        settings.check()?;
        check_reference(problem, reference)?;
        Ok(Self {
            problem,
            reference,
            settings: settings.suited(problem),
            seed,
            runs: Vec::new(),
            has_all_rounds: false,
        })
    }

    /// With draws of all rounds that are counted, not only of the last.
    pub fn with_all_rounds(self) -> Self {
        Self { has_all_rounds: true, ..self }
    }

    /// So many more independent runs, side by side. False if it was ended early; these runs are then lost.
    pub fn run(&mut self, more: usize, workers: &Workers, go_on: GoOn<'_>) -> Result<bool, BatchError> {
        let models = each_model(self.problem);
        let mut populations = self.populations(models.as_deref(), more, workers);
        let mut density = ModelDensity::new(self.problem);
        if !tempering::temper(&mut populations, &mut density, &self.settings, workers, go_on)? {
            return Ok(false);
        }
        let mut found = populations.into_iter().map(|population| Run::of(self.problem, population));
        for _ in 0..more {
            // Populations of all models are one run together.
            let together = found.by_ref().take(models.as_ref().map_or(1, Vec::len)).collect();
            self.runs.push(Run::join(together));
        }
        Ok(true)
    }

    /// Populations of so many runs: one each, or one of every model, where these are given.
    fn populations(&self, models: Option<&[Model]>, more: usize, workers: &Workers) -> Vec<Population<'a>> {
        let (problem, reference, by, first) = (self.problem, self.reference, self.settings.by, self.runs.len());
        let each = models.map_or(1, <[Model]>::len);
        let count = if models.is_some() { self.particles_of_each(each, more) } else { self.settings.particles };
        let mut slots: Vec<Option<Population<'a>>> = (0..more * each).map(|_| None).collect();
        workers.for_each(&mut slots, |slot, population| {
            let (run, model) = (first + slot / each, slot % each);
            let stream = Stream::new(self.seed, Purpose::Anneal, u64::MAX - model as u64, run as u64);
            let model = (model, models.map(|models| &*models[model]));
            let mut made = Population::of_models(problem, reference, by, model, count, stream);
            made.rounds = self.has_all_rounds.then(Vec::new);
            *population = Some(made);
        });
        slots.into_iter().flatten().collect()
    }

    /// Particles of each of so many models: twice as many as one population of all would have, but no fewer of a model than an eighth
    /// of that, unless the runs together took up too much memory.
    fn particles_of_each(&self, models: usize, runs: usize) -> usize {
        let particles = self.settings.particles;
        let most = MAX_NUMBERS / (runs * models * self.reference.len()).max(1);
        (2 * particles / models)
            .max(particles.div_ceil(8))
            .max(MIN_PARTICLES.min(particles))
            .min(most.max(MIN_PARTICLES))
    }

    /// What all runs found; none if all particles of all runs were lost.
    pub fn found(&self) -> Option<Sampled> {
        Sampled::of(self.problem, &self.runs)
    }
}

/// Refuses a reference that is not one.
pub(crate) fn check_reference(problem: &dyn Problem, reference: &[(f64, f64)]) -> Result<(), SettingError> {
    let is_complete = reference.len() == problem.space().max_dim();
    SettingError::check("reference", reference.len() as f64, is_complete, "as many as free coordinates")?;
    let odd = reference.iter().find(|(mean, sd)| !(mean.is_finite() && *sd > 0.0 && sd.is_finite()));
    let is_fine = odd.is_none();
    SettingError::check("reference", odd.map_or(0.0, |(_, sd)| *sd), is_fine, "finite means, positive deviations")
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

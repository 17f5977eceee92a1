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
use crate::problem::{BatchError, FreeRows, Problem};
use crate::random::{Purpose, Stream};
use crate::workers::Workers;

/// Asked between two temperatures whether to go on, with how far runs have come, from 0 to 1.
pub type GoOn<'a> = &'a mut dyn FnMut(f64) -> bool;

/// A sampler with the runs it has done so far.
pub struct Sampler<'a> {
    common: Common<'a>,
    seed: u64,
    runs: Vec<Run>,
}

impl<'a> Sampler<'a> {
    /// Nothing is done yet. `reference` has a mean and a standard deviation for each free coordinate.
    pub fn new(problem: &'a dyn Problem, reference: &'a [(f64, f64)], settings: &'a SmcSettings, seed: u64) -> Self {
        Self { common: Common { problem, reference, settings }, seed, runs: Vec::new() }
    }

    /// So many more independent runs, side by side. False if it was ended early; these runs are then lost.
    pub fn run(&mut self, more: usize, workers: &Workers, go_on: GoOn<'_>) -> Result<bool, BatchError> {
        let (common, first) = (&self.common, self.runs.len());
        let stream = |run: usize| Stream::new(self.seed, Purpose::Anneal, u64::MAX, run as u64);
        let mut slots: Vec<Option<(Population, Run)>> = (0..more).map(|_| None).collect();
        workers.for_each(&mut slots, |slot, population| {
            *population = Some((Population::new(common, stream(first + slot)), Run::default()));
        });
        let mut populations: Vec<(Population, Run)> = slots.into_iter().flatten().collect();
        let mut open: Vec<&mut (Population, Run)> = populations.iter_mut().collect();
        let mut looks = Looks::new(common, workers);
        looks.look(&mut open)?;
        workers.for_each(&mut open, |_, (population, _)| population.start());
        let kept = common.settings.kept;
        while !open.is_empty() {
            let done: f64 = open.iter().map(|(population, _)| population.progress(kept)).sum();
            if !go_on((done + (more - open.len()) as f64) / more as f64) {
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
        for (population, mut run) in populations {
            run.finish(common, &population);
            self.runs.push(run);
        }
        Ok(true)
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
        let each = self.common.settings.particles;
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
        for _ in 0..common.settings.jumps {
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

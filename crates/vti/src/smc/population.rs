//! The particles of one population, and how they move.

mod jump;
mod walk;

use self::walk::Walk;
use super::birth::log_normal;
use super::density::STANDARD;
use super::sampled::Run;
use super::settings::ParticleMove;
use crate::problem::{BlockPool, FreeChunk, FreeRows, Moves, Problem};
use crate::random::Stream;
use crate::space::ModelSpace;
use crate::stats;

/// The share of moves within a model that should be accepted.
const TRAJECTORY_RATE: f64 = 0.8;

/// The first step, in standard deviations of the particles, and its limits.
const FIRST_STEP: f64 = 0.3;
const STEP_SIZES: std::ops::RangeInclusive<f64> = 0.002..=1.5;

/// A number of components that has less than this of all that was counted is rare; and at most so many particles of rare ones are kept
/// for each particle of the last round.
const RARE_SHARE: f64 = 1.0 / 16.0;
const RARE_PER_PARTICLE: usize = 2;

/// The reference counts as so many particles for where coordinates lie.
const REFERENCE_WEIGHT: f64 = 2.0;

/// A particle: a model with parameters. Vectors over coordinates are as long as the space has coordinates; what is not active is
/// meaningless.
#[derive(Debug)]
pub(super) struct Particle {
    pub(super) word: Vec<u16>,
    pub(super) active: Vec<u32>,
    pub(super) free: Vec<f64>,
    /// `log p(m)`, and `log p₀(m)` of the distribution that particles start from.
    log_prior: f64,
    log_start: f64,
    /// `log η(θ(u) | m) + log |det ∂θ/∂u|`, and its gradient.
    pub(super) log_density: f64,
    pub(super) gradient: Vec<f64>,
    /// `log r(u)`.
    log_reference: f64,
}

impl Clone for Particle {
    fn clone(&self) -> Self {
        Self {
            word: self.word.clone(),
            active: self.active.clone(),
            free: self.free.clone(),
            gradient: self.gradient.clone(),
            ..*self
        }
    }

    /// Without new memory: particles are copied all the time.
    fn clone_from(&mut self, from: &Self) {
        self.word.clone_from(&from.word);
        self.active.clone_from(&from.active);
        self.free.clone_from(&from.free);
        self.gradient.clone_from(&from.gradient);
        (self.log_prior, self.log_start) = (from.log_prior, from.log_start);
        (self.log_density, self.log_reference) = (from.log_density, from.log_reference);
    }
}

impl Particle {
    /// A particle whose parameters are drawn from the reference; `log p(m)` and `log p₀(m)` are given.
    fn drawn(
        word: Vec<u16>,
        active: Vec<u32>,
        (log_prior, log_start): (f64, f64),
        reference: &[(f64, f64)],
        stream: &mut Stream,
    ) -> Self {
        let mut free = vec![0.0; reference.len()];
        for &i in &active {
            let (mean, sd) = reference[i as usize];
            free[i as usize] = mean + sd * stream.normal();
        }
        let log_reference = log_reference(reference, &active, &free);
        let gradient = vec![0.0; reference.len()];
        Self { word, active, free, log_prior, log_start, log_density: f64::NAN, gradient, log_reference }
    }

    /// What it gains with β: `log p(m) η / (p₀(m) r)`.
    fn log_gain(&self) -> f64 {
        let gain = self.log_prior + self.log_density - self.log_start - self.log_reference;
        // What is undefined is impossible.
        if gain.is_nan() { f64::NEG_INFINITY } else { gain }
    }

    /// `log p(m) + log η` with respect to free parameters.
    pub(super) fn log_joint(&self) -> f64 {
        self.log_prior + self.log_density
    }

    /// `log π_β(m, u)`.
    fn log_target(&self, beta: f64) -> f64 {
        self.log_start + self.log_reference + beta * self.log_gain()
    }
}

/// A model drawn symbol by symbol, all allowed ones alike.
fn draw_word(space: &dyn ModelSpace, word: &mut [u16], stream: &mut Stream) {
    let mut allowed = Vec::new();
    for position in 0..word.len() {
        let choices = allow(space, &word[..position], &mut allowed);
        let chosen = stream.below(choices.max(1) as u64) as usize;
        let symbol = allowed.iter().enumerate().filter(|(_, allowed)| **allowed).nth(chosen);
        word[position] = symbol.map_or(0, |(symbol, _)| symbol as u16);
    }
}

/// The log probability that [`draw_word`] draws a word.
fn log_start(space: &dyn ModelSpace, word: &[u16]) -> f64 {
    if !space.is_constrained() {
        return -space.log_count();
    }
    let mut allowed = Vec::new();
    -(0..word.len()).map(|position| (allow(space, &word[..position], &mut allowed) as f64).ln()).sum::<f64>()
}

/// Which symbols may follow, and how many.
fn allow(space: &dyn ModelSpace, prefix: &[u16], allowed: &mut Vec<bool>) -> usize {
    allowed.clear();
    allowed.resize(usize::from(space.arities()[prefix.len()]), true);
    space.allow(prefix, allowed);
    allowed.iter().filter(|allowed| **allowed).count()
}

/// `log r(u)`.
pub(super) fn log_reference(reference: &[(f64, f64)], active: &[u32], free: &[f64]) -> f64 {
    active.iter().map(|&i| log_normal(free[i as usize], reference[i as usize])).sum()
}

/// How far a population has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stage {
    Tempering,
    /// At β = 1, with so many rounds done.
    Kept(usize),
    /// All particles were lost.
    Lost,
}

/// Particles that are tempered from a reference into the posterior, independently of all others.
pub(super) struct Population<'a> {
    /// Mean and standard deviation of each coordinate where particles start.
    pub(super) reference: &'a [(f64, f64)],
    by: ParticleMove,
    /// The problem whose models particles jump between; none where all have one model, which they never leave.
    jumps: Option<&'a dyn Problem>,
    /// Which of several targets, where there are several: those of one target take the same steps of β.
    pub(super) target: usize,
    stream: Stream,
    pub(super) particles: Vec<Particle>,
    pub(super) proposals: Vec<Particle>,
    /// Log ratio of proposal densities, back over forth; −∞ where there is nothing to decide.
    log_ratios: Vec<f64>,
    momentum: Vec<f64>,
    lengths: Vec<f64>,
    /// Mean and standard deviation of each coordinate over each half of the particles.
    moments: [Vec<(f64, f64)>; 2],
    /// Blocks that the other half of the particles has, near which components are born.
    pools: [BlockPool; 2],
    walk: Walk,
    step: f64,
    pub(super) beta: f64,
    pub(super) log_evidence: f64,
    pub(super) stage: Stage,
    /// How often densities were asked for.
    pub(super) calls: usize,
    /// What was counted at the end.
    pub(super) run: Run,
    /// Particles of all rounds at the end, where they are wanted.
    pub(super) rounds: Option<Vec<Particle>>,
    /// Particles of rare numbers of components from rounds before the last.
    pub(super) rare: Vec<Particle>,
}

impl<'a> Population<'a> {
    /// Particles drawn from where they start: all of one model, where one is given, which they then never leave.
    pub(super) fn of_models(
        problem: &'a dyn Problem,
        reference: &'a [(f64, f64)],
        by: ParticleMove,
        (target, model): (usize, Option<&[u16]>),
        count: usize,
        mut stream: Stream,
    ) -> Self {
        let space = problem.space();
        let (width, dim) = (space.arities().len(), space.max_dim());
        let mut mask = vec![false; dim];
        let particle = |_| {
            let mut word = vec![0; width];
            match model {
                Some(model) => word.copy_from_slice(model),
                None => draw_word(space, &mut word, &mut stream),
            }
            space.mark_active(&word, &mut mask);
            let active: Vec<u32> = (0..dim as u32).filter(|&i| mask[i as usize]).collect();
            let log_start = if model.is_some() { 0.0 } else { log_start(space, &word) };
            let logs = (problem.log_prior(&word), log_start);
            Particle::drawn(word, active, logs, reference, &mut stream)
        };
        let particles: Vec<Particle> = (0..count).map(particle).collect();
        let jumps = model.is_none().then_some(problem);
        Self { jumps, target, ..Self::new(reference, by, particles, stream) }
    }

    /// The same without the prior of models: an evidence knows nothing of it.
    pub(super) fn without_prior(mut self) -> Self {
        self.particles.iter_mut().chain(&mut self.proposals).for_each(|particle| particle.log_prior = 0.0);
        self
    }

    /// Particles that all have the same coordinates, and no model but the target they are meant for.
    pub(super) fn of_target(
        target: usize,
        reference: &'a [(f64, f64)],
        by: ParticleMove,
        count: usize,
        mut stream: Stream,
    ) -> Self {
        let active: Vec<u32> = (0..reference.len() as u32).collect();
        let particle = |_| Particle::drawn(Vec::new(), active.clone(), (0.0, 0.0), reference, &mut stream);
        let particles = (0..count).map(particle).collect();
        Self { target, ..Self::new(reference, by, particles, stream) }
    }

    fn new(reference: &'a [(f64, f64)], by: ParticleMove, particles: Vec<Particle>, stream: Stream) -> Self {
        Self {
            reference,
            by,
            jumps: None,
            target: 0,
            proposals: particles.clone(),
            log_ratios: vec![0.0; particles.len()],
            momentum: vec![0.0; particles.len() * reference.len()],
            lengths: vec![0.0; particles.len()],
            particles,
            stream,
            moments: Default::default(),
            pools: Default::default(),
            walk: Walk::default(),
            step: FIRST_STEP,
            beta: 0.0,
            log_evidence: 0.0,
            stage: Stage::Tempering,
            calls: 0,
            run: Run::default(),
            rounds: None,
            rare: Vec::new(),
        }
    }

    /// Moves that the problem makes by itself, where particles come from its prior and from models that are all alike.
    pub(super) fn moves(&self) -> Option<&'a dyn Moves> {
        let problem = self.jumps.filter(|problem| !problem.space().is_constrained())?;
        problem.moves().filter(|_| self.reference.iter().all(|own| *own == STANDARD))
    }

    /// Whether particles may change their models.
    pub(super) fn has_jumps(&self) -> bool {
        self.jumps.is_some()
    }

    /// How far it has come, from 0 to 1, where so many rounds are kept.
    pub(super) fn progress(&self, kept: usize) -> f64 {
        match self.stage {
            Stage::Tempering => 0.5 * self.beta.powf(0.25),
            Stage::Kept(rounds) => 0.5 + 0.5 * rounds as f64 / kept as f64,
            Stage::Lost => 1.0,
        }
    }

    /// Fills rows with proposals.
    pub(super) fn fill(&self, rows: &mut FreeChunk<'_>) {
        for (row, proposal) in self.proposals.iter().enumerate() {
            let to = rows.row(row);
            to.word.copy_from_slice(&proposal.word);
            to.active.clone_from(&proposal.active);
            to.free.iter_mut().zip(&proposal.active).for_each(|(to, &i)| *to = proposal.free[i as usize]);
        }
    }

    /// Takes what was found for the proposals, from the first of its rows on.
    pub(super) fn read(&mut self, rows: &FreeRows<'_>, first: usize) {
        self.calls += self.proposals.len();
        let mut gradient = Vec::new();
        for (row, proposal) in self.proposals.iter_mut().enumerate() {
            gradient.resize(proposal.active.len(), 0.0);
            rows.gradient(first + row, &mut gradient);
            proposal.active.iter().zip(&gradient).for_each(|(&i, g)| proposal.gradient[i as usize] = *g);
            proposal.log_density = rows.log_density(first + row);
        }
    }

    /// The first places are what was proposed first.
    pub(super) fn start(&mut self) {
        self.particles.clone_from(&self.proposals);
    }

    /// Counts the models of all particles, once more at the end, one of so many times.
    pub(super) fn keep(&mut self, kept: usize) {
        if let Stage::Kept(round) = &mut self.stage {
            *round += 1;
            let round = *round;
            self.run.count(&self.particles);
            if let Some(rounds) = &mut self.rounds {
                rounds.extend_from_slice(&self.particles);
            } else if round < kept && self.jumps.is_some_and(|problem| problem.jumps().is_some()) {
                self.keep_rare(round, kept);
            }
        }
    }

    /// Keeps some particles of numbers of components that the last round would have few of, as many of each round.
    fn keep_rare(&mut self, round: usize, kept: usize) {
        let is_rare = self.run.has_less(RARE_SHARE);
        let rare: Vec<&Particle> = self.particles.iter().filter(|particle| is_rare(&particle.word)).collect();
        let most = (RARE_PER_PARTICLE * self.particles.len()).div_ceil(kept);
        let every = rare.len().div_ceil(most).max(1);
        let chosen: Vec<Particle> = rare.into_iter().skip(round % every).step_by(every).cloned().collect();
        self.rare.extend(chosen);
    }

    /// What particles gain with β.
    pub(super) fn gains(&self) -> Vec<f64> {
        self.particles.iter().map(Particle::log_gain).collect()
    }

    /// To the next β: weighs the particles, and draws as many anew.
    pub(super) fn temper(&mut self, next: f64) {
        let log_weights: Vec<f64> = self.gains().iter().map(|gain| (next - self.beta) * gain).collect();
        let Some((chosen, log_mean)) = stats::resample(&log_weights, self.stream.uniform()) else {
            (self.log_evidence, self.stage) = (f64::NEG_INFINITY, Stage::Lost);
            return;
        };
        for (proposal, particle) in self.proposals.iter_mut().zip(chosen) {
            proposal.clone_from(&self.particles[particle]);
        }
        std::mem::swap(&mut self.particles, &mut self.proposals);
        self.log_evidence += log_mean;
        self.beta = next;
        if next >= 1.0 {
            self.stage = Stage::Kept(0);
        }
    }

    /// Mean and standard deviation of each coordinate over half of the particles. Each half is moved by what the other one says:
    /// a particle that had a say in its own proposal would not leave π_β as it is.
    pub(super) fn measure(&mut self) {
        let reference = self.reference;
        // Where coordinates come and go, few particles may have them.
        let prior = if self.has_jumps() { REFERENCE_WEIGHT } else { 0.0 };
        let half = self.particles.len() / 2;
        let of = |particles: &[Particle]| {
            let mut sums: Vec<[f64; 3]> = vec![[0.0; 3]; reference.len()];
            for particle in particles {
                for &i in &particle.active {
                    let [count, sum, squares] = &mut sums[i as usize];
                    let off = particle.free[i as usize] - reference[i as usize].0;
                    (*count, *sum, *squares) = (*count + 1.0, *sum + off, *squares + off * off);
                }
            }
            let moments = sums.iter().zip(reference).map(|(&[count, sum, squares], &(mean, sd))| {
                let weight = count + prior;
                let off = sum / weight;
                let variance = (squares + prior * sd * sd) / weight - off * off;
                (mean + off, variance.max(1e-8 * sd * sd).sqrt())
            });
            moments.collect::<Vec<(f64, f64)>>()
        };
        self.moments = [of(&self.particles[half..]), of(&self.particles[..half])];
        self.collect_blocks();
    }

    /// Prepares a trajectory of every particle.
    pub(super) fn set_out(&mut self) {
        let Self { momentum, lengths, stream, step, .. } = self;
        momentum.iter_mut().for_each(|p| *p = stream.normal());
        // Steps of different lengths, lest trajectories return to where they began.
        lengths.iter_mut().for_each(|length| *length = *step * (0.2 + stream.uniform()));
        self.proposals.clone_from(&self.particles);
        for (number, log_ratio) in self.log_ratios.iter_mut().enumerate() {
            *log_ratio = kinetic(&self.particles[number].active, &self.momentum[number * self.moments[0].len()..]);
        }
    }

    /// Half a step of the momentum, and a whole one of the places.
    pub(super) fn drift(&mut self) {
        self.kick();
        let (half, dim) = (self.particles.len() / 2, self.moments[0].len());
        for (number, proposal) in self.proposals.iter_mut().enumerate() {
            let (moments, momentum) = (&self.moments[usize::from(number >= half)], &self.momentum[number * dim..]);
            let mut is_finite = true;
            for &i in &proposal.active {
                let i = i as usize;
                proposal.free[i] += self.lengths[number] * moments[i].1 * momentum[i];
                is_finite &= proposal.free[i].is_finite();
            }
            // A gradient without limit leads nowhere: the particle stays, and nobody is asked for a density there.
            if !is_finite {
                proposal.free.clone_from(&self.particles[number].free);
                (self.lengths[number], self.log_ratios[number]) = (0.0, f64::NEG_INFINITY);
            }
        }
    }

    /// Half a step of the momentum along the gradient of log π_β.
    fn kick(&mut self) {
        let (half, dim, beta) = (self.particles.len() / 2, self.moments[0].len(), self.beta);
        for (number, proposal) in self.proposals.iter().enumerate() {
            let moments = &self.moments[usize::from(number >= half)];
            let momentum = &mut self.momentum[number * dim..][..dim];
            for &i in &proposal.active {
                let i = i as usize;
                let (mean, sd) = self.reference[i];
                let pull = beta * proposal.gradient[i] - (1.0 - beta) * (proposal.free[i] - mean) / (sd * sd);
                momentum[i] += 0.5 * self.lengths[number] * moments[i].1 * pull;
            }
        }
    }

    /// What follows a look at new places: the second half of the momentum's step, where there is one.
    pub(super) fn looked(&mut self) {
        for proposal in &mut self.proposals {
            proposal.log_reference = log_reference(self.reference, &proposal.active, &proposal.free);
        }
        if self.by == ParticleMove::Hamiltonian {
            self.kick();
        }
    }

    /// Accepts or refuses where trajectories led, and adapts the step.
    pub(super) fn decide_moves(&mut self) {
        let dim = self.moments[0].len();
        let mut rates = 0.0;
        for (number, (particle, proposal)) in self.particles.iter_mut().zip(&mut self.proposals).enumerate() {
            let gain = proposal.log_target(self.beta) - particle.log_target(self.beta) + self.log_ratios[number]
                - kinetic(&particle.active, &self.momentum[number * dim..]);
            let rate = if gain.is_nan() { 0.0 } else { gain.exp().min(1.0) };
            rates += rate;
            if self.stream.uniform() < rate {
                std::mem::swap(particle, proposal);
            }
        }
        let change = 2.0 * (rates / self.particles.len() as f64 - TRAJECTORY_RATE);
        self.step = (self.step * change.exp()).clamp(*STEP_SIZES.start(), *STEP_SIZES.end());
    }
}

/// Half the squared momentum of active coordinates.
fn kinetic(active: &[u32], momentum: &[f64]) -> f64 {
    0.5 * active.iter().map(|&i| momentum[i as usize].powi(2)).sum::<f64>()
}

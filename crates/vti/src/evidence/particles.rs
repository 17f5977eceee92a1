//! Evidences by particles that are annealed into the posterior (Neal 2001; Del Moral, Doucet and Jasra 2006).
//!
//! With parameters that are a function of standard normal numbers z and ℓ(z) the log likelihood seen from there, particles
//! follow
//!
//! ```text
//! π_β(z) ∝ N(z; 0, I) exp(β ℓ(z)),   β from 0 to 1:
//! ```
//!
//! from one β to the next they are weighted by `exp((β' − β) ℓ)`, drawn anew by their weights, and moved in a way that leaves
//! π_β' as it is. The product of the mean weights is an estimate of the evidence `E[exp ℓ(z)]`, without bias. It needs nothing
//! from q, so it cannot share q's mistakes: particles start wherever the reference reaches, and several modes are no obstacle.
//! Independent populations tell how far it may be off.
//!
//! All populations move in step, so that their likelihoods are asked for together: once per step of a trajectory.

use std::ops::Range;

use super::settings::{AnnealSettings, ParticleMove};
use crate::problem::BatchError;
use crate::random::Stream;
use crate::stats;
use crate::workers::Workers;

/// The next β is as far as this share of the particles would still count.
const EFFECTIVE: f64 = 0.5;

/// The share of trajectories, and of random steps, that should be accepted.
const TRAJECTORY_RATE: f64 = 0.8;
const WALK_RATE: f64 = 0.3;

/// The first step, in standard deviations of the particles, and its limits.
const FIRST_STEP: f64 = 0.3;
const STEP_SIZES: std::ops::RangeInclusive<f64> = 0.002..=1.5;

/// Particles whose log likelihoods are wanted: those of one population.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    /// Which of the targets.
    pub(crate) target: usize,
    /// Places, one after another.
    pub(crate) z: &'a [f64],
    /// Written: ℓ(z) of each.
    pub(crate) values: &'a mut [f64],
    /// Written: gradients, laid out like `z`.
    pub(crate) gradients: &'a mut [f64],
}

/// Several targets ℓ, asked for all particles at once, from one thread.
pub(crate) trait Targets {
    /// Fills in what is asked for; not a number where it is undefined.
    fn log_likelihoods(&mut self, asked: &mut [Asked<'_>], workers: &Workers) -> Result<(), BatchError>;
}

/// Places of particles, one after another, with their log likelihoods and the gradients of these.
#[derive(Clone, Debug, Default)]
struct Places {
    z: Vec<f64>,
    logs: Vec<f64>,
    gradient: Vec<f64>,
}

/// Particles that are annealed into one target, independently of all others.
#[derive(Debug)]
pub(crate) struct Population {
    target: usize,
    dim: usize,
    stream: Stream,
    by: ParticleMove,
    at: Places,
    /// Where they may go next.
    to: Places,
    momentum: Vec<f64>,
    lengths: Vec<f64>,
    /// Standard deviations of the coordinates of each half of the particles.
    scales: [Vec<f64>; 2],
    log_before: Vec<f64>,
    /// The step of trajectories in standard deviations of the particles.
    step: f64,
    beta: f64,
    log_evidence: f64,
}

impl Population {
    /// Particles drawn from the reference. Without parameters one is enough.
    pub(crate) fn new(target: usize, dim: usize, settings: &AnnealSettings, mut stream: Stream) -> Self {
        let count = if dim == 0 { 1 } else { settings.particles };
        let z = (0..count * dim).map(|_| stream.normal()).collect();
        let at = Places { z, logs: vec![0.0; count], gradient: vec![0.0; count * dim] };
        Self {
            target,
            dim,
            stream,
            by: settings.by,
            to: at.clone(),
            at,
            momentum: Vec::new(),
            lengths: Vec::new(),
            scales: Default::default(),
            log_before: Vec::new(),
            step: FIRST_STEP,
            beta: 0.0,
            log_evidence: 0.0,
        }
    }

    /// Which of the targets it is annealed into.
    pub(crate) fn target(&self) -> usize {
        self.target
    }

    /// The estimate of `log E[exp ℓ(z)]`; −∞ if all particles were lost.
    pub(crate) fn log_evidence(&self) -> f64 {
        self.log_evidence
    }

    fn is_done(&self) -> bool {
        self.beta >= 1.0 || self.log_evidence == f64::NEG_INFINITY
    }

    /// To the next β, as far as enough of the possible particles still count: weighs them, and draws as many anew.
    fn temper(&mut self) {
        let next = if self.dim == 0 { 1.0 } else { stats::next_beta(&self.at.logs, self.beta, EFFECTIVE) };
        self.log_evidence += self.weigh(next - self.beta);
        self.beta = next;
    }

    /// Weights particles for a change of β, and draws as many anew; the logarithm of the mean weight.
    fn weigh(&mut self, change: f64) -> f64 {
        if self.dim == 0 {
            return change * self.at.logs[0];
        }
        let log_weights: Vec<f64> = self.at.logs.iter().map(|log| change * log).collect();
        let Some((chosen, log_mean)) = stats::resample(&log_weights, self.stream.uniform()) else {
            return f64::NEG_INFINITY;
        };
        let (dim, from) = (self.dim, &self.at);
        // What is left over from the last trajectory is room for the next places.
        for (to, particle) in chosen.into_iter().enumerate() {
            let places = (particle * dim..(particle + 1) * dim, to * dim..(to + 1) * dim);
            self.to.z[places.1.clone()].copy_from_slice(&from.z[places.0.clone()]);
            self.to.gradient[places.1].copy_from_slice(&from.gradient[places.0]);
            self.to.logs[to] = from.logs[particle];
        }
        std::mem::swap(&mut self.at, &mut self.to);
        log_mean
    }

    /// Prepares a trajectory, or a random step, of every particle.
    fn set_out(&mut self) {
        let (count, dim) = (self.at.logs.len(), self.dim);
        self.momentum.clear();
        self.momentum.extend((0..count * dim).map(|_| self.stream.normal()));
        // Steps of different lengths, lest trajectories return to where they began.
        self.lengths.clear();
        self.lengths.extend((0..count).map(|_| self.step * (0.2 + self.stream.uniform())));
        // A particle that had a say in its own scales would not leave π_β as it is: each half has those of the other.
        let half = count / 2;
        self.scales = [self.deviations(half..count), self.deviations(0..half)];
        self.to.clone_from(&self.at);
        self.log_before = self.log_joint(&self.at);
    }

    /// Half a step of the momentum and a whole one of the places; of a random walk the latter alone.
    fn drift(&mut self) {
        if self.by == ParticleMove::Hamiltonian {
            self.kick();
        }
        let (dim, half) = (self.dim, self.at.logs.len() / 2);
        let rows = self.to.z.chunks_exact_mut(dim).zip(self.momentum.chunks_exact(dim)).zip(&mut self.lengths);
        for (particle, ((z, momentum), length)) in rows.enumerate() {
            let scales = &self.scales[usize::from(particle >= half)];
            z.iter_mut().zip(momentum).zip(scales).for_each(|((z, p), scale)| *z += *length * scale * p);
            // A gradient without limit leads nowhere: the particle stays, and nobody is asked for a likelihood there.
            if !z.iter().all(|z| z.is_finite()) {
                z.copy_from_slice(&self.at.z[particle * dim..][..dim]);
                (*length, self.log_before[particle]) = (0.0, f64::INFINITY);
            }
        }
    }

    /// Half a step of the momentum along the gradient of log π_β.
    fn kick(&mut self) {
        let (dim, half, beta) = (self.dim, self.at.logs.len() / 2, self.beta);
        let rows = self.momentum.chunks_exact_mut(dim).zip(self.to.z.chunks_exact(dim));
        let rows = rows.zip(self.to.gradient.chunks_exact(dim)).zip(&self.lengths);
        for (particle, (((momentum, z), gradient), length)) in rows.enumerate() {
            let scales = &self.scales[usize::from(particle >= half)];
            for (((p, scale), z), gradient) in momentum.iter_mut().zip(scales).zip(z).zip(gradient) {
                *p += 0.5 * length * scale * (beta * gradient - z);
            }
        }
    }

    /// What follows a look at new places: the second half of the momentum's step.
    fn looked(&mut self) {
        self.to.logs.iter_mut().for_each(|log| *log = defined(*log));
        if self.by == ParticleMove::Hamiltonian {
            self.kick();
        }
    }

    /// Decides where every particle goes, and adapts the step.
    fn decide(&mut self) {
        let (count, dim) = (self.at.logs.len(), self.dim);
        let log_after = self.log_joint(&self.to);
        let mut rates = 0.0;
        for (particle, (after, before)) in log_after.iter().zip(&self.log_before).enumerate() {
            let gain = after - before;
            let rate = if gain.is_nan() { 0.0 } else { gain.exp().min(1.0) };
            rates += rate;
            if self.stream.uniform() < rate {
                let place = particle * dim..(particle + 1) * dim;
                self.at.z[place.clone()].copy_from_slice(&self.to.z[place.clone()]);
                self.at.gradient[place.clone()].copy_from_slice(&self.to.gradient[place]);
                self.at.logs[particle] = self.to.logs[particle];
            }
        }
        let goal = match self.by {
            ParticleMove::Hamiltonian => TRAJECTORY_RATE,
            ParticleMove::RandomWalk => WALK_RATE,
        };
        let change = 2.0 * (rates / count as f64 - goal);
        self.step = (self.step * change.exp()).clamp(*STEP_SIZES.start(), *STEP_SIZES.end());
    }

    /// `log π_β(z)` and the momentum's of each particle, up to constants. A random step has no momentum to conserve.
    fn log_joint(&self, places: &Places) -> Vec<f64> {
        let squares = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
        let kinetic = |momentum| match self.by {
            ParticleMove::Hamiltonian => squares(momentum),
            ParticleMove::RandomWalk => 0.0,
        };
        let rows = places.z.chunks_exact(self.dim).zip(self.momentum.chunks_exact(self.dim)).zip(&places.logs);
        rows.map(|((z, momentum), log)| self.beta * log - 0.5 * (squares(z) + kinetic(momentum))).collect()
    }

    /// The standard deviation of each coordinate over some of the particles.
    fn deviations(&self, particles: Range<usize>) -> Vec<f64> {
        let count = particles.len() as f64;
        let rows = &self.at.z[particles.start * self.dim..particles.end * self.dim];
        let deviation = |place: usize| {
            let values = || rows.iter().skip(place).step_by(self.dim);
            let mean = values().sum::<f64>() / count;
            (values().map(|z| (z - mean).powi(2)).sum::<f64>() / count).sqrt().max(1e-3)
        };
        (0..self.dim).map(deviation).collect()
    }
}

/// What is undefined is impossible.
fn defined(log_likelihood: f64) -> f64 {
    if log_likelihood.is_nan() { f64::NEG_INFINITY } else { log_likelihood }
}

/// Anneals all populations into their targets. Those that are done wait; the others go on.
pub(crate) fn anneal(
    populations: &mut [Population],
    targets: &mut dyn Targets,
    settings: &AnnealSettings,
    workers: &Workers,
) -> Result<(), BatchError> {
    let mut all: Vec<&mut Population> = populations.iter_mut().collect();
    look(&mut all, |population| &mut population.at, targets, workers)?;
    workers.for_each(&mut all, |_, population| {
        population.at.logs.iter_mut().for_each(|log| *log = defined(*log));
    });
    loop {
        workers.for_each(&mut all, |_, population| population.temper());
        all.retain(|population| !population.is_done());
        if all.is_empty() {
            return Ok(());
        }
        travel(&mut all, targets, settings, workers)?;
    }
}

/// Moves the particles of populations, which leaves π_β as it is.
fn travel(
    populations: &mut [&mut Population],
    targets: &mut dyn Targets,
    settings: &AnnealSettings,
    workers: &Workers,
) -> Result<(), BatchError> {
    // A trajectory has several steps; every random step is decided on its own.
    let (decisions, steps) = match settings.by {
        ParticleMove::Hamiltonian => (settings.moves, settings.steps),
        ParticleMove::RandomWalk => (settings.moves * settings.steps, 1),
    };
    for _ in 0..decisions {
        workers.for_each(populations, |_, population| population.set_out());
        for _ in 0..steps {
            workers.for_each(populations, |_, population| population.drift());
            look(populations, |population| &mut population.to, targets, workers)?;
            workers.for_each(populations, |_, population| population.looked());
        }
        workers.for_each(populations, |_, population| population.decide());
    }
    Ok(())
}

/// Looks at the places of all populations at once.
fn look(
    populations: &mut [&mut Population],
    places: impl Fn(&mut Population) -> &mut Places,
    targets: &mut dyn Targets,
    workers: &Workers,
) -> Result<(), BatchError> {
    let mut asked = Vec::with_capacity(populations.len());
    for population in populations.iter_mut() {
        let target = population.target;
        let Places { z, logs, gradient } = places(population);
        asked.push(Asked { target, z, values: logs, gradients: gradient });
    }
    targets.log_likelihoods(&mut asked, workers)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::evidence::join;
    use crate::random::Purpose;
    use crate::stats::Estimate;

    /// What several runs say, as a number of standard errors from the truth, and their standard error.
    fn off(by: ParticleMove, dim: usize, truth: f64, log_likelihood: impl Fn(&[f64], &mut [f64]) -> f64) -> (f64, f64) {
        let settings = AnnealSettings { runs: 8, by, ..AnnealSettings::default() };
        let found = join(&annealed(dim, &settings, log_likelihood));
        let found = found.unwrap_or(Estimate { value: f64::NAN, se: f64::NAN });
        ((found.value - truth) / found.se, found.se)
    }

    /// Calls a function for each particle.
    struct Each<F>(F);

    impl<F: Fn(&[f64], &mut [f64]) -> f64> Targets for Each<F> {
        fn log_likelihoods(&mut self, asked: &mut [Asked<'_>], _: &Workers) -> Result<(), BatchError> {
            for Asked { z, values, gradients, .. } in asked {
                let dim = z.len() / values.len();
                for (particle, value) in values.iter_mut().enumerate() {
                    *value = (self.0)(&z[particle * dim..][..dim], &mut gradients[particle * dim..][..dim]);
                }
            }
            Ok(())
        }
    }

    /// What each of several runs finds.
    fn annealed(dim: usize, settings: &AnnealSettings, log_likelihood: impl Fn(&[f64], &mut [f64]) -> f64) -> Vec<f64> {
        let population = |run| Population::new(0, dim, settings, Stream::new(1, Purpose::Anneal, 0, run));
        let mut populations: Vec<Population> = (0..settings.runs as u64).map(population).collect();
        let workers = Workers::new(2).unwrap();
        anneal(&mut populations, &mut Each(log_likelihood), settings, &workers).unwrap();
        populations.iter().map(Population::log_evidence).collect()
    }

    /// A normal likelihood: E[exp(−½ Σ ((z − a)/s)²)] = Π s / √(1 + s²) · exp(−½ a² / (1 + s²)).
    #[test]
    fn finds_the_evidence_of_a_normal_likelihood() {
        use ParticleMove::{Hamiltonian, RandomWalk};
        let cases = [(Hamiltonian, 1, 1.0), (Hamiltonian, 3, 0.1), (Hamiltonian, 20, 0.3), (Hamiltonian, 50, 0.05)];
        for (by, dim, s) in cases.into_iter().chain([(RandomWalk, 1, 0.3), (RandomWalk, 4, 0.1), (RandomWalk, 10, 0.3)])
        {
            let centre = |i: usize| 0.5 + i as f64 / dim as f64;
            let terms = (0..dim).map(|i| (s / f64::hypot(1.0, s)).ln() - 0.5 * centre(i).powi(2) / (1.0 + s * s));
            let (sigmas, se) = off(by, dim, terms.sum(), |z, gradient| {
                let mut log = 0.0;
                for (i, (z, gradient)) in z.iter().zip(gradient).enumerate() {
                    let x = (z - centre(i)) / s;
                    (log, *gradient) = (log - 0.5 * x * x, -x / s);
                }
                log
            });
            assert!(
                sigmas.abs() < 4.0 && se < 0.5,
                "{by:?}, {dim} dimensions, s = {s}: {sigmas:.2} standard errors of {se:.3}"
            );
        }
    }

    /// Two modes that no trajectory goes between at β = 1: particles find both from the prior.
    #[test]
    fn finds_both_modes() {
        let (centre, s) = (1.5, 0.05);
        let truth = (2.0 * s / f64::hypot(1.0, s)).ln() - 0.5 * centre * centre / (1.0 + s * s);
        let (sigmas, se) = off(ParticleMove::Hamiltonian, 1, truth, |z, gradient| {
            let near = z[0].signum() * centre;
            let x = (z[0] - near) / s;
            gradient[0] = -x / s;
            -0.5 * x * x
        });
        assert!(sigmas.abs() < 4.0 && se < 0.2, "{sigmas:.2} standard errors of {se:.3}");
    }

    #[test]
    fn where_nothing_is_possible_there_is_no_evidence() {
        let settings = AnnealSettings::default();
        let always = |value: f64| move |_: &[f64], _: &mut [f64]| value;
        assert!(annealed(2, &settings, always(f64::NAN)).iter().all(|&log| log == f64::NEG_INFINITY));
        assert!(annealed(0, &settings, always(-3.0)).iter().all(|&log| log == -3.0));
        // A half-space that is forbidden costs a factor of 2.
        let half = |z: &[f64], gradient: &mut [f64]| {
            gradient[0] = 0.0;
            if z[0] > 0.0 { 0.0 } else { f64::NAN }
        };
        let (sigmas, se) = off(ParticleMove::Hamiltonian, 1, 0.5f64.ln(), half);
        assert!(sigmas.abs() < 4.0 && se < 0.1, "{sigmas:.2} standard errors of {se:.3}");
    }
}

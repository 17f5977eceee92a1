//! Evidence from the prior, by particles that are annealed into the posterior (Neal 2001; Del Moral, Doucet and Jasra 2006).
//!
//! With parameters that are a function of standard normal numbers z and ℓ(z) the log likelihood, particles follow
//!
//! ```text
//! π_β(z) ∝ N(z; 0, I) exp(β ℓ(z)),   β from 0 to 1:
//! ```
//!
//! from one β to the next they are weighted by `exp((β' − β) ℓ)`, drawn anew by their weights, and moved along Hamiltonian
//! trajectories that leave π_β' as it is. The product of the mean weights is an estimate of the evidence `E[exp ℓ(z)]`. It
//! needs nothing from q, so it cannot share q's mistakes: particles start wherever the prior reaches, and several modes are
//! no obstacle. Independent runs tell how far it may be off.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::optimise::SettingError;
use crate::random::Stream;
use crate::stats::{self, Estimate, Stratum};

/// Settings of annealing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnnealSettings {
    /// Independent runs for each evidence, at least 4; 0: evidences are left to the weights of draws.
    pub runs: usize,
    /// Particles of a run.
    pub particles: usize,
    /// Trajectories of each particle at each β.
    pub moves: usize,
    /// Steps of a trajectory.
    pub steps: usize,
    /// The most evidences that are found so, the most important ones first; fewer where no more matter.
    pub most: usize,
    /// How often, at most, runs are added for evidences whose errors matter most.
    pub sharpen: usize,
}

impl Default for AnnealSettings {
    fn default() -> Self {
        Self { runs: 4, particles: 64, moves: 3, steps: 8, most: 5000, sharpen: 8 }
    }
}

impl AnnealSettings {
    /// Refuses settings that make no sense.
    pub(super) fn check(&self) -> Result<(), SettingError> {
        let at_least =
            |what, value: usize, least: usize, range| SettingError::check(what, value as f64, value >= least, range);
        let enough = self.runs == 0 || self.runs >= MIN_RUNS;
        SettingError::check("anneal.runs", self.runs as f64, enough, "0, or at least 4")?;
        at_least("anneal.particles", self.particles, 8, "at least 8")?;
        at_least("anneal.moves", self.moves, 1, "at least 1")?;
        at_least("anneal.steps", self.steps, 1, "at least 1")?;
        at_least("anneal.most", self.most, 1, "at least 1")
    }
}

/// Fewer runs do not show how far they may be off: Student's t has no variance below three degrees of freedom.
const MIN_RUNS: usize = 4;

/// The next β is as far as this share of the particles would still count.
const EFFECTIVE: f64 = 0.5;

/// How precisely it is found: enough for likelihoods that differ by millions, as those of millions of rows do.
const HALVINGS: usize = 40;

/// The share of trajectories that should be accepted.
const GOAL: f64 = 0.8;

/// The first step, in standard deviations of the particles, and its limits.
const FIRST_STEP: f64 = 0.3;
const STEP_SIZES: std::ops::RangeInclusive<f64> = 0.002..=1.5;

/// The estimate that at least four runs make together; none if all particles of all runs were lost.
pub(super) fn join(log_evidences: &[f64]) -> Option<Estimate> {
    let count = log_evidences.len() as f64;
    let shares: Vec<f64> = log_evidences.iter().map(|log| log - count.ln()).collect();
    let total = stats::log_total(&[Stratum::new(&shares)]).ok()?;
    // Where runs are far apart the largest says most, and the error of the mean no longer says how far it is off.
    let mean = log_evidences.iter().sum::<f64>() / count;
    let squares: f64 = log_evidences.iter().map(|log| (log - mean).powi(2)).sum();
    let spread = (squares / (count * (count - 1.0))).sqrt();
    // The spread of a few runs is itself known roughly: errors are those of Student's t, whose standard deviation this is.
    let rough = ((count - 1.0) / (count - 3.0)).sqrt();
    Some(Estimate { value: total.value, se: rough * total.se.max(spread) })
}

/// One run's estimate of `log E[exp ℓ(z)]`; −∞ if all particles are lost. Log likelihoods and gradients are asked for all
/// particles at once.
pub(super) fn log_evidence(
    dim: usize,
    mut log_likelihoods: impl FnMut(&[f64], &mut [f64], &mut [f64]),
    settings: &AnnealSettings,
    stream: Stream,
) -> f64 {
    if dim == 0 {
        let mut value = [f64::NAN];
        log_likelihoods(&[], &mut value, &mut []);
        return defined(value[0]);
    }
    let mut particles = Particles::new(dim, log_likelihoods, settings, stream);
    let (mut beta, mut log_evidence) = (0.0, 0.0);
    loop {
        let next = particles.next(beta);
        log_evidence += particles.weigh(next - beta);
        beta = next;
        if beta >= 1.0 || log_evidence == f64::NEG_INFINITY {
            return log_evidence;
        }
        for _ in 0..settings.moves {
            particles.travel(beta, settings.steps);
        }
    }
}

/// Places of particles, one after another, with their log likelihoods and the gradients of these.
#[derive(Clone)]
struct Places {
    z: Vec<f64>,
    logs: Vec<f64>,
    gradient: Vec<f64>,
}

impl Places {
    fn look(&mut self, log_likelihoods: &mut impl FnMut(&[f64], &mut [f64], &mut [f64])) {
        log_likelihoods(&self.z, &mut self.logs, &mut self.gradient);
        self.logs.iter_mut().for_each(|log| *log = defined(*log));
    }
}

struct Particles<L> {
    dim: usize,
    log_likelihoods: L,
    stream: Stream,
    at: Places,
    /// The step of trajectories in standard deviations of the particles.
    step: f64,
}

impl<L: FnMut(&[f64], &mut [f64], &mut [f64])> Particles<L> {
    fn new(dim: usize, mut log_likelihoods: L, settings: &AnnealSettings, mut stream: Stream) -> Self {
        let count = settings.particles;
        let z = (0..count * dim).map(|_| stream.normal()).collect();
        let mut at = Places { z, logs: vec![0.0; count], gradient: vec![0.0; count * dim] };
        at.look(&mut log_likelihoods);
        Self { dim, log_likelihoods, stream, at, step: FIRST_STEP }
    }

    /// As far beyond β as enough of the possible particles still count.
    fn next(&self, beta: f64) -> f64 {
        let possible: Vec<f64> = self.at.logs.iter().copied().filter(|log| log.is_finite()).collect();
        let enough = |to: f64| {
            let log_weights: Vec<f64> = possible.iter().map(|log| (to - beta) * log).collect();
            stats::effective_draws(&log_weights) >= EFFECTIVE * possible.len() as f64
        };
        if enough(1.0) {
            return 1.0;
        }
        let (mut low, mut high) = (beta, 1.0);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if enough(middle) { low = middle } else { high = middle }
        }
        high
    }

    /// Weights particles for a change of β, and draws as many anew; the logarithm of the mean weight.
    fn weigh(&mut self, change: f64) -> f64 {
        let count = self.at.logs.len();
        let log_weights: Vec<f64> = self.at.logs.iter().map(|log| change * log).collect();
        let log_total = stats::log_sum_exp(&log_weights);
        if log_total == f64::NEG_INFINITY {
            return log_total;
        }
        // Equally spaced draws with one random start.
        let start = self.stream.uniform();
        let (mut chosen, mut sum) = (Vec::with_capacity(count), 0.0);
        for (particle, log_weight) in log_weights.iter().enumerate() {
            sum += (log_weight - log_total).exp() * count as f64;
            while chosen.len() < count && chosen.len() as f64 + start < sum {
                chosen.push(particle);
            }
        }
        // Rounding may leave a place.
        chosen.resize(count, chosen.last().copied().unwrap_or(0));
        let dim = self.dim;
        let gather = |from: &[f64]| chosen.iter().flat_map(|k| from[k * dim..][..dim].to_vec()).collect();
        self.at = Places {
            z: gather(&self.at.z),
            logs: chosen.iter().map(|&k| self.at.logs[k]).collect(),
            gradient: gather(&self.at.gradient),
        };
        log_total - (count as f64).ln()
    }

    /// Moves every particle along a trajectory, and adapts the step.
    fn travel(&mut self, beta: f64, steps: usize) {
        let Self { dim, ref mut stream, .. } = *self;
        let count = self.at.logs.len();
        let mut momentum: Vec<f64> = (0..count * dim).map(|_| stream.normal()).collect();
        // Steps of different lengths, lest trajectories return to where they began.
        let lengths: Vec<f64> = (0..count).map(|_| self.step * (0.2 + stream.uniform())).collect();
        // A particle that had a say in its own scales would not leave π_β as it is: each half has those of the other.
        let half = count / 2;
        let of_halves = [self.scales(half..count), self.scales(0..half)];
        let scales: Vec<&[f64]> = (0..count).map(|particle| &of_halves[usize::from(particle >= half)][..]).collect();
        let mut to = self.at.clone();
        let before = log_joint(beta, &to, &momentum, dim);
        for _ in 0..steps {
            kick(beta, &lengths, &scales, &to, &mut momentum);
            let moves = to.z.chunks_exact_mut(dim).zip(momentum.chunks_exact(dim)).zip(&lengths).zip(&scales);
            for (((z, momentum), length), scales) in moves {
                z.iter_mut().zip(momentum).zip(*scales).for_each(|((z, p), scale)| *z += length * scale * p);
            }
            to.look(&mut self.log_likelihoods);
            kick(beta, &lengths, &scales, &to, &mut momentum);
        }
        let after = log_joint(beta, &to, &momentum, dim);
        let mut rates = 0.0;
        for particle in 0..count {
            let gain = after[particle] - before[particle];
            let rate = if gain.is_nan() { 0.0 } else { gain.exp().min(1.0) };
            rates += rate;
            if self.stream.uniform() < rate {
                let place = particle * dim..(particle + 1) * dim;
                self.at.z[place.clone()].copy_from_slice(&to.z[place.clone()]);
                self.at.gradient[place.clone()].copy_from_slice(&to.gradient[place]);
                self.at.logs[particle] = to.logs[particle];
            }
        }
        let change = 2.0 * (rates / count as f64 - GOAL);
        self.step = (self.step * change.exp()).clamp(*STEP_SIZES.start(), *STEP_SIZES.end());
    }

    /// The standard deviation of each coordinate over some of the particles.
    fn scales(&self, particles: Range<usize>) -> Vec<f64> {
        let count = particles.len() as f64;
        let rows = &self.at.z[particles.start * self.dim..particles.end * self.dim];
        let scale = |place: usize| {
            let values = || rows.iter().skip(place).step_by(self.dim);
            let mean = values().sum::<f64>() / count;
            (values().map(|z| (z - mean).powi(2)).sum::<f64>() / count).sqrt().max(1e-3)
        };
        (0..self.dim).map(scale).collect()
    }
}

/// What is undefined is impossible.
fn defined(log_likelihood: f64) -> f64 {
    if log_likelihood.is_nan() { f64::NEG_INFINITY } else { log_likelihood }
}

/// `log π_β(z)` and the momentum's of each particle, up to constants.
fn log_joint(beta: f64, at: &Places, momentum: &[f64], dim: usize) -> Vec<f64> {
    let squares = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
    let rows = at.z.chunks_exact(dim).zip(momentum.chunks_exact(dim)).zip(&at.logs);
    rows.map(|((z, momentum), log)| beta * log - 0.5 * (squares(z) + squares(momentum))).collect()
}

/// Half a step of the momentum along the gradient of log π_β.
fn kick(beta: f64, lengths: &[f64], scales: &[&[f64]], at: &Places, momentum: &mut [f64]) {
    let dim = at.z.len() / at.logs.len();
    let rows = momentum.chunks_exact_mut(dim).zip(at.z.chunks_exact(dim)).zip(at.gradient.chunks_exact(dim));
    for ((((momentum, z), gradient), length), scales) in rows.zip(lengths).zip(scales) {
        for (((p, scale), z), gradient) in momentum.iter_mut().zip(*scales).zip(z).zip(gradient) {
            *p += 0.5 * length * scale * (beta * gradient - z);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    /// What several runs say, as a number of standard errors from the truth, and their standard error.
    fn off(dim: usize, truth: f64, log_likelihood: impl Fn(&[f64], &mut [f64]) -> f64) -> (f64, f64) {
        let settings = AnnealSettings { runs: 8, ..AnnealSettings::default() };
        let all = |z: &[f64], values: &mut [f64], gradients: &mut [f64]| {
            for ((value, z), gradient) in values.iter_mut().zip(z.chunks(dim)).zip(gradients.chunks_mut(dim)) {
                *value = log_likelihood(z, gradient);
            }
        };
        let run = |row| log_evidence(dim, all, &settings, Stream::new(1, Purpose::Anneal, 0, row));
        let runs: Vec<f64> = (0..settings.runs as u64).map(run).collect();
        let found = join(&runs).unwrap_or(Estimate { value: f64::NAN, se: f64::NAN });
        ((found.value - truth) / found.se, found.se)
    }

    /// Four runs: √(Σ d² / (4 · 3)) is the error of their mean, and Student's t with three degrees of freedom has variance 3.
    #[test]
    fn few_runs_have_larger_errors() {
        let found = join(&[7.0, 7.001, 6.999, 7.0]).unwrap_or(Estimate { value: f64::NAN, se: f64::NAN });
        let expected = (2e-6f64 / 12.0 * 3.0).sqrt();
        assert!((found.value - 7.0).abs() < 1e-6 && (found.se / expected - 1.0).abs() < 0.01, "{found:?}, {expected}");
    }

    /// A normal likelihood: E[exp(−½ Σ ((z − a)/s)²)] = Π s / √(1 + s²) · exp(−½ a² / (1 + s²)).
    #[test]
    fn finds_the_evidence_of_a_normal_likelihood() {
        for (dim, s) in [(1, 1.0), (3, 0.1), (20, 0.3), (50, 0.05)] {
            let centre = |i: usize| 0.5 + i as f64 / dim as f64;
            let terms = (0..dim).map(|i| (s / f64::hypot(1.0, s)).ln() - 0.5 * centre(i).powi(2) / (1.0 + s * s));
            let (sigmas, se) = off(dim, terms.sum(), |z, gradient| {
                let mut log = 0.0;
                for (i, (z, gradient)) in z.iter().zip(gradient).enumerate() {
                    let x = (z - centre(i)) / s;
                    (log, *gradient) = (log - 0.5 * x * x, -x / s);
                }
                log
            });
            assert!(
                sigmas.abs() < 4.0 && se < 0.5,
                "{dim} dimensions, s = {s}: {sigmas:.2} standard errors of {se:.3}"
            );
        }
    }

    /// Two modes that no trajectory goes between at β = 1: particles find both from the prior.
    #[test]
    fn finds_both_modes() {
        let (centre, s) = (1.5, 0.05);
        let truth = (2.0 * s / f64::hypot(1.0, s)).ln() - 0.5 * centre * centre / (1.0 + s * s);
        let (sigmas, se) = off(1, truth, |z, gradient| {
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
        let stream = || Stream::new(1, Purpose::Anneal, 0, 0);
        let always = |value: f64| move |_: &[f64], values: &mut [f64], _: &mut [f64]| values.fill(value);
        assert_eq!(log_evidence(2, always(f64::NAN), &settings, stream()), f64::NEG_INFINITY);
        assert_eq!(log_evidence(0, always(-3.0), &settings, stream()), -3.0);
        assert_eq!(join(&[f64::NEG_INFINITY; 4]), None);
        // A half-space that is forbidden costs a factor of 2.
        let half = |z: &[f64], gradient: &mut [f64]| {
            gradient[0] = 0.0;
            if z[0] > 0.0 { 0.0 } else { f64::NAN }
        };
        let (sigmas, se) = off(1, 0.5f64.ln(), half);
        assert!(sigmas.abs() < 4.0 && se < 0.1, "{sigmas:.2} standard errors of {se:.3}");
    }

    /// Runs that disagree say so.
    #[test]
    fn errors_grow_with_the_distance_of_runs() {
        let apart = join(&[-10.0, -20.0, -11.0, -18.0]);
        assert!(apart.is_some_and(|found| found.se > 2.0), "{apart:?}");
        let near = join(&[-10.0, -10.1, -9.9, -10.0]);
        assert!(near.is_some_and(|found| (found.value + 10.0).abs() < 0.02 && found.se < 0.1), "{near:?}");
    }
}

//! Evidences of single models, and of single blocks, by particles that are annealed into one posterior (Neal 2001; Del Moral, Doucet
//! and Jasra 2006).

use super::GoOn;
use super::density::{BlockDensity, ModelDensity, STANDARD};
use super::population::Population;
use super::settings::{AnnealSettings, MIN_RUNS};
use super::tempering::temper;
use crate::problem::{BatchError, Blocks, Problem};
use crate::random::{Purpose, Stream};
use crate::space::Model;
use crate::stats::Evidence;
use crate::workers::Workers;

/// What one run found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Annealed {
    /// The log evidence; −∞ if all particles were lost.
    pub(crate) log_evidence: f64,
    /// How often the density was asked for.
    pub(crate) calls: usize,
}

impl Annealed {
    fn of(population: &Population<'_>) -> Self {
        Self { log_evidence: population.log_evidence, calls: population.calls }
    }

    /// What at least four runs make together; none of fewer, or if all particles were lost.
    pub(crate) fn join(runs: &[Self]) -> Option<Evidence> {
        if runs.len() < MIN_RUNS {
            return None;
        }
        let logs: Vec<f64> = runs.iter().map(|run| run.log_evidence).collect();
        Evidence::of_runs(&logs, runs.iter().map(|run| run.calls).sum())
    }
}

/// Numbers that the particles of runs that go side by side take up at most.
const MAX_NUMBERS: usize = 1 << 20;

/// One run for each of these models, with its number.
pub(crate) fn anneal_models(
    problem: &dyn Problem,
    reference: &[(f64, f64)],
    asked: &[(&Model, usize)],
    settings: &AnnealSettings,
    seed: u64,
    workers: &Workers,
) -> Result<Vec<Annealed>, BatchError> {
    let (particles, smc) = (settings.particles, settings.tempering().suited(problem));
    let together = (MAX_NUMBERS / (particles * reference.len()).max(1)).max(1);
    let mut found = Vec::with_capacity(asked.len());
    let mut density = ModelDensity::new(problem);
    for part in asked.chunks(together) {
        let (mut models, mut populations) = (Vec::new(), Vec::with_capacity(part.len()));
        for &(model, run) in part {
            let stream = Stream::new(seed, Purpose::Anneal, run as u64, key(model));
            let target = (place(&mut models, model), Some(&**model));
            populations
                .push(Population::of_models(problem, reference, smc.by, target, particles, stream).without_prior());
        }
        temper(&mut populations, &mut density, &smc, workers, &mut |_| true)?;
        found.extend(populations.iter().map(Annealed::of));
    }
    Ok(found)
}

/// The place of a target whose runs come one after the other.
fn place<T: PartialEq>(targets: &mut Vec<T>, target: T) -> usize {
    if targets.last() != Some(&target) {
        targets.push(target);
    }
    targets.len() - 1
}

/// A number for the random stream of a model.
fn key(model: &[u16]) -> u64 {
    model.iter().fold(0xcbf2_9ce4_8422_2325, |key, &symbol| (key ^ u64::from(symbol)).wrapping_mul(0x0100_0000_01b3))
}

/// One run for each of these blocks under their keys, with its number, all side by side; none if it was ended early. All particles are lost where the problem
/// cannot be seen from its prior.
pub(crate) fn anneal_blocks(
    blocks: &dyn Blocks,
    asked: &[((usize, u64), usize)],
    settings: &AnnealSettings,
    seed: u64,
    workers: &Workers,
    go_on: GoOn<'_>,
) -> Result<Option<Vec<Annealed>>, BatchError> {
    let mut mask = vec![false; blocks.width()];
    let reference = vec![STANDARD; mask.len()];
    let (mut keys, mut populations) = (Vec::new(), Vec::with_capacity(asked.len()));
    for &((block, key), run) in asked {
        blocks.mark_active(block, key, &mut mask);
        let dim = mask.iter().filter(|&&active| active).count();
        // Without parameters one is enough.
        let count = if dim == 0 { 1 } else { settings.particles };
        let stream = Stream::new(seed, Purpose::Anneal, (block as u64) << 32 | run as u64, key);
        let target = place(&mut keys, (block, key));
        populations.push(Population::of_target(target, &reference[..dim], settings.by, count, stream));
    }
    let mut density = BlockDensity::new(blocks, &keys);
    let is_done = temper(&mut populations, &mut density, &settings.tempering(), workers, go_on)?;
    Ok(is_done.then(|| populations.iter().map(Annealed::of).collect()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::problem::{BlockParticles, DensityError};
    use crate::smc::ParticleMove;

    /// One block whose likelihood, seen from a standard normal prior, is a function.
    struct Seen<F> {
        dim: usize,
        log_likelihood: F,
    }

    impl<F: Fn(&[f64], &mut [f64]) -> f64 + Send + Sync> Blocks for Seen<F> {
        fn count(&self) -> usize {
            1
        }

        fn width(&self) -> usize {
            self.dim
        }

        fn keys(&self, _: &[u16], keys: &mut [u64]) {
            keys.fill(0);
        }

        fn mark_active(&self, _: usize, _: u64, active: &mut [bool]) {
            active.fill(true);
        }

        fn feature_count(&self) -> usize {
            0
        }

        fn features(&self, _: usize, _: u64, _: &mut [f64]) {}

        fn log_density(&self, _: usize, _: u64, _: &[f64], _: &mut [f64]) -> Result<f64, DensityError> {
            Ok(f64::NAN)
        }

        fn log_likelihood_batch(&self, asked: &mut [BlockParticles<'_>], _: &Workers) -> Result<bool, BatchError> {
            for BlockParticles { z, values, gradients, .. } in asked {
                for (particle, value) in values.iter_mut().enumerate() {
                    let place = particle * self.dim..(particle + 1) * self.dim;
                    *value = (self.log_likelihood)(&z[place.clone()], &mut gradients[place]);
                }
            }
            Ok(true)
        }
    }

    /// What each of several runs finds.
    fn annealed(
        dim: usize,
        settings: &AnnealSettings,
        log_likelihood: impl Fn(&[f64], &mut [f64]) -> f64 + Send + Sync,
    ) -> Vec<Annealed> {
        let asked: Vec<((usize, u64), usize)> = (0..settings.runs).map(|run| ((0, 0), run)).collect();
        let workers = Workers::new(2).unwrap();
        anneal_blocks(&Seen { dim, log_likelihood }, &asked, settings, 1, &workers, &mut |_| true).unwrap().unwrap()
    }

    /// What several runs say, as a number of standard errors from the truth, and their standard error.
    fn off(
        by: ParticleMove,
        dim: usize,
        truth: f64,
        log_likelihood: impl Fn(&[f64], &mut [f64]) -> f64 + Send + Sync,
    ) -> (f64, f64) {
        let settings = AnnealSettings { runs: 8, by, ..AnnealSettings::default() };
        let found = Annealed::join(&annealed(dim, &settings, log_likelihood)).unwrap();
        ((found.log_evidence - truth) / found.se, found.se)
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
                sigmas.abs() < 4.0 && se < 0.8,
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
        let lost = |run: &Annealed| run.log_evidence == f64::NEG_INFINITY && run.calls == settings.particles;
        assert!(annealed(2, &settings, always(f64::NAN)).iter().all(lost));
        let known = Annealed { log_evidence: -3.0, calls: 1 };
        assert_eq!(annealed(0, &settings, always(-3.0)), vec![known; settings.runs]);
        // A half-space that is forbidden costs a factor of 2.
        let half = |z: &[f64], gradient: &mut [f64]| {
            gradient[0] = 0.0;
            if z[0] > 0.0 { 0.0 } else { f64::NAN }
        };
        let (sigmas, se) = off(ParticleMove::Hamiltonian, 1, 0.5f64.ln(), half);
        assert!(sigmas.abs() < 4.0 && se < 0.1, "{sigmas:.2} standard errors of {se:.3}");
    }

    /// The mean of evidences is the evidence: runs that each chose their own steps of β found too little, here by 0.2.
    #[test]
    fn evidences_of_many_runs_have_no_bias() {
        let (dim, s) = (20, 0.3);
        let centre = |i: usize| 0.5 + i as f64 / dim as f64;
        let terms = (0..dim).map(|i| (s / f64::hypot(1.0, s)).ln() - 0.5 * centre(i).powi(2) / (1.0 + s * s));
        let truth: f64 = terms.sum();
        let log_likelihood = move |z: &[f64], gradient: &mut [f64]| {
            let mut log = 0.0;
            for (i, (z, gradient)) in z.iter().zip(gradient).enumerate() {
                let x = (z - centre(i)) / s;
                (log, *gradient) = (log - 0.5 * x * x, -x / s);
            }
            log
        };
        let settings = AnnealSettings { runs: 8, ..AnnealSettings::default() };
        let asked: Vec<((usize, u64), usize)> = (0..settings.runs).map(|run| ((0, 0), run)).collect();
        let blocks = Seen { dim, log_likelihood };
        let workers = Workers::new(2).unwrap();
        let run = |seed| anneal_blocks(&blocks, &asked, &settings, seed, &workers, &mut |_| true).unwrap().unwrap();
        let found = Annealed::join(&(0..12).flat_map(run).collect::<Vec<Annealed>>()).unwrap();
        let off = found.log_evidence - truth;
        assert!(found.se < 0.07 && off.abs() < 2.5 * found.se, "off by {off} ± {}", found.se);
    }
}

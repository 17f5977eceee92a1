//! What particles are asked about: the densities of all proposals of all populations at once.

use std::time::Instant;

use super::population::{Population, log_reference};
use crate::problem::{BatchError, BlockParticles, Blocks, FreeRows, Problem};
use crate::workers::{Workers, portion_after};

/// Densities of many particles, asked for from one thread.
pub(super) trait Density {
    /// Fills in the log densities of all proposals, not a number where they are undefined, and their gradients. False if it was ended
    /// early, which somebody is asked about every now and then.
    fn look(
        &mut self,
        open: &mut [&mut Population<'_>],
        workers: &Workers,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool, BatchError>;
}

/// Models of a problem, in memory that is kept.
pub(super) struct ModelDensity<'p> {
    problem: &'p dyn Problem,
    rows: FreeRows<'p>,
}

impl<'p> ModelDensity<'p> {
    pub(super) fn new(problem: &'p dyn Problem) -> Self {
        Self { problem, rows: FreeRows::new(problem, 0) }
    }
}

impl Density for ModelDensity<'_> {
    fn look(
        &mut self,
        open: &mut [&mut Population<'_>],
        workers: &Workers,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool, BatchError> {
        let count = open.iter().map(|population| population.proposals.len()).sum();
        if count == 0 {
            return Ok(true);
        }
        if !go_on() {
            return Ok(false);
        }
        if self.rows.len() != count {
            self.rows = FreeRows::new(self.problem, count);
        }
        let mut parts = self.rows.parts_mut(open.iter().map(|population| population.proposals.len()));
        let mut filled: Vec<_> = parts.iter_mut().zip(&*open).collect();
        workers.for_each(&mut filled, |_, (part, population)| population.fill(part));
        self.rows.evaluate(workers)?;
        let (rows, mut next) = (&self.rows, 0);
        let mut firsts = Vec::with_capacity(open.len());
        for population in open {
            firsts.push((next, &mut **population));
            next += firsts.last().map_or(0, |(_, population)| population.proposals.len());
        }
        workers.for_each(&mut firsts, |_, (first, population)| population.read(rows, *first));
        Ok(true)
    }
}

/// Blocks under their keys, seen from their priors: with `ℓ(z)` the log likelihood of standard normal z the density is
/// `exp ℓ(z) N(z; 0, I)`, whose integral is the evidence.
pub(super) struct BlockDensity<'a> {
    blocks: &'a dyn Blocks,
    /// The block and the key of each target.
    keys: &'a [(usize, u64)],
    z: Vec<f64>,
    values: Vec<f64>,
    gradients: Vec<f64>,
    /// Populations that are asked for together.
    portion: usize,
}

impl<'a> BlockDensity<'a> {
    pub(super) fn new(blocks: &'a dyn Blocks, keys: &'a [(usize, u64)]) -> Self {
        Self { blocks, keys, z: Vec::new(), values: Vec::new(), gradients: Vec::new(), portion: MIN_PORTION }
    }
}

/// How many populations are asked for together at first.
const MIN_PORTION: usize = 16;

/// The reference of each coordinate of a block.
pub(super) const STANDARD: (f64, f64) = (0.0, 1.0);

impl Density for BlockDensity<'_> {
    /// All undefined where the problem cannot be seen from its prior.
    fn look(
        &mut self,
        open: &mut [&mut Population<'_>],
        workers: &Workers,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool, BatchError> {
        let Self { blocks, keys, z, values, gradients, portion } = self;
        z.clear();
        let proposals = || open.iter().flat_map(|population| &population.proposals);
        proposals().for_each(|proposal| z.extend_from_slice(&proposal.free));
        values.resize(proposals().count(), 0.0);
        gradients.resize(z.len(), 0.0);
        let mut rest = (&z[..], &mut values[..], &mut gradients[..]);
        let mut particles = Vec::with_capacity(open.len());
        for population in &*open {
            let count = population.proposals.len();
            let numbers: usize = population.proposals.iter().map(|proposal| proposal.free.len()).sum();
            let (block, key) = keys[population.target];
            particles.push(BlockParticles {
                block,
                key,
                z: rest.0.split_off(..numbers).unwrap_or_default(),
                values: rest.1.split_off_mut(..count).unwrap_or_default(),
                gradients: rest.2.split_off_mut(..numbers).unwrap_or_default(),
            });
        }
        let mut is_seen = true;
        let mut rest = &mut particles[..];
        while !rest.is_empty() {
            if !go_on() {
                return Ok(false);
            }
            // Each of them is on its own, so that it does not matter how many are asked for together.
            let some = rest.split_off_mut(..rest.len().min(*portion)).unwrap_or_default();
            let clock = Instant::now();
            is_seen &= blocks.log_likelihood_batch(some, workers)?;
            *portion = portion_after(*portion, clock.elapsed(), workers.threads());
        }
        let mut pairs: Vec<_> = particles.iter().zip(open).collect();
        workers.for_each(&mut pairs, |_, (particles, population)| {
            let population = &mut **population;
            population.calls += particles.values.len();
            let dim = particles.z.len() / particles.values.len().max(1);
            for (row, proposal) in population.proposals.iter_mut().enumerate() {
                let log_likelihood = if is_seen { particles.values[row] } else { f64::NAN };
                let log_prior = log_reference(population.reference, &proposal.active, &proposal.free);
                proposal.log_density = log_likelihood + log_prior;
                let slopes = particles.gradients[row * dim..][..dim].iter().zip(&proposal.free);
                proposal.gradient.iter_mut().zip(slopes).for_each(|(to, (slope, z))| *to = slope - z);
            }
        });
        Ok(true)
    }
}

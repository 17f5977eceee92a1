//! Blocks under their keys, seen from the prior.

use super::particles::{Asked, Targets};
use crate::problem::{BatchError, BlockParticles, Blocks};
use crate::workers::Workers;

/// Blocks under their keys as targets of annealing.
pub(crate) struct BlockTargets<'a> {
    pub(crate) blocks: &'a dyn Blocks,
    /// The block and the key of each target.
    pub(crate) keys: &'a [(usize, u64)],
}

impl Targets for BlockTargets<'_> {
    /// All undefined where the problem cannot be seen from its prior.
    fn log_likelihoods(&mut self, asked: &mut [Asked<'_>], workers: &Workers) -> Result<(), BatchError> {
        let particles = asked.iter_mut().map(|asked| {
            let (block, key) = self.keys[asked.target];
            BlockParticles { block, key, z: asked.z, values: asked.values, gradients: asked.gradients }
        });
        let mut particles: Vec<BlockParticles<'_>> = particles.collect();
        if !self.blocks.log_likelihood_batch(&mut particles, workers)? {
            particles.iter_mut().for_each(|particles| particles.values.fill(f64::NAN));
        }
        Ok(())
    }
}

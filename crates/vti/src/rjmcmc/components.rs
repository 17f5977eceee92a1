//! Moves of chains whose models have any number of components: birth, death, split and merge as the problem declares them, and steps
//! that need no gradient.

use super::batch::{ChainBatch, Move, Proposal};
use crate::problem::{BlockPool, FreeChunk, Jump, Jumps};

/// Steps change at most so many coordinates, by numbers whose standard deviation is a power of ten between these: which one suits is
/// not known beforehand.
const MAX_CHANGED: u64 = 3;
const LOG_WIDTHS: (f64, f64) = (-2.5, 0.3);

impl ChainBatch<'_> {
    /// Proposes another number of components.
    pub(super) fn propose_jump(&mut self, chain: usize, jumps: &dyn Jumps, rows: &mut FreeChunk<'_>) -> Proposal {
        let walker = &mut self.walkers[chain];
        let constraints = self.problem.constraints();
        let natural_dim = constraints.map_or(walker.free.len(), |constraints| constraints.natural_dim(&walker.active));
        let mut theta = walker.free.clone();
        if let Some(constraints) = constraints {
            theta.resize(natural_dim, 0.0);
            constraints.to_natural(&walker.active, &walker.free, &mut theta);
        }
        let mut word = walker.word.clone();
        let proposed = jumps.propose(&mut word, &mut theta, &BlockPool::default(), &mut walker.stream);
        let before = walker.log_jacobian;
        let Some((jump, log_ratio)) = proposed else { return self.stay(chain, rows) };
        rows.row(chain).word.copy_from_slice(&word);
        rows.mark_active(chain, &mut self.mask);
        let row = rows.row(chain);
        let free = &mut row.free[..row.active.len()];
        let after = match constraints {
            Some(constraints) => constraints.to_free(row.active, &theta, free),
            None => {
                free.copy_from_slice(&theta);
                0.0
            }
        };
        let log_prior = self.problem.log_prior(&word);
        if !(log_prior + log_ratio + after).is_finite() || free.iter().any(|u| !u.is_finite()) {
            return self.stay(chain, rows);
        }
        let kind = match jump {
            Jump::Birth => Move::Birth,
            Jump::Death => Move::Death,
            Jump::Split | Jump::Merge => Move::Swap,
        };
        // Targets are densities of free parameters on both sides.
        Proposal { kind, log_prior, log_ratio: log_ratio + before - after }
    }

    /// A random step of a few coordinates.
    pub(super) fn propose_few(&mut self, chain: usize, rows: &mut FreeChunk<'_>) -> Proposal {
        let proposal = self.stay(chain, rows);
        let walker = &mut self.walkers[chain];
        let dim = walker.active.len() as u64;
        if dim == 0 {
            return proposal;
        }
        let free = rows.row(chain).free;
        for _ in 0..=walker.stream.below(MAX_CHANGED.min(dim)) {
            let place = walker.stream.below(dim) as usize;
            let width = 10f64.powf(LOG_WIDTHS.0 + (LOG_WIDTHS.1 - LOG_WIDTHS.0) * walker.stream.uniform());
            free[place] += width * walker.stream.normal();
        }
        Proposal { kind: Move::Within, ..proposal }
    }
}

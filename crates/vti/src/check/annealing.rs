//! Runs of annealed particles for blocks under their keys.

use std::collections::BTreeMap;

use super::importance::Watch;
use crate::evidence::{self, AnnealSettings, BlockTargets, Population};
use crate::problem::{BatchError, Blocks};
use crate::random::{Purpose, Stream};
use crate::workers::Workers;

/// A block and its key.
pub(super) type BlockKey = (usize, u64);

/// Runs that go side by side, between two reports of how far it has come.
const RUNS_TOGETHER: usize = 128;

/// Log evidences that runs found, one list for each key.
pub(super) struct Annealing<'a> {
    blocks: &'a dyn Blocks,
    seed: u64,
    pub(super) settings: &'a AnnealSettings,
    watch: Watch<'a>,
    pub(super) runs: BTreeMap<BlockKey, Vec<f64>>,
    /// Whether somebody wanted no more.
    pub(super) is_ended: bool,
}

impl<'a> Annealing<'a> {
    pub(super) fn new(blocks: &'a dyn Blocks, seed: u64, settings: &'a AnnealSettings, watch: Watch<'a>) -> Self {
        Self { blocks, seed, settings, watch, runs: BTreeMap::new(), is_ended: false }
    }

    /// So many more runs for each of these keys.
    pub(super) fn run(&mut self, workers: &Workers, wanted: &[BlockKey], more: usize) -> Result<(), BatchError> {
        let mut mask = vec![false; self.blocks.width()];
        let (mut keys, mut populations) = (Vec::new(), Vec::new());
        for &(block, key) in wanted {
            self.blocks.mark_active(block, key, &mut mask);
            let dim = mask.iter().filter(|&&active| active).count();
            let before = self.runs.get(&(block, key)).map_or(0, Vec::len);
            for run in before..before + more {
                let stream = Stream::new(self.seed, Purpose::Anneal, (block as u64) << 32 | run as u64, key);
                populations.push(Population::new(keys.len(), dim, self.settings, stream));
            }
            keys.push((block, key));
        }
        let mut targets = BlockTargets { blocks: self.blocks, keys: &keys };
        let mut done: usize = self.runs.values().map(Vec::len).sum();
        let total = done + populations.len();
        let before = done;
        for part in populations.chunks_mut(RUNS_TOGETHER) {
            if !(self.watch)(done, total) {
                self.is_ended = true;
                break;
            }
            evidence::anneal(part, &mut targets, self.settings, workers)?;
            done += part.len();
        }
        if done == total {
            (self.watch)(done, total);
        }
        for population in &populations[..done - before] {
            self.runs.entry(keys[population.target()]).or_default().push(population.log_evidence());
        }
        Ok(())
    }
}

//! Runs of annealed particles for blocks under their keys.

use std::collections::BTreeMap;

use super::importance::Watch;
use crate::problem::{BatchError, Blocks};
use crate::smc::{AnnealSettings, Annealed, GoOn, anneal_blocks};
use crate::workers::Workers;

/// A block and its key.
pub(super) type BlockKey = (usize, u64);

/// Runs that go side by side, between two reports of how far it has come.
const RUNS_TOGETHER: usize = 128;

/// Training takes about so many times as long as its densities do, which are all that annealing takes.
const WORK_OF_TRAINING: f64 = 5.0;

/// What annealing may take however little training took, some seconds: a few nodes are trained in less than their evidences take.
const MIN_WORK: f64 = 5e10;

/// What runs found, one list for each key.
pub(super) type Runs = BTreeMap<BlockKey, Vec<Annealed>>;

/// Anneals blocks under their keys.
pub(super) struct Annealing<'a> {
    blocks: &'a dyn Blocks,
    seed: u64,
    pub(super) settings: &'a AnnealSettings,
    /// Multiplications that densities may take in all.
    work: f64,
    watch: Watch<'a>,
    pub(super) runs: Runs,
    /// Whether somebody wanted no more.
    pub(super) is_ended: bool,
}

impl<'a> Annealing<'a> {
    /// From earlier runs on. `trained` are the multiplications that densities took in training.
    pub(super) fn new(
        blocks: &'a dyn Blocks,
        seed: u64,
        (settings, trained): (&'a AnnealSettings, f64),
        runs: Runs,
        watch: Watch<'a>,
    ) -> Self {
        let work = settings.effort * settings.work.unwrap_or(MIN_WORK.max(WORK_OF_TRAINING * trained));
        Self { blocks, seed, settings, work, watch, runs, is_ended: false }
    }

    /// How many of these keys, from the first on, may have so many more runs each, given what densities may take. Nothing is known of
    /// their calls before the first runs, and these are not counted.
    pub(super) fn affordable(&self, wanted: &[BlockKey], more: usize) -> usize {
        let work = |&(block, key): &BlockKey| self.blocks.work(block, key);
        let (mut calls, mut count, mut spent) = (0, 0, 0.0);
        for (key, runs) in &self.runs {
            let of_key: usize = runs.iter().map(|run| run.calls).sum();
            (calls, count, spent) = (calls + of_key, count + runs.len(), spent + of_key as f64 * work(key));
        }
        let expected = more as f64 * calls as f64 / (count as f64).max(1.0);
        let fits = |key: &&BlockKey| {
            spent += expected * work(key);
            count == 0 || spent <= self.work
        };
        wanted.iter().take_while(fits).count()
    }

    /// So many more runs for each of these keys.
    pub(super) fn run(&mut self, workers: &Workers, wanted: &[BlockKey], more: usize) -> Result<(), BatchError> {
        let before = |key: &BlockKey| self.runs.get(key).map_or(0, Vec::len);
        let asked: Vec<(BlockKey, usize)> =
            wanted.iter().flat_map(|key| (before(key)..before(key) + more).map(move |run| (*key, run))).collect();
        let mut done: usize = self.runs.values().map(Vec::len).sum();
        let total = done + asked.len();
        for part in asked.chunks(RUNS_TOGETHER) {
            if !(self.watch)(done, total) {
                self.is_ended = true;
                return Ok(());
            }
            let go_on: GoOn<'_> = &mut |share| (self.watch)(done + (share * part.len() as f64) as usize, total);
            let Some(found) = anneal_blocks(self.blocks, part, self.settings, self.seed, workers, go_on)? else {
                self.is_ended = true;
                return Ok(());
            };
            for (&(key, _), run) in part.iter().zip(found) {
                self.runs.entry(key).or_default().push(run);
            }
            done += part.len();
        }
        (self.watch)(done, total);
        Ok(())
    }
}

//! Asking a problem for its estimates: of all keys of every block, or of as many as there is time for.
//!
//! An estimate may take a tenth of a second, and there may be ten thousand of them. So keys are asked for a few at a time, and between
//! two portions somebody may end it. Where time is limited, all blocks are searched by ever wider beams: whatever is there when time is
//! up are the most promising keys of every block.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Instant;

use super::ModularSettings;
use super::table::{Beam, search};
use crate::models::{Prepared, Preparing};
use crate::problem::{BlockModels, Blocks};
use crate::workers::{Workers, portion_after};

/// Why asking ends before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Halt {
    /// Somebody wants no more at all.
    Stopped,
    /// It has taken long enough.
    TimeIsUp,
}

/// Estimates of log evidences by key, for each block.
pub(super) type Estimates = Vec<BTreeMap<u64, f64>>;

/// A problem that is asked.
pub(super) struct Asking<'a, 'p> {
    blocks: &'a dyn Blocks,
    models: &'a dyn BlockModels,
    settings: &'a ModularSettings,
    workers: &'a Workers,
    preparing: &'a mut Preparing<'p>,
    found: Estimates,
    /// Keys of a portion.
    portion: usize,
    begun: Instant,
    /// Blocks that are done, and the share of the next one.
    done: (usize, f64),
}

/// Parts of a block by which progress is told.
const PARTS: usize = 1000;

impl<'a, 'p> Asking<'a, 'p> {
    pub(super) fn new(
        (blocks, models): (&'a dyn Blocks, &'a dyn BlockModels),
        settings: &'a ModularSettings,
        workers: &'a Workers,
        preparing: &'a mut Preparing<'p>,
    ) -> Self {
        let (found, portion) = (vec![BTreeMap::new(); blocks.count()], workers.threads());
        Self { blocks, models, settings, workers, preparing, found, portion, begun: Instant::now(), done: (0, 0.0) }
    }

    /// All that is to be known, or as much as there is time for.
    pub(super) fn run(mut self) -> ControlFlow<(), (Estimates, Prepared)> {
        let asked = if self.preparing.until.is_some() { self.widen() } else { self.ask_all(None) };
        match asked {
            ControlFlow::Break(Halt::Stopped) => ControlFlow::Break(()),
            ControlFlow::Break(Halt::TimeIsUp) => ControlFlow::Continue((self.found, Prepared::Cut)),
            ControlFlow::Continue(()) => ControlFlow::Continue((self.found, Prepared::Whole)),
        }
    }

    /// All keys of every block, or those that a search finds.
    fn ask_all(&mut self, until: Option<Instant>) -> ControlFlow<Halt> {
        for block in 0..self.blocks.count() {
            self.done = (block, 0.0);
            match self.models.all_keys(block, self.settings.most_sets) {
                Some(keys) => drop(self.estimate(block, &keys, until)?),
                None => self.search(block, Beam::of(self.settings.beam), until)?,
            }
        }
        self.done = (self.blocks.count(), 0.0);
        self.tell(None)
    }

    /// The smallest key of every block, however long that takes; then searches by wider and wider beams, in each of which all blocks
    /// have the same share of the time that is left; then all.
    fn widen(&mut self) -> ControlFlow<Halt> {
        let (count, until) = (self.blocks.count(), self.preparing.until);
        for block in 0..count {
            self.estimate(block, &[self.models.smallest_key(block)], None)?;
        }
        let mut width = 1;
        while width < self.settings.beam {
            for block in 0..count {
                let share = |until: Instant| {
                    let now = Instant::now();
                    now + until.saturating_duration_since(now) / (count - block) as u32
                };
                match self.search(block, Beam::narrow(width), until.map(share)) {
                    ControlFlow::Break(Halt::TimeIsUp) => {}
                    other => other?,
                }
            }
            self.check_time(until)?;
            width *= 2;
        }
        self.ask_all(until)
    }

    fn search(&mut self, block: usize, beam: Beam, until: Option<Instant>) -> ControlFlow<Halt> {
        let models = self.models;
        search(models, block, beam, |keys| self.estimate(block, &keys, until))?;
        ControlFlow::Continue(())
    }

    /// Estimates of these keys of a block, from before or found now, a few at a time.
    fn estimate(&mut self, block: usize, keys: &[u64], until: Option<Instant>) -> ControlFlow<Halt, Vec<(u64, f64)>> {
        let unknown: Vec<u64> = keys.iter().copied().filter(|key| !self.found[block].contains_key(key)).collect();
        let mut rest = &unknown[..];
        while !rest.is_empty() {
            let portion = rest.split_off(..self.portion.min(rest.len())).unwrap_or_default();
            let clock = Instant::now();
            let mut estimates: Vec<(u64, f64)> = portion.iter().map(|&key| (key, 0.0)).collect();
            self.workers.for_each(&mut estimates, |_, (key, estimate)| {
                let found = self.blocks.log_evidence_estimate(block, *key);
                *estimate = if found.is_nan() { f64::NEG_INFINITY } else { found };
            });
            self.found[block].extend(estimates);
            self.portion = portion_after(self.portion, clock.elapsed(), self.workers.threads());
            self.done.1 = 1.0 - rest.len() as f64 / unknown.len() as f64;
            self.tell(until)?;
        }
        let found = &self.found[block];
        ControlFlow::Continue(keys.iter().filter_map(|key| Some((*key, *found.get(key)?))).collect())
    }

    /// Says how far it has come, and hears whether to go on.
    fn tell(&mut self, until: Option<Instant>) -> ControlFlow<Halt> {
        let all = self.blocks.count() * PARTS;
        let done = match self.preparing.until {
            None => self.done.0 * PARTS + (self.done.1 * PARTS as f64) as usize,
            // Time is what ends it.
            Some(until) => {
                let whole = until.saturating_duration_since(self.begun).as_secs_f64().max(1e-9);
                ((self.begun.elapsed().as_secs_f64() / whole * all as f64) as usize).min(all)
            }
        };
        (self.preparing.watch)(done, all).map_break(|()| Halt::Stopped)?;
        self.check_time(until)
    }

    fn check_time(&self, until: Option<Instant>) -> ControlFlow<Halt> {
        match until {
            Some(until) if Instant::now() >= until => ControlFlow::Break(Halt::TimeIsUp),
            _ => ControlFlow::Continue(()),
        }
    }
}

//! Mean-field fits of nodes given their parents, each found once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::{MeanFieldFit, Start};
use crate::state::{State, StateError};

/// By node and parents; none where there is none to be found.
type Known = HashMap<(usize, u64), Option<Arc<MeanFieldFit>>>;

/// The mean-field fits met so far.
#[derive(Debug, Default)]
pub(super) struct Fits {
    known: Mutex<Known>,
    /// Whether estimates are of no use any more.
    stop: OnceLock<Arc<AtomicBool>>,
}

/// Finds a fit of a node given its parents from these starts, unless somebody does not want it any more.
pub(super) type Find<'a> = dyn Fn(usize, u64, &[Start<'_>], &dyn Fn() -> bool) -> Option<MeanFieldFit> + 'a;

impl Fits {
    /// The first flag that is given counts.
    pub(super) fn heed(&self, stop: Arc<AtomicBool>) {
        let _ = self.stop.set(stop);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.get().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing is left half done where a thread panics.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All fits, those of a node after those of another: node and parents, the latter in two halves, how many parameters, and these.
    pub(super) fn findings(&self) -> State {
        let fits = self.known();
        let mut known: Vec<(&(usize, u64), &Arc<MeanFieldFit>)> =
            fits.iter().filter_map(|(key, fit)| Some((key, fit.as_ref()?))).collect();
        known.sort_unstable_by_key(|(key, _)| **key);
        let mut state = State::default();
        if known.is_empty() {
            return state;
        }
        let keys = known.iter().flat_map(|((node, parents), fit)| {
            [*node as f64, (parents >> 32) as f64, (parents & 0xffff_ffff) as f64, fit.location.len() as f64]
        });
        state.put("fits", &keys.collect::<Vec<f64>>());
        state.put("lower_bounds", &known.iter().map(|(_, fit)| fit.lower_bound).collect::<Vec<f64>>());
        state.put("locations", &known.iter().flat_map(|(_, fit)| fit.location.iter().copied()).collect::<Vec<f64>>());
        state.put("precisions", &known.iter().flat_map(|(_, fit)| fit.precision.iter().copied()).collect::<Vec<f64>>());
        state
    }

    /// Takes fits that were found before; `dim` says how many parameters a node given its parents has, if there can be such.
    pub(super) fn restore(
        &self,
        state: &mut State,
        dim: &dyn Fn(usize, u64) -> Option<usize>,
    ) -> Result<(), StateError> {
        let keys = state.take_counts("fits", None, (1u64 << 32) as f64)?;
        let bounds = state.take::<f64>("lower_bounds", keys.len() / 4)?;
        let parents_of = |key: &[usize]| (key[1] as u64) << 32 | key[2] as u64;
        if !keys.chunks_exact(4).all(|key| dim(key[0], parents_of(key)) == Some(key[3])) {
            return Err(StateError::Values { name: "fits".into(), expected: "nodes with their parents" });
        }
        let count = keys.chunks_exact(4).map(|key| key[3]).sum();
        let (locations, precisions) = (state.take::<f64>("locations", count)?, state.take::<f64>("precisions", count)?);
        let (mut fits, mut start) = (self.known(), 0);
        for (key, lower_bound) in keys.chunks_exact(4).zip(bounds) {
            let place = start..start + key[3];
            start = place.end;
            let (location, precision) = (locations[place.clone()].to_vec(), precisions[place].to_vec());
            let fit = MeanFieldFit { location, precision, lower_bound };
            fits.insert((key[0], parents_of(key)), Some(Arc::new(fit)));
        }
        Ok(())
    }

    /// The better of two fits: reached from random weights, and from what was found without the last parent. A pure function,
    /// however often and in whatever order it is asked. None where nobody wants it any more by the time it is found.
    pub(super) fn of(
        &self,
        node: usize,
        parents: u64,
        find: &Find<'_>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Option<Arc<MeanFieldFit>> {
        if let Some(known) = self.known().get(&(node, parents)) {
            return known.clone();
        }
        let fewer = parents & !(1u64.checked_shl(63 - parents.leading_zeros().min(63)).unwrap_or(0));
        let nearby = if fewer == 0 { None } else { self.of(node, fewer, find, is_stopped) };
        let mut starts = vec![Start::Random(0)];
        starts.extend(nearby.as_deref().map(|fit| Start::Near { parents: fewer, fit }));
        let found = find(node, parents, &starts, is_stopped).map(Arc::new);
        // What was ended is no fit.
        if is_stopped() {
            return None;
        }
        self.known().insert((node, parents), found.clone());
        found
    }
}

/// Whether a node may have these parents, of so many nodes.
pub(super) fn are_parents(node: usize, parents: u64, nodes: usize) -> bool {
    node < nodes && parents & (1u64 << node.min(63)) == 0 && parents.checked_shr(nodes as u32).unwrap_or(0) == 0
}

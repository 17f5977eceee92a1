//! Every interleaving of a caller and its helpers, as far as memory orders allow, tried by a model checker: each task runs
//! exactly once, nobody touches the closure after the caller has gone on, and what helpers wrote is seen.
//!
//! The file that is checked is the library's own, compiled here with the checker's atomics and cells.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../src/workers/region.rs"]
#[allow(dead_code)]
mod region;

/// In place of the library's own.
mod sync {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
}

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use region::Region;

/// Numbers that tasks write to, each to its own.
struct Cells(Vec<UnsafeCell<usize>>);

// SAFETY: the checker itself finds out whether two threads meet at one cell.
#[allow(unsafe_code)]
unsafe impl Sync for Cells {}

impl Cells {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| UnsafeCell::new(0)).collect())
    }

    fn add(&self, index: usize) {
        // SAFETY: checked by the model.
        #[allow(unsafe_code)]
        self.0[index].with_mut(|cell| unsafe { *cell += 1 });
    }

    fn sum(&self) -> usize {
        // SAFETY: checked by the model.
        #[allow(unsafe_code)]
        self.0.iter().map(|cell| cell.with(|cell| unsafe { *cell })).sum()
    }
}

/// Tries all interleavings with up to three switches of threads that were not asked for: more find nothing new in a protocol of
/// this size, and take hours.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

/// One call of `count` tasks, as the library makes it; the number of times each task ran.
fn call(region: &Region, count: usize) {
    if !region.claim() {
        return;
    }
    let cells = Cells::new(count);
    let work = |index: usize| cells.add(index);
    // SAFETY: the region was claimed, and is closed below, before the closure ends.
    #[allow(unsafe_code)]
    unsafe {
        region.open(count, &work);
    }
    while let Some(index) = region.take() {
        work(index);
    }
    assert!(!region.close(loom::thread::yield_now));
    assert_eq!(cells.sum(), count);
}

#[test]
fn a_helper_takes_part_in_calls_one_after_another() {
    model(|| {
        let region = Arc::new(Region::default());
        let helper = {
            let region = Arc::clone(&region);
            loom::thread::spawn(move || {
                region.help();
                region.help();
            })
        };
        call(&region, 2);
        call(&region, 1);
        helper.join().unwrap();
    });
}

#[test]
fn two_callers_share_a_region_with_a_helper() {
    model(|| {
        let region = Arc::new(Region::default());
        let others: Vec<_> = [false, true]
            .map(|calls| {
                let region = Arc::clone(&region);
                loom::thread::spawn(move || {
                    if calls {
                        call(&region, 1);
                    } else {
                        let _ = region.help();
                    }
                })
            })
            .into();
        call(&region, 1);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

//! One call's tasks, and the protocol by which helpers take part in it.
//!
//! Everything that helpers and callers share about a region hangs on one word of memory, its state: whether it is open, and how
//! many helpers are inside. A helper counts itself in and learns in the same step whether the region is open; a caller closes it
//! and then waits until nobody is inside. `tests/interleavings.rs` has every interleaving of this file's operations tried by a
//! model checker, for which atomics and cells come from the module above.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::sync::{AtomicBool, AtomicUsize, Ordering, UnsafeCell};

/// Set in a region's state while it is open; the rest of the state counts the helpers inside.
const OPEN: usize = 1 << (usize::BITS - 1);

/// A borrowed closure whose lifetime is kept by protocol: see [`Region`].
type Work = *const (dyn Fn(usize) + Sync);

/// Tasks `0..count` of one call.
#[derive(Debug, Default)]
pub(super) struct Region {
    /// Whether a caller has it.
    taken: AtomicBool,
    state: AtomicUsize,
    next: AtomicUsize,
    count: AtomicUsize,
    panicked: AtomicBool,
    work: UnsafeCell<Option<Work>>,
}

// SAFETY: `work` is written only by the thread that has `taken` the region, while it is not open; whoever was inside has left
// before the region was given back. It is read only by helpers who, when they counted themselves in, found the region open: the
// write comes before the opening, which they acquire. The closure outlives all helpers because the caller waits for them.
#[allow(unsafe_code)]
unsafe impl Sync for Region {}
// SAFETY: as above; the pointer is only followed under that protocol.
#[allow(unsafe_code)]
unsafe impl Send for Region {}

impl Region {
    /// Takes the region, if nobody has it.
    pub(super) fn claim(&self) -> bool {
        !self.taken.swap(true, Ordering::Acquire)
    }

    /// Opens a claimed region for `count` tasks.
    ///
    /// # Safety
    ///
    /// The region was claimed, is not open, and [`Region::close`] is called before `work` ends.
    #[allow(unsafe_code)]
    pub(super) unsafe fn open(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        // SAFETY: the lifetime is erased; the caller promises that the region is closed before it ends.
        let work = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Work>(std::ptr::from_ref(work)) };
        // SAFETY: the region is ours and closed, so nobody reads the cell.
        self.work.with_mut(|cell| unsafe { *cell = Some(work) });
        self.next.store(0, Ordering::Relaxed);
        self.count.store(count, Ordering::Relaxed);
        self.panicked.store(false, Ordering::Relaxed);
        self.state.fetch_or(OPEN, Ordering::Release);
    }

    /// The next task nobody has.
    pub(super) fn take(&self) -> Option<usize> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.count.load(Ordering::Relaxed)).then_some(index)
    }

    /// Does tasks while there are any; whether there were.
    #[allow(unsafe_code)]
    pub(super) fn help(&self) -> bool {
        // A look without writing first: most regions are closed most of the time.
        if self.state.load(Ordering::Relaxed) & OPEN == 0
            || self.next.load(Ordering::Relaxed) >= self.count.load(Ordering::Relaxed)
        {
            return false;
        }
        let mut helped = false;
        if self.state.fetch_add(1, Ordering::Acquire) & OPEN != 0 {
            // SAFETY: we are counted in and the region was open then, so its caller waits for us before the closure ends.
            let work = self.work.with(|cell| unsafe { (*cell).map(|work| &*work) });
            while let (Some(work), Some(index)) = (work, self.take()) {
                helped = true;
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| work(index))) {
                    self.panicked.store(true, Ordering::Relaxed);
                    // A payload that panics when dropped would keep us from leaving the region.
                    std::mem::forget(payload);
                }
            }
        }
        self.state.fetch_sub(1, Ordering::Release);
        helped
    }

    /// Closes the region, calls `wait` until its helpers have left, and gives it back; whether a task panicked.
    pub(super) fn close(&self, mut wait: impl FnMut()) -> bool {
        self.state.fetch_and(!OPEN, Ordering::AcqRel);
        while self.state.load(Ordering::Acquire) != 0 {
            wait();
        }
        let panicked = self.panicked.load(Ordering::Relaxed);
        self.taken.store(false, Ordering::Release);
        panicked
    }
}

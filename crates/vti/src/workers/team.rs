//! Threads that share out indexed tasks.
//!
//! A training step is some hundred short operations. A general work-stealing pool puts idle threads to sleep within
//! microseconds and pays for waking them at every operation; on small networks that costs more than the second core brings.
//! Here idle threads keep looking for work for a fraction of a millisecond before they sleep, tasks are handed out by one
//! atomic counter, and nothing allocates. Regions may be nested: whoever is idle helps wherever tasks are left.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long an idle thread looks for work before it sleeps.
pub(super) const PATIENCE: Duration = Duration::from_micros(300);

/// The caller's thread and its helpers.
#[derive(Debug)]
pub(super) struct Team {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    /// Regions that may be open at the same time; a region that finds none free is run by its caller alone.
    regions: Box<[Region]>,
    /// Counts regions opened so far: a helper does not sleep if it has changed.
    opened: AtomicUsize,
    sleeping: AtomicUsize,
    stop: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
}

/// Tasks `0..count` of one call.
#[derive(Debug, Default)]
struct Region {
    taken: AtomicBool,
    open: AtomicBool,
    /// Helpers inside: the caller does not return before they have left.
    helpers: AtomicUsize,
    next: AtomicUsize,
    count: AtomicUsize,
    panicked: AtomicBool,
    work: UnsafeCell<Option<Work>>,
}

/// A borrowed closure whose lifetime is kept by protocol: see `Region`.
type Work = *const (dyn Fn(usize) + Sync);

// SAFETY: `work` is written only by the thread that has `taken` the region, while it is not `open` and no helper is inside;
// it is read only by helpers that have counted themselves in and then found the region open. All of these are sequentially
// consistent, so reading and writing never overlap, and the closure outlives all helpers because the caller waits for them.
#[allow(unsafe_code)]
unsafe impl Sync for Region {}
// SAFETY: as above; the pointer is only followed under that protocol.
#[allow(unsafe_code)]
unsafe impl Send for Region {}

impl Team {
    /// A team of `threads` threads, the caller's included.
    pub(super) fn new(threads: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            regions: (0..4 * threads).map(|_| Region::default()).collect(),
            opened: AtomicUsize::new(0),
            sleeping: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        });
        let mut team = Self { shared, helpers: Vec::with_capacity(threads) };
        for index in 1..threads {
            let shared = Arc::clone(&team.shared);
            let helper = std::thread::Builder::new().name(format!("vti-{index}")).spawn(move || shared.help())?;
            team.helpers.push(helper);
        }
        Ok(team)
    }

    /// Number of threads, the caller's included.
    pub(super) fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Calls `work` once for every index below `count`, from several threads, and returns when all calls have.
    #[allow(unsafe_code)]
    pub(super) fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        let free = |region: &&Region| !region.taken.swap(true, Ordering::SeqCst);
        let Some(region) = self.shared.regions.iter().find(free) else {
            (0..count).for_each(work);
            return;
        };
        // SAFETY: the region is ours and closed (see `Region`). The lifetime is erased; `Closing` keeps it.
        unsafe {
            let work = std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Work>(std::ptr::from_ref(work));
            *region.work.get() = Some(work);
        }
        region.next.store(0, Ordering::SeqCst);
        region.count.store(count, Ordering::SeqCst);
        region.panicked.store(false, Ordering::SeqCst);
        region.open.store(true, Ordering::SeqCst);
        // On every way out, unwinding included.
        let closing = Closing { region, shared: &self.shared };
        self.shared.opened.fetch_add(1, Ordering::SeqCst);
        if self.shared.sleeping.load(Ordering::SeqCst) > 0 {
            let _guard = self.shared.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.shared.wake.notify_all();
        }
        while let Some(index) = region.take() {
            work(index);
        }
        drop(closing);
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        {
            let _guard = self.shared.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.shared.wake.notify_all();
        }
        for helper in self.helpers.drain(..) {
            // A helper catches the panics of tasks, so it has none of its own to report.
            let _ = helper.join();
        }
    }
}

/// Closes a region and waits until its helpers have left, helping elsewhere meanwhile.
struct Closing<'a> {
    region: &'a Region,
    shared: &'a Shared,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let region = self.region;
        region.open.store(false, Ordering::SeqCst);
        let mut looks = 0u32;
        while region.helpers.load(Ordering::SeqCst) > 0 {
            if !std::thread::panicking() && self.shared.regions.iter().any(Region::help) {
                continue;
            }
            looks += 1;
            // Give way where there are more threads than cores.
            if looks.is_multiple_of(1024) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        let panicked = region.panicked.load(Ordering::SeqCst);
        region.taken.store(false, Ordering::SeqCst);
        if panicked && !std::thread::panicking() {
            panic!("a task panicked on another thread");
        }
    }
}

impl Region {
    /// The next task nobody has.
    fn take(&self) -> Option<usize> {
        let index = self.next.fetch_add(1, Ordering::SeqCst);
        (index < self.count.load(Ordering::SeqCst)).then_some(index)
    }

    /// Does tasks while there are any; whether there were.
    #[allow(unsafe_code)]
    fn help(&self) -> bool {
        // A look without writing first: most regions are closed most of the time.
        if !self.open.load(Ordering::Relaxed) || self.next.load(Ordering::Relaxed) >= self.count.load(Ordering::Relaxed)
        {
            return false;
        }
        self.helpers.fetch_add(1, Ordering::SeqCst);
        let mut helped = false;
        if self.open.load(Ordering::SeqCst) {
            // SAFETY: we are counted in and the region is open, so its caller waits for us before the closure ends.
            let work = unsafe { (*self.work.get()).map(|work| &*work) };
            while let (Some(work), Some(index)) = (work, self.take()) {
                helped = true;
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| work(index))) {
                    self.panicked.store(true, Ordering::SeqCst);
                    // A payload that panics when dropped would keep us from leaving the region.
                    std::mem::forget(payload);
                }
            }
        }
        self.helpers.fetch_sub(1, Ordering::SeqCst);
        helped
    }
}

impl Shared {
    /// The life of a helper.
    fn help(&self) {
        let mut idle_since = Instant::now();
        while !self.stop.load(Ordering::SeqCst) {
            let opened = self.opened.load(Ordering::SeqCst);
            let helped = self.regions.iter().any(Region::help);
            if helped {
                idle_since = Instant::now();
            } else if idle_since.elapsed() < PATIENCE {
                (0..32).for_each(|_| std::hint::spin_loop());
            } else {
                self.sleep(opened);
                idle_since = Instant::now();
            }
        }
    }

    /// Sleeps unless a region was opened after `opened` was read.
    fn sleep(&self, opened: usize) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        while self.opened.load(Ordering::SeqCst) == opened && !self.stop.load(Ordering::SeqCst) {
            guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_nested_regions_than_places_still_finish() {
        fn descend(team: &Team, depth: usize, count: &AtomicUsize) {
            if depth == 0 {
                count.fetch_add(1, Ordering::SeqCst);
            } else {
                team.run(2, &|_| descend(team, depth - 1, count));
            }
        }
        let team = Team::new(2).expect("threads");
        let count = AtomicUsize::new(0);
        descend(&team, 12, &count);
        assert_eq!(count.load(Ordering::SeqCst), 1 << 12);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_goes_on() {
        let team = Team::new(2).expect("threads");
        for bad in 0..40 {
            let attempt = catch_unwind(AssertUnwindSafe(|| {
                team.run(40, &|index| {
                    std::thread::sleep(Duration::from_micros(5));
                    assert!(index != bad, "as planned");
                });
            }));
            assert!(attempt.is_err());
        }
        let count = AtomicUsize::new(0);
        team.run(100, &|_| _ = count.fetch_add(1, Ordering::SeqCst));
        assert_eq!(count.load(Ordering::SeqCst), 100);
    }
}

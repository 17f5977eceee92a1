//! Threads that share out indexed tasks.
//!
//! A training step is some hundred short operations. A general work-stealing pool puts idle threads to sleep within
//! microseconds and pays for waking them at every operation; on small networks that costs more than the second core brings.
//! Here idle threads keep looking for work for a fraction of a millisecond before they sleep, giving way to other programs all the
//! while, tasks are handed out by one atomic counter, and nothing allocates. Regions may be nested: whoever is idle helps wherever tasks are left.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::region::Region;

/// How long an idle thread looks for work before it sleeps.
pub(super) const PATIENCE: Duration = Duration::from_micros(300);

/// How long it keeps its core meanwhile. After that every look gives way to whoever else wants the core: where nobody does, that
/// costs less than a microsecond; where several runs share the cores, a thread that waits would keep others from working, perhaps
/// the very one that it waits for.
const EAGER: Duration = Duration::from_micros(20);

/// Looks of a caller, a few microseconds, before it gives way likewise.
const EAGER_LOOKS: u32 = 128;

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
        let Some(region) = self.shared.regions.iter().find(|region| region.claim()) else {
            (0..count).for_each(work);
            return;
        };
        // SAFETY: the region was claimed just now, and `closing` closes it on every way out, unwinding included.
        unsafe { region.open(count, work) };
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
        let mut looks = 0u32;
        let panicked = self.region.close(|| {
            if std::thread::panicking() || !self.shared.regions.iter().any(Region::help) {
                looks = looks.saturating_add(1);
                if looks > EAGER_LOOKS { std::thread::yield_now() } else { std::hint::spin_loop() }
            }
        });
        if panicked && !std::thread::panicking() {
            panic!("a task panicked on another thread");
        }
    }
}

impl Shared {
    /// The life of a helper.
    fn help(&self) {
        let mut idle_since = Instant::now();
        while !self.stop.load(Ordering::SeqCst) {
            let opened = self.opened.load(Ordering::SeqCst);
            if self.regions.iter().any(Region::help) {
                idle_since = Instant::now();
                continue;
            }
            match idle_since.elapsed() {
                idle if idle < EAGER => (0..32).for_each(|_| std::hint::spin_loop()),
                idle if idle < PATIENCE => std::thread::yield_now(),
                _ => {
                    self.sleep(opened);
                    idle_since = Instant::now();
                }
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
    use std::panic::{AssertUnwindSafe, catch_unwind};

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

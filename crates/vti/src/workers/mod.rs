//! The host's threads.
//!
//! Densities, checks, chains, annealing, simulation and the CPU device share out their work over [`Workers`]. What is computed
//! never depends on how many there are: tasks are cut by sizes alone, and each writes to a place of its own.

mod parts;
mod region;
mod spare;
mod team;

/// What a region is made of; a model checker puts its own in place of these.
mod sync {
    pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// A cell without any guard.
    #[derive(Debug, Default)]
    pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// Calls `look` with a pointer to read from.
        pub(super) fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
            look(self.0.get())
        }

        /// Calls `change` with a pointer to write to.
        pub(super) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
            change(self.0.get())
        }
    }
}

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) use self::parts::{Chunks, Parts};
pub(crate) use self::spare::Spare;
use self::team::Team;

/// How long a portion of work takes at most, about, after which somebody may want to stop.
const PORTION: Duration = Duration::from_millis(100);

/// A quarter of the most items of a portion.
const MAX_PORTION: usize = 1 << 16;

/// How many items make the next portion, after so many took so long.
pub(crate) fn portion_after(items: usize, took: Duration, threads: usize) -> usize {
    let growth = PORTION.as_secs_f64() / took.as_secs_f64().max(1e-6);
    ((items as f64 * growth) as usize).clamp(threads, threads.max(4 * items.min(MAX_PORTION)))
}

/// The most threads that can be asked for.
const MAX_THREADS: usize = 1024;

/// A number of threads, the caller's included. Clones share them.
///
/// ```
/// use vti::workers::Workers;
///
/// let mut squares = [1, 2, 3, 4];
/// Workers::new(2)?.for_each(&mut squares, |_, number| *number *= *number);
/// assert_eq!(squares, [1, 4, 9, 16]);
/// # Ok::<(), vti::workers::ThreadError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Workers {
    /// None where the caller is alone.
    team: Option<Arc<Team>>,
}

/// Threads that could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not start {threads} threads: {reason}")]
pub struct ThreadError {
    /// How many were asked for.
    pub threads: usize,
    /// What the system said.
    pub reason: String,
}

impl Workers {
    /// The caller's thread alone.
    pub const SINGLE: Self = Self { team: None };

    /// So many threads, the caller's included.
    pub fn new(threads: usize) -> Result<Self, ThreadError> {
        if threads > MAX_THREADS {
            return Err(ThreadError { threads, reason: format!("at most {MAX_THREADS} are supported") });
        }
        if threads <= 1 {
            return Ok(Self::SINGLE);
        }
        let team = Team::new(threads).map_err(|error| ThreadError { threads, reason: error.to_string() })?;
        Ok(Self { team: Some(Arc::new(team)) })
    }

    /// Number of threads, the caller's included.
    pub fn threads(&self) -> usize {
        self.team.as_ref().map_or(1, |team| team.threads())
    }

    /// Calls `work(index, item)` once for every item, from several threads, and returns when all calls have.
    ///
    /// # Panics
    ///
    /// If a call does.
    pub fn for_each<T: Send>(&self, items: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
        self.for_each_part(Chunks::new(items, 1), usize::MAX, |index, item| work(index, &mut item[0]));
    }

    /// As [`Workers::for_each`], for work that may fail: the error of the first item that has one.
    pub fn try_for_each<T: Send, E: Send>(
        &self,
        items: &mut [T],
        work: impl Fn(usize, &mut T) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let first = Mutex::new(None::<(usize, E)>);
        self.for_each(items, |index, item| {
            if let Err(error) = work(index, item) {
                let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                if first.as_ref().is_none_or(|(earlier, _)| index < *earlier) {
                    *first = Some((index, error));
                }
            }
        });
        first.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Calls `work(index, part)` for the first `count` parts.
    // By value: parts are borrowed exclusively for as long as the call takes, and not after.
    #[allow(unsafe_code, clippy::needless_pass_by_value)]
    pub(crate) fn for_each_part<P: Parts>(&self, parts: P, count: usize, work: impl Fn(usize, P::Part) + Sync) {
        let count = count.min(parts.count());
        // SAFETY: every index below `count` is visited once.
        let task = |index: usize| work(index, unsafe { parts.part(index) });
        match &self.team {
            Some(team) if count > 1 => team.run(count, &task),
            _ => (0..count).for_each(task),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once_also_when_nested() {
        let workers = Workers::new(3).expect("threads");
        for round in 0..2_000 {
            let (outer, inner) = (1 + round % 7, 1 + round % 5);
            let mut sums = vec![0usize; outer * inner];
            workers.for_each_part(Chunks::new(&mut sums, inner), usize::MAX, |index, row| {
                workers.for_each(row, |column, cell| *cell += 1 + index * inner + column);
            });
            assert!(sums.iter().enumerate().all(|(place, &sum)| sum == place + 1));
            if round % 500 == 0 {
                // Long enough for the helpers to fall asleep.
                std::thread::sleep(4 * team::PATIENCE);
            }
        }
    }

    #[test]
    fn the_first_error_is_returned_whoever_meets_it() {
        let workers = Workers::new(3).expect("threads");
        for _ in 0..200 {
            let tried = workers.try_for_each(&mut [0; 40], |index, _| if index % 7 == 5 { Err(index) } else { Ok(()) });
            assert_eq!(tried, Err(5));
        }
        assert_eq!(workers.try_for_each(&mut [0; 4], |_, _| Ok::<(), ()>(())), Ok(()));
    }

    #[test]
    fn too_many_threads_are_refused() {
        let error = Workers::new(MAX_THREADS + 1).expect_err("too many");
        assert_eq!((error.threads, Workers::new(0).expect("the caller").threads()), (MAX_THREADS + 1, 1));
    }
}

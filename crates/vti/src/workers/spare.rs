//! Memory that several threads take turns with.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Memory that nobody uses at the moment. A thread takes what another has just put down, so that it stays in a core's caches,
/// and there is no more of it than was ever in use at the same time. Nothing is locked while it is in use.
#[derive(Debug)]
pub(crate) struct Spare<T>(Mutex<Vec<T>>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Spare<T> {
    fn idle(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was put down last, if anything.
    pub(crate) fn take(&self) -> Option<T> {
        self.idle().pop()
    }

    /// Puts memory down for others.
    pub(crate) fn put(&self, memory: T) {
        self.idle().push(memory);
    }

    /// Calls `work` with memory that is spare, or else made.
    pub(crate) fn lend<R, E>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
        work: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut memory = self.take().map_or_else(make, Ok)?;
        let result = work(&mut memory);
        self.put(memory);
        result
    }
}

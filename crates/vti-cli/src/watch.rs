//! A run as a program sees it that started it: how far it has come, and whether it shall pause or stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How far a run has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// In words: what it does, how far that is and how long it will take.
    pub text: String,
    /// Steps of training done; none before and after it.
    pub step: Option<u64>,
    /// Steps that are planned.
    pub steps: Option<u64>,
    /// The bound, averaged over the last steps.
    pub bound: Option<f64>,
    /// Entropy of q(m) in nats.
    pub entropy: Option<f64>,
    /// Seconds that what it does will still take.
    pub seconds_left: Option<f64>,
}

/// A run that is watched. Clones are of the same run.
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    stop: Arc<AtomicBool>,
    is_paused: Mutex<bool>,
    changed: Condvar,
    told: Mutex<Told>,
    notes: Mutex<Vec<String>>,
}

/// What is behind a lock; whoever panicked left a whole value.
fn hold<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    /// Asks the run to stop where it can; a run that is paused goes on to its end.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
        self.go_on();
    }

    /// Whether it was asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }

    /// Lets the run wait at its next step.
    pub fn pause(&self) {
        *hold(&self.0.is_paused) = true;
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        *hold(&self.0.is_paused) = false;
        self.0.changed.notify_all();
    }

    /// Whether it waits, or will at its next step.
    pub fn is_paused(&self) -> bool {
        *hold(&self.0.is_paused)
    }

    /// How far it has come.
    pub fn told(&self) -> Told {
        hold(&self.0.told).clone()
    }

    /// What the user should know about how the data were understood and what is done with them.
    pub fn notes(&self) -> Vec<String> {
        hold(&self.0.notes).clone()
    }

    pub(crate) fn tell(&self, told: Told) {
        *hold(&self.0.told) = told;
    }

    pub(crate) fn note(&self, text: &str) {
        hold(&self.0.notes).push(text.into());
    }

    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0.stop)
    }

    /// Returns once it is not paused.
    pub(crate) fn wait(&self) {
        let mut is_paused = hold(&self.0.is_paused);
        while *is_paused {
            is_paused = self.0.changed.wait(is_paused).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

//! How the time of a run is shared out.
//!
//! A time limit is for everything: reading, preparation, training, the check with its lessons, and writing. The check keeps a share,
//! writing another, and training with its preparation has the rest. What does not fit is cut, and said.

use std::time::{Duration, Instant};

/// The share of a time limit that is kept for the check, and for drawing, summing up and writing at the end.
const CHECK_SHARE: f64 = 0.3;
const WRITING_SHARE: f64 = 0.05;

/// The least share that training has, however long reading took.
const MIN_TRAINING_SHARE: f64 = 0.05;

/// The share of chains over models that the climb before them may take.
const CLIMB_SHARE: f64 = 0.3;

/// The time of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    begun: Instant,
    /// None where there is no limit.
    limit: Option<f64>,
}

impl Budget {
    /// From now on.
    pub(crate) fn new(limit: Option<f64>) -> Self {
        Self { begun: Instant::now(), limit }
    }

    /// With this limit, from when it began.
    pub(crate) fn with_limit(self, limit: Option<f64>) -> Self {
        Self { limit, ..self }
    }

    fn elapsed(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// When a share of the limit is over.
    fn after(&self, share: f64) -> Option<Instant> {
        let time = Duration::try_from_secs_f64(share * self.limit?).ok()?;
        self.begun.checked_add(time)
    }

    /// Seconds for the next of so many trainings, preparation included.
    pub(crate) fn training(&self, runs_left: usize) -> Option<f64> {
        self.limit.map(|limit| {
            let all = ((1.0 - CHECK_SHARE) * limit - self.elapsed()).max(MIN_TRAINING_SHARE * limit);
            all / runs_left.max(1) as f64
        })
    }

    /// When checks, and chains over models, must have ended.
    pub(crate) fn end_of_check(&self) -> Option<Instant> {
        self.after(1.0 - WRITING_SHARE)
    }

    /// When the climb before chains over models must have ended.
    pub(crate) fn end_of_climb(&self) -> Option<Instant> {
        self.after(CLIMB_SHARE)
    }

    /// When all must have ended.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.after(1.0)
    }

    /// Whether there is no time left at all.
    pub(crate) fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.elapsed() >= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_limit() {
        let budget = Budget::new(Some(100.0));
        let training = budget.training(1).unwrap_or(0.0);
        assert!((65.0..=70.0).contains(&training), "{training}");
        assert!((budget.training(2).unwrap_or(0.0) - 0.5 * training).abs() < 1.0);
        let check = budget.end_of_check().map(|end| (end - budget.begun).as_secs_f64());
        assert!(check.is_some_and(|check| check > training && check < 100.0), "{check:?}");
        assert!(!budget.is_over());
        let free = Budget::new(None);
        assert!(free.training(1).is_none() && free.end_of_check().is_none() && !free.is_over());
    }
}

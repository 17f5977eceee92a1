//! How many steps fit into a time limit, and where a run stands on its way.
//!
//! Nobody knows beforehand how long steps take: the first ones find preconditioners that later ones only look up, and q(m) moves to
//! larger or smaller models. So the number of steps is planned anew every now and then by how fast the last ones were. Schedules follow
//! the position of a run, which only ever goes forward: from where it stands, what is left of the way is spread over the steps that
//! still fit.

use super::Trainer;
use crate::device::Device;

/// A plan holds for this share of the time limit; the first one is made earlier.
const PLANNED_FOR: f64 = 1.0 / 32.0;
const FIRST_PLAN: f64 = 0.3;

/// The share of the time limit that is planned for.
const PLANNED_SHARE: f64 = 0.98;

/// Where a run stands: so many steps of so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) step: u64,
    pub(super) steps: u64,
}

impl Position {
    /// The share of its way that a run has gone.
    pub(super) fn share(self) -> f64 {
        self.step as f64 / self.steps.max(1) as f64
    }
}

/// How fast a run goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Seconds and steps at the last plan.
    seconds: f64,
    step: u64,
    /// When to plan anew.
    next: f64,
}

impl Pace {
    /// From now on: so many seconds have passed, and so many steps are done.
    pub(super) fn new(seconds: f64, step: u64, limit: Option<f64>) -> Self {
        let first = limit.map_or(f64::INFINITY, |limit| seconds + FIRST_PLAN.min(PLANNED_FOR * limit));
        Self { seconds, step, next: first }
    }
}

/// The steps that are done and those that a run of the same pace would have had, if `left` more take a run from a position to its end.
fn spread(position: Position, left: u64) -> u64 {
    let Position { step, steps } = position;
    let open = steps.saturating_sub(step).max(1) as f64;
    (step as f64 / open * left as f64).round() as u64
}

impl<D: Device> Trainer<D> {
    /// Where the run stands.
    pub(super) fn position(&self) -> Position {
        let ahead = |steps: u64| steps.saturating_add_signed(self.ahead);
        Position { step: ahead(self.step), steps: ahead(self.settings.steps) }
    }

    /// Plans as many steps as fit into what is left of the time limit, if it is time to, `elapsed` seconds after the start.
    pub(super) fn plan_for_time_limit(&mut self, pace: &mut Pace, elapsed: f64) {
        let Some(limit) = self.settings.time_limit.filter(|_| elapsed >= pace.next && self.step > pace.step) else {
            return;
        };
        let per_step = (elapsed - pace.seconds) / (self.step - pace.step) as f64;
        let fitting = ((PLANNED_SHARE * limit - elapsed).max(0.0) / per_step) as u64;
        let steps = self.most_steps.min(self.step.saturating_add(fitting));
        self.plan(steps);
        *pace = Pace { seconds: elapsed, step: self.step, next: elapsed + PLANNED_FOR * limit };
    }

    /// So many steps in all, from where the run stands.
    fn plan(&mut self, steps: u64) {
        if steps <= self.step || steps == self.settings.steps {
            self.settings.steps = steps.max(self.step);
            return;
        }
        let done = spread(self.position(), steps - self.step);
        self.ahead = done as i64 - self.step as i64;
        self.settings.steps = steps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_the_way_is_spread_over_the_steps_that_fit() {
        // Half of the way is done, and four times as many steps fit as were planned: the other half takes all of them.
        assert_eq!(spread(Position { step: 100, steps: 200 }, 400), 400);
        assert_eq!(spread(Position { step: 30, steps: 40 }, 1), 3);
        // Nothing changes where the plan stays.
        for step in 0..40 {
            assert_eq!(spread(Position { step, steps: 40 }, 40 - step), step);
        }
        assert_eq!(spread(Position { step: 0, steps: 1_000_000 }, 7), 0);
    }
}

//! How many steps fit into a time limit.

use std::time::Instant;

use super::{TrainError, Trainer};
use crate::device::Device;

/// Steps that are tried to find out how many fit into a time limit, the share of the limit they may take, and the share that
/// is planned for: steps get slower or faster as q(m) moves to larger or smaller models.
const TRIAL_STEPS: u64 = 20;
const TRIAL_SHARE: f64 = 0.1;
const PLANNED_SHARE: f64 = 0.9;

impl<D: Device> Trainer<D> {
    /// Finds out how many steps fit into the time limit by taking a few, and starts afresh with as many planned: learning
    /// rates then reach 0 in time, and the run can be repeated by asking for that number of steps.
    pub(super) fn plan_for_time_limit(&mut self, begun: Instant) -> Result<(), TrainError> {
        let Some(limit) = self.settings.time_limit.filter(|_| self.step == 0) else { return Ok(()) };
        let mut start = self.state()?;
        let clock = Instant::now();
        let elapsed = || clock.elapsed().as_secs_f64();
        while self.step < TRIAL_STEPS.min(self.settings.steps) && elapsed() < TRIAL_SHARE * limit {
            self.step()?;
        }
        let left = PLANNED_SHARE * limit - begun.elapsed().as_secs_f64();
        let fitting = left / (elapsed() / self.step as f64);
        self.restore(&mut start)?;
        (self.step, self.dropped, self.first_dropped) = (0, 0, None);
        self.settings.steps = self.settings.steps.min((fitting as u64).max(1));
        Ok(())
    }
}

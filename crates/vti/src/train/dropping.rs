//! Draws that are not finite: found, located, and taken out of the batch.

use super::{Dropped, NotFinite, TrainError, Trainer};
use crate::device::Device;
use crate::simd::Real;

/// Gradients that are not finite for so many steps in a row end a run.
const MAX_FAILED_GRADIENTS: u32 = 100;

/// Steps between two looks at how many gradients in a row were not finite: looking waits for the device.
const LOOK_EVERY: u64 = 25;

impl<D: Device> Trainer<D> {
    /// Finds rows that are not finite and takes them out of the flow's batch.
    pub(super) fn drop_not_finite(&mut self) -> Result<Vec<Dropped>, TrainError> {
        let mut dropped = Vec::new();
        for row in 0..self.pass.rows() {
            let wrong = self.not_finite(row);
            self.batch.kept[row] = wrong.is_none();
            if let Some(what) = wrong {
                let word = self.pass.word(row);
                dropped.push(Dropped { row, model: word.into(), label: self.family.space().label(word), what });
            }
        }
        if let Some(first) = dropped.first() {
            let (count, batch, limit) = (dropped.len(), self.pass.rows(), self.settings.max_dropped);
            if count as f64 > limit * batch as f64 {
                let first = Box::new(first.clone());
                return Err(TrainError::TooManyDropped { step: self.step, dropped: count, batch, limit, first });
            }
            self.dropped += count as u64;
            self.first_dropped.get_or_insert_with(|| first.clone());
            // One row that is not finite would spoil the sums over all. Without coordinates it takes part in none.
            let kept = &self.batch.kept;
            self.pass.plan(&self.family, |row| !kept[row])?;
            self.pass.forward(&self.family)?;
        }
        Ok(dropped)
    }

    /// What about a row is not finite.
    fn not_finite(&self, row: usize) -> Option<NotFinite> {
        let pass = &self.pass;
        let coordinate = |numbers: &[f64]| {
            // In the device's precision, which may be able to hold less.
            let bad = pass.places(row).position(|place| !D::Real::from_f64(numbers[place]).is_finite())?;
            Some(pass.active(row)[bad])
        };
        if let Some(coordinate) = coordinate(&pass.theta) {
            return Some(NotFinite::Theta { coordinate });
        }
        if !pass.log_det[row].is_finite() {
            return Some(NotFinite::LogDeterminant);
        }
        if !pass.log_q_model[row].is_finite() {
            return Some(NotFinite::LogModel);
        }
        if !self.batch.log_prior[row].is_finite() {
            return Some(NotFinite::LogPrior);
        }
        if !pass.log_eta[row].is_finite() {
            return Some(NotFinite::LogDensity);
        }
        coordinate(&pass.gradient).map(|coordinate| NotFinite::Gradient { coordinate })
    }

    /// Gradients of either half that are not finite change nothing; too many of them in a row end the run.
    pub(super) fn check_gradients(&self) -> Result<(), TrainError> {
        if !self.step.is_multiple_of(LOOK_EVERY) {
            return Ok(());
        }
        let device = &self.family.device;
        let of_models = self.family.models.gradients(device)?.map_or(0, |record| record.failures);
        let steps = self.optimiser.record(device)?.failures.max(of_models);
        if steps < MAX_FAILED_GRADIENTS { Ok(()) } else { Err(TrainError::Gradient { step: self.step, steps }) }
    }
}

//! What can go wrong with a check.

use crate::device::DeviceError;
use crate::family::FamilyError;
use crate::optimise::SettingError;
use crate::problem::BatchError;
use crate::stats::{EstimateError, WeightError};

/// A check that cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The posterior cannot be drawn from or evaluated.
    #[error(transparent)]
    Family(#[from] FamilyError),
    /// A setting out of its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A density that cannot be evaluated.
    #[error("an evidence cannot be found: {}", .0.error)]
    Density(#[from] BatchError),
    /// What a second opinion found cannot be learned.
    #[error("what was found beyond q cannot be learned: {reason}\nhint: check.lesson.rounds = 0 leaves q as it is")]
    Lesson {
        /// Why.
        reason: String,
    },
    /// Weights that say nothing.
    #[error("no draw of q has a positive finite weight: the target is undefined or 0 wherever q draws")]
    NoWeight,
    /// A weight that is infinite or not a number: the target's log density is.
    #[error("a draw has an infinite weight: the target's log density must be finite")]
    Weight,
}

impl From<DeviceError> for CheckError {
    fn from(error: DeviceError) -> Self {
        Self::Family(error.into())
    }
}

impl From<EstimateError> for CheckError {
    fn from(error: EstimateError) -> Self {
        match error {
            EstimateError::NoWeight => Self::NoWeight,
            _ => Self::Weight,
        }
    }
}

impl From<WeightError> for CheckError {
    fn from(_: WeightError) -> Self {
        Self::Weight
    }
}

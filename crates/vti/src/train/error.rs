//! What can go wrong while training.

use super::Dropped;
use crate::device::DeviceError;
use crate::family::FamilyError;
use crate::flow::FlowError;
use crate::optimise::{OptimiserError, SettingError};
use crate::posterior::LoadError;
use crate::problem::BatchError;
use crate::state::StateError;
use crate::store::StoreError;

/// A run that cannot start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A setting out of its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The family cannot be built or evaluated.
    #[error(transparent)]
    Family(#[from] FamilyError),
    /// Too many draws of a batch were not finite.
    #[error("step {step}: {dropped} of {batch} draws were not finite, more than {:.0} %; the first: {first}", 100.0 * limit)]
    TooManyDropped {
        /// Which step.
        step: u64,
        /// How many draws.
        dropped: usize,
        /// Of how many.
        batch: usize,
        /// The share that is allowed.
        limit: f64,
        /// The first of them.
        first: Box<Dropped>,
    },
    /// Gradients were not finite, step after step, though all draws were.
    #[error("step {step}: the gradient has not been finite for {steps} steps; a smaller learning rate may help")]
    Gradient {
        /// Which step.
        step: u64,
        /// For how many steps.
        steps: u32,
    },
    /// The density cannot be evaluated.
    #[error(transparent)]
    Density(#[from] BatchError),
    /// Without a gradient q learns draws of the posterior, and there are none.
    #[error(
        "no draw of the posterior was found: the density has no gradient, and all particles that were tempered from the prior were lost\n\
         hint: see that the likelihood is finite somewhere under the prior"
    )]
    NoDraws,
    /// A checkpoint that cannot be written, read or used.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl From<StoreError> for TrainError {
    fn from(error: StoreError) -> Self {
        Self::Load(error.into())
    }
}

impl From<StateError> for TrainError {
    fn from(error: StateError) -> Self {
        Self::Load(error.into())
    }
}

impl From<DeviceError> for TrainError {
    fn from(error: DeviceError) -> Self {
        Self::Family(error.into())
    }
}

impl From<OptimiserError> for TrainError {
    fn from(error: OptimiserError) -> Self {
        match error {
            OptimiserError::Setting(error) => error.into(),
            OptimiserError::Device(error) => error.into(),
        }
    }
}

impl From<FlowError> for TrainError {
    fn from(error: FlowError) -> Self {
        Self::Family(error.into())
    }
}

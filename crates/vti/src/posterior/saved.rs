//! What a file says about a family beside its arrays.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::device::{Device, DeviceError};
use crate::family::{Family, FamilyError, FamilySettings};
use crate::problem::{Fingerprint, Problem};
use crate::simd::Real;
use crate::state::{State, StateError};
use crate::store::{self, StoreError};

/// The JSON of a saved posterior or checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saved {
    /// Of the library.
    pub(crate) version: String,
    pub(crate) precision: String,
    pub(crate) family: FamilySettings,
    /// Rows of a batch.
    pub(crate) rows: usize,
    pub(crate) seed: u64,
    /// What the trainer was not happy with.
    pub(crate) warnings: Vec<String>,
    /// What there was no time for in training; files of earlier versions do not say.
    #[serde(default)]
    pub(crate) left_out: Vec<String>,
    pub(crate) fingerprint: Fingerprint,
    /// What the trainer adds to a checkpoint.
    pub(crate) run: Option<serde_json::Value>,
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It cannot be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its arrays do not fit.
    #[error("the saved arrays do not fit: {0}")]
    State(#[from] StateError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Its family cannot be built.
    #[error(transparent)]
    Family(#[from] FamilyError),
    /// It belongs to another problem.
    #[error(
        "{path}: saved for another problem (other data, prior or likelihood)\nhint: start anew, or use the data it was made with"
    )]
    OtherProblem {
        /// The file.
        path: String,
    },
    /// It was computed in another precision.
    #[error("{path}: saved in {found}, this device computes in {expected}")]
    Precision {
        /// The file.
        path: String,
        /// Its precision.
        found: String,
        /// The device's.
        expected: &'static str,
    },
}

impl Saved {
    pub(crate) fn of<D: Device>(
        family: &Family<D>,
        seed: u64,
        (warnings, left_out): (Vec<String>, Vec<String>),
        run: Option<serde_json::Value>,
    ) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            precision: D::Real::NAME.into(),
            family: family.settings().clone(),
            rows: family.rows(),
            seed,
            warnings,
            left_out,
            fingerprint: Fingerprint::of(&*family.problem),
            run,
        }
    }

    pub(crate) fn write(&self, path: &Path, state: &State) -> Result<(), StoreError> {
        store::write(path, self, state)
    }

    /// Reads a file and makes sure that it fits problem and device.
    pub(crate) fn read<D: Device>(path: &Path, problem: &dyn Problem) -> Result<(Self, State), LoadError> {
        let (saved, state) = store::read::<Self>(path)?;
        let name = || path.display().to_string();
        if saved.precision != D::Real::NAME {
            return Err(LoadError::Precision { path: name(), found: saved.precision, expected: D::Real::NAME });
        }
        let known = [Fingerprint::of, Fingerprint::with_arrangements];
        if !known.iter().any(|of| saved.fingerprint.matches(&of(problem))) {
            return Err(LoadError::OtherProblem { path: name() });
        }
        Ok((saved, state))
    }
}

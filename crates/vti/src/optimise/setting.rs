//! Settings that make no sense.

use crate::device::DeviceError;

/// A setting out of its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{what} is {value}, it must be {range}")]
pub struct SettingError {
    /// Which setting.
    pub what: &'static str,
    /// Its value.
    pub value: f64,
    /// What it may be.
    pub range: &'static str,
}

impl SettingError {
    /// An error unless the value is `fine`; `range` says what it may be.
    pub fn check(what: &'static str, value: f64, fine: bool, range: &'static str) -> Result<(), Self> {
        if fine { Ok(()) } else { Err(Self { what, value, range }) }
    }

    pub(super) fn check_clip_norm(clip_norm: Option<f64>) -> Result<(), Self> {
        Self::check("clip_norm", clip_norm.unwrap_or(1.0), clip_norm.is_none_or(|norm| norm > 0.0), "positive")
    }
}

/// An optimiser that cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OptimiserError {
    /// A setting out of its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

//! What can go wrong on a device, and on the way into it.

/// A slice that is too short.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} has {found} entries, at least {expected} are needed")]
pub struct ShortSlice {
    /// Which slice.
    pub what: &'static str,
    /// Its length.
    pub found: usize,
    /// The length it must have at least.
    pub expected: usize,
}

impl ShortSlice {
    /// Refuses fewer than `expected` entries.
    pub(crate) fn check(what: &'static str, found: usize, expected: usize) -> Result<(), Self> {
        if found < expected { Err(Self { what, found, expected }) } else { Ok(()) }
    }
}

/// An operation that a device could not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// Buffers or slices whose lengths do not belong together.
    #[error("{what} has {found} numbers, {expected} are needed")]
    Length {
        /// Which one.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length it must have.
        expected: usize,
    },
    /// Memory that the device does not have.
    #[error("the device has no room for {bytes} bytes")]
    Memory {
        /// How many were asked for.
        bytes: usize,
    },
    /// An operation that failed.
    #[error("{operation} failed on the device: {reason}")]
    Failed {
        /// Which one.
        operation: &'static str,
        /// What the device said.
        reason: String,
    },
}

impl DeviceError {
    /// Refuses a length that is not the expected one.
    pub fn check_len(what: &'static str, found: usize, expected: usize) -> Result<(), Self> {
        if found == expected { Ok(()) } else { Err(Self::Length { what, found, expected }) }
    }
}

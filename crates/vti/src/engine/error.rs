//! What can go wrong on the way into an engine.

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

//! The only place that prints: data on standard output, talk on standard error. A closed pipe is not an error.

use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};

/// A piece of the answer.
pub(crate) fn data(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("could not write to standard output"),
        _ => Ok(()),
    }
}

/// Something about how it goes.
pub(crate) fn talk(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Replaces what stands in the current line of the terminal.
pub(crate) fn redraw(line: &str) {
    let mut err = std::io::stderr().lock();
    let _ = write!(err, "\r\x1b[2K{line}").and_then(|()| err.flush());
}

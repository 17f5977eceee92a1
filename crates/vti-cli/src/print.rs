//! The only place that prints: data on standard output, talk on standard error. A closed pipe is not an error.

use std::io::{ErrorKind, IsTerminal, Write};

use anyhow::{Context, Result};
use vti_report::plain;

/// Lines without control characters, which a terminal would obey.
fn lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// A piece of the answer.
pub(crate) fn data(text: &str) -> Result<()> {
    write(&lines(text))
}

/// A file: as it is, unless a terminal reads it.
pub(crate) fn bytes(bytes: &[u8]) -> Result<()> {
    let text = String::from_utf8_lossy(bytes);
    if std::io::stdout().is_terminal() { data(text.trim_end()) } else { write(text.trim_end()) }
}

fn write(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("could not write to standard output"),
        _ => Ok(()),
    }
}

/// Something about how it goes.
pub(crate) fn talk(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", lines(line));
}

/// Replaces what stands in the current line of the terminal, cut to its width: a line that wraps cannot be replaced.
pub(crate) fn redraw(line: &str) {
    let columns = terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0));
    let line: String = plain(line).chars().take(columns.saturating_sub(1)).collect();
    let mut err = std::io::stderr().lock();
    let _ = write!(err, "\r\x1b[2K{line}").and_then(|()| err.flush());
}

/// Clears the terminal's line, where there is a terminal.
pub(crate) fn clear() {
    if std::io::stderr().is_terminal() {
        redraw("");
    }
}

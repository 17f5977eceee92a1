//! The peer: a Python process that runs steps when asked.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

/// Where the peers' scripts are, part of this repository.
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peer");

/// Waits until the peer's threads, which spin for a while after their work, have gone to sleep.
pub(crate) fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(300));
}

/// A running peer.
pub(crate) struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// What it said of its version.
    pub(crate) version: String,
}

impl Peer {
    pub(crate) fn start(python: &Path, script: &str, threads: usize) -> Result<Self> {
        let mut child = Command::new(python)
            .args([&format!("{SCRIPTS}/{script}"), "--threads", &threads.to_string(), "serve"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("could not start {}", python.display()))?;
        let input = child.stdin.take().context("the peer has no input")?;
        let output = BufReader::new(child.stdout.take().context("the peer has no output")?);
        let mut peer = Self { child, input, output, version: String::new() };
        let ready: serde_json::Value = serde_json::from_str(&peer.answer("ready")?)?;
        peer.version = ready["torch"].as_str().context("the peer has no version")?.to_owned();
        Ok(peer)
    }

    fn answer(&mut self, expected: &str) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("the peer ended while {expected:?} was expected");
        }
        match line.trim().strip_prefix(expected) {
            Some(rest) => Ok(rest.trim().to_owned()),
            None => bail!("the peer answered {:?} instead of {expected:?}", line.trim()),
        }
    }

    fn ask(&mut self, question: &str, expected: &str) -> Result<String> {
        writeln!(self.input, "{question}")?;
        self.input.flush()?;
        self.answer(expected)
    }

    /// Builds a case and warms it up.
    pub(crate) fn prepare(&mut self, case: &str) -> Result<()> {
        self.ask(&format!("prepare {case}"), &format!("prepared {case}")).map(drop)
    }

    /// Seconds of each of `steps` steps.
    pub(crate) fn step(&mut self, case: &str, steps: usize) -> Result<Vec<f64>> {
        let times = self.ask(&format!("step {case} {steps}"), &format!("times {case}"))?;
        times.split_whitespace().map(|time| time.parse().context("a time")).collect()
    }

    /// Frees a case.
    pub(crate) fn release(&mut self, case: &str) -> Result<()> {
        writeln!(self.input, "release {case}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The peer may be gone already; there is nothing left to do about it.
        let _ = writeln!(self.input, "quit");
        let _ = self.child.wait();
    }
}

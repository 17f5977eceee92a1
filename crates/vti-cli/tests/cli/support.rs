//! Running the real program in a directory of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory that goes when the test is over.
pub(crate) struct Scratch(PathBuf);

static NUMBER: AtomicUsize = AtomicUsize::new(0);

impl Scratch {
    pub(crate) fn new() -> Self {
        let name = format!("vti-cli-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vti"));
        command.args(arguments).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(&self.command(arguments).output().unwrap(), arguments)
    }

    /// A run that must succeed.
    pub(crate) fn fine(&self, arguments: &[&str]) -> Outcome {
        let outcome = self.run(arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {}", outcome.talk);
        outcome
    }

    /// A run that must be refused as wrong usage or bad input, with this in its message.
    pub(crate) fn refused(&self, arguments: &[&str], parts: &[&str]) {
        let outcome = self.run(arguments);
        assert_eq!(outcome.code, Some(2), "{arguments:?}: {}", outcome.talk);
        for part in parts {
            assert!(outcome.talk.contains(part), "{arguments:?}: {part:?} is not in\n{}", outcome.talk);
        }
        assert!(outcome.data.is_empty(), "{arguments:?}");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a run said.
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) data: String,
    pub(crate) talk: String,
}

impl Outcome {
    pub(crate) fn of(output: &Output, arguments: &[&str]) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (data, talk) = (text(&output.stdout), text(&output.stderr));
        assert!(!talk.contains("panicked"), "{arguments:?}: {talk}");
        Self { code: output.status.code(), data, talk }
    }
}

/// A file of the tests.
pub(crate) fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/data").join(name).to_str().unwrap().to_string()
}

/// Options that make a run small, and train.
pub(crate) const SMALL: [&str; 16] = [
    "--method",
    "vti",
    "--set",
    "check.opinion.smc={ particles = 32, sweeps = 1, kept = 1 }",
    "--set",
    "check.lesson.rounds=0",
    "--steps",
    "20",
    "--threads",
    "1",
    "--set",
    "train.batch=64",
    "--set",
    "check.draws=400",
    "--set",
    "check.refine=never",
];

/// `vti select` of a file, small.
pub(crate) fn select<'a>(file: &'a str, response: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["select", file, "--response", response][..], &SMALL, more].concat()
}

/// Compares with what is committed; VTI_UPDATE=1 writes it anew.
pub(crate) fn snapshot(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/snapshots").join(name);
    if std::env::var_os("VTI_UPDATE").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{name} has changed; VTI_UPDATE=1 cargo test --package vti-cli accepts it");
}

/// A summary without what differs from machine to machine and from run to run.
pub(crate) fn steady(mut summary: serde_json::Value) -> serde_json::Value {
    summary["seconds"] = serde_json::Value::Null;
    summary["threads"] = serde_json::Value::Null;
    summary["data"]["path"] = serde_json::Value::Null;
    summary
}

/// A number that looks uniform between 0 and 1.
pub(crate) fn noise(row: u32, by: u32) -> f64 {
    f64::from((row * 7919 + row * row * by) % 1009) / 1009.0
}

pub(crate) fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// Fresh draws of a run without training: their means are those of the summary, which stand under `version`, within five
/// standard errors, `more` being what the variance of a mean has beyond that of independent draws; their densities are those
/// that `vti log-prob` says, and differ from the target by the evidence.
pub(crate) fn check_draws(scratch: &Scratch, version: &str, more: f64) {
    let (count, summary) = (6000, scratch.json("run/summary.json"));
    let sampled = scratch.fine(&["sample", "run", "-n", &count.to_string(), "--out", "draws.csv"]);
    assert!(sampled.data.is_empty());
    let mut reader = csv::Reader::from_path(scratch.path("draws.csv")).unwrap();
    let names: Vec<String> = reader.headers().unwrap().iter().map(String::from).collect();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    for (name, found) in summary["coefficients"].as_object().unwrap() {
        let place = names.iter().position(|other| other == name).unwrap();
        let mean = rows.iter().map(|row| row[place].parse().unwrap_or(0.0)).sum::<f64>() / f64::from(count);
        let error = number(&found["sd"]) * (1.0 / f64::from(count) + more).sqrt() + number(&found["se"]);
        assert!((mean - number(&found[version])).abs() < 5.0 * error + 1e-9, "{name}: {mean} {found}");
    }
    let first: String = scratch.read("draws.csv").lines().take(20).map(|line| format!("{line}\n")).collect();
    scratch.write("points.csv", &first);
    let found = scratch.fine(&["log-prob", "run", "points.csv"]).data;
    for (line, row) in found.lines().skip(1).zip(&rows) {
        let cells: Vec<&str> = line.rsplit(',').collect();
        let [target, q]: [f64; 2] = [cells[0].parse().unwrap(), cells[1].parse().unwrap()];
        assert!((q - row[2].parse::<f64>().unwrap()).abs() < 1e-6 * (1.0 + q.abs()), "{line}");
        assert!((target - q - number(&summary["log_evidence"]["estimate"])).abs() < 1e-6, "{line}");
    }
}

//! What a benchmark prints and saves.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde::Serialize;

use crate::Options;

/// One measured case.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) case: String,
    pub(crate) what: String,
    pub(crate) ours: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<f64>,
    /// The fastest of ours and of the peer's, where several were timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fastest: Option<(f64, Option<f64>)>,
    pub(crate) unit: &'static str,
    /// Ours ÷ peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ratio: Option<f64>,
    /// What the ratio should be, in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) target: String,
}

impl Line {
    /// Ours against a peer's, smaller is better.
    pub(crate) fn against(case: &str, what: &str, ours: f64, peer: Option<f64>, target: &str) -> Self {
        let (case, what, target) = (case.to_owned(), what.to_owned(), target.to_owned());
        let ratio = peer.map(|peer| ours / peer);
        Self { case, what, ours, peer, fastest: None, unit: "ms", ratio, target }
    }

    /// A figure of its own.
    pub(crate) fn figure(case: &str, what: &str, ours: f64, unit: &'static str, target: &str) -> Self {
        let (case, what, target) = (case.to_owned(), what.to_owned(), target.to_owned());
        Self { case, what, ours, peer: None, fastest: None, unit, ratio: None, target }
    }
}

/// All lines of a run, printed as they come.
pub(crate) struct Report {
    name: &'static str,
    json: bool,
    notes: Vec<String>,
    lines: Vec<Line>,
}

impl Report {
    pub(crate) fn new(name: &'static str, options: &Options, notes: Vec<String>) -> Self {
        let json = options.json;
        if !json {
            notes.iter().for_each(|note| print_line(note));
            print_line(&header());
        }
        Self { name, json, notes, lines: Vec::new() }
    }

    pub(crate) fn push(&mut self, line: Line) -> Result<()> {
        print_line(&if self.json { serde_json::to_string(&line)? } else { row(&line) });
        self.lines.push(line);
        Ok(())
    }

    /// Writes `bench/results/DATE-NAME.md` and `.jsonl`, where they are wanted.
    pub(crate) fn save(&self, options: &Options) -> Result<()> {
        if !options.save {
            return Ok(());
        }
        let stem = Path::new(env!("CARGO_MANIFEST_DIR")).join("results").join(format!("{}-{}", today(), self.name));
        let mut text = format!("# {}, {}\n\n", self.name, today());
        for note in &self.notes {
            writeln!(text, "{note}")?;
        }
        writeln!(text, "\n{}", header())?;
        let mut json = String::new();
        for line in &self.lines {
            writeln!(text, "{}", row(line))?;
            writeln!(json, "{}", serde_json::to_string(line)?)?;
        }
        std::fs::write(stem.with_extension("md"), text)?;
        std::fs::write(stem.with_extension("jsonl"), json)?;
        Ok(())
    }
}

#[allow(clippy::print_stdout)]
pub(crate) fn print_line(line: &str) {
    println!("{line}");
}

fn header() -> String {
    let cells = format!(
        "| {:<14} | {:<88} | {:>9} | {:>12} | {:>7} | {:<8} |",
        "case", "what", "ours", "peer", "ratio", "target"
    );
    format!(
        "{cells}\n|{}|{}|{}:|{}:|{}:|{}|",
        "-".repeat(16),
        "-".repeat(90),
        "-".repeat(10),
        "-".repeat(13),
        "-".repeat(8),
        "-".repeat(10)
    )
}

fn row(line: &Line) -> String {
    let Line { case, what, ours, peer, fastest, unit, ratio, target } = line;
    let other = peer.map_or(String::new(), number);
    let ratio = ratio.map_or(String::new(), number);
    let fastest = fastest.map_or(String::new(), |(ours, peer)| {
        let peer = peer.map_or(String::new(), |peer| format!(", {peer:.3}"));
        format!(" (fastest {ours:.3}{peer})")
    });
    let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    let what = format!("{what}{unit}{fastest}");
    let ours = number(*ours);
    format!("| {case:<14} | {what:<88} | {ours:>9} | {other:>12} | {ratio:>7} | {target:<8} |")
}

/// Three digits after the point, or an exponent where they would not show.
pub(crate) fn number(value: f64) -> String {
    let small = value != 0.0 && value.abs() < 0.01;
    if small || value.abs() >= 1e5 { format!("{value:.2e}") } else { format!("{value:.3}") }
}

/// The date, as in 2026-11-15, by the civil calendar from days since 1970-01-01 (Howard Hinnant's algorithm).
pub(crate) fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    let days = (seconds / 86_400) as i64 + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

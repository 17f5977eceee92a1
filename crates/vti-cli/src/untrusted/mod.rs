//! Everything that comes from outside, read from bytes alone: neither files nor a process are needed. Whatever the bytes are, a
//! reader ends soon, asks for little memory and does not panic; the tests try it with files that were broken in many ways, and
//! libFuzzer with many more (the folder `fuzz`).

mod runs;
mod seeds;
mod tables;

pub use seeds::checkpoints;

use std::io::BufReader;
use std::path::Path;

use clap::Parser;
use vti::answer::Answer;
use vti_report::{Beside, page, text};

use crate::config::{Config, ProblemConfig, SelectConfig, SourceConfig};
use crate::rundir::parse_marks;
use crate::{Asked, Cli, Command, progress};

/// A kind of input, and what reads it.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// The name of its folder of examples.
    pub name: &'static str,
    /// Reads; whether the bytes made sense.
    pub read: fn(&[u8]) -> bool,
}

/// All kinds of input.
pub const READERS: [Reader; 14] = [
    Reader { name: "arguments", read: arguments },
    Reader { name: "checkpoint", read: runs::checkpoint },
    Reader { name: "config", read: config },
    Reader { name: "csv", read: tables::csv },
    Reader { name: "draws", read: runs::draws },
    Reader { name: "formula", read: tables::formula },
    Reader { name: "graph", read: tables::graph },
    Reader { name: "manifest", read: manifest },
    Reader { name: "packed", read: tables::packed },
    Reader { name: "parquet", read: tables::parquet },
    Reader { name: "points", read: runs::points },
    Reader { name: "progress", read: progress },
    Reader { name: "set", read: set },
    Reader { name: "summary", read: summary },
];

/// The reader of a name, if there is one.
pub fn reader(name: &str) -> Option<Reader> {
    READERS.into_iter().find(|reader| reader.name == name)
}

/// Options of `vti dag` or `vti select`, a line each; edges, tiers and priors are little languages of their own.
fn arguments(bytes: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(bytes) else { return false };
    let parsed = Cli::try_parse_from(std::iter::once("vti").chain(text.lines()));
    match parsed.map(|cli| cli.command) {
        Ok(Command::Asked(Asked::Dag(args))) => args.settings().is_ok(),
        Ok(Command::Asked(Asked::Select(args))) => args.settings().is_ok(),
        Ok(_) => false,
        Err(error) => {
            let _ = error.to_string();
            false
        }
    }
}

/// A configuration: what is understood is written as something that is understood in the same way.
fn config(bytes: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(bytes) else { return false };
    match Config::parse("run.toml", text, &[]) {
        Err(error) => {
            let _ = error.to_string();
            false
        }
        Ok(config) => is_written_as_it_is(&config),
    }
}

/// Changes of keys, one in each line.
fn set(bytes: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(bytes) else { return false };
    let changes: Vec<String> = text.lines().map(String::from).collect();
    let asked = ProblemConfig::Select(SelectConfig::new("y"));
    match Config::new(SourceConfig::all("data.csv"), asked).with(&changes) {
        Err(error) => {
            let _ = error.to_string();
            false
        }
        Ok(config) => is_written_as_it_is(&config),
    }
}

/// Whether settings come back as they were written.
fn is_written_as_it_is(config: &Config) -> bool {
    let limits = config.check_limits();
    let Ok(text) = config.to_toml() else { return false };
    let again = Config::parse("config.toml", &text, &[]).map(|again| again.to_toml());
    assert!(matches!(again, Ok(Ok(again)) if again == text), "settings change when they are written");
    limits.is_ok()
}

/// What a run directory says about itself: the list of its files, or who works in it.
fn manifest(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_ok_and(parse_marks)
}

/// How training went, as a page shows it.
fn progress(bytes: &[u8]) -> bool {
    let trace = progress::trace_of(progress::parse_lines(BufReader::new(bytes)), None);
    let beside = Beside { trace: &trace, ..Beside::default() };
    !page(&Answer::default(), None, &beside).is_empty() && !trace.is_empty()
}

/// An answer, as tables and as a page.
fn summary(bytes: &[u8]) -> bool {
    let Ok(json) = str::from_utf8(bytes) else { return false };
    let Ok(answer) = Answer::from_json(json) else { return false };
    !text(&answer).is_empty() && !page(&answer, None, &Beside::default()).is_empty()
}

/// What errors call the file.
fn nowhere() -> &'static Path {
    Path::new("file")
}

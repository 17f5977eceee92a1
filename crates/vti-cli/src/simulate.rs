//! `vti simulate`: tables made to order, so that the answer is known.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use vti::problem::selection::Table;
use vti::problem::selection::simulate::{
    CorrelatedSettings, Misspecification, RobustSettings, Simulated, correlated, robust,
};

/// Options of `vti simulate`.
#[derive(Args)]
pub(crate) struct SimulateArgs {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// The paper's processes for robust variable selection
    RobustSelection(RobustArgs),
    /// A linear model of correlated covariates
    Correlated(CorrelatedArgs),
}

/// How far data are from what the robust likelihood assumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Level {
    /// Noise and coefficients are those of the likelihood
    None,
    /// Other noise, and other coefficients in the second half of the rows
    Mid,
    /// The same, stronger, and irrelevant covariates follow relevant ones a little
    High,
}

impl Level {
    /// As it is written in tables and file names.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Mid => "mid",
            Self::High => "high",
        }
    }
}

impl From<Level> for Misspecification {
    fn from(level: Level) -> Self {
        match level {
            Level::None => Self::None,
            Level::Mid => Self::Mid,
            Level::High => Self::High,
        }
    }
}

#[derive(Args)]
struct RobustArgs {
    /// How far the data are from what the robust likelihood assumes
    #[arg(long, value_enum, default_value_t = Level::None)]
    misspecification: Level,
    /// Rows
    #[arg(long, default_value_t = RobustSettings::default().rows)]
    rows: usize,
    /// Covariates
    #[arg(long, default_value_t = RobustSettings::default().covariates)]
    covariates: usize,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file to write
    #[arg(long, value_name = "FILE.csv")]
    out: PathBuf,
}

#[derive(Args)]
struct CorrelatedArgs {
    /// Rows
    #[arg(long, default_value_t = CorrelatedSettings::default().rows)]
    rows: usize,
    /// Covariates
    #[arg(long, default_value_t = CorrelatedSettings::default().covariates)]
    covariates: usize,
    /// How many of them are relevant
    #[arg(long, default_value_t = CorrelatedSettings::default().relevant)]
    relevant: usize,
    /// Correlation of neighbouring covariates
    #[arg(long, allow_negative_numbers = true, default_value_t = CorrelatedSettings::default().correlation)]
    correlation: f64,
    /// Size of the coefficients of relevant covariates; their signs are random
    #[arg(long, allow_negative_numbers = true, default_value_t = CorrelatedSettings::default().effect)]
    effect: f64,
    /// Standard deviation of the noise
    #[arg(long, allow_negative_numbers = true, default_value_t = CorrelatedSettings::default().noise)]
    noise: f64,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file to write
    #[arg(long, value_name = "FILE.csv")]
    out: PathBuf,
}

/// Simulates and writes a table; `talk` is told what became of it.
pub(crate) fn run(args: &SimulateArgs, talk: &dyn Fn(&str)) -> Result<()> {
    let (simulated, out) = match &args.kind {
        Kind::RobustSelection(RobustArgs { misspecification, rows, covariates, seed, out }) => {
            let (misspecification, rows, covariates, seed) = ((*misspecification).into(), *rows, *covariates, *seed);
            (robust(&RobustSettings { misspecification, rows, covariates, seed })?, out)
        }
        Kind::Correlated(CorrelatedArgs { rows, covariates, relevant, correlation, effect, noise, seed, out }) => {
            let settings = CorrelatedSettings {
                rows: *rows,
                covariates: *covariates,
                relevant: *relevant,
                correlation: *correlation,
                effect: *effect,
                noise: *noise,
                seed: *seed,
            };
            (correlated(&settings)?, out)
        }
    };
    write(&simulated.table, out)?;
    let (rows, covariates) = (simulated.table.response.len(), simulated.table.terms.len());
    talk(&format!("wrote {rows} rows of y and {covariates} covariates to {}", out.display()));
    talk(&format!("relevant covariates: {}", relevant(&simulated)));
    Ok(())
}

fn relevant(simulated: &Simulated) -> String {
    let terms = simulated.table.terms.iter().zip(&simulated.relevant);
    let names: Vec<&str> = terms.filter(|(_, relevant)| **relevant).map(|(term, _)| term.name.as_str()).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// Numbers are written so that they read back as the same numbers.
fn write(table: &Table, out: &Path) -> Result<()> {
    let mut text = table.response_name.clone();
    table.terms.iter().for_each(|term| {
        let _ = write!(text, ",{}", term.name);
    });
    text.push('\n');
    for (row, y) in table.response.iter().enumerate() {
        let _ = write!(text, "{y}");
        for term in &table.terms {
            let _ = write!(text, ",{}", term.values[row]);
        }
        text.push('\n');
    }
    fs::write(out, text).map_err(|error| {
        anyhow!(
            "{}: could not be written: {error}\nhint: its folder must exist, and you must be allowed to write there",
            out.display()
        )
    })
}

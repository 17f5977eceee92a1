//! The paper's experiments, redone, and the peers they are compared with: `cargo xtask paper figure2` and so on.
//!
//! Each experiment has a folder of its own with the same files: `settings` (all sizes, one value per scale), `rows` (what a fit
//! found, and the tables), `plot` and `summary` (beside what the paper shows). What they share is here: `study` is the paper's
//! variable selection, `graphs` what its experiments about causal graphs have in common,
//! and `peers` runs DAGMA and DiBS.

mod figure2;
mod figure3;
mod figure4;
mod graphs;
mod peers;
mod results;
mod session;
mod study;
mod table1;
mod text;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;

/// Redo the paper's experiments
#[derive(Parser)]
#[command(name = "cargo xtask paper", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    figure: Figure,
}

#[derive(Subcommand)]
enum Figure {
    /// Robust variable selection: model probabilities and posteriors of each model, by three families
    Figure2(figure2::Figure2Args),
    /// Causal graphs over 10 nodes from 16 to 1,024 rows, beside DAGMA and DiBS
    Figure3(figure3::Figure3Args),
    /// Robust variable selection: the number of models from 2⁹ to 2²⁴, by three distributions over models
    Figure4(figure4::Figure4Args),
    /// Causal graphs of flow cytometry data with every edge penalty, beside DAGMA and DiBS
    Table1(table1::Table1Args),
}

/// How large an experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Scale {
    /// Minutes on two cores
    Small,
    /// The paper's sizes
    Full,
}

text::named!(Scale);

/// What all experiments can be asked for.
#[derive(Args)]
struct CommonArgs {
    /// How large
    #[arg(long, value_enum, default_value_t = Scale::Small)]
    scale: Scale,
    /// The folder for tables and plots; what is finished there already is not done again
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads (0: as many as there are cores)
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Training steps instead of the scale's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
}

impl CommonArgs {
    /// The folder asked for, or one that is named after the experiment.
    fn folder(&self, experiment: &str) -> PathBuf {
        self.out.clone().unwrap_or_else(|| format!("paper-{experiment}").into())
    }
}

/// Of experiments on several data sets.
#[derive(Args)]
struct DataSetsArgs {
    /// Data sets of each kind instead of the scale's number
    #[arg(long, value_name = "N", value_parser = number::<1, 1000>)]
    data_sets: Option<usize>,
}

/// Of experiments with reversible jump chains.
#[derive(Args)]
struct ChainArgs {
    /// Sweeps of each reference chain after burn-in instead of the scale's number
    #[arg(long, value_name = "N", value_parser = number::<100, { usize::MAX }>)]
    sweeps: Option<usize>,
}

/// A number within these limits.
fn number<const LEAST: usize, const MOST: usize>(text: &str) -> Result<usize, String> {
    let number = text.parse().map_err(|error| format!("{error}"))?;
    if (LEAST..=MOST).contains(&number) { Ok(number) } else { Err(format!("{number} is not in {LEAST}..={MOST}")) }
}

/// Runs an experiment and says on standard error how far it is.
fn main() -> ExitCode {
    let result = match Cli::parse().figure {
        Figure::Figure2(args) => figure2::run(&args, &talk),
        Figure::Figure3(args) => figure3::run(&args, &talk),
        Figure::Figure4(args) => figure4::run(&args, &talk),
        Figure::Table1(args) => table1::run(&args, &talk),
    };
    if let Err(error) = result {
        talk(&format!("error: {error:#}"));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Whoever does not listen misses nothing.
fn talk(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

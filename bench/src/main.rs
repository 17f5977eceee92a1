//! Benchmarks: our time as a ratio to a peer's, or to the machine's limit, measured in one run.

mod flow;
mod peak;
mod peer;
mod report;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

/// Benchmarks of vti; `cargo xtask bench` prepares what they need.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// CoSMIC flows and word sampling against PyTorch on the same cores
    Flow(Options),
}

/// How to run a benchmark.
#[derive(Args)]
struct Options {
    /// Fewer rounds
    #[arg(long)]
    quick: bool,
    /// One JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// Threads on both sides
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Only the cases whose name starts with this
    #[arg(long)]
    only: Option<String>,
    /// Python with the peer's packages; without it only our side runs
    #[arg(long)]
    peer_python: Option<PathBuf>,
    /// Also write the table and the JSON lines to DIR/DATE-NAME.md and .jsonl
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Flow(options) => flow::run(&options),
    }
}

//! Benchmarks: our time as a ratio to a peer's, measured in one run.

mod flow;
mod models;
mod peer;
mod quality;
mod report;
mod search;
mod sem;
mod sharing;
mod table;
mod timing;
mod trust;
mod words;

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
    /// What a step of each distribution over models costs as the number of models grows
    Models(Options),
    /// Likelihoods of non-linear structural equations against PyTorch on the same cores
    Sem(Options),
    /// How good answers are with default settings, and what they cost
    Quality(Options),
    /// How long chains over models take to agree where evidences are in closed form
    Search(Options),
    /// How much longer four runs take at once than one alone
    Sharing(Options),
    /// Evidences of numbers of components beside those of independent programs
    Evidences(trust::evidences::EvidenceOptions),
    /// Whether verdicts can be relied on: problems whose answers are known
    Trust(trust::TrustOptions),
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
    /// Python with the peer's packages; `cargo xtask bench` installs them
    #[arg(long)]
    peer_python: Option<PathBuf>,
    /// Only our side, without installing the peer
    #[arg(long, conflicts_with = "peer_python")]
    no_peer: bool,
    /// Also write the table and the JSON lines to bench/results/DATE-NAME.md and .jsonl
    #[arg(long)]
    save: bool,
}

impl Options {
    /// Whether a case is among those to run.
    fn wants(&self, case: &str) -> bool {
        self.only.as_ref().is_none_or(|part| case.starts_with(part.as_str()))
    }
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Flow(options) => flow::run(&options),
        Command::Models(options) => models::run(&options),
        Command::Sem(options) => sem::run(&options),
        Command::Quality(options) => quality::run(&options),
        Command::Search(options) => search::run(&options),
        Command::Sharing(options) => sharing::run(&options),
        Command::Evidences(arguments) => trust::evidences::run(&arguments),
        Command::Trust(arguments) => trust::run(&arguments),
    }
}

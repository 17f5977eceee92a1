//! The project's chores: `cargo xtask test`, `cargo xtask check`, `cargo xtask bench NAME`, `cargo xtask paper EXPERIMENT`.

mod bench;
mod check;
mod package;
mod paper;
mod process;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of the vti project
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything that must hold: rules, formatting, lints, tests, documentation, the demo
    Test,
    /// Rules that can be checked by reading files: order of modules, places of unsafe code, notation, words, length of files,
    /// figures of the README
    Check(check::CheckArgs),
    /// Run a benchmark: flow, models, sem, quality, search, sharing, trust; where it has a peer, that is installed under target/ first; --help lists the
    /// options of each
    Bench(bench::BenchArgs),
    /// Redo one of the paper's experiments: figure2, figure3, figure4, table1; --help lists the options of each
    Paper(paper::PaperArgs),
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Test => test::run(),
        Task::Check(args) => check::run(&args),
        Task::Bench(args) => bench::run(&args),
        Task::Paper(args) => paper::run(&args),
    };
    if let Err(error) = result {
        process::announce(&format!("failed: {error:#}"));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

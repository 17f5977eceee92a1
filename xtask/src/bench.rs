//! `cargo xtask bench NAME`: the benchmarks, which are the program `vti-bench`, with their peers.

use anyhow::{Context, Result};
use clap::Args;

use crate::process::{cargo, python, run as must};

/// All that follows is for the benchmark.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct BenchArgs {
    /// flow, models, sem, quality, search, sharing, evidences or trust, and its options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    let mut command = cargo(&["run", "--release", "--quiet", "--package", "vti-bench", "--"]);
    command.args(&args.arguments);
    let is_given = |words: &[&str]| args.arguments.iter().any(|argument| words.contains(&argument.as_str()));
    // What two of them are compared with is installed on first use (a gigabyte or two: PyTorch).
    if is_given(&["flow", "sem"]) && !is_given(&["--no-peer", "--help", "-h"]) {
        let python = python("peer", "bench/peer/requirements.txt").context("the peer needs python3 with venv")?;
        command.arg("--peer-python").arg(python);
    }
    must(&mut command)
}

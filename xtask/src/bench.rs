//! `cargo xtask bench NAME`: the benchmarks, with their peers.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use crate::process::{cargo, python, run as must};

/// Which benchmark, and how.
#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Which one: flow (steps of flows against PyTorch), models (cost of the distributions over models), sem (the
    /// likelihood of non-linear graphs against PyTorch), quality (answers of default settings against exact ones)
    #[arg(value_parser = ["flow", "models", "sem", "quality"])]
    name: String,
    /// Only our side, without installing the peer
    #[arg(long)]
    no_peer: bool,
    /// Save dated results under bench/results
    #[arg(long)]
    save: bool,
    /// Fewer rounds
    #[arg(long)]
    quick: bool,
    /// One JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// Only the cases whose name starts with this
    #[arg(long)]
    only: Option<String>,
    /// Threads on both sides
    #[arg(long)]
    threads: Option<usize>,
}

pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    let BenchArgs { name, no_peer, save, quick, json, only, threads } = args;
    let mut command = cargo(&["run", "--release", "--quiet", "--package", "vti-bench", "--", name]);
    if !no_peer && let Some(python) = peer_python(name)? {
        command.arg("--peer-python").arg(python);
    }
    if *save {
        command.args(["--save", "bench/results"]);
    }
    command.args([(quick, "--quick"), (json, "--json")].into_iter().filter_map(|(on, flag)| on.then_some(flag)));
    command.args(only.iter().flat_map(|only| ["--only", only]));
    command.args(threads.iter().flat_map(|threads| ["--threads".into(), threads.to_string()]));
    must(&mut command)
}

/// Python with the packages of a benchmark's peers, installed on first use (a gigabyte or two: PyTorch). None where ours is
/// measured against ours.
fn peer_python(name: &str) -> Result<Option<PathBuf>> {
    if !["flow", "sem"].contains(&name) {
        return Ok(None);
    }
    python("peer", "bench/peer/requirements.txt").map(Some).context("the peer needs python3 with venv")
}

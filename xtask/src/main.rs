//! The project's chores: `cargo xtask test`, `cargo xtask bench NAME`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
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
    /// Everything that must hold: formatting, lints, tests, documentation, the demo
    Test,
    /// Run a benchmark; where it has a peer, that is installed under target/ first
    Bench {
        /// Which one: flow (steps of flows against PyTorch), models (cost of the distributions over models), estimators
        /// (gradient variances behind the defaults), sem (the likelihood of non-linear graphs against PyTorch), quality
        /// (answers of default settings against exact ones, graphs also against DAGMA and DiBS)
        #[arg(value_parser = ["flow", "models", "estimators", "sem", "quality"])]
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
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Test => test(),
        Task::Bench { name, no_peer, save, quick, json, only, threads } => {
            let flags = [(quick, "--quick"), (json, "--json")].into_iter().filter_map(|(on, flag)| on.then_some(flag));
            let mut options: Vec<String> = flags.map(String::from).collect();
            options.extend(only.into_iter().flat_map(|only| ["--only".into(), only]));
            options.extend(threads.into_iter().flat_map(|threads| ["--threads".into(), threads.to_string()]));
            bench(&name, no_peer, save, &options)
        }
    };
    if let Err(error) = result {
        announce(&format!("failed: {error:#}"));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Runs a command in the root and fails if it does.
fn run(command: &mut Command) -> Result<()> {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    let line = format!("{program} {}", arguments.join(" "));
    announce(&line);
    let status = command.current_dir(root()).status().with_context(|| format!("could not run {line}"))?;
    if !status.success() {
        bail!("{line}: {status}");
    }
    Ok(())
}

#[allow(clippy::print_stderr)]
fn announce(what: &str) {
    eprintln!("\n==> {what}");
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

fn test() -> Result<()> {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"]))?;
    let mut tests = cargo(&["test", "--workspace", "--quiet"]);
    // What other tools make of our files is tested where they can be had.
    match python("python", "crates/vti-cli/tests/cli/requirements.txt") {
        Ok(python) => drop(tests.env("VTI_PYTHON", python)),
        Err(error) => announce(&format!(
            "without pandas, polars, ArviZ, NetworkX and pydot, so their tests are left out: {error:#}"
        )),
    }
    run(&mut tests)?;
    run(cargo(&["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "--deny warnings"))?;
    run(&mut cargo(&["run", "--release", "--quiet", "--", "demo", "--out", "target/demo"]))
}

fn bench(name: &str, no_peer: bool, save: bool, options: &[String]) -> Result<()> {
    let mut command = cargo(&["run", "--release", "--quiet", "--package", "vti-bench", "--", name]);
    if !no_peer && let Some(python) = peer_python(name)? {
        command.arg("--peer-python").arg(python);
    }
    if save {
        command.args(["--save", "bench/results"]);
    }
    run(command.args(options))
}

/// Python with the packages of a benchmark's peers, installed on first use (a gigabyte or two: PyTorch). None where ours is
/// measured against ours.
fn peer_python(name: &str) -> Result<Option<PathBuf>> {
    let environment = match name {
        "flow" | "sem" => python("peer", "bench/peer/requirements.txt"),
        "quality" => python("graphs", "bench/peer/graphs-requirements.txt"),
        _ => return Ok(None),
    };
    environment.map(Some).context("the peer needs python3 with venv")
}

/// An environment of its own under target/ with the packages of a list, installed on first use.
fn python(name: &str, requirements: &str) -> Result<PathBuf> {
    let place = root().join("target").join(name);
    let environment = place.join("venv");
    let python = environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let requirements = root().join(requirements);
    // The list that was installed is kept beside the environment: a changed list is installed again.
    let installed = place.join("installed.txt");
    let wanted = std::fs::read(&requirements).with_context(|| format!("could not read {}", requirements.display()))?;
    if python.exists() && std::fs::read(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&requirements))?;
    std::fs::write(&installed, wanted)?;
    Ok(python)
}

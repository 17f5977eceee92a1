//! Runs one of the paper's experiments and says on standard error how far it is.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use vti_paper::PaperArgs;

/// Redo the paper's experiments
#[derive(Parser)]
#[command(name = "cargo xtask paper", version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    experiment: PaperArgs,
}

fn main() -> ExitCode {
    match vti_paper::run(&Cli::parse().experiment, &talk) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            talk(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Whoever does not listen misses nothing.
fn talk(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

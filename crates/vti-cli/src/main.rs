//! The `vti` command.

mod demo;
mod paper;
mod simulate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Variational transdimensional inference: which model, and which parameters, learned together
#[derive(Parser)]
#[command(name = "vti", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Learn a built-in target over eight models of different dimension and compare with the exact answer
    Demo(demo::DemoArgs),
    /// Make a table whose answer is known
    Simulate(simulate::SimulateArgs),
    /// Redo the paper's experiments
    Paper(paper::PaperArgs),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Demo(args) => demo::run(&args),
        Command::Simulate(args) => simulate::run(&args, &output::talk),
        Command::Paper(args) => paper::run(&args, &output::talk),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::talk(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// The only place that prints: data on standard output, talk on standard error. A closed pipe is not an error.
mod output {
    use std::io::Write;

    pub(crate) fn data(line: &str) {
        let _ = writeln!(std::io::stdout(), "{line}");
    }

    pub(crate) fn talk(line: &str) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

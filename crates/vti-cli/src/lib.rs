//! The `vti` command: all of it but the name. A library, so that what it reads can be tried without a process ([`untrusted`]),
//! and so that other programs can do what it does ([`api`]).

pub mod api;
mod args;
mod budget;
mod checking;
mod closed_form;
mod commands;
mod conclude;
mod config;
mod data;
mod earlier;
mod estimate;
mod failure;
mod free_memory;
mod hints;
mod memory;
mod phase;
mod print;
mod progress;
mod question;
mod run;
mod rundir;
mod session;
mod shown;
mod signals;
mod simulate;
mod suggest;
mod unsaved;
pub mod untrusted;
mod watch;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::args::RunArgs;
use crate::config::Config;
use crate::failure::Ending;

/// Variational transdimensional inference: which model, and which parameters, learned together
#[derive(Parser)]
#[command(name = "vti", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Variable selection on built-in data: trains, checks, compares with the exact answer, writes a report
    #[command(after_help = "Example: vti demo")]
    Demo(commands::demo::DemoArgs),
    #[command(flatten)]
    Asked(Asked),
    /// Check a finished or interrupted run again, and write its results
    #[command(after_help = "Example: vti check data.vti")]
    Check(commands::check::CheckArgs),
    /// Correct a run by chains that are exact in the limit, and write its results
    #[command(after_help = "Example: vti refine data.vti")]
    Refine(commands::check::RefineArgs),
    /// Draw models and parameters from what was learned
    #[command(after_help = "Example: vti sample data.vti -n 1000 --out draws.csv")]
    Sample(commands::sample::SampleArgs),
    /// Log densities at given points
    #[command(after_help = "Example: vti log-prob data.vti points.csv")]
    LogProb(commands::log_prob::LogProbArgs),
    /// Predict the response for new rows, averaged over models
    #[command(after_help = "Example: vti predict data.vti new.csv --out predictions.csv")]
    Predict(commands::predict::PredictArgs),
    /// Write a run's page again
    #[command(after_help = "Example: vti report data.vti")]
    Report(commands::report::ReportArgs),
    /// Compare several runs
    #[command(after_help = "Example: vti compare first.vti second.vti")]
    Compare(commands::compare::CompareArgs),
    /// Follow a run while it trains
    #[command(after_help = "Example: vti watch data.vti")]
    Watch(commands::watch::WatchArgs),
    /// The exact answer: evidences of all models in closed form, or by quadrature where they have few parameters
    #[command(after_help = "Example: vti enumerate data.csv --response y")]
    Enumerate(Box<commands::enumerate::EnumerateArgs>),
    /// The baseline: reversible jump chains
    #[command(after_help = "Example: vti rjmcmc data.csv --response y --chains 8")]
    Rjmcmc(Box<commands::rjmcmc::RjmcmcArgs>),
    /// Make a table whose answer is known
    #[command(after_help = "Example: vti simulate correlated --out data.csv")]
    Simulate(simulate::SimulateArgs),
    /// Print an example of a configuration file
    #[command(after_help = "Example: vti init dag > run.toml")]
    Init(commands::init::InitArgs),
    /// List what can compute
    #[command(after_help = "Example: vti devices")]
    Devices,
    /// Print completions for a shell
    #[command(after_help = "Example: vti completions bash > ~/.local/share/bash-completion/completions/vti")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one for each command
    #[command(after_help = "Example: vti man ~/.local/share/man/man1")]
    Man {
        /// The directory to write them to
        dir: std::path::PathBuf,
    },
}

/// What makes a run: questions of a table, and a configuration.
#[derive(Subcommand)]
enum Asked {
    /// Which covariates matter for a response? Straight from a table
    #[command(after_help = "Example: vti select data.csv --response y")]
    Select(Box<args::SelectArgs>),
    /// What causes what? Causal graphs straight from a table, if there are no hidden common causes
    #[command(
        after_help = "An edge is a direct cause only if no hidden common cause stands behind its two ends: all that acts on two \
        columns is taken to be among the columns.\n\nExample: vti dag data.csv --time-limit 10m"
    )]
    Dag(Box<args::DagArgs>),
    /// How many changes, and when? Rates of events and counts, means or lines that change, straight from a table
    #[command(
        name = "changepoints",
        after_help = "All places of changes are summed or integrated: the answer is exact, and nothing is trained.\n\nExample: vti \
        changepoints builtin:coal --kind events --time day --start 1 --end 40908 --rate-prior gamma:1,200"
    )]
    ChangePoints(Box<args::ChangePointsArgs>),
    /// How many components? Mixtures of normal distributions, in one or several columns, straight from a table
    #[command(
        after_help = "Every number of components is weighed, from 1 on, and which component an observation is from is summed out.\n\nExample: \
        vti mixture data.csv --column x"
    )]
    Mixture(Box<args::MixtureArgs>),
    /// How many peaks, or sinusoids? Over a polynomial background, with unknown noise, straight from a table
    #[command(
        after_help = "No peak at all is a model like any other. Backgrounds, and amplitudes of sinusoids, are integrated out.\n\n\
        Example: vti peaks spectrum.csv --x energy --y counts --max-peaks 8"
    )]
    Peaks(Box<args::PeaksArgs>),
    /// How many layers of the earth, where, and of what? Under magnetotelluric data, or those of any forward program
    #[command(
        after_help = "A program reads one earth per line from standard input: N, the depths of the N - 1 interfaces, ascending, and the \
        property of every layer from the top, with spaces between. It answers each with one line of as many numbers as the table has \
        rows, or nan where that earth has no answer, and flushes it. Several processes run side by side and stay open.\n\nExample: vti layers sounding.csv --forward mt"
    )]
    Layers(Box<args::LayersArgs>),
    /// The same from a configuration file
    #[command(after_help = "Example: vti init select > run.toml && vti fit run.toml")]
    Fit(args::FitArgs),
}

impl Asked {
    /// Settings of the run.
    fn settings(self) -> Result<(Config, RunArgs)> {
        match self {
            Self::Select(args) => Ok(args.settings()?),
            Self::Dag(args) => args.settings(),
            Self::ChangePoints(args) => args.settings(),
            Self::Mixture(args) => args.settings(),
            Self::Peaks(args) => args.settings(),
            Self::Layers(args) => args.settings(),
            Self::Fit(args) => Ok(args.settings()?),
        }
    }
}

/// Runs the command of this process.
pub fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let name = matches.subcommand_name().map(String::from);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match run(cli.command) {
        Ok(ending) => ending.into(),
        Err(error) => {
            let message = failure::message(&error);
            let command = Cli::command();
            let command = name.and_then(|name| command.find_subcommand(name));
            let message = command.map_or_else(|| message.clone(), |command| hints::for_command(&message, command));
            print::talk(&format!("error: {message}"));
            failure::code(&error)
        }
    }
}

fn run(command: Command) -> Result<Ending> {
    match command {
        Command::Demo(args) => commands::demo::run(args),
        Command::Asked(asked) => {
            let (config, args) = asked.settings()?;
            run::run(config, &args)
        }
        Command::Check(args) => commands::check::check(&args),
        Command::Refine(args) => commands::check::refine(&args),
        Command::Sample(args) => commands::sample::run(&args),
        Command::LogProb(args) => commands::log_prob::run(&args),
        Command::Predict(args) => commands::predict::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Watch(args) => commands::watch::run(&args),
        Command::Enumerate(args) => commands::enumerate::run(*args),
        Command::Rjmcmc(args) => commands::rjmcmc::run(*args),
        Command::Simulate(args) => simulate::run(&args, &print::talk).map(|()| Ending::Done),
        Command::Init(args) => commands::init::run(&args),
        Command::Devices => commands::devices(),
        Command::Man { dir } => {
            std::fs::create_dir_all(&dir).with_context(|| format!("{}: cannot be made", dir.display()))?;
            let pages = clap_mangen::generate_to(Cli::command(), &dir);
            pages.with_context(|| format!("{}: manual pages cannot be written", dir.display()))?;
            Ok(Ending::Done)
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "vti", &mut script);
            print::bytes(&script)?;
            Ok(Ending::Done)
        }
    }
}

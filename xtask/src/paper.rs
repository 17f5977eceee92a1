//! `cargo xtask paper EXPERIMENT`: the paper's experiments, which are the program `vti-paper`.

use std::ffi::OsString;

use anyhow::{Context, Result};
use clap::Args;

use crate::process::{cargo, run as must};

/// All that follows is for the experiment.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct PaperArgs {
    /// figure2, figure3, figure4 or table1, and its options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(args: &PaperArgs) -> Result<()> {
    // Where results go is meant from where the command is given.
    let here = std::env::current_dir().context("there is no current directory")?;
    let mut command = cargo(&["run", "--release", "--quiet", "--package", "vti-paper", "--"]);
    must(command.args(&args.arguments).current_dir(here))
}

//! `vti init`: examples of configuration files.

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::failure::Ending;
use crate::print;

/// Options of `vti init`.
#[derive(Args)]
pub(crate) struct InitArgs {
    /// Of which kind of problem
    kind: Kind,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Variable selection
    Select,
    /// Causal graphs
    Dag,
}

pub(crate) fn run(args: &InitArgs) -> Result<Ending> {
    let text = match args.kind {
        Kind::Select => include_str!("select.toml"),
        Kind::Dag => include_str!("dag.toml"),
    };
    print::data(text.trim_end())?;
    Ok(Ending::Done)
}

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
    /// Change points
    Changepoints,
    /// Mixtures of normal distributions
    Mixture,
    /// Peaks or sinusoids
    Peaks,
    /// Layers of the earth
    Layers,
}

pub(crate) fn run(args: &InitArgs) -> Result<Ending> {
    let text = match args.kind {
        Kind::Select => include_str!("select.toml"),
        Kind::Dag => include_str!("dag.toml"),
        Kind::Changepoints => include_str!("changepoints.toml"),
        Kind::Mixture => include_str!("mixture.toml"),
        Kind::Peaks => include_str!("peaks.toml"),
        Kind::Layers => include_str!("layers.toml"),
    };
    print::data(text.trim_end())?;
    Ok(Ending::Done)
}

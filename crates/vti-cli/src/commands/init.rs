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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use crate::config::{Config, DagConfig, ProblemConfig};

    #[test]
    fn examples_say_what_is_so_without_them() {
        for kind in ["select", "dag"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/commands/{kind}.toml"));
            let example = Config::read(&path, &[]).unwrap();
            let mut bare = Config::new(example.source.clone(), example.problem.clone());
            bare.output.dir.clone_from(&example.output.dir);
            assert_eq!(example, bare);
            if let ProblemConfig::Dag(asked) = &example.problem {
                let bare = DagConfig::default();
                assert_eq!(*asked, DagConfig { scale: Some(bare.scale()), ..bare });
            }
        }
    }
}

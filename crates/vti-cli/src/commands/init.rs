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
}

pub(crate) fn run(args: &InitArgs) -> Result<Ending> {
    let text = match args.kind {
        Kind::Select => include_str!("select.toml"),
    };
    print::data(text.trim_end())?;
    Ok(Ending::Done)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::config::Config;

    #[test]
    fn the_example_says_what_is_so_without_it() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands/select.toml");
        let example = Config::read(&path, &[]).unwrap();
        let mut bare = Config::new(example.source.clone(), example.problem.clone());
        bare.output.dir.clone_from(&example.output.dir);
        assert_eq!(example, bare);
    }
}

//! `cargo xtask check`: rules that a machine can check by reading files, in a second or two.
//!
//! Each rule is a file here, a function from a [`Tree`] to what is wrong.

mod figures;
mod ignored;
mod layers;
mod length;
mod notation;
mod tree;
mod unsafe_code;
mod words;

use std::fmt::{Display, Formatter};

use anyhow::{Result, bail};
use clap::Args;

use self::tree::Tree;
use crate::process::{announce, root};

/// How to check.
#[derive(Args, Default)]
pub(crate) struct CheckArgs {
    /// Write the README's figures anew, from docs/figures.md and the newest results
    #[arg(long)]
    write: bool,
}

/// Something wrong, and where.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    path: String,
    /// Counted from 1.
    line: usize,
    /// What is wrong, and what to do about it.
    text: String,
}

impl Display for Violation {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.text)
    }
}

/// A rule of its own for each.
const RULES: [fn(&Tree) -> Vec<Violation>; 6] =
    [layers::check, unsafe_code::check, notation::check, words::check, length::check, figures::check];

pub(crate) fn run(args: &CheckArgs) -> Result<()> {
    announce("check");
    let root = root();
    let tree = Tree::read(&root)?;
    if args.write {
        return figures::write(&tree, &root);
    }
    let mut found: Vec<Violation> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    found.extend(ignored::check(&tree, |place| ignored::by_git(&root, place)));
    if found.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = found.iter().map(Violation::to_string).collect();
    bail!("{} rules of CONTRIBUTING.md are broken\n{}", lines.len(), lines.join("\n"))
}

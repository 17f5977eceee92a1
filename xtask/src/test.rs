//! `cargo xtask test`: everything that must hold.

use anyhow::Result;

use crate::check;
use crate::process::{announce, cargo, python, run as must};

pub(crate) fn run() -> Result<()> {
    check::run(&check::CheckArgs::default())?;
    must(&mut cargo(&["fmt", "--all", "--check"]))?;
    must(&mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"]))?;
    let mut tests = cargo(&["test", "--workspace", "--quiet"]);
    // What other tools make of our files is tested where they can be had.
    match python("python", "crates/vti-cli/tests/cli/requirements.txt") {
        Ok(python) => drop(tests.env("VTI_PYTHON", python)),
        Err(error) => announce(&format!(
            "without pandas, polars, ArviZ, NetworkX and pydot, so their tests are left out: {error:#}"
        )),
    }
    must(&mut tests)?;
    must(cargo(&["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "--deny warnings"))?;
    // By the program that was tested: another profile would compile everything once more.
    must(&mut cargo(&["run", "--quiet", "--", "demo", "--out", "target/demo"]))
}

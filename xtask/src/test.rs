//! `cargo xtask test`: everything that must hold.

use std::env::consts::EXE_EXTENSION;
use std::process::Command;

use anyhow::Result;

use crate::process::{announce, cargo, python, run as must};
use crate::{check, package};

pub(crate) fn run() -> Result<()> {
    check::run(&check::CheckArgs::default())?;
    must(&mut cargo(&["fmt", "--all", "--check"]))?;
    must(&mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"]))?;
    let mut tests = cargo(&["test", "--workspace", "--quiet"]);
    // What other tools make of our files is tested where they can be had.
    let python = python("python", "python/tests/requirements.txt");
    match &python {
        Ok(python) => drop(tests.env("VTI_PYTHON", python)),
        Err(error) => announce(&format!(
            "without pandas, polars, ArviZ, NetworkX and pydot, so their tests and those of the Python package are left out: \
             {error:#}"
        )),
    }
    must(&mut tests)?;
    if let Ok(python) = &python {
        package::test(python)?;
    }
    must(cargo(&["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "--deny warnings"))?;
    // By the program that was tested, which lies beside this one: another profile, or the features of one package alone, would
    // compile everything once more.
    let vti = std::env::current_exe()?.with_file_name("vti").with_extension(EXE_EXTENSION);
    must(Command::new(vti).args(["demo", "--out", "target/demo", "--force"]))
}

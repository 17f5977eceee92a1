//! What other tools make of our files, where VTI_PYTHON names a Python that has them (`cargo xtask test` sees to that).

use std::path::Path;
use std::process::Command;

use crate::support::{Scratch, fixture, select};

#[test]
fn pandas_polars_and_arviz_read_the_draws() {
    let Ok(python) = std::env::var("VTI_PYTHON") else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/read_draws.py");
    let scratch = Scratch::new();
    let data = fixture("mixed.csv");
    scratch.fine(&select(&data, "y", &["--out", "run", "--quiet"]));
    let output = Command::new(python).arg(script).arg(scratch.path("run")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

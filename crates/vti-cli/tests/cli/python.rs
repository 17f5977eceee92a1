//! What other tools make of our files. Skipped where Python or its packages are missing.

use std::path::Path;
use std::process::Command;

use crate::support::{Scratch, fixture, select};

#[test]
fn pandas_polars_and_arviz_read_the_draws() {
    let python = std::env::var("VTI_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/read_draws.py");
    let there = Command::new(&python).args(["-c", "import pandas, polars, pyarrow, arviz"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        return;
    }
    let scratch = Scratch::new();
    let data = fixture("mixed.csv");
    scratch.fine(&select(&data, "y", &["--out", "run", "--quiet"]));
    let output = Command::new(python).arg(script).arg(scratch.path("run")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

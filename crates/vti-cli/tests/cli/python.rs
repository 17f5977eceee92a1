//! What other tools make of our files, where VTI_PYTHON names a Python that has them (`cargo xtask test` sees to that).

use std::path::Path;
use std::process::Command;

use crate::support::{SMALL, Scratch, fixture, select};

/// Runs a script on a run directory.
fn read(script: &str, python: &str, scratch: &Scratch) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli").join(script);
    let output = Command::new(python).arg(script).arg(scratch.path("run")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn pandas_polars_and_arviz_read_the_draws() {
    let Ok(python) = std::env::var("VTI_PYTHON") else { return };
    let scratch = Scratch::new();
    let data = fixture("mixed.csv");
    scratch.fine(&select(&data, "y", &["--out", "run", "--quiet"]));
    read("read_draws.py", &python, &scratch);
}

#[test]
fn networkx_and_pydot_read_the_graphs() {
    let Ok(python) = std::env::var("VTI_PYTHON") else { return };
    let scratch = Scratch::new();
    // Names that must be escaped in one format or another.
    let rows = (0..30).map(|i: u32| {
        let wave = |k: f64| (f64::from(i) * k).sin();
        format!("{},{},{}\n", wave(1.3), 2.0 * wave(1.3) + 0.3 * wave(7.7), wave(2.9))
    });
    scratch.write("t.csv", "\"a \"\"b\"\" <&>\",back\\,\"x -> y; z\"\n".to_string() + &rows.collect::<String>());
    scratch.fine(&[&["dag", "t.csv", "--sem", "linear", "--out", "run", "--quiet"][..], &SMALL].concat());
    read("read_graph.py", &python, &scratch);
}

//! The program of the README: it is the example, and it does what it says.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::env::consts::EXE_EXTENSION;
use std::path::{Path, PathBuf};
use std::process::Command;

use vti::answer::{Answer, Found};
use vti_report::files;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

/// The example, which is compiled with the tests and lies beside them. To have Cargo run it would compile everything once more,
/// with the features of this package alone.
fn program(name: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let program = deps.ancestors().nth(2).unwrap().join("examples").join(name).with_extension(EXE_EXTENSION);
    assert!(program.exists(), "{} is missing: build it with all targets", program.display());
    program
}

#[test]
fn the_readme_has_the_whole_example() {
    let readme = read("README.md");
    let block = readme.split_once("```rust\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;
    assert_eq!(block, read("examples/own_problem.rs"));
}

/// Runs an example in a directory of its own: what it printed.
fn run(name: &str) -> (PathBuf, String) {
    let scratch = std::env::temp_dir().join(format!("vti-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let output = Command::new(program(name)).current_dir(&scratch).output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success(), "{said:?}");
    (scratch, said[0].clone())
}

/// Components of one's own, without a gradient: their number, evidences, and a page.
#[test]
fn it_counts_the_bumps() {
    let (scratch, said) = run("how_many");
    let file = |name: &str| std::fs::read_to_string(scratch.join("bumps.vti").join(name)).unwrap();
    let answer = Answer::from_json(&file(files::SUMMARY)).unwrap();
    let Found::Count(found) = &answer.found else { panic!("{answer:?}") };
    assert_eq!(found.most_probable, 2, "{said}");
    assert!(found.components.get("2").unwrap().probability.corrected > 0.7, "{said}");
    assert!(found.components.get("0").unwrap().probability.corrected < 0.01, "{said}");
    let table = &found.given.iter().find(|given| given.count == 2).unwrap().tables[0];
    assert!((table.rows[0][0].mean - 3.0).abs() < 0.3 && (table.rows[1][0].mean - 6.5).abs() < 0.4, "{table:?}");
    assert!(file(files::PAGE).contains("<h1>How many bumps are in the curve?</h1>"));
    std::fs::remove_dir_all(&scratch).unwrap();
}

#[test]
fn it_finds_the_tones_and_leaves_tables_files_and_a_page() {
    let (scratch, said) = run("own_problem");
    assert!(said.contains("averaged over models"), "{said}");
    let file = |name: &str| std::fs::read_to_string(scratch.join("tones.vti").join(name)).unwrap();
    let answer = Answer::from_json(&file(files::SUMMARY)).unwrap();
    let Found::Own(found) = &answer.found else { panic!("{answer:?}") };
    assert_eq!(found.highest_probability_model, "{low, high}");
    let inclusion = |name: &str| found.inclusion.get(name).unwrap().corrected;
    assert!(inclusion("low") > 0.9 && inclusion("middle") < 0.5);
    assert!((found.coefficients.get("low").unwrap().mean.corrected - 0.8).abs() < 0.3);
    assert!(file(files::PAGE).contains("<h1>Which tones are in the signal?</h1>"));
    assert_eq!(file(files::MODELS).lines().count(), 1 + answer.models.len());
    let (samples, schema) = files::read_draws(&scratch.join("tones.vti").join(files::DRAWS)).unwrap();
    assert!(schema.is_none() && samples.names == ["low", "middle", "high", "shrill"]);
    std::fs::remove_dir_all(&scratch).unwrap();
}

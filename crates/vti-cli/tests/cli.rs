//! The real binary, run as a person would.

#![allow(missing_docs, clippy::unwrap_used)]

use std::process::{Command, Output};

fn vti(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vti")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_demo_learns_the_evidence_of_every_model() {
    let output = vti(&["demo", "--steps", "700", "--threads", "2"]);
    assert_eq!(output.status.code(), Some(0));
    let table = text(&output.stdout);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 10, "a header, eight models, a summary:\n{table}");
    for line in &lines[1..9] {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let (evidence, bound, error): (f64, f64, f64) =
            (cells[2].parse().unwrap(), cells[3].parse().unwrap(), cells[5].parse().unwrap());
        // A bound from below, up to Monte Carlo error, and not far below.
        assert!(bound < evidence + 4.0 * error + 1e-9 && bound > evidence - 0.25, "{line}");
    }
    let distance: f64 = lines[9].rsplit(' ').next().unwrap().parse().unwrap();
    assert!(distance < 0.05, "{}", lines[9]);
    // Progress goes to the other stream.
    let talk = text(&output.stderr);
    assert!(talk.contains("step    700   loss") && talk.contains("took"), "{talk}");
}

#[test]
fn the_demo_repeats_itself_for_any_number_of_threads() {
    let run =
        |threads: &str, seed: &str| text(&vti(&["demo", "--steps", "30", "--threads", threads, "--seed", seed]).stdout);
    let once = run("1", "5");
    assert_eq!(once, run("2", "5"));
    assert_eq!(once, run("3", "5"));
    assert_ne!(once, run("2", "6"));
}

#[test]
fn wrong_usage_is_answered_with_help_and_code_2() {
    let nothing = vti(&[]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(text(&nothing.stderr).contains("Usage: vti <COMMAND>"));
    for (arguments, hint) in [
        (vec!["demp"], "a similar subcommand exists: 'demo'"),
        (vec!["demo", "--steps", "0"], "0 is not in 1.."),
        (vec!["demo", "--step", "3"], "a similar argument exists: '--steps'"),
        (vec!["demo", "--threads", "many"], "invalid digit found in string"),
    ] {
        let output = vti(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(hint), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    let version = vti(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    assert_eq!(text(&version.stdout).trim(), concat!("vti ", env!("CARGO_PKG_VERSION")));
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_not_an_error() {
    let line = format!("{} demo --steps 5 2>/dev/null | true; exit ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_vti"));
    let output = Command::new("bash").args(["-c", &line]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}

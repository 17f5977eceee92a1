//! The real binary, run as a person would.

#![allow(missing_docs, clippy::unwrap_used)]

mod paper;

use std::process::{Command, Output};

fn vti(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vti")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_demo_learns_and_corrects_the_probability_of_every_model() {
    let output = vti(&["demo", "--steps", "700", "--threads", "2"]);
    assert_eq!(output.status.code(), Some(0));
    let table = text(&output.stdout);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 12, "a header, eight models, evidence, distance, verdict:\n{table}");
    for line in &lines[1..9] {
        // "… log evidence, its estimate ± error, π(m), q(m), corrected ± error".
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|cell| cell.parse().ok()).collect();
        let [evidence, estimate, error, exact, learned, corrected, spread] = numbers[..] else { panic!("{line}") };
        assert!((estimate - evidence).abs() < 4.0 * error + 2e-3, "{line}");
        assert!((learned - exact).abs() < 0.02 && (corrected - exact).abs() < 4.0 * spread + 1e-3, "{line}");
    }
    assert!(lines[9].starts_with("log evidence:") && lines[9].ends_with("exact 0.8713"), "{}", lines[9]);
    assert!(lines[11].starts_with("trust: k̂ = "), "{}", lines[11]);
    // Progress goes to the other stream, and so do choices with their reasons.
    let talk = text(&output.stderr);
    assert!(talk.contains("step    700   bound") && talk.contains("all 700 steps done"), "{talk}");
    assert!(talk.contains("models: surrogate (8 models"), "{talk}");
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

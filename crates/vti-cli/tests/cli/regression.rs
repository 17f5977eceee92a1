//! What people who fit regressions need: offsets and exposures.

use crate::support::{Scratch, number};

/// Options of a quick run that learns.
const SMALL: [&str; 8] = ["--steps", "300", "--threads", "2", "--set", "train.batch=128", "--set", "check.draws=2000"];

/// A number that looks uniform between 0 and 1.
fn noise(row: u32, by: u32) -> f64 {
    f64::from((row * 7919 + row * row * by) % 1009) / 1009.0
}

/// Rows of predictions, empty cells as not a number.
fn predictions(text: &str) -> Vec<Vec<f64>> {
    let cells = |line: &str| line.split(',').map(|cell| cell.parse().unwrap_or(f64::NAN)).collect();
    text.lines().skip(1).map(cells).collect()
}

/// Counts of which the rate depends on x, the time they were counted in varying.
fn counts() -> String {
    let row = |row: u32| {
        let (x, z, days) = (noise(row, 577), noise(row, 331), 1.0 + 20.0 * noise(row, 467));
        let mean = days * (0.2 + 1.5 * x).exp();
        let count = (mean + mean.sqrt() * 3.4 * (noise(row, 719) - 0.5)).round().max(0.0);
        format!("{x},{z},{days},{},{count}\n", days.ln())
    };
    std::iter::once("x,z,days,log_days,count\n".to_string()).chain((0..80).map(row)).collect()
}

#[test]
fn counts_are_proportional_to_their_exposure() {
    let scratch = Scratch::new();
    scratch.write("t.csv", counts());
    let question = ["select", "t.csv", "--response", "count", "--likelihood", "poisson", "--out", "run", "--force"];
    let learn = |more: &[&str]| scratch.fine(&[&question[..], &SMALL, more].concat());
    let told = learn(&["--exposure", "days", "--exclude", "log_days"]);
    assert!(told.talk.contains("offset: the logarithm of days is added to every predictor"), "{}", told.talk);
    let summary = scratch.json("run/summary.json");
    let names: Vec<&String> = summary["inclusion"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["x", "z"]);
    // Log rates have the slope they were made with, four standard errors being 0.3.
    assert!((number(&summary["coefficients"]["x"]["mean"]["corrected"]) - 1.5).abs() < 0.3, "{summary}");
    // Twice the time, twice the counts; no time, no prediction; no column, no answer.
    scratch.write("new.csv", "x,z,days\n0.3,0.4,5\n0.3,0.4,10\n0.3,0.4,0\n0.3,0.4,\n");
    let predicted = scratch.fine(&["predict", "run", "new.csv"]);
    let found = predictions(&predicted.data);
    assert!((found[1][1] / found[0][1] - 2.0).abs() < 1e-9, "{found:?}");
    assert!(found[2][1].is_nan() && found[3][1].is_nan());
    assert!(predicted.talk.contains("days 1 (missing), days 1 (not positive)"), "{}", predicted.talk);
    scratch.write("new.csv", "x,z\n0.3,0.4\n");
    scratch.refused(&["predict", "run", "new.csv"], &["days"]);
    // The same by its logarithm.
    learn(&["--offset", "log_days", "--exclude", "days"]);
    assert_eq!(scratch.json("run/summary.json")["coefficients"]["x"], summary["coefficients"]["x"]);
}

#[test]
fn a_gaussian_offset_is_taken_from_the_response() {
    let scratch = Scratch::new();
    let rows = |line: fn([f64; 4]) -> String| -> String {
        let row = |row: u32| line([noise(row, 577), noise(row, 331), noise(row, 467), noise(row, 719)]);
        (0..30).map(row).collect()
    };
    scratch.write("a.csv", "x,z,o,y\n".to_string() + &rows(|[x, z, o, e]| format!("{x},{z},{o},{}\n", x + o + e)));
    scratch.write("b.csv", "x,z,y\n".to_string() + &rows(|[x, z, o, e]| format!("{x},{z},{}\n", x + o + e - o)));
    let inclusion = |file: &str, more: &[&str]| {
        scratch.fine(&[&["select", file, "--response", "y", "--out", "run", "--force"][..], more].concat());
        let summary = scratch.json("run/summary.json");
        ["x", "z"].map(|name| number(&summary["inclusion"][name]["exact"]))
    };
    let (with, without) = (inclusion("a.csv", &["--offset", "o"]), inclusion("b.csv", &[]));
    assert!(with.iter().zip(&without).all(|(a, b)| (a - b).abs() < 1e-9), "{with:?} {without:?}");
    // A prediction has it again.
    inclusion("a.csv", &["--offset", "o"]);
    scratch.write("new.csv", "x,z,o\n0.3,0.4,0\n0.3,0.4,7\n");
    let found = predictions(&scratch.fine(&["predict", "run", "new.csv"]).data);
    assert!((found[1][1] - found[0][1] - 7.0).abs() < 1e-9, "{found:?}");
    // What makes no sense is refused.
    let refused = |more: &[&str], parts: &[&str]| {
        scratch.refused(&[&["select", "a.csv", "--response", "y", "--out", "new"][..], more].concat(), parts);
    };
    refused(&["--exposure", "o"], &["exposures are of counts", "--offset o"]);
    refused(&["--offset", "y"], &["y is the response"]);
    refused(&["--offset", "oo"], &["there is no column oo, which --offset names"]);
    refused(&["--offset", "o", "--always", "o"], &["cannot be listed in --always"]);
    refused(&["--offset", "o", "--exclude", "o"], &["listed in both --exclude and --offset"]);
    scratch.write("a.csv", "x,z,days,y\n1,2,3,4\n2,1,0,3\n1,5,2,2\n3,4,1,1\n5,2,3,2\n");
    refused(
        &["--likelihood", "poisson", "--exposure", "days"],
        &["line 3, column days: the exposure 0 is not positive"],
    );
}

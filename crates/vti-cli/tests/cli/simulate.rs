//! `vti simulate`.

use crate::support::Scratch;

#[test]
fn simulated_tables_are_those_of_the_library() {
    use vti::problem::selection::simulate::{Misspecification, RobustSettings, robust};
    let scratch = Scratch::new();
    let arguments = ["simulate", "robust-selection", "--misspecification", "high", "--seed", "7"];
    let outcome = scratch.fine(&[&arguments[..], &["--out", "high.csv"]].concat());
    assert!(outcome.data.is_empty(), "nothing was asked to be printed");
    let settings = RobustSettings { misspecification: Misspecification::High, seed: 7, ..RobustSettings::default() };
    let expected = robust(&settings).unwrap();
    let found = scratch.read("high.csv");
    let rows = found.strip_prefix("y,x1,x2,x3,x4,x5,x6,x7\n").unwrap().lines();
    assert_eq!(rows.clone().count(), 50);
    for (row, line) in rows.enumerate() {
        let numbers: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        assert_eq!(numbers[0], expected.table.response[row]);
        assert!(expected.table.terms.iter().zip(&numbers[1..]).all(|(term, number)| term.values[row] == *number));
    }
    let relevant = expected.table.terms.iter().zip(&expected.relevant).filter(|(_, relevant)| **relevant);
    let names: Vec<&str> = relevant.map(|(term, _)| term.name.as_str()).collect();
    let talk = outcome.talk;
    assert!(talk.contains(&format!("relevant covariates: {}\n", names.join(", "))), "{talk}");
}

#[test]
fn a_simulation_that_cannot_be_says_why() {
    let scratch = Scratch::new();
    for (arguments, message) in [
        (vec!["robust-selection", "--out", "missing/table.csv"], "hint: its folder must exist"),
        (vec!["robust-selection", "--rows", "2", "--out", "table.csv"], "rows is 2, it must be at least 3"),
        (
            vec!["robust-selection", "--misspecification", "low", "--out", "table.csv"],
            "possible values: none, mid, high",
        ),
        (vec!["correlated", "--covariates", "3", "--relevant", "4", "--out", "table.csv"], "relevant is 4"),
        (vec!["correlated", "--correlation", "-1.5", "--out", "table.csv"], "it must be between -1 and 1"),
    ] {
        let outcome = scratch.run(&[&["simulate"], arguments.as_slice()].concat());
        assert_ne!(outcome.code, Some(0), "{arguments:?}");
        assert!(outcome.talk.contains(message), "{arguments:?}: {}", outcome.talk);
    }
    assert!(!scratch.path("table.csv").exists());
}

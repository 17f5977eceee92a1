//! `vti simulate` and `vti paper`, at sizes that take seconds.

use std::fs;
use std::path::Path;

use crate::support::Scratch;

/// A run that writes its files to a place of the scratch directory; what it said.
fn run(scratch: &Scratch, arguments: &[&str], out: &str) -> String {
    let outcome = scratch.fine(&[arguments, &["--out", out]].concat());
    assert!(outcome.data.is_empty(), "nothing was asked to be printed");
    outcome.talk
}

/// Rows of a table whose header must be this one.
fn rows(path: &Path, header: &str) -> Vec<Vec<String>> {
    let table = fs::read_to_string(path).unwrap();
    let mut lines = table.lines().map(|line| line.split(',').map(str::to_string).collect::<Vec<_>>());
    let found = lines.next().unwrap();
    assert_eq!(found.join(","), header);
    let rows: Vec<_> = lines.collect();
    assert!(rows.iter().all(|row| row.len() == found.len()), "{}", path.display());
    rows
}

/// How many elements of a name a plot has; it must be well-formed.
fn elements(path: &Path, name: &str) -> usize {
    let svg = fs::read_to_string(path).unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", name))).count()
}

#[test]
fn simulated_tables_are_those_of_the_library() {
    use vti::problem::selection::simulate::{Misspecification, RobustSettings, robust};
    let scratch = Scratch::new();
    let arguments = ["simulate", "robust-selection", "--misspecification", "high", "--seed", "7"];
    let talk = run(&scratch, &arguments, "high.csv");
    let settings = RobustSettings { misspecification: Misspecification::High, seed: 7, ..RobustSettings::default() };
    let expected = robust(&settings).unwrap();
    let found = rows(&scratch.path("high.csv"), "y,x1,x2,x3,x4,x5,x6,x7");
    assert_eq!(found.len(), 50);
    for (row, cells) in found.iter().enumerate() {
        let numbers: Vec<f64> = cells.iter().map(|cell| cell.parse().unwrap()).collect();
        assert_eq!(numbers[0], expected.table.response[row]);
        assert!(expected.table.terms.iter().zip(&numbers[1..]).all(|(term, number)| term.values[row] == *number));
    }
    let relevant = expected.table.terms.iter().zip(&expected.relevant).filter(|(_, relevant)| **relevant);
    let names: Vec<&str> = relevant.map(|(term, _)| term.name.as_str()).collect();
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

#[test]
fn figure_2_has_a_row_for_every_model_and_six_plots() {
    let scratch = Scratch::new();
    let out = scratch.path("figure2");
    let small = ["paper", "figure2", "--data-sets", "1", "--steps", "20", "--sweeps", "200", "--threads", "2"];
    let talk = run(&scratch, &small, "figure2");
    assert!(talk.contains("[18/18] high misspecification, wide prior, data set 1, spline"), "{talk}");
    let models = rows(
        &out.join("models.csv"),
        "misspecification,prior,family,data_set,model,size,q,pi,pi_se,cross_entropy,cross_entropy_se,draws,null,generating",
    );
    assert_eq!(models.len(), 3 * 2 * 3 * 128);
    for fit in models.chunks(128) {
        let sum = |column: usize| fit.iter().map(|row| row[column].parse::<f64>().unwrap()).sum::<f64>();
        // Four digits of each probability are written.
        assert!((sum(6) - 1.0).abs() < 1e-3 && (sum(7) - 1.0).abs() < 1e-3, "{} {}", sum(6), sum(7));
        assert_eq!(sum(11), 32.0 * 40.0, "every state of every chain is at some model");
        assert_eq!(fit.iter().filter(|row| row[12] == "true").count(), 1);
        assert_eq!(fit.iter().filter(|row| row[13] == "true" && row[5] == "2").count(), 1);
        let enough = |row: &&Vec<String>| row[11].parse::<usize>().unwrap() >= 30;
        assert!(fit.iter().filter(enough).all(|row| row[9].parse::<f64>().unwrap().is_finite()));
        assert!(fit.iter().filter(|row| !enough(row)).all(|row| row[9].is_empty()));
    }
    for level in ["none", "mid", "high"] {
        for prior in ["focused", "wide"] {
            let plot = out.join(format!("{level}-{prior}.svg"));
            assert!(elements(&plot, "text") > 20 && elements(&plot, "path") > 20, "{}", plot.display());
        }
    }
    assert_eq!(fs::read_to_string(out.join("summary.csv")).unwrap().lines().count(), 1 + 18);
    assert!(fs::read_to_string(out.join("summary.md")).unwrap().contains("Points move to the diagonal"));

    // What is finished is not done again, and half a line is done anew.
    let journal = fs::read_to_string(out.join("finished.jsonl")).unwrap();
    fs::write(out.join("finished.jsonl"), &journal[..journal.len() - 100]).unwrap();
    let before = fs::read_to_string(out.join("models.csv")).unwrap();
    let talk = run(&scratch, &small, "figure2");
    assert!(talk.contains("17 of 18 fits were finished before") && !talk.contains("[17/18]"), "{talk}");
    assert_eq!(fs::read_to_string(out.join("models.csv")).unwrap(), before);

    let other = scratch.run(&["paper", "figure2", "--seed", "2", "--out", "figure2"]);
    assert_ne!(other.code, Some(0));
    assert!(other.talk.contains("holds results of other settings"), "{}", other.talk);
}

#[test]
fn figure_4_has_a_bar_for_every_feasible_distribution() {
    let scratch = Scratch::new();
    let out = scratch.path("figure4");
    let small = ["--data-sets", "1", "--steps", "10", "--sweeps", "200", "--exponents", "3,16", "--threads", "2"];
    run(&scratch, &[&["paper", "figure4"], small.as_slice()].concat(), "figure4");
    let fits = rows(
        &out.join("fits.csv"),
        "misspecification,log2_models,distribution,data_set,cross_entropy,cross_entropy_se,elbo,khat,seconds,reference_rhat,\
         reference_effective,left_out",
    );
    let kinds = |feasible: bool| {
        let chosen = fits.iter().filter(|row| row[11].is_empty() == feasible);
        chosen.map(|row| format!("{} {} {}", row[0], row[1], row[2])).collect::<Vec<_>>()
    };
    let (fitted, left_out) = (kinds(true), kinds(false));
    assert_eq!((fitted.len(), left_out.len()), (8, 4), "{fits:?}");
    assert!(left_out.iter().all(|kind| kind.contains(" 16 ") && !kind.ends_with("autoregressive")), "{left_out:?}");
    assert!(fits.iter().filter(|row| row[11].is_empty()).all(|row| row[4].parse::<f64>().unwrap().is_finite()));
    // A bar for each fit, and a few boxes besides.
    assert!(elements(&out.join("cardinality.svg"), "rect") >= 8);
    for plot in ["bivariate.svg", "multivariate.svg"] {
        assert!(elements(&out.join(plot), "path") > 4, "{plot}");
    }
    let page = fs::read_to_string(out.join("summary.md")).unwrap();
    assert!(page.contains("Left out: surrogate with 2¹⁶ models"), "{page}");
}

/// The columns of every convention, as tables end.
const SCORES: &str = "f1_mean,expected_shd2,brier_sum,auroc_paper,auroc,balanced_accuracy,expected_shd1,shd2_threshold,\
    shd1_threshold,f1_threshold,brier_mean,expected_cpdag_shd2,expected_cpdag_shd1,cpdag_f1_mean";

#[test]
fn figure_3_scores_every_method_and_says_how_to_have_the_peers() {
    let scratch = Scratch::new();
    let out = scratch.path("figure3");
    let small = ["--data-sets", "2", "--steps", "3", "--rows", "8,60", "--nodes", "4", "--threads", "2"];
    let command = [&["paper", "figure3", "--joint-steps", "3"], small.as_slice()].concat();
    let talk = run(&scratch, &command, "figure3");
    assert!(talk.contains("without DAGMA and DiBS") && talk.contains("--peers peers/bin/python"), "{talk}");
    assert!(fs::read_to_string(out.join("peers-requirements.txt")).unwrap().contains("dagma=="));
    let columns = "rows,data_set,method,lambda,expected_edges,khat,seconds,processor_seconds,by";
    let fits = rows(&out.join("fits.csv"), &format!("{columns},{SCORES}"));
    // For two sizes and two data sets: q, corrected, the paper's family, and three answers without data.
    assert_eq!(fits.len(), 2 * 2 * 6, "{fits:?}");
    use vti::problem::dag::simulate::{SimulationSettings, simulate};
    for row in fits.iter().filter(|row| row[2] == "empty-graph") {
        let seed = 1000 + row[1].parse::<u64>().unwrap();
        let settings = SimulationSettings { nodes: 4, rows: 60, seed, ..SimulationSettings::default() };
        let edges = simulate(&settings).unwrap().truth.edge_count() as f64;
        // All edges are missed, each once, whatever the convention.
        assert_eq!((row[9].as_str(), row[10].parse::<f64>().unwrap()), ("0.00000", edges));
    }
    let summary = fs::read_to_string(out.join("summary.csv")).unwrap();
    assert_eq!(summary.lines().count(), 1 + 2 * 6);
    let page = fs::read_to_string(out.join("summary.md")).unwrap();
    assert!(page.contains("F1 of VTI improves with rows") && page.contains("Not run: DAGMA"), "{page}");
    assert!(elements(&out.join("figure3.svg"), "path") >= 4 * 5);

    let again = run(&scratch, &command, "figure3");
    assert!(again.contains("12 of 12 fits were finished before"), "{again}");
    let wrong = scratch.run(&["paper", "figure3", "--peers", "no-such-python", "--out", "other"]);
    assert!(wrong.code == Some(1) && wrong.talk.contains("no-such-python: could not be started"), "{}", wrong.talk);
}

#[test]
fn table_1_has_every_penalty_against_both_truths() {
    let scratch = Scratch::new();
    let out = scratch.path("table1");
    let small = ["paper", "table1", "--every", "400", "--steps", "2", "--penalties", "0,200", "--threads", "2"];
    run(&scratch, &small, "table1");
    let columns = "truth,noise,edge_penalty,method,lambda,expected_edges,khat,seconds,processor_seconds,by";
    let fits = rows(&out.join("fits.csv"), &format!("{columns},{SCORES}"));
    // Two noises, two penalties, q and corrected; and three answers without data.
    assert_eq!(fits.len(), 2 * (2 * 2 * 2 + 3), "{fits:?}");
    let empty: Vec<(&str, &str)> =
        fits.iter().filter(|row| row[3] == "empty-graph").map(|row| (row[0].as_str(), row[11].as_str())).collect();
    assert_eq!(empty, [("consensus-17", "17.00000"), ("consensus-18", "18.00000")]);
    // Nothing in 19 rows outweighs 200 nats an edge.
    let expected = |row: &&Vec<String>| row[2] == "200" && row[5].parse::<f64>().unwrap() > 1e-9;
    assert_eq!(fits.iter().filter(expected).count(), 0);
    let page = fs::read_to_string(out.join("summary.md")).unwrap();
    assert!(
        page.contains("| printed in the paper: VTI non-linear DAG | | | 0.44 | 23.00 | 23.00 | 0.68 | | |"),
        "{page}"
    );
}

//! The experiments at sizes that take seconds, as the real program runs them.

#![allow(missing_docs, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An experiment that writes its files to a folder of the tests.
fn start(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vti-paper"));
    command.args(arguments).arg("--out").arg(folder).output().unwrap()
}

/// One that must succeed; what it said.
fn run(folder: &Path, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = start(folder, arguments);
    let talk = String::from_utf8(stderr).unwrap();
    assert!(status.success() && stdout.is_empty(), "{arguments:?}: {talk}");
    talk
}

/// One that must fail, with this in its message.
fn refused(folder: &Path, arguments: &[&str], message: &str) {
    let Output { status, stderr, .. } = start(folder, arguments);
    let talk = String::from_utf8(stderr).unwrap();
    assert!(status.code() == Some(1) && talk.contains(message), "{arguments:?}: {talk}");
}

/// A folder that is not there yet.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
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
fn figure_2_has_a_row_for_every_model_and_six_plots() {
    let out = folder("figure2");
    let small = ["figure2", "--data-sets", "1", "--steps", "20", "--sweeps", "200", "--threads", "2"];
    let talk = run(&out, &small);
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
    let talk = run(&out, &small);
    assert!(talk.contains("17 of 18 fits were finished before") && !talk.contains("[17/18]"), "{talk}");
    assert_eq!(fs::read_to_string(out.join("models.csv")).unwrap(), before);

    refused(&out, &["figure2", "--seed", "2"], "holds results of other settings");
}

#[test]
fn figure_4_has_a_bar_for_every_feasible_distribution() {
    let out = folder("figure4");
    let small = ["--data-sets", "1", "--steps", "10", "--sweeps", "200", "--exponents", "3,16", "--threads", "2"];
    run(&out, &[&["figure4"], small.as_slice()].concat());
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
    let out = folder("figure3");
    let small = ["--data-sets", "2", "--steps", "3", "--rows", "8,60", "--nodes", "4", "--threads", "2"];
    let command = [&["figure3", "--joint-steps", "3"], small.as_slice()].concat();
    let talk = run(&out, &command);
    assert!(talk.contains("without DAGMA and DiBS") && talk.contains("--peers peers/bin/python"), "{talk}");
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

    let again = run(&out, &command);
    assert!(again.contains("12 of 12 fits were finished before"), "{again}");
    refused(&folder("other"), &["figure3", "--peers", "no-such-python"], "no-such-python: could not be started");
}

#[test]
fn table_1_has_every_penalty_against_both_truths() {
    let out = folder("table1");
    let small = ["table1", "--every", "400", "--steps", "2", "--penalties", "5,200", "--threads", "2"];
    run(&out, &small);
    let columns = "truth,noise,edge_penalty,method,lambda,expected_edges,khat,seconds,processor_seconds,by";
    let fits = rows(&out.join("fits.csv"), &format!("{columns},{SCORES}"));
    // Two noises, two penalties, q and corrected; and three answers without data.
    assert_eq!(fits.len(), 2 * (2 * 2 * 2 + 3), "{fits:?}");
    let empty: Vec<(&str, &str)> =
        fits.iter().filter(|row| row[3] == "empty-graph").map(|row| (row[0].as_str(), row[11].as_str())).collect();
    assert_eq!(empty, [("consensus-17", "17.00000"), ("consensus-18", "18.00000")]);
    // Nothing in 19 rows outweighs 200 nats an edge, but some edges 5.
    let expected = |penalty: &str| {
        let edges = fits.iter().filter(|row| row[2] == penalty).map(|row| row[5].parse::<f64>().unwrap());
        edges.fold(0.0, f64::max)
    };
    assert!(expected("200") < 1e-9 && expected("5") > 0.01, "{fits:?}");
    let page = fs::read_to_string(out.join("summary.md")).unwrap();
    assert!(
        page.contains("| printed in the paper: VTI non-linear DAG | | | 0.44 | 23.00 | 23.00 | 0.68 | | |"),
        "{page}"
    );
}

//! How many components, peaks, sinusoids? From a table to a report, with small budgets.

use serde_json::Value;

use crate::support::{Scratch, number};

/// Little of everything: what is looked at here does not depend on much.
const SMALL: [&str; 10] = [
    "--steps",
    "20",
    "--set",
    "train.particles.particles=128",
    "--set",
    "check.opinion.smc.particles=128",
    "--set",
    "check.opinion.smc.kept=8",
    "--set",
    "check.opinion.repeats=1",
];

/// The probability of a number, corrected.
fn corrected(summary: &Value, count: usize) -> f64 {
    number(&summary["components"][count.to_string()]["corrected"])
}

/// Points of which all partitions were summed by another program: bench/reference/counting.
#[test]
fn a_mixture_has_its_reference_whatever_components_are_numbered_by() {
    let truth = [0.00821, 0.02042, 0.22674, 0.27151, 0.25356, 0.21956];
    let scratch = Scratch::new();
    scratch.write("points.csv", include_str!("../../../../bench/reference/counting/points12.csv"));
    for key in ["mean", "precision"] {
        let set = format!("problem.key={key}");
        let asked = ["mixture", "points.csv", "--column", "x", "--max-components", "6", "--out", key, "--set", &set];
        let outcome = scratch.fine(&[&asked[..], &SMALL[..]].concat());
        assert!(outcome.talk.contains("12 rows of x, 1 to 6 normal components"), "{}", outcome.talk);
        let summary = scratch.json(&format!("{key}/summary.json"));
        assert_eq!(summary["kind"], "count");
        for (count, truth) in (1..).zip(truth) {
            let found = &summary["components"][count.to_string()];
            let off = (number(&found["corrected"]) - truth).abs();
            assert!(off < 0.02 + 4.0 * number(&found["se"]), "{key}, {count}: {found} instead of {truth}");
        }
        let log_evidence = number(&summary["log_evidence"]["estimate"]);
        assert!((log_evidence + 28.1348).abs() < 0.3, "{key}: {log_evidence}");
    }
    let memberships = scratch.read("mean/memberships.csv");
    let mut lines = memberships.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(header[..4], ["row", "x", "component", "p1"]);
    for line in lines {
        let shares: Vec<f64> = line.split(',').skip(3).map(|cell| cell.parse().unwrap()).collect();
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{line}");
    }
    for file in ["curves.csv", "positions.csv", "report.html", "config.toml", "posterior.parquet"] {
        assert!(scratch.path("mean").join(file).metadata().unwrap().len() > 0, "{file}");
    }
    let page = scratch.read("mean/report.html");
    for part in ["How many components are there?", "redictive density of x", "Given "] {
        assert!(page.contains(part), "{part}");
    }
    // Priors that were set from the data are written out, and ask the same.
    assert!(scratch.read("mean/config.toml").contains("kind = \"normal\""));
    let predicted = scratch.run(&["predict", "mean", "points.csv"]);
    assert!(predicted.talk.contains("no response to predict"), "{}", predicted.talk);
}

/// Peaks over a constant, and sinusoids: quadrature by another program, bench/reference/counting.
#[test]
fn peaks_and_sinusoids_have_their_references() {
    let scratch = Scratch::new();
    scratch.write("bumps.csv", include_str!("../../../../bench/reference/counting/bumps.csv"));
    scratch.write("tones.csv", include_str!("../../../../bench/reference/counting/tones.csv"));
    let bumps = ["--max-peaks", "2", "--x", "x", "--y", "y"];
    let tones = ["--max-peaks", "3", "--shape", "sinusoid", "--x", "x"];
    let cases = [("bumps", &bumps[..], BUMPS), ("tones", &tones[..], TONES)];
    for (name, options, (log_evidence, truth)) in cases {
        let data = format!("{name}.csv");
        let asked = [&["peaks", &data, "--background", "0", "--out", name], options, &SMALL[..]].concat();
        scratch.fine(&asked);
        let summary = scratch.json(&format!("{name}/summary.json"));
        for (count, truth) in truth.iter().enumerate() {
            let found = &summary["components"][count.to_string()];
            let off = (corrected(&summary, count) - truth).abs();
            assert!(off < 0.02 + 4.0 * number(&found["se"]), "{name}, {count}: {found} instead of {truth}");
        }
        let found = number(&summary["log_evidence"]["estimate"]);
        assert!((found - log_evidence).abs() < 0.3, "{name}: {found} instead of {log_evidence}");
        assert_eq!(summary["curves"][0]["observed"]["kind"], "points");
        assert!(number(&summary["coefficients"]["noise"]["corrected"]) > 0.1);
    }
}

/// Log evidence and probabilities of 0, 1, 2, … peaks.
const BUMPS: (f64, &[f64]) = (-13.6435, &[0.0646, 0.1344, 0.8010]);
const TONES: (f64, &[f64]) = (-46.9969, &[0.5128, 0.2252, 0.2298, 0.0323]);

#[test]
fn configurations_simulations_and_chains() {
    let scratch = Scratch::new();
    scratch.fine(&["simulate", "mixture", "--rows", "40", "--columns", "2", "--components", "2", "--out", "data.csv"]);
    assert_eq!(scratch.read("data.csv").lines().next(), Some("x1,x2"));
    let text = scratch.fine(&["init", "mixture"]).data.replace("[\"x\"]", "[\"x1\", \"x2\"]").replace("30 ", "3 ");
    scratch.write("mixture.toml", &text);
    let chains = scratch.fine(&["rjmcmc", "mixture.toml", "--sweeps", "200", "--burn-in", "200", "--chains", "8"]);
    assert!(chains.data.contains("2 components"), "{}", chains.data);
    scratch.fine(&[&["fit", "mixture.toml", "--out", "two"], &SMALL[..]].concat());
    let summary = scratch.json("two/summary.json");
    assert!(corrected(&summary, 1) < 0.05, "{}", summary["components"]);
    assert_eq!(summary["curves"].as_array().unwrap().len(), 2);
    scratch.fine(&["simulate", "peaks", "--rows", "40", "--peaks", "1", "--out", "data.csv"]);
    let text = scratch.fine(&["init", "peaks"]).data.replace("max_peaks = 6", "max_peaks = 2");
    scratch.write("peaks.toml", &text);
    let chains = scratch.fine(&["rjmcmc", "peaks.toml", "--sweeps", "200", "--burn-in", "200", "--chains", "8"]);
    assert!(chains.data.contains("1 peak"), "{}", chains.data);
    scratch.refused(&["enumerate", "peaks.toml"], &["no exact answer", "vti rjmcmc"]);
}

#[test]
fn bad_tables_and_settings_are_refused() {
    let scratch = Scratch::new();
    scratch.write("two.csv", "x,y\n1,1\n2,2\n3,1\n4,5\n5,2\n6,1\n");
    scratch.write("flat.csv", "x,y\n1,1\n2,1\n3,1\n4,1\n5,1\n6,1\n");
    scratch.write("holes.csv", "x,y\n1,1\n2,\n3,1\n4,5\n5,2\n6,1\n");
    scratch.write("text.csv", "x,y\n1,1\n2,b\n3,1\n4,5\n5,2\n6,1\n");
    scratch.refused(&["mixture", "two.csv"], &["--column must say which column"]);
    scratch.refused(&["mixture", "two.csv", "--column", "z"], &["z"]);
    scratch.refused(&["mixture", "two.csv", "--column", "x,x"], &["x is named twice"]);
    scratch.refused(&["mixture", "two.csv", "--column", "x", "--max-components", "0"], &["at least 1"]);
    scratch.refused(&["mixture", "two.csv", "--column", "x", "--prior", "rg98"], &["rg97"]);
    scratch.refused(&["mixture", "holes.csv", "--column", "y"], &["missing"]);
    scratch.refused(&["mixture", "text.csv", "--column", "y"], &["y"]);
    scratch.refused(&["mixture", "two.csv", "--column", "x", "--method", "exact"], &["not in closed form"]);
    scratch.refused(&["peaks", "flat.csv", "--x", "x", "--y", "y"], &["all values are 1"]);
    scratch.refused(&["peaks", "two.csv", "--x", "x", "--y", "x"], &["x is named twice"]);
    scratch.refused(&["peaks", "two.csv", "--x", "x", "--background", "4"], &["0 to 3"]);
    scratch.refused(&["peaks", "two.csv", "--x", "x", "--background", "3"], &["too few"]);
    scratch.refused(&["peaks", "two.csv", "--x", "x", "--width-prior=normal:0,1"], &["must be positive"]);
    scratch.refused(&["peaks", "two.csv", "--x", "x", "--frequency-prior=uniform:0,1"], &["have no frequency"]);
}

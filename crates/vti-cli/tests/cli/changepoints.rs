//! How many changes, and when? Exact answers from a table to a report.

use serde_json::Value;

use crate::support::{Scratch, number};

const COAL: [&str; 11] = [
    "changepoints",
    "builtin:coal",
    "--kind",
    "events",
    "--time",
    "day",
    "--start",
    "1",
    "--end",
    "40908",
    "--rate-prior=gamma:1,200",
];

/// The coal-mining disasters with Green's prior: the reference is an independent program's.
#[test]
fn coal_has_its_reference_and_leaves_every_file() {
    let scratch = Scratch::new();
    let outcome = scratch.fine(&[&COAL[..], &["--out", "run"]].concat());
    assert!(outcome.talk.contains("1 event has the same time as another one"), "{}", outcome.talk);
    assert!(outcome.talk.contains("nothing is trained"), "{}", outcome.talk);
    let header: Vec<&str> = outcome.data.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["change", "points", "prior", "exact", "log", "evidence"], "{}", outcome.data);
    assert!(outcome.data.contains("most probable: 3 change points") && !outcome.data.contains('±'), "{}", outcome.data);
    let summary = scratch.json("run/summary.json");
    assert_eq!((&summary["kind"], &summary["correction"]), (&"count".into(), &"exact".into()));
    let truth = [
        -1218.7672, -1188.7052, -1187.6452, -1187.4773, -1187.4261, -1187.5985, -1187.8697, -1188.1777, -1188.4938,
        -1188.8042, -1189.1030,
    ];
    for (count, truth) in truth.iter().enumerate() {
        let found = &summary["components"][count.to_string()];
        assert!((number(&found["log_evidence"]["exact"]) - truth).abs() < 6e-5, "{count}: {found}");
        assert!(found["q"].is_null() && found["se"] == 0.0 && found["corrected"] == found["exact"], "{found}");
    }
    for (count, truth) in [(1, 0.05667), (2, 0.24536), (3, 0.29023), (4, 0.22911), (8, 0.00380)] {
        let found = number(&summary["components"][count.to_string()]["exact"]);
        assert!((found - truth).abs() < 6e-6, "{count}: {found}");
    }
    assert!((number(&summary["log_evidence"]["estimate"]) + 1187.7358).abs() < 6e-5);
    // The rate falls from about one in a hundred days to a third of that, and most changes are to be expected around day 14,500.
    let curve = &summary["curves"][0];
    let mean = |place: usize| number(&curve["mean"][place]);
    assert!(mean(40) > 0.0075 && mean(300) < 0.0035, "{} {}", mean(40), mean(300));
    let positions = &summary["positions"][0];
    let expected = |range: std::ops::Range<usize>| range.map(|bin| number(&positions["expected"][bin])).sum::<f64>();
    assert!((expected(0..100) - number(&summary["mean"]["exact"])).abs() < 1e-6);
    assert!(expected(33..38) > 0.6);
    assert_eq!(summary["given"][0]["count"], 3);
    for file in ["posterior.parquet", "models.csv", "curves.csv", "positions.csv", "report.html", "config.toml"] {
        assert!(scratch.path("run").join(file).metadata().unwrap().len() > 0, "{file}");
    }
    let page = scratch.read("run/report.html");
    for part in ["How many change points are there?", "Rate of events", "Where changes are", "Given 3 change points"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.replace("isNaN", "").contains("NaN"));
    // What was done can be done again, drawn from, compared and looked at.
    let again = scratch.fine(&["fit", "run/config.toml", "--out", "again", "--json", "--quiet"]);
    let again: Value = serde_json::from_str(&again.data).unwrap();
    assert_eq!(again["components"], summary["components"]);
    assert_eq!(scratch.read("run/models.csv"), scratch.read("again/models.csv"));
    let drawn = scratch.fine(&["sample", "run", "-n", "50"]).data;
    assert_eq!(drawn.lines().count(), 51);
    scratch.write("draws.csv", &drawn);
    let densities = scratch.fine(&["log-prob", "run", "draws.csv"]).data;
    assert_eq!(densities.lines().count(), 51, "{densities}");
    assert!(scratch.fine(&["compare", "run", "again"]).data.contains("most probable number"));
    scratch.fine(&["report", "run"]);
    scratch.refused(&["refine", "run"], &["the answer is exact, there is nothing to refine"]);
    scratch.refused(&["predict", "run", "draws.csv"], &["no response to predict", "curves.csv"]);
}

#[test]
fn simulated_changes_of_every_kind_are_found() {
    for (kind, more) in [
        ("events", &["--time", "time", "--start", "0", "--end", "200"][..]),
        ("counts", &["--time", "time", "--value", "y"][..]),
        ("means", &["--time", "time", "--value", "y", "--min-spacing", "5"][..]),
        ("slopes", &["--time", "time", "--noise", "1"][..]),
    ] {
        let scratch = Scratch::new();
        let size = if kind == "slopes" { "6" } else { "3" };
        scratch.fine(&["simulate", "changepoints", "--kind", kind, "--size", size, "--out", "t.csv"]);
        let asked = ["changepoints", "t.csv", "--kind", kind, "--json", "--quiet", "--set", "check.draws=1000"];
        let found: Value = serde_json::from_str(&scratch.fine(&[&asked[..], more].concat()).data).unwrap();
        // Three changes made the data; that many, or one more, is what they look like.
        let likely = number(&found["components"]["3"]["exact"]) + number(&found["components"]["4"]["exact"]);
        assert!(likely > 0.5, "{kind}: {}", found["components"]);
        let enumerated = ["enumerate", "changepoints", "t.csv", "--kind", kind, "--json"];
        let enumerated: Value = serde_json::from_str(&scratch.fine(&[&enumerated[..], more].concat()).data).unwrap();
        let exact = number(&found["components"]["3"]["log_evidence"]["exact"]);
        assert_eq!(exact, number(&enumerated["components"]["3"]["log_evidence"]), "{kind}");
        let sigma = &found["coefficients"]["sigma"]["exact"];
        assert!(if kind == "means" { (number(sigma) - 1.0).abs() < 0.25 } else { sigma.is_null() }, "{kind}: {sigma}");
    }
}

#[test]
fn the_example_configuration_runs() {
    let scratch = Scratch::new();
    scratch.fine(&["simulate", "changepoints", "--rows", "60", "--changes", "1", "--out", "data.csv"]);
    let table = scratch.read("data.csv").replacen("time,y", "t,y", 1);
    scratch.write("data.csv", table);
    scratch.write("run.toml", scratch.fine(&["init", "changepoints"]).data);
    scratch.fine(&["fit", "run.toml", "--set", "check.draws=500"]);
    // What was set from the data is written out, and the run can be taken up.
    assert!(scratch.read("run.vti/config.toml").contains("log-uniform"));
    scratch.fine(&["fit", "run.toml", "--set", "check.draws=500", "--resume"]);
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let scratch = Scratch::new();
    scratch.write("rows.csv", "t,y\n1,2\n2,5\n2,3\n4,1\n");
    scratch.write("counts.csv", "t,y\n1,2\n2,5\n3,-3\n4,1\n");
    scratch.write("gaps.csv", "t,y\n1,2\n2,\n3,3\n4,1\n");
    scratch.write("texts.csv", "t,y\n1,2\n2,b\n3,3\n");
    scratch.write("infinite.csv", "t,y\n1,2\n2,inf\n3,3\n");
    scratch.write("one.csv", "y\n1\n");
    scratch.write("flat.csv", "y\n1\n1\n1\n");
    let asked = |file: &'static str, kind: &'static str, more: &[&'static str]| -> Vec<&'static str> {
        [&["changepoints", file, "--kind", kind][..], more].concat()
    };
    for (arguments, part) in [
        (asked("rows.csv", "means", &["--time", "t"]), "rows 2 and 3 have the same time 2"),
        (asked("counts.csv", "counts", &["--time", "t"]), "-3 is not a count"),
        (asked("gaps.csv", "means", &["--time", "t"]), "missing"),
        (asked("texts.csv", "means", &["--time", "t"]), "line 3"),
        (asked("infinite.csv", "means", &["--time", "t"]), "line 3"),
        (asked("one.csv", "means", &[]), "too few"),
        (asked("flat.csv", "means", &[]), "all values are 1"),
        (asked("rows.csv", "means", &[]), "--value must say which column"),
        (asked("rows.csv", "means", &["--value", "z", "--time", "t"]), "there is no column z"),
        (asked("rows.csv", "events", &["--time", "t", "--start", "2", "--end", "3"]), "outside of the window"),
        (asked("rows.csv", "events", &["--time", "t", "--start", "5", "--end", "3"]), "the end must be later"),
        (asked("counts.csv", "means", &["--time", "t", "--max-changes", "4"]), "there is room for 3 at most"),
        (asked("counts.csv", "means", &["--time", "t", "--min-spacing", "2", "--max-changes", "2"]), "do not fit"),
        (asked("counts.csv", "means", &["--time", "t", "--min-spacing=-1"]), "min_spacing is -1"),
        (
            asked("counts.csv", "means", &["--time", "t", "--noise", "0"]),
            "a positive number, unknown, robust or robust:DF",
        ),
        (asked("counts.csv", "means", &["--time", "t", "--level-prior", "gamma:1,1"]), "must be normal:MEAN,SD"),
        (asked("counts.csv", "means", &["--time", "t", "--count-prior", "poisson:-1"]), "poisson"),
        (asked("counts.csv", "means", &["--time", "t", "--method", "vti"]), "--method vti: change points"),
        (asked("counts.csv", "means", &["--time", "t", "--missing", "indicator"]), "indicator"),
    ] {
        scratch.refused(&arguments, &[part]);
    }
    let kept = asked("gaps.csv", "means", &["--time", "t", "--missing", "drop"]);
    let outcome = scratch.fine(&kept);
    assert!(outcome.talk.contains("left out 1 of 4 rows"), "{}", outcome.talk);
}

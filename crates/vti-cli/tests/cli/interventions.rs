//! Known interventions, and scores that do not tell Markov equivalent graphs apart.

use serde_json::Value;

use crate::support::Scratch;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// a → b, both directions alike without interventions; b was set in every third row, by a drug.
fn table() -> Scratch {
    let scratch = Scratch::new();
    let mut text = String::from("a,b,set,condition\n");
    for row in 0..90 {
        let noise = |by: f64| (f64::from(row) * by).sin() + 0.5 * (f64::from(row) * by * 1.7).cos();
        let a = noise(12.9898);
        let (b, set, condition) = match row % 3 {
            0 => (3.0 * noise(33.17), "b", "drug"),
            _ => (a + 0.6 * noise(78.233), "", "sham"),
        };
        text += &format!("{a},{b},{set},{condition}\n");
    }
    std::fs::write(scratch.path("t.csv"), text).unwrap();
    scratch
}

const BGE: [&str; 9] = ["dag", "t.csv", "--sem", "linear", "--score", "bge", "--graph-prior", "graphs", "--json"];

fn edges(scratch: &Scratch, more: &[&str]) -> (f64, f64, Value) {
    let outcome = scratch.fine(&[&BGE[..], &["--quiet"], more].concat());
    let summary: Value = serde_json::from_str(&outcome.data).unwrap();
    let edge = |from: usize, to: usize| number(&summary["edges"]["exact"][from][to]);
    (edge(0, 1), edge(1, 0), summary)
}

#[test]
fn interventions_tell_directions_apart_and_bge_alone_does_not() {
    let scratch = table();
    let (there, back, blind) = edges(&scratch, &["--exclude", "set,condition", "--out", "blind"]);
    assert!((there - back).abs() < 1e-9 && blind["data"]["interventions"].is_null(), "{there} {back}");
    let classes = &blind["graph"]["classes"];
    assert_eq!((&classes["is_exact"], &classes["met"]), (&true.into(), &2.into()));
    assert!((number(&classes["joined"][0][1]) - there - back).abs() < 1e-9);
    assert_eq!(number(&classes["compelled"][0][1]), 0.0);
    let (there, back, summary) =
        edges(&scratch, &["--exclude", "condition", "--interventions", "set", "--out", "named"]);
    assert!(there > 0.9 && back < 0.05, "{there} {back}");
    assert_eq!(summary["data"]["interventions"], serde_json::json!({"a": 0, "b": 30}));
    // The same from words that mean nodes.
    let words = ["--exclude", "set", "--interventions", "condition", "--targets", "drug=b,sham="];
    let (by_words, _, _) = edges(&scratch, &[&words[..], &["--out", "words"]].concat());
    assert!((by_words - there).abs() < 1e-12);
    let page = scratch.read("named/report.html");
    assert!(page.contains("Nodes were set from outside in some rows: b in 30.") && page.contains("id=\"classes\""));
    assert!(page.contains("hidden common cause"));
    let config = scratch.read("named/config.toml");
    assert!(config.contains("interventions = \"set\""), "{config}");
}

#[test]
fn what_was_set_is_said_and_mistakes_are_listed() {
    let scratch = table();
    let named = [&BGE[..8], &["--exclude", "condition", "--interventions", "set", "--out", "run"]].concat();
    let outcome = scratch.fine(&named);
    for said in ["do not count for their equations: b 30", "nothing was set in 60 rows"] {
        assert!(outcome.talk.contains(said), "{said}: {}", outcome.talk);
    }
    assert!(outcome.data.contains("rows in which a node was set, which do not count for its own equation: b 30"));
    assert!(outcome.data.contains("equivalence class") && outcome.data.contains("hidden common cause"));
    let mistaken = ["dag", "t.csv", "--exclude", "set", "--interventions", "condition"];
    scratch.refused(&mistaken, &["names what is none of the nodes: drug 30, sham 60", "--targets drug=NODE"]);
    let half = [&mistaken[..], &["--targets", "drug=c,sham="]].concat();
    scratch.refused(&half, &["names what is none of the nodes: c 1"]);
    scratch.refused(
        &["dag", "t.csv", "--interventions", "sets"],
        &["there is no column sets, which --interventions names"],
    );
    scratch.refused(&["dag", "t.csv", "--targets", "x=b"], &["--interventions"]);
    scratch.refused(
        &["dag", "t.csv", "--exclude", "set,condition", "--score", "bge"],
        &["the BGe score is one of linear equations with unknown noise"],
    );
    scratch.refused(
        &["dag", "t.csv", "--sem", "linear", "--score", "bge", "--weight-scale", "2"],
        &["--score bge has its own prior of weights"],
    );
}

#[test]
fn simulated_interventions_are_read_back() {
    let scratch = Scratch::new();
    let sizes = ["--nodes", "3", "--rows", "200", "--interventions", "0.5", "--out", "t.csv"];
    scratch.fine(&[&["simulate", "dag"][..], &sizes].concat());
    let text = scratch.read("t.csv");
    assert!(text.starts_with("x1,x2,x3,set\n"), "{text}");
    let set = |name: &str| text.lines().filter(|line| line.ends_with(&format!(",{name}"))).count();
    let counts = ["x1", "x2", "x3"].map(set);
    assert!((70..130).contains(&counts.iter().sum::<usize>()), "{counts:?}");
    let small = ["--steps", "20", "--set", "train.batch=32", "--set", "check.draws=500", "--check", "none"];
    let run = [&["dag", "t.csv", "--hidden", "2", "--interventions", "set", "--json", "--quiet"], &small[..]].concat();
    let summary: Value = serde_json::from_str(&scratch.fine(&run).data).unwrap();
    assert_eq!(summary["data"]["interventions"]["x2"], counts[1]);
    scratch.refused(&["simulate", "dag", "--interventions", "2", "--out", "u.csv"], &["set_probability is 2"]);
}

/// Sachs' nine conditions, with linear equations so that it takes a moment.
#[test]
fn sachs_conditions_come_with_the_program() {
    let scratch = Scratch::new();
    let run =
        ["dag", "builtin:sachs-interventions", "--log", "--sem", "linear", "--score", "bge", "--graph-prior", "graphs"];
    let more = ["--interventions", "target", "--set", "check.draws=2000", "--out", "run"];
    let outcome = scratch.fine(&[&run[..], &more].concat());
    assert!(outcome.talk.contains("PIP2 810, pakts473 1759, PKA 707, PKC 1636"), "{}", outcome.talk);
    let set = &scratch.json("run/summary.json")["data"]["interventions"];
    let counts = [("pmek", 799), ("PIP2", 810), ("pakts473", 911 + 848), ("PKA", 707), ("PKC", 723 + 913), ("praf", 0)];
    for (name, rows) in counts {
        assert_eq!(set[name], rows, "{name}");
    }
}

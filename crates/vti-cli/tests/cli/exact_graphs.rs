//! Linear graphs, answered exactly and without training.

use serde_json::Value;

use crate::support::{Scratch, check_draws, steady};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// Four nodes with linear equations, and the graph that made them.
fn simulated() -> Scratch {
    let scratch = Scratch::new();
    let sizes = ["--nodes", "4", "--rows", "60", "--seed", "5", "--noise", "1"];
    scratch.fine(&[&["simulate", "linear-dag", "--out", "t.csv", "--truth-out", "truth.csv"][..], &sizes].concat());
    scratch
}

const LINEAR: [&str; 4] = ["dag", "t.csv", "--sem", "linear"];

#[test]
fn linear_graphs_are_exact_without_training_and_leave_every_file() {
    let scratch = simulated();
    let known = ["--noise", "1", "--truth", "truth.csv", "--out", "run"];
    let outcome = scratch.fine(&[&LINEAR[..], &known].concat());
    assert!(outcome.talk.contains("the answer is exact, and nothing is trained"), "{}", outcome.talk);
    let header: Vec<&str> = outcome.data.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["edge", "exact", "reversed", "none"], "{}", outcome.data);
    assert!(!outcome.data.contains('±') && !outcome.data.contains("NaN"), "{}", outcome.data);
    assert!(outcome.data.contains("trust: exact, all graphs over 4 nodes"), "{}", outcome.data);
    for file in
        ["posterior.parquet", "models.csv", "edges.csv", "graph.dot", "graph.graphml", "summary.json", "report.html"]
    {
        assert!(scratch.path("run").join(file).metadata().unwrap().len() > 0, "{file}");
    }
    for file in ["models.csv", "edges.csv", "graph.dot", "graph.graphml"] {
        assert!(!scratch.read(&format!("run/{file}")).contains("NaN"), "{file}");
    }
    assert!(!scratch.path("run/posterior.safetensors").exists());
    let summary = scratch.json("run/summary.json");
    assert_eq!((&summary["correction"], &summary["verdict"]["kind"]), (&"exact".into(), &"trust".into()));
    let all = ["enumerate", "dag", "t.csv", "--sem", "linear", "--noise", "1", "--json", "--top", "543"];
    let all: Value = serde_json::from_str(&scratch.fine(&all).data).unwrap();
    assert!((number(&summary["log_evidence"]["estimate"]) - number(&all["log_evidence"])).abs() < 1e-8);
    let page = scratch.read("run/report.html");
    let words = page.split("<section id=\"settings\">").next().unwrap().split("</style>").nth(1).unwrap();
    for absent in ["learned (q)", "corrected", ">q<", "NaN", "id=\"training\"", "bound"] {
        assert!(!words.contains(absent), "{absent}");
    }
    assert!(words.contains("Trust it: the answer is exact") && words.contains("all graphs over them"));
    // The learned answer's correction is exact as well, edge by edge.
    let small = ["--method", "vti", "--steps", "30", "--set", "train.batch=64", "--set", "check.draws=1000"];
    let learned = [&LINEAR[..], &["--noise", "1", "--out", "learned", "--json", "--quiet"], &small].concat();
    let learned: Value = serde_json::from_str(&scratch.fine(&learned).data).unwrap();
    for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))).filter(|(from, to)| from != to) {
        let exact = number(&summary["edges"]["exact"][from][to]);
        assert!((exact - number(&learned["edges"]["exact"][from][to])).abs() < 1e-9, "{from} {to}");
    }
}

#[test]
fn every_command_works_with_exact_graphs() {
    let scratch = simulated();
    let run = [&LINEAR[..], &["--out", "run", "--quiet", "--threads", "2"]].concat();
    scratch.fine(&run);
    let summary = scratch.json("run/summary.json");
    let page = scratch.read("run/report.html");
    scratch.fine(&["report", "run"]);
    assert_eq!(scratch.read("run/report.html"), page);
    let again = scratch.fine(&["check", "run", "--json"]).data;
    assert_eq!(steady(serde_json::from_str(&again).unwrap()), steady(summary.clone()));
    scratch.refused(&["refine", "run"], &["the answer is exact, there is nothing to refine"]);
    scratch.refused(&["predict", "run", "t.csv"], &["causal graphs have no response to predict"]);
    let search = [&LINEAR[..], &["--out", "run", "--force", "--method", "search"]].concat();
    scratch.refused(&search, &["chains over models are for variable selection"]);
    check_draws(&scratch, "exact", 0.0);
}

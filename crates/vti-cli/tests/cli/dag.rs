//! Causal graphs: from a table to a report, and everything that works with the run.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use crate::support::{Scratch, snapshot, steady};

/// Four nodes with linear equations, and the graph that made them.
fn simulate(scratch: &Scratch) {
    let sizes = ["--nodes", "4", "--rows", "60", "--seed", "5", "--noise", "1"];
    scratch.fine(&[&["simulate", "linear-dag", "--out", "t.csv", "--truth-out", "truth.csv"][..], &sizes].concat());
}

/// Options of a question whose answer is known.
const EXACT: [&str; 4] = ["--sem", "linear", "--noise", "1"];

/// Options that make a run small.
const SMALL: [&str; 14] = [
    "--steps",
    "60",
    "--threads",
    "1",
    "--precision",
    "f64",
    "--set",
    "train.batch=64",
    "--set",
    "check.draws=2000",
    "--set",
    "check.refine=never",
    "--set",
    "flow.hidden=8",
];

/// `vti dag` of a file, learned and small. The flow is small as well.
fn dag<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let flow = ["--method", "vti", "--set", "flow.kind=affine", "--set", "flow.layers=2", "--set", "flow.blocks=1"];
    [&["dag", file][..], &flow, &SMALL, more].concat()
}

/// A finished run that several tests look at.
fn finished() -> &'static Scratch {
    static RUN: OnceLock<Scratch> = OnceLock::new();
    RUN.get_or_init(|| {
        let scratch = Scratch::new();
        simulate(&scratch);
        let more = [&EXACT[..], &["--truth", "truth.csv", "--out", "run"]].concat();
        let outcome = scratch.fine(&dag("t.csv", &more));
        scratch.write("talk.txt", outcome.talk);
        scratch.write("data.txt", outcome.data);
        scratch
    })
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn matrix(value: &Value) -> Vec<Vec<f64>> {
    let row = |row: &Value| row.as_array().unwrap().iter().map(number).collect();
    value.as_array().unwrap().iter().map(row).collect()
}

/// Rows of a table as maps from the names of its columns.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().map(Result::unwrap).collect()
}

#[test]
fn edges_are_those_of_the_exact_answer() {
    let scratch = finished();
    let edges = &scratch.json("run/summary.json")["edges"];
    let enumerate = [&["enumerate", "dag", "t.csv", "--json"][..], &EXACT].concat();
    let exact: Value = serde_json::from_str(&scratch.fine(&enumerate).data).unwrap();
    assert_eq!((&exact["graphs"], &exact["edges"]["nodes"]), (&Value::from(543), &edges["nodes"]));
    let (corrected, se) = (matrix(&edges["corrected"]), matrix(&edges["se"]));
    let (known, truth) = (matrix(&edges["exact"]), matrix(&exact["edges"]["probability"]));
    for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
        assert!((known[from][to] - truth[from][to]).abs() < 1e-12);
        let off = (corrected[from][to] - truth[from][to]).abs();
        assert!(off < 5.0 * se[from][to] + 0.01, "{from} → {to}: {off} {}", se[from][to]);
    }
    let by_file: Value = serde_json::from_str(&scratch.fine(&["enumerate", "run/config.toml", "--json"]).data).unwrap();
    assert_eq!(by_file, exact);
    let table = scratch.fine(&[&["enumerate", "dag", "t.csv", "--out", "all.csv"][..], &EXACT].concat()).data;
    assert!(table.contains("in closed form, 543 graphs"), "{table}");
    let total: f64 = rows(&scratch.read("all.csv")).iter().map(|row| row["probability"].parse::<f64>().unwrap()).sum();
    assert!((total - 1.0).abs() < 1e-9);
}

#[test]
fn all_files_tell_the_same() {
    let scratch = finished();
    let summary = scratch.json("run/summary.json");
    assert_eq!((&summary["kind"], &summary["data"]["nodes"]), (&Value::from("dag"), &Value::from(4)));
    let edges = &summary["edges"];
    let names: Vec<&str> = edges["nodes"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let (q, corrected) = (matrix(&edges["q"]), matrix(&edges["corrected"]));
    let place = |name: &String| names.iter().position(|other| other == name).unwrap();
    let listed = rows(&scratch.read("run/edges.csv"));
    assert_eq!(listed.len(), 12);
    let mut last = f64::INFINITY;
    for row in &listed {
        let (from, to) = (place(&row["from"]), place(&row["to"]));
        let value = |column: &str| row[column].parse::<f64>().unwrap();
        assert_eq!((value("q"), value("corrected")), (q[from][to], corrected[from][to]));
        assert_eq!(value("reverse"), corrected[to][from]);
        assert!((value("none") - (1.0 - corrected[from][to] - corrected[to][from]).max(0.0)).abs() < 1e-12);
        assert!(value("corrected") <= last);
        last = value("corrected");
    }
    // Probabilities of edges are those of the graphs that have them.
    let expected: f64 = corrected.iter().flatten().sum();
    assert!((number(&summary["graph"]["expected_edges"]) - expected).abs() < 1e-9);
    let counts = summary["graph"]["edge_counts"].as_array().unwrap();
    // From draws, while edges are known by sums over graphs.
    let mean: f64 = counts.iter().map(|entry| number(&entry[0]) * number(&entry[1])).sum();
    assert!((mean - expected).abs() < 0.1, "{mean} {expected}");
    let models = rows(&scratch.read("run/models.csv"));
    let with = |edge: &str| {
        let has = |row: &&BTreeMap<String, String>| row["label"].split(", ").any(|other| other == edge);
        models.iter().filter(has).map(|row| row["corrected"].parse::<f64>().unwrap()).sum::<f64>()
    };
    for (from, to) in [(0, 1), (1, 0), (2, 3)] {
        let edge = format!("{}→{}", names[from], names[to]);
        // Graphs that no draw met are not listed.
        assert!((with(&edge) - corrected[from][to]).abs() < 0.03, "{edge}");
    }
    let best = summary["graph"]["most_probable"].as_array().unwrap();
    let class = &summary["graph"]["cpdag"];
    let joined = class["directed"].as_array().unwrap().len() + class["undirected"].as_array().unwrap().len();
    assert_eq!(best.len(), joined);
    assert_eq!(models[0]["size"].parse::<usize>().unwrap(), best.len());
    graph_files(scratch, &names, &corrected);
}

/// What other tools draw.
fn graph_files(scratch: &Scratch, names: &[&str], corrected: &[Vec<f64>]) {
    let xml = scratch.read("run/graph.graphml");
    let document = roxmltree::Document::parse(&xml).unwrap();
    let data = |node: roxmltree::Node<'_, '_>, key: &str| {
        let found = node.children().find(|child| child.attribute("key") == Some(key)).unwrap();
        found.text().unwrap().to_string()
    };
    let nodes: Vec<String> =
        document.descendants().filter(|node| node.has_tag_name("node")).map(|node| data(node, "name")).collect();
    assert_eq!(nodes, names);
    for edge in document.descendants().filter(|node| node.has_tag_name("edge")) {
        let end = |which| edge.attribute(which).unwrap()[1..].parse::<usize>().unwrap();
        assert_eq!(data(edge, "corrected").parse::<f64>().unwrap(), corrected[end("source")][end("target")]);
    }
    let dot = scratch.read("run/graph.dot");
    for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
        let drawn = dot.contains(&format!("\"{}\" -> \"{}\" [", names[from], names[to]));
        assert_eq!(drawn, corrected[from][to] >= 0.1, "{from} → {to}: {dot}");
    }
    let page = scratch.read("run/report.html");
    assert!(page.contains("Causal graph") && page.contains("What causes what among 4 variables?"));
    assert!(page.contains("truth.csv"));
}

#[test]
fn metrics_have_their_conventions_and_trivial_answers_beside_them() {
    let summary = finished().json("run/summary.json");
    let truth = &summary["truth"];
    let names: Vec<&str> =
        truth["baselines"].as_array().unwrap().iter().map(|baseline| baseline["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["empty graph", "prior", "random order"]);
    let metric = |name: &str| {
        let metrics = truth["metrics"].as_array().unwrap();
        metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("{name}"))
    };
    assert_eq!(truth["metrics"].as_array().unwrap().len(), 14);
    // The mean number of entries that differ follows from edge probabilities.
    let edges = matrix(&summary["edges"]["corrected"]);
    let names: Vec<&Value> = summary["edges"]["nodes"].as_array().unwrap().iter().collect();
    let true_edges = truth["edges"].as_array().unwrap();
    let is_true =
        |from: usize, to: usize| true_edges.iter().any(|edge| edge[0] == *names[from] && edge[1] == *names[to]);
    let pairs = (0..4).flat_map(|from| (0..4).map(move |to| (from, to))).filter(|(from, to)| from != to);
    let expected: f64 =
        pairs.map(|(from, to)| if is_true(from, to) { 1.0 - edges[from][to] } else { edges[from][to] }).sum();
    let shd = metric("expected_shd2");
    assert!((number(&shd["corrected"]) - expected).abs() < 1e-6, "{shd}");
    assert_eq!(number(&shd["baselines"][0]), true_edges.len() as f64);
    assert!(shd["meaning"].as_str().unwrap().contains("a reversed edge counts 2"), "{shd}");
    assert_eq!((&shd["better"], &metric("auroc")["better"]), (&Value::from("lower"), &Value::from("higher")));
}

#[test]
fn what_people_read_is_what_it_was() {
    let scratch = finished();
    // Numbers depend on the machine, and with them the width of columns and the order of what is nearly equal.
    let token = |word: &str, line: &str| {
        let is_number = |text: &str| text.parse::<f64>().is_ok() && (text.contains('.') || !line.contains("counts"));
        let core = word.trim_matches(['(', ')', ',']);
        if is_number(core) { word.replace(core, "N") } else { word.to_string() }
    };
    let shape = |text: &str| -> String {
        let mut lines: Vec<String> = Vec::new();
        for line in text.lines() {
            let words: Vec<String> = line.split_whitespace().map(|word| token(word, line)).collect();
            let is_edge = line.contains('→');
            if !(is_edge && lines.last().is_some_and(|last| last.contains('→'))) {
                lines.push(if is_edge { "… →".into() } else { words.join(" ") });
            }
        }
        lines.join("\n") + "\n"
    };
    let data = shape(&scratch.read("data.txt"));
    let before_verdict: Vec<&str> = data.lines().take_while(|line| !line.starts_with("total variation")).collect();
    snapshot("dag.txt", &(before_verdict.join("\n") + "\n"));
    let talk = scratch.read("talk.txt");
    for part in [
        "60 rows, graphs over 4 nodes, linear equations, noise 1",
        "about",
        "everything is in run, edges.csv, models.csv, graph.dot, graph.graphml and report.html among it",
    ] {
        assert!(talk.contains(part), "{part}: {talk}");
    }
}

#[test]
fn other_commands_work_with_the_run() {
    let scratch = Scratch::new();
    simulate(&scratch);
    scratch.fine(&dag("t.csv", &[&EXACT[..], &["--out", "run", "--quiet"]].concat()));
    let summary = scratch.json("run/summary.json");
    assert!(summary["truth"].is_null());
    let page = scratch.read("run/report.html");
    scratch.fine(&["report", "run"]);
    assert_eq!(scratch.read("run/report.html"), page);
    let again: Value = serde_json::from_str(&scratch.fine(&["check", "run", "--json"]).data).unwrap();
    assert_eq!(steady(again), steady(summary));
    let table = scratch.fine(&["compare", "run", "run"]).data;
    assert!(table.contains("edges off") && table.contains("x1→x2"), "{table}");
    assert!(scratch.fine(&["watch", "run", "--once"]).data.contains("step      60"));
    let refined = scratch.fine(&["refine", "run", "--chains", "16", "--iterations", "40", "--json"]).data;
    assert_eq!(serde_json::from_str::<Value>(&refined).unwrap()["correction"], "chains");
    // Graphs have several words; the densities of draws are those of their own.
    scratch.fine(&["sample", "run", "-n", "40", "--out", "draws.csv"]);
    let found = rows(&scratch.fine(&["log-prob", "run", "draws.csv"]).data);
    let drawn = rows(&scratch.read("draws.csv"));
    assert!(
        drawn.iter().any(|row| rows(&scratch.read("run/models.csv")).iter().all(|model| model["model"] != row["word"]))
    );
    for (drawn, found) in drawn.iter().zip(&found) {
        assert_eq!((&drawn["word"], &drawn["model"]), (&found["word"], &found["model"]));
        for column in ["log_q", "log_target"] {
            let (a, b): (f64, f64) = (drawn[column].parse().unwrap(), found[column].parse().unwrap());
            assert!((a - b).abs() < 1e-6 * (1.0 + a.abs()), "{column}: {a} {b}");
        }
    }
    let wrong = scratch.read("draws.csv").replace(&drawn[0]["word"], "000111000");
    scratch.write("wrong.csv", wrong);
    scratch.refused(&["log-prob", "run", "wrong.csv"], &["the word 000111000 does not mean the model"]);
    scratch.refused(&["predict", "run", "t.csv"], &["no response to predict", "hint: `vti sample run -n N`"]);
    scratch.refused(&["rjmcmc", "run/config.toml"], &["no reversible jump chains for causal graphs", "vti enumerate"]);
    scratch.fine(&["select", "builtin:hald", "--response", "y", "--quiet"]);
    scratch.refused(&["compare", "run", "hald.vti"], &["answers another kind of question"]);
}

#[test]
fn densities_do_not_depend_on_the_scale_but_for_its_jacobian() {
    // Parameters are reported in the units of the data: a linear weight of b on 10 a is a tenth of that on a.
    let scratch = Scratch::new();
    simulate(&scratch);
    let wide: String = scratch
        .read("t.csv")
        .lines()
        .enumerate()
        .map(|(number, line)| {
            let mut cells: Vec<String> = line.split(',').map(String::from).collect();
            if number > 0 {
                cells[0] = (10.0 * cells[0].parse::<f64>().unwrap()).to_string();
            }
            cells.join(",") + "\n"
        })
        .collect();
    scratch.write("wide.csv", wide);
    let run = |file: &str| -> Value {
        let more = ["--sem", "linear", "--json", "--quiet"];
        serde_json::from_str(&scratch.fine(&dag(file, &more)).data).unwrap()
    };
    let (narrow, wide) = (run("t.csv"), run("wide.csv"));
    assert_eq!(narrow["data"]["scale"], "columns");
    for (from, to) in [(0, 1), (1, 0), (2, 3)] {
        let probability = |run: &Value| number(&run["edges"]["corrected"][from][to]);
        assert!((probability(&narrow) - probability(&wide)).abs() < 1e-6);
    }
    for (name, factor) in [("x1→x2", 0.1), ("x2→x1", 10.0), ("x2→x3", 1.0), ("sigma.x1", 10.0), ("sigma.x2", 1.0)]
    {
        let mean = |run: &Value| number(&run["coefficients"][name]["corrected"]);
        assert!((factor * mean(&narrow) - mean(&wide)).abs() < 1e-6 * (1.0 + mean(&wide).abs()), "{name}");
    }
}

#[test]
fn hidden_units_and_rules() {
    let scratch = Scratch::new();
    simulate(&scratch);
    let more = [
        "--hidden",
        "2",
        "--bias",
        "--require",
        "x1->x2",
        "--forbid",
        "x3->x4,x4->x3",
        "--tiers",
        "x1;x2,x3",
        "--max-parents",
        "2",
        "--graph-prior",
        "graphs",
        "--edge-penalty",
        "0.5",
        "--out",
        "run",
    ];
    let outcome = scratch.fine(&dag("t.csv", &more));
    assert!(outcome.talk.contains("equations of 2 hidden units with biases, unknown noise"), "{}", outcome.talk);
    let summary = scratch.json("run/summary.json");
    let (q, corrected) = (matrix(&summary["edges"]["q"]), matrix(&summary["edges"]["corrected"]));
    assert!((q[0][1] - 1.0).abs() < 1e-9 && (corrected[0][1] - 1.0).abs() < 1e-9);
    for (from, to) in [(2, 3), (3, 2), (1, 0), (2, 0)] {
        assert_eq!((q[from][to], corrected[from][to]), (0.0, 0.0), "{from} → {to}");
    }
    assert!(summary["coefficients"].is_null() && summary["edges"]["exact"].is_null());
    assert_eq!(summary["correction"], "annealed");
    assert!(summary["verdict"]["text"].as_str().unwrap().contains("evidence of every node"), "{}", summary["verdict"]);
    // All of it is in the settings, and these give the same answer again.
    let again = scratch.fine(&["fit", "run/config.toml", "--out", "again", "--json", "--quiet"]);
    assert_eq!(steady(serde_json::from_str(&again.data).unwrap()), steady(summary));
    let resume = [&dag("t.csv", &more)[..], &["--resume"]].concat();
    scratch.fine(&resume);
    let other: Vec<&str> = resume.iter().map(|argument| if *argument == "0.5" { "0.6" } else { argument }).collect();
    scratch.refused(&other, &["another problem"]);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_goes_on() {
    use std::process::Stdio;
    use std::time::{Duration, Instant};
    let scratch = Scratch::new();
    simulate(&scratch);
    let frequent = ["--truth", "truth.csv", "--out", "run", "--set", "output.checkpoint_every=0.02"];
    let arguments = dag("t.csv", &[&EXACT[..], &frequent].concat());
    let child = scratch.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while !scratch.path("run/checkpoint.safetensors").exists() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(2));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert!(matches!(child.wait_with_output().unwrap().status.code(), Some(130 | 0)));
    scratch.fine(&[&arguments[..], &["--resume"]].concat());
    assert_eq!(steady(scratch.json("run/summary.json")), steady(finished().json("run/summary.json")));
}

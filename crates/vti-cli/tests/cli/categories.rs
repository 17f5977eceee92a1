//! Graphs with nodes of categories, from a table to an answer.

use serde_json::Value;

use crate::support::Scratch;

/// x is a number; sick follows x, and mood and size follow sick.
fn table() -> Scratch {
    let scratch = Scratch::new();
    let mut text = String::from("x,sick,mood,size,stage\n");
    for row in 0..120 {
        let noise = |by: f64| (f64::from(row) * by).sin();
        let x = noise(12.9898) + 0.3 * noise(4.1);
        let sick = x + 0.3 * noise(78.233) > 0.0;
        let mood = match (sick, row % 4) {
            (true, 0..3) => "red",
            (false, 0..3) => "blue",
            _ => "green",
        };
        let size = if noise(3.7) > 0.5 {
            "mid"
        } else if sick {
            "high"
        } else {
            "low"
        };
        let stage = [1, 2, 4][(row % 3) as usize];
        text += &format!("{x},{},{mood},{size},{stage}\n", if sick { "yes" } else { "no" });
    }
    scratch.write("t.csv", text);
    scratch
}

const SMALL: [&str; 10] = [
    "--steps",
    "60",
    "--set",
    "train.batch=64",
    "--set",
    "check.draws=1000",
    "--set",
    "check.refine=never",
    "--set",
    "check.anneal.particles=8",
];

fn edge(summary: &Value, from: usize, to: usize) -> f64 {
    summary["edges"]["corrected"][from][to].as_f64().unwrap()
}

#[test]
fn categories_are_recognised_and_answered() {
    let scratch = table();
    let run =
        ["dag", "t.csv", "--sem", "linear", "--exclude", "stage", "--ordered", "size=low<mid<high", "--out", "run"];
    let outcome = scratch.fine(&[&run[..], &SMALL].concat());
    for said in [
        "sick: binary, yes is 1 and no is 0",
        "mood: categories blue, green, red",
        "size: ordered categories low < mid < high",
        "graphs over 4 nodes (3 of categories)",
        "sick holds categories, whose evidences have no closed form: graphs are learned and checked",
    ] {
        assert!(outcome.talk.contains(said), "{said}: {}", outcome.talk);
    }
    let summary = scratch.json("run/summary.json");
    assert_eq!(summary["edges"]["nodes"], serde_json::json!(["x", "sick", "mood", "size"]));
    // x and sick are joined, and so are sick and both that follow it.
    let joined = |a: usize, b: usize| edge(&summary, a, b) + edge(&summary, b, a);
    assert!(joined(0, 1) > 0.9 && joined(1, 2) > 0.9 && joined(1, 3) > 0.9, "{}", summary["edges"]["corrected"]);
    assert!(summary["verdict"]["kind"].is_string() && summary["fit"]["text"].is_string());
    let outcomes: Vec<&str> =
        summary["fit"]["outcomes"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    let levels = ["mood = blue", "mood = green", "mood = red", "size = low", "size = mid", "size = high"];
    assert_eq!(outcomes, [&["x", "sick"][..], &levels].concat());
    let coefficients = summary["coefficients"].as_object().unwrap();
    for name in ["intercept.sick", "x→sick", "sick→mood=red", "mood=red→x", "cut.size.low|mid", "gap.size.mid|high"]
    {
        assert!(coefficients.contains_key(name), "{name}: {:?}", coefficients.keys().collect::<Vec<_>>());
    }
    assert!(!coefficients.keys().any(|name| name.starts_with("unused")));
    assert!(scratch.read("run/report.html").contains("probabilities of categories are equally likely"));
    assert!(scratch.read("run/edges.csv").contains("sick"));
    let config = scratch.read("run/config.toml");
    assert!(config.contains("[problem.ordered]\nsize = ["), "{config}");
    // What a run directory answers afterwards.
    scratch.fine(&["sample", "run", "-n", "5", "--out", "draws.csv"]);
    scratch.fine(&["check", "run"]);
    scratch.refused(&["predict", "run", "t.csv"], &["graphs"]);
}

#[test]
fn hidden_units_answer_too() {
    let scratch = table();
    let run = ["dag", "t.csv", "--include", "x,sick,mood", "--hidden", "3", "--out", "run"];
    let outcome = scratch.fine(&[&run[..], &SMALL].concat());
    assert!(!outcome.talk.contains("closed form"), "{}", outcome.talk);
    let summary = scratch.json("run/summary.json");
    assert!(edge(&summary, 0, 1) + edge(&summary, 1, 0) > 0.9, "{}", summary["edges"]["corrected"]);
}

#[test]
fn numbers_may_name_categories() {
    let scratch = table();
    let small = [&SMALL[..], &["--sem", "linear"]].concat();
    let ordered = ["dag", "t.csv", "--include", "x,stage", "--ordered", "stage", "--out", "ordered"];
    let outcome = scratch.fine(&[&ordered[..], &small].concat());
    assert!(outcome.talk.contains("stage: ordered categories 1 < 2 < 4"), "{}", outcome.talk);
    let named = ["dag", "t.csv", "--include", "x,stage", "--categorical", "stage", "--out", "named"];
    let outcome = scratch.fine(&[&named[..], &small].concat());
    assert!(outcome.talk.contains("stage: categories 1, 2, 4"), "{}", outcome.talk);
    assert!(scratch.read("named/config.toml").contains("categorical = [\"stage\"]"));
    scratch.write(
        "c.toml",
        "[problem]\nkind = \"dag\"\ndata = \"t.csv\"\ninclude = [\"x\", \"stage\"]\nordered = { stage = [\"4\", \"2\", \"1\"] }\n\
         sem = { kind = \"linear\" }\n[train]\nsteps = 20\nbatch = 64\n[check]\ndraws = 500\nrefine = \"never\"\n",
    );
    let outcome = scratch.fine(&["fit", "c.toml", "--out", "file"]);
    assert!(outcome.talk.contains("stage: ordered categories 4 < 2 < 1"), "{}", outcome.talk);
    // What is 0 or 1 is a number unless somebody says otherwise.
    let mut text = String::from("a,b\n");
    (0..30).for_each(|row| text += &format!("{},{}\n", (row * 7) % 5, (row * 7) % 5 / 3));
    scratch.write("b.csv", text);
    let outcome = scratch.fine(&["dag", "b.csv", "--sem", "linear", "--out", "number"]);
    assert!(outcome.talk.contains("--categorical b makes it a binary node"), "{}", outcome.talk);
}

#[test]
fn what_cannot_be_is_refused() {
    let scratch = table();
    let refused = |more: &[&str], parts: &[&str]| scratch.refused(&[&["dag", "t.csv"][..], more].concat(), parts);
    refused(&["--categorical", "moods"], &["there is no column moods, which --categorical names"]);
    refused(&["--ordered", "sizes=a<b"], &["there is no column sizes, which --ordered names"]);
    refused(&["--ordered", "size"], &["size holds texts, whose order is not known", "--ordered 'size=high<low<mid'"]);
    refused(&["--ordered", "size=low<high"], &["the category mid, which --ordered does not name: low<high"]);
    refused(&["--ordered", "size=low<mid<low<high"], &["--ordered names low twice for size"]);
    refused(&["--ordered", "size=low"], &["column=low<mid<high"]);
    refused(
        &["--ordered", "stage", "--categorical", "stage"],
        &["stage is listed in both --categorical and --ordered"],
    );
    refused(&["--log=mood"], &["mood holds categories, which have no logarithm"]);
    refused(&["--categorical", "x"], &["column x has 120 different texts, more than 50"]);
    refused(
        &["--sem", "linear", "--score", "bge"],
        &["the BGe score is one of numbers, but sick holds categories", "--exclude sick"],
    );
    refused(&["--sem", "linear", "--method", "exact"], &["sick holds categories", "--method vti"]);
    scratch.refused(
        &["enumerate", "dag", "t.csv", "--sem", "linear", "--noise", "1"],
        &["sick holds categories, and evidences are known in closed form for nodes of numbers only"],
    );
}

/// The table in `data` is the one its description says, and its graph is found.
#[test]
fn the_example_is_what_it_says() {
    let scratch = Scratch::new();
    let made = ["simulate", "linear-dag", "--nodes", "5", "--categories", "3", "--rows", "500", "--seed", "4"];
    scratch.fine(&[&made[..], &["--out", "mixed.csv", "--truth-out", "mixed-graph.csv"]].concat());
    let kept =
        |name: &str| std::fs::read_to_string(format!("{}/../../data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    assert_eq!(scratch.read("mixed.csv"), kept("mixed.csv"));
    assert_eq!(scratch.read("mixed-graph.csv"), kept("mixed-graph.csv"));
    let run = ["dag", "mixed.csv", "--sem", "linear", "--ordered", "x5=low<mid<high", "--out", "run"];
    scratch.fine(&[&run[..], &SMALL, &["--set", "check.anneal.effort=0.1"]].concat());
    let summary = scratch.json("run/summary.json");
    for (from, to) in [(0, 2), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4)] {
        let joined = edge(&summary, from, to) + edge(&summary, to, from);
        assert!(joined > 0.9, "{from} {to}: {}", summary["edges"]["corrected"]);
    }
}

#[test]
fn simulated_categories_are_read_back() {
    let scratch = Scratch::new();
    let made =
        ["simulate", "linear-dag", "--nodes", "4", "--categories", "3", "--rows", "150", "--edge-probability", "0.7"];
    let more = ["--interventions", "0.2", "--seed", "4", "--out", "m.csv", "--truth-out", "g.csv"];
    scratch.fine(&[&made[..], &more].concat());
    let header = scratch.read("m.csv").lines().take(2).map(String::from).collect::<Vec<_>>();
    assert_eq!(header[0], "x1,x2,x3,x4,set");
    let run = ["dag", "m.csv", "--sem", "linear", "--ordered", "x4=low<mid<high", "--interventions", "set"];
    let outcome = scratch.fine(&[&run[..], &["--truth", "g.csv", "--out", "run"], &SMALL].concat());
    for said in ["x2: binary, yes is 1 and no is 0", "x3: categories a, b, c", "do not count for their equations"] {
        assert!(outcome.talk.contains(said), "{said}: {}", outcome.talk);
    }
    assert!(scratch.json("run/summary.json")["truth"]["metrics"].is_array());
    // Rows with missing values are left out, as those of numbers are.
    let holes = scratch.read("m.csv").replacen(",yes,", ",,", 3);
    scratch.write("holes.csv", holes);
    let run = ["dag", "holes.csv", "--exclude", "set", "--sem", "linear", "--ordered", "x4=low<mid<high"];
    scratch.refused(&run, &["values are missing", "--missing drop"]);
    let outcome = scratch.fine(&[&run[..], &["--missing", "drop", "--out", "part"], &SMALL].concat());
    assert!(outcome.talk.contains("which have missing values"), "{}", outcome.talk);
}

//! Answers that are exact, without training; and answers that were learned beside the exact one.

use serde_json::Value;

use crate::support::{SMALL, Scratch, check_draws, fixture, select, steady};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// `vti select` of built-in data with all defaults.
const PROSTATE: [&str; 6] = ["select", "builtin:prostate", "--response", "lpsa", "--out", "run"];

#[test]
fn an_exact_run_is_what_enumeration_says_and_leaves_every_file() {
    let scratch = Scratch::new();
    let outcome = scratch.fine(&PROSTATE);
    assert!(outcome.talk.contains("the answer is exact, and nothing is trained"), "{}", outcome.talk);
    let header = outcome.data.lines().next().unwrap();
    assert_eq!(
        header.split_whitespace().collect::<Vec<_>>(),
        ["inclusion", "probability", "exact"],
        "{}",
        outcome.data
    );
    let (answer, fit) = outcome.data.split_once("\nfit: ").unwrap();
    assert!(answer.ends_with("independent ones from the posterior"), "{answer}");
    assert!(!answer.contains('±') && !answer.contains("NaN"), "{answer}");
    assert!(fit.starts_with("nothing speaks against the model in 97 rows"), "{fit}");
    for file in ["config.toml", "posterior.parquet", "models.csv", "summary.json", "report.html"] {
        assert!(scratch.path("run").join(file).metadata().unwrap().len() > 0, "{file}");
    }
    for file in ["progress.jsonl", "checkpoint.safetensors", "posterior.safetensors"] {
        assert!(!scratch.path("run").join(file).exists(), "{file}");
    }
    let summary = scratch.json("run/summary.json");
    assert_eq!((&summary["correction"], &summary["verdict"]["kind"]), (&"exact".into(), &"trust".into()));
    assert!(summary["verdict"]["text"].as_str().unwrap().contains("all 2^8 models"));
    assert!(summary["elbo"].is_null() && summary["exact"]["total_variation"].is_null());
    let all: Value = serde_json::from_str(
        &scratch.fine(&["enumerate", "builtin:prostate", "--response", "lpsa", "--json", "--top", "256"]).data,
    )
    .unwrap();
    assert_eq!(summary["log_evidence"]["estimate"], all["log_evidence"]);
    for (name, found) in summary["inclusion"].as_object().unwrap() {
        assert!(found["q"].is_null() && found["exact"] == found["corrected"] && number(&found["se"]) == 0.0, "{found}");
        assert_eq!(found["exact"], all["inclusion"][name], "{name}");
    }
    let models = scratch.read("run/models.csv");
    let mut records = csv::Reader::from_reader(models.as_bytes());
    let records: Vec<csv::StringRecord> = records.records().map(Result::unwrap).collect();
    assert_eq!(records.len(), 256);
    for (record, known) in records.iter().zip(all["models"].as_array().unwrap()) {
        assert_eq!((&record[1], &record[3]), (known["label"].as_str().unwrap(), ""));
        assert_eq!(record[6].parse::<f64>().unwrap(), number(&known["probability"]));
    }
    let page = scratch.read("run/report.html");
    for absent in ["learned (q)", "corrected", ">q<", "NaN", "id=\"training\""] {
        let text = page.split("<section id=\"settings\">").next().unwrap().split("</style>").nth(1).unwrap();
        assert!(!text.contains(absent), "{absent}");
    }
    assert!(page.contains("Trust it: the answer is exact"));
}

#[test]
fn every_command_works_with_an_exact_run_or_says_why_not() {
    let scratch = Scratch::new();
    let data = fixture("mixed.csv");
    let run = ["select", &data, "--response", "y", "--out", "run", "--quiet"];
    scratch.fine(&run);
    let summary = scratch.json("run/summary.json");
    let (page, draws) =
        (scratch.read("run/report.html"), std::fs::read(scratch.path("run/posterior.parquet")).unwrap());
    scratch.fine(&["report", "run"]);
    assert_eq!(scratch.read("run/report.html"), page);
    assert_eq!(scratch.fine(&["watch", "run"]).data.trim_end(), summary["verdict"]["text"].as_str().unwrap());
    let again = scratch.fine(&["check", "run", "--json"]).data;
    assert_eq!(steady(serde_json::from_str(&again).unwrap()), steady(summary.clone()));
    assert_eq!(std::fs::read(scratch.path("run/posterior.parquet")).unwrap(), draws);
    scratch.refused(&["refine", "run"], &["the answer is exact, there is nothing to refine", "vti sample run"]);
    scratch.refused(&run, &["there is a finished run in it"]);
    scratch.fine(&[&run[..], &["--resume"]].concat());
    assert_eq!(steady(scratch.json("run/summary.json")), steady(summary.clone()));
    scratch.refused(&[&run[..], &["--resume", "--method", "vti"]].concat(), &["another method"]);
    assert_eq!(
        scratch.fine(&["predict", "run", &data]).data.lines().count(),
        1 + number(&summary["data"]["rows"]) as usize
    );
    // The same settings give the same again, and a learned run can be compared.
    let again = scratch.fine(&["fit", "run/config.toml", "--out", "again", "--json", "--quiet"]).data;
    assert_eq!(steady(serde_json::from_str(&again).unwrap()), steady(summary.clone()));
    scratch.fine(&select(&data, "y", &["--out", "learned", "--quiet"]));
    let table = scratch.fine(&["compare", "run", "learned"]).data;
    assert!(table.lines().nth(1).unwrap().ends_with("exact"), "{table}");
    check_draws(&scratch, "exact", 0.0);
}

#[test]
fn exact_answers_are_the_same_bits_on_any_number_of_threads() {
    let scratch = Scratch::new();
    let found = ["1", "3"].map(|threads| {
        let out = format!("run{threads}");
        let options = ["--prior", "normal:2", "--quiet", "--threads", threads, "--out", &out];
        scratch.fine(&[&["select", "builtin:prostate", "--response", "lpsa"][..], &options].concat());
        let file = |name: &str| std::fs::read(scratch.path(&out).join(name)).unwrap();
        (steady(scratch.json(&format!("{out}/summary.json"))), file("posterior.parquet"), file("models.csv"))
    });
    assert!(found[0] == found[1]);
}

#[test]
fn methods_that_cannot_be_are_refused_and_options_without_effect_are_named() {
    let scratch = Scratch::new();
    let hald = ["select", "builtin:hald", "--response", "y", "--out", "run"];
    let outcome = scratch.fine(&[&hald[..], &["--steps", "7", "--set", "flow.context=lookup"]].concat());
    let told = "--steps, --set flow.context=lookup: no effect without training; --method vti trains";
    assert!(outcome.talk.contains(told), "{}", outcome.talk);
    let robust = [&hald[..], &["--force", "--method", "exact", "--likelihood", "robust"]].concat();
    scratch.refused(&robust, &["--method exact: evidences are known in closed form for Gaussian", "--method vti"]);
    let names: Vec<String> = (0..21).map(|term| format!("x{term}")).collect();
    let row =
        |i: u32| (0..22).map(|term| (f64::from(i * (term + 3)) * 0.7).sin().to_string()).collect::<Vec<_>>().join(",");
    let rows: String = (0..40).map(|i| row(i) + "\n").collect();
    scratch.write("wide.csv", format!("{},y\n{rows}", names.join(",")));
    scratch.refused(&["select", "wide.csv", "--response", "y", "--method", "exact"], &["2^21 models are too many"]);
    scratch.refused(
        &["dag", "builtin:hald", "--method", "exact"],
        &["closed form for linear equations only", "--method vti"],
    );
    scratch.refused(&["demo", "--method", "annealing"], &["[possible values: auto, exact, search, vti]"]);
    // What was there is left alone.
    assert_eq!(scratch.json("run/summary.json")["correction"], "exact");
}

/// Hald's data under mixtures of g-priors. Inclusion probabilities and means of slopes are from a program that shares nothing
/// with this one: rational least squares, and sums over 10,000 values of g.
#[test]
fn mixtures_of_g_priors_are_answered_exactly() {
    let truths = [
        (
            "hyper-g",
            [0.97852997, 0.7498052, 0.20253456, 0.37343873],
            [1.40583924, 0.43887677, -0.03592561, -0.20483041],
            "hyper-g prior with a = 3, intercept flat, p(σ) ∝ 1/σ",
        ),
        (
            "hyper-g-n:3",
            [0.98085521, 0.75501282, 0.19599501, 0.36433944],
            [1.4119762, 0.4458714, -0.03267114, -0.19913245],
            "hyper-g/n prior with a = 3 and n = 13",
        ),
        (
            "zellner-siow",
            [0.97955007, 0.75185383, 0.19998633, 0.36989614],
            [1.40851413, 0.44167892, -0.03455409, -0.20259954],
            "Zellner–Siow prior with n = 13",
        ),
    ];
    let scratch = Scratch::new();
    for (prior, inclusion, slopes, words) in truths {
        let question = ["builtin:hald", "--response", "y", "--prior", prior];
        let (run, searched) = (prior.replace(':', "-"), format!("{}-searched", prior.replace(':', "-")));
        scratch.fine(&[&["select"], &question[..], &["--quiet", "--out", &run]].concat());
        let summary = scratch.json(&format!("{run}/summary.json"));
        for ((name, found), (expected, slope)) in
            summary["inclusion"].as_object().unwrap().iter().zip(inclusion.iter().zip(slopes))
        {
            assert!((number(&found["exact"]) - expected).abs() < 1e-7, "{prior} {name}: {found}");
            let mean = &summary["coefficients"][name]["exact"];
            assert!((number(mean) - slope).abs() < 1e-7, "{prior} {name}: {mean} {slope}");
        }
        let all = scratch.fine(&[&["enumerate"], &question[..], &["--json"]].concat()).data;
        let all: Value = serde_json::from_str(&all).unwrap();
        assert_eq!(summary["log_evidence"]["estimate"], all["log_evidence"], "{prior}");
        assert!(summary["data"]["prior"].as_str().unwrap().contains(words), "{}", summary["data"]);
        assert!(scratch.read(&format!("{run}/report.html")).contains(words), "{prior}");
        assert_eq!(scratch.fine(&["predict", &run, "builtin:hald"]).data.lines().count(), 14);
        let chains = [&["select"], &question[..], &["--method", "search", "--quiet", "--out", &searched]].concat();
        scratch.fine(&chains);
        let summary = scratch.json(&format!("{searched}/summary.json"));
        for (found, expected) in summary["inclusion"].as_object().unwrap().values().zip(inclusion) {
            let bound = 5.0 * number(&found["se"]) + 1e-6;
            assert!((number(&found["corrected"]) - expected).abs() < bound, "{prior}: {found} {expected}");
        }
    }
    let robust = ["select", "builtin:hald", "--response", "y", "--prior", "hyper-g", "--likelihood", "robust"];
    scratch.refused(&robust, &["mixtures of g-priors for gaussian errors alone", "--prior g"]);
    let perfect: String = (0..12).map(|i| format!("{},{i},{}\n", 2 * i, i * i % 7)).collect();
    scratch.write("perfect.csv", format!("y,a,b\n{perfect}"));
    for prior in ["hyper-g", "hyper-g-n", "zellner-siow"] {
        let question = ["select", "perfect.csv", "--response", "y", "--prior", prior];
        scratch.refused(&question, &["explain the response without errors", "--prior g"]);
    }
    let improper = ["select", "builtin:hald", "--response", "y", "--prior", "hyper-g:2"];
    scratch.refused(&improper, &["a", "greater than 2"]);
}

/// The largest distance of a version of the probabilities from the exact ones, of what the summary lists.
fn farthest(summary: &Value, version: &str) -> f64 {
    let terms = summary["inclusion"].as_object().unwrap().values();
    let all = terms.chain(summary["models"].as_array().unwrap());
    all.map(|found| (number(&found[version]) - number(&found["exact"])).abs()).fold(0.0, f64::max)
}

#[test]
fn the_verdict_on_what_was_learned_heeds_the_exact_answer() {
    let scratch = Scratch::new();
    let sparse = ["--model-prior", "bernoulli:0.01", "--steps", "1"];
    let poor = "--set flow.kind=diagonal --set flow.hidden=[4] --set flow.preconditioner=unit --steps 3";
    let poor: Vec<&str> = poor.split(' ').collect();
    for (data, response, more) in
        [("builtin:prostate", "lpsa", &[][..]), ("builtin:prostate", "lpsa", &sparse), ("builtin:hald", "y", &poor)]
    {
        let small: Vec<&str> = SMALL.iter().copied().filter(|option| *option != "--steps" && *option != "20").collect();
        let steps = if more.is_empty() { &["--steps", "300"][..] } else { &[] };
        let question = ["select", data, "--response", response, "--out", "run", "--force", "--json", "--quiet"];
        let summary: Value =
            serde_json::from_str(&scratch.fine(&[&question, &small[..], steps, more].concat()).data).unwrap();
        let (q, corrected) = (farthest(&summary, "q"), farthest(&summary, "corrected"));
        let (kind, text) = (summary["verdict"]["kind"].as_str().unwrap(), summary["verdict"]["text"].to_string());
        let said = match (q <= 0.03, corrected <= 0.03) {
            (_, false) => "do-not-trust",
            // Unless a model that matters was never met.
            _ if text.contains("never met") => "do-not-trust",
            (true, true) => "trust",
            (false, true) => "corrected",
        };
        assert_eq!(kind, said, "{q} {corrected}: {text}");
        assert!(text.contains("the exact answer"), "{text}");
    }
}

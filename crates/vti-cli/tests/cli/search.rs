//! Answers by chains over models with exact evidences, without training.

use serde_json::Value;

use crate::support::{Scratch, check_draws, fixture, steady};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// A table of 24 covariates of which three matter, more than can be enumerated.
fn wide(scratch: &Scratch) {
    // Digits of sines far behind the point are as good as random.
    let value = |row: u32, column: u32| {
        let digits = (f64::from(row) * 12.9898 + f64::from(column) * 78.233).sin() * 43_758.545_3;
        3.46 * (digits - digits.floor() - 0.5)
    };
    let line = |row: u32| {
        let noise = value(row, 40) + value(row, 41) + value(row, 42);
        let y = 2.0 + value(row, 1) - 0.7 * value(row, 5) + 0.7 * value(row, 9) + 0.6 * noise;
        let cells = (0..24).map(|column| value(row, column).to_string() + ",").collect::<String>();
        format!("{cells}{y}\n")
    };
    let names: String = (0..24).map(|column| format!("x{column},")).collect();
    scratch.write("wide.csv", format!("{names}y\n{}", (0..80).map(line).collect::<String>()));
}

const WIDE: [&str; 6] = ["select", "wide.csv", "--response", "y", "--out", "run"];

#[test]
fn chains_answer_where_there_are_too_many_models_to_sum() {
    let scratch = Scratch::new();
    wide(&scratch);
    let outcome = scratch.fine(&WIDE);
    assert!(outcome.talk.contains("chains over models with exact evidences answer, no parameters are trained"));
    let header = outcome.data.lines().next().unwrap();
    assert_eq!(header.split_whitespace().collect::<Vec<_>>(), ["inclusion", "probability", "q", "by", "chains"]);
    assert!(outcome.data.contains("trust: 4 chains over models"), "{}", outcome.data);
    assert!(outcome.data.contains("q(m) learned what they met, and weights of its own draws"), "{}", outcome.data);
    assert!(!outcome.data.contains("NaN"), "{}", outcome.data);
    for file in ["config.toml", "posterior.parquet", "models.csv", "summary.json", "report.html"] {
        assert!(scratch.path("run").join(file).metadata().unwrap().len() > 0, "{file}");
    }
    for file in ["progress.jsonl", "checkpoint.safetensors", "posterior.safetensors"] {
        assert!(!scratch.path("run").join(file).exists(), "{file}");
    }
    let summary = scratch.json("run/summary.json");
    assert_eq!((&summary["correction"], &summary["verdict"]["kind"]), (&"search".into(), &"trust".into()));
    assert!(summary["exact"].is_null() && summary["chains"].is_null());
    let facts = &summary["search"];
    // What q(m) learned: a bound, and weights that know the evidence far better than visits do.
    let evidence = &summary["log_evidence"];
    assert!(number(&evidence["khat"]) < 0.7 && number(&evidence["se"]) < 0.1, "{evidence}");
    assert_eq!(evidence["estimate"], facts["weights"]["value"]);
    let above = number(&summary["elbo"]["mean"]) - number(&evidence["estimate"]);
    assert!((-2.0..0.0).contains(&above), "{above}");
    assert!(number(&facts["rhat"]) <= 1.01 && number(&facts["effective"]) >= 400.0, "{facts}");
    assert_eq!(
        (&facts["chains"], &facts["temperatures"], &facts["ended"]),
        (&4.into(), &3.into(), &"converged".into())
    );
    for (name, part) in summary["inclusion"].as_object().unwrap() {
        assert!(part["exact"].is_null() && number(&part["se"]) < 0.02, "{name}: {part}");
        assert!((number(&part["q"]) - number(&part["corrected"])).abs() < 0.03, "{name}: {part}");
        let (relevant, p) = (["x1", "x5", "x9"].contains(&name.as_str()), number(&part["corrected"]));
        assert!(if relevant { p > 0.9 } else { p < 0.9 }, "{name}: {p}");
    }
    assert!(scratch.read("run/config.toml").contains("method = \"search\""));
    let page = scratch.read("run/report.html");
    let words = page.split("<section id=\"settings\">").next().unwrap().split("</style>").nth(1).unwrap();
    for absent in ["corrected", "NaN", "id=\"training\"", "Nothing was learned"] {
        assert!(!words.contains(absent), "{absent}");
    }
    for present in ["Trust it: chains over models agree", "learned (q)", "by chains"] {
        assert!(words.contains(present), "{present}");
    }
    // Without q(m), as before.
    let without = scratch.fine(&[&WIDE[..], &["--force", "--json", "--set", "search.learned.draws=0"]].concat());
    let without: Value = serde_json::from_str(&without.data).unwrap();
    assert!(without["elbo"].is_null() && without["search"]["weights"].is_null());
    for (name, part) in without["inclusion"].as_object().unwrap() {
        assert!(part["q"].is_null() && part["corrected"] == summary["inclusion"][name]["corrected"], "{name}: {part}");
    }
    let text = without["verdict"]["text"].as_str().unwrap();
    assert!(text.starts_with("trust: nothing was learned; 4 chains over models"), "{text}");
}

#[test]
fn chains_over_models_find_what_enumeration_finds() {
    let scratch = Scratch::new();
    for (more, prior) in [("0", "g"), ("1", "normal:1")] {
        let question = ["select", "builtin:prostate", "--response", "lpsa", "--prior", prior, "--json", "--quiet"];
        let run = |method: &str, out: &str| -> Value {
            let options = ["--method", method, "--out", out];
            serde_json::from_str(&scratch.fine(&[&question[..], &options].concat()).data).unwrap()
        };
        let (exact, found) = (run("exact", &format!("exact{more}")), run("search", &format!("search{more}")));
        for key in ["inclusion", "coefficients"] {
            for (name, part) in found[key].as_object().unwrap() {
                let off = (number(&part["corrected"]) - number(&exact[key][name]["exact"])).abs();
                assert!(off <= 4.0 * number(&part["se"]) + 1e-7, "{prior}, {name}: {part}, {}", exact[key][name]);
            }
        }
        let off = number(&found["log_evidence"]["estimate"]) - number(&exact["log_evidence"]["estimate"]);
        assert!(off.abs() <= 4.0 * number(&found["log_evidence"]["se"]) + 1e-9, "{off}");
        assert_eq!(found["highest_probability_model"], exact["highest_probability_model"]);
    }
}

#[test]
fn every_command_works_with_a_run_of_chains_over_models() {
    let scratch = Scratch::new();
    let data = fixture("mixed.csv");
    let run = ["select", &data, "--response", "y", "--method", "search", "--out", "run", "--quiet"];
    scratch.fine(&run);
    let summary = scratch.json("run/summary.json");
    let draws = std::fs::read(scratch.path("run/posterior.parquet")).unwrap();
    let page = scratch.read("run/report.html");
    scratch.fine(&["report", "run"]);
    assert_eq!(scratch.read("run/report.html"), page);
    assert_eq!(scratch.fine(&["watch", "run"]).data.trim_end(), summary["verdict"]["text"].as_str().unwrap());
    let again = scratch.fine(&["check", "run", "--json"]).data;
    assert_eq!(steady(serde_json::from_str(&again).unwrap()), steady(summary.clone()));
    assert_eq!(std::fs::read(scratch.path("run/posterior.parquet")).unwrap(), draws);
    scratch.refused(&["refine", "run"], &["there is nothing to refine", "`vti check run` runs the chains anew"]);
    scratch.fine(&[&run[..], &["--resume", "--threads", "1"]].concat());
    let mut resumed = steady(scratch.json("run/summary.json"));
    resumed["threads"] = steady(summary.clone())["threads"].clone();
    assert_eq!(resumed, steady(summary.clone()));
    scratch.refused(&[&run[..4], &["--method", "vti", "--out", "run", "--resume"]].concat(), &["another method"]);
    assert_eq!(
        scratch.fine(&["predict", "run", &data]).data.lines().count(),
        1 + number(&summary["data"]["rows"]) as usize
    );
    let table = scratch.fine(&["compare", "run", "run"]).data;
    assert!(table.lines().nth(1).unwrap().ends_with("trust"), "{table}");
    // Models are drawn twice: for the file of the run, and from it.
    check_draws(&scratch, "corrected", 1.0 / 20_000.0);
}

#[test]
fn chains_without_time_are_not_trusted_and_settings_are_checked() {
    let scratch = Scratch::new();
    wide(&scratch);
    let few = [&WIDE[..], &["--set", "search.iterations=80", "--set", "search.warmup=20"]].concat();
    let outcome = scratch.fine(&few);
    assert!(outcome.data.contains("do not trust: 4 chains over models"), "{}", outcome.data);
    assert!(outcome.data.contains("raise search.iterations"), "{}", outcome.data);
    let force = |more: &[&'static str]| [&WIDE[..], &["--force"], more].concat();
    scratch.refused(&force(&["--set", "search.chains=1"]), &["search", "chains", "at least 2"]);
    scratch.refused(&force(&["--set", "search.seed=3"]), &["train.seed is the seed of all randomness"]);
    scratch.refused(&force(&["--time-limit", "0.0001s"]), &["before there was anything to tell", "--time-limit"]);
    let exact = force(&["--method", "exact"]);
    scratch.refused(&exact, &["2^24 models are too many", "--method search runs chains", "--method vti learns"]);
    let robust = force(&["--method", "search", "--likelihood", "robust"]);
    scratch.refused(&robust, &["--method search: evidences are known in closed form for Gaussian"]);
}

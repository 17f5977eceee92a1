//! What a run finds and leaves behind.

use serde_json::Value;

use crate::support::{SMALL, Scratch, fixture, number, select, snapshot, steady};

/// Two numbers within so many joint standard errors.
fn agree(a: &Value, b: &Value, what: &str) {
    let (x, y) = (number(&a["corrected"]), number(&b["corrected"]));
    let se = (number(&a["se"]).powi(2) + number(&b["se"]).powi(2)).sqrt();
    assert!((x - y).abs() < 5.0 * se + 1e-6, "{what}: {a} {b}");
}

#[test]
fn the_exact_answers_of_both_data_sets_are_the_known_ones() {
    let scratch = Scratch::new();
    let found = |data: &str, response: &str| -> Value {
        serde_json::from_str(&scratch.fine(&["enumerate", data, "--response", response, "--json"]).data).unwrap()
    };
    let known = |found: &Value, truth: &[(&str, f64)]| {
        for (name, truth) in truth {
            assert!((number(&found["inclusion"][name]) - truth).abs() < 1e-6, "{name}: {found}");
        }
    };
    let prostate = found("builtin:prostate", "lpsa");
    known(&prostate, &[("svi", 0.914_208), ("lweight", 0.847_614), ("lbph", 0.355_272)]);
    let top = &prostate["models"][0];
    assert_eq!(top["label"], "{lcavol, lweight, svi}");
    assert!((number(&top["probability"]) - 0.317_653).abs() < 1e-6);
    let hald = found("builtin:hald", "y");
    known(&hald, &[("x1", 0.899_812), ("x2", 0.636_125), ("x3", 0.339_798), ("x4", 0.563_684)]);
    scratch.write("c.toml", "[problem]\nkind = \"select\"\ndata = \"builtin:hald\"\nresponse = \"y\"\n");
    assert_eq!(serde_json::from_str::<Value>(&scratch.fine(&["enumerate", "c.toml", "--json"]).data).unwrap(), hald);
    let table = scratch.fine(&["enumerate", "builtin:hald", "--response", "y", "--out", "all.csv"]).data;
    assert!(table.contains("{x1, x2}") && table.contains("0.325250"), "{table}");
    assert_eq!(scratch.read("all.csv").lines().count(), 17);
    scratch
        .refused(&["enumerate", "builtin:hald", "--response", "y", "--likelihood", "student-t:4"], &["no closed form"]);
}

#[test]
fn the_demo_finds_what_enumeration_knows_and_writes_everything() {
    let scratch = Scratch::new();
    let outcome = scratch.fine(&["demo", "--steps", "150", "--set", "train.batch=256", "--set", "check.draws=4000"]);
    assert!(outcome.talk.contains("about") && outcome.talk.contains("MB of memory"), "{}", outcome.talk);
    assert!(outcome.talk.contains("models: surrogate (256 models"), "{}", outcome.talk);
    for part in ["inclusion probability", "median-probability model", "averaged over models", "log evidence", "exact"] {
        assert!(outcome.data.contains(part), "{part}:\n{}", outcome.data);
    }
    for file in [
        "config.toml",
        "progress.jsonl",
        "checkpoint.safetensors",
        "posterior.safetensors",
        "posterior.parquet",
        "models.csv",
        "summary.json",
        "report.html",
    ] {
        assert!(scratch.path("vti-demo").join(file).metadata().unwrap().len() > 0, "{file}");
    }
    let summary = scratch.json("vti-demo/summary.json");
    for (name, found) in summary["inclusion"].as_object().unwrap() {
        let off = number(&found["corrected"]) - number(&found["exact"]);
        assert!(off.abs() < 5.0 * number(&found["se"]) + 0.02, "{name}: {found}");
    }
    let lines = scratch.read("vti-demo/progress.jsonl");
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&last["step"], &last["dropped"]), (&Value::from(150), &Value::from(0)));
    let models = scratch.read("vti-demo/models.csv");
    assert!(models.starts_with("model,label,size,q,corrected,se,exact,log_evidence,log_evidence_se,khat\n"));
    distances_bracket(&summary["exact"]["total_variation"]["q"], &models);
    // Other commands on the same run.
    assert!(scratch.fine(&["watch", "vti-demo", "--once"]).data.contains("step     150"));
    let page = scratch.read("vti-demo/report.html");
    std::fs::remove_file(scratch.path("vti-demo/report.html")).unwrap();
    scratch.fine(&["report", "vti-demo"]);
    assert_eq!(scratch.read("vti-demo/report.html"), page);
    let again = scratch.fine(&["check", "vti-demo", "--json"]).data;
    assert_eq!(steady(serde_json::from_str(&again).unwrap()), steady(summary.clone()));
    let table = scratch.fine(&["compare", "vti-demo", "vti-demo"]).data;
    assert_eq!(table.lines().count(), 3, "{table}");
    let refined: Value = serde_json::from_str(
        &scratch.fine(&["refine", "vti-demo", "--chains", "16", "--iterations", "60", "--json"]).data,
    )
    .unwrap();
    assert_eq!(refined["correction"], "chains");
    agree(&refined["inclusion"]["svi"], &summary["inclusion"]["svi"], "svi");
    agree(&refined["coefficients"]["lcavol"], &summary["coefficients"]["lcavol"], "lcavol");
}

/// The total variation of q lies between that of all models that were not met taken as one, and that of their being
/// different models on both sides.
fn distances_bracket(found: &Value, models: &str) {
    let (mut off, mut own, mut known) = (0.0, 0.0, 0.0);
    for record in csv::Reader::from_reader(models.as_bytes()).records() {
        let record = record.unwrap();
        let (q, exact): (f64, f64) = (record[3].parse().unwrap(), record[6].parse().unwrap());
        off += (q - exact).abs();
        own += q;
        known += exact;
    }
    let (least, most) = (0.5 * (off + f64::abs(own - known)), 0.5 * (off + 2.0 - own - known));
    let found = number(found);
    assert!(least - 1e-6 <= found && found <= most + 1e-6, "{least} {found} {most}");
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn summaries_are_a_promise() {
    let scratch = Scratch::new();
    let data = fixture("mixed.csv");
    scratch.fine(&select(&data, "y", &["--out", "run", "--precision", "f64"]));
    let mut summary = steady(scratch.json("run/summary.json"));
    // Numbers differ in their last digits from machine to machine.
    fn round(value: &mut Value) {
        match value {
            Value::Number(number) if number.is_f64() => *value = Value::from("number"),
            Value::Array(values) => values.iter_mut().for_each(round),
            Value::Object(values) => values.values_mut().for_each(round),
            Value::String(text) if text.contains("trust") || text.contains("k̂") => *value = Value::from("text"),
            _ => {}
        }
    }
    // What is blanked below has its form, too.
    assert_eq!(keys(&summary["verdict"]), ["kind", "text"]);
    for model in summary["models"].as_array().unwrap() {
        let promised = ["corrected", "exact", "khat", "label", "log_evidence", "q", "se", "size", "word"];
        assert_eq!(keys(model), promised);
        let word = model["word"].as_str().unwrap();
        assert_eq!((word.len(), word.matches('1').count() as u64), (4, model["size"].as_u64().unwrap()));
        assert!(model["label"].as_str().unwrap().starts_with('{'));
        assert!(model["log_evidence"].is_null() || keys(&model["log_evidence"]) == ["se", "value"], "{model}");
        assert!(model["khat"].is_null() || model["khat"].is_f64(), "{model}");
    }
    let count = summary["models"].as_array().unwrap().len();
    assert!((1..=16).contains(&count));
    summary["models"].as_array_mut().unwrap().truncate(1);
    for name in ["verdict", "highest_probability_model", "median_probability_model", "warnings"] {
        summary[name] = Value::from("depends on the run");
    }
    round(&mut summary);
    for model in summary["models"].as_array_mut().unwrap() {
        ["word", "label", "size", "khat", "log_evidence"].iter().for_each(|key| model[key] = Value::Null);
    }
    summary["log_evidence"]["khat"] = Value::Null;
    let fit = &mut summary["fit"];
    ["kind", "text", "advice"].iter().for_each(|key| fit[key] = Value::Null);
    let outcome = &mut fit["outcomes"][0];
    ["draws", "misfits"].iter().for_each(|key| outcome[key] = Value::Null);
    outcome["residuals"]["outliers"] = Value::Null;
    ["khat", "khat_above", "influential"].iter().for_each(|key| outcome["loo"][key] = Value::Null);
    snapshot("summary.json", &(serde_json::to_string_pretty(&summary).unwrap() + "\n"));
}

#[test]
fn the_answer_does_not_depend_on_threads_or_on_the_format_of_the_data() {
    let scratch = Scratch::new();
    let run = |file: &str, threads: &str, out: &str| {
        let data = fixture(file);
        let arguments = select(&data, "y", &["--out", out, "--json", "--quiet"]);
        let mut arguments: Vec<&str> = arguments.into_iter().collect();
        let place = arguments.iter().position(|argument| *argument == "--threads").unwrap();
        arguments[place + 1] = threads;
        let mut summary = steady(serde_json::from_str(&scratch.fine(&arguments).data).unwrap());
        summary["data"] = Value::Null;
        summary
    };
    let once = run("mixed.csv", "1", "a");
    assert_eq!(once, run("mixed.csv", "2", "b"));
    assert_eq!(once, run("mixed_pandas.parquet", "1", "c"));
    assert_eq!(once, run("mixed_polars.parquet", "1", "d"));
}

#[test]
fn categories_enter_and_leave_together() {
    let scratch = Scratch::new();
    let data = fixture("mixed.csv");
    let outcome = scratch.fine(&select(&data, "y", &["--out", "run"]));
    assert!(outcome.talk.contains("colour: categories blue, green, red; coefficients are differences from blue"));
    let summary = scratch.json("run/summary.json");
    let names: Vec<&String> = summary["inclusion"].as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 4);
    assert!(summary["coefficients"]["colour=red"].is_object() && summary["coefficients"]["colour=green"].is_object());
    assert!(summary["coefficients"]["smoker"].is_object() && summary["coefficients"]["colour=blue"].is_null());
    // Numbers that name categories.
    let outcome =
        scratch.fine(&select("builtin:prostate", "lpsa", &["--categorical", "gleason", "--include", "gleason,lcavol"]));
    assert!(outcome.talk.contains("gleason: categories 6, 7, 8, 9"), "{}", outcome.talk);
    // In every model.
    scratch.fine(&select(&data, "y", &["--out", "always", "--always", "colour"]));
    let summary = scratch.json("always/summary.json");
    assert!(summary["inclusion"]["colour"].is_null() && summary["coefficients"]["colour=red"].is_object());
}

#[test]
fn standardisation_is_undone() {
    // The g-prior does not see the units of the columns: both ways give the same answer in the units of the data.
    let scratch = Scratch::new();
    scratch.write("t.csv", units_table());
    let run = |out: &str, more: &[&str]| {
        let options = ["--steps", "400", "--threads", "2", "--set", "train.batch=128", "--set", "check.draws=4000"];
        let question = ["select", "t.csv", "--response", "y", "--method", "vti", "--out", out, "--json"];
        let arguments = [&question[..], &options, more].concat();
        serde_json::from_str::<Value>(&scratch.fine(&arguments).data).unwrap()
    };
    let (standardised, raw) = (run("a", &[]), run("b", &["--no-standardize"]));
    for name in ["intercept", "a", "b", "sigma"] {
        agree(&standardised["coefficients"][name], &raw["coefficients"][name], name);
    }
    // y = 3 + 2 a − b/2 + noise of 0.1.
    let mean = |name: &str| number(&standardised["coefficients"][name]["corrected"]);
    assert!((mean("a") - 2.0).abs() < 0.1 && (mean("b") + 0.5).abs() < 0.05, "{standardised}");
    assert!((mean("intercept") - 3.0).abs() < 0.5, "{standardised}");
}

/// Columns of mean 5 and 2 and standard deviation 0.8 and 1.5 or so.
fn units_table() -> String {
    let rows = (0..60).map(|i: u32| {
        let wave = |k: f64| (f64::from(i) * k).sin();
        let (a, b) = (5.0 + 1.1 * wave(1.3), 2.0 + 2.1 * wave(0.7));
        format!("{a},{b},{}\n", 3.0 + 2.0 * a - 0.5 * b + 0.14 * wave(12.9))
    });
    std::iter::once("a,b,y\n".to_string()).chain(rows).collect()
}

#[test]
fn predictions_agree_with_the_data_they_were_learned_from() {
    let scratch = Scratch::new();
    scratch.write("t.csv", units_table());
    let options = ["--steps", "400", "--threads", "2", "--set", "train.batch=128", "--set", "check.draws=2000"];
    let question = ["select", "t.csv", "--response", "y", "--method", "vti", "--out", "run", "--quiet"];
    scratch.fine(&[&question[..], &options].concat());
    let found = scratch.fine(&["predict", "run", "t.csv", "--interval", "0.95"]).data;
    let rows = |text: &str| -> Vec<Vec<f64>> {
        text.lines().skip(1).map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect()
    };
    let (found, data) = (rows(&found), rows(&scratch.read("t.csv")));
    assert_eq!(found.len(), 60);
    let mut inside = 0;
    for (found, data) in found.iter().zip(&data) {
        let [_, mean, mean_low, mean_high, new_low, new_high] = found[..] else { panic!("{found:?}") };
        assert!(new_low < mean_low && mean_low < mean && mean < mean_high && mean_high < new_high, "{found:?}");
        assert!((mean - data[2]).abs() < 0.5, "{found:?} {data:?}");
        inside += usize::from(new_low < data[2] && data[2] < new_high);
    }
    assert!(inside >= 52, "{inside} of 60 inside 95 % intervals");
    scratch.fine(&["predict", "run", "t.csv", "--out", "new.csv"]);
    assert!(scratch.read("new.csv").starts_with("row,mean,mean_low,mean_high,new_low,new_high\n"));
}

#[test]
fn densities_of_samples_are_those_of_their_points() {
    let scratch = Scratch::new();
    let data = fixture("mixed.csv");
    scratch.fine(&select(&data, "y", &["--out", "run", "--precision", "f64", "--quiet"]));
    scratch.fine(&["sample", "run", "-n", "50", "--out", "draws.csv"]);
    let found = scratch.fine(&["log-prob", "run", "draws.csv"]).data;
    let columns = |text: &str, names: [&str; 3]| -> Vec<[String; 3]> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header: Vec<String> = reader.headers().unwrap().iter().map(String::from).collect();
        let places = names.map(|name| header.iter().position(|column| column == name).unwrap());
        reader.records().map(|record| places.map(|place| record.as_ref().unwrap()[place].to_string())).collect()
    };
    let names = ["word", "log_q", "log_target"];
    for (drawn, found) in columns(&scratch.read("draws.csv"), names).iter().zip(columns(&found, names)) {
        assert_eq!(drawn[0], found[0]);
        for number in 1..3 {
            let (a, b): (f64, f64) = (drawn[number].parse().unwrap(), found[number].parse().unwrap());
            assert!((a - b).abs() < 1e-6 * (1.0 + a.abs()), "{drawn:?} {found:?}");
        }
    }
    scratch.write("points.csv", "sigma,intercept,dose,age,colour=green,colour=red,smoker\n1,0,,,1,,\n");
    scratch.refused(&["log-prob", "run", "points.csv"], &["line 2: no model has just these parameters"]);
    let points = |row: &str| {
        scratch.write("points.csv", format!("sigma,intercept,dose,age,colour=green,colour=red,smoker\n{row}\n"));
    };
    points("1,0,abc,,,,");
    scratch.refused(&["log-prob", "run", "points.csv"], &["points.csv: line 2, column dose: \"abc\" is not a number"]);
    points("1,0,inf,,,,");
    scratch.refused(&["log-prob", "run", "points.csv"], &["line 2, column dose: inf is not finite"]);
    // No scale of errors is negative.
    points("-1,0,,,,,\n0,0,,,,,\n1,0,,,,,");
    let found = scratch.fine(&["log-prob", "run", "points.csv"]).data;
    let rows = columns(&found, names);
    assert!(rows[..2].iter().all(|row| row[1..] == ["-inf", "-inf"]), "{found}");
    assert!(rows[2][1..].iter().all(|cell| cell.parse::<f64>().unwrap().is_finite()), "{found}");
}

#[test]
fn columns_called_like_those_of_draws_get_other_names() {
    let scratch = Scratch::new();
    scratch.write("t.csv", units_table().replacen("a,b,y", "model,log_q,y", 1));
    scratch.fine(&select("t.csv", "y", &["--out", "run", "--quiet"]));
    let draws = scratch.fine(&["sample", "run", "-n", "5"]).data;
    let header = "model,word,log_q,log_target,log_weight,sigma,intercept,model.parameter,log_q.parameter\n";
    assert!(draws.starts_with(header), "{draws}");
    scratch.write("draws.csv", draws);
    assert_eq!(scratch.fine(&["log-prob", "run", "draws.csv"]).data.lines().count(), 6);
}

#[test]
fn a_quadrature_that_fails_costs_the_comparison_only() {
    let scratch = Scratch::new();
    scratch.write("t.csv", "a,y\n1,1.1\n2,1.9\n3,3.2\n4,3.9\n5,5.1\n");
    let outcome = scratch.fine(&select("t.csv", "y", &["--likelihood", "student-t:1", "--out", "run"]));
    let summary = scratch.json("run/summary.json");
    assert!(summary["exact"].is_null(), "{}", summary["exact"]);
    let warning = "there is no exact answer to compare with: ";
    assert!(outcome.data.contains(&format!("\nwarning: {warning}")), "{}", outcome.data);
    // Once, however often it is checked.
    scratch.fine(&["check", "run"]);
    assert_eq!(scratch.json("run/summary.json")["warnings"].to_string().matches(warning).count(), 1);
}

#[test]
fn options_win_over_set_and_configurations_are_heard() {
    let scratch = Scratch::new();
    let set = ["--set", "train.steps=3", "--set", "problem.prior={ kind = \"g\", g = 7.0 }", "--set", "train.seed=5"];
    scratch.fine(&select("builtin:hald", "y", &[&set[..], &["--prior", "g:6", "--out", "run"]].concat()));
    let summary = scratch.json("run/summary.json");
    assert_eq!((&summary["steps"], &summary["seed"]), (&Value::from(20), &Value::from(5)));
    assert!(scratch.read("run/config.toml").contains("g = 6.0"));
    let chains = |more: &[&str]| -> Value {
        let options = ["--json", "--chains", "2", "--sweeps", "400", "--burn-in", "50"];
        let mut found: Value =
            serde_json::from_str(&scratch.fine(&[&["rjmcmc"], more, &options].concat()).data).unwrap();
        found["seconds"] = Value::Null;
        found
    };
    let head = "[problem]\nkind = \"select\"\ndata = \"builtin:hald\"\nresponse = \"y\"\n";
    scratch.write("c.toml", format!("{head}[train]\nseed = 9\nthreads = 1\n"));
    let by_file = chains(&["c.toml"]);
    assert_eq!(by_file, chains(&["builtin:hald", "--response", "y", "--seed", "9"]));
    assert_ne!(by_file, chains(&["builtin:hald", "--response", "y"]));
}

#[test]
fn a_time_limit_alone_decides_how_many_steps_there_are() {
    let scratch = Scratch::new();
    let small =
        ["--method", "vti", "--set", "train.batch=4", "--set", "check.draws=400", "--set", "check.refine=never"];
    let arguments = [&["select", "builtin:hald", "--response", "y", "--time-limit", "1s", "--out", "run"][..], &small];
    let outcome = scratch.fine(&arguments.concat());
    assert!(outcome.talk.contains("as many steps as fit into 1 s of 4 draws"), "{}", outcome.talk);
    assert!(!outcome.talk.contains("1000000"), "{}", outcome.talk);
    let summary = scratch.json("run/summary.json");
    // Unless the machine was so busy that the limit came before the plan was fulfilled.
    if summary["stop"].as_str().unwrap().starts_with("all") {
        let planned = format!("\nsteps = {}\n", summary["steps"]);
        assert!(scratch.read("run/config.toml").contains(&planned), "{planned}");
    }
}

#[test]
fn every_likelihood_runs_from_table_to_prediction() {
    let scratch = Scratch::new();
    let rows = (0..50).map(|i: u32| {
        let wave = |k: f64| (f64::from(i) * k).sin();
        let eta = 1.0 + wave(1.3);
        format!(
            "{},{},{},{},{}\n",
            wave(1.3),
            wave(0.7),
            eta + 0.3 * wave(9.1),
            u8::from(eta + wave(5.7) > 1.0),
            (eta.exp() + wave(3.3)).round().max(0.0)
        )
    });
    scratch.write("t.csv", std::iter::once("a,b,real,binary,count\n".to_string()).chain(rows).collect::<String>());
    for (likelihood, response) in [
        ("gaussian:0.5", "real"),
        ("robust", "real"),
        ("robust:0.1,0.3,3", "real"),
        ("student-t:4", "real"),
        ("logistic", "binary"),
        ("poisson", "count"),
        ("negative-binomial", "count"),
        ("negative-binomial:3", "count"),
    ] {
        for prior in ["g", "normal:2"] {
            let more = [
                "--include",
                "a,b",
                "--likelihood",
                likelihood,
                "--prior",
                prior,
                "--out",
                "run",
                "--force",
                "--quiet",
            ];
            scratch.fine(&select("t.csv", response, &more));
            let found = scratch.fine(&["predict", "run", "t.csv"]).data;
            assert_eq!(found.lines().count(), 51);
            assert!(!found.contains("NaN"), "{likelihood} {prior}: {found}");
        }
    }
}

#[test]
fn the_best_of_several_runs_is_kept() {
    let scratch = Scratch::new();
    scratch.fine(
        &[&["select", "builtin:hald", "--response", "y", "--out", "run", "--replicates", "3"][..], &SMALL].concat(),
    );
    let summary = scratch.json("run/summary.json");
    let bounds: Vec<f64> =
        summary["replicates"].as_array().unwrap().iter().map(|run| number(&run["elbo"]["value"])).collect();
    assert_eq!(bounds.len(), 3);
    let best = (0..3).max_by(|&a, &b| bounds[a].total_cmp(&bounds[b])).unwrap();
    assert_eq!(summary["seed"], Value::from(1 + best as u64));
    scratch.fine(&["check", "run"]);
    // As if it had been interrupted in the third run: all that is told is of one run.
    for file in ["summary.json", "posterior.safetensors"] {
        std::fs::remove_file(scratch.path("run").join(file)).unwrap();
    }
    let third = "\"entropy\":1.0,\"gradient_norm\":1.0,\"dropped\":0,\"replicate\":2}\n";
    let lines = scratch.read("run/progress.jsonl") + "{\"step\":7,\"seconds\":0.1,\"elbo\":-3.0," + third;
    scratch.write("run/progress.jsonl", lines);
    scratch.fine(&["check", "run"]);
    let summary = scratch.json("run/summary.json");
    assert_eq!((&summary["seed"], &summary["steps"]), (&Value::from(1), &Value::from(20)));
}

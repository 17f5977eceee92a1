//! Whether the model fits the data: said beside the verdict, whatever the verdict is.

use serde_json::Value;

use crate::support::Scratch;

/// Options that make a run small.
const SMALL: [&str; 8] = ["--steps", "60", "--threads", "2", "--set", "train.batch=64", "--set", "check.draws=2000"];

#[test]
fn nodes_of_skewed_data_do_not_fit_linear_equations() {
    let scratch = Scratch::new();
    let columns = ["dag", "builtin:sachs", "--include", "praf,pmek,plcg,PIP2", "--sem", "linear", "--out", "run"];
    let outcome = scratch.fine(&[&columns[..], &SMALL].concat());
    let summary = scratch.json("run/summary.json");
    assert_eq!(summary["verdict"]["kind"], "trust", "{}", summary["verdict"]);
    let fit = &summary["fit"];
    assert_eq!((&fit["kind"], &fit["of_rows"]), (&Value::from("does-not-fit"), &Value::from(7466)));
    for node in fit["outcomes"].as_array().unwrap() {
        let kinds: Vec<&str> =
            node["misfits"].as_array().unwrap().iter().map(|m| m["kind"].as_str().unwrap()).collect();
        assert!(kinds.contains(&"skewness"), "{node}");
    }
    let line = outcome.data.lines().find(|line| line.starts_with("fit: ")).unwrap();
    assert!(line.contains("does not fit 4 of 4 nodes: "), "{line}");
    assert!(["praf", "pmek", "plcg", "PIP2"].iter().all(|name| line.contains(name)), "{line}");
    assert!(outcome.data.contains("hint: the setting log takes"), "{}", outcome.data);
    let page = scratch.read("run/report.html");
    assert!(page.contains("The model does not fit the data") && page.contains("<section id=\"fit\">"));
    // What is written stays when the page is made anew, and comes again when the run is checked.
    scratch.fine(&["report", "run"]);
    assert_eq!(scratch.read("run/report.html"), page);
    scratch.fine(&["check", "run"]);
    assert_eq!(scratch.json("run/summary.json")["fit"], *fit);
}

#[test]
fn every_likelihood_is_looked_at() {
    let scratch = Scratch::new();
    let mut table = String::from("x,z,y,count,yes\n");
    for row in 0..120 {
        // Normal numbers from sums of many that look random.
        let noise = |by: i32| (0..12).map(|i| f64::from((row * 7919 + i * by) % 1009) / 1009.0).sum::<f64>() - 6.0;
        let (x, z) = (noise(577), noise(331));
        let (y, count) = (2.0 * x + noise(857), (1.0 + 0.8 * x + 0.3 * noise(467)).exp().floor());
        table += &format!("{x},{z},{y},{count},{}\n", u8::from(x + noise(719) > 0.0));
    }
    scratch.write("t.csv", table);
    for (response, likelihood, part) in [
        ("y", "gaussian", "residuals"),
        ("y", "gaussian:1", "scale"),
        ("y", "robust", "residuals"),
        ("y", "robust:0.1,1,10", "scale"),
        ("y", "student-t:4", "residuals"),
        ("count", "poisson", "dispersion"),
        ("count", "negative-binomial", "dispersion"),
        ("yes", "logistic", "calibration"),
    ] {
        let columns = ["select", "t.csv", "--response", response, "--include", "x,z", "--likelihood", likelihood];
        let more = ["--check", "none", "--set", "check.refine=never", "--out", "run", "--force"];
        let outcome = scratch.fine(&[&columns[..], &SMALL, &more].concat());
        assert!(outcome.data.contains("fit: "), "{likelihood}: {}", outcome.data);
        let summary = scratch.json("run/summary.json");
        let found = &summary["fit"]["outcomes"][0];
        assert_eq!((&found["name"], &summary["fit"]["rows"]), (&Value::from(response), &Value::from(120)));
        assert!(found[part].is_object() && found["gain"]["elpd"].as_f64().unwrap() > 3.0, "{likelihood}: {found}");
    }
}

//! What people who fit regressions need: weights, offsets and exposures, counts that vary more than Poisson ones.

use crate::support::{SMALL as TINY, Scratch, noise, number};

/// Options of a quick run that learns.
const SMALL: [&str; 8] = ["--steps", "300", "--threads", "2", "--set", "train.batch=128", "--set", "check.draws=2000"];

/// Rows of predictions, empty cells as not a number.
fn predictions(text: &str) -> Vec<Vec<f64>> {
    let cells = |line: &str| line.split(',').map(|cell| cell.parse().unwrap_or(f64::NAN)).collect();
    text.lines().skip(1).map(cells).collect()
}

/// Counts of which the rate depends on x, the time they were counted in varying.
fn counts() -> String {
    let row = |row: u32| {
        let (x, z, days) = (noise(row, 577), noise(row, 331), 1.0 + 20.0 * noise(row, 467));
        let mean = days * (0.2 + 1.5 * x).exp();
        let count = (mean + mean.sqrt() * 3.4 * (noise(row, 719) - 0.5)).round().max(0.0);
        format!("{x},{z},{days},{},{count}\n", days.ln())
    };
    std::iter::once("x,z,days,log_days,count\n".to_string()).chain((0..80).map(row)).collect()
}

#[test]
fn counts_are_proportional_to_their_exposure() {
    let scratch = Scratch::new();
    scratch.write("t.csv", counts());
    let question = ["select", "t.csv", "--response", "count", "--likelihood", "poisson", "--out", "run", "--force"];
    let learn = |more: &[&str]| scratch.fine(&[&question[..], &SMALL, more].concat());
    let told = learn(&["--exposure", "days", "--exclude", "log_days"]);
    assert!(told.talk.contains("offset: the logarithm of days is added to every predictor"), "{}", told.talk);
    let summary = scratch.json("run/summary.json");
    let names: Vec<&String> = summary["inclusion"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["x", "z"]);
    // Log rates have the slope they were made with, four standard errors being 0.3.
    assert!((number(&summary["coefficients"]["x"]["corrected"]) - 1.5).abs() < 0.3, "{summary}");
    // Twice the time, twice the counts; no time, no prediction; no column, no answer.
    scratch.write("new.csv", "x,z,days\n0.3,0.4,5\n0.3,0.4,10\n0.3,0.4,0\n0.3,0.4,\n");
    let predicted = scratch.fine(&["predict", "run", "new.csv"]);
    let found = predictions(&predicted.data);
    assert!((found[1][1] / found[0][1] - 2.0).abs() < 1e-9, "{found:?}");
    assert!(found[2][1].is_nan() && found[3][1].is_nan());
    assert!(predicted.talk.contains("days 1 (missing), days 1 (not positive)"), "{}", predicted.talk);
    scratch.write("new.csv", "x,z\n0.3,0.4\n");
    scratch.refused(&["predict", "run", "new.csv"], &["days"]);
    // The same by its logarithm.
    learn(&["--offset", "log_days", "--exclude", "days"]);
    assert_eq!(scratch.json("run/summary.json")["coefficients"]["x"], summary["coefficients"]["x"]);
}

#[test]
fn a_gaussian_offset_is_taken_from_the_response() {
    let scratch = Scratch::new();
    let rows = |line: fn([f64; 4]) -> String| -> String {
        let row = |row: u32| line([noise(row, 577), noise(row, 331), noise(row, 467), noise(row, 719)]);
        (0..30).map(row).collect()
    };
    scratch.write("a.csv", "x,z,o,y\n".to_string() + &rows(|[x, z, o, e]| format!("{x},{z},{o},{}\n", x + o + e)));
    scratch.write("b.csv", "x,z,y\n".to_string() + &rows(|[x, z, o, e]| format!("{x},{z},{}\n", x + o + e - o)));
    let inclusion = |file: &str, more: &[&str]| {
        scratch.fine(&[&["select", file, "--response", "y", "--out", "run", "--force"][..], more].concat());
        let summary = scratch.json("run/summary.json");
        ["x", "z"].map(|name| number(&summary["inclusion"][name]["exact"]))
    };
    let (with, without) = (inclusion("a.csv", &["--offset", "o"]), inclusion("b.csv", &[]));
    assert!(with.iter().zip(&without).all(|(a, b)| (a - b).abs() < 1e-9), "{with:?} {without:?}");
    // A prediction has it again.
    inclusion("a.csv", &["--offset", "o"]);
    scratch.write("new.csv", "x,z,o\n0.3,0.4,0\n0.3,0.4,7\n");
    let found = predictions(&scratch.fine(&["predict", "run", "new.csv"]).data);
    assert!((found[1][1] - found[0][1] - 7.0).abs() < 1e-9, "{found:?}");
    // What makes no sense is refused.
    let refused = |more: &[&str], parts: &[&str]| {
        scratch.refused(&[&["select", "a.csv", "--response", "y", "--out", "new"][..], more].concat(), parts);
    };
    refused(&["--exposure", "o"], &["exposures are of counts", "--offset o"]);
    refused(&["--offset", "y"], &["y is the response"]);
    refused(&["--offset", "oo"], &["there is no column oo, which --offset names"]);
    refused(&["--offset", "o", "--always", "o"], &["cannot be listed in --always"]);
    refused(&["--offset", "o", "--exclude", "o"], &["listed in both --exclude and --offset"]);
    scratch.write("a.csv", "x,z,days,y\n1,2,3,4\n2,1,0,3\n1,5,2,2\n3,4,1,1\n5,2,3,2\n");
    refused(
        &["--likelihood", "poisson", "--exposure", "days"],
        &["line 3, column days: the exposure 0 is not positive"],
    );
}

#[test]
fn overdispersed_counts_are_told_and_have_a_likelihood() {
    let scratch = Scratch::new();
    // Rates that vary by exponential factors, whatever the covariates: the size is 1, roughly.
    let row = |row: u32| {
        let (x, z) = (noise(row, 577), noise(row, 331));
        let rate = (1.0 + 1.5 * x).exp() * -(1.0 - noise(row, 719)).max(1e-3).ln();
        format!("{x},{z},{}\n", rate.round())
    };
    scratch.write("t.csv", (0..150).map(row).fold("x,z,count\n".to_string(), |table, row| table + &row));
    let learn = |likelihood: &str| {
        let question = ["select", "t.csv", "--response", "count", "--likelihood", likelihood];
        scratch.fine(&[&question[..], &["--out", "run", "--force"], &SMALL].concat());
        scratch.json("run/summary.json")
    };
    let hint = "counts are overdispersed: the likelihood negative-binomial allows for it";
    let poisson = learn("poisson")["fit"].clone();
    let advice: Vec<&str> = poisson["advice"].as_array().unwrap().iter().filter_map(|line| line.as_str()).collect();
    assert!(advice.contains(&hint), "{poisson}");
    let summary = learn("negative-binomial");
    let outcome = &summary["fit"]["outcomes"][0];
    // Half of replicates vary more than what was observed if the model fits.
    assert!((number(&outcome["dispersion"]["ratio"]) - 1.0).abs() < 0.25, "{outcome}");
    assert!(number(&outcome["loo"]["elpd"]) > number(&poisson["outcomes"][0]["loo"]["elpd"]) + 20.0, "{outcome}");
    let size = number(&summary["coefficients"]["size"]["corrected"]);
    assert!((0.5..2.0).contains(&size), "{size}");
    scratch.write("new.csv", "x,z\n0.3,0.4\n");
    let found = predictions(&scratch.fine(&["predict", "run", "new.csv"]).data);
    // An exponential rate: new counts reach far beyond their mean, and down to 0.
    let [_, mean, _, _, low, high] = found[0][..] else { panic!("{found:?}") };
    assert!(low == 0.0 && high > 2.0 * mean, "{found:?}");
    // A column may be called size as long as no parameter is.
    scratch.write("t.csv", scratch.read("t.csv").replace("z,count", "size,count"));
    let named = ["select", "t.csv", "--response", "count", "--out", "other", "--likelihood", "negative-binomial"];
    scratch.refused(&named, &["cannot be called size"]);
}

#[test]
fn rows_count_as_much_as_their_weights_say() {
    let scratch = Scratch::new();
    let line = |row: u32| {
        let (x, z) = (noise(row, 577), noise(row, 331));
        let count = ((1.0 + x).exp() + 3.0 * noise(row, 719) - 1.5).round().max(0.0);
        (format!("{x},{z},{},{count}", x + noise(row, 467)), 1 + row % 3)
    };
    let table = |weights: fn(u32) -> f64| {
        let rows = (0..40).map(line).map(|(cells, weight)| format!("{cells},{}\n", weights(weight)));
        rows.fold("x,z,y,count,w\n".to_string(), |table, row| table + &row)
    };
    scratch.write("t.csv", table(f64::from));
    let repeated = (0..40).map(line).flat_map(|(cells, weight)| vec![format!("{cells}\n"); weight as usize]);
    scratch.write("repeated.csv", repeated.fold("x,z,y,count\n".to_string(), |table, row| table + &row));
    let enumerate = |file: &str, response: &str, more: &[&str]| {
        let question = ["enumerate", file, "--response", response, "--include", "x,z"];
        scratch.fine(&[&question[..], more].concat()).data
    };
    // Rows are there so often: in closed form, under every prior, and by quadrature.
    let weights = ["--weights", "w"];
    for prior in ["g", "hyper-g", "zellner-siow", "normal:2"] {
        let prior = ["--prior", prior];
        let found = enumerate("t.csv", "y", &[&prior[..], &weights].concat());
        assert_eq!(found, enumerate("repeated.csv", "y", &prior));
        assert_ne!(found, enumerate("t.csv", "y", &prior));
    }
    let poisson = ["--likelihood", "poisson"];
    let found = enumerate("t.csv", "count", &[&poisson[..], &weights].concat());
    assert_eq!(found, enumerate("repeated.csv", "count", &poisson));
    // Learned, with a page and predictions, for which weights are not needed.
    let question = ["select", "t.csv", "--response", "count", "--include", "x,z", "--out", "run"];
    scratch.fine(&[&question[..], &poisson, &weights, &SMALL].concat());
    scratch.write("new.csv", "x,z\n0.3,0.4\n");
    scratch.fine(&["predict", "run", "new.csv"]);
    // A row of weight 0 is not there.
    scratch.write("t.csv", table(|weight| f64::from(weight) - 1.0));
    let fewer = (0..40).map(line).flat_map(|(cells, weight)| vec![format!("{cells}\n"); weight as usize - 1]);
    scratch.write("repeated.csv", fewer.fold("x,z,y,count\n".to_string(), |table, row| table + &row));
    assert_eq!(enumerate("t.csv", "y", &weights), enumerate("repeated.csv", "y", &[]));
    let refused = ["select", "t.csv", "--response", "y", "--weights", "w", "--out", "new"];
    scratch.write("t.csv", table(|weight| f64::from(weight) - 2.0));
    scratch.refused(&refused, &["line 2, column w: the weight -1 is negative"]);
    scratch.write("t.csv", table(|weight| f64::from(weight) / 100.0));
    scratch.refused(&refused, &["the weights sum to", "multiply weights that are shares"]);
}

#[test]
fn one_of_several_categories_is_explained_and_predicted() {
    let scratch = Scratch::new();
    let line = |row: u32| {
        let (x, z) = (noise(row, 577), noise(row, 331));
        let height = 3.0 * x + 0.7 * noise(row, 719);
        let level = if height < 1.2 {
            "low"
        } else if height < 2.4 {
            "middle"
        } else {
            "top"
        };
        format!("{x},{z},{level},{}\n", if height < 1.8 { "no" } else { "yes" })
    };
    scratch.write("t.csv", (0..90).map(line).fold("x,z,level,two\n".to_string(), |table, row| table + &row));
    let columns = ["--include", "x,z"];
    let question = [&["select", "t.csv", "--response", "level", "--out", "run"][..], &columns].concat();
    scratch.refused(&question, &["text with 3 different values", "hint: --likelihood multinomial"]);
    let multinomial = ["--likelihood", "multinomial"];
    let outcome = scratch.fine(&[&question[..], &multinomial, &TINY].concat());
    let said = "response: level is one of low, middle, top; coefficients compare with low";
    assert!(outcome.talk.contains(said), "{}", outcome.talk);
    let summary = scratch.json("run/summary.json");
    assert!(number(&summary["inclusion"]["x"]["corrected"]) > 0.95, "{}", summary["inclusion"]);
    assert!(number(&summary["coefficients"]["x (top)"]["corrected"]) > 0.0, "{}", summary["coefficients"]);
    assert!(summary["data"]["prior"].as_str().unwrap().contains("for each category but low"));
    // Each category against the others.
    let names: Vec<&str> = summary["fit"]["outcomes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|outcome| outcome["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["level = low", "level = middle", "level = top"]);
    assert!(scratch.read("run/report.html").contains("<h3>level = top</h3>"));
    let predicted = scratch.fine(&["predict", "run", "t.csv"]).data;
    let mut lines = predicted.lines();
    let header = "row,category,probability (low),low (low),high (low),probability (middle),low (middle),high (middle),\
                  probability (top),low (top),high (top)";
    assert_eq!(lines.next(), Some(header));
    let mut right = 0;
    for (row, line) in lines.enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        let probability = |place: usize| cells[2 + 3 * place].parse::<f64>().unwrap();
        assert!(((0..3).map(probability).sum::<f64>() - 1.0).abs() < 1e-9, "{line}");
        right += usize::from(scratch.read("t.csv").lines().nth(row + 1).unwrap().contains(cells[1]));
    }
    assert!(right > 60, "{right}");
    // Two categories are a matter of logistic regression.
    let enumerate = |likelihood: &str| {
        let two = ["enumerate", "t.csv", "--response", "two", "--likelihood", likelihood];
        scratch.fine(&[&two[..], &columns].concat()).data
    };
    assert_eq!(enumerate("multinomial"), enumerate("logistic"));
}

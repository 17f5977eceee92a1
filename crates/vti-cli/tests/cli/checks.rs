//! What a check finds without q, and what becomes of it.

use serde_json::Value;

use crate::support::{Scratch, number};

/// A q that has learned next to nothing.
const POOR: [&str; 19] = [
    "select",
    "builtin:hald",
    "--response",
    "y",
    "--out",
    "run",
    "--method",
    "vti",
    "--set",
    "flow.kind=diagonal",
    "--set",
    "flow.hidden=[4]",
    "--set",
    "flow.preconditioner=unit",
    "--steps",
    "5",
    "--force",
    "--set",
    "check.draws=2000",
];

/// And does not learn what the check finds.
const UNTAUGHT: [&str; 2] = ["--set", "check.lesson.rounds=0"];

#[test]
fn what_particles_find_is_learned() {
    let scratch = Scratch::new();
    scratch.fine(&[&POOR[..], &["--set", "check.lesson.steps=100"]].concat());
    let taught = scratch.json("run/summary.json");
    assert!((1..=3).contains(&taught["lessons"].as_u64().unwrap()), "{}", taught["lessons"]);
    assert_ne!(taught["verdict"]["kind"], "do-not-trust", "{}", taught["verdict"]);
    assert!(taught["verdict"].to_string().contains("has learned"), "{}", taught["verdict"]);
    for (name, part) in taught["inclusion"].as_object().unwrap() {
        assert!((number(&part["q"]) - number(&part["exact"])).abs() < 0.04, "{name}: {part}");
    }
    // What was learned is what is kept: a check finds the same q.
    scratch.fine(&["check", "run"]);
    let checked = scratch.json("run/summary.json");
    assert_eq!(checked["inclusion"]["x1"]["q"], taught["inclusion"]["x1"]["q"]);
    scratch.fine(&[&POOR[..], &UNTAUGHT].concat());
    assert_eq!(scratch.json("run/summary.json")["lessons"], 0);
}

#[test]
fn particles_take_over_where_weights_are_not_enough() {
    let scratch = Scratch::new();
    scratch.fine(&[&POOR[..], &UNTAUGHT].concat());
    let summary = scratch.json("run/summary.json");
    assert_eq!(summary["correction"], "particles");
    assert_eq!(summary["verdict"]["kind"], "corrected", "{}", summary["verdict"]);
    for (name, part) in summary["inclusion"].as_object().unwrap() {
        let off = (number(&part["corrected"]) - number(&part["exact"])).abs();
        assert!(off < 0.03 && off <= 4.0 * number(&part["se"]), "{name}: {part}");
    }
    assert!(scratch.read("run/report.html").contains("know nothing of q"));
    // Without a look beyond q nothing is trusted, unless the exact answer says so; a check makes up for it.
    let robust = ["--likelihood", "student-t:4", "--check", "none"];
    scratch.fine(&[&POOR[..], &UNTAUGHT, &robust].concat());
    let verdict = scratch.json("run/summary.json")["verdict"].clone();
    assert_eq!(verdict["kind"], "do-not-trust", "{verdict}");
    scratch.fine(&["check", "run", "--depth", "full"]);
    assert_eq!(scratch.json("run/summary.json")["correction"], "particles");
}

#[test]
fn chains_never_take_the_place_of_particles() {
    let scratch = Scratch::new();
    let chains = ["--set", "check.chains={ chains = 8, iterations = 20, warmup = 5 }", "--set", "check.draws=400"];
    let robust = ["--likelihood", "student-t:4"];
    // Nothing that is found only once is relied on, but it is still what is known without q.
    scratch.fine(&[&POOR[..], &UNTAUGHT, &chains, &robust, &["--set", "check.opinion.repeats=0"]].concat());
    let summary = scratch.json("run/summary.json");
    assert_eq!(summary["correction"], "particles");
    assert_eq!(summary["verdict"]["kind"], "do-not-trust");
    assert!(summary["chains"].is_null(), "{}", summary["chains"]);
    // A check goes on with a larger population, which says more.
    scratch.fine(&["check", "run"]);
    let checked = scratch.json("run/summary.json");
    let worst = |summary: &Value| {
        let parts = summary["inclusion"].as_object().unwrap().values();
        parts.map(|part| number(&part["se"])).fold(0.0, f64::max)
    };
    assert!(worst(&checked) < worst(&summary), "{} {}", worst(&checked), worst(&summary));
    // Chains that somebody asks for are compared with particles, and leave their numbers as they are.
    let refined: Value = serde_json::from_str(&scratch.fine(&["refine", "run", "--json"]).data).unwrap();
    assert_eq!(refined["correction"], "particles");
    assert!(refined["chains"]["effective"].is_number(), "{}", refined["chains"]);
    assert!(refined["verdict"].to_string().contains("chains that start from q"), "{}", refined["verdict"]);
    // Where there are no particles chains are the answer, and what q has lost may be lost to them as well.
    scratch.fine(&[&POOR[..], &UNTAUGHT, &chains, &robust, &["--check", "none"]].concat());
    let refined: Value = serde_json::from_str(&scratch.fine(&["refine", "run", "--json"]).data).unwrap();
    assert_eq!(refined["correction"], "chains");
    assert_eq!(refined["verdict"]["kind"], "do-not-trust", "{}", refined["verdict"]);
    // The page can be made again from what the chains left.
    scratch.fine(&["report", "run"]);
}

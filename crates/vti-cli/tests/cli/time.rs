//! Time limits, and Ctrl-C in every phase.

#![cfg(unix)]

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Outcome, Scratch, select, steady};

/// A non-linear graph whose preparation takes long enough to be interrupted.
const GRAPH: [&str; 27] = [
    "dag",
    "t.csv",
    "--out",
    "run",
    "--threads",
    "1",
    "--steps",
    "5",
    "--set",
    "train.batch=8",
    "--set",
    "flow.kind=affine",
    "--set",
    "flow.layers=2",
    "--set",
    "flow.blocks=1",
    "--set",
    "flow.hidden=8",
    "--set",
    "check.draws=100",
    "--set",
    "check.anneal.particles=8",
    "--set",
    "check.lesson.rounds=0",
    "--check",
    "none",
    "--hidden=4",
];

fn simulate(scratch: &Scratch) {
    let sizes = ["--nodes", "7", "--rows", "600", "--seed", "3"];
    scratch.fine(&[&["simulate", "dag", "--out", "t.csv", "--truth-out", "truth.csv"][..], &sizes].concat());
}

fn start(scratch: &Scratch, arguments: &[&str]) -> Child {
    scratch.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends Ctrl-C as soon as something has happened; none where the program was faster.
fn interrupt(mut child: Child, arguments: &[&str], happened: impl Fn() -> bool) -> Option<Outcome> {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < Duration::from_secs(120), "nothing happened");
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    Some(Outcome::of(&child.wait_with_output().unwrap(), arguments))
}

#[test]
fn preparation_that_is_interrupted_is_kept_and_goes_on_bit_for_bit() {
    let (whole, scratch) = (Scratch::new(), Scratch::new());
    [&whole, &scratch].into_iter().for_each(simulate);
    whole.fine(&GRAPH);
    let child = start(&scratch, &GRAPH);
    let is_preparing = || scratch.path("run/phase.json").exists();
    if let Some(outcome) = interrupt(child, &GRAPH, is_preparing).filter(|outcome| outcome.code != Some(0)) {
        assert_eq!(outcome.code, Some(130), "{}", outcome.talk);
        assert!(outcome.talk.contains("--resume"), "{}", outcome.talk);
        assert!(scratch.path("run/preparation.safetensors").exists());
        assert!(!scratch.path("run/phase.json").exists() && !scratch.path("run/summary.json").exists());
    }
    scratch.fine(&[&GRAPH[..], &["--resume"]].concat());
    assert_eq!(steady(scratch.json("run/summary.json")), steady(whole.json("run/summary.json")));
    let posterior = |of: &Scratch| std::fs::read(of.path("run/models.csv")).unwrap();
    assert!(posterior(&scratch) == posterior(&whole));
}

#[test]
fn a_check_that_is_interrupted_says_what_it_left_out_and_goes_on() {
    let scratch = Scratch::new();
    let long = "select builtin:prostate --response lpsa --method vti --likelihood robust --out run --threads 1 --steps 3 \
                --set train.batch=16 --set check.draws=200 --set check.refine=never --set check.opinion.smc.particles=4096";
    let long: Vec<&str> = long.split_whitespace().collect();
    let child = start(&scratch, &long);
    let outcome = interrupt(child, &long, || scratch.path("run/phase.json").exists()).unwrap();
    assert_eq!(outcome.code, Some(130), "{}", outcome.talk);
    assert!(outcome.talk.contains("vti check run"), "{}", outcome.talk);
    let summary = scratch.json("run/summary.json");
    assert_ne!(summary["verdict"]["kind"], "trust", "{}", summary["verdict"]);
    assert!(summary["left_out"].to_string().contains("was not looked at"), "{}", summary["left_out"]);
}

#[test]
fn a_time_limit_is_for_everything_and_says_what_it_left_out() {
    let scratch = Scratch::new();
    let hasty = "select builtin:prostate --response lpsa --method vti --likelihood robust --out run --threads 1 --time-limit 2s \
                 --set check.refine=never --set check.opinion.smc.particles=1024";
    let outcome = scratch.fine(&hasty.split_whitespace().collect::<Vec<&str>>());
    let summary = scratch.json("run/summary.json");
    assert!(summary["left_out"].to_string().contains("the look beyond q was cut at"), "{}", summary["left_out"]);
    let verdict = summary["verdict"]["text"].as_str().unwrap();
    assert!(verdict.contains("left out: the look beyond q was cut at"), "{verdict}");
    assert!(outcome.data.contains("by the time limit"), "{}", outcome.data);
    // More time later makes up for it.
    scratch.fine(&["check", "run", "--depth", "quick", "--draws", "200"]);
    assert_eq!(scratch.json("run/summary.json").get("left_out"), None);
}

#[test]
fn an_exact_answer_that_takes_longer_than_its_limit_is_given_up() {
    let scratch = Scratch::new();
    let made = "simulate correlated --rows 60 --covariates 19 --out t.csv";
    scratch.fine(&made.split_whitespace().collect::<Vec<&str>>());
    let exact = "select t.csv --response y --prior normal:1 --out run --threads 1 --time-limit 0.2s";
    let outcome = scratch.run(&exact.split_whitespace().collect::<Vec<&str>>());
    assert_eq!(outcome.code, Some(1), "{}", outcome.talk);
    for part in ["was not found within the time limit", "longer --time-limit, or --method vti"] {
        assert!(outcome.talk.contains(part), "{part}: {}", outcome.talk);
    }
    assert!(!outcome.talk.contains("no effect"), "{}", outcome.talk);
    assert!(!scratch.path("run/summary.json").exists());
}

#[test]
fn chains_over_models_have_their_climb_cut() {
    let scratch = Scratch::new();
    let made = "simulate correlated --rows 60 --covariates 300 --out t.csv";
    scratch.fine(&made.split_whitespace().collect::<Vec<&str>>());
    let search = "select t.csv --response y --method search --prior normal:1 --out run --threads 1";
    let search: Vec<&str> = search.split_whitespace().collect();
    let child = start(&scratch, &search);
    if let Some(outcome) = interrupt(child, &search, || scratch.path("run/phase.json").exists()) {
        assert!(matches!(outcome.code, Some(0 | 130)), "{}", outcome.talk);
    }
    assert!(!scratch.path("run/phase.json").exists());
}

#[test]
fn chains_that_are_interrupted_leave_whole_files_and_others_read_them_meanwhile() {
    let scratch = Scratch::new();
    scratch.fine(&select(
        "builtin:prostate",
        "lpsa",
        &["--out", "run", "--likelihood", "student-t:4", "--check", "none"],
    ));
    let endless = ["refine", "run", "--iterations", "500000"];
    let mut child = start(&scratch, &endless);
    let in_chains = || {
        let phase = std::fs::read_to_string(scratch.path("run/phase.json")).unwrap_or_default();
        phase.contains("chains")
    };
    let begun = Instant::now();
    while !in_chains() {
        assert!(begun.elapsed() < Duration::from_secs(120) && child.try_wait().unwrap().is_none(), "no chains");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Whoever only reads is served beside the live run; whoever would write is not.
    let before = scratch.read("run/summary.json");
    for _ in 0..3 {
        scratch.fine(&["report", "run"]);
        assert!(scratch.read("run/report.html").trim_end().ends_with("</html>"));
    }
    scratch.fine(&["sample", "run", "-n", "10", "--out", "draws.csv"]);
    scratch.refused(&["check", "run"], &["is at work in it"]);
    assert!(child.try_wait().unwrap().is_none());
    let (id, told) = (child.id().to_string(), Instant::now());
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let outcome = Outcome::of(&child.wait_with_output().unwrap(), &endless);
    // A second is promised; other tests keep the machine busy.
    assert!(told.elapsed() < Duration::from_secs(10), "{:?}", told.elapsed());
    assert_eq!(outcome.code, Some(130), "{}", outcome.talk);
    assert!(outcome.talk.contains("vti check run"), "{}", outcome.talk);
    // Either the result before or one of shorter chains, whole, and nobody at work.
    let after = scratch.json("run/summary.json");
    assert!(after["verdict"]["kind"].is_string() && !before.is_empty());
    let names = std::fs::read_dir(scratch.path("run")).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|name| name.contains("partial") || name == "phase.json"), "{names:?}");
    scratch.fine(&["refine", "run", "--iterations", "40", "--chains", "4"]);
}

//! How many layers, where, and of what? From a table to a report, also with programs that fail in every way.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{SMALL, Scratch, number};

/// `vti layers` of a file, small.
fn small<'a>(file: &'a str, forward: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let particles = ["--set", "train.particles={ particles = 64, sweeps = 1, jumps = 4, steps = 2, kept = 2 }"];
    [&["layers", file, "--forward", forward][..], &SMALL, &particles, more].concat()
}

#[test]
fn a_simulated_sounding_becomes_a_report() {
    let scratch = Scratch::new();
    let made = scratch.fine(&["simulate", "layers", "--rows", "12", "--layers", "2", "--out", "mt.csv"]);
    assert!(made.talk.contains("interfaces: 3162 m") && made.talk.contains("layers: 100 Ωm, 10 Ωm"), "{}", made.talk);
    let outcome = scratch.fine(&small("mt.csv", "mt", &["--max-layers", "3", "--out", "run"]));
    assert!(outcome.talk.contains("12 periods of magnetotelluric data, at most 3 layers"), "{}", outcome.talk);
    let summary = scratch.json("run/summary.json");
    assert_eq!((&summary["kind"], &summary["counted"]["plural"]), (&"count".into(), &"interfaces".into()));
    assert_eq!(summary["components"].as_object().unwrap().len(), 3);
    let prior = summary["data"]["prior"].as_str().unwrap();
    assert!(prior.contains("interfaces uniform on 0 to 2; depths log-uniform:"), "{prior}");
    let curves: Vec<&str> = summary["curves"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    let expected = ["resistivity over depth", "predicted apparent resistivity (Ωm)", "predicted phase (°)"];
    assert_eq!(curves, expected);
    assert_eq!((&summary["curves"][0]["downwards"], &summary["curves"][0]["x_scale"]), (&true.into(), &"log".into()));
    // The top layer is known well, whatever was learned in so few steps.
    let top = number(&summary["curves"][0]["median"][0]);
    assert!((60.0..160.0).contains(&top), "{top}");
    for file in ["posterior.parquet", "curves.csv", "positions.csv", "report.html", "config.toml"] {
        assert!(scratch.path("run").join(file).metadata().unwrap().len() > 0, "{file}");
    }
    let page = scratch.read("run/report.html");
    for part in ["How many interfaces are there?", "Resistivity over depth", "Where interfaces are"] {
        assert!(page.contains(part), "{part}");
    }
    // Priors that followed from the data are settings of the run, and it can be taken up.
    let config = scratch.read("run/config.toml");
    assert!(config.contains("log-uniform") && config.contains("errors = \"known\""), "{config}");
    scratch.fine(&small("mt.csv", "mt", &["--max-layers", "3", "--out", "run", "--resume"]));
    scratch.refused(&["predict", "run", "mt.csv"], &["no response to predict", "curves.csv"]);
    scratch.refused(&["enumerate", "run/config.toml"], &["not in closed form"]);
    let chains = ["rjmcmc", "run/config.toml", "--chains", "2", "--sweeps", "200", "--burn-in", "100", "--thin", "10"];
    let chains: Value = serde_json::from_str(&scratch.fine(&[&chains[..], &["--json"]].concat()).data).unwrap();
    assert!(chains["models"][0]["label"].as_str().unwrap().contains("interface"), "{chains}");
}

#[test]
fn the_example_configuration_runs_and_frequencies_are_as_good_as_periods() {
    let scratch = Scratch::new();
    scratch.write("data.csv", "Freq,rho,phase\n100,90,44\n10,120,47\n1,80,46\n0.1,95,43\n");
    scratch.write("run.toml", scratch.fine(&["init", "layers"]).data);
    let outcome = scratch.fine(&[&["fit", "run.toml"][..], &SMALL, &["--set", "problem.max_layers=2"]].concat());
    assert!(outcome.talk.contains("no column has errors: they are taken as 5 %"), "{}", outcome.talk);
    let config = scratch.read("run.vti/config.toml");
    assert!(config.contains("errors = \"scaled\"") && config.contains("frequency = \"Freq\""), "{config}");
    assert!(!scratch.json("run.vti/summary.json")["coefficients"]["error_factor"].is_null());
}

#[test]
fn bad_soundings_are_refused_with_their_place() {
    let scratch = Scratch::new();
    let head = "period,rho,rho_err,phase,phase_err\n1,100,5,45,1\n";
    for (name, row) in [
        ("period", "-2,90,5,44,1"),
        ("rho", "2,0,5,44,1"),
        ("phase", "2,90,5,-135,1"),
        ("error", "2,90,0,44,1"),
        ("missing", "2,,5,44,1"),
        ("text", "2,a,5,44,1"),
    ] {
        scratch.write(&format!("{name}.csv"), format!("{head}{row}\n"));
    }
    scratch.write("other.csv", "a,b\n1,2\n2,3\n");
    let asked = |file: &'static str, more: &[&'static str]| [&["layers", file, "--forward", "mt"], more].concat();
    for (arguments, part) in [
        (asked("period.csv", &[]), "line 3: the period is -2"),
        (asked("rho.csv", &[]), "the apparent resistivity is 0"),
        (asked("phase.csv", &[]), "add 180"),
        (asked("error.csv", &[]), "the error of the apparent resistivity is 0"),
        (asked("missing.csv", &[]), "missing"),
        (asked("text.csv", &[]), "line 3"),
        (asked("other.csv", &[]), "--period or --frequency must say which column"),
        (asked("other.csv", &["--period", "z"]), "there is no column z"),
        (asked("period.csv", &["--max-layers", "0"]), "period is -2"),
        (asked("missing.csv", &["--missing", "drop", "--max-layers", "0"]), "max_layers is 0"),
        (asked("missing.csv", &["--missing", "drop", "--depth-prior", "normal:0,1"]), "one of positive numbers"),
        (asked("missing.csv", &["--missing", "drop", "--method", "exact"]), "not in closed form"),
    ] {
        scratch.refused(&arguments, &[part]);
    }
}

/// A program's data: the property of the first layer and that of the last, three times each.
#[cfg(unix)]
fn with_data() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("d.csv", "x,value,error\n1,3.1,0.2\n2,2.9,0.2\n3,3.0,0.2\n4,7.2,0.2\n5,6.9,0.2\n6,7.0,0.2\n");
    scratch.write(
        "forward.sh",
        "while read line; do\n  set -- $line\n  n=$1\n  shift $n\n  a=$1\n  shift $(($n - 1))\n  echo $a $a $a $1 $1 $1\ndone\n",
    );
    scratch
}

#[cfg(unix)]
const PRIORS: [&str; 6] = ["--depth-prior", "log-uniform:1,100", "--value-prior", "uniform:0,10", "--max-layers", "2"];

#[cfg(unix)]
#[test]
fn any_program_predicts_data() {
    let scratch = with_data();
    let more = [&PRIORS[..], &["--x", "x", "--property", "speed", "--out", "run"]].concat();
    scratch.fine(&small("d.csv", "sh forward.sh", &more));
    let summary = scratch.json("run/summary.json");
    // A half space cannot be 3 and 7 at once.
    assert!(number(&summary["components"]["1"]["corrected"]) > 0.99, "{}", summary["components"]);
    let names: Vec<&str> = summary["curves"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["speed over depth", "predicted value"]);
    assert!((number(&summary["curves"][1]["mean"][5]) - 7.0).abs() < 0.5, "{}", summary["curves"][1]);
}

/// Nobody waits for a step that does not end: the program would be given up after a minute only.
#[cfg(unix)]
#[test]
fn a_run_is_stopped_in_the_midst_of_a_step_and_goes_on() {
    let scratch = with_data();
    let slow = [
        "while read line; do test -e on && ! test -e hangs && touch hangs && sleep 50",
        "set -- $line; n=$1; shift $n; a=$1; shift $(($n - 1)); echo $a $a $a $1 $1 $1; done",
    ];
    scratch.write("slow.sh", slow.join("\n"));
    let more = [&PRIORS[..], &["--out", "run", "--set", "problem.processes=1"]].concat();
    let arguments = small("d.csv", "sh slow.sh", &more);
    let child = scratch.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let wait = |name: &str| {
        while !scratch.path(name).exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait("run/phase.json");
    scratch.write("on", "");
    wait("hangs");
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    let talk = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{talk}");
    assert!(talk.contains("--resume goes on") && !talk.contains("no answer"), "{talk}");
    scratch.fine(&[&arguments[..], &["--resume"]].concat());
}

#[cfg(unix)]
#[test]
fn programs_that_fail_are_told_of_and_left_nowhere() {
    let scratch = with_data();
    let run = |forward: &str, more: &[&str]| scratch.run(&small("d.csv", forward, &[&PRIORS[..], more].concat()));
    for (forward, parts) in [
        (
            "sh -c 'echo broken pipe organ >&2; exit 3'",
            &["ended (exit status: 3) without an answer", "broken pipe organ"][..],
        ),
        ("sh -c 'while read a; do echo hello; done'", &["printed `hello`, which is not numbers"]),
        ("sh -c 'while read a; do echo 1 2; done'", &["printed 2 numbers for one earth, but there are 6 data"]),
        ("./no-such-program", &["could not be started"]),
        ("sh 'forward.sh", &["is not closed"]),
    ] {
        let outcome = run(forward, &[]);
        assert_eq!(outcome.code, Some(2), "{forward}: {}", outcome.talk);
        parts.iter().for_each(|part| assert!(outcome.talk.contains(part), "{forward}: {part}\n{}", outcome.talk));
    }
    // One that hangs is given up, and so is what it started.
    let since = Instant::now();
    let hangs = "sh -c 'sleep 97 & echo $! > sleeper; wait'";
    let outcome = run(hangs, &["--timeout", "0.5"]);
    assert!(outcome.talk.contains("gave no answer within 0.5 s"), "{}", outcome.talk);
    assert!(since.elapsed() < Duration::from_secs(30));
    let sleeper = scratch.read("sleeper");
    let is_there = || {
        let looked = std::process::Command::new("kill").args(["-0", sleeper.trim()]).output();
        looked.is_ok_and(|looked| looked.status.success())
    };
    let since = Instant::now();
    while is_there() && since.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!is_there());
    // One that dies half-way, when it was found to work at first, ends the run with what it said.
    // Some hundred answers are enough for what a run begins with.
    let half = [
        "while read earth; do answers=$(cat answers 2>/dev/null || echo 0)",
        "test $answers -lt 200 || { echo 'out of memory' >&2; exit 9; }",
        "echo $((answers + 1)) > answers; echo 1 1 1 1 1 1; done",
    ];
    scratch.write("half.sh", half.join("\n"));
    let outcome = run("sh half.sh", &[]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.talk);
    assert!(
        outcome.talk.contains("ended (exit status: 9)") && outcome.talk.contains("out of memory"),
        "{}",
        outcome.talk
    );
    // Without a prior of depths nobody knows where to look.
    scratch.refused(
        &["layers", "d.csv", "--forward", "sh forward.sh"],
        &["prior of the depth is not given", "--depth-prior"],
    );
}

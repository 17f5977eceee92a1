//! Interruptions, full disks, damaged files.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::support::{Outcome, Scratch, select, steady};

/// A run long enough to be interrupted.
const LONG: [&str; 20] = [
    "select",
    "builtin:prostate",
    "--response",
    "lpsa",
    "--method",
    "vti",
    "--out",
    "run",
    "--threads",
    "1",
    "--steps",
    "150",
    "--set",
    "train.batch=64",
    "--set",
    "output.checkpoint_every=0.05",
    "--set",
    "check.draws=400",
    // So short a run may not be trusted: chains take over then, few of them.
    "--set",
    "check.chains={ chains = 8, iterations = 20, warmup = 5 }",
];

fn wait_for(what: &str, happened: impl Fn() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The summary of a run that nobody interrupts.
fn undisturbed() -> &'static serde_json::Value {
    static SUMMARY: OnceLock<serde_json::Value> = OnceLock::new();
    SUMMARY.get_or_init(|| {
        let scratch = Scratch::new();
        scratch.fine(&LONG);
        steady(scratch.json("run/summary.json"))
    })
}

/// Starts a run, waits for a checkpoint in the middle of it, and sends a signal.
#[cfg(unix)]
fn interrupt(scratch: &Scratch, signal: &str) -> Outcome {
    use std::process::Stdio;
    let mut command = scratch.command(&LONG);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("a checkpoint", || scratch.path("run/checkpoint.safetensors").exists());
    let killed = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    Outcome::of(&child.wait_with_output().unwrap(), &LONG)
}

#[cfg(unix)]
#[test]
fn a_killed_run_goes_on_as_if_nothing_had_happened() {
    let scratch = Scratch::new();
    let outcome = interrupt(&scratch, "-KILL");
    assert_eq!(outcome.code, None);
    assert!(!scratch.path("run/summary.json").exists());
    // Not without being asked to.
    scratch.refused(&LONG, &["there is an unfinished run in it", "--resume"]);
    scratch.refused(&[&LONG[..], &["--resume", "--seed", "7"]].concat(), &["another seed"]);
    let resumed = scratch.fine(&[&LONG[..], &["--resume"]].concat());
    assert!(resumed.talk.contains("going on from step"), "{}", resumed.talk);
    assert_eq!(steady(scratch.json("run/summary.json")), *undisturbed());
    // Every step is told once.
    let steps: Vec<u64> = scratch
        .read("run/progress.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["step"].as_u64().unwrap())
        .collect();
    assert!(steps.windows(2).all(|pair| pair[0] < pair[1]) && steps.last() == Some(&150), "{steps:?}");
    scratch.refused(&LONG, &["there is a finished run in it", "--force"]);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_is_saved_and_says_how_to_go_on() {
    for signal in ["-INT", "-TERM"] {
        let scratch = Scratch::new();
        let outcome = interrupt(&scratch, signal);
        assert_eq!(outcome.code, Some(130), "{}", outcome.talk);
        assert!(outcome.talk.contains("--resume"), "{}", outcome.talk);
        // What there is can be looked at.
        scratch.fine(&["check", "run"]);
        std::fs::remove_file(scratch.path("run/posterior.parquet")).unwrap();
        scratch.fine(&[&LONG[..], &["--resume"]].concat());
        assert_eq!(steady(scratch.json("run/summary.json")), *undisturbed());
    }
}

#[test]
fn damaged_checkpoints_and_changed_data_are_found_out() {
    let scratch = Scratch::new();
    let small = "--response y --out run --method vti --steps 10 --set train.batch=32 --set check.draws=200";
    let small: Vec<&str> = small.split(' ').collect();
    let arguments = [&["select", "hald.csv"][..], &small].concat();
    let hald = "x1,x2,y\n7,26,78.5\n1,29,74.3\n11,56,104.3\n11,31,87.6\n7,52,95.9\n11,55,109.2\n3,71,102.7\n";
    scratch.write("hald.csv", hald);
    scratch.fine(&arguments);
    let resume = [&arguments[..], &["--resume"]].concat();
    let failed = |arguments: &[&str], code: i32, part: &str| {
        let outcome = scratch.run(arguments);
        assert_eq!(outcome.code, Some(code), "{}", outcome.talk);
        assert!(outcome.talk.contains(part), "{part}: {}", outcome.talk);
    };
    scratch.write("hald.csv", hald.replace("78.5", "77.5"));
    failed(&resume, 2, "the data have changed since the run began");
    failed(&["check", "run"], 2, "the data have changed since the run began");
    scratch.write("hald.csv", hald);
    failed(&[&resume[..], &["--prior", "g:5"]].concat(), 2, "another problem");
    // Another problem under the same settings.
    let checkpoint = scratch.path("run/checkpoint.safetensors");
    let other: Vec<&str> = small.iter().map(|&argument| if argument == "run" { "other" } else { argument }).collect();
    scratch.fine(&[&["select", "builtin:hald"][..], &other].concat());
    std::fs::copy(scratch.path("other/checkpoint.safetensors"), &checkpoint).unwrap();
    failed(&resume, 2, "saved for another problem");
    std::fs::write(&checkpoint, "garbage").unwrap();
    failed(&resume, 1, "checkpoint.safetensors: ");
    let config = scratch.read("run/config.toml").replace(concat!("\"", env!("CARGO_PKG_VERSION"), "\""), "\"0.0.7\"");
    scratch.write("run/config.toml", config);
    failed(&["check", "run"], 2, "made by version 0.0.7");
}

#[test]
fn wrong_settings_leave_the_run_that_is_there_alone() {
    let scratch = Scratch::new();
    let run = select("builtin:hald", "y", &["--out", "run", "--set", "flow.kind=auto"]);
    scratch.fine(&run);
    let with = |more: &[&'static str]| [&run[..], more].concat();
    for (wrong, what) in [
        ("train.batch=0", "batch"),
        ("check.draws=3", "check.draws"),
        ("check.chains.thin=0", "check.chains.thin"),
        ("output.checkpoint_every=-1.0", "every"),
    ] {
        scratch.refused(&with(&["--force", "--set", wrong]), &[what]);
        assert!(scratch.path("run/summary.json").exists() && scratch.path("run/config.toml").exists(), "{wrong}");
    }
    for (more, what) in [
        (&["--set", "train.batch=65"][..], "another value of train.batch"),
        (&["--set", "flow.preconditioner=unit"], "another value of flow.preconditioner"),
        (&["--replicates", "2"], "another number of runs"),
        (&["--device", "cuda"], "another device"),
    ] {
        scratch.refused(&with(&[&["--resume"][..], more].concat()), &[what]);
    }
    // What is as it was, or may change, does no harm.
    scratch.fine(&with(&["--resume", "--set", "train.batch=64", "--set", "train.threads=2", "--device", "cpu"]));
}

#[cfg(target_os = "linux")]
#[test]
fn chains_that_are_stopped_while_burning_in_say_so() {
    // A busy machine may need longer than the first waits until the program listens to signals.
    let said = [2, 6, 20].into_iter().any(|seconds| {
        let line = format!(
            "timeout --preserve-status -s INT {seconds} {} rjmcmc builtin:hald --response y --burn-in 1000000000",
            env!("CARGO_BIN_EXE_vti")
        );
        let output = std::process::Command::new("bash").args(["-c", &line]).output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        String::from_utf8(output.stderr).unwrap().contains("interrupted before the chains had found anything")
    });
    assert!(said);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_leaves_no_rubbish() {
    let scratch = Scratch::new();
    let program = env!("CARGO_BIN_EXE_vti");
    let small = "--steps 5 --set train.batch=32 --set check.draws=200 --quiet";
    // Files of at most 8 blocks of 512 bytes or 1,024, depending on the shell.
    let line = format!("ulimit -f 8; trap '' XFSZ; {program} select builtin:hald --response y --out run {small}");
    let output = std::process::Command::new("bash").args(["-c", &line]).current_dir(scratch.path("")).output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{talk}");
    assert!(talk.contains("safetensors") || talk.contains("could not write"), "{talk}");
    let left = std::fs::read_dir(scratch.path("run"))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".partial"));
    assert_eq!(left.count(), 0);
}

#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let scratch = Scratch::new();
    scratch.write("file", "");
    let run = |out: &str| scratch.run(&["demo", "--steps", "3", "--out", out]);
    let outcome = run("file");
    assert!(outcome.code == Some(2) && outcome.talk.contains("there is a file of this name"), "{}", outcome.talk);
    let outcome = run("file/below");
    assert!(outcome.code == Some(1) && outcome.talk.contains("could not write file/below"), "{}", outcome.talk);
}

#[test]
fn settings_of_earlier_versions_are_read_by_their_old_names() {
    let scratch = Scratch::new();
    scratch.fine(&select("builtin:prostate", "lpsa", &["--out", "run"]));
    let before = steady(scratch.json("run/summary.json"));
    let mut config = scratch.read("run/config.toml");
    // Longest first: one name is the end of another.
    for (new, old) in [("preconditioner = ", "frame = "), ("max_warm_up = ", "most = "), ("warm_up = ", "hold = ")] {
        assert!(config.contains(new), "{new} in {config}");
        config = config.replace(new, old);
    }
    std::fs::write(scratch.path("run/config.toml"), config).unwrap();
    // The same check once more, rather than a longer one.
    std::fs::remove_file(scratch.path("run/particles.safetensors")).unwrap();
    scratch.fine(&["check", "run"]);
    assert_eq!(steady(scratch.json("run/summary.json")), before);
    scratch.fine(&["report", "run"]);
}

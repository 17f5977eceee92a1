//! Nothing of the user's is lost: what a run may write and remove, who may write, and which result stays.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Outcome, Scratch, select};

/// A run that answers in closed form, at once.
fn quick(out: &str) -> Vec<&str> {
    vec!["select", "builtin:hald", "--response", "y", "--threads", "1", "--out", out]
}

/// The names of what a directory holds.
fn names(scratch: &Scratch, dir: &str) -> Vec<String> {
    let entries = std::fs::read_dir(scratch.path(dir)).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The files that a run has recorded.
fn recorded(scratch: &Scratch, dir: &str) -> Vec<String> {
    let marker = scratch.json(&format!("{dir}/vti-run.json"));
    marker["files"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_string()).collect()
}

#[test]
fn a_directory_that_is_not_of_a_run_is_left_alone() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("mine")).unwrap();
    for file in ["models.csv", "report.html", "posterior.parquet", "vti-run.lock.txt"] {
        std::fs::create_dir_all(scratch.path("mine")).unwrap();
        scratch.write(&format!("mine/{file}"), "mine");
        for arguments in [quick("mine"), select("builtin:hald", "y", &["--out", "mine"]), vec!["demo", "--out", "mine"]]
        {
            scratch.refused(&arguments, &["mine: not a run directory, and not empty", file, "--force"]);
        }
        assert_eq!(names(&scratch, "mine"), [file]);
        assert_eq!(scratch.read(&format!("mine/{file}")), "mine");
        // Whatever is said, files that no run has recorded stay as they are.
        if file != "vti-run.lock.txt" {
            scratch.refused(&[&quick("mine")[..], &["--force"]].concat(), &["not written by a run", file, "move"]);
            assert_eq!(
                (names(&scratch, "mine"), scratch.read(&format!("mine/{file}"))),
                (vec![file.into()], "mine".into())
            );
        }
        std::fs::remove_file(scratch.path(&format!("mine/{file}"))).unwrap();
    }
    // A configuration of the user's does not make a run of it.
    let config = scratch.fine(&["init", "select"]).data;
    scratch.write("mine/config.toml", &config);
    scratch.refused(&quick("mine"), &["not a run directory, and not empty"]);
    scratch.refused(&["check", "mine"], &["not a run directory"]);
    assert_eq!(scratch.read("mine/config.toml"), config);
}

#[test]
fn force_removes_what_a_run_recorded_and_nothing_else() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("run")).unwrap();
    scratch.write("run/notes.txt", "mine");
    scratch.refused(&quick("run"), &["notes.txt"]);
    scratch.fine(&[&quick("run")[..], &["--force"]].concat());
    let files = recorded(&scratch, "run");
    for name in names(&scratch, "run") {
        assert!(files.contains(&name) || name == "notes.txt" || name == "vti-run.json", "{name} in {files:?}");
    }
    // Names that a run of another kind would have written.
    scratch.write("run/checkpoint-plan.txt", "mine");
    std::fs::create_dir(scratch.path("run/figures")).unwrap();
    scratch.refused(&quick("run"), &["there is a finished run in it", "--force"]);
    let learned = select("builtin:hald", "y", &["--out", "run", "--force"]);
    scratch.fine(&learned);
    assert!(recorded(&scratch, "run").contains(&"checkpoint.safetensors".into()));
    scratch.fine(&[&quick("run")[..], &["--force"]].concat());
    assert!(!scratch.path("run/checkpoint.safetensors").exists() && !scratch.path("run/progress.jsonl").exists());
    // A file that appeared since, where the run would write.
    scratch.write("run/checkpoint.safetensors", "mine");
    scratch.refused(&learned, &["not written by a run", "checkpoint.safetensors"]);
    assert!(scratch.path("run/summary.json").exists());
    for file in ["notes.txt", "checkpoint-plan.txt", "checkpoint.safetensors"] {
        assert_eq!(scratch.read(&format!("run/{file}")), "mine");
    }
    assert!(scratch.path("run/figures").is_dir());
    // A list that leads out of the directory is not followed.
    scratch.write("precious", "mine");
    scratch.write("run/vti-run.json", r#"{"vti_run": 1, "version": "0", "files": ["../precious"]}"#);
    scratch.refused(&[&quick("run")[..], &["--force"]].concat(), &["../precious"]);
    assert_eq!(scratch.read("precious"), "mine");
    scratch.write("run/vti-run.json", r#"{"vti_run": 7, "version": "9.9"}"#);
    scratch.refused(&[&quick("run")[..], &["--force"]].concat(), &["made by version 9.9 in another form"]);
}

#[cfg(unix)]
#[test]
fn some_places_are_never_taken() {
    let scratch = Scratch::new();
    for dir in ["home", "empty", "work/below"] {
        std::fs::create_dir_all(scratch.path(dir)).unwrap();
    }
    scratch.write("file", "mine");
    std::os::unix::fs::symlink("empty", scratch.path("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", scratch.path("dangling")).unwrap();
    let refused = |dir: &str, out: &str, reason: &str| {
        for more in [&[][..], &["--force"]] {
            let arguments = [&quick(out)[..], more].concat();
            let mut command = scratch.command(&arguments);
            command.current_dir(scratch.path(dir)).env("HOME", scratch.path("home"));
            let outcome = Outcome::of(&command.output().unwrap(), &arguments);
            assert_eq!(outcome.code, Some(2), "{out}: {}", outcome.talk);
            assert!(outcome.talk.contains(reason) && outcome.talk.contains("hint: "), "{out}: {}", outcome.talk);
        }
    };
    refused("", "/", "the root of the file system");
    refused("", "home", "a home directory");
    refused("home", ".", "a home directory");
    refused("empty", "..", "the home directory is in it");
    refused("", "file", "there is a file of this name");
    refused("", "link", "a symbolic link to empty");
    refused("", "link/", "a symbolic link to empty");
    refused("", "dangling", "a symbolic link to nowhere");
    refused("work/below", scratch.path("work").to_str().unwrap(), "the current directory is in it");
    assert_eq!(names(&scratch, ""), ["dangling", "empty", "file", "home", "link", "work"]);
    assert!(names(&scratch, "empty").is_empty() && names(&scratch, "home").is_empty());
    // An empty directory is as good as none.
    scratch.fine(&quick("empty"));
}

#[test]
fn runs_of_versions_without_a_list_are_read_and_replaced() {
    let scratch = Scratch::new();
    scratch.fine(&select("builtin:hald", "y", &["--out", "run"]));
    std::fs::remove_file(scratch.path("run/vti-run.json")).unwrap();
    scratch.write("run/notes.txt", "mine");
    scratch.fine(&["sample", "run", "-n", "3"]);
    scratch.refused(&quick("run"), &["there is a finished run in it"]);
    scratch.fine(&["report", "run"]);
    std::fs::remove_file(scratch.path("run/vti-run.json")).unwrap();
    scratch.fine(&["check", "run"]);
    assert!(!recorded(&scratch, "run").contains(&"notes.txt".into()));
    std::fs::remove_file(scratch.path("run/vti-run.json")).unwrap();
    scratch.fine(&[&quick("run")[..], &["--force"]].concat());
    assert!(!scratch.path("run/checkpoint.safetensors").exists());
    assert_eq!(scratch.read("run/notes.txt"), "mine");
}

fn wait_for(what: &str, happened: impl Fn() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < Duration::from_secs(100), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A run that goes on until it is stopped.
fn endless(scratch: &Scratch) -> (Child, Vec<&'static str>) {
    let mut arguments = select("builtin:hald", "y", &["--out", "run", "--set", "output.checkpoint_every=0.05"]);
    let steps = arguments.iter().position(|argument| *argument == "--steps").unwrap();
    arguments[steps + 1] = "100000000";
    let child = scratch.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("a checkpoint", || scratch.path("run/checkpoint.safetensors").exists());
    (child, arguments)
}

#[cfg(unix)]
fn kill(child: Child, signal: &str) -> Outcome {
    assert!(std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    Outcome::of(&child.wait_with_output().unwrap(), &[])
}

#[cfg(target_os = "linux")]
#[test]
fn one_process_at_a_time_writes_into_a_run() {
    let scratch = Scratch::new();
    let (child, arguments) = endless(&scratch);
    let who = format!("process {} on ", child.id());
    for more in [&[][..], &["--resume"], &["--force"]] {
        scratch.refused(&[&arguments[..], more].concat(), &["run: ", &who, "is at work in it", "vti watch"]);
    }
    scratch.refused(&quick("run"), &[&who]);
    scratch.refused(&["check", "run"], &[&who]);
    scratch.refused(&["refine", "run"], &[&who]);
    // Who reads is welcome.
    scratch.fine(&["watch", "run", "--once"]);
    assert_eq!(scratch.fine(&["sample", "run", "-n", "5"]).data.lines().count(), 6);
    // A process that is killed leaves its lock behind, which nobody minds.
    assert_eq!(kill(child, "-KILL").code, None);
    let lock = scratch.json("run/vti-run.lock");
    assert!(lock["host"].is_string() && lock["process_start"].is_u64(), "{lock}");
    scratch.fine(&["check", "run"]);
    assert!(!scratch.path("run/vti-run.lock").exists());
    // Nobody can see from here what another machine does; a machine that was started again has forgotten everything.
    let with = |key: &str, value: &str| {
        let mut lock = lock.clone();
        lock["boot"] = Value::from("of another start");
        lock[key] = Value::from(value);
        lock.to_string()
    };
    scratch.write("run/vti-run.lock", with("host", "far-away"));
    scratch.refused(&["check", "run"], &["on far-away", "cannot be seen from here", "remove run/vti-run.lock"]);
    scratch.fine(&["report", "run"]);
    scratch.write("run/vti-run.lock", with("boot", "of yesterday"));
    scratch.fine(&["check", "run"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_that_goes_away_does_not_take_the_run_with_it() {
    let scratch = Scratch::new();
    let (child, _) = endless(&scratch);
    let outcome = kill(child, if hears_hangup() { "-HUP" } else { "-TERM" });
    assert_eq!(outcome.code, Some(130), "{}", outcome.talk);
    assert!(outcome.talk.contains("the work is saved in run"), "{}", outcome.talk);
    assert!(!scratch.path("run/vti-run.lock").exists());
    // Who was told to ignore it does.
    let program = env!("CARGO_BIN_EXE_vti");
    let line = format!("trap '' HUP; exec {program} rjmcmc builtin:hald --response y --burn-in 1000000000");
    let child = std::process::Command::new("bash")
        .args(["-c", &line])
        .current_dir(scratch.path(""))
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("listening", || listens(&child));
    assert!(std::process::Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(kill(child, "-TERM").code, Some(130));
}

/// Whether what tests start hears of a terminal that goes away: under `nohup` nothing does.
#[cfg(target_os = "linux")]
fn hears_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    u64::from_str_radix(ignored, 16).unwrap() & 1 == 0
}

/// Whether a process has begun to listen to SIGTERM, the fifteenth signal, and thereby to those before it.
#[cfg(target_os = "linux")]
fn listens(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
    u64::from_str_radix(caught, 16).unwrap() & (1 << 14) != 0
}

/// A check that takes long, stopped while it looks.
#[cfg(target_os = "linux")]
#[test]
fn a_check_that_is_stopped_keeps_the_result_before() {
    let scratch = Scratch::new();
    scratch.fine(&select("builtin:prostate", "lpsa", &["--out", "run", "--likelihood", "student-t:4"]));
    let before = scratch.read("run/summary.json");
    for signal in ["-TERM", "-HUP", "-INT"].into_iter().filter(|&signal| signal != "-HUP" || hears_hangup()) {
        let arguments = ["check", "run", "--draws", "400000"];
        let child = scratch.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for("listening", || listens(&child));
        let outcome = kill(child, signal);
        assert_eq!(outcome.code, Some(130), "{}", outcome.talk);
        assert!(outcome.talk.contains("as they were") || outcome.talk.contains("cut short"), "{}", outcome.talk);
        assert_eq!(scratch.read("run/summary.json"), before);
    }
}

#[test]
fn a_result_that_says_less_does_not_replace_a_better_one() {
    let scratch = Scratch::new();
    // Without an exact answer, which would speak for any q.
    let robust = ["select", "builtin:hald", "--response", "y", "--out", "robust", "--method", "vti", "--steps", "200"];
    scratch.fine(&[&robust[..], &["--likelihood", "student-t:4"]].concat());
    let best = scratch.read("robust/summary.json");
    assert_ne!(scratch.json("robust/summary.json")["verdict"]["kind"], "do-not-trust");
    std::fs::remove_file(scratch.path("robust/particles.safetensors")).unwrap();
    let shallow = scratch.fine(&["check", "robust", "--depth", "none", "--json"]);
    let found: Value = serde_json::from_str(&shallow.data).unwrap();
    assert_eq!(found["verdict"]["kind"], "do-not-trust");
    assert!(shallow.talk.contains("says less than the one in robust, which is kept"), "{}", shallow.talk);
    assert!(shallow.talk.contains("the verdict was"), "{}", shallow.talk);
    assert_eq!(scratch.read("robust/summary.json"), best);
    let forced = scratch.fine(&["check", "robust", "--depth", "none", "--force"]);
    assert!(!forced.talk.contains("is kept"), "{}", forced.talk);
    assert_eq!(scratch.json("robust/summary.json")["verdict"]["kind"], "do-not-trust");
    // And back: what says more is written.
    let full = scratch.fine(&["check", "robust"]);
    assert!(!full.talk.contains("is kept"), "{}", full.talk);
    assert_ne!(scratch.json("robust/summary.json")["verdict"]["kind"], "do-not-trust");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_does_not_lose_the_answer() {
    let scratch = Scratch::new();
    let program = env!("CARGO_BIN_EXE_vti");
    // Settings and lists are small; pages, draws and networks are not.
    let limited = |arguments: &[&str]| {
        let line = format!("ulimit -f 16; trap '' XFSZ; exec {program} {}", arguments.join(" "));
        let output = std::process::Command::new("bash").args(["-c", &line]).current_dir(scratch.path("")).output();
        Outcome::of(&output.unwrap(), arguments)
    };
    let exact = limited(&quick("exact"));
    assert_eq!(exact.code, Some(1), "{}", exact.talk);
    assert!(exact.data.contains("inclusion probability"), "{}", exact.data);
    assert!(exact.talk.contains("not everything could be saved") && exact.talk.contains("make room"), "{}", exact.talk);
    let small = ["select", "builtin:hald", "--response", "y", "--method", "vti", "--steps", "20", "--threads", "1"];
    let learned = limited(&[&small[..], &["--out", "learned", "--set", "check.draws=2000"]].concat());
    assert_eq!(learned.code, Some(1), "{}", learned.talk);
    assert!(learned.data.contains("inclusion probability"), "{}\n{}", learned.data, learned.talk);
    assert!(learned.talk.contains("not everything could be saved"), "{}", learned.talk);
    // What was there stays, all of it.
    scratch.fine(&quick("run"));
    let all = || -> Vec<(String, Vec<u8>)> {
        let read = |name: String| (name.clone(), std::fs::read(scratch.path(&format!("run/{name}"))).unwrap());
        names(&scratch, "run").into_iter().map(read).collect()
    };
    let before = all();
    let checked = limited(&["check", "run"]);
    assert_eq!(checked.code, Some(1), "{}", checked.talk);
    assert!(checked.data.contains("inclusion probability"), "{}", checked.data);
    assert!(all() == before, "files have changed: {:?}", names(&scratch, "run"));
    for dir in ["exact", "learned"] {
        assert!(!names(&scratch, dir).iter().any(|name| name.ends_with(".partial") || name.ends_with(".lock")));
    }
    let enumerated = limited(&["enumerate", "builtin:hald", "--response", "y", "--out", "/dev/null/models.csv"]);
    assert!(enumerated.code == Some(1) && enumerated.data.contains("log evidence"), "{}", enumerated.talk);
}

#[test]
fn the_same_run_writes_the_same_bytes() {
    let scratch = Scratch::new();
    for (out, threads) in [("one", "1"), ("two", "1"), ("three", "2")] {
        let mut arguments = select("builtin:hald", "y", &["--out", out, "--set", "check.lesson.rounds=1"]);
        let place = arguments.iter().position(|argument| *argument == "--threads").unwrap();
        arguments[place + 1] = threads;
        scratch.fine(&arguments);
    }
    for file in ["posterior.safetensors", "particles.safetensors", "posterior.parquet", "models.csv"] {
        let bytes = |run: &str| std::fs::read(scratch.path(&format!("{run}/{file}"))).unwrap();
        assert!(bytes("one") == bytes("two"), "{file} differs from run to run");
        assert!(bytes("one") == bytes("three"), "{file} differs with the number of threads");
    }
}

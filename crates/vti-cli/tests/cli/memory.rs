//! Memory: what cannot fit is refused before it is asked for, and what is said is what is used.

use crate::support::Scratch;

const TRAINED: [&str; 8] = ["select", "builtin:prostate", "--response", "lpsa", "--method", "vti", "--out", "run"];

/// The settings that are refused say how much they would need, and which of them to change.
#[test]
fn sizes_that_cannot_fit_are_refused_with_the_number_and_the_key() {
    let scratch = Scratch::new();
    for (set, key, unit) in [
        ("train.batch=100000000000", "train.batch", "TB"),
        ("flow.hidden=1000000", "flow.hidden", "TB"),
        ("flow.layers=100000000", "flow.layers", "TB"),
        ("flow.hidden=1000000000000000000", "flow.hidden", "TB"),
        ("flow.layers=1000000000000000000", "flow.layers", "TB"),
        ("check.draws=1e13", "check.draws", "TB"),
        ("check.opinion.smc.runs=100000000000", "check.opinion.smc.runs", "TB"),
    ] {
        let hint = format!("hint: a smaller {key} needs less");
        scratch.refused(&[&TRAINED[..], &["--set", set]].concat(), &["this run needs about", unit, "are free", &hint]);
        assert!(!scratch.path("run").exists(), "{set}");
    }
}

/// The sizes of the issue that are large for most machines, under a limit on addresses that every machine has.
#[cfg(target_os = "linux")]
#[test]
fn a_limit_of_the_process_counts() {
    use std::process::Command;
    let scratch = Scratch::new();
    for (set, key) in [
        ("train.batch=100000000", "train.batch"),
        ("flow.hidden=100000", "flow.hidden"),
        ("flow.layers=100000", "flow.layers"),
        ("check.draws=1e11", "check.draws"),
    ] {
        let command = format!("ulimit -v 8000000; {} {} --set {set}", env!("CARGO_BIN_EXE_vti"), TRAINED.join(" "));
        let output = Command::new("bash").args(["-c", &command]).current_dir(scratch.path("")).output().unwrap();
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{set}: {talk}");
        assert!(talk.contains("of memory") && talk.contains(&format!("a smaller {key} needs less")), "{set}: {talk}");
    }
}

#[test]
fn checks_and_draws_are_refused_likewise() {
    let scratch = Scratch::new();
    scratch.fine(&crate::support::select("builtin:hald", "y", &["--out", "run"]));
    let check = ["check", "run", "--draws", "10000000000000"];
    scratch.refused(&check, &["the check needs about", "check.draws"]);
    // Exact draws of graphs as well.
    scratch.fine(&["simulate", "linear-dag", "--nodes", "3", "--out", "t.csv", "--truth-out", "g.csv"]);
    let graphs = ["dag", "t.csv", "--sem", "linear", "--out", "graphs", "--set", "check.draws=1e13"];
    scratch.refused(&graphs, &["the check needs about", "check.draws"]);
}

/// So are chains, whether they start from q, jump or search, and tables to be made.
#[test]
fn chains_and_simulated_tables_are_refused_likewise() {
    let scratch = Scratch::new();
    scratch.fine(&[&TRAINED[..], &["--steps", "2", "--check", "none"]].concat());
    scratch.refused(
        &["refine", "run", "--chains", "20000000000"],
        &["a run of so many chains needs about", "a smaller --chains"],
    );
    scratch.refused(&["refine", "run", "--iterations", "1000000000000"], &["a smaller --iterations"]);
    let set = ["--set", "check.chains.chains=100000000000", "--force"];
    scratch.refused(&[&TRAINED[..], &set].concat(), &["of memory", "a smaller check.chains.chains needs less"]);
    let jumps = ["rjmcmc", "builtin:hald", "--response", "y", "--chains", "100000000000"];
    scratch.refused(&jumps, &["a run of so many chains needs about", "a smaller --chains needs less"]);
    let search = ["select", "builtin:hald", "--response", "y", "--method", "search", "--out", "search"];
    let many = ["--set", "search.chains=100000000000"];
    scratch.refused(&[&search[..], &many].concat(), &["the search needs about", "a smaller search.chains needs less"]);
    for (kind, more) in [
        ("dag", ["--nodes", "100"]),
        ("linear-dag", ["--nodes", "100"]),
        ("correlated", ["--covariates", "100"]),
        ("robust-selection", ["--covariates", "100"]),
        ("changepoints", ["--changes", "2"]),
        ("mixture", ["--columns", "2"]),
        ("peaks", ["--peaks", "2"]),
        ("layers", ["--layers", "2"]),
    ] {
        let table = ["simulate", kind, "--rows", "100000000000", "--out", "table.csv"];
        let hint = ["a table of 100000000000 rows", "of memory", "fewer rows need less"];
        scratch.refused(&[&table[..], &more].concat(), &hint);
        assert!(!scratch.path("table.csv").exists(), "{kind}");
    }
    for (kind, more) in [("dag", "--hidden"), ("mixture", "--components"), ("peaks", "--peaks")] {
        let table = ["simulate", kind, more, "100000000000000", "--out", "table.csv"];
        scratch.refused(&table, &["what the table is made of needs about", "of memory", "need less"]);
    }
}

/// Bytes that an estimate says, and those that the process had at most beyond what the bare program has.
#[cfg(target_os = "linux")]
fn said_and_used(scratch: &Scratch, more: &[&str]) -> (f64, f64) {
    use std::io::Read;
    use std::process::Stdio;
    let few =
        ["--steps", "2", "--check", "none", "--set", "check.lesson.rounds=0", "--set", "check.refine=never", "--force"];
    let arguments = [&TRAINED[..], &few, more].concat();
    let mut child = scratch.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut talk = String::new();
    let status = format!("/proc/{}/status", child.id());
    let mut pipe = child.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        pipe.read_to_string(&mut talk).unwrap();
        talk
    });
    let mut most = 0.0f64;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let bytes = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<f64>().ok());
        most = most.max(bytes.unwrap_or(0.0) * 1024.0);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let talk = reader.join().unwrap();
    assert!(child.wait().unwrap().success(), "{talk}");
    let (_, said) = talk.split_once(": about ").unwrap_or_else(|| panic!("{talk}"));
    let mut words = said.split_whitespace();
    let (value, unit) = (words.next().unwrap().parse::<f64>().unwrap(), words.next().unwrap());
    // The program itself, with its threads and the data.
    const BARE: f64 = 14e6;
    (value * if unit == "GB" { 1e9 } else { 1e6 }, most - BARE)
}

/// Estimates are within a quarter of what is used, where that is much more than the program itself.
#[cfg(target_os = "linux")]
#[test]
fn what_is_said_is_what_is_used() {
    let scratch = Scratch::new();
    for more in [&["--set", "train.batch=32768"][..], &["--set", "flow.hidden=768"], &["--set", "check.draws=700000"]] {
        let (said, used) = said_and_used(&scratch, more);
        assert!(used > 2e8, "{more:?}: {used:.2e}");
        assert!((0.75..=1.25).contains(&(said / used)), "{more:?}: said {said:.3e}, used {used:.3e}");
    }
}

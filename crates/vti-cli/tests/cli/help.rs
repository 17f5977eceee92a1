//! What the program says about itself, and wrong usage.

use vti::train::TrainSettings;

use crate::support::{Scratch, snapshot};

#[test]
fn help_texts_are_what_they_were() {
    let scratch = Scratch::new();
    snapshot("help.txt", &scratch.fine(&["--help"]).data);
    let commands =
        ["demo", "select", "dag", "fit", "check", "refine", "sample", "log-prob", "predict", "enumerate", "compare"];
    for command in commands {
        snapshot(&format!("help-{command}.txt"), &scratch.fine(&[command, "--help"]).data);
    }
}

#[test]
fn wrong_usage_is_answered_with_a_hint_and_code_2() {
    let scratch = Scratch::new();
    let nothing = scratch.run(&[]);
    assert_eq!(nothing.code, Some(2));
    assert!(nothing.talk.contains("Usage: vti <COMMAND>"));
    for (arguments, hint) in [
        (vec!["demp"], "a similar subcommand exists: 'demo'"),
        (vec!["demo", "--steps", "0"], "0 is not in 1.."),
        (vec!["demo", "--step", "3"], "a similar argument exists: '--steps'"),
        (vec!["demo", "--threads", "many"], "invalid digit found in string"),
        (vec!["select", "x.csv"], "--response"),
        (vec!["select", "x.csv", "--response", "y", "--likelihood", "normal"], "there are gaussian, gaussian:SIGMA"),
        (vec!["select", "x.csv", "--response", "y", "--likelihood", "student-t"], "student-t:DF"),
        (vec!["select", "x.csv", "--response", "y", "--likelihood", "robust:1,2"], "2 numbers instead of 3"),
        (vec!["select", "x.csv", "--response", "y", "--prior", "normal"], "normal:SCALE"),
        (vec!["select", "x.csv", "--response", "y", "--model-prior", "bernoulli"], "bernoulli:P"),
        (vec!["select", "x.csv", "--response", "y", "--time-limit", "5 parsecs"], "not a unit of time"),
        (vec!["select", "x.csv", "--response", "y", "--force", "--resume"], "cannot be used with"),
        (vec!["demo", "--device", "cuda"], "this build has no CUDA device"),
        (vec!["demo", "--device", "tpu"], "there is no such device"),
        (vec!["demo", "--set", "steps=3"], "the key needs a section"),
        (vec!["demo", "--set", "train.stepz=3"], "did you mean steps?"),
        (vec!["demo", "--set", "trian.steps=3"], "did you mean train?"),
        (vec!["demo", "--set", "train.batch=1"], "batch"),
        (vec!["demo", "--set", "check.draws=3"], "check.draws is 3, it must be at least 100"),
        (vec!["demo", "--set", "check.anneal.runs=2"], "check.anneal.runs is 2, it must be 0, or at least 4"),
        (vec!["demo", "--set", "check.anneal.particles=3"], "check.anneal.particles is 3, it must be at least 8"),
        (vec!["demo", "--set", "check.chains.chains=1"], "check.chains.chains is 1, it must be at least 2"),
        (vec!["demo", "--set", "train.replicates=0"], "train.replicates is 0"),
        (vec!["rjmcmc", "builtin:hald", "--response", "y", "--chains", "0"], "chains"),
        (vec!["rjmcmc", "builtin:hald", "--response", "y", "--thin", "0"], "thin"),
        (vec!["rjmcmc", "builtin:hald", "--response", "y", "--sweeps", "10"], "sweeps"),
        (vec!["check", "nowhere"], "not a run directory"),
        (vec!["predict", "nowhere", "new.csv"], "not a run directory"),
        (vec!["enumerate", "x.csv"], "--response COLUMN"),
    ] {
        scratch.refused(&arguments, &[hint]);
    }
    let version = scratch.fine(&["--version"]);
    assert_eq!(version.data.trim(), concat!("vti ", env!("CARGO_PKG_VERSION")));
}

/// What every command gives as its example is accepted as far as its words go; what it names is not there.
#[test]
fn every_help_text_ends_with_an_example() {
    let scratch = Scratch::new();
    let help = scratch.fine(&["--help"]).data;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names.into_iter().filter(|name| *name != "help") {
        let help = scratch.fine(&[name, "--help"]).data;
        let example = help.lines().last().and_then(|line| line.strip_prefix("Example: "));
        let example = example.unwrap_or_else(|| panic!("{name} has no example"));
        assert!(example.contains(&format!("vti {name}")), "{example}");
        for command in example.split(" && ").map(|command| command.split(" > ").next().unwrap_or_default()) {
            let words: Vec<&str> = command.split_whitespace().skip(1).collect();
            // These would do what they say.
            if !["demo", "man"].contains(&words[0]) {
                assert!(!scratch.run(&words).talk.contains("Usage:"), "{command}");
            }
        }
    }
}

#[test]
fn quiet_commands_say_nothing_but_errors() {
    let scratch = Scratch::new();
    let said = scratch.fine(&["select", "builtin:hald", "--response", "y", "--quiet"]);
    assert!(said.data.is_empty() && said.talk.is_empty(), "{}{}", said.data, said.talk);
    scratch.refused(&["select", "builtin:hald", "--response", "z", "--quiet"], &["there is no column"]);
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let scratch = Scratch::new();
    scratch.fine(&["man", "pages"]);
    let page = |name: &str| scratch.read(&format!("pages/{name}"));
    assert!(page("vti.1").contains("vti\\-select(1)"), "{}", page("vti.1"));
    assert!(page("vti-select.1").contains("vti select data.csv"));
}

#[test]
fn small_helpers_work() {
    let scratch = Scratch::new();
    assert!(scratch.fine(&["devices"]).data.starts_with("cpu: "));
    assert!(scratch.fine(&["completions", "bash"]).data.contains("vti"));
    scratch.write("select.toml", scratch.fine(&["init", "select"]).data);
    // The example names data that are not there.
    scratch.refused(&["fit", "select.toml"], &["data.csv", "hint: check the path"]);
}

/// The configuration that a run of `text` keeps, with all settings but the number of steps.
fn kept(scratch: &Scratch, text: &str) -> String {
    scratch.write("asked.toml", text);
    scratch.fine(&["fit", "asked.toml", "--steps", "2", "--force", "--quiet"]);
    scratch.read("asked.vti/config.toml")
}

#[test]
fn examples_say_what_is_so_without_them() {
    let scratch = Scratch::new();
    let row = |i: i32| format!("{},{}\n", i * i % 17, i * 7 % 11);
    scratch.write("data.csv", format!("y,x\n{}", (0..30).map(row).collect::<String>()));
    let (select, dag) = (TrainSettings::default().steps, TrainSettings::blockwise().steps);
    for (kind, more, steps) in [("select", "response = \"y\"\n", select), ("dag", "", dag)] {
        let example = scratch.fine(&["init", kind]).data;
        assert!(example.contains(&format!("\nsteps = {steps}\n")), "{example}");
        let bare = format!("[problem]\nkind = \"{kind}\"\ndata = \"data.csv\"\n{more}");
        assert_eq!(kept(&scratch, &example), kept(&scratch, &bare), "{kind}");
    }
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_not_an_error() {
    let line =
        format!("{} enumerate builtin:hald --response y | true; exit ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_vti"));
    let output = std::process::Command::new("bash").args(["-c", &line]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_an_error() {
    let line = format!("{} enumerate builtin:hald --response y > /dev/full", env!("CARGO_BIN_EXE_vti"));
    let output = std::process::Command::new("bash").args(["-c", &line]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("could not write to standard output"));
}

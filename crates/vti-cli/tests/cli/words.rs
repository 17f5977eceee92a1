//! What the program says, and what it does not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::support::{Scratch, select};

/// Names that follow `--` in a text.
fn options(text: &str) -> Vec<&str> {
    let begins = |place: usize| !text[..place].ends_with(|c: char| c.is_alphanumeric() || c == '-');
    let name = |place: usize| {
        let name = text[place + 2..].split(|c: char| !(c.is_ascii_lowercase() || c == '-')).next().unwrap_or_default();
        name.trim_end_matches('-')
    };
    let places = text.match_indices("--").map(|(place, _)| place);
    let names = places.filter(|&place| begins(place)).map(name);
    names.filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase())).collect()
}

/// The options of every command, by its help.
fn commands(scratch: &Scratch) -> BTreeMap<String, BTreeSet<String>> {
    let help = scratch.fine(&["--help"]).data;
    let listed = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let names = listed.take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    let mut found = BTreeMap::new();
    for name in names.filter(|name| *name != "help") {
        let help = scratch.fine(&[name, "--help"]).data;
        let own = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
        let own = own.flat_map(|line| options(line.split("  ").next().unwrap_or(line)));
        found.insert(name.to_string(), own.map(String::from).collect::<BTreeSet<_>>());
        // Commands of commands.
        if name == "enumerate" || name == "simulate" || name == "init" {
            let more = help.lines().filter_map(|line| line.split_whitespace().next()).collect::<Vec<_>>();
            for part in more {
                let deeper = scratch.run(&[name, part, "--help"]);
                if deeper.code == Some(0) {
                    let own = deeper.data.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
                    let own: Vec<String> = own.flat_map(options).map(String::from).collect();
                    found.entry(name.to_string()).or_default().extend(own);
                }
            }
        }
    }
    found
}

/// Lines of source files that are no comments and no tests.
fn lines(dir: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            lines(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            found.extend(code.map(|line| (name.clone(), line.to_string())));
        }
    }
}

/// Every option that any message names is one of some command; and of the command, where one stands before it.
#[test]
fn messages_name_options_that_there_are() {
    let scratch = Scratch::new();
    let commands = commands(&scratch);
    assert!(commands.len() > 15 && commands["dag"].contains("edge-penalty"), "{commands:?}");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    [here.join("src"), here.join("../vti/src")].iter().for_each(|dir| lines(dir, &mut sources));
    let mut seen = 0;
    for (file, line) in &sources {
        for option in options(line) {
            assert!(commands.values().any(|own| own.contains(option)), "{file}: no command has --{option}: {line}");
            seen += 1;
        }
        for quoted in line.split('`').skip(1).step_by(2).filter_map(|quoted| quoted.strip_prefix("vti ")) {
            let name = quoted.split_whitespace().next().unwrap_or_default();
            let Some(own) = commands.get(name) else { continue };
            options(quoted)
                .into_iter()
                .for_each(|option| assert!(own.contains(option), "{file}: `vti {name}` has no --{option}: {line}"));
        }
    }
    assert!(seen > 60, "{seen}");
}

/// `vti fit` has the keys of its configuration where other commands have options.
#[test]
fn a_configuration_has_keys_and_not_options() {
    let scratch = Scratch::new();
    scratch.write("t.csv", "y,a\n1,2\n2,\n3,4\n5,5\n7,1\n");
    scratch.write("run.toml", "[problem]\nkind = \"select\"\ndata = \"t.csv\"\nresponse = \"y\"\n");
    let fit = scratch.run(&["fit", "run.toml"]);
    assert!(fit.talk.contains("missing = \"drop\" in [problem] leaves out"), "{}", fit.talk);
    assert!(!fit.talk.contains("--missing"), "{}", fit.talk);
    let select = scratch.run(&["select", "t.csv", "--response", "y"]);
    assert!(select.talk.contains("--missing drop"), "{}", select.talk);
}

#[test]
fn chains_are_quiet_when_told_so() {
    let scratch = Scratch::new();
    let short = ["--chains", "4", "--sweeps", "400", "--burn-in", "10"];
    let arguments = [&["rjmcmc", "builtin:hald", "--response", "y"][..], &short].concat();
    let quiet = scratch.fine(&[&arguments[..], &["-q", "--out", "models.csv"]].concat());
    assert!(quiet.data.is_empty() && quiet.talk.is_empty(), "{}{}", quiet.data, quiet.talk);
    assert!(scratch.read("models.csv").starts_with("model,label,"));
    let json = scratch.fine(&[&arguments[..], &["-q", "--json"]].concat());
    assert!(json.data.starts_with('{') && json.talk.is_empty(), "{}", json.talk);
}

/// What was learned, and taught after that, is not lost to a run that is taken up again at its end.
#[test]
fn a_finished_run_that_is_resumed_keeps_what_it_has() {
    let scratch = Scratch::new();
    let arguments = select("builtin:hald", "y", &["--out", "run"]);
    scratch.fine(&arguments);
    let posterior = || std::fs::read(scratch.path("run/posterior.safetensors")).unwrap();
    // As if a check had taught it more: the run before, for more steps, stands for it.
    let longer: Vec<&str> = arguments.iter().map(|&word| if word == "20" { "40" } else { word }).collect();
    let longer: Vec<&str> = longer.into_iter().map(|word| if word == "run" { "other" } else { word }).collect();
    scratch.fine(&longer);
    std::fs::copy(scratch.path("other/posterior.safetensors"), scratch.path("run/posterior.safetensors")).unwrap();
    let taught = posterior();
    let resumed = scratch.fine(&[&arguments[..], &["--resume"]].concat());
    assert_eq!(posterior(), taught, "{}", resumed.talk);
    assert!(!resumed.talk.contains("hint: --force"), "{}", resumed.talk);
}

/// Who watches a finished run that is being checked again waits for the end of that.
#[cfg(target_os = "linux")]
#[test]
fn watching_waits_for_a_check() {
    use std::process::Stdio;
    use std::time::{Duration, Instant};
    let scratch = Scratch::new();
    scratch.fine(&select("builtin:hald", "y", &["--out", "run"]));
    // Nobody is at work: the answer at once.
    assert!(scratch.fine(&["watch", "run"]).data.contains("trust"));
    let quiet =
        |arguments: &[&str]| scratch.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut check = quiet(&["check", "run", "--draws", "1000000"]);
    let begun = Instant::now();
    while !scratch.path("run/vti-run.lock").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut watch = quiet(&["watch", "run"]);
    let mut looks = 0;
    while check.try_wait().unwrap().is_none() {
        let ended = watch.try_wait().unwrap().is_some();
        assert!(!ended || check.try_wait().unwrap().is_some(), "the watch ended before the check");
        looks += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(looks > 20, "{looks}");
    assert!(watch.wait().unwrap().success());
}

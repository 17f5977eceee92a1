//! Hints name options only where the command has them.

use clap::Command;

/// A message as a command may say it: options that the command does not have are keys of its configuration. What stands between
/// backticks is another command, and stays.
pub(crate) fn for_command(message: &str, command: &Command) -> String {
    // Other commands that read settings from a file read those of a run that is there.
    if command.get_name() != "fit" {
        return message.into();
    }
    let mut said = String::new();
    for (place, part) in message.split('`').enumerate() {
        let quoted = place % 2 == 1;
        if place > 0 {
            said.push('`');
        }
        said += &if quoted { part.into() } else { as_keys(part, command) };
    }
    said
}

/// `--edge-penalty` as `edge_penalty in [problem]`.
fn as_keys(text: &str, command: &Command) -> String {
    let mut said = String::new();
    let mut rest = text;
    while let Some((before, option, after)) = next_option(rest) {
        said += before;
        if has(command, option) {
            said += &format!("--{option}");
        } else {
            said += &format!("{} in [problem]", option.replace('-', "_"));
        }
        rest = after;
    }
    said + rest
}

/// What comes before the next option, its name, and what comes after it.
fn next_option(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(place) = text[from..].find("--").map(|place| from + place) {
        let name = text[place + 2..].split(|c: char| !(c.is_ascii_lowercase() || c == '-')).next().unwrap_or_default();
        let begins = !text[..place].ends_with(|c: char| c.is_alphanumeric() || c == '-');
        if begins && name.starts_with(|c: char| c.is_ascii_lowercase()) {
            let name = name.trim_end_matches('-');
            return Some((&text[..place], name, &text[place + 2 + name.len()..]));
        }
        from = place + 2;
    }
    None
}

fn has(command: &Command, option: &str) -> bool {
    command.get_arguments().any(|argument| argument.get_long() == Some(option))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::path::Path;

    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    /// Text between quotation marks in all source files below a directory, tests and comments aside.
    fn literals(dir: &Path, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                literals(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap();
                let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                found.extend(lines.map(|line| (name.clone(), line.to_string())));
            }
        }
    }

    /// Every option that any message names is one of some command; and of the command, where one stands before it.
    #[test]
    fn messages_name_options_that_there_are() {
        let cli = Cli::command();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut lines = Vec::new();
        [here.join("src"), here.join("../vti/src")].iter().for_each(|dir| literals(dir, &mut lines));
        let anywhere = |option: &str| cli.get_subcommands().any(|command| has(command, option));
        let mut seen = 0;
        for (file, line) in &lines {
            let mut rest = line.as_str();
            while let Some((before, option, after)) = next_option(rest) {
                // A style sheet has names of its own.
                let is_message = !before.ends_with("var(");
                assert!(!is_message || anywhere(option), "{file}: no command has --{option}: {line}");
                (seen, rest) = (seen + 1, after);
            }
            for quoted in line.split('`').skip(1).step_by(2).filter_map(|quoted| quoted.strip_prefix("vti ")) {
                let name = quoted.split_whitespace().next().unwrap_or_default();
                let Some(command) = cli.find_subcommand(name) else { continue };
                let mut rest = quoted;
                while let Some((_, option, after)) = next_option(rest) {
                    assert!(has(command, option), "{file}: `vti {name}` has no --{option}: {line}");
                    rest = after;
                }
            }
        }
        assert!(seen > 60, "{seen}");
    }

    #[test]
    fn a_configuration_has_keys() {
        let cli = Cli::command();
        let fit = cli.find_subcommand("fit").unwrap();
        let said = for_command("no\nhint: --missing drop, --time-limit 1h, or `vti dag --edge-penalty 1`", fit);
        assert_eq!(said, "no\nhint: missing in [problem] drop, --time-limit 1h, or `vti dag --edge-penalty 1`");
        let select = cli.find_subcommand("select").unwrap();
        assert_eq!(for_command("--missing drop", select), "--missing drop");
    }
}

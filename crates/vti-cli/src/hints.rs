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

/// `--edge-penalty` as `edge_penalty in [problem]`, and `--missing drop` as `missing = "drop" in [problem]`.
fn as_keys(text: &str, command: &Command) -> String {
    let mut said = String::new();
    let mut rest = text;
    while let Some((before, option, after)) = next_option(rest) {
        said += before;
        rest = after;
        if has(command, option) {
            said += &format!("--{option}");
            continue;
        }
        let (key, value) = (option.replace('-', "_"), value(after));
        rest = &after[value.map_or(0, |value| value.len() + 1)..];
        let value = value.map_or_else(String::new, |value| format!(" = {}", as_value(&key, value)));
        said += &format!("{key}{value} in [problem]");
    }
    said + rest
}

/// Words that go on after an option without a value.
const WITHOUT_VALUE: [&str; 3] = ["and", "names", "or"];

/// The value that follows an option, after a space, if there is one.
fn value(after: &str) -> Option<&str> {
    let rest = after.strip_prefix(' ')?;
    let word = rest.split(|c: char| c.is_whitespace() || ";)".contains(c)).next().unwrap_or_default();
    let word = word.trim_end_matches([':', ',', '.']);
    (!word.is_empty() && !WITHOUT_VALUE.contains(&word) && !word.starts_with('-')).then_some(word)
}

/// Keys that hold lists, and those that hold a kind with its numbers.
const LISTS: [&str; 6] = ["include", "exclude", "always", "categorical", "missing_values", "log"];
const KINDS: [&str; 6] = ["likelihood", "prior", "model_prior", "sem", "noise", "score"];

/// What an option takes, as a configuration writes it.
fn as_value(key: &str, value: &str) -> String {
    let quoted = |text: &str| format!("{text:?}");
    if LISTS.contains(&key) {
        return format!("[{}]", value.split(',').map(quoted).collect::<Vec<_>>().join(", "));
    }
    if !KINDS.contains(&key) {
        return quoted(value);
    }
    match value.split_once(':') {
        // What stands for a number is called like its key.
        Some((kind, number)) => format!("{{ kind = {kind:?}, {} = {number} }}", number.to_lowercase()),
        None if value == "SIGMA" => "{ kind = \"known\", sigma = SIGMA }".into(),
        None => format!("{{ kind = {value:?} }}"),
    }
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
mod tests {
    use super::*;

    #[test]
    fn options_become_keys_with_their_values() {
        let fit = Command::new("fit").arg(clap::Arg::new("out").long("out"));
        for (said, expected) in [
            ("--missing drop leaves out rows", "missing = \"drop\" in [problem] leaves out rows"),
            (
                "leave it out with --exclude a,b; or not",
                "leave it out with exclude = [\"a\", \"b\"] in [problem]; or not",
            ),
            ("see --include and --exclude", "see include in [problem] and exclude in [problem]"),
            ("out of --log, or out", "out of log in [problem], or out"),
            ("use --prior normal:SCALE", "use prior = { kind = \"normal\", scale = SCALE } in [problem]"),
            (
                "--prior g or --prior normal:SCALE with",
                "prior = { kind = \"g\" } in [problem] or prior = { kind = \"normal\", scale = SCALE } in [problem] with",
            ),
            ("(--likelihood logistic)", "(likelihood = { kind = \"logistic\" } in [problem])"),
            ("--heredity none", "heredity = \"none\" in [problem]"),
            ("--out DIR; `vti select --missing drop`", "--out DIR; `vti select --missing drop`"),
        ] {
            assert_eq!(for_command(said, &fit), expected);
        }
    }
}

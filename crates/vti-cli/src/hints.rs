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

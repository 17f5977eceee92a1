//! Names as they are shown: control characters written out, long ones shortened.

use vti_report::plain;

/// So many characters of a name are shown.
const LENGTH: usize = 60;

/// So many names of several.
const NAMES: usize = 12;

/// The first characters of a text, and an ellipsis where there are more.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

/// A name for messages.
pub(crate) fn shown(name: &str) -> String {
    plain(&short(name))
}

/// The first of several names, each with something behind it.
pub(crate) fn listed<'a>(names: impl Iterator<Item = (&'a str, String)>, all: usize) -> String {
    let first: Vec<String> = names.take(NAMES).map(|(name, behind)| shown(name) + &behind).collect();
    let more = if all > NAMES { format!(", … ({all} in all)") } else { String::new() };
    first.join(", ") + &more
}

/// The first of several names, as an option takes them.
pub(crate) fn joined<S: AsRef<str>>(names: &[S]) -> String {
    let first: Vec<String> = names.iter().take(NAMES).map(|name| shown(name.as_ref())).collect();
    first.join(",") + if names.len() > NAMES { ",…" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shortened_and_control_characters_written_out() {
        assert_eq!(shown("age"), "age");
        assert_eq!(shown("a\x1b[31m\n"), "a\\u{1b}[31m\\n");
        assert_eq!(shown(&"ä".repeat(1_000_000)), "ä".repeat(60) + "…");
        let names: Vec<String> = (0..40).map(|i| format!("c{i}")).collect();
        assert!(joined(&names).ends_with("c11,…"));
        assert!(listed(names.iter().map(|name| (name.as_str(), " 1".into())), 40).ends_with("c11 1, … (40 in all)"));
    }
}

//! Every identifier and file in the table of docs/notation.md exists.

use std::collections::HashSet;

use super::Violation;
use super::tree::{Tree, at, identifiers, quoted, stripped, table};

pub(super) const PAGE: &str = "docs/notation.md";
const LIBRARY: &str = "crates/vti/src/";

/// Columns of the table.
const IN_CODE: usize = 2;
const FILE: usize = 3;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let text = tree.text(PAGE);
    let mut found = Vec::new();
    for (place, cells) in table(text, 0) {
        let [code, files] = [IN_CODE, FILE].map(|column| cells.get(column).copied().unwrap_or_default());
        let mut say = |what: String| found.push(at(PAGE, text, place, what));
        let files: Vec<String> = quoted(files).map(|file| format!("{LIBRARY}{file}")).collect();
        if files.is_empty() {
            say("the row names no file".into());
        }
        for file in files.iter().filter(|file| !tree.has(file)) {
            say(format!("there is no file {file}; name the file where the symbol is now"));
        }
        let codes: Vec<String> = files.iter().map(|file| stripped(tree.text(file))).collect();
        let modules = files.iter().flat_map(|file| file.trim_end_matches(".rs").split('/'));
        let words = codes.iter().flat_map(|code| identifiers(code)).map(|(_, word)| word);
        let known: HashSet<&str> = words.chain(modules).collect();
        for name in quoted(code) {
            if let Some(missing) = name.split("::").find(|part| !known.contains(part)) {
                say(format!("`{name}`: there is no `{missing}` in {}; name what it is called now", files.join(" or ")));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::tree;
    use super::*;

    #[test]
    fn what_is_named_exists() {
        let page = "| paper | meaning | in code | file |\n|---|---|---|---|\n\
            | m \\| 𝓜 | model | `Model`, `space::Model`, word | `space/model.rs` |\n\
            | ψ | parameters | `Descent::step` | `models/descent.rs`, `space/model.rs` |\n\
            | φ | others | `gone` | `space/model.rs` |\n\
            | z | reference | raw | `flow/none.rs` |\n";
        let files = [
            (PAGE, page),
            ("crates/vti/src/space/model.rs", "pub struct Model; // gone"),
            ("crates/vti/src/models/descent.rs", "impl Descent { fn step() {} }"),
        ];
        let found = check(&tree(&files));
        assert_eq!(found.iter().map(|found| found.line).collect::<Vec<_>>(), [5, 6], "{found:?}");
        assert!(found[0].text.contains("no `gone`") && found[1].text.contains("no file crates/vti/src/flow/none.rs"));
    }
}

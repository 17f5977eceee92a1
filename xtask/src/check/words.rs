//! One word for each concept: the table under "Words" in docs/notation.md is the rule.

use super::Violation;
use super::notation::PAGE;
use super::tree::{Tree, at, identifiers, quoted, table};

const SECTION: &str = "\n## Words\n";
/// Where the words are ours.
const FOLDER: &str = "crates/";

/// Columns of the table.
const WORD: usize = 0;
const INSTEAD_OF: usize = 1;
const EXCEPT_IN: usize = 3;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let page = tree.text(PAGE);
    let Some(section) = page.find(SECTION) else {
        return vec![at(PAGE, page, 0, "there is no section “Words” with the table of words")];
    };
    let rows = table(page, section);
    let mut found = Vec::new();
    for (path, text) in tree.code(FOLDER).filter(|(path, _)| path.contains("/src/")) {
        for (line, words) in text.lines().map(normal).enumerate() {
            for (_, cells) in &rows {
                let except =
                    cells.get(EXCEPT_IN).is_some_and(|places| quoted(places).any(|place| path.starts_with(place)));
                for other in cells[INSTEAD_OF].split(',').map(|other| normal(other.trim())) {
                    if !except && !other.trim().is_empty() && words.contains(&other) {
                        let text = format!(
                            "we say “{}” instead of “{}” ({PAGE}, Words)",
                            cells[WORD].replace('`', ""),
                            other.trim()
                        );
                        found.push(Violation { path: path.into(), line: line + 1, text });
                    }
                }
            }
        }
    }
    found
}

/// Words in lower case with a space before and after each; names are divided into theirs: ` log evidence ` of `log_evidence`
/// and of `LogEvidence`.
fn normal(text: &str) -> String {
    let mut words = String::from(" ");
    for (_, identifier) in identifiers(text) {
        let mut lower = false;
        for character in identifier.chars() {
            if character == '_' || (character.is_uppercase() && lower) {
                words.push(' ');
            }
            lower = character.is_lowercase() || character.is_numeric();
            words.extend(character.to_lowercase().filter(|character| *character != '_'));
        }
        words.push(' ');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::tree;
    use super::*;

    const WORDS: &str = "# Notation\n\n## Words\n\n| word | instead of | meaning | except in |\n|---|---|---|---|\n\
        | edge | arc, directed link | between nodes | `crates/b` |\n| mean-field fit | peak | a product | |\n";

    #[test]
    fn other_words_for_the_same_are_found() {
        let code = "//! A knowledge of arcs.\nfn search_arc(x: ARC) {}\nstruct DirectedLink;\n/// Mean-field: no Peak.\nlet peaked = 1;";
        let found = check(&tree(&[(PAGE, WORDS), ("crates/a/src/x.rs", code), ("crates/b/src/y.rs", "fn arc() {}")]));
        assert_eq!(found.iter().map(|found| found.line).collect::<Vec<_>>(), [2, 3, 4], "{found:?}");
        assert!(found[0].text.contains("we say “edge” instead of “arc”"));
    }

    #[test]
    fn names_are_divided_into_words() {
        assert_eq!(normal("let log_evidence: LogEvidence2D = q(m);"), " let log evidence log evidence2 d q m ");
        assert_eq!(check(&tree(&[(PAGE, "# Notation\n")])).len(), 1);
    }
}

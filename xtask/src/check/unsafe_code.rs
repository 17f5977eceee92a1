//! `unsafe` stays where CONTRIBUTING.md allows it.

use super::Violation;
use super::tree::{Tree, at, identifiers, quoted, stripped};

const RULES: &str = "CONTRIBUTING.md";
/// How the line starts that lists the places.
const LIST: &str = "- `unsafe` stays in";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let rules = tree.text(RULES);
    let Some(start) = rules.find(LIST) else {
        return vec![at(RULES, rules, 0, format!("a line must start with “{LIST}” and list the places in backticks"))];
    };
    let line = rules[start..].lines().next().unwrap_or_default();
    let allowed: Vec<&str> = quoted(line).filter(|place| place.contains('/')).collect();
    let mut used = vec![false; allowed.len()];
    let mut found = Vec::new();
    for (path, text) in tree.code("") {
        let code = stripped(text);
        let Some((place, _)) = identifiers(&code).find(|(_, word)| *word == "unsafe") else { continue };
        match allowed.iter().position(|allowed| path == *allowed || path.starts_with(&format!("{allowed}/"))) {
            Some(place) => used[place] = true,
            None => found.push(at(
                path,
                text,
                place,
                format!(
                    "`unsafe` outside the places that {RULES} names; do without it, or argue there for another place"
                ),
            )),
        }
    }
    for (place, _) in allowed.iter().zip(used).filter(|(_, used)| !used) {
        found.push(at(RULES, rules, start, format!("there is no `unsafe` in `{place}`; take it off the list")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::tree;
    use super::*;

    const LINE: &str =
        "# Rules\n- `unsafe` stays in `crates/a/src/simd` and `bench/src/peak.rs`, and says why it is sound.\n";

    #[test]
    fn unsafe_code_stays_in_its_places() {
        let inside =
            [("CONTRIBUTING.md", LINE), ("crates/a/src/simd/x.rs", "unsafe {}"), ("bench/src/peak.rs", "unsafe {}")];
        assert_eq!(check(&tree(&inside)), []);
        let others = [
            ("crates/a/src/b.rs", "// unsafe\n#![deny(unsafe_code)]\nfn f() { unsafe {} }"),
            ("crates/a/src/simd2.rs", ""),
        ];
        let found = check(&tree(&[&inside[..], &others].concat()));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/a/src/b.rs", 3));
    }

    #[test]
    fn places_without_unsafe_code_are_not_listed() {
        let found = check(&tree(&[("CONTRIBUTING.md", LINE), ("bench/src/peak.rs", "unsafe {}")]));
        assert!(found.len() == 1 && found[0].line == 2 && found[0].text.contains("crates/a/src/simd"), "{found:?}");
        assert_eq!(check(&tree(&[("CONTRIBUTING.md", "# Rules\n")])).len(), 1);
    }
}

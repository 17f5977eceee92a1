//! Modules of the library import only from earlier ones: the table in its `lib.rs` is the rule.

use super::Violation;
use super::tree::{Tree, at, identifiers, quoted, stripped, table, without_tests};

const LIBRARY: &str = "crates/vti/src/";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let path = format!("{LIBRARY}lib.rs");
    let text = tree.text(&path);
    let rows = table(text, 0);
    let order: Vec<&str> = rows.iter().flat_map(|(_, cells)| quoted(cells[0])).collect();
    let mut found = Vec::new();
    let code = without_tests(&stripped(text));
    let words: Vec<(usize, &str)> = identifiers(&code).collect();
    for pair in words.windows(2).filter(|pair| pair[0].1 == "mod") {
        let (place, module) = pair[1];
        if order.iter().filter(|name| **name == module).count() != 1 {
            found.push(at(&path, text, place, format!("`{module}` must have one place in the table of modules above")));
        }
    }
    for (path, text) in tree.code(LIBRARY) {
        let inner = path.trim_start_matches(LIBRARY).trim_end_matches(".rs");
        let names: Vec<&str> = inner.split('/').filter(|name| *name != "mod").collect();
        if names == ["lib"] || names.contains(&"tests") {
            continue;
        }
        let rank = |module: &str| order.iter().position(|name| *name == module);
        let code = without_tests(&stripped(text));
        for (place, module) in imports(&code, names.len()) {
            // What is not a module is an item or macro of the crate's root.
            if rank(module) > rank(names[0]) {
                let (own, file) = (names[0], "lib.rs");
                let what = format!(
                    "`{own}` imports from `{module}`, which comes later in the table of {file}; move what it needs to an \
                     earlier module, or the module to an earlier row"
                );
                found.push(at(path, text, place, what));
            }
        }
    }
    found
}

/// Modules of the crate's root that code names, with their places: after `crate::`, or after as many `super::` as lead there.
fn imports(code: &str, depth: usize) -> Vec<(usize, &str)> {
    let words: Vec<(usize, &str)> = identifiers(code).collect();
    let mut found = Vec::new();
    let mut supers = 0;
    for (index, &(place, word)) in words.iter().enumerate() {
        let follows = |place: usize, word: &str| code[place + word.len()..].trim_start().starts_with("::");
        supers = if word == "super" { supers + 1 } else { 0 };
        if !(word == "crate" || supers == depth && word == "super") || !follows(place, word) {
            continue;
        }
        let start = place + word.len();
        let after = code[start..].trim_start().trim_start_matches("::").trim_start();
        if let Some(group) = after.strip_prefix('{') {
            found.extend(heads(group, code.len() - group.len()));
        } else if let Some(&next) = words.get(index + 1) {
            found.push(next);
        }
    }
    found
}

/// The first name of each path in a group in braces.
fn heads(group: &str, start: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut depth = 0i32;
    let end = group.char_indices().find(|(_, character)| {
        depth += i32::from(*character == '{') - i32::from(*character == '}');
        depth < 0
    });
    let group = &group[..end.map_or(group.len(), |(place, _)| place)];
    let is_head = move |place: usize| {
        let before = group[..place].trim_end();
        let open = before.matches('{').count() == before.matches('}').count();
        open && (before.is_empty() || before.ends_with(','))
    };
    identifiers(group).filter(move |(place, _)| is_head(*place)).map(move |(place, word)| (start + place, word))
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::tree;
    use super::*;

    const LIB: &str = "//! | module | what |\n//! |---|---|\n//! | [`low`], `hidden` | a |\n//! | [`high`] | b |\n\n\
        mod hidden;\npub mod high;\npub mod low;\n";

    fn lines(files: &[(&str, &str)]) -> Vec<String> {
        let all: Vec<(&str, &str)> = [&[("crates/vti/src/lib.rs", LIB)], files].concat();
        check(&tree(&all)).iter().map(|found| format!("{}:{}", found.path, found.line)).collect()
    }

    #[test]
    fn later_modules_may_import_from_earlier_ones() {
        let high = "use crate::low::A;\nuse crate::{hidden::B, low::{self, C}};\nuse super::low;\n";
        assert_eq!(
            lines(&[("crates/vti/src/high/mod.rs", high), ("crates/vti/src/low.rs", "use crate::low::x;")]).len(),
            0
        );
    }

    #[test]
    fn earlier_modules_may_not_import_from_later_ones() {
        let low = "//! See [`crate::high`].\nuse std::fmt;\nuse crate::{\n    hidden::B,\n    high::A,\n};\n\
            fn f() { crate::high::g() }\n#[cfg(test)]\nmod tests { use crate::high; }\n";
        let found =
            lines(&[("crates/vti/src/low/part.rs", low), ("crates/vti/src/low/tests.rs", "use crate::high::A;")]);
        let at = |line| format!("crates/vti/src/low/part.rs:{line}");
        assert_eq!(found, [at(4), at(5), at(7)], "`hidden` is after `low` in its row");
        assert_eq!(lines(&[("crates/vti/src/low/mod.rs", "use super::high;")]), ["crates/vti/src/low/mod.rs:1"]);
        assert_eq!(
            lines(&[("crates/vti/src/low/x.rs", "use super::super::high;\nuse super::y;")]),
            ["crates/vti/src/low/x.rs:1"]
        );
    }

    #[test]
    fn every_module_has_a_place() {
        let text = LIB.replace("pub mod low;", "pub mod low;\nmod forgotten;");
        let found = check(&tree(&[("crates/vti/src/lib.rs", &text)]));
        assert_eq!(found.len(), 1);
        assert!(found[0].line == 9 && found[0].text.contains("`forgotten`"), "{found:?}");
    }
}

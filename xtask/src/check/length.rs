//! No file of code is too long to be read at once.

use super::Violation;
use super::tree::Tree;

/// The most lines of a file, tests included.
const MAX_LINES: usize = 500;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let lengths = tree.code("").map(|(path, text)| (path, text.lines().count()));
    let too_long = lengths.filter(|(_, lines)| *lines > MAX_LINES);
    let violation = |(path, lines): (&str, usize)| Violation {
        path: path.into(),
        line: MAX_LINES + 1,
        text: format!("the file has {lines} lines, {MAX_LINES} are the most; divide it by what its parts are about"),
    };
    too_long.map(violation).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::tree;
    use super::*;

    #[test]
    fn long_files_are_found() {
        let (fine, long) = ("\n".repeat(MAX_LINES), "\n".repeat(MAX_LINES + 1));
        let files = [("bench/src/a.rs", fine.as_str()), ("crates/x/tests/b.rs", &long), ("README.md", &long)];
        let found = check(&tree(&files));
        assert_eq!(found.len(), 1);
        assert!(found[0].path == "crates/x/tests/b.rs" && found[0].text.contains("501 lines"), "{found:?}");
    }
}

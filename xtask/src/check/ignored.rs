//! What the README's commands write is ignored by git.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Violation;
use super::tree::{Tree, at, quoted};

const README: &str = "README.md";

/// What git makes of a folder in the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Part of the repository.
    Kept,
    Ignored,
    /// Neither.
    Stray,
}

/// What git says; where there is no repository everything counts as kept.
pub(super) fn by_git(root: &Path, folder: &str) -> State {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(arguments).arg(folder).current_dir(root).stderr(Stdio::null()).output().ok()
    };
    match git(&["ls-files", "--"]) {
        Some(listed) if listed.status.success() && listed.stdout.is_empty() => {
            let ignored = git(&["check-ignore", "--quiet", "--"]).is_some_and(|found| found.status.success());
            if ignored { State::Ignored } else { State::Stray }
        }
        _ => State::Kept,
    }
}

pub(super) fn check(tree: &Tree, state: impl Fn(&str) -> State) -> Vec<Violation> {
    let readme = tree.text(README);
    let mut seen = BTreeSet::new();
    let written = folders(readme).into_iter().filter(|(_, folder)| seen.insert(folder.clone()));
    let stray = written.filter(|(_, folder)| state(folder) == State::Stray);
    let what =
        |folder: &str| format!("`{folder}` is written by a command, but git does not ignore it; add it to .gitignore");
    stray.map(|(place, folder)| at(README, readme, place, what(&folder))).collect()
}

/// Folders in commands and in backticks: the first of each path, and run directories.
fn folders(readme: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut place, mut block) = (0, None);
    for line in readme.split_inclusive('\n') {
        if let Some(language) = line.strip_prefix("```") {
            block = if block.is_none() { Some(language.trim()) } else { None };
        }
        let codes: Vec<&str> = match block {
            Some("sh") => line.split('#').take(1).collect(),
            Some(_) => Vec::new(),
            None => quoted(line).collect(),
        };
        let words = codes.into_iter().flat_map(str::split_whitespace);
        found.extend(words.filter_map(folder).map(|folder| (place, folder)));
        place += line.len();
    }
    found
}

/// The first folder of a path, if a word is one.
fn folder(word: &str) -> Option<String> {
    let plain = |character: char| character.is_ascii_alphanumeric() || "._-/".contains(character);
    let first = if word.ends_with(".vti") { word } else { word.split_once('/')?.0 };
    (word.chars().all(plain) && !first.is_empty()).then(|| format!("{first}/"))
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::tree;
    use super::*;

    const TEXT: &str = "# vti\n\n```sh\nvti demo   # or/and\nvti predict data.vti new.csv\n```\n\nIt writes `vti-demo/report.html`, \
        see `docs/guide.md`, `q / p` and `--log`.\n\n```rust\nlet a = b/c;\n```\n";

    #[test]
    fn what_is_written_is_ignored() {
        let names: Vec<String> = folders(TEXT).into_iter().map(|(_, folder)| folder).collect();
        assert_eq!(names, ["data.vti/", "vti-demo/", "docs/"]);
        let state = |folder: &str| match folder {
            "docs/" => State::Kept,
            "data.vti/" => State::Ignored,
            _ => State::Stray,
        };
        let found = check(&tree(&[(README, TEXT)]), state);
        assert!(found.len() == 1 && found[0].line == 8 && found[0].text.contains("`vti-demo/`"), "{found:?}");
    }

    #[test]
    fn git_knows_what_it_keeps_and_ignores() {
        let root = crate::process::root();
        if root.join(".git").exists() {
            let states = ["crates/", "target/", "no-such-folder/"].map(|folder| by_git(&root, folder));
            assert_eq!(states, [State::Kept, State::Ignored, State::Stray]);
        }
    }
}

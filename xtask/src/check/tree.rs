//! The repository as the rules see it: texts by their paths, and code without comments and literals.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Violation;

/// Texts by their paths from the root, with `/` between folders.
#[derive(Debug, Default)]
pub(super) struct Tree {
    texts: BTreeMap<String, String>,
}

/// Folders without anything of ours.
const SKIPPED: [&str; 2] = ["target", "__pycache__"];

impl Tree {
    /// Reads code, pages and results.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.visit(root, "")?;
        Ok(tree)
    }

    fn visit(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        let entries = fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                if !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
                    self.visit(&entry.path(), &format!("{path}/"))?;
                }
            } else if is_read(&path) {
                let text = fs::read_to_string(entry.path()).with_context(|| format!("could not read {path}"))?;
                self.texts.insert(path, text);
            }
        }
        Ok(())
    }

    /// The text of a file; nothing where there is none.
    pub(super) fn text(&self, path: &str) -> &str {
        self.texts.get(path).map_or("", String::as_str)
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.texts.contains_key(path)
    }

    /// Files of a folder and below, in order.
    pub(super) fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let files = self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        files.filter(move |(path, _)| path.starts_with(folder))
    }

    /// The code of a folder and below.
    pub(super) fn code<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.below(folder).filter(|(path, _)| path.ends_with(".rs"))
    }
}

/// Code, pages, and those results that figures come from.
fn is_read(path: &str) -> bool {
    let result = path.strip_prefix("bench/results/");
    let of_bench = result.is_some_and(|name| name.ends_with(".jsonl") && !name.contains('/'));
    path.ends_with(".rs") || path.ends_with(".md") || of_bench || path.ends_with("/summary.csv")
}

/// A violation at a place of a text.
pub(super) fn at(path: &str, text: &str, place: usize, what: impl Into<String>) -> Violation {
    let line = 1 + text.as_bytes()[..place].iter().filter(|&&byte| byte == b'\n').count();
    Violation { path: path.into(), line, text: what.into() }
}

/// Texts in backticks.
pub(super) fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Rows of the first table after a place, without its head: the place of each row, and its cells.
pub(super) fn table(text: &str, from: usize) -> Vec<(usize, Vec<&str>)> {
    let mut place = from;
    let lines = text[from..].split_inclusive('\n').map(|line| {
        place += line.len();
        (place - line.len(), line.trim_start_matches("//!").trim())
    });
    let rows = lines.skip_while(|(_, line)| !line.starts_with('|')).take_while(|(_, line)| line.starts_with('|'));
    rows.skip(2).map(|(place, line)| (place, cells(line))).collect()
}

/// Cells of a row; a bar after a backslash is part of one.
fn cells(row: &str) -> Vec<&str> {
    let bars = row.match_indices('|').map(|(bar, _)| bar);
    let bars: Vec<usize> = bars.filter(|&bar| !row[..bar].ends_with('\\')).collect();
    bars.windows(2).map(|pair| row[pair[0] + 1..pair[1]].trim()).collect()
}

/// Code as long as it was, with blanks for comments and for what stands in literals.
pub(super) fn stripped(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kept = kept(&code, rest);
        let length = if kept > 0 { kept } else { blanked(rest, first) };
        let (part, later) = rest.split_at(length);
        if kept > 0 {
            code.push_str(part);
        } else {
            code.extend(part.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        }
        rest = later;
    }
    code
}

/// How much of the text is code, at least up to the next place where a comment or literal may start.
fn kept(before: &str, rest: &str) -> usize {
    let starts = rest.starts_with("//") || rest.starts_with("/*") || rest.starts_with('"') || is_character(rest);
    let within_word = before.ends_with(|last: char| last.is_alphanumeric() || last == '_');
    if starts || !within_word && raw_quote(rest).is_some() {
        return 0;
    }
    rest.chars().next().map_or(0, char::len_utf8)
}

/// How long the comment or literal at the start of the text is.
fn blanked(rest: &str, first: char) -> usize {
    let until = |end: &str, from: usize| rest[from..].find(end).map_or(rest.len(), |place| from + place + end.len());
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return until("*/", 2);
    }
    if let Some(hashes) = raw_quote(rest) {
        return until(&format!("\"{}", "#".repeat(hashes)), hashes + 2);
    }
    // A string or character: up to its own quotation mark, unless that is escaped.
    let mut escaped = false;
    let end = rest.char_indices().skip(1).find(|&(_, character)| {
        let ends = character == first && !escaped;
        escaped = character == '\\' && !escaped;
        ends
    });
    end.map_or(rest.len(), |(place, _)| place + 1)
}

/// The hashes of a raw string that starts here.
fn raw_quote(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// Whether a character starts here, rather than a lifetime.
fn is_character(rest: &str) -> bool {
    let mut characters = rest.chars();
    if characters.next() != Some('\'') {
        return false;
    }
    match characters.next() {
        Some('\\') => true,
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

/// Stripped code with blanks for items that are compiled for tests only.
pub(super) fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut kept = code.to_string();
    while let Some(start) = kept.find(MARK) {
        let body = start + MARK.len();
        let length = item(&kept[body..]);
        let blank: String =
            kept[start..body + length].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect();
        kept.replace_range(start..body + length, &blank);
    }
    kept
}

/// How long the item at the start of the code is: to its semicolon, or to the end of its block.
fn item(code: &str) -> usize {
    let mut depth = 0usize;
    let end = code.char_indices().find(|(_, character)| {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(character, '}' | ';')
    });
    end.map_or(code.len(), |(place, _)| place + 1)
}

/// Identifiers of a code or text, with their places.
pub(super) fn identifiers(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let mut place = 0;
    code.split_inclusive(move |character| !is_part(character)).filter_map(move |piece| {
        let start = place;
        place += piece.len();
        let word = piece.trim_end_matches(|character| !is_part(character));
        (!word.is_empty()).then_some((start, word))
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A tree of these files.
    pub(in crate::check) fn tree(files: &[(&str, &str)]) -> Tree {
        Tree { texts: files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect() }
    }

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay() {
        let text = "a // b\n\"c \\\" d\" e /* f\n g */ 'h' '\\'' <'i> r#\"j \" k\"# l \"é\" for\"m\" b'n'";
        let code = stripped(text);
        assert_eq!(code.len(), text.len());
        assert_eq!(code.matches('\n').count(), 2);
        assert_eq!(identifiers(&code).map(|(_, word)| word).collect::<Vec<_>>(), ["a", "e", "i", "l", "for", "b"]);
    }

    #[test]
    fn items_for_tests_are_blanked() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { {} }\n}\n#[cfg(test)]\nmod c;\nfn d() {}\n";
        let kept = without_tests(code);
        assert_eq!(identifiers(&kept).map(|(_, word)| word).collect::<Vec<_>>(), ["fn", "a", "fn", "d"]);
        assert_eq!(kept.len(), code.len());
    }

    #[test]
    fn tables_are_read_below_their_heads() {
        let text = "//! text\n//! | a | b |\n//! |---|---|\n//! | [`c`] | d |\n//! more\n";
        let rows = table(text, 0);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].1, ["[`c`]", "d"]);
        assert_eq!(at("f", text, rows[0].0, "").line, 4);
        assert_eq!(quoted(rows[0].1[0]).collect::<Vec<_>>(), ["c"]);
    }
}

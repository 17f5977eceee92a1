//! The README's figures are those of the newest results: docs/figures.md holds its text, with the place of each figure in
//! braces, and is written into the README between two marks.
//!
//! `{flow / a / step* / ratio / .2}` is the field `ratio`, with two digits after the point, of the line of case `a` whose `what`
//! starts with `step`, in the newest `bench/results/DATE-flow.jsonl` that has one. A text that does not end with `*` must be all
//! of it, but for remarks in parentheses; where several lines fit, the largest number counts. `largest` is the number of
//! such a remark, `(largest 0.5)`. `{figure3 / 16,vti / f1_mean / .2}` is the column `f1_mean` of the row that starts with `16,vti`
//! in the newest `bench/results/paper/DATE-figure3/summary.csv`, and `{figure3}` the name of its folder.
//! Formats: `.2` digits after the point, `g1` digits that count (very small numbers as `8e-13`), `min.1` minutes of seconds,
//! `1/.0` one divided by it.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::Violation;
use super::tree::{Tree, at};

const PAGE: &str = "docs/figures.md";
const README: &str = "README.md";
const RESULTS: &str = "bench/results/";
/// In the README, around what is written.
const START: &str = "<!-- figures: docs/figures.md, written by `cargo xtask check --write` -->\n";
const END: &str = "<!-- end of figures -->\n";
/// Digits after the point, of which all but the last are zeros, that can be read at a glance.
const MOST_ZEROS: i32 = 8;
/// The text in the page starts after this.
const TEXT: &str = "-->\n";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let readme = tree.text(README);
    let (start, shown) = match between(readme) {
        Ok(found) => found,
        Err(error) => return vec![at(README, readme, 0, error.to_string())],
    };
    let text = match rendered(tree) {
        Ok(text) => text,
        Err(error) => return vec![at(PAGE, tree.text(PAGE), 0, format!("{error:#}"))],
    };
    let mut place = start;
    let mut wanted = text.split_inclusive('\n');
    for line in shown.split_inclusive('\n') {
        let right = wanted.next().unwrap_or_default();
        if line != right {
            let what = format!(
                "{PAGE} and the newest results make this line “{}”; run `cargo xtask check --write`",
                right.trim_end()
            );
            return vec![at(README, readme, place, what)];
        }
        place += line.len();
    }
    let missing =
        wanted.next().map(|line| at(README, readme, place, format!("the line “{}” is missing", line.trim_end())));
    missing.into_iter().collect()
}

/// Writes the figures into the README.
pub(super) fn write(tree: &Tree, root: &Path) -> Result<()> {
    let readme = tree.text(README);
    let (start, shown) = between(readme)?;
    let text = format!("{}{}{}", &readme[..start], rendered(tree)?, &readme[start + shown.len()..]);
    std::fs::write(root.join(README), text).with_context(|| format!("could not write {README}"))
}

/// What stands between the marks, and where.
fn between(readme: &str) -> Result<(usize, &str)> {
    let marks = || format!("the lines `{}` and `{}` must be around the figures", START.trim_end(), END.trim_end());
    let start = readme.find(START).with_context(marks)? + START.len();
    let length = readme[start..].find(END).with_context(marks)?;
    Ok((start, &readme[start..start + length]))
}

/// The text with its figures.
fn rendered(tree: &Tree) -> Result<String> {
    let page = tree.text(PAGE);
    let start = page.find(TEXT).context("the text must follow a comment that says what the page is")?;
    let mut rest = &page[start + TEXT.len()..];
    let mut text = String::new();
    while let Some((before, later)) = rest.split_once('{') {
        let (asked, after) = later.split_once('}').with_context(|| format!("a brace is open: {{{later}"))?;
        let figure = figure(tree, asked).with_context(|| format!("{{{asked}}}"))?;
        write!(text, "{before}{figure}")?;
        rest = after;
    }
    Ok(text + rest)
}

fn figure(tree: &Tree, asked: &str) -> Result<String> {
    match asked.split(" / ").collect::<Vec<_>>()[..] {
        [experiment] => Ok(newest(tree, experiment)?.0.into()),
        [experiment, row, column, format] => shown(of_table(newest(tree, experiment)?.1, row, column)?, format),
        [bench, case, what, field, format] => shown(of_bench(tree, bench, case, what, field)?, format),
        _ => bail!("a figure has one, four or five parts"),
    }
}

/// The newest folder of an experiment, and its table.
fn newest<'a>(tree: &'a Tree, experiment: &str) -> Result<(&'a str, &'a str)> {
    let tables = tree.below(RESULTS).filter_map(|(path, text)| {
        let folder = path.strip_prefix(RESULTS)?.strip_prefix("paper/")?.strip_suffix("/summary.csv")?;
        (name(folder) == Some(experiment)).then_some((folder, text))
    });
    tables.last().context("there are no such results")
}

/// Results are named by their date and what they are of: 2026-11-15-flow.
fn name(dated: &str) -> Option<&str> {
    dated.get("2026-11-15-".len()..)
}

fn of_table(table: &str, row: &str, column: &str) -> Result<f64> {
    let mut lines = table.lines();
    let place = lines.next().and_then(|head| head.split(',').position(|name| name == column));
    let line = lines.find(|line| line.strip_prefix(row).is_some_and(|rest| rest.starts_with(',')));
    let cell = line.context("there is no such row")?.split(',').nth(place.context("there is no such column")?);
    cell.unwrap_or_default().parse().context("the cell is not a number")
}

/// From the newest run that has the case.
fn of_bench(tree: &Tree, bench: &str, case: &str, what: &str, field: &str) -> Result<f64> {
    let runs = tree.below(RESULTS).filter(|(path, _)| {
        let dated = path.strip_prefix(RESULTS).and_then(|path| path.strip_suffix(".jsonl"));
        dated.and_then(name) == Some(bench)
    });
    for (_, run) in runs.collect::<Vec<_>>().into_iter().rev() {
        let lines: Vec<Value> = run.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_string();
        let fits = |line: &&Value| matches(&text(line, "case"), case) && matches(&text(line, "what"), what);
        let numbers: Vec<f64> = lines.iter().filter(fits).filter_map(|line| number(line, field)).collect();
        if let Some(largest) = numbers.into_iter().reduce(f64::max) {
            return Ok(largest);
        }
    }
    bail!("no results have such a line")
}

/// Whether a text is the wanted one, apart from remarks in parentheses at its end, or starts as it does.
fn matches(text: &str, wanted: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => text == wanted || text.split(" (").next() == Some(wanted),
    }
}

fn number(line: &Value, field: &str) -> Option<f64> {
    if field != "largest" {
        return line[field].as_f64();
    }
    line["what"].as_str()?.split_once("(largest ")?.1.split_once(')')?.0.parse().ok()
}

fn shown(value: f64, format: &str) -> Result<String> {
    let digits = |text: &str| text.parse::<usize>().with_context(|| format!("the format {format} is unknown"));
    if let Some(after_point) = format.strip_prefix('.') {
        return Ok(format!("{value:.*}", digits(after_point)?));
    }
    if let Some(format) = format.strip_prefix("min") {
        return shown(value / 60.0, format);
    }
    if let Some(format) = format.strip_prefix("1/") {
        return shown(1.0 / value, format);
    }
    let count = digits(format.strip_prefix('g').unwrap_or(format))?;
    ensure!(value > 0.0 && count > 0, "{value} has no leading digit");
    let after_point = (count as i32 - 1 - value.log10().floor() as i32).max(0);
    if after_point > MOST_ZEROS {
        return Ok(format!("{value:.*e}", count - 1));
    }
    Ok(format!("{value:.*}", after_point as usize))
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::tree;
    use super::*;

    const OLD: &str = r#"{"case":"a","what":"step: all","ours":2.0,"ratio":0.52}
{"case":"exact-3","what":"error (largest 1.08e-5)","ours":1e-6}
{"case":"exact-4","what":"error (largest 2e-6)","ours":2e-6}
{"case":"closed","what":"error (largest 7.6e-13)","ours":2e-13}"#;
    const NEW: &str = r#"{"case":"a","what":"step: all","ours":2.0,"ratio":0.5529}
{"case":"a","what":"products","ours":3.0,"ratio":0.1}"#;
    const TABLE: &str = "rows,method,f1\n16,vti,0.256\n16,vti-corrected,0.384\n";
    const TEXT: &str =
        "<!-- what this is -->\n## How fast\n\n| case | ratio |\n|---|---|\n| a | {flow / a / step* / ratio / .2} |\n";

    fn with(readme: &str, page: &str) -> Vec<Violation> {
        let readme = format!("# vti\n\n{START}{readme}{END}\nmore\n");
        check(&tree(&[
            (README, &readme),
            (PAGE, page),
            ("bench/results/2026-11-14-flow.jsonl", OLD),
            ("bench/results/2026-11-15-flow.jsonl", NEW),
            ("bench/results/2026-11-16-quality.jsonl", OLD),
            ("bench/results/paper/2026-11-14-figure3/summary.csv", "rows,method,f1\n16,vti,0.1\n"),
            ("bench/results/paper/2026-11-16-figure3/summary.csv", TABLE),
            ("bench/results/paper/2026-11-17-figure3-again/summary.csv", "rows,method,f1\n16,vti,0.9\n"),
        ]))
    }

    #[test]
    fn stale_figures_are_found() {
        let table = |ratio: &str| format!("## How fast\n\n| case | ratio |\n|---|---|\n| a | {ratio} |\n");
        assert_eq!(with(&table("0.55"), TEXT), []);
        let found = with(&table("0.52"), TEXT);
        assert!(found.len() == 1 && found[0].line == 8 && found[0].text.contains("“| a | 0.55 |”"), "{found:?}");
        assert!(with("", TEXT)[0].text.contains("“## How fast” is missing"));
        assert!(check(&tree(&[(README, "0.52"), (PAGE, TEXT)]))[0].text.contains("must be around the figures"));
    }

    #[test]
    fn figures_come_from_lines_and_tables() {
        for (asked, figure) in [
            ("{flow / a / step: all / ours / 1/.2}", "0.50"),
            ("{flow / exact-* / error / largest / g1}", "0.00001"),
            ("{quality / closed / error / largest / g1}", "8e-13"),
            ("{quality / exact-4 / error / ours / .6}", "0.000002"),
            ("{flow / a / products / ours / min.2}", "0.05"),
            ("{figure3 / 16,vti / f1 / .2} in {figure3}", "0.26 in 2026-11-16-figure3"),
        ] {
            assert_eq!(with(&format!("{figure}\n"), &format!("<!-- -->\n{asked}\n")), [], "{asked}");
        }
        for (asked, why) in [
            ("{flow / b / step / ratio / .2}", "no results have such a line"),
            ("{figure5 / 16,vti / f1 / .2}", "there are no such results"),
            ("{figure3 / 16,vti / f2 / .2}", "there is no such column"),
            ("{flow / a / step* / ratio / two}", "the format two is unknown"),
        ] {
            let found = with("", &format!("<!-- -->\n{asked}\n"));
            assert!(found.len() == 1 && found[0].text.contains(why), "{asked}: {found:?}");
        }
    }
}

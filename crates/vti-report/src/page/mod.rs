//! The page: sections in the order in which one reads them.
//!
//! It is written so that it is also well-formed XML, which is how the tests read it.

mod bars;
mod coefficients;
mod graph;
mod inclusion;
mod joint;
mod models;
mod table;
mod top;
mod trace;

use std::fmt::Write;

use crate::input::Report;
use crate::markup::escape;
use crate::plot::{Colour, PALETTE, PALETTE_DARK};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("sort.js");
const GRAPH_STYLE: &str = include_str!("graph/graph.css");
const GRAPH_SCRIPT: &str = include_str!("graph/graph.js");

/// Colours of the grounds, lines and levels of trust, for light and dark surroundings.
const LIGHT: &str = "--ground:#f6f7f8;--card:#fff;--ink:#1d2125;--muted:#5c6670;--line:#e1e5e8;--grid:#e8ebee;\
    --frame:#a9b1b8;--good:#1a7f4b;--good-ground:#e8f5ee;--fair:#b07800;--fair-ground:#fdf5e0;\
    --bad:#c0322b;--bad-ground:#fdecea;";
const DARK: &str = "--ground:#14171a;--card:#1c2024;--ink:#e6e9ec;--muted:#9aa5af;--line:#31373d;--grid:#2b3136;\
    --frame:#59636c;--good:#43c083;--good-ground:#152a20;--fair:#e3ad3a;--fair-ground:#2e2612;\
    --bad:#ff7b72;--bad-ground:#331a19;";

/// Colours of what was learned and of its correction, the same in all plots; exact values are in the colour of text.
const LEARNED: Colour = Colour::Series(0);
const CORRECTED: Colour = Colour::Series(1);

/// The report as one HTML page that needs no other file.
///
/// The same report always gives the same page. Sections without data are left out; numbers that are not finite are shown
/// as a dash.
///
/// ```
/// use vti_report::{Report, page};
///
/// let report = Report { title: "Which covariates matter?".into(), ..Report::default() };
/// assert!(page(&report).contains("<h1>Which covariates matter?</h1>"));
/// ```
pub fn page(report: &Report) -> String {
    let sections = [
        ("graph", "Graph", graph::drawing(report)),
        ("edges", "Edges", graph::edges(report)),
        ("truth", "Truth", graph::truth(report)),
        ("inclusion", "Inclusion", inclusion::section(report)),
        ("models", "Models", models::section(report)),
        ("order", "Order", graph::order(report)),
        ("coefficients", "Coefficients", coefficients::section(report)),
        ("pairs", "Leading model", joint::section(report)),
        ("training", "Training", trace::section(report)),
        ("settings", "Settings", settings(report)),
    ];
    let mut links = String::new();
    let mut body = String::new();
    for (id, name, content) in sections {
        if let Some(content) = content {
            let _ = write!(links, "<a href=\"#{id}\">{name}</a>");
            let _ = writeln!(body, "<section id=\"{id}\">{content}</section>");
        }
    }
    let (graph_style, graph_script) =
        if report.graph.is_some() { (GRAPH_STYLE, GRAPH_SCRIPT) } else { Default::default() };
    let title = if report.title.is_empty() { "Report" } else { &report.title };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{}</title>\n\
         <style>\n{}{STYLE}{graph_style}</style>\n</head>\n<body>\n<header>\n{}{}</header>\n<main>\n{body}</main>\n\
         <footer>{}</footer>\n<script>\n{SCRIPT}{graph_script}</script>\n</body>\n</html>\n",
        escape(title),
        colours(),
        top::header(report, title),
        if links.is_empty() { links } else { format!("<nav aria-label=\"Sections\">{links}</nav>\n") },
        footer(report),
    )
}

/// The colours as variables. Print is always light.
fn colours() -> String {
    let series = |palette: &[&str]| -> String {
        palette.iter().enumerate().map(|(i, colour)| format!("--s{i}:{colour};")).collect()
    };
    format!(
        ":root {{ {LIGHT}{} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {DARK}{} }} }}\n",
        series(&PALETTE),
        series(&PALETTE_DARK)
    )
}

/// What `exact` is called here; `None` where nothing exact is known.
fn exact_name(report: &Report) -> Option<&str> {
    let mut all = report
        .models
        .iter()
        .map(|row| row.probability)
        .chain(report.inclusion.iter().map(|row| row.probability))
        .chain(report.coefficients.iter().map(|row| row.mean))
        .chain(report.graph.iter().flat_map(|graph| graph.edges.iter().flatten().copied()));
    all.any(|comparison| comparison.exact.is_some()).then(|| report.exact_name.as_deref().unwrap_or("exact"))
}

/// A name without its remark in brackets, for headings of columns.
fn short(name: &str) -> &str {
    name.split_once(" (").map_or(name, |(head, _)| head)
}

fn settings(report: &Report) -> Option<String> {
    let text = report.settings.trim_end();
    let shown = format!(
        "<details><summary><h2>Settings</h2></summary><p class=\"caption\">All settings as they were used, including \
         those left at their defaults.</p><pre>{}</pre></details>",
        escape(text)
    );
    (!text.is_empty()).then_some(shown)
}

fn footer(report: &Report) -> String {
    let correction = match report.correction.as_str() {
        "" => "weighs draws from q by how probable the posterior finds them",
        given => given,
    };
    let mut text = format!(
        "<p><strong>How to read the three numbers.</strong> <em>q</em> is what the learned density says by itself. \
         <em>Corrected</em> {}; its standard error says how much another set of draws would change it.",
        escape(correction)
    );
    if let Some(name) = exact_name(report) {
        let _ = write!(text, " <em>{}</em> was computed without q, for comparison.", escape(name));
    }
    text.push_str("</p>");
    if !report.version.is_empty() {
        let _ = write!(text, "<p>Made by vti {}.</p>", escape(&report.version));
    }
    text
}

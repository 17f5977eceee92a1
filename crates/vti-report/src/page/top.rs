//! What is seen first: the question, the verdict, the key figures, the warnings.

use std::fmt::Write;

use crate::input::{Level, Report};
use crate::markup::escape;

pub(super) fn header(report: &Report, title: &str) -> String {
    let mut html = format!("<h1>{}</h1>\n", escape(title));
    if !report.subtitle.is_empty() {
        let _ = writeln!(html, "<p class=\"subtitle\">{}</p>", escape(&report.subtitle));
    }
    html + &verdict(report) + &facts(report) + &warnings(report)
}

/// Colour, sign and words say the same.
fn verdict(report: &Report) -> String {
    let (class, word, sign) = match report.verdict.level {
        Level::Trust => ("trust", "Trust it: q can be used as it is", "M10 18.5l5.5 5.5L27 12"),
        Level::Corrected => ("corrected", "Use the corrected numbers", "M10 15c4-5 7 4 17-1M10 23c4-5 7 4 17-1"),
        Level::DoNotTrust => ("do-not-trust", "Do not trust these numbers", "M12 12l12 12M24 12L12 24"),
    };
    format!(
        "<div class=\"verdict {class}\" role=\"status\">\
         <svg width=\"36\" height=\"36\" viewBox=\"0 0 36 36\" aria-hidden=\"true\" fill=\"none\" stroke=\"currentColor\" \
         stroke-width=\"3\" stroke-linecap=\"round\" stroke-linejoin=\"round\"><circle cx=\"18\" cy=\"18\" r=\"16\"/>\
         <path d=\"{sign}\"/></svg><div><strong>{word}</strong>{}</div></div>\n",
        escape(&report.verdict.text)
    )
}

fn facts(report: &Report) -> String {
    let one = |fact: &crate::input::Fact| {
        let note = match fact.note.as_str() {
            "" => String::new(),
            note => format!("<dd class=\"note\">{}</dd>", escape(note)),
        };
        // A line may end before an error, but not within it.
        let (name, value) = (escape(&fact.name), escape(&fact.value.replace("± ", "±\u{a0}")));
        format!("<dl class=\"fact\"><dt>{name}</dt><dd class=\"value\">{value}</dd>{note}</dl>")
    };
    if report.facts.is_empty() {
        return String::new();
    }
    format!("<div class=\"facts\">{}</div>\n", report.facts.iter().map(one).collect::<String>())
}

fn warnings(report: &Report) -> String {
    if report.warnings.is_empty() {
        return String::new();
    }
    let items: String = report.warnings.iter().map(|warning| format!("<li>{}</li>", escape(warning))).collect();
    let title = if report.warnings.len() == 1 { "One warning" } else { "Warnings" };
    format!("<div class=\"warnings\"><strong>⚠ {title}</strong><ul>{items}</ul></div>\n")
}

//! The answer for people.

use crate::summary::{Coefficient, Found, Inclusion, Method, ModelSummary, SelectFound, Summary};

/// Models that are listed.
const MODELS: usize = 8;

/// Columns of text, the first to the left and the others to the right.
fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let space = " ".repeat(width - cell.chars().count());
            if column == 0 { format!("{cell}{space}") } else { format!("{space}{cell}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn row(cells: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    cells.into_iter().map(Into::into).collect()
}

/// Four digits behind the point, or so many that count.
fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-3..1e5).contains(&size) { format!("{value:.4}") } else { format!("{value:.3e}") }
}

fn with_error(value: f64, se: f64) -> String {
    format!("{} ± {}", number(value), number(se))
}

fn probability(value: f64) -> String {
    format!("{value:.4}")
}

/// Everything.
pub(crate) fn text(summary: &Summary) -> String {
    let corrected = match summary.correction {
        Method::Weights => "corrected",
        Method::Chains => "by chains",
    };
    let sections = match &summary.found {
        Found::Select(found) => select(summary, found, corrected),
    };
    sections.into_iter().chain([closing(summary)]).collect::<Vec<_>>().join("\n\n")
}

fn header(first: &str, corrected: &str, exact: bool) -> Vec<String> {
    let mut header = row([first, "q", corrected]);
    header.extend(exact.then(|| "exact".to_string()));
    header
}

/// What a selection found.
fn select(summary: &Summary, found: &SelectFound, corrected: &str) -> Vec<String> {
    let models = format!(
        "{}\nhighest-probability model: {}\nmedian-probability model:  {}",
        models(summary, "model", corrected),
        found.highest_probability_model,
        found.median_probability_model
    );
    vec![inclusion(summary, found, corrected), models, coefficients(&found.coefficients.0, corrected)]
}

fn inclusion(summary: &Summary, found: &SelectFound, corrected: &str) -> String {
    let line = |(name, found): &(String, Inclusion)| {
        let mut cells = vec![name.clone(), probability(found.q), with_probability(found.corrected, found.se)];
        cells.extend(found.exact.map(probability));
        cells
    };
    let head = header("inclusion probability", corrected, summary.exact.is_some());
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(found.inclusion.0.iter().map(line)).collect();
    align(&rows)
}

fn with_probability(value: f64, se: f64) -> String {
    format!("{value:.4} ± {se:.4}")
}

fn models(summary: &Summary, name: &str, corrected: &str) -> String {
    let line = |model: &ModelSummary| {
        let mut cells = vec![model.label.clone(), probability(model.q), with_probability(model.corrected, model.se)];
        cells.extend(model.exact.map(probability));
        cells
    };
    let head = header(name, corrected, summary.exact.is_some());
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(summary.models.iter().take(MODELS).map(line)).collect();
    align(&rows)
}

fn coefficients(found: &[(String, Coefficient)], corrected: &str) -> String {
    let line = |(name, found): &(String, Coefficient)| {
        let Coefficient { q, corrected, se, sd, interval: [low, high] } = *found;
        vec![name.clone(), number(q), with_error(corrected, se), number(sd), number(low), number(high)]
    };
    let head = row(["averaged over models", "q", corrected, "sd", "2.5 %", "97.5 %"]);
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(found.iter().map(line)).collect();
    align(&rows)
}

fn closing(summary: &Summary) -> String {
    let evidence = &summary.log_evidence;
    let mut lines = vec![format!("log evidence: {:.4} ± {:.4}", evidence.estimate, evidence.se)];
    if let Some(exact) = &summary.exact {
        lines[0] += &format!(", exact {:.4}", exact.log_evidence);
        let distances = &exact.total_variation;
        lines.push(format!(
            "total variation to the exact model probabilities: {:.4} learned, {:.4} corrected",
            distances.q, distances.corrected
        ));
    }
    lines.extend(summary.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines.push(summary.verdict.text.clone());
    lines.join("\n")
}

/// A table for another command.
pub(crate) fn plain(rows: &[Vec<String>]) -> String {
    align(rows)
}

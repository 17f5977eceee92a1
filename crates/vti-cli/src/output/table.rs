//! The answer for people.

use crate::summary::{Coefficient, Inclusion, Method, ModelSummary, Summary};

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
    let sections =
        [inclusion(summary, corrected), models(summary, corrected), coefficients(summary, corrected), closing(summary)];
    sections.join("\n\n")
}

fn header(first: &str, corrected: &str, exact: bool) -> Vec<String> {
    let mut header = row([first, "q", corrected]);
    header.extend(exact.then(|| "exact".to_string()));
    header
}

fn inclusion(summary: &Summary, corrected: &str) -> String {
    let line = |(name, found): &(String, Inclusion)| {
        let mut cells = vec![name.clone(), probability(found.q), with_probability(found.corrected, found.se)];
        cells.extend(found.exact.map(probability));
        cells
    };
    let head = header("inclusion probability", corrected, summary.exact.is_some());
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(summary.inclusion.0.iter().map(line)).collect();
    align(&rows)
}

fn with_probability(value: f64, se: f64) -> String {
    format!("{value:.4} ± {se:.4}")
}

fn models(summary: &Summary, corrected: &str) -> String {
    let line = |model: &ModelSummary| {
        let mut cells = vec![model.label.clone(), probability(model.q), with_probability(model.corrected, model.se)];
        cells.extend(model.exact.map(probability));
        cells
    };
    let head = header("model", corrected, summary.exact.is_some());
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(summary.models.iter().take(MODELS).map(line)).collect();
    format!(
        "{}\nhighest-probability model: {}\nmedian-probability model:  {}",
        align(&rows),
        summary.highest_probability_model,
        summary.median_probability_model
    )
}

fn coefficients(summary: &Summary, corrected: &str) -> String {
    let line = |(name, found): &(String, Coefficient)| {
        let Coefficient { q, corrected, se, sd, interval: [low, high] } = *found;
        vec![name.clone(), number(q), with_error(corrected, se), number(sd), number(low), number(high)]
    };
    let head = row(["averaged over models", "q", corrected, "sd", "2.5 %", "97.5 %"]);
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(summary.coefficients.0.iter().map(line)).collect();
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

//! The answer for people.

use crate::summary::{
    BetterWord, Coefficient, DagFound, EdgesSummary, Found, Inclusion, Method, ModelSummary, SelectFound, Summary,
    TruthSummary,
};

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
        Method::Weights | Method::Factors | Method::Annealed => "corrected",
        Method::Chains => "by chains",
    };
    let sections = match &summary.found {
        Found::Select(found) => select(summary, found, corrected),
        Found::Dag(found) => dag(summary, found, corrected),
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
    vec![
        inclusion(summary, found, corrected),
        models,
        coefficients("averaged over models", &found.coefficients.0, corrected),
    ]
}

/// Edges that are less probable are not listed.
const LIKELY: f64 = 0.1;

/// Edges that are listed at most.
const EDGES: usize = 30;

/// What was found about causal graphs.
fn dag(summary: &Summary, found: &DagFound, corrected: &str) -> Vec<String> {
    let mut sections = vec![edges(&found.edges, corrected)];
    let class = &found.graph.cpdag;
    sections.push(format!(
        "{}\nexpected number of edges: {:.2}\nof the {} edges of the most probable graph, {} have the same direction in all \
         Markov equivalent graphs",
        models(summary, "graph", corrected),
        found.graph.expected_edges,
        found.graph.most_probable.len(),
        class.directed.len(),
    ));
    sections.extend(found.coefficients.as_ref().map(|weights| {
        let weights: Vec<(String, Coefficient)> =
            weights.0.iter().filter(|(name, _)| is_likely(&found.edges, name)).cloned().collect();
        coefficients("weight, averaged over graphs", &weights, corrected)
    }));
    sections.extend(found.truth.as_ref().map(|found| truth(found, corrected)));
    sections
}

fn edges(found: &EdgesSummary, corrected: &str) -> String {
    let ranked = found.ranked();
    let likely: Vec<_> = ranked.iter().filter(|edge| edge.corrected >= LIKELY).collect();
    let mut head = row(["edge", "q", corrected, "reversed", "none"]);
    head.extend(found.exact.as_ref().map(|_| "exact".to_string()));
    let line = |edge: &&crate::summary::Edge| {
        let mut cells = vec![
            format!("{}→{}", found.nodes[edge.from], found.nodes[edge.to]),
            probability(edge.q),
            with_probability(edge.corrected, edge.se),
            probability(edge.reverse),
            probability(edge.none),
        ];
        cells.extend(edge.exact.map(probability));
        cells
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(likely.iter().take(EDGES).map(line)).collect();
    let shown = likely.len().min(EDGES);
    let rest = format!("{} less probable edges are in edges.csv", ranked.len() - shown);
    if shown == 0 {
        format!("no edge has a probability of {LIKELY} or more; all {} are in edges.csv", ranked.len())
    } else if shown == ranked.len() {
        align(&rows)
    } else {
        format!("{}\n{rest}", align(&rows))
    }
}

/// Whether a weight is that of an edge that is listed.
fn is_likely(found: &EdgesSummary, weight: &str) -> bool {
    let name = |edge: &crate::summary::Edge| format!("{}→{}", found.nodes[edge.from], found.nodes[edge.to]);
    let listed = found.ranked();
    let mut listed = listed.iter().filter(|edge| edge.corrected >= LIKELY).take(EDGES);
    listed.any(|edge| name(edge) == weight)
}

/// How far the answer is from a known graph, every convention with its meaning.
fn truth(found: &TruthSummary, corrected: &str) -> String {
    let name = std::path::Path::new(&found.path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut head = row([format!("{name} ({} edges)", found.edges.len()).as_str(), "better", "q", corrected]);
    head.extend(found.baselines.iter().map(|baseline| baseline.name.clone()));
    let cell = |value: &Option<f64>| value.map_or_else(|| "–".into(), |value| format!("{value:.3}"));
    let mut rows = vec![head];
    for metric in &found.metrics {
        let better = match metric.better {
            BetterWord::Higher => "high",
            BetterWord::Lower => "low",
        };
        let mut cells = vec![metric.label.clone(), better.into(), cell(&metric.q), cell(&metric.corrected)];
        cells.extend(metric.baselines.iter().map(cell));
        rows.push(cells);
    }
    let meanings = found.metrics.iter().map(|metric| format!("{}: {}", metric.label, metric.meaning));
    format!("{}\n{}", align(&rows), meanings.collect::<Vec<_>>().join("\n"))
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

fn coefficients(name: &str, found: &[(String, Coefficient)], corrected: &str) -> String {
    let line = |(name, found): &(String, Coefficient)| {
        let Coefficient { q, corrected, se, sd, interval: [low, high] } = *found;
        vec![name.clone(), number(q), with_error(corrected, se), number(sd), number(low), number(high)]
    };
    let head = row([name, "q", corrected, "sd", "2.5 %", "97.5 %"]);
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

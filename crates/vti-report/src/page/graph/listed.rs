//! Graphs in the list of models: long lists of edges in few words, with all edges folded below.

use super::super::table::Cell;
use crate::markup::escape;

/// Up to this many edges are simply written.
const SHORT: usize = 10;
/// Of longer lists this many are shown unfolded.
const SHOWN: usize = 6;

/// A graph by its label, `a → b, b → c`: what it has more and less than the leading one where that is shorter.
pub(in super::super) fn listed(label: &str, leading: Option<&String>) -> Cell {
    let edges = edges(label);
    if edges.is_empty() {
        return Cell::html("(no edges)".into());
    }
    let whole = items(&edges);
    if edges.len() <= SHORT {
        return Cell::html(whole);
    }
    let summary = leading
        .and_then(|leading| changes(leading, &edges))
        .unwrap_or_else(|| format!("{} edges: {}", edges.len(), some(&edges)));
    Cell::html(format!("<details class=\"fold\"><summary>{summary}</summary><div>{whole}</div></details>"))
}

fn edges(label: &str) -> Vec<&str> {
    label.split(", ").filter(|edge| !edge.is_empty()).collect()
}

/// How a graph differs from the leading one; `None` where that takes as many words.
fn changes(leading: &str, edges: &[&str]) -> Option<String> {
    let old = self::edges(leading);
    let lost: Vec<&str> = old.iter().copied().filter(|edge| !edges.contains(edge)).collect();
    let gained: Vec<&str> = edges.iter().copied().filter(|edge| !old.contains(edge)).collect();
    let parts = [("without", &lost), ("with", &gained)].into_iter().filter(|(_, edges)| !edges.is_empty());
    let parts: Vec<String> = parts.map(|(word, edges)| format!("{word} {}", some(edges))).collect();
    let is_short = 2 * (lost.len() + gained.len()) <= edges.len();
    (is_short && !parts.is_empty()).then(|| format!("leading graph {}", parts.join("; ")))
}

/// The first few.
fn some(edges: &[&str]) -> String {
    if edges.len() <= SHOWN + 1 {
        return items(edges);
    }
    format!("{} and {} more", items(&edges[..SHOWN]), edges.len() - SHOWN)
}

/// Edges that are not broken over lines where they fit on one.
fn items(edges: &[&str]) -> String {
    let item = |(index, edge): (usize, &&str)| {
        let comma = if index + 1 < edges.len() { "," } else { "" };
        format!("<span class=\"item\">{}{comma}</span>", escape(edge))
    };
    edges.iter().enumerate().map(item).collect::<Vec<_>>().join(" ")
}

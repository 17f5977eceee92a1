//! Graphs in the list of models: long lists of edges in few words, with all edges folded below.

use super::super::table::Cell;
use crate::edge_list::{SHORT, SHOWN, changes, edges};
use crate::markup::escape;

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
    let summary = match leading.and_then(|leading| changes(leading, &edges)) {
        None => format!("{} edges: {}", edges.len(), some(&edges)),
        Some(changed) => {
            let parts = ["without", "with"].into_iter().zip(&changed).filter(|(_, edges)| !edges.is_empty());
            let parts: Vec<String> = parts.map(|(word, edges)| format!("{word} {}", some(edges))).collect();
            format!("leading graph {}", parts.join("; "))
        }
    };
    Cell::html(format!("<details class=\"fold\"><summary>{summary}</summary><div>{whole}</div></details>"))
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

//! How probable each edge is, in numbers.

use std::fmt::Write;

use super::super::bars::{Ruler, legend, number_cells, number_columns};
use super::super::corrected;
use super::super::table::{Cell, Column, Kind, folded};
use super::{HIDDEN_CAUSES, Known, matrix, said};
use crate::markup::escape;
use crate::number;

/// Edges shown unfolded, and at all.
const SHOWN: usize = 12;
const MAX_LISTED_EDGES: usize = 250;
/// Pairs less probably joined than this are not listed.
const LISTED: f64 = 0.001;
const LISTED_NOTE: &str = "are joined with a probability below 0.001";

pub(in super::super) fn section(known: &Known<'_>) -> Option<String> {
    if known.nodes < 2 || known.graphs.edges.probabilities.is_empty() {
        return None;
    }
    let framed = if known.truth.is_some() { " Framed cells are edges of the known graph." } else { "" };
    Some(format!(
        "<h2>Edge probabilities</h2><p class=\"caption\">Rows are causes, columns are effects: each cell is the{} \
         probability of the edge from its row to its column.{framed} Point at a cell for all its numbers. {HIDDEN_CAUSES}</p>{}{}",
        corrected(known.versions),
        heat_map(known),
        list(known)
    ))
}

fn heat_map(known: &Known<'_>) -> String {
    let names: Vec<&str> = (0..known.nodes).map(|node| known.name(node)).collect();
    matrix::matrix(&names, "Matrix of edge probabilities", |from, to| {
        let quantity = said::quantity(&known.quantity(from, to), known.versions);
        let is_true = known.is_true(from, to);
        let truth = is_true.map_or("", |is_true| if is_true { "\nin the truth" } else { "\nnot in the truth" });
        matrix::Cell {
            value: known.probability(from, to),
            title: format!("{}\n{quantity}{truth}", said::arrow(known, from, to)),
            is_framed: is_true == Some(true),
        }
    })
}

/// A row for each pair that may be joined, in its more probable direction.
fn list(known: &Known<'_>) -> String {
    let joined = |&(a, b): &(usize, usize)| known.weight(a, b) + known.weight(b, a);
    let more_probable = |(a, b): (usize, usize)| if known.weight(a, b) >= known.weight(b, a) { (a, b) } else { (b, a) };
    let mut edges: Vec<(usize, usize)> =
        known.pairs().filter(|pair| joined(pair) >= LISTED).map(more_probable).collect();
    edges.sort_by(|a, b| known.weight(b.0, b.1).total_cmp(&known.weight(a.0, a.1)));
    if edges.is_empty() {
        return "<p class=\"caption\">No edge has a probability worth listing.</p>".into();
    }
    let (unlikely, too_many) = (known.pairs().count() - edges.len(), edges.len().saturating_sub(MAX_LISTED_EDGES));
    edges.truncate(MAX_LISTED_EDGES);
    let with_effects = edges.iter().any(|&(from, to)| known.effect(from, to).is_some());
    let rows: Vec<Vec<Cell>> = edges.iter().map(|&edge| row(known, edge, with_effects)).collect();
    let more = format!("The other {} edges", rows.len().saturating_sub(SHOWN));
    let mut html = legend(known.versions) + &folded(&columns(known, with_effects), rows, SHOWN, &more);
    for (count, why) in [(too_many, "are less probable than these"), (unlikely, LISTED_NOTE)] {
        if count > 0 {
            let _ = write!(html, "<p class=\"caption\">Pairs that {why} and not listed: {count}.</p>");
        }
    }
    html
}

fn columns(known: &Known<'_>, with_effects: bool) -> Vec<Column> {
    let mut columns = vec![Column::new(Kind::Name, "edge"), Ruler::unit().column()];
    columns.extend(number_columns(known.versions));
    columns.extend(["reversed", "no edge"].map(|name| Column::new(Kind::Number, name)));
    if with_effects {
        columns.push(Column::new(Kind::Name, "effect"));
    }
    columns
}

fn row(known: &Known<'_>, (from, to): (usize, usize), with_effects: bool) -> Vec<Cell> {
    let quantity = known.quantity(from, to);
    let mut cells = vec![Cell::name(&said::arrow(known, from, to)), Ruler::unit().bars(&quantity, known.versions)];
    cells.extend(number_cells(&quantity, known.versions));
    for value in [known.probability(to, from), known.unjoined(from, to)] {
        cells.push(Cell::number(number::probability(value), value));
    }
    if with_effects {
        cells.push(Cell::html(escape(known.effect(from, to).unwrap_or_default())));
    }
    cells
}

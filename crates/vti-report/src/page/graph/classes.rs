//! Markov equivalence classes: what independences and interventions can tell.

use super::super::table::{Cell, Column, Kind, folded};
use super::{Known, said};
use crate::markup::escape;
use crate::number;

/// Classes and pairs shown unfolded.
const SHOWN: usize = 6;
/// Pairs that are less probably joined are not listed.
const JOINED: f64 = 0.05;

/// Beside every word of causes.
pub(in super::super) const HIDDEN_CAUSES: &str = "An arrow means a direct cause only if no hidden common cause stands behind \
    its two ends: the model assumes that everything which acts on two variables was measured.";

pub(in super::super) fn section(known: &Known<'_>) -> Option<String> {
    let classes = &known.graphs.graph.classes;
    if classes.leading.is_empty() {
        return None;
    }
    let how = if classes.is_exact { "summed over all graphs" } else { "from graphs that were drawn" };
    Some(format!(
        "<h2>Equivalence classes</h2><p class=\"caption\">Graphs with the same independences make a Markov equivalence class: \
         only interventions, the form of the equations and the prior tell them apart, and classes are what interventions leave. \
         A line without an arrow may point either way within its class; an arrow is compelled, all graphs of the class have it. \
         Probabilities are {how}; {} {} met. {HIDDEN_CAUSES}</p>{}{}",
        classes.met,
        if classes.met == 1 { "class was" } else { "classes were" },
        listed(known),
        pairs(known)
    ))
}

/// The leading classes.
fn listed(known: &Known<'_>) -> String {
    let columns = [
        Column::new(Kind::Name, "class"),
        Column::new(Kind::Number, "probability"),
        Column::new(Kind::Number, "graphs met"),
    ];
    let leading = &known.graphs.graph.classes.leading;
    let row = |found: &vti::answer::ProbableClass| {
        vec![
            Cell::html(escape(&found.class.label())),
            Cell::number(number::probability(found.probability), found.probability),
            Cell::number(found.graphs.to_string(), found.graphs as f64),
        ]
    };
    let rows: Vec<Vec<Cell>> = leading.iter().map(row).collect();
    let more = format!("The other {} classes", rows.len().saturating_sub(SHOWN));
    folded(&columns, rows, SHOWN, &more)
}

/// Pairs that may be joined, and how probably a direction is compelled.
fn pairs(known: &Known<'_>) -> String {
    let classes = &known.graphs.graph.classes;
    let at =
        |matrix: &[Vec<f64>], a: usize, b: usize| matrix.get(a).and_then(|row| row.get(b)).copied().unwrap_or(f64::NAN);
    let mut pairs: Vec<(f64, usize, usize)> = known
        .pairs()
        .map(|(a, b)| (at(&classes.joined, a, b), a, b))
        .filter(|(joined, ..)| *joined >= JOINED)
        .collect();
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    if pairs.is_empty() {
        return String::new();
    }
    let columns = [
        Column::new(Kind::Name, "pair"),
        Column::new(Kind::Number, "joined"),
        Column::new(Kind::Number, "compelled →"),
        Column::new(Kind::Number, "compelled ←"),
    ];
    let row = |&(joined, a, b): &(f64, usize, usize)| {
        let number = |value: f64| Cell::number(number::probability(value), value);
        vec![
            Cell::name(&said::line_between(known, a, b)),
            number(joined),
            number(at(&classes.compelled, a, b)),
            number(at(&classes.compelled, b, a)),
        ]
    };
    let rows: Vec<Vec<Cell>> = pairs.iter().map(row).collect();
    let more = format!("The other {} pairs", rows.len().saturating_sub(SHOWN));
    folded(&columns, rows, SHOWN, &more)
}

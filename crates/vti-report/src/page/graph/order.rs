//! Where nodes stand in the order of causes, and how many edges there are.

use vti::answer::Ordered;

use super::super::CORRECTED;
use super::{Known, matrix};
use crate::number;
use crate::plot::{Axis, Bar, Bars, Colour, Figure, Layer, Panel, Points, Rule};

/// Numbers of edges less probable than this are cut off at both ends.
const TAIL: f64 = 0.001;
/// Up to this many different numbers of edges each has its label.
const LABELLED: usize = 24;

pub(in super::super) fn section(known: &Known<'_>) -> Option<String> {
    let order = order(known);
    let parts = [positions(known, &order), edge_counts(known), ancestors(known, &order)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("<h2>Order of nodes and number of edges</h2>{}", parts.concat()))
}

/// Nodes by mean position; where that is not known, in the order of the data.
fn order(known: &Known<'_>) -> Vec<usize> {
    let place = |node: usize| {
        let positions = &known.graphs.graph.mean_position.0;
        positions.get(node).map(|(_, place)| *place).filter(|place| place.is_finite()).unwrap_or(f64::INFINITY)
    };
    let mut order: Vec<usize> = (0..known.nodes).collect();
    order.sort_by(|&a, &b| place(a).total_cmp(&place(b)));
    order
}

/// Mean position and expected number of parents, one line for each node.
fn positions(known: &Known<'_>, order: &[usize]) -> Option<String> {
    let numbers = |of: &Ordered<f64>| -> Vec<f64> { of.0.iter().map(|(_, value)| *value).collect() };
    let graph = &known.graphs.graph;
    let (positions, parents) = (numbers(&graph.mean_position), numbers(&graph.parents));
    let last = known.nodes.saturating_sub(1).max(1) as f64;
    let highest = parents.iter().copied().filter(|value| value.is_finite()).fold(1.0, f64::max);
    let figures = dots(known, order, "mean position", &positions, last)
        + &dots(known, order, "expected number of parents", &parents, highest);
    (!figures.is_empty()).then(|| {
        format!(
            "<p class=\"caption\">Position 0 comes first: nothing acts on what stands there. Nodes with nearly equal \
             positions are in no clear order.</p><div class=\"figures\">{figures}</div>"
        )
    })
}

/// One number for each node, the first node at the top; nothing where no number is known.
fn dots(known: &Known<'_>, order: &[usize], title: &str, values: &[f64], most: f64) -> String {
    let value = |node: usize| values.get(node).copied().unwrap_or(f64::NAN);
    if !(0..known.nodes).any(|node| value(node).is_finite()) {
        return String::new();
    }
    let upwards: Vec<usize> = order.iter().rev().copied().collect();
    let said = |&node: &usize| format!("{}: {title} {}", known.name(node), number::significant(value(node), 3));
    let dots = Points {
        points: upwards.iter().enumerate().map(|(place, &node)| (value(node), place as f64)).collect(),
        colour: CORRECTED,
        radius: 4.0,
        titles: upwards.iter().map(said).collect(),
        ..Points::default()
    };
    let panel = Panel {
        title: title.into(),
        x: Axis::linear("").within(-0.04 * most, 1.04 * most),
        y: Axis::names("", upwards.iter().map(|&node| known.name(node).to_owned()).collect()),
        layers: vec![dots.into()],
        ..Panel::default()
    };
    let height = (19.0 * known.nodes as f64).max(60.0);
    let figure = Figure { panels: vec![panel], panel_size: (290.0, height), ..Figure::default() };
    format!("<div>{}</div>", figure.inline(&format!("The {title} of each node")))
}

/// How probable each number of edges is.
fn edge_counts(known: &Known<'_>) -> Option<String> {
    let counts: Vec<(usize, f64)> =
        known.graphs.graph.edge_counts.iter().copied().filter(|(_, p)| p.is_finite() && *p >= TAIL).collect();
    let (first, last) = (counts.iter().map(|c| c.0).min()?, counts.iter().map(|c| c.0).max()?);
    let total: f64 = counts.iter().map(|(_, p)| p).sum();
    let mean = counts.iter().map(|(count, p)| *count as f64 * p / total).sum::<f64>();
    let truth = known.truth.as_ref().map(|edges| edges.len() as f64);
    let (x, offset) = if last - first < LABELLED && truth.is_none_or(|t| t >= first as f64 && t <= last as f64) {
        (Axis::names("number of edges", (first..=last).map(|count| count.to_string()).collect()), first as f64)
    } else {
        (Axis::linear("number of edges"), 0.0)
    };
    let bars = counts.iter().map(|&(count, p)| Bar { at: count as f64 - offset, value: p, error: None }).collect();
    let mut layers: Vec<Layer> = vec![Bars { bars, colour: CORRECTED, ..Bars::default() }.into()];
    if let Some(truth) = truth {
        let name = format!("known graph: {truth}");
        layers.push(Rule { at: truth - offset, upright: true, colour: Colour::Ink, dashed: true, name }.into());
    }
    let panel = Panel { x, y: Axis::linear("probability"), layers, ..Panel::default() };
    let width = (28.0 * (1.0 + (last - first) as f64)).clamp(240.0, 560.0);
    let figure = Figure { panels: vec![panel], panel_size: (width, 150.0), ..Figure::default() };
    Some(format!(
        "<div class=\"figures\"><div class=\"scroll\">{}</div><p class=\"caption beside\">Between {first} and {last} edges, \
         {} on average.</p></div>",
        figure.inline("Probability of each number of edges"),
        number::significant(mean, 3)
    ))
}

/// Who acts on whom, directly or through others; nodes in the order of their positions.
fn ancestors(known: &Known<'_>, order: &[usize]) -> Option<String> {
    let ancestor = &known.graphs.graph.ancestor;
    if ancestor.is_empty() || known.nodes < 2 {
        return None;
    }
    let names: Vec<&str> = order.iter().map(|&node| known.name(node)).collect();
    let map = matrix::matrix(&names, "Matrix of probabilities of being an ancestor", |row, column| {
        let (from, to) = (order[row], order[column]);
        let value = ancestor.get(from).and_then(|row| row.get(to)).copied().unwrap_or(f64::NAN);
        let title = format!(
            "{} acts on {}, directly or through others: {}",
            known.name(from),
            known.name(to),
            number::probability(value)
        );
        matrix::Cell { value, title, is_framed: false }
    });
    Some(format!(
        "<p class=\"caption\">The probability that a directed path leads from the row to the column: that the one acts on \
         the other, directly or through others, if no hidden common cause stands behind them. Nodes are sorted by their mean \
         position.</p>{map}"
    ))
}

//! What is said about nodes and edges when they are pointed at: a heading, then a line for each thing known.

use vti::answer::Quantity;

use super::super::Versions;
use super::lines::Line;
use super::{FAINT, Known};
use crate::number;

/// Parents or children named.
const NAMED: usize = 6;

/// One number as corrected, learned and exact, as far as there are such versions.
pub(super) fn quantity(of: &Quantity, versions: Versions) -> String {
    let corrected =
        versions.corrected.map(|name| format!("{name} {}", number::probability_with_error(of.corrected, of.se)));
    let q = versions.learned.then(|| format!("q {}", number::probability(of.q)));
    let exact = of.exact.zip(versions.exact).map(|(value, name)| format!("{name} {}", number::probability(value)));
    [corrected, q, exact].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// About both directions of the pair that `line` joins.
pub(super) fn line(known: &Known<'_>, line: &Line) -> String {
    let (from, to) = (line.from, line.to);
    let (mut text, [there, back]) = if line.is_directed {
        (arrow(known, from, to), ["this direction".to_owned(), "reversed".to_owned()])
    } else {
        (line_between(known, from, to), [arrow(known, from, to), arrow(known, to, from)])
    };
    if let Some(mark) = line.mark {
        text += &format!(" ({})", mark.name());
    }
    for (name, a, b) in [(&there, from, to), (&back, to, from)] {
        text += &format!("\n{name}: {}", quantity(&known.quantity(a, b), known.versions));
    }
    text += &format!("\nno edge: {}", number::probability(known.unjoined(from, to)));
    for (name, a, b) in [(&there, from, to), (&back, to, from)] {
        if let Some(effect) = known.effect(a, b) {
            text += &format!("\neffect, {name}: {effect}");
        }
    }
    text + "\nunless a hidden common cause stands behind both"
}

/// About a node.
pub(super) fn node(known: &Known<'_>, node: usize) -> String {
    let mut text = known.name(node).to_owned();
    let graph = &known.graphs.graph;
    let finite = |(_, value): &&(String, f64)| value.is_finite();
    if let Some((_, place)) = graph.mean_position.0.get(node).filter(finite) {
        let last = known.nodes.saturating_sub(1);
        text += &format!("\nmean position {} (first 0, last {last})", number::significant(*place, 3));
    }
    if let Some((_, parents)) = graph.parents.0.get(node).filter(finite) {
        text += &format!("\nexpected number of parents {}", number::significant(*parents, 3));
    }
    let causes = (0..known.nodes).filter(|&other| other != node).map(|other| (known.weight(other, node), other));
    let effects = (0..known.nodes).filter(|&other| other != node).map(|other| (known.weight(node, other), other));
    text + &neighbours(known, "causes", causes.collect())
        + &neighbours(known, "effects", effects.collect())
        + "\nunless a hidden common cause stands behind both"
}

fn neighbours(known: &Known<'_>, what: &str, mut others: Vec<(f64, usize)>) -> String {
    others.retain(|(weight, _)| *weight >= FAINT);
    others.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = others.len().saturating_sub(NAMED);
    let named = others.iter().take(NAMED);
    let mut named: Vec<String> =
        named.map(|(weight, other)| format!("{} {}", known.name(*other), number::probability(*weight))).collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    if named.is_empty() { format!("\nno probable {what}") } else { format!("\n{what}: {}", named.join(", ")) }
}

/// "a — b".
pub(super) fn line_between(known: &Known<'_>, a: usize, b: usize) -> String {
    format!("{} — {}", known.name(a), known.name(b))
}

/// "a → b".
pub(super) fn arrow(known: &Known<'_>, from: usize, to: usize) -> String {
    format!("{} → {}", known.name(from), known.name(to))
}

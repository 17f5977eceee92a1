//! The probability of every number of components.

use vti::answer::{Count, CountAnswer, Quantity};

use super::heading;
use crate::markup::escape;
use crate::number;
use crate::page::bars::{number_cells, number_columns};
use crate::page::table::{Cell, Column, Kind, folded};
use crate::page::{CORRECTED, Content, LEARNED, Versions};
use crate::plot::{Axis, Bar, Bars, Border, Colour, Figure, Layer, Marker, Panel, Points, dodge};

/// Numbers above which all probabilities are smaller than this are left out.
const SEEN: f64 = 5e-4;

/// Error bars reach so many standard errors to either side.
const REACH: f64 = 2.0;

/// Rows of the table that are not folded.
const SHOWN: usize = 12;

pub(in crate::page) fn numbers(content: &Content<'_>) -> Option<String> {
    let (count, versions) = (content.answer.found.count()?, content.versions);
    let found: Vec<(usize, &CountAnswer)> = count.numbers().collect();
    let seen = |(_, found): &(usize, &CountAnswer)| {
        let Quantity { q, corrected, exact, .. } = found.probability;
        [q, corrected, exact.unwrap_or(0.0)].into_iter().any(|value| value > SEEN)
    };
    let last = found.iter().rposition(seen)?;
    // One more shows that there is nothing to see.
    let shown = &found[..found.len().min(last + 2)];
    let plural = escape(&count.counted.plural);
    Some(format!(
        "<h2>How many {plural}?</h2><p class=\"caption\">{}</p><div class=\"figures\"><div>{}</div></div>{}",
        caption(count, versions),
        figure(count, shown, versions).inline(&format!("Probability of each number of {}", count.counted.plural)),
        table(count, &found, versions),
    ))
}

fn caption(count: &Count, versions: Versions) -> String {
    let mean = count.mean;
    let mean = match versions.corrected {
        Some(_) => number::with_error(mean.corrected, mean.se),
        None => number::significant(mean.corrected, 4),
    };
    let most = escape(&count.counted.number(count.most_probable));
    let bars = if versions.corrected.is_some() {
        format!(" Error bars reach {REACH} standard errors to either side.")
    } else {
        String::new()
    };
    format!("The most probable number: {most}; the mean number: {mean}.{bars}")
}

fn figure(count: &Count, found: &[(usize, &CountAnswer)], versions: Versions) -> Figure {
    let series = 1 + usize::from(versions.learned);
    let bars = |value: &dyn Fn(&Quantity) -> f64, place: usize, colour: Colour, name: &str, errors: bool| {
        let (offset, width) = dodge(series, place);
        // Bars stand at their place in the list, where the axis has the number.
        let bar = |(place, (_, found)): (usize, &(usize, &CountAnswer))| {
            let (value, reach) = (value(&found.probability), REACH * found.probability.se);
            let error = (errors && reach > 0.0).then_some(((value - reach).max(0.0), value + reach));
            Bar { at: place as f64 + offset, value, error }
        };
        let bars = found.iter().enumerate().map(bar).collect();
        let name = if series > 1 || versions.corrected.is_some() { name.into() } else { String::new() };
        Layer::from(Bars { bars, width: 0.94 * width, colour, name })
    };
    let mut layers = Vec::new();
    if versions.learned {
        layers.push(bars(&|found| found.q, 0, LEARNED, "learned (q)", false));
    }
    layers.push(bars(&|found| found.corrected, series - 1, CORRECTED, versions.corrected.unwrap_or("exact"), true));
    if let (Some(name), true) = (versions.exact, versions.corrected.is_some()) {
        let places = found.iter().enumerate();
        let points = places.filter_map(|(place, (_, found))| Some((place as f64, found.probability.exact?)));
        let points =
            Points { points: points.collect(), colour: Colour::Ink, marker: Marker::Square, ..Points::default() };
        layers.push(Points { radius: 4.0, name: name.into(), ..points }.into());
    }
    let prior = found.iter().enumerate().map(|(place, (_, found))| (place as f64, found.prior)).collect();
    let prior = Points { points: prior, colour: Colour::Muted, radius: 3.0, name: "prior".into(), ..Points::default() };
    layers.push(prior.into());
    let names = found.iter().map(|(number, _)| number.to_string()).collect();
    let panel = Panel {
        x: Axis::names(&format!("number of {}", count.counted.plural), names),
        y: Axis::linear("probability"),
        layers,
        border: Border::Grid,
        ..Panel::default()
    };
    let width = (54.0 * found.len() as f64).clamp(300.0, 760.0);
    Figure { panels: vec![panel], panel_size: (width, 210.0), ..Figure::default() }
}

fn table(count: &Count, found: &[(usize, &CountAnswer)], versions: Versions) -> String {
    let exactly = versions.corrected.is_some()
        && found.iter().any(|(_, found)| found.log_evidence.is_some_and(|log| log.exact.is_some()));
    let mut columns =
        vec![Column::new(Kind::Name, &heading(&count.counted.plural)), Column::new(Kind::Number, "prior")];
    columns.extend(number_columns(versions));
    columns.push(Column::new(Kind::Number, "log evidence"));
    columns.extend(exactly.then(|| Column::new(Kind::Number, "log evidence, exact")));
    let row = |(number, found): &(usize, &CountAnswer)| {
        let mut cells =
            vec![Cell::name(&number.to_string()), Cell::number(number::probability(found.prior), found.prior)];
        cells.extend(number_cells(&found.probability, versions));
        let (estimate, se) = found.log_evidence.map_or((f64::NAN, f64::NAN), |log| (log.estimate, log.se));
        let shown = if versions.learned { number::with_error(estimate, se) } else { number::tick(estimate, 0.001) };
        cells.push(Cell::number(shown, estimate));
        let exact = found.log_evidence.and_then(|log| log.exact).unwrap_or(f64::NAN);
        cells.extend(exactly.then(|| Cell::number(number::tick(exact, 0.001), exact)));
        cells
    };
    let rows: Vec<Vec<Cell>> = found.iter().map(row).collect();
    folded(&columns, rows, SHOWN, &format!("More {}", count.counted.plural))
}

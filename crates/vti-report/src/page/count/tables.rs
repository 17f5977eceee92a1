//! Components one by one, given how many there are.

use std::fmt::Write;

use vti::answer::{ComponentTable, Count, GivenCount, Marginal};

use super::heading;
use crate::markup::escape;
use crate::number;
use crate::page::Content;
use crate::page::table::{Cell, Column, Kind, folded};

/// Components shown unfolded.
const SHOWN: usize = 20;

pub(in crate::page) fn components(content: &Content<'_>) -> Option<String> {
    let count = content.answer.found.count()?;
    let has_rows = |given: &&GivenCount| given.tables.iter().any(|table| !table.rows.is_empty());
    let given: Vec<&GivenCount> = count.given.iter().filter(has_rows).collect();
    if given.is_empty() {
        return None;
    }
    let mut html = format!(
        "<h2>{}, one by one</h2><p class=\"caption\">Given how many there are, for the most probable numbers: mean, standard \
         deviation and central 90 % interval of each parameter.</p>",
        escape(&heading(&count.counted.plural))
    );
    for (place, given) in given.iter().enumerate() {
        // The most probable number is open, the others are folded.
        let open = if place == 0 { " open=\"open\"" } else { "" };
        let _ = write!(html, "<details{open}><summary>{}</summary>", escape(&summary(count, given)));
        given.tables.iter().filter(|table| !table.rows.is_empty()).for_each(|found| html.push_str(&table(found)));
        html.push_str("</details>");
    }
    Some(html)
}

fn summary(count: &Count, given: &GivenCount) -> String {
    let probability = count.components.get(&given.count.to_string());
    let probability = probability.map_or(f64::NAN, |found| found.probability.corrected);
    format!("Given {}: probability {}", count.counted.number(given.count), number::probability(probability))
}

fn table(found: &ComponentTable) -> String {
    let mut columns = vec![Column::new(Kind::Name, &found.component)];
    for parameter in &found.parameters {
        columns.push(Column::new(Kind::Number, parameter));
        columns.push(Column::new(Kind::Number, "sd"));
        columns.push(Column::new(Kind::Number, "90 % interval"));
    }
    let cells = |Marginal { mean, sd, interval: [low, high] }: &Marginal| {
        let interval = format!("{} to {}", number::significant(*low, 4), number::significant(*high, 4));
        [
            Cell::number(number::significant(*mean, 4), *mean),
            Cell::number(number::significant(*sd, 3), *sd),
            Cell::number(interval, *low),
        ]
    };
    let row = |(place, row): (usize, &Vec<Marginal>)| {
        std::iter::once(Cell::name(&(place + 1).to_string())).chain(row.iter().flat_map(cells)).collect()
    };
    let rows: Vec<Vec<Cell>> = found.rows.iter().enumerate().map(row).collect();
    let more = found.rows.len().saturating_sub(SHOWN);
    folded(&columns, rows, SHOWN, &format!("The other {more}"))
}

//! How many components there are, as text.

use vti::answer::{ComponentTable, Count, CountAnswer, GivenCount, Marginal, Quantity};

use super::{fixed, number, probability, row, table, with_error, with_probability};

/// Numbers less probable than this are not listed above the most probable one.
const LISTED: f64 = 5e-4;

/// Numbers given which components are listed.
const GIVEN: usize = 2;

/// Tables: every number of components, and the components given the leading ones. `corrected` as it is called here, unless all
/// is exact.
pub(super) fn count(found: &Count, is_learned: bool, corrected: Option<&str>) -> Vec<String> {
    let mut sections = vec![numbers(found, is_learned, corrected)];
    sections.extend(found.given.iter().take(GIVEN).filter_map(|given| components(found, given)));
    sections
}

fn numbers(found: &Count, is_learned: bool, corrected: Option<&str>) -> String {
    let all: Vec<(usize, &CountAnswer)> = found.numbers().collect();
    let is_seen = |(_, found): &(usize, &CountAnswer)| {
        let Quantity { q, corrected, exact, .. } = found.probability;
        [q, corrected, exact.unwrap_or(0.0)].into_iter().any(|value| value > LISTED)
    };
    let last = all.iter().rposition(is_seen).map_or(all.len(), |last| last + 1);
    let known = all.iter().any(|(_, found)| found.probability.exact.is_some());
    let mut head = vec![found.counted.plural.as_str(), "prior"];
    head.extend(is_learned.then_some("q"));
    head.extend(corrected);
    head.extend(known.then_some("exact"));
    head.push("log evidence");
    let line = |(count, answer): &(usize, &CountAnswer)| {
        let Quantity { q, corrected: value, se, exact } = answer.probability;
        let learned = is_learned.then(|| probability(q));
        let corrected_cell = corrected.map(|_| with_probability(value, se));
        let exact = known.then(|| probability(exact.unwrap_or(f64::NAN)));
        let evidence = answer.log_evidence.map_or_else(
            || fixed(f64::NAN, 4),
            |log| match (log.exact, corrected) {
                (Some(exact), _) => fixed(exact, 4),
                (None, None) => fixed(log.estimate, 4),
                (None, Some(_)) => with_error(log.estimate, log.se),
            },
        );
        let numbers = learned.into_iter().chain(corrected_cell).chain(exact).chain([evidence]);
        [count.to_string(), probability(answer.prior)].into_iter().chain(numbers).collect()
    };
    let rows: Vec<Vec<String>> = std::iter::once(row(head)).chain(all[..last].iter().map(line)).collect();
    let rest = match all.len() - last {
        0 => String::new(),
        more => format!("\n{more} less probable numbers are in summary.json"),
    };
    let mean = match corrected {
        Some(_) => with_error(found.mean.corrected, found.mean.se),
        None => number(found.mean.corrected),
    };
    format!("{}{rest}\nmost probable: {}; mean number: {mean}", table(&rows), found.counted.number(found.most_probable))
}

fn components(found: &Count, given: &GivenCount) -> Option<String> {
    let tables: Vec<String> = given.tables.iter().filter(|table| !table.rows.is_empty()).map(parameters).collect();
    let probability_of = found.components.get(&given.count.to_string());
    let held = probability(probability_of.map_or(f64::NAN, |found| found.probability.corrected));
    (!tables.is_empty())
        .then(|| format!("given {} (probability {held}):\n{}", found.counted.number(given.count), tables.join("\n")))
}

fn parameters(found: &ComponentTable) -> String {
    let mut head = vec![found.component.clone()];
    for name in &found.parameters {
        head.extend([name.as_str(), "sd", "5 %", "95 %"].map(String::from));
    }
    let line = |(place, row): (usize, &Vec<Marginal>)| {
        let numbers = row.iter().flat_map(|found| [found.mean, found.sd, found.interval[0], found.interval[1]]);
        std::iter::once((place + 1).to_string()).chain(numbers.map(number)).collect()
    };
    table(&std::iter::once(head).chain(found.rows.iter().enumerate().map(line)).collect::<Vec<_>>())
}

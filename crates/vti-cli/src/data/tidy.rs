//! Columns that say nothing are left out, dates become numbers, and missing values are treated; all of it is said.

use std::collections::HashSet;

use vti::answer::LeftOut;

use super::missing::{Missing, treat};
use super::raw::{Raw, RawColumn};
use super::{DataError, schema};
use crate::shown::shown;

/// A line about a column that does not take part.
pub(super) fn note(LeftOut { column, reason }: &LeftOut) -> String {
    let name = if column.is_empty() { "the first column".into() } else { shown(column) };
    format!("left out {name}: {reason}")
}

/// What is known about the columns beforehand.
pub(super) struct Known<'a> {
    /// None of a graph.
    pub(super) response: Option<&'a str>,
    /// Columns without which a row says nothing: the response, what is added to its predictor, its weight.
    pub(super) required: HashSet<&'a str>,
    /// Columns that somebody asked for by name: they are not left out silently.
    pub(super) named: HashSet<&'a str>,
    /// Texts and numbers that name categories.
    pub(super) categorical: HashSet<&'a str>,
    pub(super) missing: Missing,
}

/// What was done to a table.
#[derive(Debug, Default)]
pub(super) struct Tidied {
    pub(super) left_out: Vec<LeftOut>,
    pub(super) notes: Vec<String>,
}

/// Takes out the column of row names or numbers that pandas and R write before the others: it has no name, and whole
/// numbers or texts that are all different.
pub(super) fn take_index(raw: &mut Raw, named: &HashSet<&str>) -> Option<LeftOut> {
    let column = raw.columns.first()?;
    let is_unnamed = column.name.is_empty() || column.name == "Unnamed: 0";
    let is_whole = column.present_numbers().all(|number| number.fract() == 0.0);
    if !is_unnamed || named.contains(column.name.as_str()) || !is_whole || !all_different(column) {
        return None;
    }
    let column = raw.columns.remove(0).name;
    Some(LeftOut { column, reason: "it has no name and numbers or names the rows".into() })
}

/// No cell is missing, and no two are the same.
fn all_different(column: &RawColumn) -> bool {
    let texts: HashSet<&str> = column.texts().map(|(_, text)| text).collect();
    let numbers: HashSet<u64> = column.present_numbers().map(f64::to_bits).collect();
    texts.len() + numbers.len() == column.numbers.len()
}

/// Treats the columns that take part, which are all that are left.
pub(super) fn tidy(raw: &mut Raw, known: &Known<'_>) -> Result<Tidied, DataError> {
    let mut tidied = Tidied::default();
    for column in &mut raw.columns {
        if !known.categorical.contains(column.name.as_str()) && column.holds_dates() {
            column.read_dates();
        }
        if column.dates {
            tidied.notes.push(format!("{}: dates are read as days since 1970-01-01", shown(&column.name)));
        }
    }
    leave_out(raw, known, &mut tidied.left_out, says_nothing);
    tidied.notes.extend(treat(raw, known)?);
    // Rows that went may have been the ones that differed, or those with a value.
    leave_out(raw, known, &mut tidied.left_out, is_no_help);
    Ok(tidied)
}

fn leave_out(
    raw: &mut Raw,
    known: &Known<'_>,
    left_out: &mut Vec<LeftOut>,
    reason: fn(&RawColumn, &Known<'_>) -> Option<String>,
) {
    raw.columns.retain(|column| {
        let name = column.name.as_str();
        if Some(name) == known.response || known.named.contains(name) {
            return true;
        }
        let reason = reason(column, known);
        let is_kept = reason.is_none();
        left_out.extend(reason.map(|reason| LeftOut { column: name.into(), reason }));
        is_kept
    });
}

/// Why a column says nothing once missing values are treated, if it does: where it is missing may be all that matters.
fn is_no_help(column: &RawColumn, known: &Known<'_>) -> Option<String> {
    let missing = column.missing().count();
    match known.missing {
        Missing::Indicator if missing == column.numbers.len() => empty(column),
        Missing::Indicator if missing > 0 => None,
        _ => constant(column),
    }
}

fn empty(column: &RawColumn) -> Option<String> {
    (column.unusable.is_none() && !column.numbers.is_empty()).then(|| "it is empty, every cell is missing".into())
}

/// Why a column of one value says nothing, if it is one.
pub(super) fn constant(column: &RawColumn) -> Option<String> {
    let which = if column.missing().next().is_some() { "every cell that is there" } else { "every cell" };
    column.constant().map(|value| format!("it is constant, {which} is {}", shown(&value)))
}

/// Why a column says nothing, if it does.
fn says_nothing(column: &RawColumn, known: &Known<'_>) -> Option<String> {
    if column.unusable.is_some() {
        return None;
    }
    let missing = column.missing().count();
    if missing == column.numbers.len() {
        return empty(column);
    }
    // Whether a cell is there may be all that matters.
    if missing > 0 && known.missing == Missing::Indicator {
        return None;
    }
    let texts: HashSet<&str> = column.texts().map(|(_, text)| text).collect();
    let is_identifier = texts.len() > 2 && texts.len() + missing == column.numbers.len();
    if is_identifier && !known.categorical.contains(column.name.as_str()) && !schema::has_decimal_commas(column) {
        let (count, name) = (texts.len(), shown(&column.name));
        let hint =
            known.response.map_or_else(String::new, |_| format!(" (--categorical {name} takes them as categories)"));
        return Some(format!("it is an identifier, its {count} texts are all different{hint}"));
    }
    constant(column)
}

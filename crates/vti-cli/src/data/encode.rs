//! From the columns of a table to the numbers of terms.

use std::collections::HashMap;

use vti::problem::selection::Term;

use super::DataError;
use super::raw::{Cell, Raw, RawColumn};
use super::schema::{TermKind, TermSchema, truth};

/// Why a cell has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    Missing,
    /// A text where there should be a number.
    NotNumber,
    UnknownLevel,
    /// Nothing is proportional to it.
    NotPositive,
}

/// Terms of a table, and what could not be read.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) terms: Vec<Term>,
    /// Column, row and reason; the numbers of such a row are not numbers.
    pub(crate) unreadable: Vec<(String, usize, Reason)>,
}

/// The numbers of terms.
pub(super) fn encode(terms: &[TermSchema], raw: &Raw) -> Result<Encoded, DataError> {
    let columns = raw.by_name();
    let mut found = Encoded { terms: Vec::with_capacity(terms.len()), unreadable: Vec::new() };
    for term in terms {
        let values = match &term.kind {
            TermKind::Product { factors, pairs } => {
                let mut sides = Vec::with_capacity(factors.len());
                for factor in factors.iter() {
                    let mut values = base(&factor.term, &columns, raw, &mut found.unreadable)?;
                    values.iter_mut().for_each(|value| *value -= factor.centre);
                    sides.push(values);
                }
                products(&sides, pairs, raw.rows())
            }
            _ => base(term, &columns, raw, &mut found.unreadable)?,
        };
        found.terms.push(term.term(values));
    }
    // A cell may be part of several terms.
    found.unreadable.sort();
    found.unreadable.dedup();
    Ok(found)
}

/// The numbers of a term that is no product, one column after another.
fn base(
    term: &TermSchema,
    columns: &HashMap<&str, &RawColumn>,
    raw: &Raw,
    unreadable: &mut Vec<(String, usize, Reason)>,
) -> Result<Vec<f64>, DataError> {
    let Some(column) = columns.get(term.source()) else {
        let (file, name, names) = (raw.file.clone(), term.source().to_string(), raw.names());
        return Err(DataError::MissingColumn { file, name, names });
    };
    let cells: Vec<Result<Value, Reason>> = values(term, column);
    for (row, cell) in cells.iter().enumerate() {
        if let Err(reason) = cell
            && !(*reason == Reason::Missing && term.fill.is_some())
        {
            unreadable.push((column.name.clone(), row, *reason));
        }
    }
    Ok(numbers(term, &cells))
}

/// Products of columns, one of each side at these places, one after another. What is not there is not a number.
fn products(sides: &[Vec<f64>], places: &[Vec<usize>], rows: usize) -> Vec<f64> {
    let cell = |side: &Vec<f64>, place: usize, row: usize| {
        place.checked_mul(rows).and_then(|first| side.get(first.checked_add(row)?)).copied().unwrap_or(f64::NAN)
    };
    let product = |places: &Vec<usize>, row: usize| -> f64 {
        sides.iter().zip(places).map(|(side, &place)| cell(side, place, row)).product()
    };
    places.iter().flat_map(|places| (0..rows).map(move |row| product(places, row))).collect()
}

/// The numbers of a term that is no product, in the table that it was learned from.
pub(super) fn numbers_of(term: &TermSchema, raw: &Raw) -> Result<Vec<f64>, DataError> {
    base(term, &raw.by_name(), raw, &mut Vec::new())
}

/// The mean of a column; weights are empty if all rows count alike.
pub(super) fn mean(values: &[f64], weights: &[f64]) -> f64 {
    if weights.is_empty() {
        return values.iter().sum::<f64>() / values.len().max(1) as f64;
    }
    values.iter().zip(weights).map(|(value, weight)| value * weight).sum::<f64>() / weights.iter().sum::<f64>()
}

/// What stands for missing values of a term: the means of its columns where there are values.
pub(super) fn means(term: &TermSchema, column: &RawColumn, weights: &[f64]) -> Vec<f64> {
    let all = values(term, column);
    let present = |row: &usize| all[*row].is_ok();
    let weights: Vec<f64> = (0..weights.len()).filter(present).map(|row| weights[row]).collect();
    let cells: Vec<Result<Value, Reason>> = all.iter().copied().filter(Result::is_ok).collect();
    numbers(term, &cells).chunks(cells.len().max(1)).map(|column| mean(column, &weights)).collect()
}

/// What a cell says.
#[derive(Clone, Copy)]
enum Value {
    Number(f64),
    /// The place among the levels.
    Level(usize),
}

/// The cells of a column as a term sees them.
fn values(term: &TermSchema, column: &RawColumn) -> Vec<Result<Value, Reason>> {
    let level = |text: &str| match &term.kind {
        TermKind::Categories { levels } => {
            levels.iter().position(|level| level == text).map(Value::Level).ok_or(Reason::UnknownLevel)
        }
        TermKind::Boolean {} => truth(text).map(|is| Value::Number(f64::from(u8::from(is)))).ok_or(Reason::NotNumber),
        _ => Err(Reason::NotNumber),
    };
    if let TermKind::Missing { .. } = term.kind {
        let mut values = vec![Ok(Value::Number(0.0)); column.numbers.len()];
        column.missing().for_each(|row| values[row] = Ok(Value::Number(1.0)));
        return values;
    }
    let is_categorical = matches!(term.kind, TermKind::Categories { .. });
    let mut values: Vec<Result<Value, Reason>> = column
        .numbers
        .iter()
        .map(|number| match number {
            number if is_categorical => level(&number.to_string()),
            number if number.is_finite() => Ok(Value::Number(*number)),
            _ => Err(Reason::NotNumber),
        })
        .collect();
    for (row, cell) in &column.others {
        values[*row] = match cell {
            Cell::Text(text) => level(text),
            _ => Err(Reason::Missing),
        };
    }
    values
}

/// Numbers of the columns of a term, one column after another.
fn numbers(term: &TermSchema, cells: &[Result<Value, Reason>]) -> Vec<f64> {
    let count = term.columns().len();
    let number = |place: usize, cell: &Result<Value, Reason>| match cell {
        Ok(Value::Number(number)) => *number,
        Ok(Value::Level(level)) => f64::from(u8::from(*level == place + 1)),
        Err(Reason::Missing) => term.fill.as_ref().map_or(f64::NAN, |fill| fill[place]),
        Err(_) => f64::NAN,
    };
    (0..count).flat_map(|place| cells.iter().map(move |cell| number(place, cell))).collect()
}

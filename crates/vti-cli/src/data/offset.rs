//! Columns that are added to predictors as they are, or whose logarithms are; columns that rows are weighted by.

use serde::{Deserialize, Serialize};
use vti::problem::selection::Likelihood;

use super::encode::{Encoded, Reason, encode};
use super::raw::Raw;
use super::schema::{Choice, TermKind, TermSchema, numbers};
use super::{DataError, schema};
use crate::shown::shown;

/// A column that is part of every row's predictor, its coefficient being 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Offset {
    pub(crate) column: String,
    /// Whether it is what a count is proportional to: its logarithm is added.
    pub(crate) exposure: bool,
}

impl Offset {
    pub(super) fn option(&self) -> &'static str {
        if self.exposure { "--exposure" } else { "--offset" }
    }

    pub(super) fn note(&self) -> String {
        let what = if self.exposure { "the logarithm of " } else { "" };
        format!("offset: {what}{} is added to every predictor", shown(&self.column))
    }

    /// Adds the numbers of a table that is learned from.
    fn add(&self, raw: &Raw, to: &mut [f64]) -> Result<(), DataError> {
        let column = schema::find(raw, &self.column)?;
        schema::check_kind(raw, column)?;
        for (row, (to, number)) in to.iter_mut().zip(numbers(raw, column)?).enumerate() {
            let Some(offset) = self.of(number) else {
                let (file, place, column) = (raw.file.clone(), raw.place(row), self.column.clone());
                return Err(DataError::Exposure { file, place, column, value: number });
            };
            *to += offset;
        }
        Ok(())
    }

    /// What a number of the column adds; none where it cannot be an exposure.
    fn of(&self, number: f64) -> Option<f64> {
        match self.exposure {
            true => (number > 0.0).then(|| number.ln()),
            false => Some(number),
        }
    }
}

/// What is added to predictors, and what rows are weighted by, is no covariate, and exposures are of counts.
pub(super) fn check(raw: &Raw, choice: &Choice, likelihood: &Likelihood) -> Result<(), DataError> {
    if let Some(offset) = choice.offsets.iter().find(|offset| offset.exposure && !likelihood.has_counts()) {
        return Err(DataError::NoCounts { name: offset.column.clone() });
    }
    let offsets = choice.offsets.iter().map(|offset| (&offset.column, offset.option()));
    for (name, option) in offsets.chain(choice.weights.iter().map(|name| (name, "--weights"))) {
        schema::check_list(raw, std::slice::from_ref(name), option, &choice.exclude)?;
        if *name == choice.response {
            return Err(DataError::ResponseListed { name: name.clone(), option });
        }
        for (list, other) in [(&choice.always, "--always"), (&choice.categorical, "--categorical")] {
            if list.contains(name) {
                return Err(DataError::OffsetListed { name: name.clone(), option, other });
            }
        }
    }
    Ok(())
}

/// How much the rows of a table that is learned from count; empty if all count alike.
pub(super) fn weights(name: Option<&str>, raw: &Raw) -> Result<Vec<f64>, DataError> {
    let Some(name) = name else { return Ok(Vec::new()) };
    let column = schema::find(raw, name)?;
    schema::check_kind(raw, column)?;
    let weights = numbers(raw, column)?;
    match weights.iter().position(|weight| *weight < 0.0) {
        None => Ok(weights),
        Some(row) => {
            let (file, place, column) = (raw.file.clone(), raw.place(row), name.to_string());
            Err(DataError::Weight { file, place, column, value: weights[row] })
        }
    }
}

/// Leaves out rows of weight 0, which do not count, and says so.
pub(super) fn leave_out_weightless(name: Option<&str>, raw: &mut Raw) -> Result<Option<String>, DataError> {
    let Some(name) = name else { return Ok(None) };
    let weightless: Vec<bool> = schema::find(raw, name)?.numbers.iter().map(|weight| *weight == 0.0).collect();
    let (count, rows) = (weightless.iter().filter(|is| **is).count(), raw.rows());
    raw.keep_rows(|row| !weightless[row]);
    Ok((count > 0).then(|| format!("left out {count} of {rows} rows, whose weight {} is 0", shown(name))))
}

/// The sum of all offsets of a table that is learned from; empty without any.
pub(super) fn learned(offsets: &[Offset], raw: &Raw) -> Result<Vec<f64>, DataError> {
    let mut sum = if offsets.is_empty() { Vec::new() } else { vec![0.0; raw.rows()] };
    offsets.iter().try_for_each(|offset| offset.add(raw, &mut sum))?;
    Ok(sum)
}

/// The sum of all offsets of a new table, not a number in rows that cannot be read; empty without any.
pub(super) fn of_new_rows(offsets: &[Offset], raw: &Raw) -> Result<Unsure, DataError> {
    let column = |offset: &Offset| TermSchema {
        name: offset.column.clone(),
        always: true,
        kind: TermKind::Number {},
        fill: None,
    };
    let Encoded { terms, mut unreadable } = encode(&offsets.iter().map(column).collect::<Vec<_>>(), raw)?;
    let mut sum = if offsets.is_empty() { Vec::new() } else { vec![0.0; raw.rows()] };
    for (offset, term) in offsets.iter().zip(terms) {
        for (row, (sum, number)) in sum.iter_mut().zip(term.values).enumerate() {
            // What is no number at all has been told already.
            if number <= 0.0 && offset.exposure {
                unreadable.push((offset.column.clone(), row, Reason::NotPositive));
            }
            *sum += offset.of(number).unwrap_or(f64::NAN);
        }
    }
    Ok((sum, unreadable))
}

/// Numbers, and column, row and reason of cells that have none.
type Unsure = (Vec<f64>, Vec<(String, usize, Reason)>);

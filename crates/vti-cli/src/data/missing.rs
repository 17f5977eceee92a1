//! Values that are not there: how they are written, and what becomes of them.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use vti::answer::LeftOut;

use super::encode;
use super::error::{DataError, MissingValues};
use super::raw::{Cell, Raw, RawColumn};
use super::schema::{TermKind, TermSchema};
use super::tidy::{Known, constant};
use crate::shown::{listed, shown};

/// What becomes of rows with missing values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Missing {
    // They are counted and refused.
    #[default]
    Error,
    // Rows with missing values are left out.
    Drop,
    // A missing value becomes the column's mean, and a column NAME_missing says where.
    Indicator,
}

/// How a missing value is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    named: Vec<String>,
    numbers: Vec<f64>,
}

/// Recognised everywhere, in lower case.
const WORDS: [&str; 9] = ["", "na", "n/a", "nan", "null", ".", "?", "<na>", "#n/a"];

impl Words {
    /// The usual words and these; what is a number is compared as a number.
    pub(crate) fn new(named: &[String]) -> Self {
        let named: Vec<String> = named.iter().map(|word| word.trim().to_string()).collect();
        Self { numbers: named.iter().filter_map(|word| word.parse().ok()).collect(), named }
    }

    pub(super) fn are(&self, cell: &str) -> bool {
        WORDS.iter().any(|word| word.eq_ignore_ascii_case(cell)) || self.named.iter().any(|word| word == cell)
    }

    pub(super) fn are_number(&self, number: f64) -> bool {
        number.is_nan() || self.numbers.contains(&number)
    }
}

/// Missing values of each column that has some.
fn counts(raw: &Raw) -> Vec<(String, usize)> {
    let count = |column: &RawColumn| (column.name.clone(), column.missing().count());
    raw.columns.iter().map(count).filter(|(_, count)| *count > 0).collect()
}

/// "a 3, b 2".
fn counted(columns: &[(String, usize)]) -> String {
    listed(columns.iter().map(|(name, count)| (name.as_str(), format!(" {count}"))), columns.len())
}

/// Refuses missing values, or leaves out their rows; the required columns' with indicators, too, as nothing can be learned
/// from them. What was done is said.
pub(super) fn treat(raw: &mut Raw, known: &Known<'_>) -> Result<Option<String>, DataError> {
    let (missing, is_required) = (known.missing, |name: &str| known.required.contains(name));
    let columns = counts(raw);
    let rows: BTreeSet<usize> = raw
        .columns
        .iter()
        .filter(|column| missing != Missing::Indicator || is_required(&column.name))
        .flat_map(|column| column.missing())
        .collect();
    let Some(first) = rows.first() else { return Ok(None) };
    let (file, all) = (raw.file.clone(), raw.rows());
    if missing == Missing::Error {
        let first = raw.place(*first);
        let others = columns.iter().map(|(name, _)| name.clone()).filter(|name| !is_required(name));
        return Err(DataError::Missing(Box::new(MissingValues {
            file,
            counts: counted(&columns),
            count: columns.iter().map(|(_, count)| count).sum(),
            columns: columns.len(),
            first,
            rows: [rows.len(), all - rows.len()],
            others: others.collect(),
            graph: known.response.is_none(),
        })));
    }
    if rows.len() == all {
        return Err(DataError::AllMissing { file, rows: all, counts: counted(&columns) });
    }
    let shown = match missing {
        Missing::Indicator => {
            let required: Vec<_> = columns.into_iter().filter(|(name, _)| is_required(name)).collect();
            counted(&required)
        }
        Missing::Error | Missing::Drop => counted(&columns),
    };
    raw.keep_rows(|row| !rows.contains(&row));
    Ok(Some(format!("left out {} of {all} rows, which have missing values: {shown}", rows.len())))
}

/// Whether all that a column can tell is where it is missing.
pub(super) fn is_indicator_alone(column: &RawColumn, missing: Missing) -> bool {
    let is_missing = column.unusable.is_none() && column.missing().next().is_some();
    missing == Missing::Indicator && is_missing && column.constant().is_some()
}

/// Means for missing values, and a term for each set of rows in which values are missing. Of columns of one value only that remains.
pub(super) fn add_indicators(
    raw: &Raw,
    terms: &mut Vec<TermSchema>,
    weights: &[f64],
    left_out: &mut Vec<LeftOut>,
) -> Result<Vec<String>, DataError> {
    let columns = raw.by_name();
    // Which term says where values are missing, for each set of rows.
    let mut known: HashMap<Vec<usize>, String> = HashMap::new();
    let (mut all, mut notes) = (Vec::with_capacity(terms.len()), Vec::new());
    for mut term in std::mem::take(terms) {
        let Some(column) = columns.get(term.name.as_str()) else { continue };
        let rows: Vec<usize> = column.missing().collect();
        if rows.is_empty() {
            all.push(term);
            continue;
        }
        let (count, always, name) = (rows.len(), term.always, term.name.clone());
        let earlier = known.get(&rows).cloned();
        let indicator = earlier.clone().unwrap_or_else(|| format!("{name}_missing"));
        if earlier.is_none() && columns.contains_key(indicator.as_str()) {
            return Err(DataError::IndicatorName { file: raw.file.clone(), name: indicator, column: name });
        }
        match constant(column) {
            Some(reason) => {
                let reason = format!("{reason}; {} says where it is missing", shown(&indicator));
                left_out.push(LeftOut { column: name.clone(), reason });
            }
            None => {
                let where_it_is = match &earlier {
                    Some(other) => format!("; they are missing where {} says", shown(other)),
                    None => format!(", and {} says where", shown(&indicator)),
                };
                notes.push(format!("{}: {count} missing values are replaced by the mean{where_it_is}", shown(&name)));
                term.fill = Some(encode::means(&term, column, weights));
                all.push(term);
            }
        }
        if earlier.is_none() {
            known.insert(rows, indicator.clone());
            all.push(TermSchema { name: indicator, always, kind: TermKind::Missing { column: name }, fill: None });
        }
    }
    *terms = all;
    Ok(notes)
}

/// Whether a cell says that its value is not there.
pub(super) fn is_missing(cell: &Cell) -> bool {
    matches!(cell, Cell::Missing(_))
}

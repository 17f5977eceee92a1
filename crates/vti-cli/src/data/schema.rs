//! What the columns of a table mean: numbers, truth values or categories; learned once, applied to other tables as well.

use serde::{Deserialize, Serialize};
use vti::problem::selection::{Likelihood, Term};

use super::DataError;
use super::csv::with_decimal_comma;
use super::raw::{Cell, Raw, RawColumn};

/// Which columns take part, and how.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    pub(crate) response: String,
    /// Only these, unless empty.
    pub(crate) include: Vec<String>,
    pub(crate) exclude: Vec<String>,
    /// In every model.
    pub(crate) always: Vec<String>,
    /// Numbers that name categories.
    pub(crate) categorical: Vec<String>,
}

/// What a term is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum TermKind {
    Number {},
    /// `true` is 1.
    Boolean {},
    /// An indicator for each level but the first.
    Categories {
        levels: Vec<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TermSchema {
    pub(crate) name: String,
    pub(crate) always: bool,
    #[serde(rename = "type")]
    pub(crate) kind: TermKind,
}

/// What the columns of a table mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Schema {
    pub(crate) response: String,
    /// Two texts that stand for 0 and 1.
    pub(crate) response_levels: Option<[String; 2]>,
    pub(crate) terms: Vec<TermSchema>,
    /// All columns of the file.
    pub(crate) columns: Vec<String>,
}

/// Names that parameters of the model have.
const RESERVED: [&str; 2] = ["intercept", "sigma"];

/// A text column with more levels is probably an identifier.
const MAX_LEVELS: usize = 50;

impl Schema {
    /// Finds out what the chosen columns are.
    pub(crate) fn learn(raw: &Raw, choice: &Choice, likelihood: &Likelihood) -> Result<Self, DataError> {
        check_choice(raw, choice)?;
        let response_levels = response_levels(raw, find(raw, &choice.response)?, likelihood)?;
        let listed = |list: &[String], name: &str| list.iter().any(|listed| listed == name);
        let mut terms = Vec::new();
        for column in &raw.columns {
            let name = &column.name;
            let always = listed(&choice.always, name);
            let wanted = choice.include.is_empty() || listed(&choice.include, name) || always;
            if *name == choice.response || listed(&choice.exclude, name) || !wanted {
                continue;
            }
            if RESERVED.contains(&name.as_str()) {
                return Err(DataError::Reserved { file: raw.file.clone(), name: name.clone() });
            }
            let kind = kind(raw, column, listed(&choice.categorical, name))?;
            terms.push(TermSchema { name: name.clone(), always, kind });
        }
        if terms.iter().all(|term| term.always) {
            return Err(DataError::NoTerms { file: raw.file.clone() });
        }
        Ok(Self { response: choice.response.clone(), response_levels, terms, columns: raw.names() })
    }

    /// The response of a table that has one.
    pub(super) fn response(&self, raw: &Raw) -> Result<Vec<f64>, DataError> {
        let column = find(raw, &self.response)?;
        let values = match &self.response_levels {
            Some(levels) => {
                let cells = texts(raw, column)?;
                cells.iter().map(|cell| f64::from(u8::from(*cell == levels[1]))).collect()
            }
            None if is_boolean(column) => booleans(column),
            None => numbers(raw, column)?,
        };
        if values.iter().all(|value| *value == values[0]) {
            let (file, column) = (raw.file.clone(), column.name.clone());
            return Err(DataError::ConstantResponse { file, column, value: values[0].to_string() });
        }
        Ok(values)
    }

    /// The terms of a table: the one that was learned from, or another with the same columns.
    pub(crate) fn terms(&self, raw: &Raw) -> Result<Vec<Term>, DataError> {
        self.terms.iter().map(|term| term.encode(raw)).collect()
    }

    /// Refuses columns that were not there when the schema was learned.
    pub(crate) fn check_columns(&self, raw: &Raw) -> Result<(), DataError> {
        let known = |name: &String| self.columns.contains(name);
        match raw.columns.iter().map(|column| &column.name).find(|name| !known(name)) {
            None => Ok(()),
            Some(name) => Err(DataError::UnknownColumn {
                file: raw.file.clone(),
                name: name.clone(),
                names: self.columns.iter().filter(|name| !raw.names().contains(name)).cloned().collect(),
            }),
        }
    }

    /// What a reader may want to know.
    pub(super) fn notes(&self) -> Vec<String> {
        let response = self
            .response_levels
            .iter()
            .map(|[zero, one]| format!("response: {} = {one} is 1, {} = {zero} is 0", self.response, self.response));
        let terms = self.terms.iter().filter_map(|term| match &term.kind {
            TermKind::Categories { levels } => Some(format!(
                "{}: categories {}; coefficients are differences from {}",
                term.name,
                levels.join(", "),
                levels[0]
            )),
            _ => None,
        });
        response.chain(terms).collect()
    }
}

impl TermSchema {
    /// Names of its columns.
    pub(crate) fn columns(&self) -> Vec<String> {
        match &self.kind {
            TermKind::Categories { levels } => {
                levels[1..].iter().map(|level| format!("{}={level}", self.name)).collect()
            }
            TermKind::Number {} | TermKind::Boolean {} => vec![self.name.clone()],
        }
    }

    fn encode(&self, raw: &Raw) -> Result<Term, DataError> {
        let Some(column) = raw.columns.iter().find(|column| column.name == self.name) else {
            let names = raw.names();
            return Err(DataError::MissingColumn { file: raw.file.clone(), name: self.name.clone(), names });
        };
        let values = match &self.kind {
            TermKind::Number {} => numbers(raw, column)?,
            TermKind::Boolean {} if is_boolean(column) => booleans(column),
            TermKind::Boolean {} => numbers(raw, column)?,
            TermKind::Categories { levels } => indicators(raw, column, levels)?,
        };
        Ok(Term { name: self.name.clone(), columns: self.columns(), values, always: self.always })
    }
}

/// All names must be there, and make sense together.
fn check_choice(raw: &Raw, choice: &Choice) -> Result<(), DataError> {
    find(raw, &choice.response)?;
    let lists = [
        (&choice.include, "--include"),
        (&choice.exclude, "--exclude"),
        (&choice.always, "--always"),
        (&choice.categorical, "--categorical"),
    ];
    for (list, option) in lists {
        let exclude: &[String] = if option == "--exclude" { &[] } else { &choice.exclude };
        check_list(raw, list, option, exclude)?;
        if let Some(name) = list.iter().find(|name| **name == choice.response) {
            return Err(DataError::ResponseListed { name: name.clone(), option });
        }
    }
    Ok(())
}

/// The names that an option lists must be there, and not be excluded.
pub(super) fn check_list(
    raw: &Raw,
    list: &[String],
    option: &'static str,
    exclude: &[String],
) -> Result<(), DataError> {
    let names = raw.names();
    for name in list {
        if !names.contains(name) {
            let (file, name) = (raw.file.clone(), name.clone());
            return Err(DataError::NoColumn { file, name, option, names });
        }
        if exclude.contains(name) {
            return Err(DataError::ListedTwice { name: name.clone(), option });
        }
    }
    Ok(())
}

fn find<'a>(raw: &'a Raw, response: &str) -> Result<&'a RawColumn, DataError> {
    raw.columns.iter().find(|column| column.name == response).ok_or_else(|| DataError::NoResponse {
        file: raw.file.clone(),
        name: response.into(),
        names: raw.names(),
    })
}

/// What a covariate is.
fn kind(raw: &Raw, column: &RawColumn, categorical: bool) -> Result<TermKind, DataError> {
    check_present(raw, column, false)?;
    let (file, name) = (|| raw.file.clone(), || column.name.clone());
    let constant = |value: String| DataError::Constant { file: file(), column: name(), value };
    if categorical || is_text(raw, column)? {
        let levels = levels(raw, column)?;
        return match levels.len() {
            1 => Err(constant(levels[0].clone())),
            // Somebody who says that these are categories knows better.
            count if !categorical && 2 * count > raw.rows() => {
                Err(DataError::Identifier { file: file(), column: name(), levels: count, rows: raw.rows() })
            }
            count if count > MAX_LEVELS => {
                Err(DataError::Levels { file: file(), column: name(), levels: count, most: MAX_LEVELS })
            }
            _ => Ok(TermKind::Categories { levels }),
        };
    }
    let boolean = is_boolean(column);
    let values = if boolean { booleans(column) } else { numbers(raw, column)? };
    if values.iter().all(|value| *value == values[0]) {
        return Err(constant(values[0].to_string()));
    }
    Ok(if boolean { TermKind::Boolean {} } else { TermKind::Number {} })
}

/// Two texts as a response, where the likelihood can use them.
fn response_levels(raw: &Raw, column: &RawColumn, likelihood: &Likelihood) -> Result<Option<[String; 2]>, DataError> {
    check_present(raw, column, true)?;
    if is_boolean(column) || !is_text(raw, column)? {
        return Ok(None);
    }
    let (file, name) = (raw.file.clone(), column.name.clone());
    let levels = levels(raw, column)?;
    match <[String; 2]>::try_from(levels) {
        Ok(levels) if matches!(likelihood, Likelihood::Logistic {}) => Ok(Some(levels)),
        Ok([first, second]) => Err(DataError::TwoLevels { file, column: name, first, second }),
        Err(levels) if levels.len() == 1 => {
            Err(DataError::ConstantResponse { file, column: name, value: levels[0].clone() })
        }
        Err(levels) => Err(DataError::TextResponse { file, column: name, levels: levels.len() }),
    }
}

pub(super) fn check_present(raw: &Raw, column: &RawColumn, response: bool) -> Result<(), DataError> {
    let missing = || column.others.iter().filter(|(_, cell)| matches!(cell, Cell::Missing(_)));
    let Some((row, Cell::Missing(cell))) = missing().next() else { return Ok(()) };
    Err(DataError::Missing {
        file: raw.file.clone(),
        place: raw.place(*row),
        column: column.name.clone(),
        cell: if cell.is_empty() { "the cell is empty".into() } else { cell.clone() },
        count: missing().count(),
        response,
    })
}

/// `true` and `false`, and nothing else.
fn is_boolean(column: &RawColumn) -> bool {
    let is_truth = |cell: &Cell| matches!(cell, Cell::Text(text) if truth(text).is_some());
    column.others.len() == column.numbers.len() && column.others.iter().all(|(_, cell)| is_truth(cell))
}

fn truth(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn booleans(column: &RawColumn) -> Vec<f64> {
    let value = |cell: &Cell| matches!(cell, Cell::Text(text) if truth(text) == Some(true));
    column.others.iter().map(|(_, cell)| f64::from(u8::from(value(cell)))).collect()
}

/// Whether a column holds texts. A few texts among numbers are mistakes.
fn is_text(raw: &Raw, column: &RawColumn) -> Result<bool, DataError> {
    if column.others.is_empty() || is_boolean(column) {
        return Ok(false);
    }
    if let Some(error) = decimal_comma(raw, column) {
        return Err(error);
    }
    if 2 * column.others.len() < column.numbers.len() {
        return Err(text_cell(raw, column));
    }
    Ok(true)
}

/// Decimal commas where there should be points.
fn decimal_comma(raw: &Raw, column: &RawColumn) -> Option<DataError> {
    let number = |(row, cell): &'_ (usize, Cell)| match cell {
        Cell::Text(text) if with_decimal_comma(text).is_some() => Some((*row, text.clone())),
        _ => None,
    };
    let found = || column.others.iter().filter_map(number);
    let (row, cell) = found().next()?;
    let (file, place, count) = (raw.file.clone(), raw.place(row), found().count());
    Some(DataError::DecimalComma { file, place, column: column.name.clone(), cell, count })
}

fn text_cell(raw: &Raw, column: &RawColumn) -> DataError {
    let (row, cell) = match column.others.first() {
        Some((row, Cell::Text(cell) | Cell::Missing(cell))) => (*row, cell.clone()),
        _ => (0, String::new()),
    };
    let (file, place, count) = (raw.file.clone(), raw.place(row), column.others.len());
    DataError::TextCell { file, place, column: column.name.clone(), cell, count }
}

/// A column of nothing but finite numbers.
pub(super) fn numbers(raw: &Raw, column: &RawColumn) -> Result<Vec<f64>, DataError> {
    check_present(raw, column, false)?;
    if !column.others.is_empty() {
        return Err(decimal_comma(raw, column).unwrap_or_else(|| text_cell(raw, column)));
    }
    if let Some(row) = column.numbers.iter().position(|value| !value.is_finite()) {
        let (file, place, value) = (raw.file.clone(), raw.place(row), column.numbers[row]);
        return Err(DataError::NotFinite { file, place, column: column.name.clone(), value });
    }
    Ok(column.numbers.clone())
}

/// Cells as texts.
fn texts(raw: &Raw, column: &RawColumn) -> Result<Vec<String>, DataError> {
    check_present(raw, column, false)?;
    let mut texts: Vec<String> = column.numbers.iter().map(f64::to_string).collect();
    for (row, cell) in &column.others {
        if let Cell::Text(text) = cell {
            texts[*row].clone_from(text);
        }
    }
    Ok(texts)
}

/// Different texts in order: numbers by size, then words.
fn levels(raw: &Raw, column: &RawColumn) -> Result<Vec<String>, DataError> {
    let mut levels = texts(raw, column)?;
    let key = |text: &String| text.parse::<f64>().unwrap_or(f64::INFINITY);
    levels.sort_by(|a, b| key(a).total_cmp(&key(b)).then_with(|| a.cmp(b)));
    levels.dedup();
    Ok(levels)
}

/// A column of 0 and 1 for each level but the first.
fn indicators(raw: &Raw, column: &RawColumn, levels: &[String]) -> Result<Vec<f64>, DataError> {
    let cells = texts(raw, column)?;
    if let Some(row) = cells.iter().position(|cell| !levels.contains(cell)) {
        return Err(DataError::UnknownLevel {
            file: raw.file.clone(),
            place: raw.place(row),
            column: column.name.clone(),
            cell: cells[row].clone(),
            levels: levels.to_vec(),
        });
    }
    let is = |cell: &String, level: &String| f64::from(u8::from(cell == level));
    Ok(levels[1..].iter().flat_map(|level| cells.iter().map(|cell| is(cell, level)).collect::<Vec<_>>()).collect())
}

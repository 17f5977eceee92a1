//! What the columns of a table mean: numbers, truth values or categories; learned once, applied to other tables as well.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use vti::answer::LeftOut;
use vti::problem::selection::{Likelihood, Term};
use vti::space::Heredity;

use super::csv::with_decimal_comma;
use super::missing::{Missing, add_indicators, is_indicator_alone};
use super::offset::{self, Offset};
use super::products::{Factor, Making, Wanted};
use super::raw::{Raw, RawColumn};
use super::response::response_levels;
use super::tidy::{Known, note, take_index, tidy};
use super::{DataError, encode};
use crate::shown::shown;

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
    /// Added to predictors.
    pub(crate) offsets: Vec<Offset>,
    /// How much rows count.
    pub(crate) weights: Option<String>,
    /// The formula of terms, where it is not simply all columns.
    pub(crate) terms: Option<String>,
    /// Whether products may be in without their columns.
    pub(crate) heredity: Heredity,
    /// Whether means are taken from columns before they are multiplied.
    pub(crate) centred: bool,
    pub(crate) missing: Missing,
    /// Words for a missing value beside the usual ones.
    pub(crate) missing_values: Vec<String>,
}

/// What a term is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum TermKind {
    Number {},
    /// Days since 1970-01-01.
    Date {},
    /// `true` is 1.
    Boolean {},
    /// An indicator for each level but the first.
    Categories {
        levels: Vec<String>,
    },
    /// 1 where the value of a column is missing.
    Missing {
        column: String,
    },
    /// The product of two or three others, of these of their columns: a place among the columns of each.
    Product {
        factors: Vec<Factor>,
        pairs: Vec<Vec<usize>>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TermSchema {
    pub(crate) name: String,
    pub(crate) always: bool,
    #[serde(rename = "type")]
    pub(crate) kind: TermKind,
    /// What stands for a missing value, of each of its columns: their means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fill: Option<Vec<f64>>,
}

/// What the columns of a table mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Schema {
    pub(crate) response: String,
    /// Texts that stand for 0, 1 and so on.
    pub(crate) response_levels: Option<Vec<String>>,
    pub(crate) terms: Vec<TermSchema>,
    /// Columns that are added to predictors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) offsets: Vec<Offset>,
    /// All columns of the file.
    pub(crate) columns: Vec<String>,
    /// Columns that say nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_out: Vec<LeftOut>,
}

/// Names that parameters of the model have, whatever the likelihood.
const RESERVED: [&str; 2] = ["intercept", "sigma"];

/// A text column with more levels is probably an identifier.
pub(super) const MAX_LEVELS: usize = 50;

/// Names for looking up.
pub(super) fn set(list: &[String]) -> HashSet<&str> {
    list.iter().map(String::as_str).collect()
}

impl Schema {
    /// Finds out what the chosen columns are, and leaves only those in the table; with what was done to it.
    pub(crate) fn learn(
        raw: &mut Raw,
        choice: &Choice,
        likelihood: &Likelihood,
    ) -> Result<(Self, Vec<String>), DataError> {
        let (include, exclude, always) = (set(&choice.include), set(&choice.exclude), set(&choice.always));
        let categorical = set(&choice.categorical);
        let offsets: HashSet<&str> = choice.offsets.iter().map(|offset| offset.column.as_str()).collect();
        let weights = choice.weights.as_deref();
        let required: HashSet<&str> = offsets.into_iter().chain(weights).chain([choice.response.as_str()]).collect();
        let wanted = choice.terms.as_deref().map(Wanted::new).transpose()?;
        let by_formula = wanted.as_ref().map(Wanted::names).unwrap_or_default();
        let all = wanted.as_ref().is_none_or(Wanted::has_all);
        let named: HashSet<&str> = include.union(&always).chain(&required).chain(&by_formula).copied().collect();
        let columns = raw.names();
        let mut left_out: Vec<LeftOut> = take_index(raw, &named).into_iter().collect();
        raw.check_names()?;
        check_choice(raw, choice)?;
        offset::check(raw, choice, likelihood)?;
        wanted.as_ref().map_or(Ok(()), |wanted| wanted.check(raw, choice))?;
        raw.columns.retain(|column| {
            let name = column.name.as_str();
            let is_wanted = (all && include.is_empty()) || named.contains(name);
            required.contains(name) || (is_wanted && !exclude.contains(name))
        });
        let weightless = offset::leave_out_weightless(weights, raw)?;
        let response = Some(choice.response.as_str());
        let known = Known {
            response,
            required: required.clone(),
            named,
            categorical: categorical.clone(),
            missing: choice.missing,
        };
        let tidied = tidy(raw, &known)?;
        left_out.extend(tidied.left_out);
        let response_levels = response_levels(raw, find(raw, &choice.response)?, likelihood)?;
        let (mut terms, mut flaws) = (Vec::new(), Vec::new());
        for column in raw.columns.iter().filter(|column| !required.contains(column.name.as_str())) {
            let (name, always) = (column.name.as_str(), always.contains(column.name.as_str()));
            if is_indicator_alone(column, choice.missing) {
                terms.push(TermSchema { name: name.into(), always, kind: TermKind::Number {}, fill: None });
                continue;
            }
            match check_name(raw, name, likelihood).and_then(|()| kind(raw, column, categorical.contains(name))) {
                Ok(kind) => {
                    terms.push(TermSchema { name: name.into(), always, kind, fill: None });
                }
                Err(error) => flaws.push((column.name.clone(), error)),
            }
        }
        all_or(raw, flaws)?;
        let mut notes: Vec<String> = weightless.into_iter().collect();
        let weights = offset::weights(choice.weights.as_deref(), raw)?;
        let replaced = add_indicators(raw, &mut terms, &weights, &mut left_out)?;
        notes.extend(left_out.iter().map(note).chain(tidied.notes).chain(replaced));
        if let Some(wanted) = wanted {
            let making = Making { raw, weights: &weights, centred: choice.centred, heredity: choice.heredity };
            let (chosen, more) = wanted.terms(terms, &making)?;
            terms = chosen;
            notes.extend(more);
        }
        if terms.iter().all(|term| term.always) {
            return Err(DataError::NoTerms { file: raw.file.clone() });
        }
        notes.extend(choice.offsets.iter().map(Offset::note));
        let (response, offsets) = (choice.response.clone(), choice.offsets.clone());
        Ok((Self { response, response_levels, terms, offsets, columns, left_out }, notes))
    }

    /// The terms of a table: the one that was learned from, or another with the same columns.
    pub(crate) fn terms(&self, raw: &Raw) -> Result<encode::Encoded, DataError> {
        encode::encode(&self.terms, raw)
    }

    /// What is added to the predictors of the table that was learned from; empty if nothing is.
    pub(super) fn offset(&self, raw: &Raw) -> Result<Vec<f64>, DataError> {
        offset::learned(&self.offsets, raw)
    }

    /// Terms of a new table, and what is added to its predictors; empty if nothing is.
    pub(crate) fn new_rows(&self, raw: &Raw) -> Result<(encode::Encoded, Vec<f64>), DataError> {
        let mut encoded = self.terms(raw)?;
        let (offset, unreadable) = offset::of_new_rows(&self.offsets, raw)?;
        encoded.unreadable.extend(unreadable);
        Ok((encoded, offset))
    }

    /// Leaves the columns that predictions need in a new table, and reads its dates.
    pub(crate) fn prepare(&self, raw: &mut Raw) -> Result<(), DataError> {
        let columns = raw.by_name();
        let offsets: HashSet<&str> = self.offsets.iter().map(|offset| offset.column.as_str()).collect();
        let bases: Vec<&TermSchema> = self.terms.iter().flat_map(TermSchema::bases).collect();
        let mut needed = bases.iter().map(|term| term.source()).chain(offsets.iter().copied());
        if let Some(name) = needed.find(|name| !columns.contains_key(name)) {
            let (file, name, names) = (raw.file.clone(), name.to_string(), raw.names());
            return Err(DataError::MissingColumn { file, name, names });
        }
        let known: HashSet<&str> = bases.iter().map(|term| term.source()).chain(offsets).collect();
        let is_date = |term: &&&TermSchema| term.kind == TermKind::Date {};
        let dates: HashSet<&str> = bases.iter().filter(is_date).map(|term| term.source()).collect();
        raw.columns.retain(|column| known.contains(column.name.as_str()));
        for column in raw.columns.iter_mut().filter(|column| dates.contains(column.name.as_str())) {
            column.read_dates();
        }
        raw.check_names()
    }

    /// What a reader may want to know.
    pub(super) fn notes(&self) -> Vec<String> {
        let response = shown(&self.response);
        let levels = self.response_levels.iter().map(|levels| match &levels[..] {
            [zero, one] => format!("response: {response} = {} is 1, {response} = {} is 0", shown(one), shown(zero)),
            levels => {
                let shown: Vec<String> = levels.iter().map(|level| shown(level)).collect();
                format!("response: {response} is one of {}; coefficients compare with {}", shown.join(", "), shown[0])
            }
        });
        let terms = self.terms.iter().filter_map(|term| match &term.kind {
            TermKind::Categories { levels } => {
                let shown_levels: Vec<String> = levels.iter().map(|level| shown(level)).collect();
                Some(format!(
                    "{}: categories {}; coefficients are differences from {}",
                    shown(&term.name),
                    shown_levels.join(", "),
                    shown_levels[0]
                ))
            }
            _ => None,
        });
        levels.chain(terms).collect()
    }
}

/// One error as it is, several as a list.
pub(super) fn all_or(raw: &Raw, mut flaws: Vec<(String, DataError)>) -> Result<(), DataError> {
    match flaws.len() {
        0 => Ok(()),
        1 => Err(flaws.remove(0).1),
        _ => Err(DataError::Columns { file: raw.file.clone(), columns: flaws }),
    }
}

impl TermSchema {
    /// Names of its columns.
    pub(crate) fn columns(&self) -> Vec<String> {
        match &self.kind {
            TermKind::Categories { levels } => {
                levels.iter().skip(1).map(|level| format!("{}={level}", self.name)).collect()
            }
            TermKind::Product { factors, pairs } if !is_square(factors) => {
                let columns: Vec<Vec<String>> = factors.iter().map(|factor| factor.term.columns()).collect();
                let name = |(columns, place): (&Vec<String>, &usize)| columns.get(*place).cloned().unwrap_or_default();
                let names = |places: &Vec<usize>| columns.iter().zip(places).map(name).collect::<Vec<_>>().join(":");
                pairs.iter().map(names).collect()
            }
            TermKind::Product { pairs, .. } => pairs.iter().map(|_| self.name.clone()).collect(),
            _ => vec![self.name.clone()],
        }
    }

    /// The column of the table that it is made of, unless it is a product.
    pub(super) fn source(&self) -> &str {
        match &self.kind {
            TermKind::Missing { column } => column,
            _ => &self.name,
        }
    }

    /// With these numbers.
    pub(super) fn term(&self, values: Vec<f64>) -> Term {
        let (name, columns, parents) = (self.name.clone(), self.columns(), self.parents());
        Term { name, columns, values, always: self.always, parents }
    }
}

/// Whether a product is that of a column with itself.
fn is_square(factors: &[Factor]) -> bool {
    matches!(factors, [left, right] if left.term.name == right.term.name)
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
    if list.is_empty() {
        return Ok(());
    }
    let (known, excluded) = (raw.by_name(), set(exclude));
    if let Some(name) = list.iter().find(|name| !known.contains_key(name.as_str())) {
        let (file, name, names) = (raw.file.clone(), name.clone(), raw.names());
        return Err(DataError::NoColumn { file, name, option, names });
    }
    match list.iter().find(|name| excluded.contains(name.as_str())) {
        Some(name) => Err(DataError::ListedTwice { name: name.clone(), option }),
        None => Ok(()),
    }
}

pub(super) fn find<'a>(raw: &'a Raw, response: &str) -> Result<&'a RawColumn, DataError> {
    raw.columns.iter().find(|column| column.name == response).ok_or_else(|| DataError::NoResponse {
        file: raw.file.clone(),
        name: response.into(),
        names: raw.names(),
    })
}

/// A covariate must not be called as a parameter is.
fn check_name(raw: &Raw, name: &str, likelihood: &Likelihood) -> Result<(), DataError> {
    match RESERVED.contains(&name) || likelihood.own_parameter() == Some(name) {
        true => Err(DataError::Reserved { file: raw.file.clone(), name: name.into() }),
        false => Ok(()),
    }
}

/// What a covariate is; missing values say nothing about it.
fn kind(raw: &Raw, column: &RawColumn, categorical: bool) -> Result<TermKind, DataError> {
    let (file, name) = (|| raw.file.clone(), || column.name.clone());
    check_kind(raw, column)?;
    if let Some(value) = column.constant() {
        return Err(DataError::Constant { file: file(), column: name(), value });
    }
    if categorical || is_text(raw, column)? {
        let levels = levels(column);
        return match levels.len() {
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
    if is_boolean(column) {
        return Ok(TermKind::Boolean {});
    }
    check_numbers(raw, column)?;
    Ok(if column.dates { TermKind::Date {} } else { TermKind::Number {} })
}

/// A column must hold numbers or texts.
pub(super) fn check_kind(raw: &Raw, column: &RawColumn) -> Result<(), DataError> {
    match &column.unusable {
        None => Ok(()),
        Some(kind) => Err(DataError::Kind { file: raw.file.clone(), column: column.name.clone(), kind: kind.clone() }),
    }
}

/// `true` and `false`, and nothing else.
pub(super) fn is_boolean(column: &RawColumn) -> bool {
    let mut texts = column.texts().peekable();
    texts.peek().is_some()
        && texts.all(|(_, text)| truth(text).is_some())
        && column.others.len() == column.numbers.len()
}

pub(super) fn truth(text: &str) -> Option<bool> {
    [("true", true), ("false", false)].into_iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, is)| is)
}

pub(super) fn booleans(column: &RawColumn) -> Vec<f64> {
    column.texts().map(|(_, text)| f64::from(u8::from(truth(text) == Some(true)))).collect()
}

/// Whether a column holds texts. A few texts among numbers are mistakes.
pub(super) fn is_text(raw: &Raw, column: &RawColumn) -> Result<bool, DataError> {
    let texts = column.texts().count();
    if texts == 0 || is_boolean(column) {
        return Ok(false);
    }
    if let Some(error) = decimal_comma(raw, column) {
        return Err(error);
    }
    if 2 * texts < column.numbers.len() - column.missing().count() {
        return Err(text_cell(raw, column));
    }
    Ok(true)
}

/// Texts that are numbers with decimal commas, where there should be points.
fn decimal_commas(column: &RawColumn) -> impl Iterator<Item = (usize, &str)> {
    column.texts().filter(|(_, text)| with_decimal_comma(text).is_some())
}

pub(super) fn has_decimal_commas(column: &RawColumn) -> bool {
    decimal_commas(column).next().is_some()
}

fn decimal_comma(raw: &Raw, column: &RawColumn) -> Option<DataError> {
    let (row, cell) = decimal_commas(column).next()?;
    let (file, place, count) = (raw.file.clone(), raw.place(row), decimal_commas(column).count());
    Some(DataError::DecimalComma { file, place, column: column.name.clone(), cell: cell.into(), count })
}

fn text_cell(raw: &Raw, column: &RawColumn) -> DataError {
    let (row, cell) = column.texts().next().unwrap_or((0, ""));
    let (file, place, count) = (raw.file.clone(), raw.place(row), column.texts().count());
    DataError::TextCell { file, place, column: column.name.clone(), cell: cell.into(), count }
}

/// Nothing but finite numbers and missing values.
fn check_numbers(raw: &Raw, column: &RawColumn) -> Result<(), DataError> {
    if column.texts().next().is_some() {
        return Err(decimal_comma(raw, column).unwrap_or_else(|| text_cell(raw, column)));
    }
    if let Some(row) = column.numbers.iter().position(|value| value.is_infinite()) {
        let (file, place, value) = (raw.file.clone(), raw.place(row), column.numbers[row]);
        return Err(DataError::NotFinite { file, place, column: column.name.clone(), value });
    }
    Ok(())
}

/// A column of nothing but finite numbers.
pub(super) fn numbers(raw: &Raw, column: &RawColumn) -> Result<Vec<f64>, DataError> {
    check_numbers(raw, column)?;
    Ok(column.numbers.clone())
}

/// Cells as texts; empty where they are missing.
pub(super) fn texts(column: &RawColumn) -> Vec<String> {
    let text = |number: &f64| if number.is_nan() { String::new() } else { number.to_string() };
    let mut texts: Vec<String> = column.numbers.iter().map(text).collect();
    column.texts().for_each(|(row, text)| texts[row] = text.into());
    texts
}

/// Different texts in order: numbers by size, then words.
pub(super) fn levels(column: &RawColumn) -> Vec<String> {
    let numbers = column.present_numbers().map(|number| number.to_string());
    let mut levels: Vec<String> = column.texts().map(|(_, text)| text.to_string()).chain(numbers).collect();
    let key = |text: &String| text.parse::<f64>().unwrap_or(f64::INFINITY);
    levels.sort_by(|a, b| key(a).total_cmp(&key(b)).then_with(|| a.cmp(b)));
    levels.dedup();
    levels
}

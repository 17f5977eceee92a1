//! The response: numbers, truth values, or texts that stand for categories.

use vti::problem::selection::Likelihood;

use super::DataError;
use super::raw::{Raw, RawColumn};
use super::schema::{MAX_LEVELS, Schema, booleans, check_kind, find, is_boolean, is_text, levels, numbers, texts};

impl Schema {
    /// The response of a table that has one.
    pub(super) fn response(&self, raw: &Raw) -> Result<Vec<f64>, DataError> {
        let column = find(raw, &self.response)?;
        let values = match &self.response_levels {
            Some(levels) => {
                let number = |cell: &String| levels.iter().position(|level| level == cell).unwrap_or(0) as f64;
                texts(column).iter().map(number).collect()
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
}

/// Texts as a response, or numbers that name categories, where the likelihood can use them.
pub(super) fn response_levels(
    raw: &Raw,
    column: &RawColumn,
    likelihood: &Likelihood,
) -> Result<Option<Vec<String>>, DataError> {
    check_kind(raw, column)?;
    let several = *likelihood == (Likelihood::Multinomial {});
    if !several && (is_boolean(column) || !is_text(raw, column)?) {
        return Ok(None);
    }
    let (file, name) = (raw.file.clone(), column.name.clone());
    let levels = levels(column);
    match &levels[..] {
        [] => Ok(None),
        [value] => Err(DataError::ConstantResponse { file, column: name, value: value.clone() }),
        levels if levels.len() > MAX_LEVELS && several => {
            Err(DataError::ResponseLevels { file, column: name, levels: levels.len(), most: MAX_LEVELS })
        }
        [_, _] if likelihood.has_categories() => Ok(Some(levels)),
        _ if several => Ok(Some(levels)),
        [first, second] => {
            Err(DataError::TwoLevels { file, column: name, first: first.clone(), second: second.clone() })
        }
        _ => Err(DataError::TextResponse { file, column: name, levels: levels.len() }),
    }
}

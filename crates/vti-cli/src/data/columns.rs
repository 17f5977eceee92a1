//! From a file to some of its columns, as numbers.

use super::missing::{Missing, Words};
use super::schema::{check_list, numbers, set};
use super::series::only;
use super::tidy::{Known, tidy};
use super::{DataError, Source};

/// Columns of numbers, and where they came from.
#[derive(Debug)]
pub(crate) struct LoadedColumns {
    pub(crate) names: Vec<String>,
    pub(crate) columns: Vec<Vec<f64>>,
    pub(crate) fingerprint: String,
    /// What the user should know about how the file was understood.
    pub(crate) notes: Vec<String>,
    pub(crate) file: String,
}

/// Which columns take part, in their order: names, or none for the only one that is left, with the options that name them.
#[derive(Clone, Debug)]
pub(crate) struct ColumnChoice<'a> {
    pub(crate) columns: Vec<(Option<&'a str>, &'static str)>,
    pub(crate) missing: Missing,
    /// Words for a missing value beside the usual ones.
    pub(crate) missing_values: &'a [String],
}

impl LoadedColumns {
    /// Reads columns of a table.
    pub(crate) fn load(source: &Source, choice: &ColumnChoice<'_>) -> Result<Self, DataError> {
        if choice.missing == Missing::Indicator {
            return Err(DataError::IndicatorOfSeries);
        }
        let mut raw = source.parse(&Words::new(choice.missing_values))?;
        raw.check_names()?;
        let given: Vec<&str> = choice.columns.iter().filter_map(|(name, _)| *name).collect();
        let mut names: Vec<String> = Vec::new();
        for (name, option) in &choice.columns {
            let name = match name {
                Some(name) => (*name).to_string(),
                None => only(&raw, &given, option)?,
            };
            check_list(&raw, std::slice::from_ref(&name), option, &[])?;
            if names.contains(&name) {
                return Err(DataError::ColumnTwice { column: name });
            }
            names.push(name);
        }
        raw.columns.retain(|column| names.contains(&column.name));
        let known = Known {
            response: None,
            required: set(&names),
            named: set(&names),
            categorical: set(&[]),
            missing: choice.missing,
        };
        let tidied = tidy(&mut raw, &known)?;
        let column = |name: &String| -> Result<Vec<f64>, DataError> {
            let found = raw.columns.iter().find(|column| column.name == *name);
            found.map_or_else(|| Ok(Vec::new()), |column| numbers(&raw, column))
        };
        let columns = names.iter().map(column).collect::<Result<_, _>>()?;
        let mut notes = tidied.notes;
        notes.extend(raw.decimal_commas.then(|| "numbers are read with decimal commas".to_string()));
        Ok(Self { names, columns, fingerprint: source.fingerprint(), notes, file: raw.file })
    }
}

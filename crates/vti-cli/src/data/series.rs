//! From a file to times and values, in which changes are looked for.

use vti::problem::changepoints::{Kind, Series, SeriesError};

use super::missing::{Missing, Words};
use super::raw::Raw;
use super::schema::{check_list, numbers, set};
use super::tidy::{Known, tidy};
use super::{DataError, Source, dates};

/// Which columns take part.
#[derive(Clone, Debug)]
pub(crate) struct SeriesChoice<'a> {
    pub(crate) kind: Kind,
    /// The column of times; of events the only one by default.
    pub(crate) time: Option<&'a str>,
    /// The column of values; the only other one by default.
    pub(crate) value: Option<&'a str>,
    /// The column of exposures, of counts.
    pub(crate) exposure: Option<&'a str>,
    /// When observation of events began and ended.
    pub(crate) window: [Option<f64>; 2],
    pub(crate) missing: Missing,
    /// Words for a missing value beside the usual ones.
    pub(crate) missing_values: &'a [String],
}

/// Times and values, and where they came from.
#[derive(Debug)]
pub(crate) struct LoadedSeries {
    pub(crate) series: Series,
    /// Names of the columns of times and of values.
    pub(crate) time: Option<String>,
    pub(crate) value: Option<String>,
    pub(crate) fingerprint: String,
    /// What the user should know about how the file was understood.
    pub(crate) notes: Vec<String>,
    pub(crate) file: String,
}

impl LoadedSeries {
    /// Puts the rows of a table into order.
    pub(crate) fn load(source: &Source, choice: &SeriesChoice<'_>) -> Result<Self, DataError> {
        if choice.missing == Missing::Indicator {
            return Err(DataError::IndicatorOfSeries);
        }
        let mut raw = source.parse(&Words::new(choice.missing_values))?;
        raw.check_names()?;
        let is_events = choice.kind == Kind::Events;
        let time = match choice.time {
            None if is_events => Some(only(&raw, &[], "--time")?),
            named => named.map(String::from),
        };
        let exposure = choice.exposure.map(String::from);
        let value = match choice.value {
            None if !is_events => {
                let others: Vec<&str> = [&time, &exposure].into_iter().flatten().map(String::as_str).collect();
                Some(only(&raw, &others, "--value")?)
            }
            named => named.map(String::from),
        };
        let options = [(&time, "--time"), (&value, "--value"), (&exposure, "--exposure")];
        for (name, option) in options {
            check_list(&raw, name.as_slice(), option, &[])?;
        }
        let used: Vec<String> = [&time, &value, &exposure].into_iter().flatten().cloned().collect();
        raw.columns.retain(|column| used.contains(&column.name));
        let known = Known {
            response: None,
            required: set(&used),
            named: set(&used),
            categorical: set(&[]),
            missing: choice.missing,
        };
        let tidied = tidy(&mut raw, &known)?;
        let column = |name: &Option<String>| -> Result<Option<Vec<f64>>, DataError> {
            let found = raw.columns.iter().find(|column| Some(&column.name) == name.as_ref());
            found.map(|column| numbers(&raw, column)).transpose()
        };
        let (times, values, exposures) = (column(&time)?, column(&value)?, column(&exposure)?);
        let [start, end] = choice.window;
        let ordered = match &values {
            Some(values) => Series::rows(values, times.as_deref(), exposures.as_deref()),
            None => Series::events(times.as_deref().unwrap_or_default(), start, end),
        };
        let file = raw.file.clone();
        let (series, remarks) =
            ordered.map_err(|error| DataError::Series { file: file.clone(), error: located(&error, &raw) })?;
        let mut notes: Vec<String> = tidied.notes;
        notes.extend(raw.decimal_commas.then(|| "numbers are read with decimal commas".to_string()));
        notes.extend(remarks);
        Ok(Self { series, time, value, fingerprint: source.fingerprint(), notes, file })
    }
}

/// What is wrong, with the place in the file where it is in one row.
fn located(error: &SeriesError, raw: &Raw) -> String {
    let row = match error {
        SeriesError::NotFinite { row, .. }
        | SeriesError::Outside { row, .. }
        | SeriesError::NotCount { row, .. }
        | SeriesError::Exposure { row, .. } => Some(*row),
        _ => None,
    };
    match row {
        Some(row) => error.to_string().replacen(&format!("row {row}"), &raw.place(row - 1), 1),
        None => error.to_string(),
    }
}

/// The only column beside some.
pub(super) fn only(raw: &Raw, others: &[&str], option: &'static str) -> Result<String, DataError> {
    let mut left = raw.names().into_iter().filter(|name| !others.contains(&name.as_str()));
    match (left.next(), left.next()) {
        (Some(name), None) => Ok(name),
        _ => Err(DataError::WhichColumn { file: raw.file.clone(), option, names: raw.names() }),
    }
}

/// A moment: a number, or a date as its day.
pub(crate) fn moment(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite()).or_else(|| dates::days(text.trim()))
}

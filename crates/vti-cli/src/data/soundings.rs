//! From a file to what was measured over layers.

use serde::{Deserialize, Serialize};
use vti::problem::layers::{LayerDataError, Observed, Sounding};

use super::missing::{Missing, Words};
use super::raw::{Raw, RawColumn};
use super::schema::{check_list, numbers, set};
use super::tidy::{Known, tidy};
use super::{DataError, Source};

/// Columns by what they hold; found by their names where nobody says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LayerColumns {
    /// Of magnetotelluric data: seconds, or hertz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) period: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) frequency: Option<String>,
    /// Apparent resistivity in Ωm, and its standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resistivity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resistivity_error: Option<String>,
    /// Phase in degrees, and its standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) phase_error: Option<String>,
    /// Of what a program predicts: what data are drawn over, their values and standard deviations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) x: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// What is read, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerChoice<'a> {
    pub(crate) columns: &'a LayerColumns,
    /// Whether data are magnetotelluric; else they are whatever a program predicts.
    pub(crate) is_sounding: bool,
    /// Errors as a share of apparent resistivities, or of the spread of other data, where no column has them.
    pub(crate) relative_error: f64,
    pub(crate) missing: Missing,
    /// Words for a missing value beside the usual ones.
    pub(crate) missing_values: &'a [String],
}

/// What was measured, and where it came from.
#[derive(Debug)]
pub(crate) struct LoadedLayers {
    pub(crate) measured: Measured,
    /// The columns that were found.
    pub(crate) columns: LayerColumns,
    /// Whether errors are those of columns.
    pub(crate) has_errors: bool,
    pub(crate) fingerprint: String,
    /// What the user should know about how the file was understood.
    pub(crate) notes: Vec<String>,
}

/// What was measured.
#[derive(Debug)]
pub(crate) enum Measured {
    Sounding(Sounding),
    /// Data, and what they are drawn over where that is known.
    Data(Observed, Option<Vec<f64>>),
}

impl LoadedLayers {
    /// Reads a table.
    pub(crate) fn load(source: &Source, choice: &LayerChoice<'_>) -> Result<Self, DataError> {
        if choice.missing == Missing::Indicator {
            return Err(DataError::IndicatorOfSeries);
        }
        let mut raw = source.parse(&Words::new(choice.missing_values))?;
        raw.check_names()?;
        let columns =
            if choice.is_sounding { of_sounding(&raw, choice.columns)? } else { of_data(&raw, choice.columns)? };
        let used: Vec<String> = all(&columns).into_iter().flatten().cloned().collect();
        raw.columns.retain(|column| used.contains(&column.name));
        let mut notes = Vec::new();
        // A program answers for all rows, those without a value too.
        let is_whole = !choice.is_sounding && choice.missing == Missing::Drop;
        if !is_whole {
            let known = Known {
                response: None,
                required: set(&used),
                named: set(&used),
                categorical: set(&[]),
                missing: choice.missing,
            };
            notes.extend(tidy(&mut raw, &known)?.notes);
        }
        notes.extend(raw.decimal_commas.then(|| "numbers are read with decimal commas".to_string()));
        let table = Columns { raw: &raw, is_whole };
        let (measured, has_errors) = match choice.is_sounding {
            true => sounding(&table, &columns, choice.relative_error)?,
            false => data(&table, &columns, choice.relative_error, &mut notes)?,
        };
        Ok(Self { measured, columns, has_errors, fingerprint: source.fingerprint(), notes })
    }

    /// Data that are there.
    pub(crate) fn len(&self) -> usize {
        match &self.measured {
            Measured::Sounding(sounding) => sounding.periods.len(),
            Measured::Data(observed, _) => observed.values.len(),
        }
    }
}

/// Columns as numbers.
struct Columns<'a> {
    raw: &'a Raw,
    /// Whether missing values stay.
    is_whole: bool,
}

impl Columns<'_> {
    fn get(&self, name: &Option<String>) -> Result<Option<Vec<f64>>, DataError> {
        let found = self.raw.columns.iter().find(|column| Some(&column.name) == name.as_ref());
        let read = |column: &RawColumn| match self.is_whole && column.texts().next().is_none() {
            true => Ok(column.numbers.clone()),
            false => numbers(self.raw, column),
        };
        found.map(read).transpose()
    }

    /// What is wrong, with its place in the file.
    fn located(&self, error: &LayerDataError) -> DataError {
        let text = match error {
            LayerDataError::Value { row, .. } => {
                error.to_string().replacen(&format!("row {row}"), &self.raw.place(row - 1), 1)
            }
            _ => error.to_string(),
        };
        DataError::Series { file: self.raw.file.clone(), error: text }
    }
}

fn all(columns: &LayerColumns) -> [Option<&String>; 9] {
    let LayerColumns { period, frequency, resistivity, resistivity_error, phase, phase_error, x, value, error } =
        columns;
    [period, frequency, resistivity, resistivity_error, phase, phase_error, x, value, error].map(Option::as_ref)
}

/// A column that was named, or the first that has one of the usual names.
fn find(raw: &Raw, named: &Option<String>, option: &'static str, usual: &[&str]) -> Result<Option<String>, DataError> {
    check_list(raw, named.as_slice(), option, &[])?;
    let is_usual = |name: &String| usual.iter().any(|usual| usual.eq_ignore_ascii_case(name.trim()));
    Ok(named.clone().or_else(|| raw.names().into_iter().find(is_usual)))
}

/// Columns of a sounding.
fn of_sounding(raw: &Raw, named: &LayerColumns) -> Result<LayerColumns, DataError> {
    let frequency = find(raw, &named.frequency, "--frequency", &["frequency", "freq", "f"])?;
    let period = find(raw, &named.period, "--period", &["period", "periods", "t"])?;
    let found = LayerColumns {
        // One of them is enough; what was named goes first.
        period: if named.frequency.is_some() { None } else { period },
        frequency: if named.period.is_some() { None } else { frequency },
        resistivity: find(
            raw,
            &named.resistivity,
            "--resistivity",
            &["resistivity", "apparent_resistivity", "rho", "rhoa", "rho_a", "app_res"],
        )?,
        resistivity_error: find(
            raw,
            &named.resistivity_error,
            "--resistivity-error",
            &["resistivity_error", "apparent_resistivity_error", "rho_error", "rho_err", "rhoa_err", "rho_sd"],
        )?,
        phase: find(raw, &named.phase, "--phase", &["phase", "phi", "phs"])?,
        phase_error: find(
            raw,
            &named.phase_error,
            "--phase-error",
            &["phase_error", "phase_err", "phi_err", "phase_sd"],
        )?,
        ..LayerColumns::default()
    };
    let which = |option| DataError::WhichColumn { file: raw.file.clone(), option, names: raw.names() };
    match &found {
        LayerColumns { period: None, frequency: None, .. } => Err(which("--period or --frequency")),
        LayerColumns { resistivity: None, phase: None, .. } => Err(which("--resistivity or --phase")),
        // Both are there and nobody said which.
        LayerColumns { period: Some(_), frequency: Some(_), .. } => Ok(LayerColumns { frequency: None, ..found }),
        _ => Ok(found),
    }
}

/// Columns of data that a program predicts.
fn of_data(raw: &Raw, named: &LayerColumns) -> Result<LayerColumns, DataError> {
    let found = LayerColumns {
        x: find(raw, &named.x, "--x", &[])?,
        value: find(raw, &named.value, "--value", &["value", "data", "observed", "y"])?,
        error: find(raw, &named.error, "--error", &["error", "errors", "sd", "sigma"])?,
        ..LayerColumns::default()
    };
    match found.value {
        None => Err(DataError::WhichColumn { file: raw.file.clone(), option: "--value", names: raw.names() }),
        Some(_) => Ok(found),
    }
}

/// A sounding in the order of periods.
fn sounding(table: &Columns<'_>, columns: &LayerColumns, share: f64) -> Result<(Measured, bool), DataError> {
    let frequencies = table.get(&columns.frequency)?;
    let rows = table.raw.rows();
    let periods = match frequencies {
        Some(frequencies) => frequencies.iter().map(|frequency| 1.0 / frequency).collect(),
        None => table.get(&columns.period)?.unwrap_or_default(),
    };
    let none = || vec![f64::NAN; rows];
    let resistivity = table.get(&columns.resistivity)?.unwrap_or_else(none);
    let phase = table.get(&columns.phase)?.unwrap_or_else(none);
    let [resistivity_error, phase_error] = [table.get(&columns.resistivity_error)?, table.get(&columns.phase_error)?];
    let needs = |errors: &Option<Vec<f64>>, column: &Option<String>| errors.is_none() && column.is_some();
    let has_errors = !needs(&resistivity_error, &columns.resistivity) && !needs(&phase_error, &columns.phase);
    let resistivity_error = resistivity_error.unwrap_or_else(|| resistivity.iter().map(|rho| share * rho).collect());
    let phase_error = phase_error.unwrap_or_else(|| vec![(0.5 * share).to_degrees(); rows]);
    let read = Sounding { periods, resistivity, resistivity_error, phase, phase_error };
    read.observed().map_err(|error| table.located(&error))?;
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by(|&a, &b| read.periods[a].total_cmp(&read.periods[b]));
    let sorted = |column: &[f64]| order.iter().map(|&row| column[row]).collect::<Vec<f64>>();
    let sounding = Sounding {
        periods: sorted(&read.periods),
        resistivity: sorted(&read.resistivity),
        resistivity_error: sorted(&read.resistivity_error),
        phase: sorted(&read.phase),
        phase_error: sorted(&read.phase_error),
    };
    Ok((Measured::Sounding(sounding), has_errors))
}

/// Data of another kind, in the order of rows.
fn data(
    table: &Columns<'_>,
    columns: &LayerColumns,
    share: f64,
    notes: &mut Vec<String>,
) -> Result<(Measured, bool), DataError> {
    let values = table.get(&columns.value)?.unwrap_or_default();
    let there: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    if there.len() < values.len() {
        notes.push(format!("{} of {} rows have no value, and do not count", values.len() - there.len(), values.len()));
    }
    let errors = table.get(&columns.error)?;
    let has_errors = errors.is_some();
    let errors = errors.unwrap_or_else(|| {
        let mean = there.iter().sum::<f64>() / there.len() as f64;
        let variance = there.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / there.len() as f64;
        vec![share * if variance > 0.0 { variance.sqrt() } else { mean.abs() }; values.len()]
    });
    let x = table.get(&columns.x)?;
    let observed = Observed::new(values, errors).map_err(|error| table.located(&error))?;
    Ok((Measured::Data(observed, x.filter(|x| x.iter().all(|x| x.is_finite()))), has_errors))
}

//! Layers, in the section `[problem]`.

use serde::{Deserialize, Serialize};
use vti::prior::CountPrior;
use vti::problem::layers::program::ProgramSettings;
use vti::problem::layers::{Errors, LayerPriors, LayerSettings};

use crate::data::LayerColumns;

/// A layered earth under data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LayersConfig {
    /// What predicts data: `mt`, or a program with its arguments.
    pub(crate) forward: String,
    /// How many processes of the program run side by side; as many as threads by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) processes: Option<usize>,
    /// How long an answer of the program may take, in seconds.
    pub(crate) timeout: f64,
    /// What layers have, for a program.
    pub(crate) property: String,
    /// Errors as a share, where no column has them.
    pub(crate) relative_error: f64,
    pub(crate) max_layers: usize,
    pub(crate) count_prior: CountPrior,
    /// Known where columns have them, and with an unknown factor where none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) errors: Option<Errors>,
    pub(crate) columns: LayerColumns,
    pub(crate) prior: LayerPriors,
}

/// The name of magnetotelluric data.
const MT: &str = "mt";

impl Default for LayersConfig {
    fn default() -> Self {
        let LayerSettings { max_layers, count_prior, errors: _, prior } = LayerSettings::default();
        Self {
            forward: MT.into(),
            processes: None,
            timeout: ProgramSettings::default().timeout,
            property: "value".into(),
            relative_error: 0.05,
            max_layers,
            count_prior,
            errors: None,
            columns: LayerColumns::default(),
            prior,
        }
    }
}

impl LayersConfig {
    /// Whether data are magnetotelluric.
    pub(crate) fn is_sounding(&self) -> bool {
        self.forward.trim() == MT
    }

    /// What is assumed, where errors are those of columns or not.
    pub(crate) fn settings(&self, has_errors: bool) -> LayerSettings {
        let Self { max_layers, count_prior, prior, .. } = self.clone();
        let guessed = if has_errors { Errors::Known } else { Errors::Scaled };
        LayerSettings { max_layers, count_prior, errors: self.errors.unwrap_or(guessed), prior }
    }

    /// How the program is run, with the words of its command.
    pub(crate) fn program(&self) -> Result<ProgramSettings, String> {
        let command = words(&self.forward)?;
        if command.is_empty() {
            return Err("--forward: mt or a program is needed".into());
        }
        Ok(ProgramSettings { command, processes: self.processes, timeout: self.timeout })
    }

    /// With what it leaves out as the other has it.
    pub(super) fn filled_from(&self, other: &Self) -> Self {
        let mut filled = self.clone();
        filled.errors = filled.errors.or(other.errors);
        let (prior, others) = (&mut filled.prior, other.prior.clone());
        prior.depth = prior.depth.take().or(others.depth);
        prior.value = prior.value.take().or(others.value);
        prior.factor = prior.factor.take().or(others.factor);
        let (columns, others) = (&mut filled.columns, other.columns.clone());
        columns.period = columns.period.take().or(others.period);
        columns.frequency = columns.frequency.take().or(others.frequency);
        columns.resistivity = columns.resistivity.take().or(others.resistivity);
        columns.resistivity_error = columns.resistivity_error.take().or(others.resistivity_error);
        columns.phase = columns.phase.take().or(others.phase);
        columns.phase_error = columns.phase_error.take().or(others.phase_error);
        columns.x = columns.x.take().or(others.x);
        columns.value = columns.value.take().or(others.value);
        columns.error = columns.error.take().or(others.error);
        // How a program is run is no part of the question.
        (filled.processes, filled.timeout) = (other.processes, other.timeout);
        filled
    }
}

/// The words of a command, as spaces and quotation marks divide it.
fn words(command: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    for c in command.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match quote {
        Some(open) => Err(format!("--forward: the quotation mark {open} is not closed")),
        None => Ok(words),
    }
}

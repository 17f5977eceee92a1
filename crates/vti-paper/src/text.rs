//! Tables and pages as text.

use std::fmt::{Display, Formatter, Result, Write};

use serde::Serialize;
use vti_report::files::{Cells, CsvTable};

/// Writes a value as settings have it.
pub(crate) fn as_in_settings(value: &impl Serialize, formatter: &mut Formatter<'_>) -> Result {
    let name = serde_json::to_value(value).ok();
    formatter.pad(name.as_ref().and_then(serde_json::Value::as_str).unwrap_or("?"))
}

/// Values that are written in tables, file names and sentences as they are in settings.
macro_rules! named {
    ($($kind:ty),*) => {
        $(impl std::fmt::Display for $kind {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                crate::text::as_in_settings(self, formatter)
            }
        })*
    };
}
pub(crate) use named;

/// A table for machines, under these names.
pub(crate) fn table<S: AsRef<str>>(
    names: impl IntoIterator<Item = S>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> anyhow::Result<String> {
    let mut table = CsvTable::new(Cells::Guarded, names)?;
    rows.into_iter().try_for_each(|row| table.row(row))?;
    Ok(String::from_utf8(table.bytes()?)?)
}

/// A number in a table for machines; nothing where there is none.
pub(crate) fn cell(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.5}"))
}

/// A probability in a table for machines: small ones need their digits too.
pub(crate) fn probability(value: f64) -> String {
    if value == 0.0 { "0".into() } else { format!("{value:.4e}") }
}

/// A number in a table for people.
pub(crate) fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".into(), |value| format!("{value:.digits$}"))
}

/// Numbers in the order of what they depend on.
pub(crate) fn listed(values: &[f64], digits: usize) -> String {
    values.iter().map(|value| format!("{value:.digits$}")).collect::<Vec<_>>().join(" → ")
}

/// What the paper says, one by one, and what was seen.
pub(crate) struct Findings(pub(crate) String);

impl Findings {
    /// Those that follow are about this.
    pub(crate) fn about(&mut self, what: &str) {
        let _ = writeln!(self.0, "\n**{what}**\n");
    }

    pub(crate) fn say(&mut self, claim: &str, agrees: bool, seen: impl Display) {
        let verdict = if agrees { "agrees" } else { "does not agree" };
        let _ = writeln!(self.0, "- {claim}: {verdict} ({seen}).");
    }
}

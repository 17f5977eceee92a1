//! What a run leaves behind.

pub(crate) mod graph;
pub(crate) mod models;
pub(crate) mod parquet;
pub(crate) mod report;
pub(crate) mod table;

use anyhow::Result;

/// Columns of draws before those of parameters, and behind them.
const FIRST: [&str; 5] = ["model", "word", "log_q", "log_target", "log_weight"];
const ACTIVE: &str = "active";

/// What a parameter's column is called: as the parameter, unless another column is called that.
pub(crate) fn column_name(parameter: &str) -> String {
    if FIRST.contains(&parameter) || parameter == ACTIVE { format!("{parameter}.parameter") } else { parameter.into() }
}

/// The names of all columns of draws but the last.
pub(crate) fn draw_columns(parameters: &[String]) -> impl Iterator<Item = String> {
    FIRST.into_iter().map(String::from).chain(parameters.iter().map(|name| column_name(name)))
}

/// The bytes of a CSV table.
pub(crate) fn finish_csv(writer: csv::Writer<Vec<u8>>) -> Result<Vec<u8>> {
    Ok(writer.into_inner().map_err(csv::IntoInnerError::into_error)?)
}

//! What a run leaves behind.

pub(crate) mod models;
pub(crate) mod parquet;
pub(crate) mod report;
pub(crate) mod table;

use anyhow::Result;

/// The bytes of a CSV table.
pub(crate) fn finish_csv(writer: csv::Writer<Vec<u8>>) -> Result<Vec<u8>> {
    Ok(writer.into_inner().map_err(csv::IntoInnerError::into_error)?)
}

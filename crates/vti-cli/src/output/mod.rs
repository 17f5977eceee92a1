//! What a run leaves behind.

pub(crate) mod models;
pub(crate) mod parquet;
pub(crate) mod report;
pub(crate) mod table;

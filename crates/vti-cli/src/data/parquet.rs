//! Tables in Parquet files, as pandas, polars and others write them.

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::DataError;
use super::csv::is_missing;
use super::raw::{Cell, Raw, RawColumn};

/// Columns that pandas writes for its own use.
const INDEX: &str = "__index_level_";

pub(crate) fn read(file: &str, bytes: &[u8]) -> Result<Raw, DataError> {
    let not_parquet =
        |error: parquet::errors::ParquetError| DataError::NotParquet { file: file.into(), reason: error.to_string() };
    let reader = SerializedFileReader::new(Bytes::copy_from_slice(bytes)).map_err(not_parquet)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut columns: Vec<RawColumn> =
        schema.root_schema().get_fields().iter().map(|field| RawColumn::new(field.name())).collect();
    for row in reader.get_row_iter(None).map_err(not_parquet)? {
        let row = row.map_err(not_parquet)?;
        for (column, (name, field)) in columns.iter_mut().zip(row.get_column_iter()) {
            column.push(cell(field).map_err(|kind| DataError::Kind {
                file: file.into(),
                column: name.clone(),
                kind,
            })?);
        }
    }
    columns.retain(|column| !column.name.starts_with(INDEX));
    Ok(Raw { file: file.into(), columns, lines: Vec::new(), decimal_commas: false })
}

/// A cell, or what it is instead.
fn cell(field: &Field) -> Result<Cell, String> {
    Ok(match field {
        Field::Null => Cell::Missing("null".into()),
        // The same words as in text files.
        Field::Bool(value) => Cell::Text(value.to_string()),
        Field::Byte(value) => Cell::Number((*value).into()),
        Field::Short(value) => Cell::Number((*value).into()),
        Field::Int(value) => Cell::Number((*value).into()),
        Field::Long(value) => Cell::Number(*value as f64),
        Field::UByte(value) => Cell::Number((*value).into()),
        Field::UShort(value) => Cell::Number((*value).into()),
        Field::UInt(value) => Cell::Number((*value).into()),
        Field::ULong(value) => Cell::Number(*value as f64),
        Field::Float16(value) => number(value.to_f64()),
        Field::Float(value) => number((*value).into()),
        Field::Double(value) => number(*value),
        Field::Str(value) if is_missing(value) => Cell::Missing(value.clone()),
        Field::Str(value) => Cell::Text(value.clone()),
        Field::Decimal(_) => field.to_string().parse().map_or_else(|_| Cell::Text(field.to_string()), Cell::Number),
        Field::Bytes(_) => return Err("bytes".into()),
        Field::Date(_) => return Err("dates".into()),
        Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => return Err("nested values".into()),
        _ => return Err("times".into()),
    })
}

/// pandas writes a missing number as one that is not a number.
fn number(value: f64) -> Cell {
    if value.is_nan() { Cell::Missing("NaN".into()) } else { Cell::Number(value) }
}

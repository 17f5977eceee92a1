//! Tables in Parquet files, as pandas, polars and others write them.

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::DataError;
use super::missing::Words;
use super::raw::{Cell, Raw, RawColumn};

/// Columns that pandas writes for its own use.
const INDEX: &str = "__index_level_";

pub(crate) fn read(file: &str, bytes: &[u8], words: &Words) -> Result<Raw, DataError> {
    let not_parquet =
        |error: parquet::errors::ParquetError| DataError::NotParquet { file: file.into(), reason: error.to_string() };
    let reader = SerializedFileReader::new(Bytes::copy_from_slice(bytes)).map_err(not_parquet)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut columns: Vec<RawColumn> =
        schema.root_schema().get_fields().iter().map(|field| RawColumn::new(field.name())).collect();
    let mut places = Vec::new();
    for row in reader.get_row_iter(None).map_err(not_parquet)? {
        places.push(places.len() as u64 + 1);
        let row = row.map_err(not_parquet)?;
        for (column, (_, field)) in columns.iter_mut().zip(row.get_column_iter()) {
            match cell(field, words) {
                Ok(cell) => column.push(cell),
                Err(kind) => {
                    column.unusable = Some(kind.into());
                    column.push(Cell::Missing(kind.into()));
                }
            }
            column.dates |= is_date(field);
        }
    }
    columns.retain(|column| !column.name.starts_with(INDEX));
    Ok(Raw { file: file.into(), columns, places, has_lines: false, decimal_commas: false })
}

fn is_date(field: &Field) -> bool {
    matches!(field, Field::Date(_) | Field::TimestampMillis(_) | Field::TimestampMicros(_))
}

/// A cell, or what it is instead.
fn cell(field: &Field, words: &Words) -> Result<Cell, &'static str> {
    let number = |value: f64| {
        // pandas writes a missing number as one that is not a number.
        if words.are_number(value) { Cell::Missing(value.to_string()) } else { Cell::Number(value) }
    };
    Ok(match field {
        Field::Null => Cell::Missing("null".into()),
        // The same words as in text files.
        Field::Bool(value) => Cell::Text(value.to_string()),
        Field::Byte(value) => number((*value).into()),
        Field::Short(value) => number((*value).into()),
        Field::Int(value) => number((*value).into()),
        Field::Long(value) => number(*value as f64),
        Field::UByte(value) => number((*value).into()),
        Field::UShort(value) => number((*value).into()),
        Field::UInt(value) => number((*value).into()),
        Field::ULong(value) => number(*value as f64),
        Field::Float16(value) => number(value.to_f64()),
        Field::Float(value) => number((*value).into()),
        Field::Double(value) => number(*value),
        Field::Str(value) if words.are(value) => Cell::Missing(value.clone()),
        Field::Str(value) => Cell::Text(value.clone()),
        Field::Decimal(_) => field.to_string().parse().map_or_else(|_| Cell::Text(field.to_string()), number),
        // Days since 1970-01-01.
        Field::Date(days) => Cell::Number((*days).into()),
        Field::TimestampMillis(value) => Cell::Number(*value as f64 / 86_400e3),
        Field::TimestampMicros(value) => Cell::Number(*value as f64 / 86_400e6),
        Field::Bytes(_) => return Err("bytes"),
        Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => return Err("nested values"),
        _ => return Err("times"),
    })
}

//! Tables in Parquet files, as pandas, polars and others write them.

use bytes::Bytes;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::FileReader;
use parquet::record::Field;
use parquet::schema::types::Type;
use vti_report::files::{open, reading};

use super::DataError;
use super::missing::Words;
use super::raw::{Cell, Raw, RawColumn};
use super::source::unpacks_to_more;

/// Columns that pandas writes for its own use.
const INDEX: &str = "__index_level_";

/// Reads a table whose numbers take at most so many bytes.
pub(crate) fn read(file: &str, bytes: &[u8], words: &Words, most: u64) -> Result<Raw, DataError> {
    reading(|| parse(file, bytes, words, most), |error| not_parquet(file, &error))
}

fn not_parquet(file: &str, error: &ParquetError) -> DataError {
    DataError::NotParquet { file: file.into(), reason: error.to_string() }
}

fn parse(file: &str, bytes: &[u8], words: &Words, most: u64) -> Result<Raw, DataError> {
    let not_parquet = |error: ParquetError| not_parquet(file, &error);
    let reader = open(Bytes::copy_from_slice(bytes)).map_err(not_parquet)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let fields = schema.root_schema().get_fields();
    let mut columns: Vec<RawColumn> = fields.iter().map(|field| RawColumn::new(field.name())).collect();
    let nanoseconds: Vec<bool> = fields.iter().map(|field| counts_nanoseconds(field)).collect();
    check_size(file, reader.metadata(), most)?;
    let mut places = Vec::new();
    for row in reader.get_row_iter(None).map_err(not_parquet)? {
        places.push(places.len() as u64 + 1);
        let row = row.map_err(not_parquet)?;
        for ((column, (_, field)), &nanoseconds) in columns.iter_mut().zip(row.get_column_iter()).zip(&nanoseconds) {
            match cell(field, words, nanoseconds) {
                Ok(cell) => column.push(cell),
                Err(kind) => {
                    column.unusable = Some(kind.into());
                    column.push(Cell::Missing(kind.into()));
                }
            }
            column.dates |= nanoseconds || is_date(field);
        }
    }
    columns.retain(|column| !column.name.starts_with(INDEX));
    Ok(Raw { file: file.into(), columns, places, has_lines: false, decimal_commas: false })
}

/// A few bytes may stand for any number of rows: what they say about themselves is looked at first.
fn check_size(file: &str, metadata: &ParquetMetaData, most: u64) -> Result<(), DataError> {
    let columns = metadata.file_metadata().schema_descr().num_columns() as u64;
    let rows = metadata.row_groups().iter().map(|group| group.num_rows().unsigned_abs());
    let cells = rows.fold(0, u64::saturating_add).saturating_mul(columns.max(1));
    if cells.saturating_mul(size_of::<f64>() as u64) > most {
        return Err(unpacks_to_more(file, "Parquet", most));
    }
    Ok(())
}

/// Whether a column holds times in nanoseconds, for which rows have no name of their own.
fn counts_nanoseconds(field: &Type) -> bool {
    let kind = field.get_basic_info().logical_type_ref();
    matches!(kind, Some(LogicalType::Timestamp(time)) if time.unit == TimeUnit::NANOS)
}

fn is_date(field: &Field) -> bool {
    matches!(field, Field::Date(_) | Field::TimestampMillis(_) | Field::TimestampMicros(_))
}

/// A cell, or what it is instead.
fn cell(field: &Field, words: &Words, nanoseconds: bool) -> Result<Cell, &'static str> {
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
        Field::Long(value) if nanoseconds => Cell::Number(*value as f64 / 86_400e9),
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

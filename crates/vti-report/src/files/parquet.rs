//! `posterior.parquet`: draws with their weights, as other tools read them.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::FileReader;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::Field;
use parquet::schema::types::Type;
use serde::{Deserialize, Serialize};
use vti::answer::{SampledModel, Samples, VERSION};

use super::{ACTIVE, FIRST, FileError, column_name, open, reading};

/// The metadata key under which a file says how it was made.
const KEY: &str = "vti";

/// What a file of draws says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Origin {
    version: String,
    /// What the columns of the data mean, where new rows can be predicted.
    schema: Option<serde_json::Value>,
    /// Names of the parameters, one for each column after the first five.
    parameters: Vec<String>,
}

fn columns(samples: &Samples) -> Result<Type, ParquetError> {
    let text = |name: &str| {
        Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(Some(LogicalType::String))
            .build()
    };
    let number = |name: &str, repetition| {
        Type::primitive_type_builder(name, Physical::DOUBLE).with_repetition(repetition).build()
    };
    let mut fields = Vec::new();
    for name in FIRST {
        let is_text = matches!(name, "model" | "word");
        fields.push(Arc::new(if is_text { text(name)? } else { number(name, Repetition::REQUIRED)? }));
    }
    for name in &samples.names {
        fields.push(Arc::new(number(&column_name(name), Repetition::OPTIONAL)?));
    }
    // The three levels that lists have by convention.
    let element =
        Type::primitive_type_builder("element", Physical::BOOLEAN).with_repetition(Repetition::REQUIRED).build()?;
    let list = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(element)])
        .build()?;
    let active = Type::group_type_builder(ACTIVE)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(list)])
        .build()?;
    fields.push(Arc::new(active));
    Type::group_type_builder("draws").with_fields(fields).build()
}

/// `posterior.parquet`: draws, with what the columns of the data mean where new rows are to be predicted.
pub fn draws_parquet(samples: &Samples, schema: Option<&serde_json::Value>) -> Result<Vec<u8>, FileError> {
    let origin = Origin { version: VERSION.into(), schema: schema.cloned(), parameters: samples.names.clone() };
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("vti {}", origin.version))
        .set_key_value_metadata(Some(vec![KeyValue::new(KEY.into(), serde_json::to_string(&origin)?)]))
        .build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(columns(samples)?), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let texts = |text: fn(&SampledModel) -> &str| {
        let models: Vec<ByteArray> = samples.models.iter().map(|model| ByteArray::from(text(model))).collect();
        samples.model.iter().map(|&model| models[model].clone()).collect::<Vec<_>>()
    };
    write_texts(&mut group, &texts(|model| &model.label))?;
    write_texts(&mut group, &texts(|model| &model.word))?;
    for numbers in [&samples.log_q, &samples.log_target, &samples.log_weight] {
        write_numbers(&mut group, numbers, None)?;
    }
    for parameter in 0..samples.names.len() {
        let values: Vec<Option<f64>> = (0..samples.len()).map(|row| samples.value(row, parameter)).collect();
        let present: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        write_numbers(&mut group, &values.iter().copied().flatten().collect::<Vec<_>>(), Some(&present))?;
    }
    write_active(&mut group, samples)?;
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

type Group<'a, 'b> = SerializedRowGroupWriter<'a, &'b mut Vec<u8>>;

/// The column that is to be written next.
fn next<'a>(group: &'a mut Group<'_, '_>) -> Result<SerializedColumnWriter<'a>, ParquetError> {
    group.next_column()?.ok_or_else(|| ParquetError::General("a column is missing".into()))
}

fn write_texts(group: &mut Group<'_, '_>, values: &[ByteArray]) -> Result<(), ParquetError> {
    let mut column = next(group)?;
    column.typed::<ByteArrayType>().write_batch(values, None, None)?;
    column.close()
}

fn write_numbers(group: &mut Group<'_, '_>, values: &[f64], present: Option<&[i16]>) -> Result<(), ParquetError> {
    let mut column = next(group)?;
    column.typed::<DoubleType>().write_batch(values, present, None)?;
    column.close()
}

fn write_active(group: &mut Group<'_, '_>, samples: &Samples) -> Result<(), ParquetError> {
    let width = samples.names.len();
    let values: Vec<bool> =
        samples.model.iter().flat_map(|&model| samples.models[model].active.iter().copied()).collect();
    // Every list has all its elements; the first of each starts a new list.
    let mut levels: Vec<(i16, i16)> = (0..values.len()).map(|i| (1, i16::from(!i.is_multiple_of(width)))).collect();
    if width == 0 {
        // Without parameters every list is empty.
        levels = vec![(0, 0); samples.len()];
    }
    let (present, repeated): (Vec<i16>, Vec<i16>) = levels.into_iter().unzip();
    let mut column = next(group)?;
    column.typed::<BoolType>().write_batch(&values, Some(&present), Some(&repeated))?;
    column.close()
}

/// Draws differ from each other, though most parameters may be out of most of them: a file that says it comes to more bytes than
/// so many for each of its own was made to fill the memory. Up to some bytes that does not matter.
const MOST_PER_BYTE: u64 = 500;
const ALWAYS_FINE: u64 = 16 << 20;

/// How many cells a file says it has.
fn cells(metadata: &ParquetMetaData) -> u64 {
    let columns = metadata.file_metadata().schema_descr().num_columns() as u64;
    let rows = metadata.row_groups().iter().map(|group| group.num_rows().unsigned_abs());
    rows.fold(0, u64::saturating_add).saturating_mul(columns.max(1))
}

/// Reads draws that [`draws_parquet`] wrote, and what the columns of the data mean.
pub fn read_draws(path: &Path) -> Result<(Samples, Option<serde_json::Value>), FileError> {
    parse_draws(path, std::fs::read(path).map_err(|error| FileError::Read { path: path.into(), error })?)
}

/// The same of the bytes of a file, `path` as errors name it.
pub fn parse_draws(path: &Path, bytes: Vec<u8>) -> Result<(Samples, Option<serde_json::Value>), FileError> {
    reading(|| parse(path, bytes), |error| FileError::Draws { path: path.into(), error })
}

fn parse(path: &Path, bytes: Vec<u8>) -> Result<(Samples, Option<serde_json::Value>), FileError> {
    let unreadable = |error| FileError::Draws { path: path.into(), error };
    let size = bytes.len() as u64;
    let reader = open(Bytes::from(bytes)).map_err(unreadable)?;
    let metadata = reader.metadata().file_metadata().key_value_metadata();
    let own = metadata.into_iter().flatten().find(|entry| entry.key == KEY).and_then(|entry| entry.value.as_deref());
    let own = own.ok_or_else(|| FileError::Foreign { path: path.into() })?;
    let other = || FileError::Version { path: path.into() };
    let origin: Origin = serde_json::from_str(own).map_err(|_| other())?;
    let cells = cells(reader.metadata());
    if cells.saturating_mul(size_of::<f64>() as u64) > size.saturating_mul(MOST_PER_BYTE).max(ALWAYS_FINE) {
        return Err(FileError::TooMuch { path: path.into(), cells, bytes: size });
    }
    let mut samples = Samples { names: origin.parameters.clone(), ..Samples::default() };
    let mut numbers = std::collections::HashMap::new();
    for row in reader.get_row_iter(None).map_err(unreadable)? {
        let row = row.map_err(unreadable)?;
        let fields: Vec<&Field> = row.get_column_iter().map(|(_, field)| field).collect();
        let [Field::Str(label), Field::Str(word), rest @ ..] = &fields[..] else { return Err(other()) };
        if rest.len() < FIRST.len() - 2 + origin.parameters.len() {
            return Err(other());
        }
        let mut values = rest.iter().map(|field| match field {
            Field::Double(value) => *value,
            _ => f64::NAN,
        });
        for list in [&mut samples.log_q, &mut samples.log_target, &mut samples.log_weight] {
            list.push(values.next().unwrap_or(f64::NAN));
        }
        let first = samples.values.len();
        samples.values.extend(values.take(origin.parameters.len()));
        let active = || samples.values[first..].iter().map(|value| !value.is_nan()).collect();
        let model = *numbers.entry(word.clone()).or_insert_with(|| {
            samples.models.push(SampledModel { word: word.clone(), label: label.clone(), active: active() });
            samples.models.len() - 1
        });
        samples.model.push(model);
    }
    Ok((samples, origin.schema))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn draws_come_back_with_and_without_parameters() {
        let model =
            |word: &str, active: &[bool]| SampledModel { word: word.into(), label: word.into(), active: active.into() };
        let numbers = vec![-1.5, 0.25];
        let with = Samples {
            names: vec!["a".into(), "word".into()],
            models: vec![model("11", &[true, true]), model("01", &[false, true])],
            model: vec![0, 1],
            values: vec![1.0, 2.0, f64::NAN, 3.0],
            log_q: numbers.clone(),
            log_target: numbers.clone(),
            log_weight: numbers,
        };
        let none = |word: &str| model(word, &[]);
        let (models, values) = (vec![none("0"), none("1")], Vec::new());
        let without = Samples { names: Vec::new(), models, values, ..with.clone() };
        let schema = serde_json::json!({ "response": "y" });
        for (number, samples) in [with, without].iter().enumerate() {
            let path = std::env::temp_dir().join(format!("vti-draws-{}-{number}.parquet", std::process::id()));
            super::super::put(&path, &draws_parquet(samples, Some(&schema)).unwrap()).unwrap();
            let (read, said) = read_draws(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            assert_eq!((said.as_ref(), &read.model, &read.models), (Some(&schema), &samples.model, &samples.models));
            let all = |samples: &Samples| -> Vec<Option<f64>> {
                (0..samples.len())
                    .flat_map(|row| (0..samples.names.len()).map(move |p| (row, p)))
                    .map(|(row, p)| samples.value(row, p))
                    .collect()
            };
            assert_eq!((all(&read), &read.log_weight), (all(samples), &samples.log_weight));
        }
    }

    #[test]
    fn a_few_bytes_are_not_taken_for_millions_of_draws() {
        let model = SampledModel { word: "1".into(), label: "{a}".into(), active: vec![true] };
        let rows = 600_000;
        let equal = Samples {
            names: vec!["a".into()],
            models: vec![model],
            model: vec![0; rows],
            values: vec![1.0; rows],
            log_q: vec![0.0; rows],
            log_target: vec![0.0; rows],
            log_weight: vec![0.0; rows],
        };
        let bytes = draws_parquet(&equal, None).unwrap();
        assert!(bytes.len() < 30_000, "{}", bytes.len());
        let refused = parse_draws(Path::new("x.parquet"), bytes).unwrap_err().to_string();
        assert!(refused.contains("says that it holds 4200000 numbers in"), "{refused}");
    }
}

//! `posterior.parquet`: draws with their weights, as other tools read them.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::Field;
use parquet::schema::types::Type;
use serde::{Deserialize, Serialize};

use super::{ACTIVE, FIRST, column_name};
use crate::data::Schema;
use crate::samples::{SampledModel, Samples};

/// The metadata key under which a file says how it was made.
const KEY: &str = "vti";

/// What a file says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) version: String,
    /// What the columns of the data mean, where new rows can be predicted.
    pub(crate) schema: Option<Schema>,
    /// Names of the parameters, one for each column after the first five.
    pub(crate) parameters: Vec<String>,
}

fn schema(samples: &Samples) -> parquet::errors::Result<Type> {
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

/// The file's bytes.
pub(crate) fn write(samples: &Samples, origin: &Origin) -> Result<Vec<u8>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("vti {}", origin.version))
        .set_key_value_metadata(Some(vec![KeyValue::new(KEY.into(), serde_json::to_string(origin)?)]))
        .build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema(samples)?), Arc::new(properties))?;
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

fn write_texts(group: &mut Group<'_, '_>, values: &[ByteArray]) -> Result<()> {
    let mut column = group.next_column()?.context("a column is missing")?;
    column.typed::<ByteArrayType>().write_batch(values, None, None)?;
    Ok(column.close()?)
}

fn write_numbers(group: &mut Group<'_, '_>, values: &[f64], present: Option<&[i16]>) -> Result<()> {
    let mut column = group.next_column()?.context("a column is missing")?;
    column.typed::<DoubleType>().write_batch(values, present, None)?;
    Ok(column.close()?)
}

fn write_active(group: &mut Group<'_, '_>, samples: &Samples) -> Result<()> {
    let width = samples.names.len();
    let values: Vec<bool> =
        samples.model.iter().flat_map(|&model| samples.models[model].active.iter().copied()).collect();
    // Every list has all its elements; the first of each starts a new list.
    let present = vec![1; values.len()];
    let repeated: Vec<i16> = (0..values.len()).map(|i| i16::from(!i.is_multiple_of(width))).collect();
    let mut column = group.next_column()?.context("a column is missing")?;
    column.typed::<BoolType>().write_batch(&values, Some(&present), Some(&repeated))?;
    Ok(column.close()?)
}

/// Reads a file that was written here.
pub(crate) fn read(path: &Path) -> Result<(Samples, Origin)> {
    let shown = || path.display().to_string();
    let bytes = std::fs::read(path).with_context(shown)?;
    let reader = SerializedFileReader::new(Bytes::from(bytes)).with_context(shown)?;
    let metadata = reader.metadata().file_metadata().key_value_metadata();
    let own = metadata.into_iter().flatten().find(|entry| entry.key == KEY).and_then(|entry| entry.value.as_deref());
    let Some(own) = own else { bail!("{}: not written by vti", shown()) };
    let origin: Origin = serde_json::from_str(own).with_context(|| format!("{}: not of this version", shown()))?;
    let mut samples = Samples { names: origin.parameters.clone(), ..Samples::default() };
    let mut numbers = std::collections::HashMap::new();
    for row in reader.get_row_iter(None).with_context(shown)? {
        let row = row.with_context(shown)?;
        let fields: Vec<&Field> = row.get_column_iter().map(|(_, field)| field).collect();
        let [Field::Str(label), Field::Str(word), rest @ ..] = &fields[..] else {
            bail!("{}: not of this version", shown())
        };
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
    Ok((samples, origin))
}

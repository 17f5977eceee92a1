//! Tables that a program hands over: kept in the run directory as a Parquet file, and read from it like any other.

use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

/// A column of a table; what is not there is missing.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers; what is not a number is missing.
    Numbers(Vec<f64>),
    /// Texts: categories, or words for missing values.
    Texts(Vec<Option<String>>),
    /// Categories that are called true and false.
    Truths(Vec<Option<bool>>),
    /// Times in microseconds since 1970.
    Times(Vec<Option<i64>>),
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Texts(values) => values.len(),
            Self::Truths(values) => values.len(),
            Self::Times(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn field(&self, name: &str) -> Result<Type, ParquetError> {
        let (physical, logical) = match self {
            Self::Numbers(_) => (Physical::DOUBLE, None),
            Self::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Truths(_) => (Physical::BOOLEAN, None),
            Self::Times(_) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        };
        let repetition = if let Self::Numbers(_) = self { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        Type::primitive_type_builder(name, physical).with_repetition(repetition).with_logical_type(logical).build()
    }
}

/// A table in memory: the bytes of a Parquet file. All are alike to settings: what is in one tells its fingerprint.
#[derive(Clone, Debug)]
pub struct Table(pub(crate) Arc<[u8]>);

impl PartialEq for Table {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Table {
    /// Of named columns, which must be of one length; none where they are not.
    pub fn new(columns: &[(String, Values)]) -> Result<Self, ParquetError> {
        let rows = columns.first().map_or(0, |(_, values)| values.len());
        if let Some((name, values)) = columns.iter().find(|(_, values)| values.len() != rows) {
            let (found, first) = (values.len(), &columns[0].0);
            return Err(ParquetError::General(format!(
                "columns of different lengths: {first} has {rows} rows and {name} has {found}"
            )));
        }
        let fields = columns.iter().map(|(name, values)| values.field(name).map(Arc::new)).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder("table").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for (_, values) in columns {
            write(&mut group, values)?;
        }
        group.close()?;
        writer.close()?;
        Ok(Self(bytes.into()))
    }
}

type Group<'a, 'b> = SerializedRowGroupWriter<'a, &'b mut Vec<u8>>;

fn write(group: &mut Group<'_, '_>, values: &Values) -> Result<(), ParquetError> {
    match values {
        Values::Numbers(values) => put::<DoubleType>(group, values, None),
        Values::Texts(values) => put_present::<ByteArrayType, _>(group, values, |text| ByteArray::from(text.as_str())),
        Values::Truths(values) => put_present::<BoolType, _>(group, values, |truth| *truth),
        Values::Times(values) => put_present::<Int64Type, _>(group, values, |time| *time),
    }
}

fn put_present<T: DataType, V>(
    group: &mut Group<'_, '_>,
    values: &[Option<V>],
    stored: impl Fn(&V) -> T::T,
) -> Result<(), ParquetError> {
    let present: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    put::<T>(group, &values.iter().flatten().map(stored).collect::<Vec<_>>(), Some(&present))
}

fn put<T: DataType>(group: &mut Group<'_, '_>, values: &[T::T], present: Option<&[i16]>) -> Result<(), ParquetError> {
    let column = group.next_column()?;
    let mut column = column.ok_or_else(|| ParquetError::General("a column is missing".into()))?;
    column.typed::<T>().write_batch(values, present, None)?;
    column.close()
}

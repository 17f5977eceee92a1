//! Tables by the Arrow stream protocol (`__arrow_c_stream__`), whoever made them.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Float16Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, downcast_dictionary_array};
use arrow_pyarrow::FromPyArrow;
use arrow_schema::{DataType, TimeUnit};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use vti_cli::api::Values;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// The columns of a stream.
pub(crate) fn columns(table: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Values)>> {
    let reader = RecordBatchStreamReader::from_pyarrow_bound(table)?;
    let mut columns: Vec<(String, Option<Values>)> = Vec::new();
    for field in arrow_array::RecordBatchReader::schema(&reader).fields() {
        columns.push((field.name().clone(), empty(field.data_type())));
    }
    for batch in reader {
        let batch = batch.map_err(|error| PyValueError::new_err(error.to_string()))?;
        for ((name, values), array) in columns.iter_mut().zip(batch.columns()) {
            let found = read(name, array)?;
            match values {
                Some(values) => append(values, found),
                None => *values = Some(found),
            }
        }
    }
    let numbers = || Values::Numbers(Vec::new());
    Ok(columns.into_iter().map(|(name, values)| (name, values.unwrap_or_else(numbers))).collect())
}

/// A column without rows, where its kind is clear before there are any.
fn empty(kind: &DataType) -> Option<Values> {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View).then(|| Values::Texts(Vec::new()))
}

/// Puts the rows of one batch after those of others.
fn append(values: &mut Values, more: Values) {
    match (values, more) {
        (Values::Numbers(values), Values::Numbers(more)) => values.extend(more),
        (Values::Texts(values), Values::Texts(more)) => values.extend(more),
        (Values::Truths(values), Values::Truths(more)) => values.extend(more),
        (Values::Times(values), Values::Times(more)) => values.extend(more),
        // All batches of a stream have one schema.
        _ => {}
    }
}

fn read(name: &str, array: &ArrayRef) -> PyResult<Values> {
    Ok(match array.data_type() {
        DataType::Null => Values::Numbers(vec![f64::NAN; array.len()]),
        DataType::Boolean => Values::Truths(array.as_boolean().iter().collect()),
        DataType::Int8 => numbers::<Int8Type>(array, f64::from),
        DataType::Int16 => numbers::<Int16Type>(array, f64::from),
        DataType::Int32 => numbers::<Int32Type>(array, f64::from),
        DataType::Int64 => numbers::<Int64Type>(array, |value| value as f64),
        DataType::UInt8 => numbers::<UInt8Type>(array, f64::from),
        DataType::UInt16 => numbers::<UInt16Type>(array, f64::from),
        DataType::UInt32 => numbers::<UInt32Type>(array, f64::from),
        DataType::UInt64 => numbers::<UInt64Type>(array, |value| value as f64),
        DataType::Float16 => numbers::<Float16Type>(array, |value| value.to_f64()),
        DataType::Float32 => numbers::<Float32Type>(array, f64::from),
        DataType::Float64 => numbers::<Float64Type>(array, |value| value),
        DataType::Decimal128(_, scale) => {
            let scale = i32::from(*scale);
            numbers::<Decimal128Type>(array, |value| value as f64 / 10f64.powi(scale))
        }
        DataType::Utf8 => Values::Texts(array.as_string::<i32>().iter().map(|text| text.map(String::from)).collect()),
        DataType::LargeUtf8 => {
            Values::Texts(array.as_string::<i64>().iter().map(|text| text.map(String::from)).collect())
        }
        DataType::Utf8View => Values::Texts(array.as_string_view().iter().map(|text| text.map(String::from)).collect()),
        DataType::Date32 => times::<Date32Type>(array, |days| i64::from(days).checked_mul(DAY)),
        DataType::Date64 => times::<Date64Type>(array, |value| value.checked_mul(1000)),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => times::<TimestampSecondType>(array, |value| value.checked_mul(1_000_000)),
            TimeUnit::Millisecond => times::<TimestampMillisecondType>(array, |value| value.checked_mul(1000)),
            TimeUnit::Microsecond => times::<TimestampMicrosecondType>(array, Some),
            TimeUnit::Nanosecond => times::<TimestampNanosecondType>(array, |value| Some(value / 1000)),
        },
        DataType::Dictionary(..) => levels(name, array)?,
        other => {
            let text = format!("column {name} holds {other}, which are neither numbers nor texts nor times");
            return Err(PyTypeError::new_err(text));
        }
    })
}

fn numbers<T: ArrowPrimitiveType>(array: &ArrayRef, number: impl Fn(T::Native) -> f64) -> Values {
    Values::Numbers(array.as_primitive::<T>().iter().map(|value| value.map_or(f64::NAN, &number)).collect())
}

fn times<T: ArrowPrimitiveType>(array: &ArrayRef, time: impl Fn(T::Native) -> Option<i64>) -> Values {
    Values::Times(array.as_primitive::<T>().iter().map(|value| value.and_then(&time)).collect())
}

/// Categories: each row is one of some values.
fn levels(name: &str, array: &ArrayRef) -> PyResult<Values> {
    let (values, keys): (ArrayRef, Vec<Option<usize>>) = downcast_dictionary_array!(
        array => (array.values().clone(), array.keys_iter().collect()),
        other => {
            let text = format!("column {name} holds {other}, which are neither numbers nor texts nor times");
            return Err(PyTypeError::new_err(text));
        }
    );
    let at = |key: &Option<usize>| *key;
    Ok(match read(name, &values)? {
        Values::Numbers(values) => {
            Values::Numbers(keys.iter().map(at).map(|key| key.map_or(f64::NAN, |key| values[key])).collect())
        }
        Values::Texts(values) => {
            Values::Texts(keys.iter().map(at).map(|key| key.and_then(|key| values[key].clone())).collect())
        }
        Values::Truths(values) => {
            Values::Truths(keys.iter().map(at).map(|key| key.and_then(|key| values[key])).collect())
        }
        Values::Times(values) => {
            Values::Times(keys.iter().map(at).map(|key| key.and_then(|key| values[key])).collect())
        }
    })
}

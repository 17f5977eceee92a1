//! Arrays to NumPy and back, by the buffer protocol.

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyString, PyTuple};

/// A function of NumPy, looked up once.
fn function<'py>(py: Python<'py>, place: &'static PyOnceLock<Py<PyAny>>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let found = place.get_or_try_init(py, || Ok::<_, PyErr>(py.import("numpy")?.getattr(name)?.unbind()))?;
    Ok(found.bind(py).clone())
}

/// An array of memory of its own, which `fill` writes.
fn array<'py>(
    py: Python<'py>,
    kind: &Bound<'py, PyString>,
    size: usize,
    shape: &[usize],
    fill: impl FnOnce(&mut [u8]),
) -> PyResult<Bound<'py, PyAny>> {
    static FROM_BUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let length = size * shape.iter().product::<usize>();
    let bytes = PyByteArray::new_with(py, length, |bytes| {
        fill(bytes);
        Ok(())
    })?;
    let array = function(py, &FROM_BUFFER, "frombuffer")?.call1((bytes, kind))?;
    if shape.len() == 1 {
        return Ok(array);
    }
    array.call_method1(intern!(py, "reshape"), (PyTuple::new(py, shape)?,))
}

/// Writes numbers one after another.
fn put<const N: usize, T: Copy>(values: &[T], bytes: &mut [u8], written: impl Fn(T) -> [u8; N]) {
    bytes.chunks_exact_mut(N).zip(values).for_each(|(to, &value)| to.copy_from_slice(&written(value)));
}

/// An array of numbers.
pub(crate) fn floats<'py>(py: Python<'py>, values: &[f64], shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    array(py, intern!(py, "f8"), 8, shape, |bytes| put(values, bytes, f64::to_ne_bytes))
}

/// An array of truths, 0 or 1.
pub(crate) fn truths<'py>(py: Python<'py>, values: &[u8], shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    array(py, intern!(py, "?"), 1, shape, |bytes| bytes.copy_from_slice(values))
}

/// An array of places.
pub(crate) fn integers<'py>(py: Python<'py>, values: &[i64], shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    array(py, intern!(py, "i8"), 8, shape, |bytes| put(values, bytes, i64::to_ne_bytes))
}

/// Words, a row for each.
pub(crate) fn words<'py>(py: Python<'py>, words: &[u16], width: usize) -> PyResult<Bound<'py, PyAny>> {
    let shape = [words.len() / width.max(1), width];
    array(py, intern!(py, "u2"), 2, &shape, |bytes| put(words, bytes, u16::to_ne_bytes))
}

/// The numbers of an array that is laid out row by row.
pub(crate) fn read<T: Element + Copy>(array: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    let buffer = PyBuffer::<T>::get(array).map_err(|error| PyTypeError::new_err(error.to_string()))?;
    buffer.to_vec(array.py())
}

/// Anything that NumPy makes an array of numbers of: its shape, and the numbers row by row.
pub(crate) fn read_floats(value: &Bound<'_, PyAny>) -> PyResult<(Vec<usize>, Vec<f64>)> {
    static AS_ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    let array = function(py, &AS_ARRAY, "ascontiguousarray")?.call1((value, "f8"))?;
    let buffer = PyBuffer::<f64>::get(&array)?;
    Ok((buffer.shape().to_vec(), buffer.to_vec(py)?))
}

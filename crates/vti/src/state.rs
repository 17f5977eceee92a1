//! What must be kept to continue a run: named arrays of numbers, bit for bit.

use crate::device::{Device, DeviceError};
use crate::simd::Real;

/// Numbers of either precision.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

impl Array {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Named arrays.
///
/// ```
/// use vti::state::State;
/// let mut state = State::default();
/// state.put("level", &[0.1]);
/// assert_eq!(state.take::<f64>("level", 1)?, [0.1]);
/// assert!(state.take::<f64>("level", 1).is_err()); // taken
/// # Ok::<(), vti::state::StateError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    arrays: Vec<(String, Array)>,
}

/// A state that does not fit what it is to restore.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// An array that is not there.
    #[error("the array {name} is missing")]
    Missing {
        /// Its name.
        name: String,
    },
    /// An array of another length.
    #[error("the array {name} has {found} numbers, {expected} are expected")]
    Length {
        /// Its name.
        name: String,
        /// Its length.
        found: usize,
        /// What it should be.
        expected: usize,
    },
    /// An array of other numbers than it should hold.
    #[error("the array {name} does not hold {expected}")]
    Values {
        /// Its name.
        name: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// An array of another precision.
    #[error("the array {name} is not of precision {expected}")]
    Precision {
        /// Its name.
        name: String,
        /// What it should be.
        expected: &'static str,
    },
}

impl State {
    /// Adds an array.
    pub fn put<T: Real>(&mut self, name: &str, values: &[T]) {
        // The two precisions are all there are.
        let array = if T::NAME == f32::NAME {
            Array::F32(values.iter().map(|x| x.to_f64() as f32).collect())
        } else {
            Array::F64(values.iter().map(|x| x.to_f64()).collect())
        };
        self.arrays.push((name.into(), array));
    }

    /// Adds the content of a buffer.
    pub fn put_buffer<D: Device>(&mut self, name: &str, device: &D, buffer: &D::Buffer) -> Result<(), DeviceError> {
        let mut values = vec![D::Real::ZERO; device.len(buffer)];
        device.read(buffer, &mut values)?;
        self.put(name, &values);
        Ok(())
    }

    /// Adds everything of another state under `name.`.
    pub fn put_state(&mut self, name: &str, other: Self) {
        self.arrays.extend(other.arrays.into_iter().map(|(key, array)| (format!("{name}.{key}"), array)));
    }

    /// Adds an array as it is.
    pub fn put_array(&mut self, name: String, array: Array) {
        self.arrays.push((name, array));
    }

    /// Takes an array of known length out.
    pub fn take<T: Real>(&mut self, name: &str, expected: usize) -> Result<Vec<T>, StateError> {
        let values = self.take_any::<T>(name)?;
        if values.len() != expected {
            return Err(StateError::Length { name: name.into(), found: values.len(), expected });
        }
        Ok(values)
    }

    /// Takes an array of any length out.
    pub fn take_any<T: Real>(&mut self, name: &str) -> Result<Vec<T>, StateError> {
        let place = self.arrays.iter().position(|(key, _)| key == name);
        let place = place.ok_or_else(|| StateError::Missing { name: name.into() })?;
        match self.arrays.swap_remove(place).1 {
            Array::F32(values) if T::NAME == f32::NAME => {
                Ok(values.into_iter().map(|x| T::from_f64(x.into())).collect())
            }
            Array::F64(values) if T::NAME == f64::NAME => Ok(values.into_iter().map(T::from_f64).collect()),
            _ => Err(StateError::Precision { name: name.into(), expected: T::NAME }),
        }
    }

    /// Takes whole numbers out, each below `most`: so many, or any number of them.
    pub(crate) fn take_counts(&mut self, name: &str, len: Option<usize>, most: f64) -> Result<Vec<usize>, StateError> {
        let values = match len {
            Some(len) => self.take::<f64>(name, len)?,
            None => self.take_any::<f64>(name)?,
        };
        let is_count = |value: &f64| (0.0..most).contains(value) && value.fract() == 0.0;
        if !values.iter().all(is_count) {
            return Err(StateError::Values { name: name.into(), expected: "whole numbers of its range" });
        }
        Ok(values.into_iter().map(|value| value as usize).collect())
    }

    /// Takes one number out.
    pub fn take_number(&mut self, name: &str) -> Result<f64, StateError> {
        Ok(self.take::<f64>(name, 1)?[0])
    }

    /// Takes an array out and into a buffer.
    pub fn take_buffer<D: Device>(&mut self, name: &str, device: &D, buffer: &mut D::Buffer) -> Result<(), StateError> {
        let values = self.take::<D::Real>(name, device.len(buffer))?;
        Ok(device.write(&values, buffer)?)
    }

    /// Takes everything under `name.` out, without the prefix.
    pub fn take_state(&mut self, name: &str) -> Self {
        let prefix = format!("{name}.");
        let (inside, outside) =
            std::mem::take(&mut self.arrays).into_iter().partition(|(key, _)| key.starts_with(&prefix));
        self.arrays = outside;
        let inside: Vec<(String, Array)> = inside;
        Self { arrays: inside.into_iter().map(|(key, array)| (key[prefix.len()..].to_string(), array)).collect() }
    }

    /// All arrays.
    pub fn arrays(&self) -> &[(String, Array)] {
        &self.arrays
    }
}

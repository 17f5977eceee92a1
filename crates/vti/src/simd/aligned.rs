//! Memory for vectors.

use super::Real;

/// Numbers that start on a cache line.
#[derive(Debug)]
pub struct AlignedVec<T> {
    data: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Real> AlignedVec<T> {
    const LINE: usize = 64;

    pub(crate) fn zeros(len: usize) -> Self {
        let data = vec![T::ZERO; len + Self::LINE / size_of::<T>()];
        let start = data.as_ptr().align_offset(Self::LINE).min(data.len() - len);
        Self { data, start, len }
    }
}

impl<T> std::ops::Deref for AlignedVec<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.data[self.start..self.start + self.len]
    }
}

impl<T> std::ops::DerefMut for AlignedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data[self.start..self.start + self.len]
    }
}

//! The rows a flow works on: which coordinates are active in each, and its context.

use super::error::FlowError;
use super::{ContextShape, FlowShape};
use crate::simd::Real;

/// Rows, each with the active coordinates of its model and the model's context.
///
/// ```
/// use vti::flow::Batch;
/// let mut batch = Batch::<f32>::new();
/// batch.push(&[0, 2], 5); // coordinates 0 and 2 are active, context symbol 5
/// batch.push(&[], 0);
/// assert_eq!(batch.rows(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch<T> {
    pub(super) dims: Vec<u32>,
    pub(super) active: Vec<u32>,
    pub(super) starts: Vec<u32>,
    pub(super) contexts: Vec<u32>,
    pub(super) features: Vec<T>,
    pub(super) feature_width: usize,
    /// A width other than that of the first context, if one was given.
    odd_width: Option<usize>,
}

impl<T: Real> Batch<T> {
    /// No rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// No rows, with room for `rows` rows of up to `shape.max_dim` coordinates, each with a context of its own.
    pub fn with_capacity(rows: usize, shape: FlowShape) -> Self {
        let features = if let ContextShape::Features(width) = shape.context { width } else { 0 };
        Self {
            dims: Vec::with_capacity(rows),
            active: Vec::with_capacity(rows * shape.max_dim),
            starts: Vec::with_capacity(rows),
            contexts: Vec::with_capacity(rows),
            features: Vec::with_capacity(rows * features),
            feature_width: 0,
            odd_width: None,
        }
    }

    /// Removes all rows and contexts, keeping the memory.
    pub fn clear(&mut self) {
        self.dims.clear();
        self.active.clear();
        self.starts.clear();
        self.contexts.clear();
        self.features.clear();
        self.feature_width = 0;
        self.odd_width = None;
    }

    /// Adds a row: its active coordinates, ascending, and its context (a symbol, or what [`Batch::push_features`] gave).
    pub fn push(&mut self, active: &[u32], context: u32) {
        self.starts.push(self.active.len() as u32);
        self.active.extend_from_slice(active);
        self.dims.push(active.len() as u32);
        self.contexts.push(context);
    }

    /// Adds a context given by features; rows with the same model share one. All contexts have the same number of features.
    pub fn push_features(&mut self, features: &[T]) -> u32 {
        let index = self.feature_rows();
        if index == 0 {
            self.feature_width = features.len();
        }
        if features.is_empty() || features.len() != self.feature_width {
            // Reported when the batch is used.
            self.odd_width = Some(features.len());
        } else {
            self.features.extend_from_slice(features);
        }
        index as u32
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.dims.len()
    }

    /// Dimension `d_m` of each row.
    pub fn dims(&self) -> &[u32] {
        &self.dims
    }

    /// Active coordinates of a row.
    pub fn active(&self, row: usize) -> &[u32] {
        &self.active[self.starts[row] as usize..][..self.dims[row] as usize]
    }

    /// Number of contexts given by features.
    pub fn feature_rows(&self) -> usize {
        self.features.len().checked_div(self.feature_width).unwrap_or(0)
    }

    /// Takes over another batch's content without allocating where there is room.
    pub(super) fn clone_from_within_capacity(&mut self, other: &Self) {
        self.dims.clone_from(&other.dims);
        self.active.clone_from(&other.active);
        self.starts.clone_from(&other.starts);
        self.contexts.clone_from(&other.contexts);
        self.features.clone_from(&other.features);
        self.feature_width = other.feature_width;
        self.odd_width = other.odd_width;
    }

    pub(super) fn check(&self, shape: FlowShape, capacity: usize) -> Result<(), FlowError> {
        if self.rows() > capacity {
            return Err(FlowError::TooManyRows { rows: self.rows(), capacity });
        }
        let count = match shape.context {
            ContextShape::Symbols(count) => count,
            ContextShape::Features(expected) => {
                let wrong = |found: &usize| *found != expected && (self.odd_width.is_some() || self.rows() > 0);
                if let Some(found) = self.odd_width.into_iter().chain([self.feature_width]).find(wrong) {
                    return Err(FlowError::Features { found, expected });
                }
                if let Some(place) = self.features.iter().position(|feature| !feature.is_finite()) {
                    return Err(FlowError::Feature { context: place / expected, feature: place % expected });
                }
                self.feature_rows()
            }
        };
        for row in 0..self.rows() {
            let active = self.active(row);
            let ascending = active.is_sorted_by(|a, b| a < b);
            if !ascending || active.last().is_some_and(|&last| last as usize >= shape.max_dim) {
                return Err(FlowError::Coordinates { row, max_dim: shape.max_dim });
            }
            let context = self.contexts[row];
            if context as usize >= count {
                return Err(FlowError::Context { row, context, count });
            }
        }
        Ok(())
    }
}

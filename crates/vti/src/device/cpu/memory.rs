//! Memory of the CPU device.

use super::TILE;
use crate::device::RowPlan;
use crate::simd::{AlignedVec, Real};

/// Features × rows, tile by tile: element (feature, row) is at `(tile · features + feature) · TILE + row mod TILE`.
#[derive(Debug)]
pub struct CpuMatrix<T> {
    pub(super) features: usize,
    pub(super) data: AlignedVec<T>,
}

impl<T: Real> CpuMatrix<T> {
    pub(super) fn zeros(features: usize, rows: usize) -> Self {
        Self { features, data: AlignedVec::zeros(features * rows.div_ceil(TILE) * TILE) }
    }

    /// Length of a tile's slice; 1 for a matrix without features, so that it can still be cut into tiles.
    pub(super) fn tile_len(&self) -> usize {
        (self.features * TILE).max(1)
    }

    pub(super) fn tile(&self, tile: usize) -> &[T] {
        let len = self.features * TILE;
        &self.data[tile * len..][..len]
    }

    pub(super) fn tile_mut(&mut self, tile: usize) -> &mut [T] {
        let len = self.features * TILE;
        &mut self.data[tile * len..][..len]
    }
}

/// The rows of a batch. The last tile is filled up with rows of dimension 0.
#[derive(Debug)]
pub struct CpuRows {
    /// Dimension by place, descending.
    pub(super) dims: Vec<u32>,
    /// The caller's row by place; shorter than `dims` where places are padding.
    pub(super) order: Vec<u32>,
    /// Context, and its number among the distinct ones, by place.
    pub(super) contexts: Vec<u32>,
    pub(super) slots: Vec<u32>,
    /// Active coordinates, where they were asked for: place `p` owns `active[starts[p]..][..dims[p]]`.
    pub(super) active: Vec<u32>,
    pub(super) starts: Vec<u32>,
}

impl CpuRows {
    pub(super) fn new(capacity: usize, max_dim: usize) -> Self {
        let padded = capacity.div_ceil(TILE) * TILE;
        Self {
            dims: Vec::with_capacity(padded),
            order: Vec::with_capacity(padded),
            contexts: Vec::with_capacity(padded),
            slots: Vec::with_capacity(padded),
            active: Vec::with_capacity(capacity * max_dim),
            starts: Vec::with_capacity(padded),
        }
    }

    pub(super) fn set(&mut self, plan: RowPlan<'_>) {
        let padded = plan.order.len().div_ceil(TILE) * TILE;
        self.order.clear();
        self.order.extend_from_slice(plan.order);
        self.dims.clear();
        self.dims.extend(plan.order.iter().map(|&row| plan.dims[row as usize]));
        debug_assert!(self.dims.is_sorted_by(|a, b| a >= b));
        self.dims.resize(padded, 0);
        for (to, from) in [(&mut self.contexts, plan.contexts), (&mut self.slots, plan.slots)] {
            to.clear();
            to.extend(plan.order.iter().map(|&row| from[row as usize]));
            // Padding looks up what its neighbour does: always something that exists.
            to.resize(padded, to.last().copied().unwrap_or(0));
        }
        self.active.clear();
        self.starts.clear();
        if plan.needs_active {
            for (&row, &dim) in plan.order.iter().zip(&self.dims) {
                self.starts.push(self.active.len() as u32);
                self.active.extend_from_slice(&plan.active[plan.starts[row as usize] as usize..][..dim as usize]);
            }
            self.starts.resize(padded, self.active.len() as u32);
        }
    }

    pub(super) fn tiles(&self) -> usize {
        self.dims.len() / TILE
    }

    /// The largest dimension in a tile: that of its first row.
    pub(super) fn tile_dim(&self, tile: usize) -> u32 {
        self.dims[tile * TILE]
    }

    pub(super) fn tile_dims(&self, tile: usize) -> &[u32; TILE] {
        let dims = &self.dims[tile * TILE..][..TILE];
        dims.try_into().unwrap_or(&[0; TILE])
    }

    /// Rows of the batch that stand in a tile.
    pub(super) fn tile_order(&self, tile: usize) -> &[u32] {
        let start = (tile * TILE).min(self.order.len());
        &self.order[start..self.order.len().min(start + TILE)]
    }

    /// Active coordinates of the row at a place.
    pub(super) fn active(&self, place: usize) -> &[u32] {
        &self.active[self.starts[place] as usize..][..self.dims[place] as usize]
    }
}

/// How many rows of a tile are active in `coordinate`: they are the first ones, because dimensions descend.
#[inline(always)]
pub(super) fn active_rows(dims: &[u32; TILE], coordinate: usize) -> usize {
    dims.iter().map(|&dim| usize::from(dim as usize > coordinate)).sum()
}

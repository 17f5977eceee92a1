//! Matrices and rows, and where they stand on the host.

use std::ops::Range;

use vti::device::{Placement, RowPlan};

/// Row by row, features in order.
pub struct Matrix {
    pub(super) features: usize,
    pub(super) rows: Vec<Vec<f64>>,
}

#[derive(Default)]
pub struct Rows {
    pub(super) dims: Vec<u32>,
    pub(super) order: Vec<usize>,
    pub(super) contexts: Vec<usize>,
    pub(super) slots: Vec<usize>,
    pub(super) active: Vec<Vec<usize>>,
}

impl Rows {
    pub(super) fn new(plan: RowPlan<'_>) -> Self {
        let pick = |from: &[u32]| plan.order.iter().map(|&row| from[row as usize] as usize).collect::<Vec<_>>();
        let dims = pick(plan.dims);
        let active = |(&row, &dim): (&u32, &usize)| {
            if !plan.needs_active {
                return Vec::new();
            }
            plan.active[plan.starts[row as usize] as usize..][..dim].iter().map(|&c| c as usize).collect()
        };
        Self {
            order: plan.order.iter().map(|&row| row as usize).collect(),
            contexts: pick(plan.contexts),
            slots: pick(plan.slots),
            active: plan.order.iter().zip(&dims).map(active).collect(),
            dims: dims.into_iter().map(|dim| dim as u32).collect(),
        }
    }

    pub(super) fn all(&self) -> Range<usize> {
        0..self.dims.len()
    }

    /// Saturated coordinate of the `i`-th active one, counted from the other end if `reversed`.
    pub(super) fn coordinate(&self, row: usize, i: usize, reversed: bool) -> usize {
        let active = &self.active[row];
        active[if reversed { active.len() - 1 - i } else { i }]
    }
}

/// Where feature `i` of a row of dimension `dim` stands on the host; none if it does not.
pub(super) fn host_place(at: Placement<'_>, host_row: usize, i: usize, dim: usize) -> Option<usize> {
    match at {
        Placement::Whole { stride, first } => {
            (first..first + stride).contains(&i).then(|| host_row * stride + i - first)
        }
        Placement::LeftAligned { stride } => (i < dim).then_some(host_row * stride + i),
        Placement::Saturated { stride, active, starts } => {
            (i < dim).then(|| host_row * stride + active[starts[host_row] as usize + i] as usize)
        }
    }
}

/// Places of a host row's inactive coordinates.
pub(super) fn inactive_places(at: Placement<'_>, host_row: usize, dim: usize) -> Vec<usize> {
    let Placement::Saturated { stride, active, starts } = at else { return Vec::new() };
    let active = &active[starts[host_row] as usize..][..dim];
    (0..stride).filter(|&c| !active.contains(&(c as u32))).map(|c| host_row * stride + c).collect()
}

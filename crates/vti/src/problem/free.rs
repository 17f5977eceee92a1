//! Densities of free parameters, several rows at a time.

use super::{BatchError, Constraints, DensityBatch, Problem};
use crate::space::ModelSpace;
use crate::workers::Workers;

/// Rows whose natural parameters are found together.
const ROWS_TOGETHER: usize = 64;

/// Memory for rows of models and free parameters u, and `log η(θ(u) | m) + log |det ∂θ/∂u|` of each.
///
/// Rows are set one by one ([`FreeRows::row`]) and evaluated together; nothing is allocated on the way.
pub(crate) struct FreeRows<'p> {
    problem: &'p dyn Problem,
    /// None where free parameters are the natural ones.
    constraints: Option<&'p Constraints>,
    width: usize,
    stride: usize,
    natural_stride: usize,
    words: Vec<u16>,
    active: Vec<Vec<u32>>,
    free: Vec<f64>,
    natural: Vec<f64>,
    dims: Vec<usize>,
    log_jacobian: Vec<f64>,
    log_density: Vec<f64>,
    natural_gradient: Vec<f64>,
    mask: Vec<bool>,
}

/// A row to be filled in. `active` are the coordinates of its model; `free` has room for all of them, left-aligned.
pub(crate) struct FreeRow<'a> {
    pub(crate) word: &'a mut [u16],
    pub(crate) active: &'a mut Vec<u32>,
    pub(crate) free: &'a mut [f64],
}

/// Some rows to be filled in.
pub(crate) struct FreeChunk<'a> {
    space: &'a dyn ModelSpace,
    width: usize,
    stride: usize,
    words: &'a mut [u16],
    active: &'a mut [Vec<u32>],
    free: &'a mut [f64],
}

impl FreeChunk<'_> {
    /// A row of the chunk.
    pub(crate) fn row(&mut self, row: usize) -> FreeRow<'_> {
        FreeRow {
            word: &mut self.words[row * self.width..][..self.width],
            active: &mut self.active[row],
            free: &mut self.free[row * self.stride..][..self.stride],
        }
    }

    /// Fills in the active coordinates of a row whose word is set; `mask` has room for all coordinates.
    pub(crate) fn mark_active(&mut self, row: usize, mask: &mut [bool]) {
        mark_active(self.space, &self.words[row * self.width..][..self.width], mask, &mut self.active[row]);
    }
}

/// The active coordinates of a word.
fn mark_active(space: &dyn ModelSpace, word: &[u16], mask: &mut [bool], active: &mut Vec<u32>) {
    space.mark_active(word, mask);
    active.clear();
    active.extend(mask.iter().enumerate().filter(|(_, active)| **active).map(|(coordinate, _)| coordinate as u32));
}

impl<'p> FreeRows<'p> {
    /// Room for so many rows.
    pub(crate) fn new(problem: &'p dyn Problem, rows: usize) -> Self {
        let space = problem.space();
        let constraints = problem.constraints().filter(|constraints| !constraints.is_trivial());
        let (width, stride) = (space.arities().len(), space.max_dim());
        let natural_stride = constraints.map_or(stride, Constraints::natural_len);
        Self {
            problem,
            constraints,
            width,
            stride,
            natural_stride,
            words: vec![0; rows * width],
            active: vec![Vec::with_capacity(stride); rows],
            free: vec![0.0; rows * stride],
            natural: vec![0.0; if constraints.is_some() { rows * natural_stride } else { 0 }],
            dims: vec![0; rows],
            log_jacobian: vec![0.0; rows],
            log_density: vec![f64::NAN; rows],
            natural_gradient: vec![0.0; rows * natural_stride],
            mask: vec![false; stride],
        }
    }

    /// Whose densities are evaluated.
    pub(crate) fn problem(&self) -> &'p dyn Problem {
        self.problem
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.dims.len()
    }

    /// So many rows at a time, to be filled in side by side.
    pub(crate) fn chunks_mut(&mut self, rows: usize) -> Vec<FreeChunk<'_>> {
        let count = self.dims.len();
        self.parts_mut((0..count).step_by(rows).map(|start| rows.min(count - start)))
    }

    /// Rows in parts of these sizes, to be filled in side by side.
    pub(crate) fn parts_mut(&mut self, sizes: impl Iterator<Item = usize>) -> Vec<FreeChunk<'_>> {
        let (space, width, stride) = (self.problem.space(), self.width, self.stride);
        let (mut words, mut active, mut free) = (&mut self.words[..], &mut self.active[..], &mut self.free[..]);
        let parts = sizes.map(|rows| FreeChunk {
            space,
            width,
            stride,
            words: words.split_off_mut(..rows * width).unwrap_or_default(),
            active: active.split_off_mut(..rows).unwrap_or_default(),
            free: free.split_off_mut(..rows * stride).unwrap_or_default(),
        });
        parts.collect()
    }

    /// A row to be filled in.
    pub(crate) fn row(&mut self, row: usize) -> FreeRow<'_> {
        FreeRow {
            word: &mut self.words[row * self.width..][..self.width],
            active: &mut self.active[row],
            free: &mut self.free[row * self.stride..][..self.stride],
        }
    }

    /// Fills in the active coordinates of a row whose word is set.
    pub(crate) fn mark_active(&mut self, row: usize) {
        let word = &self.words[row * self.width..][..self.width];
        mark_active(self.problem.space(), word, &mut self.mask, &mut self.active[row]);
    }

    /// Evaluates all rows. Where a density has no value it is not a number.
    pub(crate) fn evaluate(&mut self, workers: &Workers) -> Result<(), BatchError> {
        // A density that forgets a coordinate must not find what another row left there.
        self.natural_gradient.fill(0.0);
        match self.constraints {
            Some(constraints) => self.find_natural(constraints, workers),
            None => self.dims.iter_mut().zip(&self.active).for_each(|(dim, active)| *dim = active.len()),
        }
        let batch = DensityBatch {
            words: &self.words,
            width: self.width,
            theta: if self.constraints.is_some() { &self.natural } else { &self.free },
            stride: self.natural_stride,
            dims: &self.dims,
            log_density: &mut self.log_density,
            gradient: &mut self.natural_gradient,
        };
        self.problem.log_density_batch(batch, workers)
    }

    /// Natural parameters of all rows, shared out over the host's threads.
    fn find_natural(&mut self, constraints: &Constraints, workers: &Workers) {
        let Self { active, free, natural, dims, log_jacobian, stride, natural_stride, .. } = self;
        let rows = natural.chunks_mut((*natural_stride).max(1)).zip(free.chunks((*stride).max(1)));
        let rows = rows.zip(&*active).zip(dims.iter_mut().zip(log_jacobian));
        let mut rows: Vec<_> = rows.collect();
        let mut groups: Vec<_> = rows.chunks_mut(ROWS_TOGETHER).collect();
        workers.for_each(&mut groups, |_, group| {
            for (((natural, free), active), (dim, log_jacobian)) in group.iter_mut() {
                **dim = constraints.natural_dim(active);
                **log_jacobian = constraints.to_natural(active, free, natural);
            }
        });
    }

    pub(crate) fn word(&self, row: usize) -> &[u16] {
        &self.words[row * self.width..][..self.width]
    }

    pub(crate) fn active(&self, row: usize) -> &[u32] {
        &self.active[row]
    }

    pub(crate) fn free(&self, row: usize) -> &[f64] {
        &self.free[row * self.stride..][..self.active[row].len()]
    }

    /// The log density of free parameters.
    pub(crate) fn log_density(&self, row: usize) -> f64 {
        self.log_density[row] + self.log_jacobian[row]
    }

    /// `log |det ∂θ/∂u|`.
    pub(crate) fn log_jacobian(&self, row: usize) -> f64 {
        self.log_jacobian[row]
    }

    /// The gradient of [`FreeRows::log_density`]; `to` is as long as the row has coordinates.
    pub(crate) fn gradient(&self, row: usize, to: &mut [f64]) {
        let natural = &self.natural_gradient[row * self.natural_stride..][..self.dims[row]];
        match self.constraints {
            Some(constraints) => constraints.pull_back(&self.active[row], self.free(row), natural, to),
            None => to.copy_from_slice(natural),
        }
    }
}

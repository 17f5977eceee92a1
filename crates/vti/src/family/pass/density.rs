//! From the flow's coordinates to natural parameters and their density, of rows as a whole or block by block.

use super::super::coordinates::{Coordinates, Preconditioners};
use super::super::row_blocks::RowBlocks;
use super::super::{Family, FamilyError};
use super::Pass;
use crate::device::Device;
use crate::problem::{
    BatchError, BlockBatch, BlockRow, Blocks, ConstraintError, Constraints, DensityBatch, DensityError,
};

/// Rows that are mapped together: a fixed number, so that results do not depend on threads.
const ROWS_PER_TASK: usize = 64;

/// A chunk of rows on its way to natural parameters.
struct Mapping<'a> {
    dims: &'a mut [usize],
    block_dims: &'a mut [usize],
    log_jacobian: &'a mut [f64],
    natural: &'a mut [f64],
    free: &'a mut [f64],
    /// Or the row whose constraints do not fit.
    result: Result<(), (usize, ConstraintError)>,
}

impl<D: Device> Pass<D> {
    /// Natural parameters, `log η` and its gradient with respect to the flow's coordinates.
    pub(crate) fn density(&mut self, family: &Family<D>) -> Result<(), FamilyError> {
        self.find_natural(family)?;
        // A density that forgets a coordinate must not find what another row left there.
        self.natural_gradient.fill(0.0);
        let blocks = family.problem.blocks();
        let asked = match blocks {
            None => self.ask_whole(family),
            Some(blocks) => self.ask_blocks(family, blocks),
        };
        asked.map_err(|BatchError { row, error }| self.density_error(family, row, &error))?;
        if let Some(blocks) = blocks {
            self.arrange(family, blocks);
        }
        self.add_jacobians(blocks.is_some());
        self.pull_back(family);
        Ok(())
    }

    /// The density of rows as a whole.
    fn ask_whole(&mut self, family: &Family<D>) -> Result<(), BatchError> {
        let (rows, stride) = (self.rows(), self.natural_stride);
        let batch = DensityBatch {
            words: &self.words,
            width: self.width,
            theta: &self.natural[..rows * stride],
            stride,
            dims: &self.natural_dims[..rows],
            log_density: &mut self.log_eta[..rows],
            gradient: &mut self.natural_gradient[..rows * stride],
        };
        family.problem.log_density_batch(batch, family.device.workers())
    }

    /// The density of rows block by block.
    fn ask_blocks(&mut self, family: &Family<D>, blocks: &dyn Blocks) -> Result<(), BatchError> {
        let workers = family.device.workers();
        blocks.log_density_batch(self.block_batch(), workers)
    }

    /// The blocks of all rows, and where what is found about them goes.
    fn block_batch(&mut self) -> BlockBatch<'_> {
        let (rows, stride, count) = (self.rows(), self.natural_stride, self.row_blocks.count);
        BlockBatch {
            count,
            keys: self.row_blocks.keys(),
            dims: &self.block_dims[..rows * count],
            theta: &self.natural[..rows * stride],
            stride,
            log_density: &mut self.block_log_eta[..rows * count],
            gradient: &mut self.natural_gradient[..rows * stride],
        }
    }

    /// Multiplies the densities of blocks by the weights of their arrangements, and keeps the sums of these.
    fn arrange(&mut self, family: &Family<D>, blocks: &dyn Blocks) {
        let (rows, workers) = (self.rows(), family.device.workers());
        let mut sums = std::mem::take(&mut self.log_arrangement);
        let mut tasks: Vec<(BlockRow<'_>, &mut f64)> =
            self.block_batch().into_rows().into_iter().zip(&mut sums[..rows]).collect();
        workers.for_each(&mut tasks, |_, (row, sum)| {
            **sum = 0.0;
            let mut start = 0;
            for block in 0..row.keys.len() {
                let here = start..start + row.dims[block];
                start = here.end;
                // Where the density is undefined, so is the draw.
                if row.log_density[block].is_finite() {
                    let (theta, gradient) = (&row.theta[here.clone()], &mut row.gradient[here]);
                    let log_weight = blocks.log_arrangement(block, row.keys[block], theta, gradient);
                    row.log_density[block] += log_weight;
                    **sum += log_weight;
                }
            }
        });
        drop(tasks);
        self.log_arrangement = sums;
    }

    /// From densities of natural parameters to those of the flow's coordinates.
    fn add_jacobians(&mut self, in_blocks: bool) {
        let (rows, count) = (self.rows(), self.row_blocks.count);
        if !in_blocks {
            self.log_eta[..rows].iter_mut().zip(&self.log_jacobian).for_each(|(log_eta, log_j)| *log_eta += log_j);
            return;
        }
        let densities = &mut self.block_log_eta[..rows * count];
        densities.iter_mut().zip(&self.block_log_jacobian).for_each(|(log_eta, log_j)| *log_eta += log_j);
        for (row, densities) in densities.chunks(count).enumerate() {
            self.log_eta[row] = densities.iter().sum();
        }
    }

    /// Gradients with respect to the flow's coordinates.
    fn pull_back(&mut self, family: &Family<D>) {
        let (rows, stride, natural_stride) = (self.rows(), self.stride, self.natural_stride);
        let Self { row_blocks, preconditioners, natural_gradient, free, gradient, .. } = self;
        let (row_blocks, preconditioners, natural_gradient, free) =
            (&*row_blocks, &*preconditioners, &*natural_gradient, &*free);
        let constraints = family.constraints();
        let mut chunks: Vec<&mut [f64]> = gradient[..rows * stride].chunks_mut(ROWS_PER_TASK * stride.max(1)).collect();
        family.device.workers().for_each(&mut chunks, |chunk, gradient| {
            let first = chunk * ROWS_PER_TASK;
            for row in first..rows.min(first + ROWS_PER_TASK) {
                let mut natural = &natural_gradient[row * natural_stride..][..natural_stride];
                for row_block in row_blocks.of_row(row) {
                    let coordinates = coordinates(constraints, preconditioners, row_blocks, row_block);
                    let (here, rest) = natural.split_at(coordinates.natural_dim());
                    natural = rest;
                    let place = row_blocks.place(row_block);
                    let to = &mut gradient[place.start - first * stride..place.end - first * stride];
                    coordinates.pull_back(&free[place], here, to);
                }
            }
        });
    }

    fn density_error(&self, family: &Family<D>, row: usize, error: &DensityError) -> FamilyError {
        let model = if row < self.rows() {
            family.space().label(self.word(row))
        } else {
            format!("(row {row} of a batch of {})", self.rows())
        };
        FamilyError::Density { model, reason: error.to_string() }
    }

    /// Natural parameters of all rows.
    pub(crate) fn find_natural(&mut self, family: &Family<D>) -> Result<(), FamilyError> {
        let (rows, stride, natural_stride, count) =
            (self.rows(), self.stride, self.natural_stride, self.row_blocks.count);
        let Self {
            row_blocks,
            preconditioners,
            theta,
            natural,
            natural_dims,
            block_dims,
            free,
            block_log_jacobian,
            ..
        } = self;
        let mut naturals = natural.chunks_mut(ROWS_PER_TASK * natural_stride.max(1));
        let mut frees = free.chunks_mut(ROWS_PER_TASK * stride.max(1));
        let numbers =
            natural_dims[..rows].chunks_mut(ROWS_PER_TASK).zip(block_log_jacobian.chunks_mut(ROWS_PER_TASK * count));
        let numbers = numbers.zip(block_dims.chunks_mut(ROWS_PER_TASK * count));
        let tasks = numbers.map(|((dims, log_jacobian), block_dims)| {
            // A space without parameters still has rows.
            let (natural, free) = (naturals.next().unwrap_or_default(), frees.next().unwrap_or_default());
            Mapping { dims, block_dims, log_jacobian, natural, free, result: Ok(()) }
        });
        let mut tasks: Vec<Mapping<'_>> = tasks.collect();
        let (row_blocks, preconditioners, theta, constraints) =
            (&*row_blocks, &*preconditioners, &*theta, family.constraints());
        family.device.workers().for_each(&mut tasks, |chunk, task| {
            let first = chunk * ROWS_PER_TASK;
            for offset in 0..task.dims.len() {
                let row = first + offset;
                let mut natural = task.natural.get_mut(offset * natural_stride..).unwrap_or_default();
                task.dims[offset] = 0;
                for row_block in row_blocks.of_row(row) {
                    let coordinates = coordinates(constraints, preconditioners, row_blocks, row_block);
                    if let Some(Err(error)) = constraints.map(|all| all.check_active(coordinates.active)) {
                        task.result = Err((row, error));
                        return;
                    }
                    let place = row_blocks.place(row_block);
                    let free = &mut task.free[place.start - first * stride..place.end - first * stride];
                    free.copy_from_slice(&theta[place]);
                    let (here, rest) = natural.split_at_mut(coordinates.natural_dim());
                    task.dims[offset] += here.len();
                    task.block_dims[row_block - first * count] = here.len();
                    task.log_jacobian[row_block - first * count] = coordinates.to_natural(free, here);
                    natural = rest;
                }
            }
        });
        let failed = tasks.into_iter().find_map(|task| task.result.err());
        if let Some((row, error)) = failed {
            return Err(FamilyError::ActiveConstraints { model: family.space().label(self.word(row)), error });
        }
        for row in 0..rows {
            self.log_jacobian[row] = self.block_log_jacobian[row * count..(row + 1) * count].iter().sum();
        }
        Ok(())
    }

    /// Takes natural parameters of a row, of which there must be as many as the model has; `log |det ∂θ/∂v|`.
    pub(crate) fn take_natural(&mut self, family: &Family<D>, row: usize, natural: &[f64]) -> Result<f64, usize> {
        let row_blocks = || self.row_blocks.of_row(row);
        let way = |row_block| coordinates(family.constraints(), &self.preconditioners, &self.row_blocks, row_block);
        let dim = row_blocks().map(|row_block| way(row_block).natural_dim()).sum();
        if natural.len() != dim {
            return Err(dim);
        }
        let (mut natural, mut log_jacobian) = (natural, 0.0);
        for row_block in row_blocks() {
            let coordinates = way(row_block);
            let (here, rest) = natural.split_at(coordinates.natural_dim());
            log_jacobian += coordinates.to_flow(here, &mut self.theta[self.row_blocks.place(row_block)]);
            natural = rest;
        }
        Ok(log_jacobian)
    }
}

/// The way of a row_block between its coordinates. A row that was left out has none, whatever preconditioner its model has.
fn coordinates<'a>(
    constraints: Option<&'a Constraints>,
    preconditioners: &'a Preconditioners,
    row_blocks: &'a RowBlocks,
    row_block: usize,
) -> Coordinates<'a> {
    let active = row_blocks.active(row_block);
    Coordinates {
        preconditioner: preconditioners
            .row_block(row_block)
            .filter(|preconditioner| preconditioner.dim() == active.len()),
        constraints,
        active,
    }
}

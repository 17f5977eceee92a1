//! From the flow's coordinates to natural parameters and their density, of rows as a whole or factor by factor.

use super::super::coordinates::{Coordinates, Preconditioners};
use super::super::pieces::Pieces;
use super::super::{Family, FamilyError};
use super::Pass;
use crate::device::Device;
use crate::problem::{BatchError, ConstraintError, Constraints, DensityBatch, DensityError, FactorBatch, Factors};

/// Rows that are mapped together: a fixed number, so that results do not depend on threads.
const ROWS_PER_TASK: usize = 64;

/// A chunk of rows on its way to natural parameters.
struct Mapping<'a> {
    dims: &'a mut [usize],
    piece_dims: &'a mut [usize],
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
        let asked = match family.problem.factors() {
            None => self.ask_whole(family),
            Some(factors) => self.ask_factors(family, factors),
        };
        asked.map_err(|BatchError { row, error }| self.density_error(family, row, &error))?;
        self.add_jacobians(family.problem.factors().is_some());
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

    /// The density of rows factor by factor.
    fn ask_factors(&mut self, family: &Family<D>, factors: &dyn Factors) -> Result<(), BatchError> {
        let (rows, stride, count) = (self.rows(), self.natural_stride, self.pieces.count);
        let batch = FactorBatch {
            count,
            keys: self.pieces.keys(),
            dims: &self.piece_dims[..rows * count],
            theta: &self.natural[..rows * stride],
            stride,
            log_density: &mut self.piece_log_eta[..rows * count],
            gradient: &mut self.natural_gradient[..rows * stride],
        };
        factors.log_density_batch(batch, family.device.workers())
    }

    /// From densities of natural parameters to those of the flow's coordinates.
    fn add_jacobians(&mut self, factored: bool) {
        let (rows, count) = (self.rows(), self.pieces.count);
        if !factored {
            self.log_eta[..rows].iter_mut().zip(&self.log_jacobian).for_each(|(log_eta, log_j)| *log_eta += log_j);
            return;
        }
        let densities = &mut self.piece_log_eta[..rows * count];
        densities.iter_mut().zip(&self.piece_log_jacobian).for_each(|(log_eta, log_j)| *log_eta += log_j);
        for (row, densities) in densities.chunks(count).enumerate() {
            self.log_eta[row] = densities.iter().sum();
        }
    }

    /// Gradients with respect to the flow's coordinates.
    fn pull_back(&mut self, family: &Family<D>) {
        let (rows, stride, natural_stride) = (self.rows(), self.stride, self.natural_stride);
        let Self { pieces, preconditioners, natural_gradient, free, gradient, .. } = self;
        let (pieces, preconditioners, natural_gradient, free) =
            (&*pieces, &*preconditioners, &*natural_gradient, &*free);
        let constraints = family.constraints();
        let mut chunks: Vec<&mut [f64]> = gradient[..rows * stride].chunks_mut(ROWS_PER_TASK * stride.max(1)).collect();
        family.device.workers().for_each(&mut chunks, |chunk, gradient| {
            let first = chunk * ROWS_PER_TASK;
            for row in first..rows.min(first + ROWS_PER_TASK) {
                let mut natural = &natural_gradient[row * natural_stride..][..natural_stride];
                for piece in pieces.of_row(row) {
                    let coordinates = coordinates(constraints, preconditioners, pieces, piece);
                    let (here, rest) = natural.split_at(coordinates.natural_dim());
                    natural = rest;
                    let place = pieces.place(piece);
                    let to = &mut gradient[place.start - first * stride..place.end - first * stride];
                    coordinates.pull_back(&free[place], here, to);
                }
            }
        });
    }

    fn density_error(&self, family: &Family<D>, row: usize, error: &DensityError) -> FamilyError {
        FamilyError::Density { model: family.space().label(self.word(row)), reason: error.to_string() }
    }

    /// Natural parameters of all rows.
    pub(crate) fn find_natural(&mut self, family: &Family<D>) -> Result<(), FamilyError> {
        let (rows, stride, natural_stride, count) = (self.rows(), self.stride, self.natural_stride, self.pieces.count);
        let Self {
            pieces, preconditioners, theta, natural, natural_dims, piece_dims, free, piece_log_jacobian, ..
        } = self;
        let mut naturals = natural.chunks_mut(ROWS_PER_TASK * natural_stride.max(1));
        let mut frees = free.chunks_mut(ROWS_PER_TASK * stride.max(1));
        let numbers =
            natural_dims[..rows].chunks_mut(ROWS_PER_TASK).zip(piece_log_jacobian.chunks_mut(ROWS_PER_TASK * count));
        let numbers = numbers.zip(piece_dims.chunks_mut(ROWS_PER_TASK * count));
        let tasks = numbers.map(|((dims, log_jacobian), piece_dims)| {
            // A space without parameters still has rows.
            let (natural, free) = (naturals.next().unwrap_or_default(), frees.next().unwrap_or_default());
            Mapping { dims, piece_dims, log_jacobian, natural, free, result: Ok(()) }
        });
        let mut tasks: Vec<Mapping<'_>> = tasks.collect();
        let (pieces, preconditioners, theta, constraints) =
            (&*pieces, &*preconditioners, &*theta, family.constraints());
        family.device.workers().for_each(&mut tasks, |chunk, task| {
            let first = chunk * ROWS_PER_TASK;
            for offset in 0..task.dims.len() {
                let row = first + offset;
                let mut natural = task.natural.get_mut(offset * natural_stride..).unwrap_or_default();
                task.dims[offset] = 0;
                for piece in pieces.of_row(row) {
                    let coordinates = coordinates(constraints, preconditioners, pieces, piece);
                    if let Some(Err(error)) = constraints.map(|all| all.check_active(coordinates.active)) {
                        task.result = Err((row, error));
                        return;
                    }
                    let place = pieces.place(piece);
                    let free = &mut task.free[place.start - first * stride..place.end - first * stride];
                    free.copy_from_slice(&theta[place]);
                    let (here, rest) = natural.split_at_mut(coordinates.natural_dim());
                    task.dims[offset] += here.len();
                    task.piece_dims[piece - first * count] = here.len();
                    task.log_jacobian[piece - first * count] = coordinates.to_natural(free, here);
                    natural = rest;
                }
            }
        });
        let failed = tasks.into_iter().find_map(|task| task.result.err());
        if let Some((row, error)) = failed {
            return Err(FamilyError::ActiveConstraints { model: family.space().label(self.word(row)), error });
        }
        for row in 0..rows {
            self.log_jacobian[row] = self.piece_log_jacobian[row * count..(row + 1) * count].iter().sum();
        }
        Ok(())
    }

    /// Takes natural parameters of a row, of which there must be as many as the model has; `log |det ∂θ/∂v|`.
    pub(crate) fn take_natural(&mut self, family: &Family<D>, row: usize, natural: &[f64]) -> Result<f64, usize> {
        let pieces = || self.pieces.of_row(row);
        let way = |piece| coordinates(family.constraints(), &self.preconditioners, &self.pieces, piece);
        let dim = pieces().map(|piece| way(piece).natural_dim()).sum();
        if natural.len() != dim {
            return Err(dim);
        }
        let (mut natural, mut log_jacobian) = (natural, 0.0);
        for piece in pieces() {
            let coordinates = way(piece);
            let (here, rest) = natural.split_at(coordinates.natural_dim());
            log_jacobian += coordinates.to_flow(here, &mut self.theta[self.pieces.place(piece)]);
            natural = rest;
        }
        Ok(log_jacobian)
    }
}

/// The way of a piece between its coordinates. A row that was left out has none, whatever preconditioner its model has.
fn coordinates<'a>(
    constraints: Option<&'a Constraints>,
    preconditioners: &'a Preconditioners,
    pieces: &'a Pieces,
    piece: usize,
) -> Coordinates<'a> {
    let active = pieces.active(piece);
    Coordinates {
        preconditioner: preconditioners.piece(piece).filter(|preconditioner| preconditioner.dim() == active.len()),
        constraints,
        active,
    }
}

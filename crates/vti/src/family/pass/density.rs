//! From the flow's coordinates to natural parameters and their density, of rows as a whole or factor by factor.

use super::super::coordinates::{Coordinates, Frames};
use super::super::pieces::Pieces;
use super::super::{Family, FamilyError};
use super::Pass;
use crate::engine::Engine;
use crate::problem::{BatchError, ConstraintError, Constraints, DensityBatch, DensityError, Factors, Problem};

/// Rows per evaluation of the problem's density: a fixed number, so that results do not depend on threads.
const CHUNK: usize = 64;

/// A chunk of rows on its way to natural parameters.
struct Mapping<'a> {
    dims: &'a mut [usize],
    log_jacobian: &'a mut [f64],
    natural: &'a mut [f64],
    free: &'a mut [f64],
    /// Or the row whose constraints do not fit.
    result: Result<(), (usize, ConstraintError)>,
}

/// A row whose density is found factor by factor.
struct FactoredRow<'a> {
    densities: &'a mut [f64],
    natural_gradient: &'a mut [f64],
    gradient: &'a mut [f64],
    result: Result<(), DensityError>,
}

impl<E: Engine> Pass<E> {
    /// Natural parameters, `log η` and its gradient with respect to the flow's coordinates.
    pub(crate) fn density<P: Problem>(&mut self, family: &Family<'_, P, E>) -> Result<(), FamilyError> {
        self.find_natural(family)?;
        // A density that forgets a coordinate must not find what another row left there.
        self.natural_gradient.fill(0.0);
        match family.problem.factors() {
            None => self.whole_density(family),
            Some(factors) => self.factored_density(family, factors),
        }
    }

    /// The density of rows as a whole.
    fn whole_density<P: Problem>(&mut self, family: &Family<'_, P, E>) -> Result<(), FamilyError> {
        let (rows, width, stride) = (self.rows(), self.width, self.natural_stride);
        let Self { pieces, frames, words, natural, natural_dims, natural_gradient, free, log_jacobian, .. } = self;
        let (words, natural, dims, free, log_jacobian) = (&*words, &*natural, &*natural_dims, &*free, &*log_jacobian);
        let mut natural_gradients = natural_gradient.chunks_mut(CHUNK * stride.max(1));
        let mut gradients = self.gradient.chunks_mut(CHUNK * self.stride.max(1));
        let mut densities = self.log_eta[..rows].chunks_mut(CHUNK);
        let tasks = (0..rows).step_by(CHUNK).map(|first| {
            let last = rows.min(first + CHUNK);
            let batch = DensityBatch {
                words: &words[first * width..last * width],
                width,
                theta: &natural[first * stride..last * stride],
                stride,
                dims: &dims[first..last],
                // A space without parameters still has rows.
                log_density: densities.next().unwrap_or_default(),
                gradient: natural_gradients.next().unwrap_or_default(),
            };
            (batch, gradients.next().unwrap_or_default(), Ok(()))
        });
        let mut tasks: Vec<(DensityBatch<'_>, &mut [f64], Result<(), BatchError>)> = tasks.collect();
        let (free_stride, problem, constraints) = (self.stride, family.problem, family.constraints());
        family.engine.for_each_lane(&mut tasks, |chunk, (density, gradient, result)| {
            *result = problem.log_density_batch(density);
            for (offset, row) in (chunk * CHUNK..chunk * CHUNK + density.rows()).enumerate() {
                let coordinates = coordinates(constraints, frames, pieces, row);
                let dim = coordinates.active.len();
                let natural_gradient = &density.gradient[offset * stride..][..dims[row]];
                let gradient = &mut gradient[offset * free_stride..][..dim];
                coordinates.pull_back(&free[row * free_stride..][..dim], natural_gradient, gradient);
                density.log_density[offset] += log_jacobian[row];
            }
        });
        let results: Vec<_> = tasks.into_iter().map(|(_, _, result)| result).collect();
        for (chunk, result) in results.into_iter().enumerate() {
            if let Err(BatchError { row, error }) = result {
                return Err(self.density_error(family, chunk * CHUNK + row, &error));
            }
        }
        Ok(())
    }

    /// The density of rows factor by factor.
    fn factored_density<P: Problem>(
        &mut self,
        family: &Family<'_, P, E>,
        factors: &dyn Factors,
    ) -> Result<(), FamilyError> {
        let (rows, stride, natural_stride, count) = (self.rows(), self.stride, self.natural_stride, self.pieces.count);
        let Self { pieces, frames, natural, natural_gradient, free, piece_log_jacobian, .. } = self;
        let (pieces, frames, natural, free, log_jacobian) =
            (&*pieces, &*frames, &*natural, &*free, &*piece_log_jacobian);
        let mut natural_gradients = natural_gradient.chunks_mut(natural_stride.max(1));
        let mut gradients = self.gradient.chunks_mut(stride.max(1));
        let densities = self.piece_log_eta[..rows * count].chunks_mut(count);
        let tasks = densities.map(|densities| {
            // A space without parameters still has rows.
            let natural_gradient = natural_gradients.next().unwrap_or_default();
            FactoredRow { densities, natural_gradient, gradient: gradients.next().unwrap_or_default(), result: Ok(()) }
        });
        let mut tasks: Vec<FactoredRow<'_>> = tasks.collect();
        let constraints = family.constraints();
        family.engine.for_each_lane(
            &mut tasks,
            |row, FactoredRow { densities, natural_gradient, gradient, result }| {
                let mut start = 0;
                for (density, piece) in densities.iter_mut().zip(pieces.of_row(row)) {
                    let coordinates = coordinates(constraints, frames, pieces, piece);
                    let here = start..start + coordinates.natural_dim();
                    start = here.end;
                    let theta = &natural[row * natural_stride..][here.clone()];
                    let (block, key) = (pieces.block(piece), pieces.keys()[piece]);
                    *density = match factors.log_density(block, key, theta, &mut natural_gradient[here.clone()]) {
                        Ok(value) => value + log_jacobian[piece],
                        Err(DensityError::Undefined { .. }) => f64::NAN,
                        Err(error @ DensityError::Fatal { .. }) => {
                            *result = Err(error);
                            return;
                        }
                    };
                    let place = pieces.place(piece);
                    let gradient = &mut gradient[place.start - row * stride..place.end - row * stride];
                    coordinates.pull_back(&free[place], &natural_gradient[here], gradient);
                }
            },
        );
        let failed = tasks.into_iter().enumerate().find_map(|(row, task)| Some((row, task.result.err()?)));
        if let Some((row, error)) = failed {
            return Err(self.density_error(family, row, &error));
        }
        for (row, densities) in self.piece_log_eta[..rows * count].chunks(count).enumerate() {
            self.log_eta[row] = densities.iter().sum();
        }
        Ok(())
    }

    fn density_error<P: Problem>(&self, family: &Family<'_, P, E>, row: usize, error: &DensityError) -> FamilyError {
        FamilyError::Density { model: family.space().label(self.word(row)), reason: error.to_string() }
    }

    /// Natural parameters of all rows.
    pub(crate) fn find_natural<P: Problem>(&mut self, family: &Family<'_, P, E>) -> Result<(), FamilyError> {
        let (rows, stride, natural_stride, count) = (self.rows(), self.stride, self.natural_stride, self.pieces.count);
        let Self { pieces, frames, theta, natural, natural_dims, free, piece_log_jacobian, .. } = self;
        let mut naturals = natural.chunks_mut(CHUNK * natural_stride.max(1));
        let mut frees = free.chunks_mut(CHUNK * stride.max(1));
        let numbers = natural_dims[..rows].chunks_mut(CHUNK).zip(piece_log_jacobian.chunks_mut(CHUNK * count));
        let tasks = numbers.map(|(dims, log_jacobian)| {
            // A space without parameters still has rows.
            let (natural, free) = (naturals.next().unwrap_or_default(), frees.next().unwrap_or_default());
            Mapping { dims, log_jacobian, natural, free, result: Ok(()) }
        });
        let mut tasks: Vec<Mapping<'_>> = tasks.collect();
        let (pieces, frames, theta, constraints) = (&*pieces, &*frames, &*theta, family.constraints());
        family.engine.for_each_lane(&mut tasks, |chunk, task| {
            let first = chunk * CHUNK;
            for offset in 0..task.dims.len() {
                let row = first + offset;
                let mut natural = task.natural.get_mut(offset * natural_stride..).unwrap_or_default();
                task.dims[offset] = 0;
                for piece in pieces.of_row(row) {
                    let coordinates = coordinates(constraints, frames, pieces, piece);
                    if let Some(Err(error)) = constraints.map(|all| all.check_active(coordinates.active)) {
                        task.result = Err((row, error));
                        return;
                    }
                    let place = pieces.place(piece);
                    let free = &mut task.free[place.start - first * stride..place.end - first * stride];
                    free.copy_from_slice(&theta[place]);
                    let (here, rest) = natural.split_at_mut(coordinates.natural_dim());
                    task.dims[offset] += here.len();
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
    pub(crate) fn take_natural<P: Problem>(
        &mut self,
        family: &Family<'_, P, E>,
        row: usize,
        natural: &[f64],
    ) -> Result<f64, usize> {
        let pieces = || self.pieces.of_row(row);
        let way = |piece| coordinates(family.constraints(), &self.frames, &self.pieces, piece);
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

/// The way of a piece between its coordinates. A row that was left out has none, whatever frame its model has.
fn coordinates<'a>(
    constraints: Option<&'a Constraints>,
    frames: &'a Frames,
    pieces: &'a Pieces,
    piece: usize,
) -> Coordinates<'a> {
    let active = pieces.active(piece);
    Coordinates { frame: frames.piece(piece).filter(|frame| frame.dim() == active.len()), constraints, active }
}

//! One batch on its way: models, reference variables, parameters, densities.

use std::collections::HashMap;
use std::f64::consts::TAU;

use super::coordinates::{Coordinates, Frames};
use super::{Contexts, Family, FamilyError};
use crate::engine::{Engine, Real};
use crate::flow::{Batch, FlowError, Passes, Workspace};
use crate::models::Draw;
use crate::problem::{BatchError, ConstraintError, Constraints, DensityBatch, Problem};

/// Rows per evaluation of the problem's density: a fixed number, so that results do not depend on threads.
const CHUNK: usize = 64;

/// Memory for batches of up to a number of rows, and what the last one brought.
///
/// Coordinates stand left-aligned with stride `d_max`; a row owns the first `dims[row]` of them.
pub(crate) struct Pass<E: Engine> {
    capacity: usize,
    width: usize,
    stride: usize,
    natural_stride: usize,
    pub(crate) words: Vec<u16>,
    pub(crate) log_q_model: Vec<f64>,
    pub(crate) batch: Batch<E::Real>,
    pub(crate) work: Workspace<E>,
    pub(crate) z: Vec<E::Real>,
    /// `log ν(z)`.
    pub(crate) log_reference: Vec<f64>,
    theta_engine: Vec<E::Real>,
    log_det_engine: Vec<E::Real>,
    /// What the flow makes: v, the parameters as seen from the frames of their models.
    pub(crate) theta: Vec<f64>,
    /// Free parameters.
    free: Vec<f64>,
    pub(crate) log_det: Vec<f64>,
    pub(crate) natural: Vec<f64>,
    pub(crate) natural_dims: Vec<usize>,
    /// `log η` with respect to the flow's coordinates, and its gradient.
    pub(crate) log_eta: Vec<f64>,
    pub(crate) gradient: Vec<f64>,
    natural_gradient: Vec<f64>,
    /// `log |det ∂θ/∂v|`.
    pub(crate) log_jacobian: Vec<f64>,
    mask: Vec<bool>,
    active: Vec<u32>,
    numbers: Vec<f64>,
    features: Vec<E::Real>,
    seen: HashMap<Box<[u16]>, u32>,
    frames: Frames,
}

/// A chunk of rows on its way to natural parameters.
struct Mapping<'a> {
    dims: &'a mut [usize],
    log_jacobian: &'a mut [f64],
    natural: &'a mut [f64],
    free: &'a mut [f64],
    /// Or the row whose constraints do not fit.
    result: Result<(), (usize, ConstraintError)>,
}

/// Log density of a standard normal vector.
pub(crate) fn log_reference<T: Real>(z: &[T]) -> f64 {
    let half = 0.5 * TAU.ln();
    z.iter().map(|z| -0.5 * z.to_f64() * z.to_f64() - half).sum()
}

impl<E: Engine> Pass<E> {
    pub(super) fn new<P: Problem>(family: &Family<'_, P, E>, capacity: usize, passes: Passes) -> Self {
        let (space, natural_stride) = (family.space(), family.natural_len());
        let (width, stride) = (space.arities().len(), space.max_dim());
        let (numbers, naturals) = (capacity * stride, capacity * natural_stride);
        Self {
            capacity,
            width,
            stride,
            natural_stride,
            words: vec![0; capacity * width],
            log_q_model: vec![0.0; capacity],
            batch: Batch::with_capacity(capacity, family.flow.shape()),
            work: family.flow.workspace(family.engine, capacity, passes),
            z: vec![E::Real::ZERO; numbers],
            log_reference: vec![0.0; capacity],
            theta_engine: vec![E::Real::ZERO; numbers],
            log_det_engine: vec![E::Real::ZERO; capacity],
            theta: vec![0.0; numbers],
            free: vec![0.0; numbers],
            log_det: vec![0.0; capacity],
            natural: vec![0.0; naturals],
            natural_dims: vec![0; capacity],
            log_eta: vec![0.0; capacity],
            gradient: vec![0.0; numbers],
            natural_gradient: vec![0.0; naturals],
            log_jacobian: vec![0.0; capacity],
            mask: vec![false; stride],
            active: Vec::with_capacity(stride),
            numbers: vec![0.0; space.feature_count()],
            features: vec![E::Real::ZERO; space.feature_count()],
            seen: HashMap::new(),
            frames: Frames::default(),
        }
    }

    /// Rows of the batch.
    pub(crate) fn rows(&self) -> usize {
        self.log_q_model.len()
    }

    /// Room for exactly so many rows, at most the capacity.
    pub(crate) fn resize(&mut self, rows: usize) {
        let rows = rows.min(self.capacity);
        self.words.resize(rows * self.width, 0);
        self.log_q_model.resize(rows, 0.0);
    }

    pub(crate) fn word(&self, row: usize) -> &[u16] {
        &self.words[row * self.width..][..self.width]
    }

    pub(crate) fn dim(&self, row: usize) -> usize {
        self.batch.dims()[row] as usize
    }

    /// Places of a row's coordinates.
    pub(crate) fn place(&self, row: usize) -> std::ops::Range<usize> {
        row * self.stride..row * self.stride + self.dim(row)
    }

    /// Natural parameters of a row.
    pub(crate) fn natural(&self, row: usize) -> &[f64] {
        &self.natural[row * self.natural_stride..][..self.natural_dims[row]]
    }

    /// `log q(θ_m | m)` with respect to the flow's coordinates.
    pub(crate) fn log_q_theta(&self, row: usize) -> f64 {
        self.log_reference[row] - self.log_det[row]
    }

    /// Tells the flow the models of the rows; rows that are `left_out` get no coordinates at all.
    pub(crate) fn plan<P: Problem>(
        &mut self,
        family: &Family<'_, P, E>,
        left_out: impl Fn(usize) -> bool,
    ) -> Result<(), FamilyError> {
        let space = family.space();
        self.batch.clear();
        self.seen.clear();
        for row in 0..self.rows() {
            let word = &self.words[row * self.width..][..self.width];
            self.active.clear();
            if !left_out(row) {
                space.mark_active(word, &mut self.mask);
                self.active.extend((0..self.stride as u32).filter(|&c| self.mask[c as usize]));
            }
            let context = match &family.contexts {
                Contexts::Lookup(catalogue) => {
                    let index = catalogue.index(word);
                    index.ok_or_else(|| FamilyError::Point { point: row, reason: "no such model".into() })? as u32
                }
                Contexts::Features(_) => match self.seen.get(word) {
                    Some(&context) => context,
                    None => {
                        space.features(word, &mut self.numbers);
                        let numbers = self.features.iter_mut().zip(&self.numbers);
                        numbers.for_each(|(to, &number)| *to = E::Real::from_f64(number));
                        let context = self.batch.push_features(&self.features);
                        self.seen.insert(word.into(), context);
                        context
                    }
                },
            };
            self.batch.push(&self.active, context);
        }
        self.work.set_batch(family.engine, &self.batch)?;
        self.frames.find(family, &self.words)
    }

    /// Draws z for every row.
    pub(crate) fn draw_z(&mut self, draw: Draw) {
        for row in 0..self.rows() {
            let mut stream = draw.row(row);
            let place = self.place(row);
            self.z[place].fill_with(|| E::Real::from_f64(stream.normal()));
        }
    }

    /// `θ = T_φ(z | m)` and `log q(θ | m)`. What is not finite is left for the caller to find.
    pub(crate) fn forward<P: Problem>(&mut self, family: &Family<'_, P, E>) -> Result<(), FamilyError> {
        self.work.write_z(family.engine, &self.z)?;
        family.flow.forward(family.engine, &family.parameters, &mut self.work)?;
        let read = self.work.read_theta(family.engine, &mut self.theta_engine, &mut self.log_det_engine);
        found_or_not_finite(read)?;
        self.take_over();
        for row in 0..self.rows() {
            let place = self.place(row);
            self.theta[place.clone()].iter_mut().zip(&self.theta_engine[place]).for_each(|(to, x)| *to = x.to_f64());
        }
        Ok(())
    }

    /// `z = T_φ⁻¹(θ | m)` and `log q(θ | m)` at the flow's coordinates `self.theta`.
    pub(crate) fn inverse<P: Problem>(&mut self, family: &Family<'_, P, E>) -> Result<(), FamilyError> {
        for row in 0..self.rows() {
            let place = self.place(row);
            let numbers = self.theta_engine[place.clone()].iter_mut().zip(&self.theta[place]);
            numbers.for_each(|(to, &x)| *to = E::Real::from_f64(x));
        }
        self.work.write_theta(family.engine, &self.theta_engine)?;
        family.flow.inverse(family.engine, &family.parameters, &mut self.work)?;
        found_or_not_finite(self.work.read_z(family.engine, &mut self.z, &mut self.log_det_engine))?;
        self.take_over();
        Ok(())
    }

    /// Log-determinants and reference densities of all rows in double precision.
    fn take_over(&mut self) {
        for row in 0..self.rows() {
            self.log_reference[row] = log_reference(&self.z[self.place(row)]);
            self.log_det[row] = self.log_det_engine[row].to_f64();
        }
    }

    /// Natural parameters, `log η` and its gradient with respect to the flow's coordinates.
    pub(crate) fn density<P: Problem>(&mut self, family: &Family<'_, P, E>) -> Result<(), FamilyError> {
        self.find_natural(family)?;
        let (rows, width, stride) = (self.rows(), self.width, self.natural_stride);
        let Self { batch, frames, words, natural, natural_dims, natural_gradient, free, log_jacobian, .. } = self;
        let (words, natural, dims, free, log_jacobian) = (&*words, &*natural, &*natural_dims, &*free, &*log_jacobian);
        // A density that forgets a coordinate must not find what another row left there.
        natural_gradient.fill(0.0);
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
                let coordinates = coordinates(constraints, frames, batch, row);
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
                let model = family.space().label(self.word(chunk * CHUNK + row));
                return Err(FamilyError::Density { model, reason: error.to_string() });
            }
        }
        Ok(())
    }

    /// Natural parameters of all rows.
    pub(crate) fn find_natural<P: Problem>(&mut self, family: &Family<'_, P, E>) -> Result<(), FamilyError> {
        let (rows, stride, natural_stride) = (self.rows(), self.stride, self.natural_stride);
        let Self { batch, frames, theta, natural, natural_dims, free, log_jacobian, .. } = self;
        let mut naturals = natural.chunks_mut(CHUNK * natural_stride.max(1));
        let mut frees = free.chunks_mut(CHUNK * stride.max(1));
        let numbers = natural_dims[..rows].chunks_mut(CHUNK).zip(log_jacobian[..rows].chunks_mut(CHUNK));
        let tasks = numbers.map(|(dims, log_jacobian)| {
            // A space without parameters still has rows.
            let (natural, free) = (naturals.next().unwrap_or_default(), frees.next().unwrap_or_default());
            Mapping { dims, log_jacobian, natural, free, result: Ok(()) }
        });
        let mut tasks: Vec<Mapping<'_>> = tasks.collect();
        let (batch, frames, theta, constraints) = (&*batch, &*frames, &*theta, family.constraints());
        family.engine.for_each_lane(&mut tasks, |chunk, task| {
            for offset in 0..task.dims.len() {
                let row = chunk * CHUNK + offset;
                let coordinates = coordinates(constraints, frames, batch, row);
                if let Some(Err(error)) = constraints.map(|constraints| constraints.check_active(coordinates.active)) {
                    task.result = Err((row, error));
                    return;
                }
                let (dim, free_dim) = (coordinates.natural_dim(), coordinates.active.len());
                let free = &mut task.free[offset * stride..][..free_dim];
                free.copy_from_slice(&theta[row * stride..][..free_dim]);
                task.dims[offset] = dim;
                task.log_jacobian[offset] =
                    coordinates.to_natural(free, &mut task.natural[offset * natural_stride..][..dim]);
            }
        });
        let failed = tasks.into_iter().find_map(|task| task.result.err());
        failed.map_or(Ok(()), |(row, error)| {
            Err(FamilyError::ActiveConstraints { model: family.space().label(self.word(row)), error })
        })
    }

    /// Takes natural parameters of a row, of which there must be as many as the model has; `log |det ∂θ/∂v|`.
    pub(crate) fn take_natural<P: Problem>(
        &mut self,
        family: &Family<'_, P, E>,
        row: usize,
        natural: &[f64],
    ) -> Result<f64, usize> {
        let place = self.place(row);
        let coordinates = coordinates(family.constraints(), &self.frames, &self.batch, row);
        let dim = coordinates.natural_dim();
        if natural.len() != dim {
            return Err(dim);
        }
        Ok(coordinates.to_flow(natural, &mut self.theta[place]))
    }
}

/// The way of a row between its coordinates. A row that was left out has none, whatever frame its model has.
fn coordinates<'a, T: Real>(
    constraints: Option<&'a Constraints>,
    frames: &'a Frames,
    batch: &'a Batch<T>,
    row: usize,
) -> Coordinates<'a> {
    let active = batch.active(row);
    Coordinates { frame: frames.row(row).filter(|frame| frame.dim() == active.len()), constraints, active }
}

/// Numbers that are not finite are read all the same; anything else is an error.
fn found_or_not_finite(result: Result<(), FlowError>) -> Result<(), FlowError> {
    match result {
        Err(FlowError::NotFinite { .. }) => Ok(()),
        other => other,
    }
}

//! One batch on its way: models, reference variables, parameters, densities.

use std::collections::HashMap;
use std::f64::consts::TAU;

use super::{Contexts, Family, FamilyError};
use crate::engine::{Engine, Real};
use crate::flow::{Batch, FlowError, Passes, Workspace};
use crate::models::Draw;
use crate::problem::{BatchError, DensityBatch, Problem};

/// Rows per evaluation of the problem's density: a fixed number, so that results do not depend on threads.
const CHUNK: usize = 64;

/// Memory for batches of up to a number of rows, and what the last one brought.
///
/// Free coordinates stand left-aligned with stride `d_max`; a row owns the first `dims[row]` of them.
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
    /// Free parameters.
    pub(crate) theta: Vec<f64>,
    pub(crate) log_det: Vec<f64>,
    pub(crate) natural: Vec<f64>,
    pub(crate) natural_dims: Vec<usize>,
    /// `log η` with respect to free parameters, and its gradient.
    pub(crate) log_eta: Vec<f64>,
    pub(crate) gradient: Vec<f64>,
    natural_gradient: Vec<f64>,
    /// `log |det ∂natural/∂free|`.
    pub(crate) log_jacobian: Vec<f64>,
    mask: Vec<bool>,
    active: Vec<u32>,
    numbers: Vec<f64>,
    features: Vec<E::Real>,
    seen: HashMap<Box<[u16]>, u32>,
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

    /// Places of a row's free coordinates.
    pub(crate) fn place(&self, row: usize) -> std::ops::Range<usize> {
        row * self.stride..row * self.stride + self.dim(row)
    }

    /// Natural parameters of a row.
    pub(crate) fn natural(&self, row: usize) -> &[f64] {
        &self.natural[row * self.natural_stride..][..self.natural_dims[row]]
    }

    /// `log q(θ_m | m)` with respect to free coordinates.
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
        Ok(())
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

    /// `z = T_φ⁻¹(θ | m)` and `log q(θ | m)` at the free parameters `self.theta`.
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

    /// Natural parameters, `log η` and its gradient with respect to free coordinates.
    pub(crate) fn density<P: Problem>(&mut self, family: &Family<'_, P, E>) -> Result<(), FamilyError> {
        let rows = self.rows();
        self.find_natural(family)?;
        // A density that forgets a coordinate must not find what another row left there.
        self.natural_gradient.fill(0.0);
        let (width, stride) = (self.width, self.natural_stride);
        // A space without parameters still has rows.
        let step = CHUNK * stride.max(1);
        let mut tasks: Vec<(DensityBatch<'_>, Result<(), BatchError>)> = Vec::with_capacity(rows.div_ceil(CHUNK));
        let mut gradients = self.natural_gradient.chunks_mut(step);
        let mut densities = self.log_eta[..rows].chunks_mut(CHUNK);
        for first in (0..rows).step_by(CHUNK) {
            let last = rows.min(first + CHUNK);
            let batch = DensityBatch {
                words: &self.words[first * width..last * width],
                width,
                theta: &self.natural[first * stride..last * stride],
                stride,
                dims: &self.natural_dims[first..last],
                log_density: densities.next().unwrap_or_default(),
                gradient: gradients.next().unwrap_or_default(),
            };
            tasks.push((batch, Ok(())));
        }
        family.engine.for_each_lane(&mut tasks, |_, (batch, result)| *result = family.problem.log_density_batch(batch));
        let results: Vec<_> = tasks.into_iter().map(|(_, result)| result).collect();
        for (chunk, result) in results.into_iter().enumerate() {
            if let Err(BatchError { row, error }) = result {
                let model = family.space().label(self.word(chunk * CHUNK + row));
                return Err(FamilyError::Density { model, reason: error.to_string() });
            }
        }
        self.pull_back(family);
        Ok(())
    }

    /// Natural parameters of all rows.
    pub(crate) fn find_natural<P: Problem>(&mut self, family: &Family<'_, P, E>) -> Result<(), FamilyError> {
        for row in 0..self.rows() {
            let (place, active) = (self.place(row), self.batch.active(row));
            let natural = &mut self.natural[row * self.natural_stride..][..self.natural_stride];
            match family.constraints() {
                None => {
                    natural[..active.len()].copy_from_slice(&self.theta[place]);
                    self.natural_dims[row] = active.len();
                    self.log_jacobian[row] = 0.0;
                }
                Some(constraints) => {
                    constraints.check_active(active).map_err(|error| FamilyError::ActiveConstraints {
                        model: family.space().label(&self.words[row * self.width..][..self.width]),
                        error,
                    })?;
                    let dim = constraints.natural_dim(active);
                    self.natural_dims[row] = dim;
                    self.log_jacobian[row] = constraints.to_natural(active, &self.theta[place], &mut natural[..dim]);
                }
            }
        }
        Ok(())
    }

    /// From natural parameters to free ones: density and gradient.
    fn pull_back<P: Problem>(&mut self, family: &Family<'_, P, E>) {
        for row in 0..self.rows() {
            let (place, active) = (self.place(row), self.batch.active(row));
            let natural = &self.natural_gradient[row * self.natural_stride..][..self.natural_dims[row]];
            let gradient = &mut self.gradient[place.clone()];
            match family.constraints() {
                None => gradient.copy_from_slice(natural),
                Some(constraints) => {
                    constraints.pull_back(active, &self.theta[place], natural, gradient);
                    self.log_eta[row] += self.log_jacobian[row];
                }
            }
        }
    }
}

/// Numbers that are not finite are read all the same; anything else is an error.
fn found_or_not_finite(result: Result<(), FlowError>) -> Result<(), FlowError> {
    match result {
        Err(FlowError::NotFinite { .. }) => Ok(()),
        other => other,
    }
}

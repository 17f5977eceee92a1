//! One batch on its way: models, reference variables, parameters, densities.

use std::collections::HashMap;
use std::f64::consts::TAU;

use super::coordinates::{Coordinates, Frames};
use super::pieces::Pieces;
use super::{Contexts, Family, FamilyError};
use crate::engine::{Engine, Real};
use crate::flow::{Batch, FlowError, Passes, Workspace};
use crate::models::Draw;
use crate::problem::{BatchError, ConstraintError, Constraints, DensityBatch, DensityError, Factors, Problem};
use crate::space::ModelSpace;

/// Rows per evaluation of the problem's density: a fixed number, so that results do not depend on threads.
const CHUNK: usize = 64;

/// Memory for batches of up to a number of rows, and what the last one brought.
///
/// Coordinates of a row start at `row · d_max`; [`Pass::places`] says where they stand.
pub(crate) struct Pass<E: Engine> {
    capacity: usize,
    width: usize,
    stride: usize,
    natural_stride: usize,
    pub(crate) words: Vec<u16>,
    pub(crate) log_q_model: Vec<f64>,
    batch: Batch<E::Real>,
    pieces: Pieces,
    work: Workspace<E>,
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
    piece_log_jacobian: Vec<f64>,
    /// `log η_b` of each piece with respect to the flow's coordinates, where the density has factors.
    piece_log_eta: Vec<f64>,
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
        let pieces = Pieces::new(space, family.problem.factors().is_some(), family.is_split(), capacity);
        let flow_rows = capacity * pieces.flow_rows();
        let features = family.feature_count();
        Self {
            capacity,
            width,
            stride,
            natural_stride,
            words: vec![0; capacity * width],
            log_q_model: vec![0.0; capacity],
            batch: Batch::with_capacity(flow_rows, family.flow.shape()),
            work: family.flow.workspace(family.engine, flow_rows, passes),
            z: vec![E::Real::ZERO; numbers],
            log_reference: vec![0.0; capacity],
            theta_engine: vec![E::Real::ZERO; numbers],
            log_det_engine: vec![E::Real::ZERO; flow_rows],
            theta: vec![0.0; numbers],
            free: vec![0.0; numbers],
            log_det: vec![0.0; capacity],
            natural: vec![0.0; naturals],
            natural_dims: vec![0; capacity],
            log_eta: vec![0.0; capacity],
            gradient: vec![0.0; numbers],
            natural_gradient: vec![0.0; naturals],
            log_jacobian: vec![0.0; capacity],
            piece_log_jacobian: vec![0.0; capacity * pieces.count],
            piece_log_eta: vec![0.0; capacity * pieces.count],
            pieces,
            active: Vec::with_capacity(stride),
            numbers: vec![0.0; features],
            features: vec![E::Real::ZERO; features],
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
        self.active(row).len()
    }

    /// Coordinates of θ that a row uses.
    pub(crate) fn active(&self, row: usize) -> &[u32] {
        self.pieces.row_active(row)
    }

    /// Where a row's coordinates stand in `z`, `theta` and `gradient`, in their order.
    pub(crate) fn places(&self, row: usize) -> impl Iterator<Item = usize> + '_ {
        self.pieces.places(row)
    }

    /// Natural parameters of a row.
    pub(crate) fn natural(&self, row: usize) -> &[f64] {
        &self.natural[row * self.natural_stride..][..self.natural_dims[row]]
    }

    /// `log q(θ_m | m)` with respect to the flow's coordinates.
    pub(crate) fn log_q_theta(&self, row: usize) -> f64 {
        self.log_reference[row] - self.log_det[row]
    }

    /// Keys of blocks and `log h_b = log q(θ_b | k_b) − log η_b`, one after another for each row, where every block has a flow
    /// of its own.
    pub(crate) fn block_scores(&self, keys: &mut Vec<u64>, log_h: &mut Vec<f64>) {
        keys.clear();
        log_h.clear();
        if self.pieces.split {
            keys.extend_from_slice(self.pieces.keys());
            let pieces = 0..keys.len();
            log_h.extend(pieces.map(|piece| {
                let log_q = log_reference(&self.z[self.pieces.place(piece)]) - self.log_det_engine[piece].to_f64();
                log_q - self.piece_log_eta[piece]
            }));
        }
    }

    /// Tells the flow the models of the rows; rows that are `left_out` get no coordinates at all.
    pub(crate) fn plan<P: Problem>(
        &mut self,
        family: &Family<'_, P, E>,
        left_out: impl Fn(usize) -> bool,
    ) -> Result<(), FamilyError> {
        let space = family.space();
        self.batch.clear();
        self.pieces.clear();
        self.seen.clear();
        for row in 0..self.rows() {
            let word = &self.words[row * self.width..][..self.width];
            self.pieces.push(space, word, left_out(row));
            if self.pieces.split {
                self.plan_blocks(space, row);
                continue;
            }
            let word = &self.words[row * self.width..][..self.width];
            let context = match &family.contexts {
                Contexts::Lookup(catalogue) => {
                    let index = catalogue.index(word);
                    index.ok_or_else(|| FamilyError::Point { point: row, reason: "no such model".into() })? as u32
                }
                Contexts::Features(_) => match self.seen.get(word) {
                    Some(&context) => context,
                    None => {
                        space.features(word, &mut self.numbers);
                        let context = push_features(&mut self.batch, &self.numbers, &mut self.features);
                        self.seen.insert(word.into(), context);
                        context
                    }
                },
            };
            self.batch.push(self.pieces.row_active(row), context);
        }
        self.work.set_batch(family.engine, &self.batch)?;
        self.frames.find(family, &self.words, &self.pieces)
    }

    /// A row of the flow for each block of a row.
    fn plan_blocks(&mut self, space: &dyn ModelSpace, row: usize) {
        let Some(blocks) = space.blocks() else { return };
        for piece in self.pieces.of_row(row) {
            let (block, key) = (self.pieces.block(piece), self.pieces.keys()[piece]);
            let part = block_part(block, key);
            let context = match self.seen.get(&part[..]) {
                Some(&context) => context,
                None => {
                    blocks.block_features(block, key, &mut self.numbers);
                    let context = push_features(&mut self.batch, &self.numbers, &mut self.features);
                    self.seen.insert(part.into(), context);
                    context
                }
            };
            let start = (block * blocks.width()) as u32;
            self.active.clear();
            self.active.extend(self.pieces.active(piece).iter().map(|coordinate| coordinate - start));
            self.batch.push(&self.active, context);
        }
    }

    /// Draws z for every row.
    pub(crate) fn draw_z(&mut self, draw: Draw) {
        for row in 0..self.rows() {
            let mut stream = draw.row(row);
            for place in self.pieces.places(row) {
                self.z[place] = E::Real::from_f64(stream.normal());
            }
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
            self.pieces.places(row).for_each(|place| self.theta[place] = self.theta_engine[place].to_f64());
        }
        Ok(())
    }

    /// `z = T_φ⁻¹(θ | m)` and `log q(θ | m)` at the flow's coordinates `self.theta`.
    pub(crate) fn inverse<P: Problem>(&mut self, family: &Family<'_, P, E>) -> Result<(), FamilyError> {
        for row in 0..self.rows() {
            let places = self.pieces.places(row);
            places.for_each(|place| self.theta_engine[place] = E::Real::from_f64(self.theta[place]));
        }
        self.work.write_theta(family.engine, &self.theta_engine)?;
        family.flow.inverse(family.engine, &family.parameters, &mut self.work)?;
        found_or_not_finite(self.work.read_z(family.engine, &mut self.z, &mut self.log_det_engine))?;
        self.take_over();
        Ok(())
    }

    /// Log-determinants and reference densities of all rows in double precision.
    fn take_over(&mut self) {
        let flow_rows = self.pieces.flow_rows();
        for row in 0..self.rows() {
            let of_pieces = self.pieces.of_row(row).map(|piece| log_reference(&self.z[self.pieces.place(piece)]));
            self.log_reference[row] = of_pieces.sum();
            let log_dets = &self.log_det_engine[row * flow_rows..(row + 1) * flow_rows];
            self.log_det[row] = log_dets.iter().map(|log_det| log_det.to_f64()).sum();
        }
    }

    /// The score `∂ log q(θ | m)/∂θ` at the last forward pass, written where the coordinates stand.
    pub(crate) fn score<P: Problem>(
        &mut self,
        family: &Family<'_, P, E>,
        score: &mut [E::Real],
    ) -> Result<(), FamilyError> {
        Ok(family.flow.score(family.engine, &family.parameters, &mut self.work, score)?)
    }

    /// The gradient with respect to φ of a function whose derivatives with respect to θ, standing where the coordinates do,
    /// and to the log-determinants of rows are given. Uses up the forward pass.
    pub(crate) fn backward<P: Problem>(
        &mut self,
        family: &Family<'_, P, E>,
        theta: &[E::Real],
        log_det: impl Fn(usize) -> E::Real,
        gradient: &mut E::Buffer,
    ) -> Result<(), FamilyError> {
        let flow_rows = self.pieces.flow_rows();
        let rows = self.rows() * flow_rows;
        self.log_det_engine[..rows].iter_mut().enumerate().for_each(|(row, to)| *to = log_det(row / flow_rows));
        self.work.write_gradients(family.engine, theta, &self.log_det_engine)?;
        Ok(family.flow.backward(family.engine, &family.parameters, &mut self.work, gradient)?)
    }

    /// The derivative with respect to z after [`Pass::backward`], written where the coordinates stand.
    pub(crate) fn z_gradient<P: Problem>(
        &self,
        family: &Family<'_, P, E>,
        z: &mut [E::Real],
    ) -> Result<(), FamilyError> {
        Ok(self.work.read_z_gradient(family.engine, z)?)
    }

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
            let (natural, free) = (natural_gradients.next().unwrap_or_default(), gradients.next().unwrap_or_default());
            (densities, natural, free, Ok(()))
        });
        let mut tasks: Vec<(&mut [f64], &mut [f64], &mut [f64], Result<(), DensityError>)> = tasks.collect();
        let constraints = family.constraints();
        family.engine.for_each_lane(&mut tasks, |row, (densities, natural_gradient, gradient, result)| {
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
        });
        let failed = tasks
            .into_iter()
            .map(|(.., result)| result)
            .enumerate()
            .find_map(|(row, result)| Some((row, result.err()?)));
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

/// What tells a block under a key from others, as symbols like those of words.
pub(super) fn block_part(block: usize, key: u64) -> [u16; 5] {
    let symbol = |shift: u32| (key >> shift) as u16;
    [block as u16, symbol(48), symbol(32), symbol(16), symbol(0)]
}

/// Adds a context to a batch.
fn push_features<T: Real>(batch: &mut Batch<T>, numbers: &[f64], features: &mut [T]) -> u32 {
    features.iter_mut().zip(numbers).for_each(|(to, &number)| *to = T::from_f64(number));
    batch.push_features(features)
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

/// Numbers that are not finite are read all the same; anything else is an error.
fn found_or_not_finite(result: Result<(), FlowError>) -> Result<(), FlowError> {
    match result {
        Err(FlowError::NotFinite { .. }) => Ok(()),
        other => other,
    }
}

//! One batch on its way: models, reference variables, parameters, densities.

mod density;

use std::collections::HashMap;
use std::f64::consts::TAU;

use super::coordinates::Preconditioners;
use super::row_blocks::RowBlocks;
use super::{Contexts, Family, FamilyError};
use crate::device::Device;
use crate::flow::{Batch, FlowError, Passes, Workspace};
use crate::models::Draw;
use crate::problem::Problem;
use crate::simd::Real;

/// Memory for batches of up to a number of rows, and what the last one brought.
///
/// Coordinates of a row start at `row · d_max`; [`Pass::places`] says where they stand.
pub(crate) struct Pass<D: Device> {
    capacity: usize,
    width: usize,
    stride: usize,
    natural_stride: usize,
    pub(crate) words: Vec<u16>,
    pub(crate) log_q_model: Vec<f64>,
    batch: Batch<D::Real>,
    row_blocks: RowBlocks,
    work: Workspace<D>,
    pub(crate) z: Vec<D::Real>,
    /// `log ν(z)`.
    pub(crate) log_reference: Vec<f64>,
    theta_device: Vec<D::Real>,
    log_det_device: Vec<D::Real>,
    /// What the flow makes: v, the parameters as seen from the preconditioners of their models.
    pub(crate) theta: Vec<f64>,
    /// Free parameters.
    free: Vec<f64>,
    pub(crate) log_det: Vec<f64>,
    pub(crate) natural: Vec<f64>,
    pub(crate) natural_dims: Vec<usize>,
    /// `log η`, times the weight of its arrangement, with respect to the flow's coordinates, and its gradient.
    pub(crate) log_eta: Vec<f64>,
    /// The logarithm of that weight, where blocks can be rearranged: what users do not see.
    pub(crate) log_arrangement: Vec<f64>,
    pub(crate) gradient: Vec<f64>,
    natural_gradient: Vec<f64>,
    /// `log |det ∂θ/∂v|`.
    pub(crate) log_jacobian: Vec<f64>,
    block_log_jacobian: Vec<f64>,
    /// `log η_b` of each block with respect to the flow's coordinates, where the problem has blocks.
    block_log_eta: Vec<f64>,
    /// Natural parameters of each block.
    block_dims: Vec<usize>,
    active: Vec<u32>,
    numbers: Vec<f64>,
    features: Vec<D::Real>,
    seen: HashMap<Box<[u16]>, u32>,
    preconditioners: Preconditioners,
}

/// Log density of a standard normal vector.
pub(crate) fn log_reference<T: Real>(z: &[T]) -> f64 {
    let half = 0.5 * TAU.ln();
    z.iter().map(|z| -0.5 * z.to_f64() * z.to_f64() - half).sum()
}

impl<D: Device> Pass<D> {
    pub(super) fn new(family: &Family<D>, capacity: usize, passes: Passes) -> Result<Self, FamilyError> {
        let (space, natural_stride) = (family.space(), family.natural_len());
        let (width, stride) = (space.arities().len(), space.max_dim());
        let (numbers, naturals) = (capacity * stride, capacity * natural_stride);
        let row_blocks = RowBlocks::new(&*family.problem, family.is_blockwise(), capacity);
        let flow_rows = capacity * row_blocks.flow_rows();
        let features = family.feature_count();
        Ok(Self {
            capacity,
            width,
            stride,
            natural_stride,
            words: vec![0; capacity * width],
            log_q_model: vec![0.0; capacity],
            batch: Batch::with_capacity(flow_rows, family.flow.shape()),
            work: family.flow.workspace(&family.device, flow_rows, passes)?,
            z: vec![D::Real::ZERO; numbers],
            log_reference: vec![0.0; capacity],
            theta_device: vec![D::Real::ZERO; numbers],
            log_det_device: vec![D::Real::ZERO; flow_rows],
            theta: vec![0.0; numbers],
            free: vec![0.0; numbers],
            log_det: vec![0.0; capacity],
            natural: vec![0.0; naturals],
            natural_dims: vec![0; capacity],
            log_eta: vec![0.0; capacity],
            log_arrangement: vec![0.0; capacity],
            gradient: vec![0.0; numbers],
            natural_gradient: vec![0.0; naturals],
            log_jacobian: vec![0.0; capacity],
            block_log_jacobian: vec![0.0; capacity * row_blocks.count],
            block_log_eta: vec![0.0; capacity * row_blocks.count],
            block_dims: vec![0; capacity * row_blocks.count],
            row_blocks,
            active: Vec::with_capacity(stride),
            numbers: vec![0.0; features],
            features: vec![D::Real::ZERO; features],
            seen: HashMap::new(),
            preconditioners: Preconditioners::default(),
        })
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
        self.row_blocks.row_active(row)
    }

    /// Where a row's coordinates stand in `z`, `theta` and `gradient`, in their order.
    pub(crate) fn places(&self, row: usize) -> impl Iterator<Item = usize> + '_ {
        self.row_blocks.places(row)
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
        if self.row_blocks.blockwise {
            keys.extend_from_slice(self.row_blocks.keys());
            let row_blocks = 0..keys.len();
            log_h.extend(row_blocks.map(|row_block| {
                let log_q =
                    log_reference(&self.z[self.row_blocks.place(row_block)]) - self.log_det_device[row_block].to_f64();
                log_q - self.block_log_eta[row_block]
            }));
        }
    }

    /// Tells the flow the models of the rows; rows that are `left_out` get no coordinates at all.
    pub(crate) fn plan(&mut self, family: &Family<D>, left_out: impl Fn(usize) -> bool) -> Result<(), FamilyError> {
        let space = family.space();
        self.batch.clear();
        self.row_blocks.clear();
        self.seen.clear();
        for row in 0..self.rows() {
            let word = &self.words[row * self.width..][..self.width];
            self.row_blocks.push(&*family.problem, word, left_out(row));
            if self.row_blocks.blockwise {
                self.plan_blocks(&*family.problem, row);
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
            self.batch.push(self.row_blocks.row_active(row), context);
        }
        self.work.set_batch(&family.device, &self.batch)?;
        self.preconditioners.find(family, &self.words, &self.row_blocks)
    }

    /// A row of the flow for each block of a row.
    fn plan_blocks(&mut self, problem: &dyn Problem, row: usize) {
        let Some(blocks) = problem.blocks() else { return };
        for row_block in self.row_blocks.of_row(row) {
            let (block, key) = (self.row_blocks.block(row_block), self.row_blocks.keys()[row_block]);
            let part = block_symbols(block, key);
            let context = match self.seen.get(&part[..]) {
                Some(&context) => context,
                None => {
                    blocks.features(block, key, &mut self.numbers);
                    let context = push_features(&mut self.batch, &self.numbers, &mut self.features);
                    self.seen.insert(part.into(), context);
                    context
                }
            };
            let start = (block * blocks.width()) as u32;
            self.active.clear();
            self.active.extend(self.row_blocks.active(row_block).iter().map(|coordinate| coordinate - start));
            self.batch.push(&self.active, context);
        }
    }

    /// Draws z for every row.
    pub(crate) fn draw_z(&mut self, draw: Draw) {
        for row in 0..self.rows() {
            let mut stream = draw.row(row);
            for place in self.row_blocks.places(row) {
                self.z[place] = D::Real::from_f64(stream.normal());
            }
        }
    }

    /// `θ = T_φ(z | m)` and `log q(θ | m)`. What is not finite is left for the caller to find.
    pub(crate) fn forward(&mut self, family: &Family<D>) -> Result<(), FamilyError> {
        self.work.write_z(&family.device, &self.z)?;
        family.flow.forward(&family.device, &family.parameters, &mut self.work)?;
        let read = self.work.read_theta(&family.device, &mut self.theta_device, &mut self.log_det_device);
        found_or_not_finite(read)?;
        self.take_over();
        for row in 0..self.rows() {
            self.row_blocks.places(row).for_each(|place| self.theta[place] = self.theta_device[place].to_f64());
        }
        Ok(())
    }

    /// `z = T_φ⁻¹(θ | m)` and `log q(θ | m)` at the flow's coordinates `self.theta`.
    pub(crate) fn inverse(&mut self, family: &Family<D>) -> Result<(), FamilyError> {
        for row in 0..self.rows() {
            let places = self.row_blocks.places(row);
            places.for_each(|place| self.theta_device[place] = D::Real::from_f64(self.theta[place]));
        }
        self.work.write_theta(&family.device, &self.theta_device)?;
        family.flow.inverse(&family.device, &family.parameters, &mut self.work)?;
        found_or_not_finite(self.work.read_z(&family.device, &mut self.z, &mut self.log_det_device))?;
        self.take_over();
        Ok(())
    }

    /// Log-determinants and reference densities of all rows in double precision.
    fn take_over(&mut self) {
        let flow_rows = self.row_blocks.flow_rows();
        for row in 0..self.rows() {
            let of_blocks =
                self.row_blocks.of_row(row).map(|row_block| log_reference(&self.z[self.row_blocks.place(row_block)]));
            self.log_reference[row] = of_blocks.sum();
            let log_dets = &self.log_det_device[row * flow_rows..(row + 1) * flow_rows];
            self.log_det[row] = log_dets.iter().map(|log_det| log_det.to_f64()).sum();
        }
    }

    /// The score `∂ log q(θ | m)/∂θ` at the last forward pass, written where the coordinates stand.
    pub(crate) fn score(&mut self, family: &Family<D>, score: &mut [D::Real]) -> Result<(), FamilyError> {
        Ok(family.flow.score(&family.device, &family.parameters, &mut self.work, score)?)
    }

    /// The gradient with respect to φ of a function whose derivatives with respect to θ, standing where the coordinates do,
    /// and to the log-determinants of rows are given. Uses up the forward pass.
    pub(crate) fn backward(
        &mut self,
        family: &Family<D>,
        theta: &[D::Real],
        log_det: impl Fn(usize) -> D::Real,
        gradient: &mut D::Buffer,
    ) -> Result<(), FamilyError> {
        let flow_rows = self.row_blocks.flow_rows();
        let rows = self.rows() * flow_rows;
        self.log_det_device[..rows].iter_mut().enumerate().for_each(|(row, to)| *to = log_det(row / flow_rows));
        self.work.write_gradients(&family.device, theta, &self.log_det_device)?;
        Ok(family.flow.backward(&family.device, &family.parameters, &mut self.work, gradient)?)
    }

    /// The derivative with respect to z after [`Pass::backward`], written where the coordinates stand.
    pub(crate) fn z_gradient(&self, family: &Family<D>, z: &mut [D::Real]) -> Result<(), FamilyError> {
        Ok(self.work.read_z_gradient(&family.device, z)?)
    }
}

/// What tells a block under a key from others, as symbols like those of words.
pub(super) fn block_symbols(block: usize, key: u64) -> [u16; 5] {
    let symbol = |shift: u32| (key >> shift) as u16;
    [block as u16, symbol(48), symbol(32), symbol(16), symbol(0)]
}

/// Adds a context to a batch.
fn push_features<T: Real>(batch: &mut Batch<T>, numbers: &[f64], features: &mut [T]) -> u32 {
    features.iter_mut().zip(numbers).for_each(|(to, &number)| *to = T::from_f64(number));
    batch.push_features(features)
}

/// Numbers that are not finite are read all the same; anything else is an error.
fn found_or_not_finite(result: Result<(), FlowError>) -> Result<(), FlowError> {
    match result {
        Err(FlowError::NotFinite { .. }) => Ok(()),
        other => other,
    }
}

//! All memory of a flow's passes, planned once.

use std::cmp::Reverse;

use super::error::FlowError;
use super::layer::Layer;
use super::shard::Shard;
use super::{Batch, ContextShape, Flow, FlowShape};
use crate::device::{Device, DeviceError, Placement, RowPlan, ShortSlice};
use crate::simd::Real;

/// What a workspace is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// Either direction, without gradients.
    Evaluation,
    /// The sampling direction with gradients.
    Training,
    /// As `Training`, and scores `∂ log q/∂θ` ([`Flow::score`]).
    TrainingWithScores,
}

/// Memory for passes over batches of up to a fixed number of rows. Passes allocate nothing.
///
/// Rows are sorted by dimension and split into shards, which know nothing of one another. How many shards there are, and
/// with it the order in which gradients are summed, follows from the number of rows there is room for.
pub struct Workspace<D: Device> {
    shape: FlowShape,
    capacity: usize,
    /// Tells the flow it was made for from others.
    fingerprint: u64,
    /// Whether the shards hold a forward pass that no backward pass has used up.
    forward_done: bool,
    /// Whether anything is computed per distinct context.
    per_context: bool,
    /// Whether anything is computed by saturated coordinate.
    per_coordinate: bool,
    batch: Batch<D::Real>,
    order: Vec<u32>,
    shard_order: Vec<u32>,
    /// Number of each row's context among the distinct ones of its shard.
    slots: Vec<u32>,
    /// Number of each context among the distinct ones of the current shard.
    slot_of: Vec<u32>,
    used: Vec<u32>,
    /// The largest dimension in the first group of rows that uses each context in the current shard.
    context_dims: Vec<u32>,
    identity: Vec<u32>,
    shards: Vec<Shard<D>>,
}

impl<D: Device> std::fmt::Debug for Workspace<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("capacity", &self.capacity).field("shards", &self.shards.len()).finish()
    }
}

impl<D: Device> Workspace<D> {
    pub(super) fn new(flow: &Flow, device: &D, capacity: usize, passes: Passes) -> Result<Self, DeviceError> {
        let shard_rows = match passes {
            Passes::Evaluation => device.independent_shard_rows(capacity),
            Passes::Training | Passes::TrainingWithScores => device.shard_rows(capacity, flow.parameter_count()),
        };
        // Shards get whole groups of rows, so they must have room for them.
        let shard_rows = shard_rows.next_multiple_of(device.row_grain()).clamp(1, capacity.max(1));
        let shards = capacity.div_ceil(shard_rows).max(1);
        let contexts = match flow.shape.context {
            ContextShape::Symbols(count) => count.max(capacity),
            ContextShape::Features(_) => capacity,
        };
        let diagonal = flow.layers.iter().any(|layer| matches!(layer, Layer::Diagonal { .. }));
        let shard = |shard| Shard::new(flow, device, shard_rows, passes, shard == 0);
        Ok(Self {
            shape: flow.shape,
            capacity,
            fingerprint: flow.fingerprint,
            forward_done: false,
            per_context: diagonal || flow.encoder.is_some() || matches!(flow.shape.context, ContextShape::Features(_)),
            per_coordinate: diagonal,
            batch: Batch::with_capacity(capacity, flow.shape),
            order: Vec::with_capacity(capacity),
            shard_order: Vec::with_capacity(shard_rows),
            slots: vec![0; capacity],
            slot_of: vec![u32::MAX; contexts],
            used: Vec::with_capacity(capacity),
            context_dims: vec![0; contexts],
            identity: (0..contexts as u32).collect(),
            shards: (0..shards).map(shard).collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Copies a batch in, sorts its rows by dimension and shares them out.
    pub fn set_batch(&mut self, device: &D, batch: &Batch<D::Real>) -> Result<(), FlowError> {
        batch.check(self.shape, self.capacity)?;
        self.forward_done = false;
        self.batch.clone_from_within_capacity(batch);
        self.sort_rows();
        self.make_room_for_contexts();
        let mut shards = std::mem::take(&mut self.shards);
        let (grain, turns) = (device.row_grain(), shards.len());
        let result = shards.iter_mut().enumerate().try_for_each(|(turn, shard)| {
            // Shards take turns at groups of rows, so that each gets its share of large and small models.
            self.shard_order.clear();
            let groups = self.order.chunks(grain).skip(turn).step_by(turns);
            groups.for_each(|group| self.shard_order.extend_from_slice(group));
            self.number_contexts(grain);
            self.set_shard(device, shard)
        });
        self.shards = shards;
        Ok(result?)
    }

    /// Largest dimension first, and rows of one model side by side: shards then share few contexts.
    fn sort_rows(&mut self) {
        let batch = &self.batch;
        self.order.clear();
        self.order.extend(0..batch.rows() as u32);
        let key = |row: u32| (Reverse(batch.dims[row as usize]), batch.contexts[row as usize], row);
        self.order.sort_unstable_by_key(|&row| key(row));
    }

    /// A batch may bring contexts that no row uses, and so more of them than there is room for rows.
    fn make_room_for_contexts(&mut self) {
        let contexts = self.batch.feature_rows().max(self.slot_of.len());
        self.context_dims.resize(contexts, 0);
        self.slot_of.resize(contexts, u32::MAX);
        self.identity.extend(self.identity.len() as u32..contexts as u32);
    }

    /// Numbers the distinct contexts of the shard's rows in the order in which they come.
    fn number_contexts(&mut self, grain: usize) {
        self.used.clear();
        if !self.per_context {
            return;
        }
        for (place, &row) in self.shard_order.iter().enumerate() {
            let context = self.batch.contexts[row as usize];
            let slot = &mut self.slot_of[context as usize];
            if *slot == u32::MAX {
                // Rows are computed in groups, as far as the largest of each needs, and come largest first: the first
                // group that uses a context needs most of it.
                let largest = self.shard_order[place / grain * grain];
                *slot = self.used.len() as u32;
                self.context_dims[context as usize] = self.batch.dims[largest as usize];
                self.used.push(context);
            }
            self.slots[row as usize] = *slot;
        }
        for &context in &self.used {
            self.slot_of[context as usize] = u32::MAX;
        }
    }

    /// Tells a shard its rows and their contexts.
    fn set_shard(&self, device: &D, shard: &mut Shard<D>) -> Result<(), DeviceError> {
        let Self { batch, shard_order, .. } = self;
        shard.max_dim = shard_order.first().map_or(0, |&row| batch.dims[row as usize] as usize);
        let rows = RowPlan {
            order: shard_order,
            dims: &batch.dims,
            contexts: &batch.contexts,
            slots: &self.slots,
            active: &batch.active,
            starts: &batch.starts,
            needs_active: self.per_coordinate,
        };
        device.set_rows(&mut shard.rows, rows)?;
        let contexts = RowPlan {
            order: &self.used,
            dims: &self.context_dims,
            contexts: &self.identity,
            slots: &self.identity,
            active: &[],
            starts: &[],
            needs_active: false,
        };
        device.set_rows(&mut shard.contexts, contexts)?;
        if let ContextShape::Features(stride) = self.shape.context {
            device.import(
                &shard.contexts,
                &batch.features,
                Placement::Whole { stride, first: 0 },
                &mut shard.features,
            )?;
        }
        Ok(())
    }

    fn left_aligned(&self) -> Placement<'static> {
        Placement::LeftAligned { stride: self.shape.max_dim }
    }

    fn saturated(&self) -> Placement<'_> {
        Placement::Saturated { stride: self.shape.max_dim, active: &self.batch.active, starts: &self.batch.starts }
    }

    /// A slice of coordinates must hold at least `d_max` numbers for each row.
    fn check_coordinates(&self, what: &'static str, found: usize) -> Result<(), ShortSlice> {
        ShortSlice::check(what, found, self.batch.rows() * self.shape.max_dim)
    }

    /// Gradients live in workspaces for training only.
    fn check_training(&self) -> Result<(), FlowError> {
        let training = self.shards.iter().all(|shard| shard.training.is_some());
        if training { Ok(()) } else { Err(FlowError::NoForwardPass) }
    }

    fn check_rows(&self, what: &'static str, found: usize) -> Result<(), ShortSlice> {
        ShortSlice::check(what, found, self.batch.rows())
    }

    /// Sets z: row-major with stride `d_max`, active coordinates first.
    pub fn write_z(&mut self, device: &D, z: &[D::Real]) -> Result<(), FlowError> {
        self.check_coordinates("z", z.len())?;
        self.forward_done = false;
        let at = self.left_aligned();
        device
            .workers()
            .try_for_each(&mut self.shards, |_, shard| device.import(&shard.rows, z, at, &mut shard.x[0]))?;
        Ok(())
    }

    /// Sets z from saturated rows: `d_max` numbers each, active or not, of which the active ones are taken (`P_m`).
    pub fn write_saturated_z(&mut self, device: &D, z: &[D::Real]) -> Result<(), FlowError> {
        self.check_coordinates("z", z.len())?;
        self.forward_done = false;
        let mut shards = std::mem::take(&mut self.shards);
        let at = self.saturated();
        let imported =
            device.workers().try_for_each(&mut shards, |_, shard| device.import(&shard.rows, z, at, &mut shard.x[0]));
        self.shards = shards;
        Ok(imported?)
    }

    /// Sets θ, laid out as in [`Workspace::write_z`].
    pub fn write_theta(&mut self, device: &D, theta: &[D::Real]) -> Result<(), FlowError> {
        self.check_coordinates("theta", theta.len())?;
        let at = self.left_aligned();
        device.workers().try_for_each(&mut self.shards, |_, shard| {
            let last = shard.x.len() - 1;
            device.import(&shard.rows, theta, at, &mut shard.x[last])
        })?;
        Ok(())
    }

    /// Reads θ, laid out as in [`Workspace::write_z`], and the log-determinant of each row. Numbers beyond a row's
    /// dimension are left alone. Everything is read even when the error says that something is not finite.
    pub fn read_theta(&self, device: &D, theta: &mut [D::Real], log_det: &mut [D::Real]) -> Result<(), FlowError> {
        self.read(device, |shard| shard.x.last(), self.left_aligned(), theta, log_det)?;
        self.finite(theta, log_det, |_, i| i)
    }

    /// Reads saturated rows `(θ_m, u)`: only active coordinates are written (`P_m⁻¹`), so that a buffer that holds the
    /// saturated z keeps its inactive coordinates, bit for bit (Lemma 2.1).
    pub fn read_saturated_theta(
        &self,
        device: &D,
        theta: &mut [D::Real],
        log_det: &mut [D::Real],
    ) -> Result<(), FlowError> {
        self.read(device, |shard| shard.x.last(), self.saturated(), theta, log_det)?;
        self.finite(theta, log_det, |row, i| self.batch.active(row)[i] as usize)
    }

    /// Reads z, laid out as in [`Workspace::write_z`], and the log-determinant of each row.
    pub fn read_z(&self, device: &D, z: &mut [D::Real], log_det: &mut [D::Real]) -> Result<(), FlowError> {
        self.read(device, |shard| shard.x.first(), self.left_aligned(), z, log_det)?;
        self.finite(z, log_det, |_, i| i)
    }

    fn read(
        &self,
        device: &D,
        which: impl Fn(&Shard<D>) -> Option<&D::Matrix>,
        at: Placement<'_>,
        to: &mut [D::Real],
        log_det: &mut [D::Real],
    ) -> Result<(), FlowError> {
        self.check_coordinates("coordinates", to.len())?;
        self.check_rows("log_det", log_det.len())?;
        for shard in &self.shards {
            if let Some(matrix) = which(shard) {
                device.export(&shard.rows, matrix, at, to)?;
            }
            device.export(&shard.rows, &shard.log_det, Placement::Whole { stride: 1, first: 0 }, log_det)?;
        }
        Ok(())
    }

    /// Looks for numbers that are not finite; `place` says where in its row an active coordinate stands.
    fn finite(
        &self,
        values: &[D::Real],
        log_det: &[D::Real],
        place: impl Fn(usize, usize) -> usize,
    ) -> Result<(), FlowError> {
        for (row, &dim) in self.batch.dims.iter().enumerate() {
            let values = &values[row * self.shape.max_dim..][..self.shape.max_dim];
            let bad = (0..dim as usize).find(|&i| !values[place(row, i)].is_finite());
            if bad.is_some() || !log_det[row].is_finite() {
                return Err(FlowError::NotFinite { row, coordinate: bad });
            }
        }
        Ok(())
    }

    /// Sets the derivatives of a function with respect to θ (laid out as in [`Workspace::write_z`]) and log-determinants.
    pub fn write_gradients(&mut self, device: &D, theta: &[D::Real], log_det: &[D::Real]) -> Result<(), FlowError> {
        self.check_training()?;
        self.check_coordinates("theta", theta.len())?;
        self.check_rows("log_det", log_det.len())?;
        let at = self.left_aligned();
        device.workers().try_for_each(&mut self.shards, |_, shard| {
            if let Some(training) = &mut shard.training {
                device.import(&shard.rows, theta, at, &mut training.x)?;
                device.import(&shard.rows, log_det, Placement::Whole { stride: 1, first: 0 }, &mut training.log_det)?;
            }
            Ok::<_, DeviceError>(())
        })?;
        Ok(())
    }

    /// Reads the derivatives with respect to z after a backward pass.
    pub fn read_z_gradient(&self, device: &D, z: &mut [D::Real]) -> Result<(), FlowError> {
        self.check_training()?;
        self.check_coordinates("z", z.len())?;
        for shard in &self.shards {
            if let Some(training) = &shard.training {
                device.export(&shard.rows, &training.x, self.left_aligned(), z)?;
            }
        }
        Ok(())
    }

    pub(super) fn forward(&mut self, flow: &Flow, device: &D, parameters: &D::Buffer) -> Result<(), DeviceError> {
        self.forward_done = false;
        device.workers().try_for_each(&mut self.shards, |_, shard| shard.forward(flow, device, parameters))?;
        self.forward_done = true;
        Ok(())
    }

    pub(super) fn inverse(&mut self, flow: &Flow, device: &D, parameters: &D::Buffer) -> Result<(), DeviceError> {
        self.forward_done = false;
        device.workers().try_for_each(&mut self.shards, |_, shard| shard.inverse(flow, device, parameters))?;
        Ok(())
    }

    pub(super) fn score(
        &mut self,
        flow: &Flow,
        device: &D,
        parameters: &D::Buffer,
        score: &mut [D::Real],
    ) -> Result<(), FlowError> {
        let with_scores = |shard: &Shard<D>| shard.training.as_ref().is_some_and(|training| training.scores.is_some());
        if !self.forward_done || !self.shards.iter().all(with_scores) {
            return Err(FlowError::NoForwardPass);
        }
        self.check_coordinates("score", score.len())?;
        let at = self.left_aligned();
        for shard in &self.shards {
            device.export(&shard.rows, &shard.x[0], at, score)?;
        }
        // ∂ log ν/∂z = −z.
        score.iter_mut().for_each(|z| *z = -*z);
        let start = &*score;
        device.workers().try_for_each(&mut self.shards, |_, shard| {
            if let Some(scores) = shard.training.as_mut().and_then(|training| training.scores.as_mut()) {
                device.import(&shard.rows, start, at, &mut scores.x)?;
            }
            shard.carry_scores(flow, device, parameters)
        })?;
        for shard in &self.shards {
            if let Some(scores) = shard.training.as_ref().and_then(|training| training.scores.as_ref()) {
                device.export(&shard.rows, &scores.x, at, score)?;
            }
        }
        Ok(())
    }

    pub(super) fn backward(
        &mut self,
        flow: &Flow,
        device: &D,
        parameters: &D::Buffer,
        gradient: &mut D::Buffer,
    ) -> Result<(), FlowError> {
        self.check_training()?;
        if !std::mem::take(&mut self.forward_done) {
            return Err(FlowError::NoForwardPass);
        }
        // The first shard works in the caller's memory, the others in memory of their own, which is added in order.
        if let Some(training) = self.shards.first_mut().and_then(|shard| shard.training.as_mut()) {
            std::mem::swap(&mut training.parameters, gradient);
        }
        let passed =
            device.workers().try_for_each(&mut self.shards, |_, shard| shard.backward(flow, device, parameters));
        let mut shards = self.shards.iter_mut().filter_map(|shard| shard.training.as_mut());
        if let Some(first) = shards.next() {
            std::mem::swap(&mut first.parameters, gradient);
        }
        passed?;
        for training in shards {
            device.combine(1.0, &training.parameters, 1.0, gradient)?;
        }
        Ok(())
    }
}

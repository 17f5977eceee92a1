//! All memory of a flow's passes, planned once.

use std::cmp::Reverse;

use super::error::FlowError;
use super::lane::Lane;
use super::layer::Layer;
use super::{Batch, ContextShape, Flow, FlowShape};
use crate::engine::{Engine, Placement, Real, RowPlan, ShortSlice};

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
/// Rows are sorted by dimension and split into lanes, which know nothing of one another. How many lanes there are, and
/// with it the order in which gradients are summed, follows from the number of rows there is room for.
pub struct Workspace<E: Engine> {
    shape: FlowShape,
    capacity: usize,
    /// Tells the flow it was made for from others.
    fingerprint: u64,
    /// Whether the lanes hold a forward pass that no backward pass has used up.
    forward_done: bool,
    /// Whether anything is computed per distinct context.
    per_context: bool,
    /// Whether anything is computed by saturated coordinate.
    per_coordinate: bool,
    batch: Batch<E::Real>,
    order: Vec<u32>,
    lane_order: Vec<u32>,
    /// Number of each row's context among the distinct ones of its lane.
    slots: Vec<u32>,
    /// Number of each context among the distinct ones of the current lane.
    slot_of: Vec<u32>,
    used: Vec<u32>,
    /// The largest dimension in the first group of rows that uses each context in the current lane.
    context_dims: Vec<u32>,
    identity: Vec<u32>,
    lanes: Vec<Lane<E>>,
}

impl<E: Engine> std::fmt::Debug for Workspace<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("capacity", &self.capacity).field("lanes", &self.lanes.len()).finish()
    }
}

impl<E: Engine> Workspace<E> {
    pub(super) fn new(flow: &Flow, engine: &E, capacity: usize, passes: Passes) -> Self {
        let lane_rows = match passes {
            Passes::Evaluation => engine.independent_lane_rows(capacity),
            Passes::Training | Passes::TrainingWithScores => engine.lane_rows(capacity, flow.parameter_count()),
        };
        // Lanes get whole groups of rows, so they must have room for them.
        let lane_rows = lane_rows.next_multiple_of(engine.row_grain()).clamp(1, capacity.max(1));
        let lanes = capacity.div_ceil(lane_rows).max(1);
        let contexts = match flow.shape.context {
            ContextShape::Symbols(count) => count.max(capacity),
            ContextShape::Features(_) => capacity,
        };
        let diagonal = flow.layers.iter().any(|layer| matches!(layer, Layer::Diagonal { .. }));
        Self {
            shape: flow.shape,
            capacity,
            fingerprint: flow.fingerprint,
            forward_done: false,
            per_context: diagonal || flow.encoder.is_some() || matches!(flow.shape.context, ContextShape::Features(_)),
            per_coordinate: diagonal,
            batch: Batch::with_capacity(capacity, flow.shape),
            order: Vec::with_capacity(capacity),
            lane_order: Vec::with_capacity(lane_rows),
            slots: vec![0; capacity],
            slot_of: vec![u32::MAX; contexts],
            used: Vec::with_capacity(capacity),
            context_dims: vec![0; contexts],
            identity: (0..contexts as u32).collect(),
            lanes: (0..lanes).map(|lane| Lane::new(flow, engine, lane_rows, passes, lane == 0)).collect(),
        }
    }

    pub(super) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Copies a batch in, sorts its rows by dimension and shares them out.
    pub fn set_batch(&mut self, engine: &E, batch: &Batch<E::Real>) -> Result<(), FlowError> {
        batch.check(self.shape, self.capacity)?;
        self.forward_done = false;
        self.batch.clone_from_within_capacity(batch);
        self.sort_rows();
        self.make_room_for_contexts();
        let mut lanes = std::mem::take(&mut self.lanes);
        let (grain, turns) = (engine.row_grain(), lanes.len());
        for (turn, lane) in lanes.iter_mut().enumerate() {
            // Lanes take turns at groups of rows, so that each gets its share of large and small models.
            self.lane_order.clear();
            let groups = self.order.chunks(grain).skip(turn).step_by(turns);
            groups.for_each(|group| self.lane_order.extend_from_slice(group));
            self.number_contexts(grain);
            self.set_lane(engine, lane);
        }
        self.lanes = lanes;
        Ok(())
    }

    /// Largest dimension first, and rows of one model side by side: lanes then share few contexts.
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

    /// Numbers the distinct contexts of the lane's rows in the order in which they come.
    fn number_contexts(&mut self, grain: usize) {
        self.used.clear();
        if !self.per_context {
            return;
        }
        for (place, &row) in self.lane_order.iter().enumerate() {
            let context = self.batch.contexts[row as usize];
            let slot = &mut self.slot_of[context as usize];
            if *slot == u32::MAX {
                // Rows are computed in groups, as far as the largest of each needs, and come largest first: the first
                // group that uses a context needs most of it.
                let largest = self.lane_order[place / grain * grain];
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

    /// Tells a lane its rows and their contexts.
    fn set_lane(&self, engine: &E, lane: &mut Lane<E>) {
        let Self { batch, lane_order, .. } = self;
        lane.max_dim = lane_order.first().map_or(0, |&row| batch.dims[row as usize] as usize);
        let rows = RowPlan {
            order: lane_order,
            dims: &batch.dims,
            contexts: &batch.contexts,
            slots: &self.slots,
            active: &batch.active,
            starts: &batch.starts,
            needs_active: self.per_coordinate,
        };
        engine.set_rows(&mut lane.rows, rows);
        let contexts = RowPlan {
            order: &self.used,
            dims: &self.context_dims,
            contexts: &self.identity,
            slots: &self.identity,
            active: &[],
            starts: &[],
            needs_active: false,
        };
        engine.set_rows(&mut lane.contexts, contexts);
        if let ContextShape::Features(stride) = self.shape.context {
            engine.import(&lane.contexts, &batch.features, Placement::Whole { stride, first: 0 }, &mut lane.features);
        }
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
        let training = self.lanes.iter().all(|lane| lane.training.is_some());
        if training { Ok(()) } else { Err(FlowError::NoForwardPass) }
    }

    fn check_rows(&self, what: &'static str, found: usize) -> Result<(), ShortSlice> {
        ShortSlice::check(what, found, self.batch.rows())
    }

    /// Sets z: row-major with stride `d_max`, active coordinates first.
    pub fn write_z(&mut self, engine: &E, z: &[E::Real]) -> Result<(), FlowError> {
        self.check_coordinates("z", z.len())?;
        self.forward_done = false;
        let at = self.left_aligned();
        engine.for_each_lane(&mut self.lanes, |_, lane| engine.import(&lane.rows, z, at, &mut lane.x[0]));
        Ok(())
    }

    /// Sets z from saturated rows: `d_max` numbers each, active or not, of which the active ones are taken (`P_m`).
    pub fn write_saturated_z(&mut self, engine: &E, z: &[E::Real]) -> Result<(), FlowError> {
        self.check_coordinates("z", z.len())?;
        self.forward_done = false;
        let mut lanes = std::mem::take(&mut self.lanes);
        let at = self.saturated();
        engine.for_each_lane(&mut lanes, |_, lane| engine.import(&lane.rows, z, at, &mut lane.x[0]));
        self.lanes = lanes;
        Ok(())
    }

    /// Sets θ, laid out as in [`Workspace::write_z`].
    pub fn write_theta(&mut self, engine: &E, theta: &[E::Real]) -> Result<(), FlowError> {
        self.check_coordinates("theta", theta.len())?;
        let at = self.left_aligned();
        engine.for_each_lane(&mut self.lanes, |_, lane| {
            let last = lane.x.len() - 1;
            engine.import(&lane.rows, theta, at, &mut lane.x[last]);
        });
        Ok(())
    }

    /// Reads θ, laid out as in [`Workspace::write_z`], and the log-determinant of each row. Numbers beyond a row's
    /// dimension are left alone. Everything is read even when the error says that something is not finite.
    pub fn read_theta(&self, engine: &E, theta: &mut [E::Real], log_det: &mut [E::Real]) -> Result<(), FlowError> {
        self.read(engine, |lane| lane.x.last(), self.left_aligned(), theta, log_det)?;
        self.finite(theta, log_det, |_, i| i)
    }

    /// Reads saturated rows `(θ_m, u)`: only active coordinates are written (`P_m⁻¹`), so that a buffer that holds the
    /// saturated z keeps its inactive coordinates, bit for bit (Lemma 1).
    pub fn read_saturated_theta(
        &self,
        engine: &E,
        theta: &mut [E::Real],
        log_det: &mut [E::Real],
    ) -> Result<(), FlowError> {
        self.read(engine, |lane| lane.x.last(), self.saturated(), theta, log_det)?;
        self.finite(theta, log_det, |row, i| self.batch.active(row)[i] as usize)
    }

    /// Reads z, laid out as in [`Workspace::write_z`], and the log-determinant of each row.
    pub fn read_z(&self, engine: &E, z: &mut [E::Real], log_det: &mut [E::Real]) -> Result<(), FlowError> {
        self.read(engine, |lane| lane.x.first(), self.left_aligned(), z, log_det)?;
        self.finite(z, log_det, |_, i| i)
    }

    fn read(
        &self,
        engine: &E,
        which: impl Fn(&Lane<E>) -> Option<&E::Matrix>,
        at: Placement<'_>,
        to: &mut [E::Real],
        log_det: &mut [E::Real],
    ) -> Result<(), FlowError> {
        self.check_coordinates("coordinates", to.len())?;
        self.check_rows("log_det", log_det.len())?;
        for lane in &self.lanes {
            if let Some(matrix) = which(lane) {
                engine.export(&lane.rows, matrix, at, to);
            }
            engine.export(&lane.rows, &lane.log_det, Placement::Whole { stride: 1, first: 0 }, log_det);
        }
        Ok(())
    }

    /// Looks for numbers that are not finite; `place` says where in its row an active coordinate stands.
    fn finite(
        &self,
        values: &[E::Real],
        log_det: &[E::Real],
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
    pub fn write_gradients(&mut self, engine: &E, theta: &[E::Real], log_det: &[E::Real]) -> Result<(), FlowError> {
        self.check_training()?;
        self.check_coordinates("theta", theta.len())?;
        self.check_rows("log_det", log_det.len())?;
        let at = self.left_aligned();
        engine.for_each_lane(&mut self.lanes, |_, lane| {
            if let Some(training) = &mut lane.training {
                engine.import(&lane.rows, theta, at, &mut training.x);
                engine.import(&lane.rows, log_det, Placement::Whole { stride: 1, first: 0 }, &mut training.log_det);
            }
        });
        Ok(())
    }

    /// Reads the derivatives with respect to z after a backward pass.
    pub fn read_z_gradient(&self, engine: &E, z: &mut [E::Real]) -> Result<(), FlowError> {
        self.check_training()?;
        self.check_coordinates("z", z.len())?;
        for lane in &self.lanes {
            if let Some(training) = &lane.training {
                engine.export(&lane.rows, &training.x, self.left_aligned(), z);
            }
        }
        Ok(())
    }

    /// Reads the derivatives with respect to the features of every context after a backward pass.
    pub fn read_feature_gradient(&self, engine: &E, features: &mut [E::Real]) -> Result<(), FlowError> {
        self.check_training()?;
        let ContextShape::Features(stride) = self.shape.context else {
            return Ok(());
        };
        ShortSlice::check("features", features.len(), self.batch.feature_rows() * stride)?;
        features.fill(E::Real::ZERO);
        let mut part = vec![E::Real::ZERO; features.len()];
        for lane in &self.lanes {
            let Some(training) = &lane.training else { continue };
            if let Some(matrix) = training.features.as_ref().or(training.encoded.as_ref()) {
                // A context may occur in several lanes.
                part.fill(E::Real::ZERO);
                engine.export(&lane.contexts, matrix, Placement::Whole { stride, first: 0 }, &mut part);
                features.iter_mut().zip(&part).for_each(|(sum, &part)| *sum += part);
            }
        }
        Ok(())
    }

    pub(super) fn forward(&mut self, flow: &Flow, engine: &E, parameters: &E::Buffer) {
        engine.for_each_lane(&mut self.lanes, |_, lane| lane.forward(flow, engine, parameters));
        self.forward_done = true;
    }

    pub(super) fn inverse(&mut self, flow: &Flow, engine: &E, parameters: &E::Buffer) {
        self.forward_done = false;
        engine.for_each_lane(&mut self.lanes, |_, lane| lane.inverse(flow, engine, parameters));
    }

    pub(super) fn score(
        &mut self,
        flow: &Flow,
        engine: &E,
        parameters: &E::Buffer,
        score: &mut [E::Real],
    ) -> Result<(), FlowError> {
        let with_scores = |lane: &Lane<E>| lane.training.as_ref().is_some_and(|training| training.scores.is_some());
        if !self.forward_done || !self.lanes.iter().all(with_scores) {
            return Err(FlowError::NoForwardPass);
        }
        self.check_coordinates("score", score.len())?;
        let at = self.left_aligned();
        for lane in &self.lanes {
            engine.export(&lane.rows, &lane.x[0], at, score);
        }
        // ∂ log ν/∂z = −z.
        score.iter_mut().for_each(|z| *z = -*z);
        let start = &*score;
        engine.for_each_lane(&mut self.lanes, |_, lane| {
            if let Some(scores) = lane.training.as_mut().and_then(|training| training.scores.as_mut()) {
                engine.import(&lane.rows, start, at, &mut scores.x);
            }
            lane.carry_scores(flow, engine, parameters);
        });
        for lane in &self.lanes {
            if let Some(scores) = lane.training.as_ref().and_then(|training| training.scores.as_ref()) {
                engine.export(&lane.rows, &scores.x, at, score);
            }
        }
        Ok(())
    }

    pub(super) fn backward(
        &mut self,
        flow: &Flow,
        engine: &E,
        parameters: &E::Buffer,
        gradient: &mut E::Buffer,
    ) -> Result<(), FlowError> {
        self.check_training()?;
        if !std::mem::take(&mut self.forward_done) {
            return Err(FlowError::NoForwardPass);
        }
        // The first lane works in the caller's memory, the others in memory of their own, which is added in order.
        if let Some(training) = self.lanes.first_mut().and_then(|lane| lane.training.as_mut()) {
            std::mem::swap(&mut training.parameters, gradient);
        }
        engine.for_each_lane(&mut self.lanes, |_, lane| lane.backward(flow, engine, parameters));
        let mut lanes = self.lanes.iter_mut().filter_map(|lane| lane.training.as_mut());
        if let Some(first) = lanes.next() {
            std::mem::swap(&mut first.parameters, gradient);
        }
        for training in lanes {
            engine.combine(1.0, &training.parameters, 1.0, gradient);
        }
        Ok(())
    }
}

//! Where the arithmetic happens: buffers and batched operations.
//!
//! Flows are written once, against [`Device`]; what differs between a CPU and a GPU stays behind it. A device works on
//! *matrices* of features × rows, whose memory layout is its own business, and on flat *buffers* that hold all parameters
//! φ (or their gradients, or the moments of the optimiser) one after the other.
//!
//! Three facts about CoSMIC flows shape the operations:
//!
//! * **Hidden units are sorted by degree**, so every masked weight matrix is a [`Staircase`]: output `o` reads a prefix of
//!   the inputs, and later outputs read longer prefixes. Zero blocks are skipped, no mask is ever multiplied.
//! * **Rows are sorted by dimension**, largest first, and left-aligned: a row with `d_m` active coordinates needs only the
//!   units that feed its first `d_m` outputs ([`Reach`]). Cost follows Σ d_m, not B·d_max.
//! * **Context is a look-up**: rows that share a model share its context, computed once per distinct model.

mod arguments;
pub mod cpu;
mod error;
mod linear;
mod record;
mod residual;
mod transform;

use std::ops::Range;

use crate::simd::Real;
use crate::workers::Workers;

pub use arguments::{
    Activation, AdamWStep, Choice, ContextTable, ContextTableGradient, Entry, InputGradient, Output, Placement,
    RowPlan, Symbols,
};
pub use cpu::Cpu;
pub use error::{DeviceError, ShortSlice};
pub use linear::{Linear, Reach, Staircase};
pub use record::UpdateRecord;
pub use residual::{Group, Part, Residual, ResidualUnits};
pub use transform::{Scale, Spline, Transform};

/// Buffers and batched operations in one precision on one device.
///
/// Operations never allocate: whatever memory they need is passed in. They are deterministic: the same input gives the
/// same bits for any number of threads.
pub trait Device: Clone + Send + Sync + 'static {
    /// The precision.
    type Real: Real;
    /// A flat run of numbers: parameters, gradients, moments.
    type Buffer: Send + Sync;
    /// Features × rows of a batch.
    type Matrix: Send + Sync;
    /// The rows of a batch: dimensions, order, contexts, active coordinates.
    type Rows: Send + Sync;
    /// What updates have seen, kept on the device until somebody asks.
    type Record: Send + Sync;

    /// The host's threads beside it.
    fn workers(&self) -> &Workers;

    /// A buffer of `len` zeros.
    fn buffer(&self, len: usize) -> Result<Self::Buffer, DeviceError>;
    /// How many numbers a buffer holds.
    fn len(&self, buffer: &Self::Buffer) -> usize;
    /// Copies numbers into a buffer.
    fn write(&self, from: &[Self::Real], to: &mut Self::Buffer) -> Result<(), DeviceError>;
    /// Copies numbers out of a buffer.
    fn read(&self, from: &Self::Buffer, to: &mut [Self::Real]) -> Result<(), DeviceError>;
    /// A matrix of zeros for up to `rows` rows.
    fn matrix(&self, features: usize, rows: usize) -> Result<Self::Matrix, DeviceError>;
    /// Room for up to `capacity` rows of up to `max_dim` coordinates.
    fn rows(&self, capacity: usize, max_dim: usize) -> Result<Self::Rows, DeviceError>;
    /// Describes the rows of the next operations.
    fn set_rows(&self, rows: &mut Self::Rows, plan: RowPlan<'_>) -> Result<(), DeviceError>;

    /// Fills a matrix from row-major host memory, `at` saying where each row's coordinates stand; coordinates beyond a
    /// row's dimension become 0 as far as any operation may look at them.
    fn import(
        &self,
        rows: &Self::Rows,
        from: &[Self::Real],
        at: Placement<'_>,
        to: &mut Self::Matrix,
    ) -> Result<(), DeviceError>;
    /// The reverse of [`Device::import`]; host numbers that belong to no coordinate are left alone.
    fn export(
        &self,
        rows: &Self::Rows,
        from: &Self::Matrix,
        at: Placement<'_>,
        to: &mut [Self::Real],
    ) -> Result<(), DeviceError>;
    /// Sets all of a matrix to 0.
    fn clear(&self, matrix: &mut Self::Matrix) -> Result<(), DeviceError>;
    /// Copies a matrix to one of the same shape.
    fn copy(&self, rows: &Self::Rows, from: &Self::Matrix, to: &mut Self::Matrix) -> Result<(), DeviceError>;

    /// `y = W x + b` for the outputs in `units`, where each row computes only what it needs.
    fn product(
        &self,
        linear: &Linear,
        parameters: &Self::Buffer,
        rows: &Self::Rows,
        input: &Self::Matrix,
        units: Range<usize>,
        output: Output<'_, Self::Matrix>,
    ) -> Result<(), DeviceError>;
    /// The units of a residual network that `part` names: bit for bit what one [`Device::product`] per map gives, which is
    /// how it is done unless a device knows better.
    fn residual(
        &self,
        net: &Residual<'_>,
        parameters: &Self::Buffer,
        rows: &Self::Rows,
        part: &Part<'_>,
        values: ResidualUnits<'_, Self::Matrix>,
    ) -> Result<(), DeviceError> {
        net.by_products(self, parameters, rows, part, values)
    }
    /// `dx = Wᵀ dy` for the inputs in `units`.
    fn product_input_gradient(
        &self,
        linear: &Linear,
        parameters: &Self::Buffer,
        rows: &Self::Rows,
        gradient: &Self::Matrix,
        units: Range<usize>,
        output: InputGradient<'_, Self::Matrix>,
    ) -> Result<(), DeviceError>;
    /// `dW = dy xᵀ` and `db = Σ dy`, written (not added) at the places of `W` and `b`. `scratch` holds as many features
    /// as `linear` has inputs, rounded up to [`Device::scratch_features`].
    fn product_weight_gradient(
        &self,
        linear: &Linear,
        rows: &Self::Rows,
        input: &Self::Matrix,
        gradient: &Self::Matrix,
        scratch: &mut Self::Matrix,
        to: &mut Self::Buffer,
    ) -> Result<(), DeviceError>;
    /// Sets `to` to 0 wherever `by` is not positive: the gradient of a rectifier whose output was `by`.
    fn gate(&self, rows: &Self::Rows, by: &Self::Matrix, to: &mut Self::Matrix) -> Result<(), DeviceError>;
    /// Features of scratch matrix that [`Device::product_weight_gradient`] needs for `inputs` inputs.
    fn scratch_features(&self, inputs: usize) -> usize;

    /// `to[u, r] = table[u, context of r]` for the units `u` each row needs.
    fn gather(
        &self,
        table: ContextTable<'_, Self>,
        reach: &Reach,
        rows: &Self::Rows,
        to: &mut Self::Matrix,
    ) -> Result<(), DeviceError>;
    /// The gradient of [`Device::gather`]: the table's gradient becomes the sum of `from` over the rows of each context.
    fn scatter(
        &self,
        from: &Self::Matrix,
        reach: &Reach,
        rows: &Self::Rows,
        table: ContextTableGradient<'_, Self>,
    ) -> Result<(), DeviceError>;
    /// `to[i·k + j, r] = table[c·k + j, context of r]` with `c` the saturated index of row `r`'s `i`-th active
    /// coordinate: parameters by coordinate, for layers without left-alignment.
    fn gather_coordinates(
        &self,
        table: &Self::Matrix,
        k: usize,
        rows: &Self::Rows,
        reversed: bool,
        to: &mut Self::Matrix,
    ) -> Result<(), DeviceError>;
    /// The gradient of [`Device::gather_coordinates`]; sets the rest of `table` to 0.
    fn scatter_coordinates(
        &self,
        from: &Self::Matrix,
        k: usize,
        rows: &Self::Rows,
        reversed: bool,
        table: &mut Self::Matrix,
    ) -> Result<(), DeviceError>;

    /// `to` = `from` with each row's active block in reverse order. Its own inverse and its own transpose.
    fn reverse(&self, rows: &Self::Rows, from: &Self::Matrix, to: &mut Self::Matrix) -> Result<(), DeviceError>;
    /// `y = τ_ρ(x)`, adding `log |τ'|` to `log_det`.
    fn transform(
        &self,
        transform: &Transform,
        rows: &Self::Rows,
        rho: &Self::Matrix,
        x: &Self::Matrix,
        y: &mut Self::Matrix,
        log_det: &mut Self::Matrix,
    ) -> Result<(), DeviceError>;
    /// Gradients of [`Device::transform`]: turns `gradient` from dy into dx and overwrites `rho` with dρ.
    fn transform_gradient(
        &self,
        transform: &Transform,
        rows: &Self::Rows,
        rho: &mut Self::Matrix,
        x: &Self::Matrix,
        log_det_gradient: &Self::Matrix,
        gradient: &mut Self::Matrix,
    ) -> Result<(), DeviceError>;
    /// `x = τ_ρ⁻¹(y)` for the given coordinates, adding `log |τ'|` *of the forward transform* to `log_det`.
    #[allow(clippy::too_many_arguments)]
    fn transform_inverse(
        &self,
        transform: &Transform,
        rows: &Self::Rows,
        coordinates: Range<usize>,
        rho: &Self::Matrix,
        y: &Self::Matrix,
        x: &mut Self::Matrix,
        log_det: &mut Self::Matrix,
    ) -> Result<(), DeviceError>;
    /// Carries a score `s = ∂ log q/∂x` through `y = τ_ρ(x)` for the given coordinates: with `t = s − c − ∂ log τ'/∂x`, where
    /// `c` is what later coordinates hand back through ρ, `∂ log q/∂y = t / τ'`, which replaces `s`. `rho_gradient` becomes
    /// the gradient of `y · ∂ log q/∂y + log τ'` with respect to ρ: what earlier coordinates need for their `c`.
    #[allow(clippy::too_many_arguments)]
    fn transform_score(
        &self,
        transform: &Transform,
        rows: &Self::Rows,
        coordinates: Range<usize>,
        rho: &Self::Matrix,
        x: &Self::Matrix,
        later: &Self::Matrix,
        score: &mut Self::Matrix,
        rho_gradient: &mut Self::Matrix,
    ) -> Result<(), DeviceError>;
    /// Fills the transform parameters of every coordinate with the same `k` numbers, found at `at` in `parameters`.
    fn broadcast(
        &self,
        parameters: &Self::Buffer,
        at: usize,
        k: usize,
        rows: &Self::Rows,
        to: &mut Self::Matrix,
    ) -> Result<(), DeviceError>;
    /// The gradient of [`Device::broadcast`]: sums over coordinates and rows, written at `at`.
    fn broadcast_gradient(
        &self,
        from: &Self::Matrix,
        at: usize,
        k: usize,
        rows: &Self::Rows,
        to: &mut Self::Buffer,
    ) -> Result<(), DeviceError>;

    /// Draws the symbol of a variable from its logits by inverting the distribution function at `uniforms[variable]`,
    /// writes it into feature `variable` of `words` and, as the network reads it, into `inputs`, and adds its log
    /// probability to `log_prob`. A symbol whose logit is −∞ (a bit: whose logit is ∓∞) is never drawn.
    fn choose(&self, rows: &Self::Rows, choice: Choice<'_, Self::Matrix>) -> Result<(), DeviceError>;
    /// Adds the log probabilities of known symbols to `log_prob`.
    fn symbol_log_prob(
        &self,
        rows: &Self::Rows,
        symbols: Symbols<'_, Self::Matrix>,
        logits: &Self::Matrix,
        log_prob: &mut Self::Matrix,
    ) -> Result<(), DeviceError>;
    /// Turns the logits of a variable into the gradient of `Σ_r weights[r] · log probability of r's symbol` with respect
    /// to them.
    fn symbol_gradient(
        &self,
        rows: &Self::Rows,
        symbols: Symbols<'_, Self::Matrix>,
        weights: &Self::Matrix,
        logits: &mut Self::Matrix,
    ) -> Result<(), DeviceError>;
    /// `to += from` for the given features.
    fn add_features(
        &self,
        rows: &Self::Rows,
        features: Range<usize>,
        from: &Self::Matrix,
        to: &mut Self::Matrix,
    ) -> Result<(), DeviceError>;

    /// `to = factor · from + keep · to`; with `keep` 0, what was there does not matter.
    fn combine(&self, factor: f64, from: &Self::Buffer, keep: f64, to: &mut Self::Buffer) -> Result<(), DeviceError>;
    /// A record of no updates.
    fn record(&self) -> Result<Self::Record, DeviceError>;
    /// Waits for what was asked for before, and says what a record has seen. The one operation that brings single numbers to the
    /// host: for reports, not for every step.
    fn read_record(&self, record: &Self::Record) -> Result<UpdateRecord, DeviceError>;
    /// Takes up a record where it was left.
    fn write_record(&self, from: &UpdateRecord, to: &mut Self::Record) -> Result<(), DeviceError>;
    /// Puts the Euclidean norm of a buffer into a record.
    fn norm(&self, buffer: &Self::Buffer, record: &mut Self::Record) -> Result<(), DeviceError>;
    /// One AdamW update of `parameters` by `gradient`, scaled down to `step.clip_norm` first. A gradient that is not finite
    /// changes nothing; either is seen in the record, whose number of updates is the t of the bias corrections `1 − βᵗ`.
    fn adamw(
        &self,
        step: &AdamWStep,
        gradient: &Self::Buffer,
        moments: (&mut Self::Buffer, &mut Self::Buffer),
        parameters: &mut Self::Buffer,
        record: &mut Self::Record,
    ) -> Result<(), DeviceError>;
    /// One update by `rate · gradient`, scaled and recorded as [`Device::adamw`] does.
    fn descend(
        &self,
        rate: f64,
        clip_norm: f64,
        gradient: &Self::Buffer,
        parameters: &mut Self::Buffer,
        record: &mut Self::Record,
    ) -> Result<(), DeviceError>;

    /// How many rows to give each shard of a batch when gradients of `parameters` numbers are summed over rows. May depend
    /// on sizes only, never on the number of threads: it decides the order of sums.
    fn shard_rows(&self, rows: usize, _parameters: usize) -> usize {
        rows
    }
    /// How many neighbouring rows are computed together, at least 1: shards get whole groups of so many.
    fn row_grain(&self) -> usize {
        1
    }
    /// How many rows to give each shard when nothing is summed over rows.
    fn independent_shard_rows(&self, rows: usize) -> usize {
        rows
    }
}

//! What operations are told.

use std::ops::Range;

use super::Device;

/// The rows of one shard of a batch, largest dimension first.
#[derive(Clone, Copy, Debug)]
pub struct RowPlan<'a> {
    /// Which row of the caller stands at each place.
    pub order: &'a [u32],
    /// Dimension `d_m` by the caller's row; sorted descending when read through `order`.
    pub dims: &'a [u32],
    /// Context by the caller's row: its row in a table of parameters.
    pub contexts: &'a [u32],
    /// Where the row's context stands among the distinct contexts of the shard: its column in a computed table.
    pub slots: &'a [u32],
    /// Saturated indices of active coordinates: row `r` owns `active[starts[r]..][..dims[r]]`.
    pub active: &'a [u32],
    /// Where each of the caller's rows starts in `active`.
    pub starts: &'a [u32],
    /// Whether operations by saturated coordinate will be called.
    pub needs_active: bool,
}

/// Where numbers stand in row-major host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement<'a> {
    /// Row `r` starts at `r · stride` and holds its active coordinates first, in order.
    LeftAligned {
        /// Distance between rows.
        stride: usize,
    },
    /// Row `r` starts at `r · stride` and holds all `d_max` coordinates, active or not, at their own places: importing
    /// applies the left-align permutation `P_m`, exporting its inverse.
    Saturated {
        /// Distance between rows.
        stride: usize,
        /// Saturated indices of active coordinates, as in [`RowPlan::active`].
        active: &'a [u32],
        /// Where each of the caller's rows starts in `active`.
        starts: &'a [u32],
    },
    /// Row `r` starts at `r · stride` and holds features of the matrix, whatever the row's dimension: as many as there are
    /// from `first` on, at most `stride`.
    Whole {
        /// Distance between rows.
        stride: usize,
        /// The first feature.
        first: usize,
    },
}

/// Where a product goes.
#[derive(Debug)]
pub struct Output<'a, M> {
    /// The matrix that is written.
    pub to: &'a mut M,
    /// Add to what is there (a context, a residual) instead of replacing it.
    pub accumulate: bool,
    /// What happens after the sum.
    pub activation: Activation<'a, M>,
}

/// What happens to a product after the sum.
#[derive(Debug)]
pub enum Activation<'a, M> {
    /// Nothing.
    Identity,
    /// `max(x, 0)`.
    Relu,
    /// Nothing, and `max(x, 0)` goes to a second matrix: a residual stream and the input of the next block.
    ReluInto(&'a mut M),
}

impl<'a, M> Activation<'a, M> {
    /// A rectified copy for the next block, if there is one.
    pub fn and_relu_into(next: Option<&'a mut M>) -> Self {
        next.map_or(Self::Identity, Self::ReluInto)
    }
}

/// Where the gradient of a product's input goes.
#[derive(Debug)]
pub struct InputGradient<'a, M> {
    /// The matrix that is written.
    pub to: &'a mut M,
    /// Add to what is there instead of replacing it.
    pub accumulate: bool,
    /// Add this: the gradient that passes a residual block by.
    pub residual: Option<&'a M>,
    /// Rectified values whose sign gates the gradient (`max(x, 0)` of the forward pass).
    pub gate: Option<&'a M>,
}

/// A table with a row of features per context.
#[derive(Debug)]
pub enum ContextTable<'a, D: Device> {
    /// Parameters: context `c` owns `width` numbers from `at + c · width`.
    Parameters {
        /// All parameters.
        buffer: &'a D::Buffer,
        /// Where the table starts.
        at: usize,
        /// Features per context.
        width: usize,
    },
    /// Computed: a column for each distinct context of the shard.
    Computed(&'a D::Matrix),
}

/// The gradient of a [`ContextTable`].
#[derive(Debug)]
pub enum ContextTableGradient<'a, D: Device> {
    /// As [`ContextTable::Parameters`].
    Parameters {
        /// All gradients.
        buffer: &'a mut D::Buffer,
        /// Where the table starts.
        at: usize,
        /// Number of contexts.
        contexts: usize,
        /// Features per context.
        width: usize,
    },
    /// As [`ContextTable::Computed`].
    Computed(&'a mut D::Matrix),
}

/// The drawing of one symbol per row, see [`Device::choose`].
#[derive(Debug)]
pub struct Choice<'a, M> {
    /// Which variable.
    pub variable: usize,
    /// Features of `logits` that belong to it: one (a bit, the logit of 1) or one per symbol.
    pub outputs: Range<usize>,
    /// Logits of all variables.
    pub logits: &'a M,
    /// Uniform numbers in [0, 1), one feature per variable.
    pub uniforms: &'a M,
    /// Words, one feature per variable.
    pub words: &'a mut M,
    /// Features of `inputs` through which the variable enters the network.
    pub entry: Entry,
    /// What the network reads.
    pub inputs: &'a mut M,
    /// Log probabilities, one feature.
    pub log_prob: &'a mut M,
}

/// How the symbol of a variable enters the network.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// As one number.
    Scaled {
        /// Which feature.
        feature: usize,
        /// What the symbol is multiplied with.
        scale: f64,
    },
    /// As a 1 among zeros.
    OneHot {
        /// A feature per symbol.
        features: Range<usize>,
    },
}

/// The known symbols of one variable.
#[derive(Debug)]
pub struct Symbols<'a, M> {
    /// Which variable.
    pub variable: usize,
    /// Features of the logits that belong to it, as in [`Choice::outputs`].
    pub outputs: Range<usize>,
    /// Words, one feature per variable.
    pub words: &'a M,
}

/// The numbers of one AdamW update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamWStep {
    /// Learning rate.
    pub rate: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Keeps the denominator away from 0.
    pub epsilon: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Largest norm of the gradient.
    pub clip_norm: f64,
}

//! What can go wrong with a flow.

use crate::device::{DeviceError, ShortSlice};

/// A flow that cannot be built, a batch it cannot take, or a result that is not finite.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No layer transforms anything.
    #[error("a flow needs at least one layer")]
    NoLayers,
    /// A width that must be positive is 0.
    #[error("layer {layer}: {what} must be at least 1")]
    Zero {
        /// Which layer, counted from 0 in sampling direction.
        layer: usize,
        /// Which setting.
        what: &'static str,
    },
    /// More or fewer bins than a spline can have.
    #[error("layer {layer}: a spline has 1 to {max} bins, not {bins}")]
    Bins {
        /// Which layer.
        layer: usize,
        /// The number asked for.
        bins: usize,
        /// The most there can be.
        max: usize,
    },
    /// A minimum that leaves no room for the rest.
    #[error("layer {layer}: {what} must be positive and below {limit}")]
    Minimum {
        /// Which layer.
        layer: usize,
        /// Which setting.
        what: &'static str,
        /// What it must stay below.
        limit: String,
    },
    /// The encoder has a layer without units.
    #[error("encoder layer {layer} must have at least 1 unit")]
    Encoder {
        /// Which layer of the encoder.
        layer: usize,
    },
    /// No context to condition on: neither symbols nor features.
    #[error("a flow needs at least one context symbol or feature")]
    NoContext,
    /// More rows than the workspace was made for.
    #[error("a batch of {rows} rows does not fit a workspace for {capacity}")]
    TooManyRows {
        /// Rows of the batch.
        rows: usize,
        /// Rows the workspace has room for.
        capacity: usize,
    },
    /// Active coordinates that are not ascending numbers below `d_max`.
    #[error("row {row}: active coordinates must ascend and stay below {max_dim}")]
    Coordinates {
        /// Which row.
        row: usize,
        /// The saturated dimension.
        max_dim: usize,
    },
    /// A context that does not exist.
    #[error("row {row}: context {context} does not exist, there are {count}")]
    Context {
        /// Which row.
        row: usize,
        /// What it asked for.
        context: u32,
        /// How many there are.
        count: usize,
    },
    /// Features of the wrong width.
    #[error("a batch with {found} features per context, but the flow was made for {expected}")]
    Features {
        /// Features of the batch.
        found: usize,
        /// Features the flow expects.
        expected: usize,
    },
    /// A feature that is infinite or not a number.
    #[error("context {context}: feature {feature} is not finite")]
    Feature {
        /// Which context.
        context: usize,
        /// Which of its features.
        feature: usize,
    },
    /// Gradients were asked for without a forward pass of their own, or of a workspace for evaluation.
    #[error("gradients need a workspace for training and a forward pass of their own")]
    NoForwardPass,
    /// A workspace of another flow.
    #[error("the workspace belongs to another flow")]
    OtherWorkspace,
    /// Parameters or gradients of another flow.
    #[error("{found} parameters, but the flow has {expected}")]
    Parameters {
        /// How many there are.
        found: usize,
        /// How many the flow has.
        expected: usize,
    },
    /// A target whose log density or gradient is infinite or not a number.
    #[error("row {row}: the target's log density or gradient is not finite")]
    Target {
        /// Which row.
        row: usize,
    },
    /// A slice that is too short.
    #[error(transparent)]
    Length(#[from] ShortSlice),
    /// A number that is infinite or not a number.
    #[error("row {row}: {} is not finite", coordinate.map_or("log-determinant".into(), |c| format!("coordinate {c}")))]
    NotFinite {
        /// Which row.
        row: usize,
        /// Which active coordinate, counted from 0; none for the log-determinant.
        coordinate: Option<usize>,
    },
}

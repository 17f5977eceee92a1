//! What can go wrong with a family.

use crate::device::DeviceError;
use crate::flow::FlowError;
use crate::models::ModelsError;
use crate::problem::ConstraintError;
use crate::space::SpaceError;

/// A family that cannot be built or used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The flow cannot be built or used.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The distribution over models cannot be built.
    #[error(transparent)]
    Models(#[from] ModelsError),
    /// The space cannot be enumerated.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// Constraints that do not fit a model.
    #[error("model {model}: {error}")]
    ActiveConstraints {
        /// Which model.
        model: String,
        /// What is wrong.
        error: ConstraintError,
    },
    /// Constraints that do not cover the coordinates.
    #[error("the constraints cover {free} coordinates, but the space has {max_dim}")]
    Constraints {
        /// Free numbers of all constraints.
        free: usize,
        /// Coordinates of the space.
        max_dim: usize,
    },
    /// A preconditioner that does not fit its model.
    #[error("the preconditioner of model {model} has {found} coordinates, but the model has {dim}")]
    Preconditioner {
        /// Which model.
        model: String,
        /// What the preconditioner has.
        found: usize,
        /// What it must have.
        dim: usize,
    },
    /// Blocks that do not cover the coordinates.
    #[error("the blocks of the density cover {covered} of {max_dim} coordinates")]
    Blocks {
        /// Coordinates of all blocks.
        covered: usize,
        /// Coordinates of the space.
        max_dim: usize,
    },
    /// No block, or too many.
    #[error("a density of {count} blocks; there must be at least 1 and at most {max}")]
    BlockCount {
        /// How many there are.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// A flow for each block of a density that has none.
    #[error("structure = \"blocks\" needs a density that is a product over blocks; this one is not")]
    NoBlocks,
    /// Names that do not fit the parameters.
    #[error("{names} parameter names for {parameters} parameters")]
    Names {
        /// How many names there are.
        names: usize,
        /// How many parameters there are.
        parameters: usize,
    },
    /// A space whose words have no symbols.
    #[error("the words of a space must have at least one symbol; a single model is one of one")]
    EmptyWords,
    /// A prior that is not a number.
    #[error(
        "the log prior of model {model} is not a number; a constrained space must say how many words it has (log_count), or the problem must have a prior of its own"
    )]
    Prior {
        /// Which model.
        model: String,
    },
    /// A density that cannot be evaluated.
    #[error("model {model}: {reason}")]
    Density {
        /// Which model.
        model: String,
        /// What happened.
        reason: String,
    },
    /// A point that is no point of the space.
    #[error("point {point}: {reason}")]
    Point {
        /// Which point, counted from 0.
        point: usize,
        /// What is wrong with it.
        reason: String,
    },
}

//! What is to be inferred.

mod constraint;
mod constraints;

pub use constraint::Constraint;
pub use constraints::{ConstraintError, Constraints};

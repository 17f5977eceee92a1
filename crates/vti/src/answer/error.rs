//! Why there is no answer.

use super::VERSION;
use crate::family::FamilyError;
use crate::graph::GraphError;
use crate::problem::{dag, selection};

/// An answer that cannot be made, written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// Probabilities of models could not be computed.
    #[error(transparent)]
    Family(#[from] FamilyError),
    /// A truth over other nodes.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// There is no exact answer to a selection.
    #[error(transparent)]
    Selection(#[from] selection::ExactError),
    /// There is no exact answer about graphs.
    #[error(transparent)]
    Dag(#[from] dag::ExactError),
    /// What the answer should be about is not what was learned.
    #[error("the subject has {found} parameters, but the posterior has {expected}: it is about another problem")]
    OtherProblem {
        /// Parameters of the subject.
        found: usize,
        /// Parameters of the posterior's problem.
        expected: usize,
    },
    /// An exact answer from models that are not all.
    #[error("the models of this posterior were not enumerated")]
    NotEnumerated,
    /// Not the JSON of an answer.
    #[error("not an answer of version {VERSION}: {0}")]
    Json(#[from] serde_json::Error),
    /// Written by another version, in another form.
    #[error("written by version {found}, this is version {VERSION}")]
    Version {
        /// Its version.
        found: String,
    },
}

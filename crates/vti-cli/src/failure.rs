//! Which errors are the user's to mend.

use std::process::ExitCode;

use vti::check::CheckError;
use vti::optimise::SettingError;
use vti::posterior::LoadError;
use vti::problem::dag::{self, DagError};
use vti::problem::selection::{ExactError, SelectionError};
use vti::rjmcmc::RjmcmcError;
use vti::train::TrainError;

use crate::config::ConfigError;
use crate::data::{DataError, EdgesError};

/// A request that makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// How a command ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    /// By a signal, with the work saved.
    Interrupted,
}

/// The exit code of a signal that was obeyed.
pub(crate) const INTERRUPTED: u8 = 130;

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Done => Self::SUCCESS,
            Ending::Interrupted => Self::from(INTERRUPTED),
        }
    }
}

/// 2 for wrong usage and bad input, 1 for everything else.
pub(crate) fn code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(if is_input(error) { 2 } else { 1 })
}

/// Whether a file that was named is not there.
pub(crate) fn is_not_found(error: &anyhow::Error) -> bool {
    let is_not_found = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    error.chain().any(|cause| match (cause.downcast_ref(), cause.downcast_ref()) {
        (Some(DataError::Io { error, .. }), _) | (_, Some(ConfigError::Io { error, .. })) => is_not_found(error),
        _ => false,
    })
}

/// Whether usage was wrong, or input bad.
pub(crate) fn is_input(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<Usage>()
            || cause.is::<DataError>()
            || cause.is::<ConfigError>()
            || cause.is::<EdgesError>()
            || cause.is::<SelectionError>()
            || cause.is::<DagError>()
            || cause.is::<SettingError>()
            || cause.is::<ExactError>()
            || cause.is::<dag::ExactError>()
            || cause.downcast_ref::<LoadError>().is_some_and(is_other)
            // Transparent errors do not list what they stand for among their causes.
            || matches!(cause.downcast_ref::<CheckError>(), Some(CheckError::Setting(_)))
            || matches!(cause.downcast_ref::<RjmcmcError>(), Some(RjmcmcError::Setting(_)))
            || matches!(cause.downcast_ref::<TrainError>(), Some(TrainError::Setting(_)))
            || matches!(cause.downcast_ref::<TrainError>(), Some(TrainError::Load(error)) if is_other(error))
    })
}

/// A file that is fine, but not for this.
fn is_other(error: &LoadError) -> bool {
    matches!(error, LoadError::OtherProblem { .. } | LoadError::Precision { .. })
}

/// All causes, the hint of the last one on a line of its own.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        // Transparent errors say the same twice.
        if parts.last() != Some(&text) {
            parts.push(text);
        }
    }
    parts.join(": ")
}

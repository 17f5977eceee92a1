//! What the preparation of a problem's blocks has found, kept in a file: a run that is taken up again goes on from there.

use std::path::Path;

use crate::problem::{Problem, Shape};
use crate::store::{self, StoreError};

/// Writes what was found out about a problem's blocks ([`Blocks::findings`](crate::problem::Blocks::findings)); nothing where there is
/// nothing.
pub fn save_preparation(path: &Path, problem: &dyn Problem) -> Result<(), StoreError> {
    match problem.blocks().map(|blocks| blocks.findings()).filter(|state| !state.arrays().is_empty()) {
        Some(state) => store::write(path, &Shape::of(problem), &state),
        None => Ok(()),
    }
}

/// Reads what was found out about a problem's blocks, which then need not be found out again. Findings of a problem with other models
/// or parameters are refused; that data and priors are the same is left to the caller.
pub fn load_preparation(path: &Path, problem: &dyn Problem) -> Result<(), StoreError> {
    if problem.blocks().is_none() {
        return Ok(());
    }
    parse_preparation(path, &store::bytes(path)?, problem)
}

/// The same of the bytes of a file, `path` as errors name it.
pub fn parse_preparation(path: &Path, bytes: &[u8], problem: &dyn Problem) -> Result<(), StoreError> {
    let Some(blocks) = problem.blocks() else { return Ok(()) };
    let (shape, mut state): (Shape, _) = store::parse(path, bytes)?;
    let content = |reason: String| StoreError::Content { path: path.into(), reason };
    if shape != Shape::of(problem) {
        return Err(content("the preparation of another problem".into()));
    }
    blocks.restore_findings(&mut state).map_err(|error| content(error.to_string()))
}

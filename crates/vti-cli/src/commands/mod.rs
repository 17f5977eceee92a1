//! Commands, one file each.

pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod enumerate;
pub(crate) mod init;
pub(crate) mod log_prob;
pub(crate) mod predict;
pub(crate) mod report;
pub(crate) mod rjmcmc;
pub(crate) mod sample;
pub(crate) mod watch;

use std::path::Path;

use anyhow::Result;

use crate::failure::Ending;
use crate::{print, rundir};

/// `vti devices`.
pub(crate) fn devices() -> Result<Ending> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    print::data(&format!("cpu: {cores} cores"))?;
    Ok(Ending::Done)
}

/// To a file, or to standard output.
fn deliver(out: Option<&Path>, bytes: &[u8]) -> Result<Ending> {
    match out {
        Some(path) => rundir::write(path, bytes)?,
        None => print::bytes(bytes)?,
    }
    Ok(Ending::Done)
}

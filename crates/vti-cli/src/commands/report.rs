//! `vti report`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::conclude::write_report;
use crate::failure::Ending;
use crate::output::parquet;
use crate::print;
use crate::rundir::RunDir;

/// Options of `vti report`.
#[derive(Args)]
pub(crate) struct ReportArgs {
    /// The run directory
    dir: PathBuf,
}

pub(crate) fn run(args: &ReportArgs) -> Result<Ending> {
    let (dir, _) = RunDir::open(&args.dir)?;
    let summary = dir.read_summary()?;
    let (samples, _) = parquet::read(&dir.draws())?;
    let kept = summary.replicates.iter().position(|replicate| replicate.seed == summary.seed);
    write_report(&dir, &summary, &samples, kept)?;
    print::data(&dir.report().display().to_string())?;
    Ok(Ending::Done)
}

//! `vti report`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use vti_report::files;

use crate::conclude::write_page;
use crate::failure::Ending;
use crate::print;
use crate::rundir::RunDir;

/// Options of `vti report`.
#[derive(Args)]
pub(crate) struct ReportArgs {
    /// The run directory
    dir: PathBuf,
}

pub(crate) fn run(args: &ReportArgs) -> Result<Ending> {
    let (dir, config) = RunDir::open(&args.dir)?;
    let answer = dir.read_answer()?;
    let (samples, _) = files::read_draws(&dir.draws())?;
    write_page(&dir, &config, &answer, &samples)?;
    print::data(&dir.page().display().to_string())?;
    Ok(Ending::Done)
}

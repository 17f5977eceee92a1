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

/// Answers that are followed at most.
const MAX_FOLLOWED_ANSWERS: usize = 8;

pub(crate) fn run(args: &ReportArgs) -> Result<Ending> {
    let (dir, config) = RunDir::open(&args.dir)?;
    // A run that is being checked may write a new answer, and its page, meanwhile: the page is then of that one.
    for _ in 0..MAX_FOLLOWED_ANSWERS {
        let before = std::fs::read(dir.summary()).ok();
        let answer = dir.read_answer()?;
        let (samples, _) = files::read_draws(&dir.draws())?;
        write_page(&dir, &config, &answer, &samples)?;
        if std::fs::read(dir.summary()).ok() == before {
            break;
        }
    }
    print::data(&dir.page().display().to_string())?;
    Ok(Ending::Done)
}

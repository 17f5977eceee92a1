//! `vti watch`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::failure::Ending;
use crate::phase::{self, Phase};
use crate::print;
use crate::progress::{self, Line};
use crate::rundir::RunDir;

/// Options of `vti watch`.
#[derive(Args)]
pub(crate) struct WatchArgs {
    /// The run directory
    dir: PathBuf,
    /// Show what there is, and do not wait for more
    #[arg(long)]
    once: bool,
}

/// Time between two looks.
const WAIT: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &WatchArgs) -> Result<Ending> {
    let (dir, _) = RunDir::open(&args.dir)?;
    let (mut shown, mut told) = (0, None);
    loop {
        // Looked at before the lines: what is written in between is shown next time.
        let finished = dir.summary().exists() && !dir.is_at_work();
        let lines = progress::lines(&dir.progress())?;
        // A run that was taken up again may have fewer lines than before.
        for line in &lines[shown.min(lines.len())..] {
            print::data(&text(line))?;
        }
        shown = lines.len();
        let phase = phase::read(&dir.phase());
        if let Some(Phase { text }) = phase.as_ref().filter(|_| phase != told) {
            print::data(text)?;
        }
        told = phase;
        if finished {
            print::data(&dir.read_answer()?.verdict.text)?;
            return Ok(Ending::Done);
        }
        if args.once {
            return Ok(Ending::Done);
        }
        std::thread::sleep(WAIT);
    }
}

fn text(line: &Line) -> String {
    let run = line.replicate.map_or_else(String::new, |run| format!("run {:<3} ", run + 1));
    let elbo = line.elbo.map_or_else(|| "–".into(), |elbo| format!("{elbo:.4}"));
    let dropped = if line.dropped > 0 { format!("  {} draws dropped", line.dropped) } else { String::new() };
    format!(
        "{run}step {:>7}  {:>8.1} s  bound {elbo:>12}  entropy {:.3}{dropped}",
        line.step, line.seconds, line.entropy
    )
}

//! `vti sample`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use vti::answer::Samples;
use vti::device::Device;
use vti::memory::MemoryEstimate;
use vti_report::files::{self, Cells};

use super::deliver;
use crate::closed_form;
use crate::failure::Ending;
use crate::memory;
use crate::question::{Job, Question, start};
use crate::rundir::RunDir;
use crate::session::Session;

/// Options of `vti sample`.
#[derive(Args)]
pub(crate) struct SampleArgs {
    /// The run directory
    dir: PathBuf,
    /// How many draws
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    n: u64,
    /// A file, .csv or .parquet; standard output as CSV by default
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Another batch, for other draws
    #[arg(long, value_name = "N", default_value_t = 0)]
    batch: u32,
    /// Leave cells as they are, also those that a spreadsheet would take for formulas
    #[arg(long)]
    raw_csv: bool,
}

pub(crate) fn run(args: &SampleArgs) -> Result<Ending> {
    let (dir, config) = RunDir::open(&args.dir)?;
    start(config, Sampling { dir: &dir, args })
}

struct Sampling<'a> {
    dir: &'a RunDir,
    args: &'a SampleArgs,
}

/// The first batch of draws in closed form is in the run directory already.
fn closed_form_batch(batch: u32) -> u32 {
    batch.wrapping_add(1)
}

/// Fresh draws from a finished run.
pub(crate) fn draw<Q: Question, D: Device>(
    session: &Session<Q>,
    dir: &RunDir,
    device: &D,
    count: usize,
    batch: u32,
) -> Result<Samples> {
    let subject = session.question.subject(&session.config);
    let units = subject.units();
    let needed = MemoryEstimate::of_draws(&*session.problem(), count);
    memory::refuse(&MemoryEstimate { main_key: Some("-n"), ..needed }, "so many draws at once")?;
    if session.config.is_learned() {
        return Ok(Samples::draw(&session.posterior(dir, device)?, units, count, batch)?);
    }
    let (workers, batch) = (device.workers(), closed_form_batch(batch));
    closed_form::posterior(session, dir, workers)?.draw(units, count, batch, workers)
}

impl Job for Sampling<'_> {
    fn run<Q: Question, D: Device>(self, session: Session<Q>, device: D) -> Result<Ending> {
        let Self { dir, args } = self;
        let samples = draw(&session, dir, &device, args.n as usize, args.batch)?;
        match &args.out {
            Some(path) if path.extension().is_some_and(|extension| extension == "parquet") => {
                let schema = session.question.schema().map(serde_json::to_value).transpose()?;
                deliver(Some(path), &files::draws_parquet(&samples, schema.as_ref())?)
            }
            out => deliver(out.as_deref(), &files::draws_csv(&samples, Cells::raw_if(args.raw_csv))?),
        }
    }
}

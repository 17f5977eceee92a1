//! `vti sample`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use vti::device::{Cpu, Device};
use vti::simd::Real;

use super::deliver;
use crate::config::VERSION;
use crate::failure::Ending;
use crate::output::{draw_columns, finish_csv, parquet};
use crate::question::{Job, Question, start};
use crate::rundir::{self, RunDir};
use crate::samples::Samples;
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
}

pub(crate) fn run(args: &SampleArgs) -> Result<Ending> {
    let (dir, config) = RunDir::open(&args.dir)?;
    start(config, Sampling { dir: &dir, args })
}

struct Sampling<'a> {
    dir: &'a RunDir,
    args: &'a SampleArgs,
}

impl Job for Sampling<'_> {
    fn run<Q: Question, T: Real>(self, session: Session<Q>) -> Result<Ending>
    where
        Cpu<T>: Device,
    {
        let Self { dir, args } = self;
        let device = session.device::<T>()?;
        let mut posterior = session.posterior(dir, &device)?;
        let draws = posterior.draw_with_target(args.n as usize, args.batch)?;
        let weights: Vec<f64> = draws.log_target.iter().zip(&draws.log_q).map(|(target, q)| target - q).collect();
        let samples = Samples::new(&posterior, &session.question.units(), &draws, &weights, 1);
        match &args.out {
            Some(path) if path.extension().is_some_and(|extension| extension == "parquet") => {
                let schema = session.question.schema().cloned();
                let origin = parquet::Origin { version: VERSION.into(), schema, parameters: samples.names.clone() };
                rundir::write(path, &parquet::write(&samples, &origin)?)?;
                Ok(Ending::Done)
            }
            out => deliver(out.as_deref(), &csv_of(&samples)?),
        }
    }
}

/// One line per draw; cells of parameters that a model does not have are empty.
fn csv_of(samples: &Samples) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(draw_columns(&samples.names))?;
    for row in 0..samples.len() {
        let model = &samples.models[samples.model[row]];
        let numbers = [samples.log_q[row], samples.log_target[row], samples.log_weight[row]].map(|x| x.to_string());
        let values = (0..samples.names.len())
            .map(|parameter| samples.value(row, parameter).map_or_else(String::new, |value| value.to_string()));
        let texts = [model.label.clone(), model.word.clone()];
        writer.write_record(texts.into_iter().chain(numbers).chain(values))?;
    }
    finish_csv(writer)
}

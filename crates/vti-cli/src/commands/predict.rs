//! `vti predict`: the response of new rows, averaged over models.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use vti::answer::{Prediction, Predictor};
use vti_report::files;

use super::deliver;
use crate::config::ProblemConfig;
use crate::data::{Schema, Source};
use crate::failure::{Ending, Usage};
use crate::rundir::RunDir;

/// Options of `vti predict`.
#[derive(Args)]
pub(crate) struct PredictArgs {
    /// The run directory
    dir: PathBuf,
    /// A table with the columns the run was trained with; the response may be missing
    new: String,
    /// A CSV file; standard output by default
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Probability of the intervals
    #[arg(long, value_name = "P", default_value_t = 0.9, value_parser = share)]
    interval: f64,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value < 1.0 => Ok(value),
        _ => Err("a number between 0 and 1 is needed".into()),
    }
}

pub(crate) fn run(args: &PredictArgs) -> Result<Ending> {
    let (dir, config) = RunDir::open(&args.dir)?;
    let ProblemConfig::Select(asked) = &config.problem else {
        let shown = dir.path().display();
        return Err(Usage(format!(
            "{shown}: causal graphs have no response to predict\nhint: `vti sample {shown} -n N` draws graphs with their \
             weights; edges.csv has the probabilities of edges"
        ))
        .into());
    };
    if !dir.draws().exists() {
        let shown = dir.path().display();
        return Err(Usage(format!("{shown}: the run is not finished\nhint: `vti check {shown}`")).into());
    }
    let (samples, schema) = files::read_draws(&dir.draws())?;
    let raw = Source::read(&args.new)?.parse()?;
    let Some(schema) = schema.and_then(|schema| serde_json::from_value::<Schema>(schema).ok()) else {
        let shown = dir.draws().display().to_string();
        return Err(Usage(format!("{shown}: does not say what the columns of the data mean")).into());
    };
    schema.check_columns(&raw)?;
    let terms = schema.terms(&raw)?;
    let predictor = Predictor::new(&samples, asked.likelihood, &terms, config.train.seed);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["row", "mean", "mean_low", "mean_high", "new_low", "new_high"])?;
    for row in 0..raw.rows() {
        let Prediction { mean, mean_interval, new_interval } = predictor.row(row, args.interval);
        let numbers = [&[mean][..], &mean_interval, &new_interval].concat();
        writer.write_record(
            std::iter::once((row + 1).to_string()).chain(numbers.iter().map(|number| number.to_string())),
        )?;
    }
    deliver(args.out.as_deref(), &files::csv_bytes(writer)?)
}

//! `vti predict`: the response of new rows, averaged over models.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use vti::answer::{Prediction, Predictor, Samples};
use vti::problem::selection::Likelihood;
use vti_report::files::{self, Cells, CsvTable};

use super::deliver;
use crate::config::ProblemConfig;
use crate::data::{Encoded, Raw, Reason, Schema, Source, Words};
use crate::failure::{Ending, Usage};
use crate::print;
use crate::rundir::RunDir;
use crate::shown::listed;

/// Options of `vti predict`.
#[derive(Args)]
pub(crate) struct PredictArgs {
    /// The run directory
    dir: PathBuf,
    /// A table with the columns the run was trained with, or - for standard input; the response may be missing, other columns
    /// are ignored, and rows with cells that cannot be read have an empty prediction
    new: String,
    /// A CSV file; standard output by default
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Probability of the intervals
    #[arg(long, value_name = "P", default_value_t = 0.9, value_parser = share)]
    interval: f64,
    /// Leave cells as they are, also those that a spreadsheet would take for formulas
    #[arg(long)]
    raw_csv: bool,
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
    let mut raw = Source::read(&args.new)?.parse(&Words::new(&config.source.missing_values))?;
    let Some(schema) = schema.and_then(|schema| serde_json::from_value::<Schema>(schema).ok()) else {
        let shown = dir.draws().display().to_string();
        return Err(Usage(format!("{shown}: does not say what the columns of the data mean")).into());
    };
    let learned = Learned { samples: &samples, schema: &schema, likelihood: asked.likelihood, seed: config.train.seed };
    let (table, note) = learned.predict(&mut raw, args.interval, Cells::raw_if(args.raw_csv))?;
    note.iter().for_each(|note| print::talk(note));
    deliver(args.out.as_deref(), &table)
}

/// What predicts.
pub(crate) struct Learned<'a> {
    pub(crate) samples: &'a Samples,
    pub(crate) schema: &'a Schema,
    pub(crate) likelihood: Likelihood,
    pub(crate) seed: u64,
}

impl Learned<'_> {
    /// The table of predictions for new rows, and what could not be read of them.
    pub(crate) fn predict(&self, raw: &mut Raw, interval: f64, cells: Cells) -> Result<(Vec<u8>, Option<String>)> {
        let Self { samples, schema, likelihood, seed } = *self;
        schema.prepare(raw)?;
        let (Encoded { terms, unreadable }, offset) = schema.new_rows(raw)?;
        let without: HashSet<usize> = unreadable.iter().map(|(_, row, _)| *row).collect();
        let predictor = Predictor::new(samples, likelihood, &terms, seed).with_offset(&offset);
        let names = ["row", "mean", "mean_low", "mean_high", "new_low", "new_high"];
        let mut table = CsvTable::new(cells, names)?;
        for row in 0..raw.rows() {
            let number = std::iter::once((row + 1).to_string());
            if without.contains(&row) {
                table.row(number.chain(std::iter::repeat_n(String::new(), names.len() - 1)))?;
                continue;
            }
            let Prediction { mean, mean_interval, new_interval } = predictor.row(row, interval);
            let numbers = [&[mean][..], &mean_interval, &new_interval].concat();
            table.row(number.chain(numbers.iter().map(f64::to_string)))?;
        }
        let note = (!without.is_empty()).then(|| told(without.len(), raw.rows(), &unreadable));
        Ok((table.bytes()?, note))
    }
}

/// How many rows have no prediction, and why.
fn told(rows: usize, all: usize, unreadable: &[(String, usize, Reason)]) -> String {
    let mut counts: BTreeMap<(&str, Reason), usize> = BTreeMap::new();
    unreadable.iter().for_each(|(column, _, reason)| *counts.entry((column, *reason)).or_default() += 1);
    let count = |(&(column, reason), count): (&(&'_ str, Reason), &usize)| {
        let reason = match reason {
            Reason::Missing => "missing",
            Reason::NotNumber => "not a number",
            Reason::NotPositive => "not positive",
            Reason::UnknownLevel => "a level that was not there in training",
        };
        (column.to_string(), format!(" {count} ({reason})"))
    };
    let counts: Vec<(String, String)> = counts.iter().map(count).collect();
    let cells = listed(counts.iter().map(|(column, count)| (column.as_str(), count.clone())), counts.len());
    format!("{rows} of {all} rows have no prediction, as cells cannot be read: {cells}")
}

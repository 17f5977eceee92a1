//! `vti predict`: the response of new rows, averaged over models.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use vti::answer::{CategoryPrediction, Prediction, Predictor, Samples};
use vti::problem::selection::{Likelihood, coefficient_name};
use vti_report::files::{self, Cells, CsvTable};

use super::deliver;
use crate::config::{Config, ProblemConfig};
use crate::data::{DataError, Encoded, Raw, Reason, Schema, Source, Words};
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
    let (predictions, note) = of_run(&dir, &config, || Source::read(&args.new), args.interval)?;
    note.iter().for_each(|note| print::talk(note));
    deliver(args.out.as_deref(), &table(&predictions, Cells::raw_if(args.raw_csv))?)
}

/// Predictions of new rows; none of those that cannot be read.
pub(crate) enum Predictions {
    /// Of numbers.
    Numbers(Vec<Option<Prediction>>),
    /// Of one of these categories: the probability of each.
    Categories(Vec<String>, Vec<Option<Vec<CategoryPrediction>>>),
}

impl Predictions {
    /// As columns of numbers, not numbers where there is no prediction.
    pub(crate) fn columns(&self) -> Vec<(String, Vec<f64>)> {
        let rows: Vec<Option<Vec<f64>>> = match self {
            Self::Numbers(rows) => rows.iter().map(|row| row.as_ref().map(numbers)).collect(),
            Self::Categories(_, rows) => rows.iter().map(|row| row.as_ref().map(|found| shares(found))).collect(),
        };
        let names = match self {
            Self::Numbers(_) => columns(&[]).split_off(1),
            Self::Categories(categories, _) => columns(categories).split_off(2),
        };
        let value = |row: &Option<Vec<f64>>, place: usize| row.as_ref().map_or(f64::NAN, |row| row[place]);
        let column = |(place, name): (usize, String)| (name, rows.iter().map(|row| value(row, place)).collect());
        names.into_iter().enumerate().map(column).collect()
    }
}

/// A prediction as it stands in a row.
fn numbers(Prediction { mean, mean_interval, new_interval }: &Prediction) -> Vec<f64> {
    [&[*mean][..], mean_interval, new_interval].concat()
}

/// The probability of each category, with its interval.
fn shares(found: &[CategoryPrediction]) -> Vec<f64> {
    found.iter().flat_map(|found| [found.probability, found.interval[0], found.interval[1]]).collect()
}

/// Predictions of new rows, and what could not be read of them.
type Predicted = (Predictions, Option<String>);

/// What a finished run predicts for new rows.
pub(crate) fn of_run(
    dir: &RunDir,
    config: &Config,
    new: impl FnOnce() -> Result<Source, DataError>,
    interval: f64,
) -> Result<Predicted> {
    let shown = dir.path().display();
    let asked = match &config.problem {
        ProblemConfig::Select(asked) => asked,
        ProblemConfig::Dag(_) => {
            return Err(Usage(format!(
                "{shown}: causal graphs have no response to predict\nhint: `vti sample {shown} -n N` draws graphs with \
                 their weights; edges.csv has the probabilities of edges"
            ))
            .into());
        }
        ProblemConfig::Changepoints(_)
        | ProblemConfig::Mixture(_)
        | ProblemConfig::Peaks(_)
        | ProblemConfig::Layers(_) => {
            return Err(Usage(format!(
                "{shown}: numbers of components have no response to predict\nhint: curves.csv has the curve with its bands"
            ))
            .into());
        }
        ProblemConfig::Own(_) => {
            return Err(Usage(format!("{shown}: a density of one's own has no response to predict")).into());
        }
    };
    if !dir.draws().exists() {
        return Err(Usage(format!("{shown}: the run is not finished\nhint: `vti check {shown}`")).into());
    }
    let (samples, schema) = files::read_draws(&dir.draws())?;
    let mut raw = new()?.parse(&Words::new(&config.source.missing_values))?;
    let Some(schema) = schema.and_then(|schema| serde_json::from_value::<Schema>(schema).ok()) else {
        let shown = dir.draws().display().to_string();
        return Err(Usage(format!("{shown}: does not say what the columns of the data mean")).into());
    };
    let learned = Learned { samples: &samples, schema: &schema, likelihood: asked.likelihood, seed: config.train.seed };
    learned.predict(&mut raw, interval)
}

/// Predictions as a table, with empty cells where there is none.
fn table(predictions: &Predictions, cells: Cells) -> Result<Vec<u8>> {
    let (names, rows): (Vec<String>, Vec<Option<Vec<String>>>) = match predictions {
        Predictions::Numbers(rows) => {
            let texts = |row: &Prediction| numbers(row).iter().map(f64::to_string).collect();
            (columns(&[]), rows.iter().map(|row| row.as_ref().map(texts)).collect())
        }
        Predictions::Categories(categories, rows) => {
            let row = |row: &Option<Vec<CategoryPrediction>>| row.as_ref().map(|found| likely(found, categories));
            (columns(categories), rows.iter().map(row).collect())
        }
    };
    let mut table = CsvTable::new(cells, &names)?;
    for (number, row) in (1..).zip(rows) {
        let row = row.unwrap_or_else(|| vec![String::new(); names.len() - 1]);
        table.row(std::iter::once(format!("{number}")).chain(row))?;
    }
    Ok(table.bytes()?)
}

/// What predicts.
pub(crate) struct Learned<'a> {
    pub(crate) samples: &'a Samples,
    pub(crate) schema: &'a Schema,
    pub(crate) likelihood: Likelihood,
    pub(crate) seed: u64,
}

impl Learned<'_> {
    /// Predictions for new rows, and what could not be read of them.
    pub(crate) fn predict(&self, raw: &mut Raw, interval: f64) -> Result<Predicted> {
        let Self { samples, schema, likelihood, seed } = *self;
        schema.prepare(raw)?;
        let (Encoded { terms, unreadable }, offset) = schema.new_rows(raw)?;
        let without: HashSet<usize> = unreadable.iter().map(|(_, row, _)| *row).collect();
        let predictor = Predictor::new(samples, likelihood, &terms, seed).with_offset(&offset);
        let readable = |row: usize| !without.contains(&row);
        let note = (!without.is_empty()).then(|| told(without.len(), raw.rows(), &unreadable));
        if likelihood == (Likelihood::Multinomial {}) {
            let categories = schema.response_levels.clone().unwrap_or_default();
            let predictor = predictor.with_categories(&categories, &terms);
            let rows = (0..raw.rows()).map(|row| readable(row).then(|| predictor.categories(row, interval)));
            let rows = rows.collect();
            return Ok((Predictions::Categories(categories, rows), note));
        }
        let prediction = |row: usize| readable(row).then(|| predictor.row(row, interval));
        Ok((Predictions::Numbers((0..raw.rows()).map(prediction).collect()), note))
    }
}

/// Names of the columns of predictions, of these categories where the response is one of several.
fn columns(categories: &[String]) -> Vec<String> {
    if categories.is_empty() {
        return ["row", "mean", "mean_low", "mean_high", "new_low", "new_high"].map(String::from).to_vec();
    }
    let of_category =
        |category: &String| ["probability", "low", "high"].map(|what| coefficient_name(what, category)).to_vec();
    let first = ["row", "category"].map(String::from);
    first.into_iter().chain(categories.iter().flat_map(of_category)).collect()
}

/// The most probable category, and the probabilities of all.
fn likely(found: &[CategoryPrediction], categories: &[String]) -> Vec<String> {
    let most = found.iter().zip(categories).max_by(|(a, _), (b, _)| a.probability.total_cmp(&b.probability));
    let category = most.map(|(_, category)| category.clone()).unwrap_or_default();
    std::iter::once(category).chain(shares(found).iter().map(f64::to_string)).collect()
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

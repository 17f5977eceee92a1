//! `vti predict`: the response of new rows, averaged over models.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use vti::problem::selection::{Likelihood, Term};
use vti::random::{Purpose, Stream};

use super::deliver;
use crate::config::ProblemConfig;
use crate::data::Source;
use crate::failure::{Ending, Usage};
use crate::output::finish_csv;
use crate::output::parquet::{self, Origin};
use crate::rundir::RunDir;
use crate::samples::{Samples, quantiles};

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
    let (samples, origin) = parquet::read(&dir.draws())?;
    let raw = Source::read(&args.new)?.parse()?;
    let Origin { schema: Some(schema), .. } = origin else {
        let shown = dir.draws().display().to_string();
        return Err(Usage(format!("{shown}: does not say what the columns of the data mean")).into());
    };
    schema.check_columns(&raw)?;
    let terms = schema.terms(&raw)?;
    let predictor = Predictor::new(&samples, asked.likelihood, &terms, config.train.seed, 0.5 * (1.0 - args.interval));
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["row", "mean", "mean_low", "mean_high", "new_low", "new_high"])?;
    for row in 0..raw.rows() {
        let numbers = predictor.row(row).map(|number| number.to_string());
        writer.write_record(std::iter::once((row + 1).to_string()).chain(numbers))?;
    }
    deliver(args.out.as_deref(), &finish_csv(writer)?)
}

/// Draws with the columns they multiply.
struct Predictor<'a> {
    samples: &'a Samples,
    weights: Vec<f64>,
    likelihood: Likelihood,
    /// Numbers of a column for each parameter; none for the scale of the errors and the intercept.
    columns: Vec<Option<&'a [f64]>>,
    intercept: usize,
    seed: u64,
    tail: f64,
}

impl<'a> Predictor<'a> {
    fn new(samples: &'a Samples, likelihood: Likelihood, terms: &'a [Term], seed: u64, tail: f64) -> Self {
        let rows = |term: &Term| term.values.len() / term.columns.len().max(1);
        let column = |name: &String| {
            terms.iter().find_map(|term| {
                let place = term.columns.iter().position(|column| column == name)?;
                Some(&term.values[place * rows(term)..][..rows(term)])
            })
        };
        Self {
            samples,
            weights: samples.weights(),
            likelihood,
            columns: samples.names.iter().map(column).collect(),
            intercept: usize::from(likelihood.has_scale()),
            seed,
            tail,
        }
    }

    /// Mean, interval of the mean, interval of a new observation.
    fn row(&self, row: usize) -> [f64; 5] {
        let (mut means, mut new) = (Vec::with_capacity(self.weights.len()), Vec::with_capacity(self.weights.len()));
        let mut average = 0.0;
        for (draw, &weight) in self.weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            let mean = self.mean(draw, row);
            let mut stream = Stream::new(self.seed, Purpose::Other(PREDICT), row as u64, draw as u64);
            average += weight * mean;
            means.push((mean, weight));
            new.push((self.observe(draw, mean, &mut stream), weight));
        }
        let levels = [self.tail, 1.0 - self.tail];
        let ([mean_low, mean_high], [new_low, new_high]) = (quantiles(&mut means, levels), quantiles(&mut new, levels));
        let whole = matches!(self.likelihood, Likelihood::Logistic {} | Likelihood::Poisson {});
        // Between two counts there is none.
        let (new_low, new_high) = if whole { (new_low.floor(), new_high.ceil()) } else { (new_low, new_high) };
        [average, mean_low, mean_high, new_low, new_high]
    }

    /// The mean of the response under one draw.
    fn mean(&self, draw: usize, row: usize) -> f64 {
        let value = |parameter: usize| self.samples.value(draw, parameter).unwrap_or(0.0);
        let slopes = self
            .columns
            .iter()
            .enumerate()
            .filter_map(|(parameter, column)| column.map(|column| value(parameter) * column[row]));
        let eta = value(self.intercept) + slopes.sum::<f64>();
        match self.likelihood {
            Likelihood::Logistic {} => 1.0 / (1.0 + (-eta).exp()),
            Likelihood::Poisson {} => eta.exp(),
            Likelihood::Gaussian { .. } | Likelihood::Robust { .. } | Likelihood::StudentT { .. } => eta,
        }
    }

    /// A new response under one draw.
    fn observe(&self, draw: usize, mean: f64, stream: &mut Stream) -> f64 {
        let scale = || self.samples.value(draw, 0).unwrap_or(f64::NAN);
        match self.likelihood {
            Likelihood::Gaussian { sigma } => mean + sigma.unwrap_or_else(scale) * stream.normal(),
            Likelihood::Robust { alpha, sigma1, sigma2 } => {
                let sigma = if stream.uniform() < alpha { sigma2 } else { sigma1 };
                mean + sigma * stream.normal()
            }
            Likelihood::StudentT { df } => mean + scale() * stream.student_t(df),
            Likelihood::Logistic {} => f64::from(u8::from(stream.uniform() < mean)),
            Likelihood::Poisson {} => stream.poisson(mean),
        }
    }
}

/// Streams of this command.
const PREDICT: u32 = 0x7072_6564;

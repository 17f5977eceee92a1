//! Options of `vti changepoints`.

use clap::{Args, ValueEnum};
use vti::prior::{CountPrior, Prior};
use vti::problem::changepoints::{Kind, Noise};

use super::dag::MissingName;
use super::{RunArgs, name_directory, replace, replace_list};
use crate::config::{ChangePointsConfig, Config, ProblemConfig, SourceConfig};
use crate::data::{Missing, moment};

/// `vti changepoints`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ChangePointsArgs {
    #[command(flatten)]
    pub(crate) question: ChangeArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

impl ChangePointsArgs {
    pub(crate) fn settings(self) -> anyhow::Result<(Config, RunArgs)> {
        let Self { question, run } = self;
        let mut config = question.settings(&run.set)?;
        run.apply(&mut config);
        name_directory(&mut config);
        Ok((config, run))
    }
}

/// What is constant between changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindName {
    /// The rate of a Poisson process: the file lists times of events
    Events,
    /// The rate of counts, one in each row
    Counts,
    /// The mean of values with normal noise
    Means,
    /// The line that values lie on, with normal noise
    Slopes,
}

impl From<KindName> for Kind {
    fn from(name: KindName) -> Self {
        match name {
            KindName::Events => Self::Events,
            KindName::Counts => Self::Counts,
            KindName::Means => Self::Means,
            KindName::Slopes => Self::Slopes,
        }
    }
}

/// A table, and what is assumed about its changes.
#[derive(Args, Clone, Debug)]
pub(crate) struct ChangeArgs {
    /// A CSV or Parquet file, or - for standard input; its first line holds the names of the columns
    pub(crate) data: String,
    /// What is constant between changes
    #[arg(long, value_enum)]
    kind: KindName,
    /// The column of times: numbers, or dates as 2024-02-29. Rows are put into its order; without it they are in the order of the
    /// file, one unit apart. Of events it may be left out where it is the only column
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// The column of counts or values; it may be left out where it is the only other one
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,
    /// A column that counts are in proportion to beside their rate: duration, area, population
    #[arg(long, value_name = "COLUMN")]
    exposure: Option<String>,
    /// When observation of events began: a number, or a date [default: the first event]
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true)]
    start: Option<f64>,
    /// When it ended [default: the last event]
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true)]
    end: Option<f64>,
    /// The most changes [default: 10, or as many as fit]
    #[arg(long, value_name = "K")]
    max_changes: Option<usize>,
    /// The least distance between changes, and from the ends: in units of time for events and with --time, in rows without
    /// [default: 0; lines have two rows at least]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    min_spacing: Option<f64>,
    /// The prior of the number of changes: poisson:MEAN, geometric:P, uniform, weights:W,W,… [default: poisson:3]
    #[arg(long, value_name = "PRIOR")]
    count_prior: Option<CountPrior>,
    /// Of events: spacings have a Dirichlet distribution with these parameters; 1: positions are uniform, 2: Green's prior, which
    /// keeps them apart [default: 2]
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    spacing: Option<f64>,
    /// Standard deviation of values around means or lines, or unknown; or, for means, robust[:DF]: errors with Student's t
    /// distribution, 4 degrees of freedom unless said otherwise, of an unknown scale [default: unknown]
    #[arg(long, value_name = "SIGMA|unknown|robust", value_parser = noise, allow_negative_numbers = true)]
    noise: Option<Noise>,
    /// The prior of rates, gamma:SHAPE,RATE [default: gamma:1,RATE with the mean that all events together have]
    #[arg(long, value_name = "PRIOR")]
    rate_prior: Option<Prior>,
    /// The prior of means, and of lines at the mean time of their rows, normal:MEAN,SD [default: around the middle of the range of
    /// values, with half the range as its sd]
    #[arg(long, value_name = "PRIOR")]
    level_prior: Option<Prior>,
    /// The prior of slopes, normal:MEAN,SD [default: around 0, with twice the range of values over the whole time as its sd]
    #[arg(long, value_name = "PRIOR")]
    slope_prior: Option<Prior>,
    /// The prior of an unknown noise [default: log-uniform from a thousandth to twice the standard deviation of all values]
    #[arg(long, value_name = "PRIOR")]
    noise_prior: Option<Prior>,
    /// What becomes of rows with missing values [default: error]
    #[arg(long, value_enum)]
    missing: Option<MissingName>,
    /// Words for a missing value beside the usual ones: an empty cell, NA, N/A, NaN, null, . and ?
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    missing_values: Vec<String>,
}

impl ChangeArgs {
    /// A table with what is said about it; `--set` comes before what options say.
    pub(crate) fn settings(self, set: &[String]) -> anyhow::Result<Config> {
        let asked = ProblemConfig::Changepoints(ChangePointsConfig::default());
        let mut config = Config::new(SourceConfig::all(&self.data), asked).with(set)?;
        config.source.data.clone_from(&self.data);
        if let ProblemConfig::Changepoints(asked) = &mut config.problem {
            self.apply(&mut config.source, asked);
        }
        Ok(config)
    }

    /// Changes what the options name.
    fn apply(self, source: &mut SourceConfig, asked: &mut ChangePointsConfig) {
        let Self {
            data: _,
            kind,
            time,
            value,
            exposure,
            start,
            end,
            max_changes,
            min_spacing,
            count_prior,
            spacing,
            noise,
            rate_prior,
            level_prior,
            slope_prior,
            noise_prior,
            missing,
            missing_values,
        } = self;
        asked.series = kind.into();
        asked.time = time.or(asked.time.take());
        asked.value = value.or(asked.value.take());
        asked.exposure = exposure.or(asked.exposure.take());
        asked.start = start.or(asked.start);
        asked.end = end.or(asked.end);
        asked.max_changes = max_changes.or(asked.max_changes);
        replace(&mut asked.min_spacing, &min_spacing);
        replace(&mut asked.count_prior, &count_prior);
        replace(&mut asked.spacing, &spacing);
        replace(&mut asked.noise, &noise);
        asked.prior.rate = rate_prior.or(asked.prior.rate.take());
        asked.prior.level = level_prior.or(asked.prior.level.take());
        asked.prior.slope = slope_prior.or(asked.prior.slope.take());
        asked.prior.noise = noise_prior.or(asked.prior.noise.take());
        let missing = missing.map(|missing| match missing {
            MissingName::Error => Missing::Error,
            MissingName::Drop => Missing::Drop,
        });
        replace(&mut source.missing, &missing);
        replace_list(&mut source.missing_values, missing_values);
    }
}

/// Degrees of freedom of robust errors, where nobody says.
const ROBUST_DF: f64 = 4.0;

fn noise(text: &str) -> Result<Noise, String> {
    match (text, text.parse::<f64>()) {
        ("unknown", _) => Ok(Noise::Unknown {}),
        ("robust", _) => Ok(Noise::Robust { df: ROBUST_DF }),
        (_, Ok(sigma)) if sigma > 0.0 && sigma.is_finite() => Ok(Noise::Known { sigma }),
        _ => match text.strip_prefix("robust:").and_then(|df| df.parse().ok()) {
            Some(df) => Ok(Noise::Robust { df }),
            None => Err("a positive number, unknown, robust or robust:DF is needed".into()),
        },
    }
}

fn time(text: &str) -> Result<f64, String> {
    moment(text).ok_or_else(|| "a number or a date as 2024-02-29 is needed".into())
}

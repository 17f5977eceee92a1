//! Options of `vti peaks`.

use clap::{Args, ValueEnum};
use vti::prior::{CountPrior, Prior};
use vti::problem::peaks::PeakShape;

use super::dag::MissingName;
use super::{RunArgs, name_directory, replace, replace_list};
use crate::config::{Config, PeaksConfig, ProblemConfig, SourceConfig};
use crate::data::Missing;

/// `vti peaks`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PeaksArgs {
    /// A CSV or Parquet file, or - for standard input; its first line holds the names of the columns
    data: String,
    /// The column of places: energies, wavelengths, times. It may be left out where --y names the only other one
    #[arg(long, value_name = "COLUMN")]
    x: Option<String>,
    /// The column of values; it may be left out where --x names the only other one
    #[arg(long, value_name = "COLUMN")]
    y: Option<String>,
    /// What is looked for [default: gaussian]
    #[arg(long, value_enum)]
    shape: Option<ShapeName>,
    /// The most peaks or sinusoids [default: 6]
    #[arg(long, value_name = "K")]
    max_peaks: Option<usize>,
    /// The degree of the polynomial background, 0 to 3 [default: 1]
    #[arg(long, value_name = "DEGREE")]
    background: Option<usize>,
    /// The prior of the number: uniform, poisson:MEAN, geometric:P, weights:W,W,… [default: uniform]
    #[arg(long, value_name = "PRIOR")]
    count_prior: Option<CountPrior>,
    /// The prior of heights [default: half-normal, with the range of the values]
    #[arg(long, value_name = "PRIOR")]
    height_prior: Option<Prior>,
    /// The prior of full widths at half maximum [default: log-uniform, from two spacings of the data to a third of their span]
    #[arg(long, value_name = "PRIOR")]
    width_prior: Option<Prior>,
    /// The prior of frequencies [default: uniform, from one period over the whole span to half the rate of sampling]
    #[arg(long, value_name = "PRIOR")]
    frequency_prior: Option<Prior>,
    /// The prior of the noise [default: log-uniform, from a thousandth to twice the standard deviation of the values]
    #[arg(long, value_name = "PRIOR")]
    noise_prior: Option<Prior>,
    /// What becomes of rows with missing values [default: error]
    #[arg(long, value_enum)]
    missing: Option<MissingName>,
    /// Words for a missing value beside the usual ones: an empty cell, NA, N/A, NaN, null, . and ?
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    missing_values: Vec<String>,
    #[command(flatten)]
    run: RunArgs,
}

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShapeName {
    /// exp(−4 log 2 ((x − position)/width)²)
    Gaussian,
    /// 1/(1 + 4 ((x − position)/width)²)
    Lorentzian,
    /// Pseudo-Voigt: a mixture of both, of one width
    Voigt,
    /// A cosine and a sine of one frequency
    Sinusoid,
}

impl From<ShapeName> for PeakShape {
    fn from(name: ShapeName) -> Self {
        match name {
            ShapeName::Gaussian => Self::Gaussian,
            ShapeName::Lorentzian => Self::Lorentzian,
            ShapeName::Voigt => Self::Voigt,
            ShapeName::Sinusoid => Self::Sinusoid,
        }
    }
}

impl PeaksArgs {
    /// `--set` comes before what options say.
    pub(crate) fn settings(self) -> anyhow::Result<(Config, RunArgs)> {
        let asked = ProblemConfig::Peaks(PeaksConfig::default());
        let mut config = Config::new(SourceConfig::all(&self.data), asked).with(&self.run.set)?;
        config.source.data.clone_from(&self.data);
        if let ProblemConfig::Peaks(asked) = &mut config.problem {
            asked.x = self.x.or(asked.x.take());
            asked.y = self.y.or(asked.y.take());
            replace(&mut asked.shape, &self.shape.map(PeakShape::from));
            replace(&mut asked.max_peaks, &self.max_peaks);
            replace(&mut asked.background, &self.background);
            replace(&mut asked.count_prior, &self.count_prior);
            let prior = &mut asked.prior;
            prior.height = self.height_prior.or(prior.height.take());
            prior.width = self.width_prior.or(prior.width.take());
            prior.frequency = self.frequency_prior.or(prior.frequency.take());
            prior.noise = self.noise_prior.or(prior.noise.take());
        }
        replace(&mut config.source.missing, &self.missing.map(Missing::from));
        replace_list(&mut config.source.missing_values, self.missing_values);
        self.run.apply(&mut config);
        name_directory(&mut config);
        Ok((config, self.run))
    }
}

//! Options of `vti mixture`.

use clap::{Args, ValueEnum};
use vti::prior::CountPrior;
use vti::problem::mixture::MixturePriors;

use super::dag::MissingName;
use super::{RunArgs, name_directory, replace, replace_list};
use crate::config::{Config, MixtureConfig, ProblemConfig, SourceConfig};
use crate::data::Missing;

/// `vti mixture`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MixtureArgs {
    /// A CSV or Parquet file, or - for standard input; its first line holds the names of the columns
    data: String,
    /// The column or columns; several have full covariances. It may be left out where there is only one
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    column: Vec<String>,
    /// The most components [default: 30]
    #[arg(long, value_name = "K")]
    max_components: Option<usize>,
    /// Priors of weights, means and precisions, by name. Those of single parameters are set in a configuration file [default:
    /// rg97]
    #[arg(long, value_enum)]
    prior: Option<PriorName>,
    /// The prior of the number of components: uniform, poisson:MEAN, geometric:P, weights:W,W,… [default: uniform]
    #[arg(long, value_name = "PRIOR")]
    count_prior: Option<CountPrior>,
    /// What becomes of rows with missing values [default: error]
    #[arg(long, value_enum)]
    missing: Option<MissingName>,
    /// Words for a missing value beside the usual ones: an empty cell, NA, N/A, NaN, null, . and ?
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    missing_values: Vec<String>,
    #[command(flatten)]
    run: RunArgs,
}

/// Priors that have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PriorName {
    /// Richardson and Green (1997): weights Dirichlet(1), means normal over the range, precisions gamma with a random scale
    Rg97,
}

impl MixtureArgs {
    /// `--set` comes before what options say.
    pub(crate) fn settings(self) -> anyhow::Result<(Config, RunArgs)> {
        let Self { data, column, max_components, prior, count_prior, missing, missing_values, run } = self;
        let asked = ProblemConfig::Mixture(MixtureConfig::default());
        let mut config = Config::new(SourceConfig::all(&data), asked).with(&run.set)?;
        config.source.data = data;
        if let ProblemConfig::Mixture(asked) = &mut config.problem {
            replace_list(&mut asked.columns, column);
            replace(&mut asked.max_components, &max_components);
            replace(&mut asked.count_prior, &count_prior);
            let named = prior.map(|PriorName::Rg97| MixturePriors::rg97());
            replace(&mut asked.prior, &named);
        }
        replace(&mut config.source.missing, &missing.map(Missing::from));
        replace_list(&mut config.source.missing_values, missing_values);
        run.apply(&mut config);
        name_directory(&mut config);
        Ok((config, run))
    }
}

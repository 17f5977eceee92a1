//! Options of `vti layers`.

use clap::Args;
use vti::prior::{CountPrior, Prior};
use vti::problem::layers::Errors;

use super::dag::MissingName;
use super::{RunArgs, name_directory, replace, replace_list};
use crate::config::{Config, LayersConfig, ProblemConfig, SourceConfig};
use crate::data::{LayerColumns, Missing};

/// `vti layers`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LayersArgs {
    #[command(flatten)]
    question: LayerArgs,
    #[command(flatten)]
    run: RunArgs,
}

impl LayersArgs {
    pub(crate) fn settings(self) -> anyhow::Result<(Config, RunArgs)> {
        let Self { question, run } = self;
        let asked = ProblemConfig::Layers(LayersConfig::default());
        let mut config = Config::new(SourceConfig::all(&question.data), asked).with(&run.set)?;
        config.source.data.clone_from(&question.data);
        if let ProblemConfig::Layers(asked) = &mut config.problem {
            question.apply(&mut config.source, asked);
        }
        run.apply(&mut config);
        name_directory(&mut config);
        Ok((config, run))
    }
}

/// A table, and what is assumed about the earth below it.
#[derive(Args, Clone, Debug)]
struct LayerArgs {
    /// A CSV or Parquet file, or - for standard input; its first line holds the names of the columns
    data: String,
    /// What predicts data from layers. mt: magnetotelluric apparent resistivities and phases. Anything else is a program with its
    /// arguments: it reads an earth per line, the number of layers, depths of the interfaces and the property of every layer, and
    /// answers each with a line of as many numbers as there are rows
    #[arg(long, value_name = "mt|CMD")]
    forward: String,
    /// The most layers, the half space below the others included [default: 6]
    #[arg(long, value_name = "K")]
    max_layers: Option<usize>,
    /// The prior of the number of interfaces, one less than layers: uniform, poisson:MEAN, geometric:P, weights:W,W,… [default:
    /// uniform]
    #[arg(long, value_name = "PRIOR")]
    count_prior: Option<CountPrior>,
    /// The prior of depths of interfaces, of which models have the order statistics [default with mt: log-uniform over the depths
    /// that fields reach; a program needs one]
    #[arg(long, value_name = "PRIOR")]
    depth_prior: Option<Prior>,
    /// The prior of resistivities, or of whatever property layers have for a program [default with mt: log-uniform, from a tenth of
    /// the smallest to ten times the largest apparent one; a program needs one]
    #[arg(long, value_name = "PRIOR")]
    value_prior: Option<Prior>,
    /// How large errors are: known, as their columns say, or scaled by a factor that is inferred [default: known, or scaled where no
    /// column has errors]
    #[arg(long, value_name = "known|scaled", value_parser = errors)]
    errors: Option<Errors>,
    /// The prior of that factor [default: log-uniform:0.1,10]
    #[arg(long, value_name = "PRIOR")]
    factor_prior: Option<Prior>,
    /// Errors where no column has them: as a share of apparent resistivities (of phases half of it, in radians), or of the spread of
    /// other data [default: 0.05]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    relative_error: Option<f64>,
    /// With mt, the column of periods in seconds; it may be left out where it has a usual name, as all columns may
    #[arg(long, value_name = "COLUMN")]
    period: Option<String>,
    /// With mt, the column of frequencies in hertz, instead of periods
    #[arg(long, value_name = "COLUMN", conflicts_with = "period")]
    frequency: Option<String>,
    /// With mt, the column of apparent resistivities in Ωm
    #[arg(long, value_name = "COLUMN")]
    resistivity: Option<String>,
    /// With mt, the column of their standard deviations in Ωm
    #[arg(long, value_name = "COLUMN")]
    resistivity_error: Option<String>,
    /// With mt, the column of phases in degrees
    #[arg(long, value_name = "COLUMN")]
    phase: Option<String>,
    /// With mt, the column of their standard deviations in degrees
    #[arg(long, value_name = "COLUMN")]
    phase_error: Option<String>,
    /// With a program, the column of data
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,
    /// With a program, the column of their standard deviations
    #[arg(long, value_name = "COLUMN")]
    error: Option<String>,
    /// With a program, the column that data are drawn over
    #[arg(long, value_name = "COLUMN")]
    x: Option<String>,
    /// With a program, what the property of layers is called [default: value]
    #[arg(long, value_name = "NAME")]
    property: Option<String>,
    /// Processes of the program that run side by side [default: as many as threads]
    #[arg(long, value_name = "N")]
    processes: Option<usize>,
    /// How long one answer of the program may take, in seconds [default: 60]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// What becomes of rows with missing values; with a program, drop keeps the row and its value does not count [default: error]
    #[arg(long, value_enum)]
    missing: Option<MissingName>,
    /// Words for a missing value beside the usual ones: an empty cell, NA, N/A, NaN, null, . and ?
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    missing_values: Vec<String>,
}

impl LayerArgs {
    /// Changes what the options name.
    fn apply(self, source: &mut SourceConfig, asked: &mut LayersConfig) {
        let Self {
            data: _,
            forward,
            max_layers,
            count_prior,
            depth_prior,
            value_prior,
            errors,
            factor_prior,
            relative_error,
            period,
            frequency,
            resistivity,
            resistivity_error,
            phase,
            phase_error,
            value,
            error,
            x,
            property,
            processes,
            timeout,
            missing,
            missing_values,
        } = self;
        asked.forward = forward;
        replace(&mut asked.max_layers, &max_layers);
        replace(&mut asked.count_prior, &count_prior);
        replace(&mut asked.relative_error, &relative_error);
        replace(&mut asked.property, &property);
        replace(&mut asked.timeout, &timeout);
        asked.processes = processes.or(asked.processes);
        asked.errors = errors.or(asked.errors);
        asked.prior.depth = depth_prior.or(asked.prior.depth.take());
        asked.prior.value = value_prior.or(asked.prior.value.take());
        asked.prior.factor = factor_prior.or(asked.prior.factor.take());
        let before = std::mem::take(&mut asked.columns);
        asked.columns = LayerColumns {
            period: period.or(before.period),
            frequency: frequency.or(before.frequency),
            resistivity: resistivity.or(before.resistivity),
            resistivity_error: resistivity_error.or(before.resistivity_error),
            phase: phase.or(before.phase),
            phase_error: phase_error.or(before.phase_error),
            x: x.or(before.x),
            value: value.or(before.value),
            error: error.or(before.error),
        };
        let missing = missing.map(|missing| match missing {
            MissingName::Error => Missing::Error,
            MissingName::Drop => Missing::Drop,
        });
        replace(&mut source.missing, &missing);
        replace_list(&mut source.missing_values, missing_values);
    }
}

fn errors(text: &str) -> Result<Errors, String> {
    match text {
        "known" => Ok(Errors::Known),
        "scaled" => Ok(Errors::Scaled),
        _ => Err("known or scaled is needed".into()),
    }
}

//! Options of commands that train, and how they become settings.

use std::path::PathBuf;

use clap::Args;
use vti::problem::selection::{CoefficientPrior, Likelihood, ModelPrior};

use crate::config::{Config, ConfigError, Precision, ProblemConfig, SelectConfig, SourceConfig};
use crate::failure::Usage;

/// Steps of a run that only its time limits.
pub(crate) const AS_MANY_AS_FIT: u64 = 1_000_000;

/// Options of every command that trains.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Run")]
pub(crate) struct RunArgs {
    /// The run directory; by default the data's or config's name with .vti
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace what is in the run directory
    #[arg(long, conflicts_with = "resume")]
    pub(crate) force: bool,
    /// Go on where an interrupted run stopped; the answer is that of a run that was never interrupted
    #[arg(long)]
    pub(crate) resume: bool,
    /// Seed of all randomness
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(crate) seed: Option<u64>,
    /// Training steps
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: Option<u64>,
    /// Time for training, e.g. 60s, 5m, 1h; as many steps are planned as fit in, at most those of --steps
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) time_limit: Option<f64>,
    /// Threads; 0: as many as there are cores
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Where to compute: cpu
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    /// Precision of networks
    #[arg(long, value_enum)]
    pub(crate) precision: Option<Precision>,
    /// Train from so many seeds and keep the best
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) replicates: Option<u64>,
    /// Change any setting, e.g. --set train.batch=512
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print summary.json instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Say nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl RunArgs {
    /// Changes what the options name. They come after --set, and so win over it.
    pub(crate) fn apply(&self, config: &mut Config) {
        let Self {
            out,
            force: _,
            resume: _,
            seed,
            steps,
            time_limit,
            threads,
            device,
            precision,
            replicates,
            set: _,
            json: _,
            quiet: _,
        } = self;
        let Config { problem, train, machine, output, .. } = config;
        replace(&mut train.seed, seed);
        replace(&mut train.steps, steps);
        train.time_limit = time_limit.or(train.time_limit);
        if train.time_limit.is_some() && steps.is_none() && train.steps == problem.default_train().steps {
            train.steps = AS_MANY_AS_FIT;
        }
        replace(&mut machine.threads, threads);
        replace(&mut machine.device, device);
        replace(&mut machine.precision, precision);
        replace(&mut machine.replicates, &replicates.map(|count| count as usize));
        output.dir = out.clone().or(output.dir.take());
    }
}

fn replace<T: Clone>(place: &mut T, value: &Option<T>) {
    if let Some(value) = value {
        place.clone_from(value);
    }
}

/// What is assumed about a table, once it is known which column is the response.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProblemArgs {
    /// What is assumed about the response: gaussian, gaussian:SIGMA, robust, robust:ALPHA,S1,S2, student-t:DF, logistic,
    /// poisson [default: gaussian]
    #[arg(long, requires = "response", value_parser = likelihood)]
    pub(crate) likelihood: Option<Likelihood>,
    /// Prior of the coefficients: g, g:G, normal:SCALE [default: g]
    #[arg(long, requires = "response", value_parser = prior)]
    pub(crate) prior: Option<CoefficientPrior>,
    /// Prior of the models: uniform, bernoulli:P, beta-binomial:A,B [default: uniform]
    #[arg(long, requires = "response", value_parser = model_prior)]
    pub(crate) model_prior: Option<ModelPrior>,
    /// Only these columns take part
    #[arg(long, requires = "response", value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) include: Vec<String>,
    /// These columns do not take part
    #[arg(long, requires = "response", value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) exclude: Vec<String>,
    /// These columns are in every model
    #[arg(long, requires = "response", value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) always: Vec<String>,
    /// These columns hold categories, though they are numbers
    #[arg(long, requires = "response", value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) categorical: Vec<String>,
    /// Leave columns as they were measured
    #[arg(long, requires = "response")]
    pub(crate) no_standardize: bool,
}

impl ProblemArgs {
    /// Changes what the options name.
    fn apply(&self, source: &mut SourceConfig, problem: &mut SelectConfig) {
        let Self { likelihood, prior, model_prior, include, exclude, always, categorical, no_standardize } = self;
        replace(&mut problem.likelihood, likelihood);
        replace(&mut problem.prior, prior);
        replace(&mut problem.model_prior, model_prior);
        for (place, listed) in [
            (&mut source.include, include),
            (&mut source.exclude, exclude),
            (&mut problem.always, always),
            (&mut problem.categorical, categorical),
        ] {
            if !listed.is_empty() {
                place.clone_from(listed);
            }
        }
        problem.standardize &= !no_standardize;
    }
}

/// A question for commands that do not train: a table with its response, or a configuration.
#[derive(Args, Clone, Debug)]
pub(crate) struct QuestionArgs {
    /// A table (with --response), or a configuration file
    pub(crate) input: String,
    /// The column that is to be explained
    #[arg(long, value_name = "COLUMN")]
    pub(crate) response: Option<String>,
    #[command(flatten)]
    pub(crate) problem: ProblemArgs,
    /// Threads; 0: as many as there are cores
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
}

impl QuestionArgs {
    pub(crate) fn settings(self) -> anyhow::Result<Config> {
        let Self { input, response, problem, threads } = self;
        let mut config = match (response, input.ends_with(".toml")) {
            (Some(response), false) => {
                let (mut source, mut asked) = (SourceConfig::all(&input), SelectConfig::new(&response));
                problem.apply(&mut source, &mut asked);
                Config::new(source, ProblemConfig::Select(asked))
            }
            (None, true) => Config::read(input.as_ref(), &[])?,
            (None, false) => {
                return Err(Usage(format!("{input}: which column is the response?\nhint: --response COLUMN")).into());
            }
            (Some(_), true) => {
                let hint = "hint: leave --response out";
                return Err(Usage(format!("{input}: a configuration names the response itself\n{hint}")).into());
            }
        };
        replace(&mut config.machine.threads, &threads);
        Ok(config)
    }
}

/// `vti select`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SelectArgs {
    /// A CSV or Parquet file; its first line holds the names of the columns
    pub(crate) data: String,
    /// The column that is to be explained
    #[arg(long, value_name = "COLUMN")]
    pub(crate) response: String,
    #[command(flatten)]
    pub(crate) problem: ProblemArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

impl SelectArgs {
    pub(crate) fn settings(self) -> Result<(Config, RunArgs), ConfigError> {
        let Self { data, response, problem, run } = self;
        let asked = ProblemConfig::Select(SelectConfig::new(&response));
        let mut config = Config::new(SourceConfig::all(&data), asked).with(&run.set)?;
        config.source.data = data;
        let ProblemConfig::Select(asked) = &mut config.problem;
        asked.response = response;
        problem.apply(&mut config.source, asked);
        run.apply(&mut config);
        Ok((config, run))
    }
}

/// `vti fit`.
#[derive(Args, Clone, Debug)]
pub(crate) struct FitArgs {
    /// A configuration file; `vti init select` prints an example
    pub(crate) config: PathBuf,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

impl FitArgs {
    pub(crate) fn settings(self) -> Result<(Config, RunArgs), ConfigError> {
        let Self { config, run } = self;
        let mut settings = Config::read(&config, &run.set)?;
        run.apply(&mut settings);
        settings.output.dir.get_or_insert_with(|| config.with_extension("vti"));
        Ok((settings, run))
    }
}

/// Seconds from `90`, `90s`, `1.5m`, `2h`.
fn seconds(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(place) => text.split_at(place),
        None => (text, "s"),
    };
    let factor = match unit {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("{unit} is not a unit of time; there are s, m and h")),
    };
    match number.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value * factor),
        _ => Err("a positive number with s, m or h is needed, for instance 60s".into()),
    }
}

/// A name with numbers: `name` or `name:1,2`.
fn parts<const N: usize>(text: &str, expected: &str) -> Result<Option<[f64; N]>, String> {
    let Some((_, numbers)) = text.split_once(':') else { return Ok(None) };
    let numbers: Result<Vec<f64>, _> = numbers.split(',').map(|number| number.trim().parse()).collect();
    let numbers = numbers.map_err(|_| format!("numbers are needed: {expected}"))?;
    <[f64; N]>::try_from(numbers)
        .map(Some)
        .map_err(|found| format!("{} numbers instead of {N}: {expected}", found.len()))
}

fn likelihood(text: &str) -> Result<Likelihood, String> {
    match text.split(':').next().unwrap_or_default() {
        "gaussian" => Ok(Likelihood::Gaussian { sigma: parts(text, "gaussian:SIGMA")?.map(|[sigma]| sigma) }),
        "robust" => {
            // The paper's.
            let [alpha, sigma1, sigma2] = parts(text, "robust:ALPHA,S1,S2")?.unwrap_or([0.1, 1.0, 10.0]);
            Ok(Likelihood::Robust { alpha, sigma1, sigma2 })
        }
        "student-t" => match parts(text, "student-t:DF")? {
            Some([df]) => Ok(Likelihood::StudentT { df }),
            None => Err("degrees of freedom are needed: student-t:DF".into()),
        },
        "logistic" if !text.contains(':') => Ok(Likelihood::Logistic {}),
        "poisson" if !text.contains(':') => Ok(Likelihood::Poisson {}),
        _ => {
            Err("there are gaussian, gaussian:SIGMA, robust, robust:ALPHA,S1,S2, student-t:DF, logistic, poisson"
                .into())
        }
    }
}

fn prior(text: &str) -> Result<CoefficientPrior, String> {
    match text.split(':').next().unwrap_or_default() {
        "g" => Ok(CoefficientPrior::G { g: parts(text, "g:G")?.map(|[g]| g) }),
        "normal" => match parts(text, "normal:SCALE")? {
            Some([scale]) => Ok(CoefficientPrior::Normal { scale }),
            None => Err("a standard deviation is needed: normal:SCALE".into()),
        },
        _ => Err("there are g, g:G and normal:SCALE".into()),
    }
}

fn model_prior(text: &str) -> Result<ModelPrior, String> {
    match text.split(':').next().unwrap_or_default() {
        "uniform" if !text.contains(':') => Ok(ModelPrior::Uniform {}),
        "bernoulli" => match parts(text, "bernoulli:P")? {
            Some([p]) => Ok(ModelPrior::Bernoulli { p }),
            None => Err("a probability is needed: bernoulli:P".into()),
        },
        "beta-binomial" => match parts(text, "beta-binomial:A,B")? {
            Some([a, b]) => Ok(ModelPrior::BetaBinomial { a, b }),
            None => Err("two shapes are needed: beta-binomial:A,B".into()),
        },
        _ => Err("there are uniform, bernoulli:P and beta-binomial:A,B".into()),
    }
}

//! Options of `vti select`, and of commands that ask the same without training.

use clap::Args;
use vti::problem::selection::{CoefficientPrior, Likelihood, ModelPrior};
use vti::space::Heredity;

use super::{RunArgs, name_directory, replace, replace_list};
use crate::config::{Config, ConfigError, ProblemConfig, SelectConfig, SourceConfig};
use crate::data::Missing;
use crate::failure::Usage;

/// What is assumed about a table, once it is known which column is the response.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProblemArgs {
    /// What is assumed about the response: gaussian, gaussian:SIGMA, robust (normal errors of
    /// standard deviation σ, a tenth of them 10σ; σ is learned), robust:ALPHA,S1,S2 (a share of ALPHA has S2 instead of S1,
    /// both in the units of the response), student-t:DF, logistic (two values), multinomial (one of several
    /// categories, compared with the first), poisson, negative-binomial, negative-binomial:SIZE (variance mean + mean²/SIZE, SIZE being learned unless it is given) [default: gaussian]
    #[arg(long, requires = "response", value_parser = likelihood)]
    pub(crate) likelihood: Option<Likelihood>,
    /// Prior of the coefficients: g, g:G, hyper-g, hyper-g:A, hyper-g-n, hyper-g-n:A, zellner-siow, normal:SCALE [default: g].
    /// With g and its mixtures the intercept is flat and p(σ) ∝ 1/σ where σ is unknown; mixtures (A is 3 by default) are for
    /// gaussian. With normal the intercept is normal too, and log σ is normal around that of the response (of robust errors
    /// around that of 1.48 times its median absolute deviation), with standard deviation 1
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
    /// This column is added to every row's linear predictor as it is, and is no covariate; taken from the response where
    /// the likelihood is gaussian, robust or student-t
    #[arg(long, requires = "response", value_name = "COLUMN")]
    pub(crate) offset: Option<String>,
    /// Counts are proportional to this column (time, area, people): its logarithm is added to every row's linear predictor
    #[arg(long, requires = "response", value_name = "COLUMN")]
    pub(crate) exposure: Option<String>,
    /// Rows count as often as this column says: a row of weight 2 is there twice (frequencies, whole or not, no precisions)
    #[arg(long, requires = "response", value_name = "COLUMN")]
    pub(crate) weights: Option<String>,
    /// Which terms may matter, by a formula: a, a:b and a:b:c (products), a*b (a, b and a:b), a^2 (square), . (all columns),
    /// (a+b+c)^2 and .^2 (each and all pairs), (a+b+c)^3 (and products of three), (a+b):c; separated by commas; `…` around names with such signs. Means are taken from numbers
    /// before they are multiplied, unless columns are left as they were measured; categories are multiplied level by level.
    /// Without it: all columns
    #[arg(long, requires = "response", value_name = "FORMULA")]
    pub(crate) terms: Option<String>,
    /// Which models may have a product or a square of --terms. strong: those that have all its columns. weak: those that have
    /// one of them. none: all [default: strong]
    #[arg(long, requires = "response", value_name = "HEREDITY", value_parser = heredity)]
    pub(crate) heredity: Option<Heredity>,
    /// What becomes of missing values. error: they are counted and refused. drop: their rows are left out. indicator: the
    /// column's mean stands for them, and a term NAME_missing says where [default: error]
    #[arg(long, requires = "response", value_enum)]
    pub(crate) missing: Option<Missing>,
    /// Words that stand for missing values, beside the usual ones: an empty cell, NA, N/A, NaN, null, . and ?
    #[arg(long, requires = "response", value_name = "WORDS", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) missing_values: Vec<String>,
    /// Leave columns as they were measured
    #[arg(long, requires = "response")]
    pub(crate) no_standardize: bool,
}

impl ProblemArgs {
    /// Changes what the options name.
    fn apply(&self, source: &mut SourceConfig, problem: &mut SelectConfig) {
        let Self {
            likelihood,
            prior,
            model_prior,
            include,
            exclude,
            always,
            categorical,
            offset,
            exposure,
            weights,
            terms,
            heredity,
            missing,
            missing_values,
            no_standardize,
        } = self;
        replace(&mut source.missing, missing);
        replace(&mut problem.heredity, heredity);
        for (place, named) in [
            (&mut problem.offset, offset),
            (&mut problem.exposure, exposure),
            (&mut problem.weights, weights),
            (&mut problem.terms, terms),
        ] {
            replace(place, &named.clone().map(Some));
        }
        replace(&mut problem.likelihood, likelihood);
        replace(&mut problem.prior, prior);
        replace(&mut problem.model_prior, model_prior);
        for (place, listed) in [
            (&mut source.include, include),
            (&mut source.exclude, exclude),
            (&mut source.missing_values, missing_values),
            (&mut problem.always, always),
            (&mut problem.categorical, categorical),
        ] {
            replace_list(place, listed.clone());
        }
        problem.standardize &= !no_standardize;
    }
}

/// A question for commands that do not train: a table with its response, or a configuration.
#[derive(Args, Clone, Debug)]
pub(crate) struct QuestionArgs {
    /// A table (with --response), or a configuration file
    #[arg(required = true)]
    pub(crate) input: Option<String>,
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
        // It is there unless a subcommand has taken its place.
        let input = input.unwrap_or_default();
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
    /// A CSV or Parquet file, or - for standard input; its first line holds the names of the columns
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
        if let ProblemConfig::Select(asked) = &mut config.problem {
            asked.response = response;
            problem.apply(&mut config.source, asked);
        }
        run.apply(&mut config);
        name_directory(&mut config);
        Ok((config, run))
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
            let known = |[alpha, sigma1, sigma2]: [f64; 3]| Likelihood::Robust {
                alpha,
                sigma1: Some(sigma1),
                sigma2: Some(sigma2),
            };
            Ok(parts(text, "robust:ALPHA,S1,S2")?.map_or(Likelihood::ROBUST, known))
        }
        "student-t" => match parts(text, "student-t:DF")? {
            Some([df]) => Ok(Likelihood::StudentT { df }),
            None => Err("degrees of freedom are needed: student-t:DF".into()),
        },
        "logistic" if !text.contains(':') => Ok(Likelihood::Logistic {}),
        "multinomial" if !text.contains(':') => Ok(Likelihood::Multinomial {}),
        "poisson" if !text.contains(':') => Ok(Likelihood::Poisson {}),
        "negative-binomial" => {
            Ok(Likelihood::NegativeBinomial { size: parts(text, "negative-binomial:SIZE")?.map(|[size]| size) })
        }
        _ => {
            Err("there are gaussian, gaussian:SIGMA, robust, robust:ALPHA,S1,S2, student-t:DF, logistic, multinomial, \
                  poisson, negative-binomial, negative-binomial:SIZE"
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
        "hyper-g" => Ok(CoefficientPrior::HyperG { a: a(parts(text, "hyper-g:A")?) }),
        "hyper-g-n" => Ok(CoefficientPrior::HyperGN { a: a(parts(text, "hyper-g-n:A")?) }),
        "zellner-siow" if !text.contains(':') => Ok(CoefficientPrior::ZellnerSiow {}),
        _ => Err("there are g, g:G, hyper-g, hyper-g:A, hyper-g-n, hyper-g-n:A, zellner-siow and normal:SCALE".into()),
    }
}

/// a of a hyper-g prior.
fn a(given: Option<[f64; 1]>) -> f64 {
    given.map_or(CoefficientPrior::USUAL_A, |[a]| a)
}

fn heredity(text: &str) -> Result<Heredity, String> {
    match text {
        "none" => Ok(Heredity::None),
        "weak" => Ok(Heredity::Weak),
        "strong" => Ok(Heredity::Strong),
        _ => Err("there are none, weak and strong".into()),
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

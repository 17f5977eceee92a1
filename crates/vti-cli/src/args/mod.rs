//! Options of commands that train, and how they become settings.

mod changepoints;
mod dag;
mod layers;
mod mixture;
mod peaks;
mod select;

use std::path::PathBuf;

use clap::Args;
use vti::check::Depth;

pub(crate) use changepoints::{ChangeArgs, ChangePointsArgs, KindName};
pub(crate) use dag::{DagArgs, GraphArgs};
pub(crate) use layers::LayersArgs;
pub(crate) use mixture::MixtureArgs;
pub(crate) use peaks::{PeaksArgs, ShapeName};
pub(crate) use select::{QuestionArgs, SelectArgs};

use crate::config::{Config, ConfigError, Method, Precision};
use crate::data::STDIN;
use crate::rundir::Replace;
use crate::watch::Watch;

/// Steps of a run that only its time limits.
pub(crate) const AS_MANY_AS_FIT: u64 = 1_000_000;

/// How far a check looks beyond q.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Look {
    Full,
    Quick,
    None,
}

impl From<Look> for Depth {
    fn from(look: Look) -> Self {
        match look {
            Look::Full => Self::Full,
            Look::Quick => Self::Quick,
            Look::None => Self::None,
        }
    }
}

/// Options of every command that trains.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Run")]
pub(crate) struct RunArgs {
    /// The run directory; by default the data's or config's name with .vti. It must not be there yet, be empty, or hold an
    /// earlier run; vti-run.json in it lists the files that are the run's. Never the root, a home directory, a directory that
    /// holds the current one, or a symbolic link
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the run in the run directory: the files that it recorded are removed, all others stay. Also writes into a
    /// directory that is not of a run, beside what is there; where a file has the name of one that would be written, nothing is
    /// done, and the message says which
    #[arg(long, conflicts_with = "resume")]
    pub(crate) force: bool,
    /// Whether an earlier run may be replaced without being asked to.
    #[arg(skip)]
    pub(crate) again: bool,
    /// Go on where an interrupted run stopped; the answer is that of a run that was never interrupted
    #[arg(long)]
    pub(crate) resume: bool,
    /// How the answer is found. exact: by sums over all models, without training, so that options about training have no
    /// effect; for a Gaussian response with up to 20 optional terms, for linear graphs of up to 15 nodes, and for change points. search: by chains
    /// over models with exact evidences, without training, for a Gaussian response with any number of them. vti: learned.
    /// auto: the first of these that is possible [default: auto; of the demo: vti]
    #[arg(long, value_enum)]
    pub(crate) method: Option<Method>,
    /// How far the check looks beyond what was learned. full: until particles that know nothing of it agree with each other.
    /// quick: with a quarter of the effort. none: not at all, and nothing is then trusted but what the exact answer confirms [default: full]
    #[arg(long, value_enum)]
    pub(crate) check: Option<Look>,
    /// Seed of all randomness
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(crate) seed: Option<u64>,
    /// Training steps
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: Option<u64>,
    /// Time for everything, e.g. 60s, 5m, 1h: preparation, training, check and writing. As many steps are planned as fit in, at
    /// most those of --steps; what there is no time for is cut, and the verdict says so
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
    /// Leave cells of CSV files as they are, also those that a spreadsheet would take for formulas
    #[arg(long)]
    pub(crate) raw_csv: bool,
    /// Who watches the run, where a program started it.
    #[arg(skip)]
    pub(crate) watch: Option<Watch>,
}

impl RunArgs {
    /// Options that were given and that a run without training does not heed.
    pub(crate) fn of_training(&self, method: Method) -> Vec<String> {
        let given = [
            ("--steps", self.steps.is_some()),
            ("--precision", self.precision.is_some()),
            ("--replicates", self.replicates.is_some()),
            ("--check", self.check.is_some()),
            ("--device", self.device.is_some()),
        ];
        let options = given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name.to_string());
        let sections = ["models.", "flow.", "train.steps", "train.batch", "train.replicates"];
        let sections: Vec<&str> = sections.into_iter().chain((method != Method::Search).then_some("search.")).collect();
        let sets = self.set.iter().filter(|set| sections.iter().any(|section| set.trim_start().starts_with(section)));
        options.chain(sets.map(|set| format!("--set {set}"))).collect()
    }

    /// What the run may take the place of.
    pub(crate) fn replace(&self) -> Replace {
        match (self.force, self.again) {
            (true, _) => Replace::Any,
            (false, true) => Replace::Run,
            (false, false) => Replace::Nothing,
        }
    }

    /// Changes what the options name. They come after --set, and so win over it.
    pub(crate) fn apply(&self, config: &mut Config) {
        let Self {
            out,
            force: _,
            again: _,
            resume: _,
            method,
            check: look,
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
            raw_csv,
            watch: _,
        } = self;
        let Config { problem, train, machine, check, output, .. } = config;
        replace(&mut check.opinion.depth, &look.map(Depth::from));
        replace(&mut train.seed, seed);
        replace(&mut train.steps, steps);
        train.time_limit = time_limit.or(train.time_limit);
        if train.time_limit.is_some() && steps.is_none() && train.steps == problem.default_train().steps {
            train.steps = AS_MANY_AS_FIT;
        }
        replace(&mut machine.method, method);
        replace(&mut machine.threads, threads);
        replace(&mut machine.device, device);
        replace(&mut machine.precision, precision);
        replace(&mut machine.replicates, &replicates.map(|count| count as usize));
        output.raw_csv |= raw_csv;
        output.dir = out.clone().or(output.dir.take());
    }
}

fn replace<T: Clone>(place: &mut T, value: &Option<T>) {
    if let Some(value) = value {
        place.clone_from(value);
    }
}

/// Where a run of standard input goes: it has no name of its own.
fn name_directory(config: &mut Config) {
    if config.source.data == STDIN {
        config.output.dir.get_or_insert_with(|| "stdin.vti".into());
    }
}

/// A list that was given.
fn replace_list<T>(place: &mut Vec<T>, listed: Vec<T>) {
    if !listed.is_empty() {
        *place = listed;
    }
}

/// `vti fit`.
#[derive(Args, Clone, Debug)]
pub(crate) struct FitArgs {
    /// A configuration file; `vti init KIND` prints an example
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

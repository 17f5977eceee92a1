//! Runs for programs that are no command, such as the Python package: asked by the same words, watched, and read again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, anyhow};
use clap::{CommandFactory, Parser};
use vti::answer::{Answer, Samples};
use vti::check::Depth;
use vti::device::Device;
use vti::problem::Problem;
use vti_report::files;

use crate::args::RunArgs;
use crate::budget::Budget;
use crate::checking::Checking;
use crate::commands::check::known_run;
use crate::commands::{log_prob, predict, sample};
use crate::conclude::{self, Chains, Wanted};
use crate::config::{Config, OwnConfig, ProblemConfig, SourceConfig};
use crate::data::Source;
use crate::failure::{self, Ending, Usage};
use crate::progress;
use crate::question::{Job, Own, Question, compute_session, start};
use crate::run;
use crate::rundir::RunDir;
use crate::session::Session;
use crate::signals::Signals;
use crate::{Cli, Command};

pub use crate::commands::log_prob::PointDensity;
pub use crate::data::{Table, Values};
pub use crate::watch::{Told, Watch};

/// What the arguments of a request call a table that is handed over.
pub const TABLE: &str = SourceConfig::KEPT;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// In words, with a hint on a line of its own where there is one.
    pub message: String,
    /// Whose it is to mend.
    pub fault: Fault,
}

/// Whose an error is to mend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The caller's: what was asked, the settings, or the data.
    Input,
    /// A file is not there.
    NotFound,
    /// The machine's, or ours.
    Other,
}

/// A column of numbers with its name.
pub type Column = (String, Vec<f64>);

impl From<anyhow::Error> for ApiError {
    fn from(error: anyhow::Error) -> Self {
        let fault = if failure::is_not_found(&error) {
            Fault::NotFound
        } else if failure::is_input(&error) {
            Fault::Input
        } else {
            Fault::Other
        };
        Self { message: failure::message(&error), fault }
    }
}

/// A run that is asked for.
pub struct Request {
    config: Config,
    args: RunArgs,
    own: Option<Arc<dyn Problem>>,
}

/// Options of a run without a command.
#[derive(Parser)]
#[command(name = "vti", no_binary_name = true, disable_help_flag = true)]
struct Options {
    #[command(flatten)]
    run: RunArgs,
}

impl Request {
    /// What the arguments of a command ask for that makes a run. Where a table is handed over, its file is called [`TABLE`].
    pub fn of_arguments(arguments: &[String], table: Option<Table>) -> Result<Self, ApiError> {
        let words = std::iter::once("vti").chain(arguments.iter().map(String::as_str));
        let Command::Asked(asked) = Cli::try_parse_from(words).map_err(|error| parsed(&error))?.command else {
            return Err(anyhow!("{}: not a command that makes a run", arguments.join(" ")).into());
        };
        let (config, args) = asked.settings()?;
        Ok(Self { config, args, own: None }.with_table(table))
    }

    /// What a configuration asks for, as JSON; `options` are those of `vti fit`.
    pub fn of_config(json: &str, options: &[String], table: Option<Table>) -> Result<Self, ApiError> {
        let args = Options::try_parse_from(options).map_err(|error| parsed(&error))?.run;
        let settings: toml::Table = serde_json::from_str(json)
            .map_err(|error| Usage(format!("not a configuration: {error}")))
            .map_err(anyhow::Error::from)?;
        let mut settings = settings;
        if table.is_some()
            && let Some(problem) = settings.get_mut("problem").and_then(toml::Value::as_table_mut)
        {
            problem.insert("data".into(), TABLE.into());
        }
        let mut config =
            Config::parse("the configuration", &settings.to_string(), &args.set).map_err(anyhow::Error::from)?;
        args.apply(&mut config);
        Ok(Self { config, args, own: None }.with_table(table))
    }

    /// What a density of one's own asks for; `name` tells people which.
    pub fn of_problem(
        problem: Arc<dyn Problem>,
        (name, title): (&str, Option<String>),
        options: &[String],
    ) -> Result<Self, ApiError> {
        let args = Options::try_parse_from(options).map_err(|error| parsed(&error))?.run;
        let asked = ProblemConfig::Own(OwnConfig { title });
        let mut config = Config::new(SourceConfig::all(name), asked).with(&args.set).map_err(anyhow::Error::from)?;
        args.apply(&mut config);
        Ok(Self { config, args, own: Some(problem) })
    }

    fn with_table(mut self, table: Option<Table>) -> Self {
        if table.is_some() {
            self.config.source.data = TABLE.into();
            self.config.source.table = table;
        }
        self
    }

    /// Runs to its end, or until it is stopped: what there is by then is concluded, without a look beyond it.
    pub fn run(self, watch: &Watch) -> Result<Run, ApiError> {
        let Self { config, mut args, own } = self;
        (args.watch, args.quiet) = (Some(watch.clone()), true);
        let place = run::directory(&config);
        let ending = match &own {
            None => run::run(config, &args)?,
            Some(problem) => {
                let question = Own::new(Arc::clone(problem));
                run::run_by(config, &args, |config, job| compute_session(Session::of(config, question)?, job))?
            }
        };
        let mut found = Run::open(&place)?;
        found.own = own;
        if ending == Ending::Interrupted && found.is_behind()? {
            found.conclude(watch)?;
        }
        Ok(found)
    }
}

/// What is wrong with arguments, without the words for a terminal.
fn parsed(error: &clap::Error) -> ApiError {
    let text = error.to_string();
    let said = text.split("\n\nUsage:").next().unwrap_or_default().split("\n\nFor more information").next();
    let message = said.unwrap_or_default().trim().trim_start_matches("error: ").replace("  tip: ", "hint: ");
    ApiError { message, fault: Fault::Input }
}

/// Options of a command: their names, and whether they take a value.
pub fn options(command: &str) -> Vec<(String, bool)> {
    let all = Cli::command();
    let Some(command) = all.find_subcommand(command) else { return Vec::new() };
    let named = command.get_arguments().filter_map(|option| Some((option.get_long()?.to_string(), option)));
    named.map(|(name, option)| (name, option.get_action().takes_values())).collect()
}

/// A run that is finished, or as far as it has come.
pub struct Run {
    dir: RunDir,
    config: Config,
    own: Option<Arc<dyn Problem>>,
}

impl Run {
    /// The run in a directory, whoever made it.
    pub fn open(path: &Path) -> Result<Self, ApiError> {
        let (dir, config) = RunDir::open(path)?;
        Ok(Self { dir, config, own: None })
    }

    /// With the problem, where it is one of a program's own.
    pub fn with_problem(self, problem: Arc<dyn Problem>) -> Self {
        Self { own: Some(problem), ..self }
    }

    /// Its directory.
    pub fn path(&self) -> PathBuf {
        self.dir.path().into()
    }

    /// All settings, as TOML.
    pub fn settings(&self) -> Result<String, ApiError> {
        Ok(self.config.to_toml().map_err(anyhow::Error::from)?)
    }

    /// The answer.
    pub fn answer(&self) -> Result<Answer, ApiError> {
        Ok(self.dir.read_answer()?)
    }

    /// The draws that the answer was made of.
    pub fn draws(&self) -> Result<Samples, ApiError> {
        let (samples, _) = files::read_draws(&self.dir.draws()).map_err(anyhow::Error::from)?;
        Ok(samples)
    }

    /// The page.
    pub fn page(&self) -> Result<String, ApiError> {
        Ok(conclude::page_of(&self.dir, &self.config, &self.answer()?, &self.draws()?)?)
    }

    /// The figures of a section of the page as SVG, if it has any.
    pub fn figure(&self, section: &str) -> Result<Option<String>, ApiError> {
        let found = (&self.answer()?, &self.draws()?);
        Ok(conclude::figure_of(&self.dir, &self.config, found, section)?)
    }

    /// Fresh draws; another batch is of others.
    pub fn sample(&self, count: usize, batch: u32) -> Result<Samples, ApiError> {
        let mut found = None;
        self.start(Drawing { dir: &self.dir, count, batch, found: &mut found })?;
        Ok(found.ok_or_else(|| anyhow!("nothing was drawn"))?)
    }

    /// Log densities at the points that a table lists, as `vti log-prob` reads them.
    pub fn log_prob(&self, points: &Table) -> Result<Vec<PointDensity>, ApiError> {
        let mut found = Vec::new();
        self.start(Densities { dir: &self.dir, points: &Source::of_table("points", points), found: &mut found })?;
        Ok(found)
    }

    /// Predictions of new rows with intervals of this probability, as columns with their names, and what could not be read of the
    /// rows: these have no prediction, and numbers that are none.
    pub fn predict(&self, new: &Table, interval: f64) -> Result<(Vec<Column>, Option<String>), ApiError> {
        let source = || Ok(Source::of_table("new rows", new));
        let (found, note) = predict::of_run(&self.dir, &self.config, source, interval)?;
        Ok((found.columns(), note))
    }

    /// Whether there is no answer, or one of fewer steps than were done since.
    fn is_behind(&self) -> Result<bool> {
        let Ok(answer) = self.dir.read_answer() else { return Ok(true) };
        let last = progress::lines(&self.dir.progress())?.into_iter().map(|line| line.step).max();
        Ok(last.is_some_and(|step| step > answer.run.steps))
    }

    /// Concludes what was learned until it was stopped.
    fn conclude(&mut self, watch: &Watch) -> Result<(), ApiError> {
        // An answer of fewer steps would be asked what the run was.
        let _ = std::fs::remove_file(self.dir.summary());
        self.config.check.opinion.depth = Depth::None;
        self.config.check.lesson.rounds = 0;
        self.start(Conclusion { dir: &self.dir, watch })?;
        Ok(())
    }

    fn start(&self, job: impl Job) -> Result<Ending> {
        match &self.own {
            None => start(self.config.clone(), job),
            Some(problem) => compute_session(Session::of(self.config.clone(), Own::new(Arc::clone(problem)))?, job),
        }
    }
}

struct Drawing<'a> {
    dir: &'a RunDir,
    count: usize,
    batch: u32,
    found: &'a mut Option<Samples>,
}

impl Job for Drawing<'_> {
    fn run<Q: Question, D: Device>(self, session: Session<Q>, device: D) -> Result<Ending> {
        *self.found = Some(sample::draw(&session, self.dir, &device, self.count, self.batch)?);
        Ok(Ending::Done)
    }
}

struct Densities<'a> {
    dir: &'a RunDir,
    points: &'a Source,
    found: &'a mut Vec<PointDensity>,
}

impl Job for Densities<'_> {
    fn run<Q: Question, D: Device>(self, session: Session<Q>, device: D) -> Result<Ending> {
        *self.found = log_prob::of_run(&session, self.dir, &device, self.points)?;
        Ok(Ending::Done)
    }
}

struct Conclusion<'a> {
    dir: &'a RunDir,
    watch: &'a Watch,
}

impl Job for Conclusion<'_> {
    fn run<Q: Question, D: Device>(self, session: Session<Q>, device: D) -> Result<Ending> {
        let Self { dir, watch } = self;
        if !session.config.is_learned() {
            return Err(Usage("stopped before there was anything to tell".into()).into());
        }
        let _lock = dir.claim_run()?;
        let signals = Signals::of(Some(watch))?;
        session.heed(&signals);
        let posterior = session.posterior(dir, &device)?;
        let known = known_run(dir, &posterior, session.config.replicate(posterior.seed()))?;
        let checking = Checking::new(true, &*session.problem(), &signals, dir);
        let wanted = Wanted { chains: Chains::Settings, force: true };
        let watched = (checking, Budget::new(None));
        let found = conclude::conclude(&session, dir, &device, posterior, known, wanted, watched)?;
        found.tell(dir, conclude::Again::Option, (false, true))?;
        Ok(Ending::Interrupted)
    }
}

//! Configuration files: what to do, written out.

mod counting;
mod error;
mod layers;
mod problem;
mod read;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use vti::check::{CheckSettings, RefineSettings};
use vti::family::FamilySettings;
use vti::optimise::SettingError;
use vti::search::SearchSettings;
use vti::train::TrainSettings;

pub(crate) use counting::{MixtureConfig, PeaksConfig};
pub(crate) use error::ConfigError;
pub(crate) use layers::LayersConfig;
pub(crate) use problem::{ChangePointsConfig, DagConfig, OwnConfig, ProblemConfig, SelectConfig, SourceConfig};
use read::{AROUND_KEYS, Reader, set, take};

use crate::data::is_path;

/// Everything a run depends on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) problem: ProblemConfig,
    /// In the section `[problem]`.
    pub(crate) source: SourceConfig,
    /// In the sections `[models]` and `[flow]`.
    pub(crate) family: FamilySettings,
    pub(crate) train: TrainSettings,
    /// In the section `[train]`.
    pub(crate) machine: MachineConfig,
    pub(crate) check: CheckSettings,
    /// In the section `[check]`.
    pub(crate) chains: ChainsConfig,
    /// In the section `[search]`; its seed is that of `[train]`.
    pub(crate) search: SearchSettings,
    pub(crate) output: OutputConfig,
}

/// How to compute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MachineConfig {
    /// 0: as many as there are cores.
    pub(crate) threads: usize,
    pub(crate) device: String,
    pub(crate) precision: Precision,
    /// Runs from different seeds, of which the best is kept.
    pub(crate) replicates: usize,
    pub(crate) method: Method,
}

/// How the answer is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Method {
    // Without training where evidences are in closed form, and learned elsewhere.
    #[default]
    Auto,
    // By sums over all models, without training.
    Exact,
    // By chains over models with evidences in closed form, without training.
    Search,
    // Learned, and compared with the exact answer where that is cheap.
    Vti,
}

impl Default for MachineConfig {
    fn default() -> Self {
        Self { threads: 0, device: "cpu".into(), precision: Precision::F32, replicates: 1, method: Method::default() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Precision {
    F32,
    F64,
}

/// Chains that take over where importance weights are not enough.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ChainsConfig {
    pub(crate) refine: Refine,
    pub(crate) chains: RefineSettings,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Refine {
    /// Where the verdict is not to trust.
    #[default]
    Auto,
    Never,
}

/// Where results go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OutputConfig {
    /// The run directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dir: Option<PathBuf>,
    /// Seconds between checkpoints.
    pub(crate) checkpoint_every: f64,
    /// Leave cells of CSV files as they are, also those that spreadsheets would execute.
    pub(crate) raw_csv: bool,
}

impl Default for OutputConfig {
    fn default() -> Self {
        Self { dir: None, checkpoint_every: 30.0, raw_csv: false }
    }
}

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Config {
    /// A run with default settings.
    pub(crate) fn new(source: SourceConfig, problem: ProblemConfig) -> Self {
        Self {
            train: problem.default_train(),
            check: problem.default_check(),
            problem,
            source,
            family: FamilySettings::default(),
            machine: MachineConfig::default(),
            chains: ChainsConfig::default(),
            search: SearchSettings::default(),
            output: OutputConfig::default(),
        }
    }

    /// Reads a file and changes some of its keys. The path of the data is relative to the file, that of the run directory
    /// to where the program was started.
    pub(crate) fn read(path: &Path, changes: &[String]) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Io { file: file.clone(), error })?;
        let mut config = Self::parse(&file, &text, changes)?;
        if !matches!(config.problem, ProblemConfig::Own(_)) {
            config.source.data = beside(path, &config.source.data);
        }
        if let Some(Some(truth)) = config.problem.truth_mut() {
            *truth = beside(path, truth);
        }
        Ok(config)
    }

    /// What a file says, with some keys changed.
    pub(crate) fn parse(file: &str, text: &str, changes: &[String]) -> Result<Self, ConfigError> {
        let mut table: Table = toml::from_str(text)
            .map_err(|error| ConfigError::Syntax { file: file.into(), message: error.to_string() })?;
        for change in changes {
            set(&mut table, change)?;
        }
        Reader { file, text }.config(table)
    }

    /// The same with some keys changed.
    pub(crate) fn with(self, changes: &[String]) -> Result<Self, ConfigError> {
        if changes.is_empty() {
            return Ok(self);
        }
        let mut table = self.to_table()?;
        for change in changes {
            set(&mut table, change)?;
        }
        Reader { file: "--set", text: "" }.config(table)
    }

    fn to_table(&self) -> Result<Table, ConfigError> {
        let mut problem = section_table("problem", &self.problem)?;
        problem.extend(section_table("problem", &self.source)?);
        let mut flow = section_table("flow", &self.family.flow)?;
        flow.extend(take(&mut section_table("flow", &self.family)?, &AROUND_KEYS));
        let mut train = section_table("train", &self.train)?;
        train.extend(section_table("train", &self.machine)?);
        let mut check = section_table("check", &self.check)?;
        check.extend(section_table("check", &self.chains)?);
        let mut search = section_table("search", &self.search)?;
        search.remove("seed");
        let sections = [
            ("problem", problem),
            ("models", section_table("models", &self.family.models)?),
            ("flow", flow),
            ("train", train),
            ("check", check),
            ("search", search),
            ("output", section_table("output", &self.output)?),
        ];
        let version = ("version".to_string(), Value::from(VERSION));
        let sections = sections.into_iter().map(|(name, table)| (name.to_string(), Value::Table(table)));
        Ok(std::iter::once(version).chain(sections).collect())
    }

    /// As a file says it.
    pub(crate) fn to_toml(&self) -> Result<String, ConfigError> {
        toml::to_string(&self.to_table()?)
            .map_err(|error| ConfigError::Syntax { file: "config.toml".into(), message: error.to_string() })
    }

    /// Whether a run's answer was learned. Runs of earlier versions do not say, and were.
    pub(crate) fn is_learned(&self) -> bool {
        !matches!(self.machine.method, Method::Exact | Method::Search)
    }

    /// Which of several runs has this seed; they have seeds in a row.
    pub(crate) fn replicate(&self, seed: u64) -> Option<usize> {
        (self.machine.replicates > 1).then(|| seed.wrapping_sub(self.train.seed) as usize)
    }

    /// Refuses settings that would be found wrong only after training. The library knows the same limits.
    pub(crate) fn check_limits(&self) -> Result<(), ConfigError> {
        let replicates = self.machine.replicates;
        let replicates = SettingError::check("replicates", replicates as f64, replicates >= 1, "at least 1");
        for (section, found) in [
            ("train", replicates),
            ("train", self.train.check()),
            ("check", self.check.check()),
            ("check.chains", self.chains.chains.check()),
            ("search", self.search.check()),
        ] {
            found.map_err(|error| ConfigError::Limit { section, error })?;
        }
        Ok(())
    }

    /// Threads, counted.
    pub(crate) fn threads(&self) -> usize {
        match self.machine.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        }
    }
}

fn section_table(section: &str, value: &impl Serialize) -> Result<Table, ConfigError> {
    Table::try_from(value).map_err(|error| ConfigError::Section {
        file: "settings".into(),
        line: None,
        section: section.into(),
        message: error.to_string(),
    })
}

/// A path that a configuration names, as seen from where the program was started.
fn beside(config: &Path, named: &str) -> String {
    if Path::new(named).is_absolute() || !is_path(named) {
        return named.into();
    }
    config.parent().unwrap_or(Path::new("")).join(named).to_string_lossy().into_owned()
}

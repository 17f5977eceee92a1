//! Configuration files: what to do, written out.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use vti::check::{CheckSettings, RefineSettings};
use vti::family::{ContextSettings, FamilySettings, FlowKind, FrameSettings};
use vti::models::ModelsSettings;
use vti::optimise::SettingError;
use vti::problem::selection::{CoefficientPrior, Likelihood, ModelPrior, SelectionSettings};
use vti::train::TrainSettings;

use crate::data::{BUILTIN_PREFIX, Choice};
use crate::suggest::did_you_mean;

/// Everything a run depends on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) problem: ProblemConfig,
    pub(crate) models: ModelsSettings,
    pub(crate) flow: FlowKind,
    /// In the section `[flow]`.
    pub(crate) around: AroundFlow,
    pub(crate) train: TrainSettings,
    /// In the section `[train]`.
    pub(crate) machine: MachineConfig,
    pub(crate) check: CheckSettings,
    /// In the section `[check]`.
    pub(crate) chains: ChainsConfig,
    pub(crate) output: OutputConfig,
}

/// What is to be inferred.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProblemConfig {
    pub(crate) kind: ProblemKind,
    /// A CSV or Parquet file.
    pub(crate) data: String,
    pub(crate) response: String,
    #[serde(default)]
    pub(crate) include: Vec<String>,
    #[serde(default)]
    pub(crate) exclude: Vec<String>,
    #[serde(default)]
    pub(crate) always: Vec<String>,
    #[serde(default)]
    pub(crate) categorical: Vec<String>,
    #[serde(default = "yes")]
    pub(crate) standardize: bool,
    #[serde(default = "gaussian")]
    pub(crate) likelihood: Likelihood,
    #[serde(default)]
    pub(crate) prior: CoefficientPrior,
    #[serde(default)]
    pub(crate) model_prior: ModelPrior,
    /// Of the data's content, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fingerprint: Option<String>,
}

impl ProblemConfig {
    /// Variable selection with default assumptions.
    pub(crate) fn select(data: &str, response: &str) -> Self {
        let SelectionSettings { likelihood, prior, model_prior } = SelectionSettings::default();
        Self {
            kind: ProblemKind::Select,
            data: data.into(),
            response: response.into(),
            include: Vec::new(),
            exclude: Vec::new(),
            always: Vec::new(),
            categorical: Vec::new(),
            standardize: true,
            likelihood,
            prior,
            model_prior,
            fingerprint: None,
        }
    }
}

fn yes() -> bool {
    true
}

fn gaussian() -> Likelihood {
    SelectionSettings::default().likelihood
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProblemKind {
    Select,
}

/// What stands around a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AroundFlow {
    pub(crate) context: ContextSettings,
    pub(crate) frame: FrameSettings,
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
}

impl Default for MachineConfig {
    fn default() -> Self {
        Self { threads: 0, device: "cpu".into(), precision: Precision::F32, replicates: 1 }
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
}

impl Default for OutputConfig {
    fn default() -> Self {
        Self { dir: None, checkpoint_every: 30.0 }
    }
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("{file}: {error}")]
    Io { file: String, error: std::io::Error },
    #[error("{file}: {message}")]
    Syntax { file: String, message: String },
    #[error(
        "{file}: made by version {found}, this is version {}\nhint: settings may have changed their meaning; check them and take the line `version` out",
        VERSION
    )]
    Version { file: String, found: String },
    #[error("{file}: there is no section [problem]\nhint: `vti init select` prints an example")]
    NoProblem { file: String },
    #[error("{file}{}: unknown {}{}", at(*line), key_name(section, key), did_you_mean(key, names))]
    UnknownKey { file: String, line: Option<usize>, section: String, key: String, names: Vec<String> },
    #[error("{file}{}: [{section}] {message}", at(*line))]
    Section { file: String, line: Option<usize>, section: String, message: String },
    #[error("{section}.{error}\nhint: --set {section}.KEY=VALUE changes it")]
    Limit { section: &'static str, error: SettingError },
    #[error("--set {text}: {reason}\nhint: write section.key=value, for instance --set train.batch=512")]
    Set { text: String, reason: String },
}

fn at(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(":{line}"))
}

fn key_name(section: &str, key: &str) -> String {
    if section.is_empty() { format!("section or key {key}") } else { format!("key {key} in [{section}]") }
}

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Keys that stand in a section beside those of the library's settings.
const MACHINE_KEYS: [&str; 4] = ["threads", "device", "precision", "replicates"];
const CHAINS_KEYS: [&str; 2] = ["refine", "chains"];
const AROUND_KEYS: [&str; 2] = ["context", "frame"];

const SECTIONS: [&str; 6] = ["problem", "models", "flow", "train", "check", "output"];

impl Config {
    /// A run with default settings.
    pub(crate) fn new(problem: ProblemConfig) -> Self {
        let FamilySettings { flow, models, context, frame } = FamilySettings::default();
        Self {
            problem,
            models,
            flow,
            around: AroundFlow { context, frame },
            train: TrainSettings::default(),
            machine: MachineConfig::default(),
            check: CheckSettings::default(),
            chains: ChainsConfig::default(),
            output: OutputConfig::default(),
        }
    }

    /// Reads a file and changes some of its keys. The path of the data is relative to the file, that of the run directory
    /// to where the program was started.
    pub(crate) fn read(path: &Path, changes: &[String]) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Io { file: file.clone(), error })?;
        let mut table: Table = toml::from_str(&text)
            .map_err(|error| ConfigError::Syntax { file: file.clone(), message: error.to_string() })?;
        for change in changes {
            set(&mut table, change)?;
        }
        let mut config = Reader { file: &file, text: &text }.config(table)?;
        let data = Path::new(&config.problem.data);
        if data.is_relative() && !config.problem.data.starts_with(BUILTIN_PREFIX) {
            let beside = path.parent().unwrap_or(Path::new("")).join(data);
            config.problem.data = beside.to_string_lossy().into_owned();
        }
        Ok(config)
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
        let mut flow = section_table("flow", &self.flow)?;
        flow.extend(section_table("flow", &self.around)?);
        let mut train = section_table("train", &self.train)?;
        train.extend(section_table("train", &self.machine)?);
        let mut check = section_table("check", &self.check)?;
        check.extend(section_table("check", &self.chains)?);
        let sections = [
            ("problem", section_table("problem", &self.problem)?),
            ("models", section_table("models", &self.models)?),
            ("flow", flow),
            ("train", train),
            ("check", check),
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

    /// What is assumed.
    pub(crate) fn selection(&self) -> SelectionSettings {
        let ProblemConfig { likelihood, prior, model_prior, .. } = self.problem;
        SelectionSettings { likelihood, prior, model_prior }
    }

    /// Which columns take part.
    pub(crate) fn choice(&self) -> Choice {
        let ProblemConfig { response, include, exclude, always, categorical, .. } = self.problem.clone();
        Choice { response, include, exclude, always, categorical }
    }

    /// The family.
    pub(crate) fn family(&self) -> FamilySettings {
        let AroundFlow { context, frame } = self.around;
        FamilySettings { flow: self.flow.clone(), models: self.models.clone(), context, frame }
    }

    /// The same with choices written out.
    pub(crate) fn with_family(mut self, family: &FamilySettings) -> Self {
        let FamilySettings { flow, models, context, frame } = family.clone();
        (self.flow, self.models, self.around) = (flow, models, AroundFlow { context, frame });
        self
    }

    /// Refuses settings that would be found wrong only after training. The library knows the same limits.
    pub(crate) fn check_limits(&self) -> Result<(), ConfigError> {
        let replicates = self.machine.replicates;
        let replicates = SettingError::check("replicates", replicates as f64, replicates >= 1, "at least 1");
        for (section, found) in
            [("train", replicates), ("check", self.check.check()), ("check.chains", self.chains.chains.check())]
        {
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

/// Changes a key: `section.key=value`, the value as TOML, or else as text.
fn set(table: &mut Table, text: &str) -> Result<(), ConfigError> {
    let wrong = |reason: &str| ConfigError::Set { text: text.into(), reason: reason.into() };
    let (key, value) = text.split_once('=').ok_or_else(|| wrong("there is no `=`"))?;
    let value = value.trim();
    let value = match toml::from_str::<Table>(&format!("value = {value}")) {
        Ok(mut parsed) => parsed.remove("value").ok_or_else(|| wrong("there is no value"))?,
        Err(_) => Value::from(value),
    };
    let mut keys: Vec<&str> = key.trim().split('.').collect();
    let last = keys.pop().filter(|last| !last.is_empty()).ok_or_else(|| wrong("there is no key"))?;
    if keys.is_empty() {
        return Err(wrong("the key needs a section"));
    }
    let mut place = table;
    for key in keys {
        let next = place.entry(key).or_insert_with(|| Value::Table(Table::new()));
        place = next.as_table_mut().ok_or_else(|| wrong("the key is below another that is no section"))?;
    }
    place.insert(last.into(), value);
    Ok(())
}

/// Turns tables into settings, and says where something is wrong.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    fn config(&self, mut table: Table) -> Result<Config, ConfigError> {
        if let Some(found) = table.remove("version").filter(|found| found.as_str() != Some(VERSION)) {
            let found = found.as_str().map_or_else(|| found.to_string(), String::from);
            return Err(ConfigError::Version { file: self.file.into(), found });
        }
        if let Some(key) = table.keys().find(|key| !SECTIONS.contains(&key.as_str())) {
            return Err(self.unknown("", key, SECTIONS.map(String::from).to_vec()));
        }
        if !table.contains_key("problem") {
            return Err(ConfigError::NoProblem { file: self.file.into() });
        }
        let mut tables = SECTIONS.map(|name| (name, Table::new()));
        for (name, place) in &mut tables {
            match table.remove(*name) {
                None => {}
                Some(Value::Table(found)) => *place = found,
                Some(_) => return Err(self.wrong(name, None, "is a section, not a value")),
            }
        }
        let [problem, mut models, mut flow, mut train, mut check, output] = tables.map(|(_, table)| table);
        let machine = take(&mut train, &MACHINE_KEYS);
        let chains = take(&mut check, &CHAINS_KEYS);
        let around = take(&mut flow, &AROUND_KEYS);
        if train.contains_key("checkpoint") {
            let message =
                "checkpoint is not a setting: the run directory holds it\nhint: output.checkpoint_every says how often";
            return Err(self.wrong("train", self.line("train", "checkpoint"), message));
        }
        for table in [&mut models, &mut flow] {
            table.entry("kind").or_insert_with(|| Value::from("auto"));
        }
        Ok(Config {
            problem: self.section("problem", problem, &[])?,
            models: self.section("models", models, &[])?,
            flow: self.section("flow", flow, &AROUND_KEYS)?,
            around: self.section("flow", around, &[])?,
            train: self.section("train", train, &MACHINE_KEYS)?,
            machine: self.section("train", machine, &[])?,
            check: self.section("check", check, &CHAINS_KEYS)?,
            chains: self.section("check", chains, &[])?,
            output: self.section("output", output, &[])?,
        })
    }

    /// Settings of a section; `others` are keys of it that belong to other settings.
    fn section<T: DeserializeOwned>(&self, name: &str, table: Table, others: &[&str]) -> Result<T, ConfigError> {
        Value::Table(table).try_into().map_err(|error| self.explain(name, &error, others))
    }

    /// What serde did not like, in our words.
    fn explain(&self, section: &str, error: &toml::de::Error, others: &[&str]) -> ConfigError {
        let message = error.message();
        let quoted: Vec<String> = message.split('`').skip(1).step_by(2).map(String::from).collect();
        if let (true, [key, names @ ..]) = (message.starts_with("unknown field"), &quoted[..]) {
            let names = names.iter().cloned().chain(others.iter().map(|other| (*other).to_string())).collect();
            return self.unknown(section, key, names);
        }
        let line = quoted.first().and_then(|key| self.line(section, key));
        let message = message.replace("missing field", "needs the key").trim().to_string();
        self.wrong(section, line, &message)
    }

    fn unknown(&self, section: &str, key: &str, names: Vec<String>) -> ConfigError {
        let line = self.line(section, key);
        ConfigError::UnknownKey { file: self.file.into(), line, section: section.into(), key: key.into(), names }
    }

    fn wrong(&self, section: &str, line: Option<usize>, message: &str) -> ConfigError {
        ConfigError::Section { file: self.file.into(), line, section: section.into(), message: message.into() }
    }

    /// The line of a key in its section; of a section where there is no section before it.
    fn line(&self, section: &str, key: &str) -> Option<usize> {
        let mut current = "";
        for (index, line) in self.text.lines().enumerate() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                current = name.trim();
                if section.is_empty() && current == key {
                    return Some(index + 1);
                }
                continue;
            }
            let found = line.split('=').next().unwrap_or_default().trim();
            let inside = current == section || current.starts_with(&format!("{section}."));
            if inside && (found == key || found.starts_with(&format!("{key}."))) {
                return Some(index + 1);
            }
        }
        None
    }
}

/// Takes some keys out of a table.
fn take(table: &mut Table, keys: &[&str]) -> Table {
    keys.iter().filter_map(|key| table.remove_entry(*key)).collect()
}

//! The run directory: its files, each written whole or not at all, and none that is not ours.

mod lock;
mod manifest;
mod place;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use vti::answer::Answer;
use vti_report::files::{self, FileError};

pub(crate) use self::lock::Lock;
use self::lock::{Holder, LOCK};
use self::manifest::Manifest;
use crate::config::{Config, ConfigError, SourceConfig};
use crate::failure::Usage;

/// The file of what the preparation of graphs found.
const PREPARATION: &str = "preparation.safetensors";

/// The directory of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunDir(PathBuf);

/// What a new run may take the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replace {
    Nothing,
    /// An earlier run.
    Run,
    /// An earlier run; and it may settle among files that are not of a run, which stay.
    Any,
}

impl RunDir {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.into())
    }

    /// A run that is there.
    pub(crate) fn open(path: &Path) -> Result<(Self, Config)> {
        let dir = Self::new(path);
        if !dir.config().is_file() {
            return Err(Usage(format!("{}: not a run directory, there is no config.toml in it", path.display())).into());
        }
        let mut config = Config::read(&dir.config(), &[])?;
        config.output.dir = Some(path.into());
        Ok((dir, config))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.0.join("config.toml")
    }

    pub(crate) fn progress(&self) -> PathBuf {
        self.0.join("progress.jsonl")
    }

    /// The checkpoint of a run, or of one of several.
    pub(crate) fn checkpoint(&self, replicate: Option<usize>) -> PathBuf {
        self.0.join(match replicate {
            None => "checkpoint.safetensors".to_string(),
            Some(number) => format!("checkpoint-{number}.safetensors"),
        })
    }

    pub(crate) fn posterior(&self) -> PathBuf {
        self.0.join("posterior.safetensors")
    }

    /// The particles of the second opinion.
    pub(crate) fn particles(&self) -> PathBuf {
        self.0.join("particles.safetensors")
    }

    /// The table, where a program handed it over.
    pub(crate) fn table(&self) -> PathBuf {
        self.0.join(SourceConfig::KEPT)
    }

    /// What a run is doing beside training.
    pub(crate) fn phase(&self) -> PathBuf {
        self.0.join("phase.json")
    }

    /// What the preparation of graphs found.
    pub(crate) fn preparation(&self) -> PathBuf {
        self.0.join(PREPARATION)
    }

    pub(crate) fn draws(&self) -> PathBuf {
        self.0.join(files::DRAWS)
    }

    pub(crate) fn summary(&self) -> PathBuf {
        self.0.join(files::SUMMARY)
    }

    pub(crate) fn page(&self) -> PathBuf {
        self.0.join(files::PAGE)
    }

    pub(crate) fn read_answer(&self) -> Result<Answer> {
        let path = self.summary();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let hint = format!("hint: `vti check {}` makes one of what there is", self.0.display());
                return Err(Usage(format!("{}: the run is not finished\n{hint}", self.0.display())).into());
            }
            other => other.with_context(|| path.display().to_string())?,
        };
        Answer::from_json(&text).with_context(|| path.display().to_string())
    }

    /// Takes the directory for a new run, and refuses to take the place of what it may not replace. Nothing is removed yet.
    pub(crate) fn claim(&self, replace: Replace) -> Result<Lock> {
        place::check(&self.0)?;
        // Looked at before: not even a lock is left among what is not ours.
        self.refuse_others(replace)?;
        let lock = Lock::take(&self.0)?;
        self.refuse_others(replace)?;
        self.refuse_run(replace)?;
        Ok(lock)
    }

    /// Takes the directory of a run to write more of its files.
    pub(crate) fn claim_run(&self) -> Result<Lock> {
        if Manifest::find(self)?.is_none() {
            let hint = "hint: `vti fit` makes a run of a configuration";
            let shown = self.0.display();
            return Err(
                Usage(format!("{shown}: not a run directory, its config.toml is not that of a run\n{hint}")).into()
            );
        }
        Lock::take(&self.0)
    }

    /// Whether a process of this machine works in it.
    pub(crate) fn is_at_work(&self) -> bool {
        lock::is_held(&self.0)
    }

    /// Refuses a directory that is not one of ours, unless it is empty.
    fn refuse_others(&self, replace: Replace) -> Result<()> {
        if replace == Replace::Any || Manifest::find(self)?.is_some() {
            return Ok(());
        }
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            other => other.map_err(|error| unwritable(&self.0, &error))?,
        };
        let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
        let mut names: Vec<String> = names.filter(|name| name != LOCK).collect();
        if names.is_empty() {
            return Ok(());
        }
        names.sort();
        let more = if names.len() > LISTED { format!(" and {} more", names.len() - LISTED) } else { String::new() };
        names.truncate(LISTED);
        Err(Usage(format!(
            "{}: not a run directory, and not empty: there is {}{more} in it\nhint: choose another --out; --force writes \
             beside what is there, and takes the place of nothing",
            self.0.display(),
            names.join(", ")
        ))
        .into())
    }

    /// Refuses to take the place of another run.
    fn refuse_run(&self, replace: Replace) -> Result<()> {
        let shown = self.0.display();
        let usage = |text: String| Err(Usage(text).into());
        if replace != Replace::Nothing {
            return Ok(());
        }
        if self.summary().exists() {
            return usage(format!(
                "{shown}: there is a finished run in it\nhint: --force replaces it, --out DIR writes elsewhere"
            ));
        }
        if self.config().exists() {
            return usage(format!(
                "{shown}: there is an unfinished run in it\nhint: --resume goes on with it, --force replaces it, --out DIR \
                 writes elsewhere"
            ));
        }
        Ok(())
    }

    /// Makes room for a new run, and writes down its settings.
    pub(crate) fn begin(&self, config: &Config) -> Result<()> {
        Manifest::begin(self, &[self.config()])?;
        write(&self.config(), config.to_toml()?.as_bytes())?;
        let Some(table) = &config.source.table else { return Ok(()) };
        self.record(&[self.table()])?;
        write(&self.table(), &table.0)
    }

    /// Puts files on the list of what is ours, before they are written.
    pub(crate) fn record(&self, paths: &[PathBuf]) -> Result<()> {
        Manifest::record(self, paths)
    }

    /// The settings of the run that is there, if there is one.
    pub(crate) fn saved_config(&self) -> Result<Option<Config>, ConfigError> {
        if self.config().exists() { Config::read(&self.config(), &[]).map(Some) } else { Ok(None) }
    }
}

/// Whether a text says what a run directory says about itself: which files are its own, or who works in it.
pub(crate) fn parse_marks(text: &str) -> bool {
    Manifest::parse(Path::new(manifest::MARKER), text).is_ok() || Holder::parse(text).is_some()
}

/// Names that are listed at most.
const LISTED: usize = 5;

/// Puts a file in its place all at once.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    files::put(path, bytes).map_err(explain)
}

/// The same from under a name of this process: whoever works in the directory may write the file meanwhile, and one of the two is
/// there in the end, whole.
pub(crate) fn write_apart(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.partial", std::process::id()));
    let apart = path.with_file_name(name);
    let placed = fs::write(&apart, bytes).and_then(|()| fs::rename(&apart, path));
    if placed.is_err() {
        let _ = fs::remove_file(&apart);
    }
    placed.map_err(|error| unwritable(path, &error))
}

/// What went wrong with a file, and what to do.
pub(crate) fn explain(error: FileError) -> anyhow::Error {
    match error {
        FileError::Write { path, error } => unwritable(&path, &error),
        other => other.into(),
    }
}

/// Why a file could not be written, and what to do.
pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "\nhint: make room, or write elsewhere with --out"
        }
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
            "\nhint: write to a directory that is yours with --out"
        }
        _ => "",
    };
    anyhow::anyhow!("could not write {}: {error}{hint}", path.display())
}

//! The run directory: its files, each written whole or not at all.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use vti::answer::Answer;
use vti_report::files::{self, FileError};

use crate::config::{Config, ConfigError};
use crate::failure::Usage;

/// The directory of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunDir(PathBuf);

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

    /// Refuses to take the place of another run, unless forced to.
    pub(crate) fn check_free(&self, force: bool) -> Result<()> {
        let shown = self.0.display();
        let usage = |text: String| Err(Usage(text).into());
        if self.0.is_file() {
            return usage(format!("{shown}: there is a file of this name\nhint: choose another --out"));
        }
        if self.summary().exists() && !force {
            return usage(format!(
                "{shown}: there is a finished run in it\nhint: --force replaces it, --out DIR writes elsewhere"
            ));
        }
        if self.config().exists() && !force {
            return usage(format!(
                "{shown}: there is an unfinished run in it\nhint: --resume goes on with it, --force replaces it, --out DIR \
                 writes elsewhere"
            ));
        }
        Ok(())
    }

    /// Makes room for a new run.
    pub(crate) fn prepare(&self) -> Result<()> {
        fs::create_dir_all(&self.0).map_err(|error| unwritable(&self.0, &error))?;
        self.clear()
    }

    /// Removes the files of an earlier run, and nothing else.
    fn clear(&self) -> Result<()> {
        let saved = [self.posterior(), self.particles()];
        let own = [self.config(), self.progress()].into_iter();
        let own = own.chain(saved.iter().map(|path| vti::store::previous(path))).chain(saved.clone());
        let known = own.chain(files::ALL.iter().map(|file| self.0.join(file)));
        let entries = fs::read_dir(&self.0).map_err(|error| unwritable(&self.0, &error))?;
        let is_checkpoint = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with("checkpoint") && name.ends_with(".safetensors")
        };
        let checkpoints = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_checkpoint);
        for path in known.chain(checkpoints) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(unwritable(&path, &error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// The settings of the run that is there, if there is one.
    pub(crate) fn saved_config(&self) -> Result<Option<Config>, ConfigError> {
        if self.config().exists() { Config::read(&self.config(), &[]).map(Some) } else { Ok(None) }
    }
}

/// Puts a file in its place all at once.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    files::put(path, bytes).map_err(explain)
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

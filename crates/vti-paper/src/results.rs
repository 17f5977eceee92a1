//! The folder of an experiment: settings, finished fits, tables and plots.
//!
//! Every finished fit is a line of `finished.jsonl`, written at once: an experiment that was interrupted goes on where it
//! was. Tables and plots are made from all lines at the end.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The folder, and the fits that are finished.
pub(super) struct Results<T> {
    folder: PathBuf,
    journal: File,
    pub(super) finished: Vec<T>,
}

impl<T: Serialize + DeserializeOwned> Results<T> {
    /// Opens a folder: a new one, or one of the same settings.
    pub(super) fn open(folder: &Path, settings: &impl Serialize) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("{}: the folder could not be made", folder.display()))?;
        let settings = format!("{}\n", serde_json::to_string_pretty(settings)?);
        let journal = folder.join("finished.jsonl");
        let kept = folder.join("settings.json");
        let mut finished = Vec::new();
        if kept.exists() {
            if read(&kept)? != settings {
                bail!(
                    "{}: holds results of other settings or of another version\nhint: give another folder with --out, \
                     or remove this one",
                    folder.display()
                );
            }
            if journal.exists() {
                // A line that was being written when the power went is done again.
                let text = read(&journal)?;
                finished = text.lines().map_while(|line| serde_json::from_str(line).ok()).collect();
            }
        }
        write(&kept, &settings)?;
        let lines: Vec<String> = finished.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
        write(&journal, &lines.iter().map(|line| format!("{line}\n")).collect::<String>())?;
        let appended = OpenOptions::new().append(true).open(&journal);
        let journal = appended.with_context(|| format!("{}: could not be opened", journal.display()))?;
        Ok(Self { folder: folder.into(), journal, finished })
    }

    /// Whether there is such a fit.
    pub(super) fn has(&self, is_it: impl FnMut(&T) -> bool) -> bool {
        self.finished.iter().any(is_it)
    }

    /// Adds a finished fit.
    pub(super) fn add(&mut self, fit: T) -> Result<()> {
        let line = format!("{}\n", serde_json::to_string(&fit)?);
        let written = self.journal.write_all(line.as_bytes()).and_then(|()| self.journal.flush());
        written.with_context(|| format!("{}: could not be written", self.folder.join("finished.jsonl").display()))?;
        self.finished.push(fit);
        Ok(())
    }

    /// Writes a table or a plot.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<()> {
        write(&self.folder.join(name), text)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("{}: could not be read", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("{}: could not be written", path.display()))
}

/// The mean of what is there; nothing where nothing is.
pub(super) fn mean(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let (sum, count) = values.into_iter().flatten().fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Mean and standard deviation.
pub(super) fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}

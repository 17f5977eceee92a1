//! What a run has written into its directory. Nothing else there is ours.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use vti_report::files;

use super::{RunDir, unwritable, write};
use crate::config::VERSION;
use crate::failure::Usage;

/// The file that makes a directory one of ours, and lists what is ours in it.
pub(super) const MARKER: &str = "vti-run.json";

/// The form of the list.
const FORMAT: u32 = 1;

/// The files of a run, by name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The form of this list.
    vti_run: u32,
    /// Of the program that began the run.
    version: String,
    /// Recorded before they are written.
    files: BTreeSet<String>,
}

impl Manifest {
    fn new(files: BTreeSet<String>) -> Self {
        Self { vti_run: FORMAT, version: VERSION.into(), files }
    }

    /// What a directory says; none where it says nothing.
    fn read(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(MARKER);
        let text = match fs::read_to_string(&path) {
            Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => return Ok(None),
            other => other.with_context(|| path.display().to_string())?,
        };
        Self::parse(&path, &text).map(Some)
    }

    /// What such a file says.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self> {
        let shown = path.display();
        let hint = "hint: write elsewhere with --out, or move the directory away";
        let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        match value["vti_run"].as_u64() {
            None => Err(Usage(format!("{shown}: does not list the files of a run\n{hint}")).into()),
            Some(format) if format != u64::from(FORMAT) => {
                let version = value["version"].as_str().unwrap_or("?");
                Err(Usage(format!("{shown}: made by version {version} in another form ({format})\n{hint}")).into())
            }
            Some(_) => {
                let found: Self = serde_json::from_value(value).with_context(|| shown.to_string())?;
                // Names alone: a list that somebody else made must not lead out of the directory.
                if let Some(name) = found.files.iter().find(|name| Path::new(name).file_name() != Some(name.as_ref())) {
                    return Err(Usage(format!("{shown}: {name:?} is not the name of a file in it\n{hint}")).into());
                }
                Ok(found)
            }
        }
    }

    /// What a directory says, or, of a run of a version that did not say, what that version wrote.
    pub(super) fn find(dir: &RunDir) -> Result<Option<Self>> {
        Ok(Self::read(dir.path())?.or_else(|| Self::of_earlier_version(dir)))
    }

    /// The files of a run that did not record them: settings with the fingerprint of the data, which only a run writes, and
    /// what comes of a run: how training went, or an answer. All else is known by what these versions wrote.
    fn of_earlier_version(dir: &RunDir) -> Option<Self> {
        let settings: toml::Table = fs::read_to_string(dir.config()).ok()?.parse().ok()?;
        settings.get("version")?.as_str()?;
        settings.get("problem")?.get("fingerprint")?.as_str()?;
        let summary = fs::read_to_string(dir.summary()).ok();
        let summary = summary.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
        let summary = summary.filter(|summary| summary["version"].is_string() && summary["verdict"].is_object());
        let trained = [dir.progress(), dir.posterior(), dir.particles()].into_iter().chain(checkpoints(dir.path()));
        let mut files: Vec<PathBuf> = trained.filter(|path| path.exists()).collect();
        if !dir.progress().exists() && summary.is_none() {
            return None;
        }
        files.push(dir.config());
        if let Some(summary) = summary {
            // Versions without a list of files counted nothing.
            let answer = files::ALL
                .into_iter()
                .filter(|file| !files::OF_COUNTS.contains(file) && !files::OF_MIXTURES.contains(file));
            let answer = answer.filter(|file| summary["kind"] == "dag" || !files::OF_GRAPHS.contains(file));
            files.extend(answer.map(|file| dir.path().join(file)));
        }
        Some(Self::new(files.iter().flat_map(|path| names(path)).collect()))
    }

    fn save(&self, dir: &Path) -> Result<()> {
        write(&dir.join(MARKER), (serde_json::to_string_pretty(self)? + "\n").as_bytes())
    }

    /// Removes the files of the run, and nothing else, and begins a new list with these.
    pub(super) fn begin(dir: &RunDir, first: &[PathBuf]) -> Result<()> {
        let earlier = Self::find(dir)?.map(|found| found.files).unwrap_or_default();
        let own = [
            dir.config(),
            dir.table(),
            dir.progress(),
            dir.phase(),
            dir.preparation(),
            dir.posterior(),
            dir.particles(),
        ];
        let all = own.into_iter().chain(checkpoints(dir.path())).chain(files::ALL.map(|file| dir.path().join(file)));
        refuse_others(dir.path(), all.flat_map(|path| names(&path)).filter(|name| !earlier.contains(name)))?;
        for name in &earlier {
            let path = dir.path().join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(unwritable(&path, &error)),
                _ => {}
            }
        }
        Self::new(first.iter().flat_map(|path| names(path)).collect()).save(dir.path())
    }

    /// Puts files on the list before they are written. A file of the same name that is there already is somebody else's.
    pub(super) fn record(dir: &RunDir, paths: &[PathBuf]) -> Result<()> {
        let known = Self::read(dir.path())?;
        let is_listed = known.is_some();
        let mut known = known.or_else(|| Self::of_earlier_version(dir)).unwrap_or_else(|| Self::new(BTreeSet::new()));
        let names = paths.iter().flat_map(|path| names(path));
        let new: BTreeSet<String> = names.filter(|name| !known.files.contains(name)).collect();
        if new.is_empty() && is_listed {
            return Ok(());
        }
        refuse_others(dir.path(), new.iter().cloned())?;
        known.files.extend(new);
        known.save(dir.path())
    }
}

/// Refuses to take the place of files that no run has recorded.
fn refuse_others(dir: &Path, names: impl Iterator<Item = String>) -> Result<()> {
    let there: BTreeSet<String> = names.filter(|name| fs::symlink_metadata(dir.join(name)).is_ok()).collect();
    if there.is_empty() {
        return Ok(());
    }
    let listed = there.into_iter().collect::<Vec<_>>().join(", ");
    Err(Usage(format!(
        "{}: not written by a run, and in the place of what a run writes: {listed}\nhint: move what is there elsewhere, or write \
         elsewhere with --out",
        dir.display()
    ))
    .into())
}

/// The names under which a file may come to lie: its own, while it is written, and of what is saved the one before it.
fn names(path: &Path) -> Vec<String> {
    let mut paths = vec![path.to_path_buf(), vti::store::partial(path)];
    if path.extension().is_some_and(|extension| extension == "safetensors") {
        paths.push(vti::store::previous(path));
    }
    paths.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect()
}

/// Checkpoints that are there, of a run or of several.
fn checkpoints(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let is_checkpoint = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let number = name.strip_prefix("checkpoint").and_then(|rest| rest.strip_suffix(".safetensors"));
        number.is_some_and(|number| {
            let digits = number.trim_end_matches(".previous").trim_start_matches('-');
            digits.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    entries.filter(is_checkpoint).collect()
}

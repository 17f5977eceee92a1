//! What a run is doing beside training, in a file for those who watch.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::rundir;

/// How far a phase has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Phase {
    /// In words, with how far it is and how long it will take.
    pub(crate) text: String,
}

/// The shortest time between two files.
const WRITE: Duration = Duration::from_secs(1);

/// The file, which is there while a phase lasts.
pub(crate) struct PhaseFile {
    path: PathBuf,
    last: Option<Instant>,
}

impl PhaseFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, last: None }
    }

    /// Says how far it is. A file that cannot be written is missed by nobody but those who watch.
    pub(crate) fn tell(&mut self, text: impl FnOnce() -> String) {
        if self.last.is_some_and(|last| last.elapsed() < WRITE) {
            return;
        }
        self.last = Some(Instant::now());
        if let Ok(content) = serde_json::to_vec(&Phase { text: text() }) {
            let _ = rundir::write(&self.path, &content);
        }
    }
}

impl Drop for PhaseFile {
    fn drop(&mut self) {
        if self.last.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// What a run is doing, if it says so.
pub(crate) fn read(path: &Path) -> Option<Phase> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

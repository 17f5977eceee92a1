//! One process at a time writes into a run directory.
//!
//! The system's lock on a file tells whether somebody works there: it goes with the process, however that ends. The file says
//! who it is, for people, and for file systems without locks or shared between machines.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::unwritable;
use crate::failure::Usage;
use crate::progress::duration;

/// The file that is locked; it is there while somebody works, or was when somebody was killed.
pub(super) const LOCK: &str = "vti-run.lock";

/// Who works in a run directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Holder {
    process: u32,
    host: String,
    /// Which start of the machine it is, where the system says so: processes of an earlier one are gone.
    boot: Option<String>,
    /// When the process began, in the system's own count, where it says so: numbers of processes are used again.
    process_start: Option<u64>,
}

impl Holder {
    /// This process.
    fn own() -> Self {
        let process = std::process::id();
        let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_string());
        let host = read("/proc/sys/kernel/hostname").or_else(|| read("/etc/hostname"));
        let host = host.or_else(|| std::env::var("HOSTNAME").or_else(|_| std::env::var("COMPUTERNAME")).ok());
        Self {
            process,
            host: host.filter(|host| !host.is_empty()).unwrap_or_else(|| "an unknown machine".into()),
            boot: read("/proc/sys/kernel/random/boot_id"),
            process_start: process_start(process),
        }
    }

    /// What a lock says.
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Whether this one cannot be at work any more; `is_free` if the system's lock has been taken since.
    fn is_gone(&self, own: &Self, is_free: bool) -> bool {
        if self.boot.is_some() && self.boot == own.boot {
            // The same kernel knows all its locks, those of other containers as well.
            return is_free || (self.host == own.host && process_start(self.process) != self.process_start);
        }
        let is_rebooted = self.boot.is_some() && own.boot.is_some();
        self.host == own.host && (is_free || is_rebooted)
    }
}

/// When a process began, in ticks since the machine did; none if there is no such process, or no way to know.
fn process_start(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program stands in parentheses, and may hold anything; the third field comes after it.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// Whether a process of this machine works in a directory, as far as its file says: looking must not keep anybody from locking.
pub(super) fn is_held(dir: &Path) -> bool {
    let own = Holder::own();
    let holder = File::open(dir.join(LOCK)).ok().and_then(|mut file| read(&mut file));
    holder.is_some_and(|holder| holder.host == own.host && !holder.is_gone(&own, false))
}

/// The right to write into a run directory, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    /// Holds the system's lock.
    _file: File,
    path: PathBuf,
    /// Whether the directory was made for it.
    made: bool,
}

impl Lock {
    /// Locks a directory, which is made where there is none.
    pub(super) fn take(dir: &Path) -> Result<Self> {
        let made = !dir.exists();
        fs::create_dir_all(dir).map_err(|error| unwritable(dir, &error))?;
        let path = dir.join(LOCK);
        let unwritten = |error: &std::io::Error| unwritable(&path, error);
        loop {
            let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
            let mut file = file.map_err(|error| unwritten(&error))?;
            let is_free = match file.try_lock() {
                Ok(()) => true,
                Err(fs::TryLockError::WouldBlock) => return Err(busy(dir, read(&mut file).as_ref()).into()),
                // A file system without locks: what the file says has to do.
                Err(fs::TryLockError::Error(_)) => false,
            };
            // Whoever was here before may have taken the file away since it was opened.
            if is_free && !is_at(&file, &path) {
                continue;
            }
            let own = Holder::own();
            if let Some(holder) = read(&mut file).filter(|holder| !holder.is_gone(&own, is_free)) {
                return Err(elsewhere(dir, &holder, &own).into());
            }
            // On a full disk the system's lock is enough.
            let written = serde_json::to_vec(&own).map_err(std::io::Error::other).and_then(|text| {
                file.rewind()?;
                file.set_len(0)?;
                file.write_all(&text)
            });
            if let Err(error) = written.as_ref()
                && !is_free
            {
                return Err(unwritten(error));
            }
            return Ok(Self { _file: file, path, made });
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is held: nobody else can have made it anew.
        let _ = fs::remove_file(&self.path);
        if let Some(dir) = self.path.parent().filter(|_| self.made) {
            // Only where nothing came of it: a directory that holds something stays.
            let _ = fs::remove_dir(dir);
        }
    }
}

/// Who a lock says it belongs to; none where it does not say, or where locks keep others from reading.
fn read(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    Holder::parse(&text)
}

/// Whether a file is still the one of this name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |found: &fs::Metadata| (found.dev(), found.ino());
    matches!((file.metadata(), fs::metadata(path)), (Ok(own), Ok(there)) if id(&own) == id(&there))
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Somebody is at work there.
fn busy(dir: &Path, holder: Option<&Holder>) -> Usage {
    let shown = dir.display();
    let who = holder.map_or_else(|| "another process".into(), |holder| said(dir, holder));
    Usage(format!(
        "{shown}: {who} is at work in it\nhint: wait for it or stop it, or write elsewhere with --out; `vti watch {shown}` follows it"
    ))
}

/// Nobody can tell from here whether somebody is at work there.
fn elsewhere(dir: &Path, holder: &Holder, own: &Holder) -> Usage {
    if holder.boot == own.boot && holder.host == own.host && holder.process_start.is_some() {
        return busy(dir, Some(holder));
    }
    let (shown, lock) = (dir.display(), dir.join(LOCK));
    let (who, host) = (said(dir, holder), &holder.host);
    Usage(format!(
        "{shown}: {who} may be at work in it, which cannot be seen from here\nhint: once that process on {host} has ended, \
         remove {}",
        lock.display()
    ))
}

/// Who it is, and since when: the lock was written then.
fn said(dir: &Path, holder: &Holder) -> String {
    let Holder { process, host, .. } = holder;
    let written = fs::metadata(dir.join(LOCK)).and_then(|lock| lock.modified()).ok();
    let since = written.and_then(|written| written.elapsed().ok()).map_or(0.0, |since| since.as_secs_f64());
    format!("process {process} on {host}, for {} now,", duration(since))
}

//! Where a new run may not go, whatever is there and whatever the user says.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Usage;

/// Refuses places whose other inhabitants would suffer: what is no directory, a link to somewhere else, the root, a home
/// directory, and whatever holds one of these or the current directory.
pub(super) fn check(path: &Path) -> Result<(), Usage> {
    // Without a slash at the end, which would follow a link.
    let plain: PathBuf = path.components().collect();
    let refuse = |reason: &str, hint: &str| Err(Usage(format!("{}: {reason}\nhint: {hint}", path.display())));
    // What is not there yet does no harm; whether it can be made is seen when it is.
    let Ok(found) = fs::symlink_metadata(&plain) else { return Ok(()) };
    if found.is_symlink() {
        let target = fs::read_link(&plain).unwrap_or_default();
        let reason = format!("a symbolic link to {}; a run does not follow it", target.display());
        return refuse(&reason, "give --out the directory itself, or another one");
    }
    if !found.is_dir() {
        return refuse("there is a file of this name", "choose another --out");
    }
    let Ok(place) = fs::canonicalize(&plain) else { return Ok(()) };
    let below = "a run needs a directory of its own, for instance --out";
    if place.parent().is_none() {
        return refuse("the root of the file system", &format!("{below} run.vti"));
    }
    let below = format!("{below} {}", path.join("run.vti").display());
    if let Some(home) = home() {
        if home == place {
            return refuse("a home directory", &below);
        }
        if home.starts_with(&place) {
            return refuse("the home directory is in it", &below);
        }
    }
    let current = std::env::current_dir().and_then(fs::canonicalize);
    if current.is_ok_and(|current| current != place && current.starts_with(&place)) {
        return refuse(
            "the current directory is in it",
            "a run needs a directory of its own, for instance --out run.vti",
        );
    }
    Ok(())
}

/// The user's home directory, as far as the environment knows it.
fn home() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"))?;
    fs::canonicalize(home).ok()
}

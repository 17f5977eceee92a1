//! Other programs: cargo, and Python with the packages that a chore needs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Runs a command, in the root unless it names another place, and fails if it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    let line = format!("{program} {}", arguments.join(" "));
    announce(&line);
    if command.get_current_dir().is_none() {
        command.current_dir(root());
    }
    let status = command.status().with_context(|| format!("could not run {line}"))?;
    if !status.success() {
        bail!("{line}: {status}");
    }
    Ok(())
}

#[allow(clippy::print_stderr)]
pub(crate) fn announce(what: &str) {
    eprintln!("\n==> {what}");
}

pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// An environment of its own under target/ with the packages of a list, installed on first use.
pub(crate) fn python(name: &str, requirements: &str) -> Result<PathBuf> {
    let place = root().join("target").join(name);
    let environment = place.join("venv");
    let python = environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let requirements = root().join(requirements);
    // The list that was installed is kept beside the environment: a changed list is installed again.
    let installed = place.join("installed.txt");
    let wanted = std::fs::read(&requirements).with_context(|| format!("could not read {}", requirements.display()))?;
    if python.exists() && std::fs::read(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&requirements))?;
    std::fs::write(&installed, wanted)?;
    Ok(python)
}

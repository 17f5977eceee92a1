//! The Python package: built as a wheel, put into an environment, and tested there.

use std::env::consts::EXE_EXTENSION;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{root, run as must};

/// Its tests: behaviour, stories, and types.
pub(crate) fn test(python: &Path) -> Result<()> {
    let wheel = wheel(python)?;
    must(Command::new(python).args(["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"]).arg(wheel))?;
    must(Command::new(python).args(["-m", "mypy", "--package", "vti"]).current_dir(root().join("python/python")))?;
    // The stub says what the extension has, and nothing else.
    must(Command::new(python).args(["-m", "mypy.stubtest", "vti._vti"]).current_dir(root().join("python/tests")))?;
    let command = std::env::current_exe()?.with_file_name("vti").with_extension(EXE_EXTENSION);
    let mut tests = Command::new(python);
    tests.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]);
    must(tests.current_dir(root().join("python")).env("VTI_COMMAND", command))
}

/// The wheel, of the profile that the tests had: only what is told where Python is, the bindings, is compiled again.
fn wheel(python: &Path) -> Result<PathBuf> {
    let wheels = root().join("target/python/wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    let mut build = Command::new(python);
    build.args([
        "-m",
        "maturin",
        "build",
        "--quiet",
        "--profile",
        "dev",
        "--manifest-path",
        "python/Cargo.toml",
        "--out",
    ]);
    must(build.arg(&wheels))?;
    let entries = fs::read_dir(&wheels).with_context(|| wheels.display().to_string())?;
    let found: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    // One for all versions of Python from 3.11 on.
    match &found[..] {
        [wheel] if wheel.to_string_lossy().contains("-cp311-abi3-") => Ok(wheel.clone()),
        others => bail!("not one wheel for Python 3.11 and later: {others:?}"),
    }
}

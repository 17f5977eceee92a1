//! The Python package: built, put into an environment, and tested there.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{cargo, root, run as must};

/// Its tests: behaviour, stories, and types.
pub(crate) fn test(python: &Path) -> Result<()> {
    // With the features of all packages together, as the tests were: nothing is compiled again.
    must(&mut cargo(&["build", "--workspace", "--all-targets", "--quiet"]))?;
    install(python)?;
    must(Command::new(python).args(["-m", "mypy", "--package", "vti"]).current_dir(root().join("python/python")))?;
    // The stub says what the extension has, and nothing else.
    must(Command::new(python).args(["-m", "mypy.stubtest", "vti._vti"]).current_dir(root().join("python/tests")))?;
    let command = std::env::current_exe()?.with_file_name("vti").with_extension(std::env::consts::EXE_EXTENSION);
    let mut tests = Command::new(python);
    tests.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]);
    must(tests.current_dir(root().join("python")).env("VTI_COMMAND", command))
}

/// Puts the package, with the extension that lies beside this program, where an environment keeps its packages.
fn install(python: &Path) -> Result<()> {
    let asked = "import sysconfig; print(sysconfig.get_path('platlib'))";
    let output = Command::new(python).args(["-c", asked]).output().context("could not run Python")?;
    let packages = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    let (place, from) = (packages.join("vti"), root().join("python/python/vti"));
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(&place)?;
    for entry in fs::read_dir(&from).with_context(|| from.display().to_string())? {
        let path = entry?.path();
        if path.is_file() {
            fs::copy(&path, place.join(path.file_name().unwrap_or_default()))?;
        }
    }
    let extension = std::env::current_exe()?.with_file_name(format!("{DLL_PREFIX}_vti{DLL_SUFFIX}"));
    let name = if cfg!(windows) { "_vti.pyd" } else { "_vti.abi3.so" };
    fs::copy(&extension, place.join(name)).with_context(|| extension.display().to_string())?;
    Ok(())
}

//! The Python package `vti`: tables in, runs of the command in a thread, answers out. What is computed is computed elsewhere.

// Arguments come from Python by value.
#![allow(clippy::needless_pass_by_value)]

mod arrow;
mod density;
mod failure;
mod job;
mod numpy;
mod run;
mod space;
mod table;

use pyo3::prelude::*;

/// What the Python modules of the package are made of.
#[pymodule]
mod _vti {
    #[pymodule_export]
    use crate::density::seconds_per_batch;
    #[pymodule_export]
    use crate::job::Job;
    #[pymodule_export]
    use crate::run::Run;
    #[pymodule_export]
    use crate::space::Space;
    #[pymodule_export]
    use crate::table::Table;

    use pyo3::prelude::*;

    /// Options of a command: their names, and whether they take a value.
    #[pyfunction]
    fn options(command: &str) -> Vec<(String, bool)> {
        vti_cli::api::options(command)
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", vti::answer::VERSION)
    }
}

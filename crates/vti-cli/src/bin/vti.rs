//! The `vti` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    vti_cli::main()
}

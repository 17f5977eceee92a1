//! What can be wrong with a configuration.

use vti::optimise::SettingError;

use super::VERSION;
use crate::suggest::did_you_mean;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("{file}: {error}")]
    Io { file: String, error: std::io::Error },
    #[error("{file}: {message}")]
    Syntax { file: String, message: String },
    #[error(
        "{file}: made by version {found}, this is version {}\nhint: settings may have changed their meaning; check them and take the line `version` out",
        VERSION
    )]
    Version { file: String, found: String },
    #[error("{file}: there is no section [problem]\nhint: `vti init select` and `vti init dag` print examples")]
    NoProblem { file: String },
    #[error("{file}{}: unknown {}{}", at(*line), key_name(section, key), did_you_mean(key, names))]
    UnknownKey { file: String, line: Option<usize>, section: String, key: String, names: Vec<String> },
    #[error("{file}{}: [{section}] {message}", at(*line))]
    Section { file: String, line: Option<usize>, section: String, message: String },
    #[error("{section}.{error}\nhint: --set {section}.KEY=VALUE changes it")]
    Limit { section: &'static str, error: SettingError },
    #[error("--set {text}: {reason}\nhint: write section.key=value, for instance --set train.batch=512")]
    Set { text: String, reason: String },
}

fn at(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(":{line}"))
}

fn key_name(section: &str, key: &str) -> String {
    if section.is_empty() { format!("section or key {key}") } else { format!("key {key} in [{section}]") }
}

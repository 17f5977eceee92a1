//! Errors as Python exceptions: of the kind that Python has for them, in our words.

use pyo3::PyErr;
use pyo3::exceptions::{PyFileNotFoundError, PyRuntimeError, PyValueError};
use vti_cli::api::{ApiError, Fault};

/// The exception for an error; options are called as Python calls them.
pub(crate) fn exception(error: &ApiError) -> PyErr {
    let message = in_python(&error.message);
    match error.fault {
        Fault::Input => PyValueError::new_err(message),
        Fault::NotFound => PyFileNotFoundError::new_err(message),
        Fault::Other => PyRuntimeError::new_err(message),
    }
}

/// Options without their dashes: `model_prior` of `--model-prior`.
fn in_python(message: &str) -> String {
    let mut words = Vec::new();
    for word in message.split(' ') {
        let start = word.find("--").filter(|&place| {
            let is_begin = word[..place].chars().all(|before| !before.is_alphanumeric());
            is_begin && word[place + 2..].starts_with(|letter: char| letter.is_ascii_lowercase())
        });
        words.push(match start {
            Some(place) => {
                let (before, option) = (&word[..place], &word[place + 2..]);
                let end = option.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
                let (option, after) = option.split_at(end.unwrap_or(option.len()));
                format!("{before}{}{after}", option.replace('-', "_"))
            }
            None => word.to_string(),
        });
    }
    words.join(" ")
}

//! A finished run as one self-contained HTML page.
//!
//! [`page`] is a pure function of a [`Report`]: no files, no clock, no network. The page needs nothing but a browser.

mod input;

pub use input::{Coefficient, Comparison, Fact, Inclusion, Level, ModelRow, Pairs, Report, Trace, Verdict};

/// The page.
pub fn page(report: &Report) -> String {
    report.title.clone()
}

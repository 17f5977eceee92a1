//! A finished run as one self-contained HTML page, and plots as SVG.
//!
//! [`page`] is a pure function of a [`Report`]: no files, no clock, no network. The page needs nothing but a browser.
//! [`plot`] makes the figures in it, and figures that are files of their own.

mod input;
mod layered;
mod markup;
mod number;
mod page;
pub mod plot;

pub use input::{
    BestGraph, Better, Coefficient, Comparison, Effect, Fact, GraphSection, Inclusion, Level, Metric, ModelRow,
    OrderStatistics, Pairs, Report, Trace, Truth, Verdict,
};
pub use page::page;

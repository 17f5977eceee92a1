//! The peers of causal graphs, DAGMA and DiBS, run from their own published packages.
//!
//! A Python process with the packages of `bench/peer/graphs-requirements.txt` answers jobs until it is dropped. Nothing of the
//! peers is here; the script that calls them is `bench/peer/graphs.py`, which comes with the program.

mod answer;
mod process;
mod settings;

pub(crate) use answer::{Dagma, DagmaPoint, Dibs};
pub(crate) use process::Peers;
pub(crate) use settings::{DagmaSettings, DibsSettings, FEW_LAMBDAS};

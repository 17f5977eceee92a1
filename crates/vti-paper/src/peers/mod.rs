//! The peers of causal graphs, DAGMA and DiBS, run from their own published packages.
//!
//! A Python process with the packages of `bench/peer/graphs-requirements.txt` answers jobs until it is dropped. Nothing of the
//! peers is here; the script that calls them is `bench/peer/graphs.py`, which comes with the program.

mod answer;
mod process;
mod settings;

pub use answer::{Cost, Dagma, DagmaPoint, Dibs};
pub use process::{PeerError, Peers};
pub use settings::{DagmaSettings, DibsSettings, FEW_LAMBDAS};

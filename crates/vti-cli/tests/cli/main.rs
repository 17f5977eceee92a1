//! The real program, run as a person would.

#![allow(missing_docs, clippy::unwrap_used)]

mod categories;
mod changepoints;
mod checks;
mod counting;
mod dag;
mod dag_inputs;
mod durability;
mod exact;
mod exact_graphs;
mod fit;
mod help;
mod inputs;
mod interventions;
mod layers;
mod memory;
mod python;
mod regression;
mod results;
mod rundir;
mod search;
mod simulate;
mod support;
mod tables;
mod terms;
mod time;
mod unpacked;
mod untold;
mod words;

/// Its own tests run here: the program is not compiled once more for them.
#[path = "../../src/free_memory.rs"]
mod free_memory;
#[path = "../../src/shown.rs"]
mod shown;
#[path = "../../src/suggest.rs"]
mod suggest;

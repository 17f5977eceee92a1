//! The library part by part, against published figures, other programs and slow, obvious ways. One program, which is compiled and
//! linked once.

#![allow(missing_docs, clippy::unwrap_used)]

mod answer;
mod categories;
mod chains;
mod components;
mod constraints;
mod device;
mod edges;
mod estimate;
#[path = "../tables/hald.rs"]
mod hald;
mod moves;
mod psis;
mod pytorch;
mod selection;
mod spaces;
mod weights;
mod words;

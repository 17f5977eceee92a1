//! An [answer](vti::answer::Answer) for people and for other tools: one self-contained HTML page, tables as text, files in a
//! directory, and plots as SVG.
//!
//! [`page`] and [`text`] are pure functions of an answer: no files, no clock, no network. The page needs nothing but a
//! browser. [`write()`] makes all files of an answer; [`files`] makes them one by one, and reads draws back. [`plot`] makes the
//! figures of the page, and figures that are files of their own.

mod edge_list;
pub mod files;
mod layered;
mod markup;
mod number;
mod page;
pub mod plot;
mod text;

pub use files::{FileError, write};
pub use page::{Beside, Trace, figure, page};
pub use text::{plain, table, text};

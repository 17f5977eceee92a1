//! Plots as SVG.
//!
//! A [`Figure`] is a grid of [`Panel`]s, a panel has two [`Axis`] and some [`Layer`]s. Everything is plain data;
//! [`Figure::svg`] makes a complete document of it.
//!
//! ```
//! use vti_report::plot::{Axis, Colour, Figure, Layer, Marker, Panel, Points};
//!
//! let learned = Points { points: vec![(0.7, 0.65), (0.2, 0.24), (0.1, 0.11)], name: "learned".into(), ..Points::default() };
//! let corrected = Points { marker: Marker::Triangle, colour: Colour::Series(1), ..learned.clone() };
//! let panel = Panel {
//!     title: "Probabilities of models".into(),
//!     x: Axis::log("exact"),
//!     y: Axis::log("estimated"),
//!     layers: vec![Layer::Diagonal, learned.into(), corrected.into()],
//!     ..Panel::default()
//! };
//! let svg = Figure { panels: vec![panel], ..Figure::default() }.svg();
//! assert!(svg.starts_with("<svg"));
//! ```

mod axis;
mod colour;
mod contour;
mod density;
mod draw;
mod figure;
mod layer;
mod pairs;
mod scale;
mod svg;

pub use axis::{Axis, Ticks};
pub use colour::{Colour, PALETTE};
pub use density::Density;
pub use draw::Sign;
pub use figure::{Border, Figure, Key, Panel};
pub use layer::{Area, Bar, Bars, Contours, Layer, Line, Marker, Note, Points, Ribbon, Rule, dodge, grouped};
pub use pairs::{Sample, pairs};
pub use scale::{Scale, ticks};

pub(crate) use colour::{PALETTE_DARK, Theme};
pub(crate) use svg::{Px, fit, text_width};

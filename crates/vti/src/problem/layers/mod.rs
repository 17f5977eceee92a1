//! How many layers has the earth, where do they begin, and what are they made of?
//!
//! A model has k interfaces, k from 0. Its parameters are the property of the top layer (its resistivity, under magnetotelluric data),
//! and for each interface its depth and the property of the layer below it. What an earth predicts is compared with the data under
//! normal errors, which are known or have an unknown factor.
//!
//! Anything that predicts data is a [`Forward`]: [`Magnetotelluric`], or a [`Program`] that reads layers and writes data.
//!
//! ```
//! use vti::problem::Problem;
//! use vti::problem::layers::simulate::{SimulateSettings, simulate};
//! use vti::problem::layers::{LayerSettings, Magnetotelluric, layers};
//! let sounding = simulate(&SimulateSettings::default())?.sounding;
//! let settings = LayerSettings::default().for_sounding(&sounding);
//! let forward = Magnetotelluric::new(&sounding.periods);
//! let problem = layers(sounding.observed()?, std::sync::Arc::new(forward), "resistivity", &settings)?;
//! assert_eq!(problem.space().label(&[2]), "2 interfaces");
//! assert_eq!(problem.parameter_names()[..3], ["top.resistivity", "interface1.depth", "interface1.resistivity"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod complex;
mod data;
mod forward;
mod likelihood;
mod mt;
mod prior;
pub mod program;
pub mod simulate;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use data::{LayerDataError, Observed, Sounding};
pub use forward::{Earth, Forward, View};
pub use likelihood::LayerLikelihood;
pub use mt::Magnetotelluric;
pub use prior::{Errors, LayerError, LayerPriors, LayerSettings};
pub use program::Program;

use super::components::{ComponentProblem, components_with};
use crate::space::Components;

/// A search for layers: components that are interfaces.
pub type LayerProblem = ComponentProblem<LayerLikelihood>;

/// A search for layers of a named property. Priors must be given, or set from the data before
/// ([`LayerSettings::for_sounding`]).
pub fn layers(
    observed: Observed,
    forward: Arc<dyn Forward>,
    property: &str,
    settings: &LayerSettings,
) -> Result<LayerProblem, LayerError> {
    if forward.len() != observed.values.len() {
        return Err(LayerError::Length { predicted: forward.len(), observed: observed.values.len() });
    }
    let (depth, value, factor) = settings.priors()?;
    let mut space = Components::new("interface", 0..=settings.max_layers - 1)
        .each("depth", depth)
        .ordered()
        .each(property, value.clone())
        .with(&format!("top.{property}"), value);
    let is_scaled = factor.is_some();
    if let Some(factor) = factor {
        space = space.with("error_factor", factor);
    }
    let likelihood = LayerLikelihood::new(observed, forward, is_scaled);
    Ok(components_with(space, settings.count_prior.clone(), likelihood)?)
}

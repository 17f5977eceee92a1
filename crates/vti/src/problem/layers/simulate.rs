//! Magnetotelluric soundings over a known earth.
//!
//! ```
//! use vti::problem::layers::simulate::{SimulateSettings, simulate};
//! let simulated = simulate(&SimulateSettings { layers: 2, ..SimulateSettings::default() })?;
//! assert_eq!((simulated.sounding.periods.len(), simulated.earth.depths.len()), (25, 1));
//! # Ok::<(), vti::optimise::SettingError>(())
//! ```

use serde::{Deserialize, Serialize};

use super::{Earth, Forward, Magnetotelluric, Sounding};
use crate::optimise::SettingError;
use crate::random::{Purpose, Stream};
use crate::workers::Workers;

/// What to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimulateSettings {
    /// Periods, at equal ratios from 0.001 s to 1000 s.
    pub rows: usize,
    /// Layers: of 100 Ωm and 10 Ωm in turn, with interfaces at equal ratios of depth from 500 m to 20 km.
    pub layers: usize,
    /// Errors of apparent resistivities as a share of them; those of phases are half of it, in radians.
    pub noise: f64,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for SimulateSettings {
    fn default() -> Self {
        Self { rows: 25, layers: 3, noise: 0.05, seed: 0 }
    }
}

/// A sounding, and the earth it was made over.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// The sounding.
    pub sounding: Sounding,
    /// The earth.
    pub earth: Earth,
}

/// The smallest and the largest of so many numbers at equal ratios.
fn geometric((low, high): (f64, f64), count: usize) -> Vec<f64> {
    let share = |place: usize| if count < 2 { 0.5 } else { place as f64 / (count - 1) as f64 };
    (0..count).map(|place| low * (high / low).powf(share(place))).collect()
}

/// A sounding with normal errors.
pub fn simulate(settings: &SimulateSettings) -> Result<Simulated, SettingError> {
    let SimulateSettings { rows, layers, noise, seed } = *settings;
    SettingError::check("rows", rows as f64, rows > 0, "at least 1")?;
    SettingError::check("layers", layers as f64, (1..=1000).contains(&layers), "from 1 to 1000")?;
    SettingError::check("noise", noise, noise > 0.0 && noise < 1.0, "between 0 and 1")?;
    let values = (0..layers).map(|layer| if layer % 2 == 0 { 100.0 } else { 10.0 }).collect();
    let earth = Earth { depths: geometric((500.0, 20_000.0), layers - 1), values };
    let periods = geometric((1e-3, 1e3), rows);
    let mut predicted = vec![0.0; 2 * rows];
    // It never fails.
    let _ = Magnetotelluric::new(&periods).predict(std::slice::from_ref(&earth), &mut predicted, &Workers::SINGLE);
    let mut stream = Stream::new(seed, Purpose::Simulate, 0, 0);
    let phase_error = (0.5 * noise).to_degrees();
    let mut normal = || stream.normal();
    let resistivity: Vec<f64> =
        predicted[..rows].iter().map(|log| 10f64.powf(*log) * (noise * normal()).exp()).collect();
    let phase = predicted[rows..].iter().map(|phase| phase + phase_error * normal()).collect();
    let resistivity_error = resistivity.iter().map(|rho| noise * rho).collect();
    let sounding = Sounding { periods, resistivity, resistivity_error, phase, phase_error: vec![phase_error; rows] };
    Ok(Simulated { sounding, earth })
}

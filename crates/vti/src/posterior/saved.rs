//! What a file says about a family beside its arrays.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::device::{Device, DeviceError};
use crate::family::{Family, FamilyError, FamilySettings, FlowKind};
use crate::flow::LayerSettings;
use crate::models::{AutoregressiveSettings, ModelsSettings};
use crate::problem::{Fingerprint, Problem};
use crate::simd::Real;
use crate::state::{State, StateError};
use crate::store::{self, StoreError};

/// The JSON of a saved posterior or checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saved {
    /// Of the library.
    pub(crate) version: String,
    pub(crate) precision: String,
    pub(crate) family: FamilySettings,
    /// Rows of a batch.
    pub(crate) rows: usize,
    pub(crate) seed: u64,
    /// What the trainer was not happy with.
    pub(crate) warnings: Vec<String>,
    /// What there was no time for in training; files of earlier versions do not say.
    #[serde(default)]
    pub(crate) left_out: Vec<String>,
    /// Draws that it has learned from; files of earlier versions do not say.
    #[serde(default)]
    pub(crate) trained_rows: u64,
    pub(crate) fingerprint: Fingerprint,
    /// What the trainer adds to a checkpoint.
    pub(crate) run: Option<serde_json::Value>,
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It cannot be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its arrays do not fit.
    #[error("the saved arrays do not fit: {0}")]
    State(#[from] StateError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Its family cannot be built.
    #[error(transparent)]
    Family(#[from] FamilyError),
    /// It belongs to another problem.
    #[error(
        "{path}: saved for another problem (other data, prior or likelihood)\nhint: start anew, or use the data it was made with"
    )]
    OtherProblem {
        /// The file.
        path: String,
    },
    /// Its settings are of larger networks than it has numbers for.
    #[error("the settings are of networks with more parameters than the {numbers} numbers that are saved")]
    Sizes {
        /// How many numbers there are.
        numbers: usize,
    },
    /// It was computed in another precision.
    #[error("{path}: saved in {found}, this device computes in {expected}")]
    Precision {
        /// The file.
        path: String,
        /// Its precision.
        found: String,
        /// The device's.
        expected: &'static str,
    },
}

impl Saved {
    pub(crate) fn of<D: Device>(
        family: &Family<D>,
        seed: u64,
        (warnings, left_out): (Vec<String>, Vec<String>),
        run: Option<serde_json::Value>,
    ) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            precision: D::Real::NAME.into(),
            family: family.settings().clone(),
            rows: family.rows(),
            seed,
            warnings,
            left_out,
            trained_rows: 0,
            fingerprint: family.fingerprint().clone(),
            run,
        }
    }

    pub(crate) fn write(&self, path: &Path, state: &State) -> Result<(), StoreError> {
        store::write(path, self, state)
    }

    /// What the bytes of a file say, once it is certain that it fits problem and device.
    pub(crate) fn parse<D: Device>(
        path: &Path,
        bytes: &[u8],
        problem: &dyn Problem,
    ) -> Result<(Self, State), LoadError> {
        let (saved, state) = store::parse::<Self>(path, bytes)?;
        let name = || path.display().to_string();
        if saved.precision != D::Real::NAME {
            return Err(LoadError::Precision { path: name(), found: saved.precision, expected: D::Real::NAME });
        }
        let known = [Fingerprint::of, Fingerprint::with_arrangements];
        if !known.iter().any(|of| saved.fingerprint.matches(&of(problem))) {
            return Err(LoadError::OtherProblem { path: name() });
        }
        Ok((saved, state))
    }

    /// The family that a file is about, as it begins; its numbers are still to be restored. Networks with more parameters than the
    /// file has numbers are refused before there is room for them: a file must not make the program ask for any amount of memory.
    pub(crate) fn family<D: Device>(
        &self,
        problem: Arc<dyn Problem>,
        device: D,
        state: &State,
    ) -> Result<Family<D>, LoadError> {
        let numbers = state.arrays().iter().map(|(_, array)| array.len()).sum::<usize>();
        // Where no model has parameters, the flow has none either, whatever its settings.
        let most = if problem.space().max_dim() == 0 { numbers.max(1 << 20) } else { numbers };
        if least_parameters(&self.family) > most as f64 {
            return Err(LoadError::Sizes { numbers });
        }
        Ok(Family::new(problem, device, &self.family, self.rows, self.seed)?)
    }
}

/// So many parameters networks of these settings have at least, for the smallest problem.
fn least_parameters(settings: &FamilySettings) -> f64 {
    let residual = |blocks: usize, hidden: usize| blocks as f64 * (hidden as f64).powi(2) + hidden as f64;
    let dense = |widths: &[usize]| -> f64 {
        let products = widths.windows(2).map(|pair| pair[0] as f64 * pair[1] as f64).sum::<f64>();
        products + widths.first().map_or(0.0, |&width| width as f64)
    };
    let flow = match &settings.flow {
        FlowKind::Auto {} => 0.0,
        FlowKind::Affine { layers, blocks, hidden } | FlowKind::Spline { layers, blocks, hidden } => {
            *layers as f64 * residual(*blocks, *hidden).max(1.0)
        }
        FlowKind::Diagonal { hidden } => dense(hidden),
        FlowKind::Layers { layers, encoder } => {
            let layer = |layer: &LayerSettings| match layer {
                LayerSettings::Affine(affine) => residual(affine.blocks, affine.hidden),
                LayerSettings::Spline(spline) => {
                    residual(spline.blocks, spline.hidden) + spline.bins as f64 * spline.hidden as f64
                }
                LayerSettings::Diagonal(diagonal) => dense(&diagonal.hidden),
                LayerSettings::Global(_) | LayerSettings::Reverse {} => 0.0,
            };
            dense(encoder) + layers.iter().map(layer).sum::<f64>()
        }
    };
    let models = match &settings.models {
        ModelsSettings::Autoregressive(AutoregressiveSettings { network, .. }) => {
            residual(network.blocks, network.hidden)
        }
        _ => 0.0,
    };
    flow + models
}

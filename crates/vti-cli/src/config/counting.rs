//! How many? Mixtures and peaks: kinds of the section `[problem]`.

use serde::{Deserialize, Serialize};
use vti::prior::{CountPrior, Prior};
use vti::problem::mixture::{Key, MixturePriors, MixtureSettings};
use vti::problem::peaks::{PeakPriors, PeakSettings, PeakShape};

/// Mixtures of normal distributions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MixtureConfig {
    /// The columns; the only one where empty.
    pub(crate) columns: Vec<String>,
    pub(crate) max_components: usize,
    pub(crate) count_prior: CountPrior,
    pub(crate) key: Key,
    pub(crate) prior: MixturePriors,
}

impl Default for MixtureConfig {
    fn default() -> Self {
        let MixtureSettings { max_components, count_prior, key, prior } = MixtureSettings::default();
        Self { columns: Vec::new(), max_components, count_prior, key, prior }
    }
}

impl MixtureConfig {
    /// What is assumed.
    pub(crate) fn settings(&self) -> MixtureSettings {
        let Self { max_components, count_prior, key, prior, .. } = self.clone();
        MixtureSettings { max_components, count_prior, key, prior }
    }

    /// With what it leaves out as the other has it.
    pub(super) fn filled_from(&self, other: &Self) -> Self {
        let filled = |own: &[Prior], other: &[Prior]| if own.is_empty() { other.to_vec() } else { own.to_vec() };
        let columns = if self.columns.is_empty() { &other.columns } else { &self.columns };
        let prior = MixturePriors {
            mean: filled(&self.prior.mean, &other.prior.mean),
            scale: filled(&self.prior.scale, &other.prior.scale),
            ..self.prior
        };
        Self { columns: columns.clone(), prior, ..self.clone() }
    }
}

/// Peaks or sinusoids over a background.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PeaksConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) x: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) y: Option<String>,
    pub(crate) shape: PeakShape,
    pub(crate) max_peaks: usize,
    pub(crate) background: usize,
    pub(crate) count_prior: CountPrior,
    pub(crate) prior: PeakPriors,
}

impl Default for PeaksConfig {
    fn default() -> Self {
        let PeakSettings { shape, max_peaks, background, count_prior, prior } = PeakSettings::default();
        Self { x: None, y: None, shape, max_peaks, background, count_prior, prior }
    }
}

impl PeaksConfig {
    /// What is assumed.
    pub(crate) fn settings(&self) -> PeakSettings {
        let Self { shape, max_peaks, background, count_prior, prior, .. } = self.clone();
        PeakSettings { shape, max_peaks, background, count_prior, prior }
    }

    /// With what it leaves out as the other has it.
    pub(super) fn filled_from(&self, other: &Self) -> Self {
        let (own, others) = (self.prior.clone(), other.prior.clone());
        let prior = PeakPriors {
            position: own.position.or(others.position),
            height: own.height.or(others.height),
            width: own.width.or(others.width),
            mixing: own.mixing.or(others.mixing),
            frequency: own.frequency.or(others.frequency),
            amplitude: own.amplitude.or(others.amplitude),
            background: own.background.or(others.background),
            noise: own.noise.or(others.noise),
        };
        let named = |own: &Option<String>, other: &Option<String>| own.clone().or_else(|| other.clone());
        Self { x: named(&self.x, &other.x), y: named(&self.y, &other.y), prior, ..self.clone() }
    }
}

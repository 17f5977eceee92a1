//! What is assumed before the data: how many peaks, where, how high and how wide.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{PeakShape, Spectrum, SpectrumError};
use crate::prior::{CountPrior, Distribution, HalfNormal, LogUniform, Normal, Prior, PriorError, Uniform};
use crate::problem::components::ComponentsError;
use crate::space::Components;

/// The highest degree of a background.
pub const MAX_DEGREE: usize = 3;

/// Priors; what is left out is set from the data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeakPriors {
    /// Of positions: uniform between the first and the last place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Prior>,
    /// Of heights: half-normal, with the range of the values as its scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<Prior>,
    /// Of full widths at half maximum: log-uniform from two spacings of the data to a third of their span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<Prior>,
    /// Of the Lorentzian share of a pseudo-Voigt profile: uniform from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixing: Option<Prior>,
    /// Of frequencies: uniform from one period over the whole span to half the rate of sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency: Option<Prior>,
    /// Of the amplitudes of a sinusoid's cosine and sine, which are integrated out: normal around 0, with half the range of the
    /// values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amplitude: Option<Prior>,
    /// Of the background, which is integrated out: normal. Its constant has this mean, and the coefficients of all polynomials, which
    /// are orthogonal over the data and have a mean square of 1 there, this standard deviation. By default the median and the range
    /// of the values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<Prior>,
    /// Of the standard deviation of the noise: log-uniform from a thousandth to twice that of the values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<Prior>,
}

/// Settings of a search for peaks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeakSettings {
    /// What is looked for.
    pub shape: PeakShape,
    /// The most peaks.
    pub max_peaks: usize,
    /// The degree of the background, 0 to 3.
    pub background: usize,
    /// The prior of the number of peaks.
    pub count_prior: CountPrior,
    /// Priors of parameters.
    pub prior: PeakPriors,
}

impl Default for PeakSettings {
    fn default() -> Self {
        Self {
            shape: PeakShape::default(),
            max_peaks: 6,
            background: 1,
            count_prior: CountPrior::Uniform {},
            prior: PeakPriors::default(),
        }
    }
}

/// Settings or data that make no question.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PeakError {
    /// Data in which nothing can be looked for.
    #[error(transparent)]
    Spectrum(#[from] SpectrumError),
    /// A prior that is none.
    #[error(transparent)]
    Prior(#[from] PriorError),
    /// Components that contradict themselves.
    #[error(transparent)]
    Components(#[from] ComponentsError),
    /// A degree that is too high.
    #[error("a background of degree {degree}: it must be 0 to {MAX_DEGREE}")]
    Degree {
        /// What was asked for.
        degree: usize,
    },
    /// A prior with which nothing can be integrated in closed form.
    #[error("the prior of the {what} is {found}, but must be {needed}: it is integrated in closed form")]
    NotNormal {
        /// Of what.
        what: &'static str,
        /// What was given.
        found: String,
        /// What it must be.
        needed: &'static str,
    },
    /// A prior that allows what makes no sense.
    #[error("the prior of the {what} is {found}, but the {what} must be {range}")]
    Range {
        /// Of what.
        what: &'static str,
        /// What was given.
        found: String,
        /// What it may be.
        range: &'static str,
    },
    /// A prior of something that the shape does not have.
    #[error("{shape} peaks have no {what}: leave its prior out")]
    NotThere {
        /// The shape.
        shape: &'static str,
        /// What has a prior.
        what: &'static str,
    },
}

/// Normal priors of what is integrated out: mean and standard deviation of the background's constant, whose standard deviation all
/// its coefficients have, and the standard deviation of amplitudes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Linear {
    pub(super) level: f64,
    pub(super) background: f64,
    pub(super) amplitude: f64,
}

impl PeakSettings {
    /// With what is left out set from the data.
    pub(super) fn resolve(self, spectrum: &Spectrum) -> Result<Self, PeakError> {
        if self.background > MAX_DEGREE {
            return Err(PeakError::Degree { degree: self.background });
        }
        spectrum.need(self.background + 4)?;
        let (low, high) = spectrum.ends();
        let (span, spacing, (median, range, sd)) = (high - low, spectrum.spacing(), spectrum.spread());
        let mut prior = self.prior.clone();
        let is_tone = self.shape == PeakShape::Sinusoid;
        let missing: Vec<(&'static str, bool)> = vec![
            ("position", is_tone && prior.position.is_some()),
            ("height", is_tone && prior.height.is_some()),
            ("width", is_tone && prior.width.is_some()),
            ("mixing", self.shape != PeakShape::Voigt && prior.mixing.is_some()),
            ("frequency", !is_tone && prior.frequency.is_some()),
            ("amplitude", !is_tone && prior.amplitude.is_some()),
        ];
        if let Some((what, _)) = missing.into_iter().find(|(_, wrong)| *wrong) {
            return Err(PeakError::NotThere { shape: self.shape.name(), what });
        }
        if is_tone {
            prior.frequency.get_or_insert(Uniform(1.0 / span, 0.5 / spacing).into());
            prior.amplitude.get_or_insert(Normal(0.0, 0.5 * range).into());
        } else {
            prior.position.get_or_insert(Uniform(low, high).into());
            prior.height.get_or_insert(HalfNormal(range).into());
            let widest = (span / 3.0).max(3.0 * spacing);
            prior.width.get_or_insert(LogUniform(2.0 * spacing, widest).into());
        }
        if self.shape == PeakShape::Voigt {
            prior.mixing.get_or_insert(Uniform(0.0, 1.0).into());
        }
        prior.background.get_or_insert(Normal(median, range).into());
        prior.noise.get_or_insert(LogUniform(1e-3 * sd, 2.0 * sd).into());
        let resolved = Self { prior, ..self.clone() };
        resolved.check()?;
        Ok(resolved)
    }

    fn check(&self) -> Result<(), PeakError> {
        let PeakPriors { position, height, width, mixing, frequency, amplitude, background, noise } = &self.prior;
        for prior in [position, height, width, mixing, frequency, amplitude, background, noise].into_iter().flatten() {
            prior.check()?;
        }
        let within = |what, prior: &Option<Prior>, ends: (f64, f64), range| match prior {
            Some(prior) if prior.bounds().0 < ends.0 || prior.bounds().1 > ends.1 => {
                Err(PeakError::Range { what, found: prior.to_string(), range })
            }
            _ => Ok(()),
        };
        let positive = (0.0, f64::INFINITY);
        within("width", width, positive, "positive")?;
        within("noise", noise, positive, "positive")?;
        within("frequency", frequency, positive, "positive")?;
        within("mixing", mixing, (0.0, 1.0), "between 0 and 1")?;
        self.linear().map(|_| ())
    }

    /// Priors of what is integrated out.
    pub(super) fn linear(&self) -> Result<Linear, PeakError> {
        let normal = |what, prior: &Option<Prior>, needed| match prior {
            None => Ok((0.0, 1.0)),
            Some(Prior::Normal { mean, sd }) if what == "background" || *mean == 0.0 => Ok((*mean, *sd)),
            Some(other) => Err(PeakError::NotNormal { what, found: other.to_string(), needed }),
        };
        let (level, background) = normal("background", &self.prior.background, "normal:MEAN,SD")?;
        let (_, amplitude) = normal("amplitude", &self.prior.amplitude, "normal:0,SD")?;
        Ok(Linear { level, background, amplitude })
    }

    /// The space: parameters of each peak, and the noise.
    pub(super) fn space(&self) -> Components {
        let PeakPriors { position, height, width, mixing, frequency, noise, .. } = self.prior.clone();
        let mut space = Components::new(self.shape.words().0, 0..=self.max_peaks);
        if let Some(frequency) = frequency {
            space = space.each("frequency", frequency).ordered();
        }
        if let Some(position) = position {
            space = space.each("position", position).ordered();
        }
        for (name, prior) in [("height", height), ("width", width), ("mixing", mixing)] {
            if let Some(prior) = prior {
                space = space.each(name, prior);
            }
        }
        match noise {
            Some(noise) => space.with("noise", noise),
            None => space,
        }
    }

    /// In words.
    pub(super) fn in_words(&self) -> String {
        let prior = &self.prior;
        let said = |what: &str, prior: &Option<Prior>| prior.as_ref().map(|prior| format!("{what} {prior}"));
        let parts = [
            Some(format!("number of {} {} on 0 to {}", self.shape.words().1, self.count_prior, self.max_peaks)),
            said("positions", &prior.position),
            said("heights", &prior.height),
            said("widths", &prior.width),
            said("mixing", &prior.mixing),
            said("frequencies", &prior.frequency),
            said("amplitudes", &prior.amplitude),
            said(&format!("background of degree {}", self.background), &prior.background),
            said("noise", &prior.noise),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

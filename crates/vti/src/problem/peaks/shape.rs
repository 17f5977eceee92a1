//! What a peak looks like.

use serde::{Deserialize, Serialize};

use crate::simd::Real;

/// What is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeakShape {
    /// exp(−4 log 2 u²), u = (x − position)/width.
    #[default]
    Gaussian,
    /// 1/(1 + 4 u²).
    Lorentzian,
    /// A pseudo-Voigt profile: a Lorentzian and a Gaussian of the same width, in the proportions `mixing` and 1 − `mixing`.
    Voigt,
    /// A cosine and a sine of one frequency.
    Sinusoid,
}

impl PeakShape {
    /// As it is written in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gaussian => "gaussian",
            Self::Lorentzian => "lorentzian",
            Self::Voigt => "voigt",
            Self::Sinusoid => "sinusoid",
        }
    }

    /// One of them in words, and several.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Sinusoid => ("sinusoid", "sinusoids"),
            _ => ("peak", "peaks"),
        }
    }

    /// The profile at u, half of whose maximum is at u = ±½.
    pub(super) fn profile(self, u: f64, mixing: f64) -> f64 {
        match self {
            Self::Gaussian => gaussian(u),
            Self::Lorentzian => lorentzian(u),
            Self::Voigt => mixing * lorentzian(u) + (1.0 - mixing) * gaussian(u),
            Self::Sinusoid => f64::NAN,
        }
    }
}

/// 4 log 2.
const SHARPNESS: f64 = 2.772_588_722_239_781;

#[inline(always)]
pub(super) fn gaussian(u: f64) -> f64 {
    Real::exp(-SHARPNESS * u * u)
}

#[inline(always)]
pub(super) fn lorentzian(u: f64) -> f64 {
    1.0 / (1.0 + 4.0 * u * u)
}

/// The derivative by u, from the profile there.
#[inline(always)]
pub(super) fn gaussian_slope(u: f64, profile: f64) -> f64 {
    -2.0 * SHARPNESS * u * profile
}

#[inline(always)]
pub(super) fn lorentzian_slope(u: f64, profile: f64) -> f64 {
    -8.0 * u * profile * profile
}

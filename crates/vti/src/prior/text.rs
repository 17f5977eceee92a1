//! Priors as short texts for a command line: the kind, a colon, and the parameters.

use std::fmt;
use std::str::FromStr;

use super::{Prior, PriorError};

/// What can be said.
const KNOWN: &str = "normal:MEAN,SD, log-normal:MEAN,SD, half-normal:SD, uniform:LOW,HIGH, log-uniform:LOW,HIGH, \
                     exponential:RATE, gamma:SHAPE,RATE, inverse-gamma:SHAPE,SCALE, beta:A,B, cauchy:LOCATION,SCALE, \
                     student-t:DF,LOCATION,SCALE";

impl Prior {
    /// Its kind, as in files and texts; `own` for one's own.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Normal { .. } => "normal",
            Self::LogNormal { .. } => "log-normal",
            Self::HalfNormal { .. } => "half-normal",
            Self::Uniform { .. } => "uniform",
            Self::LogUniform { .. } => "log-uniform",
            Self::Exponential { .. } => "exponential",
            Self::Gamma { .. } => "gamma",
            Self::InverseGamma { .. } => "inverse-gamma",
            Self::Beta { .. } => "beta",
            Self::Cauchy { .. } => "cauchy",
            Self::StudentT { .. } => "student-t",
            Self::Own(_) => "own",
        }
    }

    /// Its parameters, in the order of the fields.
    pub(super) fn parameters(&self) -> Vec<f64> {
        match *self {
            Self::Normal { mean, sd } | Self::LogNormal { mean, sd } => vec![mean, sd],
            Self::HalfNormal { sd } => vec![sd],
            Self::Uniform { low, high } | Self::LogUniform { low, high } => vec![low, high],
            Self::Exponential { rate } => vec![rate],
            Self::Gamma { shape, rate } => vec![shape, rate],
            Self::InverseGamma { shape, scale } => vec![shape, scale],
            Self::Beta { a, b } => vec![a, b],
            Self::Cauchy { location, scale } => vec![location, scale],
            Self::StudentT { df, location, scale } => vec![df, location, scale],
            Self::Own(_) => Vec::new(),
        }
    }
}

impl fmt::Display for Prior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_text(f, self.kind(), &self.parameters())
    }
}

/// `kind` alone, or `kind:1,2,3`.
pub(super) fn write_text(f: &mut fmt::Formatter<'_>, kind: &str, parameters: &[f64]) -> fmt::Result {
    f.write_str(kind)?;
    for (i, parameter) in parameters.iter().enumerate() {
        write!(f, "{}{parameter}", if i == 0 { ':' } else { ',' })?;
    }
    Ok(())
}

/// The kind and the parameters of a text; none if one of them is not a number.
pub(super) fn read_text(text: &str) -> Option<(&str, Vec<f64>)> {
    let Some((kind, rest)) = text.split_once(':') else {
        return Some((text.trim(), Vec::new()));
    };
    let parameters = rest.split(',').map(|part| part.trim().parse().ok()).collect::<Option<_>>()?;
    Some((kind.trim(), parameters))
}

impl FromStr for Prior {
    type Err = PriorError;

    fn from_str(text: &str) -> Result<Self, PriorError> {
        let unknown = || PriorError::Unknown { text: text.to_owned(), known: KNOWN };
        let (kind, parameters) = read_text(text).ok_or_else(unknown)?;
        let prior = match (kind, parameters.as_slice()) {
            ("normal", &[mean, sd]) => Self::Normal { mean, sd },
            ("log-normal", &[mean, sd]) => Self::LogNormal { mean, sd },
            ("half-normal", &[sd]) => Self::HalfNormal { sd },
            ("uniform", &[low, high]) => Self::Uniform { low, high },
            ("log-uniform", &[low, high]) => Self::LogUniform { low, high },
            ("exponential", &[rate]) => Self::Exponential { rate },
            ("gamma", &[shape, rate]) => Self::Gamma { shape, rate },
            ("inverse-gamma", &[shape, scale]) => Self::InverseGamma { shape, scale },
            ("beta", &[a, b]) => Self::Beta { a, b },
            ("cauchy", &[location, scale]) => Self::Cauchy { location, scale },
            ("student-t", &[df, location, scale]) => Self::StudentT { df, location, scale },
            _ => return Err(unknown()),
        };
        prior.check()?;
        Ok(prior)
    }
}

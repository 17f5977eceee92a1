//! One of the named distributions, or one's own.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::{finite, positive};
use super::{
    Beta, Cauchy, Distribution, Exponential, Gamma, HalfNormal, InverseGamma, LogNormal, LogUniform, Normal,
    PriorError, StudentT, Tabulated, Uniform,
};

/// The prior of a number: one of the named distributions, or one's own. This is what settings, files and commands hold.
///
/// In files it is a table with the key `kind`; on a command line a short text with the parameters in the order of the fields.
///
/// ```
/// use vti::prior::{Distribution, Gamma, Prior};
/// let prior: Prior = Gamma(2.0, 0.5).into();
/// assert_eq!(prior, "gamma:2,0.5".parse()?);
/// assert_eq!(prior, serde_json::from_str(r#"{"kind": "gamma", "shape": 2, "rate": 0.5}"#)?);
/// assert_eq!(prior.to_string(), "gamma:2,0.5");
/// assert!((prior.log_density(3.0) - Gamma(2.0, 0.5).log_density(3.0)).abs() < 1e-15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Prior {
    /// [`Normal`].
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        sd: f64,
    },
    /// [`LogNormal`].
    LogNormal {
        /// Mean of the logarithm.
        mean: f64,
        /// Standard deviation of the logarithm.
        sd: f64,
    },
    /// [`HalfNormal`].
    HalfNormal {
        /// Standard deviation of the whole normal distribution.
        sd: f64,
    },
    /// [`Uniform`].
    Uniform {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// [`LogUniform`].
    LogUniform {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// [`Exponential`].
    Exponential {
        /// Rate, 1/mean.
        rate: f64,
    },
    /// [`Gamma`].
    Gamma {
        /// Shape.
        shape: f64,
        /// Rate.
        rate: f64,
    },
    /// [`InverseGamma`].
    InverseGamma {
        /// Shape.
        shape: f64,
        /// Scale.
        scale: f64,
    },
    /// [`Beta`].
    Beta {
        /// Exponent of x, plus 1.
        a: f64,
        /// Exponent of 1 − x, plus 1.
        b: f64,
    },
    /// [`Cauchy`].
    Cauchy {
        /// Median.
        location: f64,
        /// Half the width at half the height.
        scale: f64,
    },
    /// [`StudentT`].
    StudentT {
        /// Degrees of freedom.
        df: f64,
        /// Median.
        location: f64,
        /// Scale.
        scale: f64,
    },
    /// One's own; files and texts cannot hold it.
    #[serde(skip)]
    Own(Arc<dyn Distribution>),
}

/// Evaluates an expression of the distribution behind a prior.
macro_rules! distribution {
    ($prior:expr, $name:ident => $value:expr) => {
        match $prior {
            Prior::Normal { mean, sd } => distribution!(@ $name = Normal(*mean, *sd), $value),
            Prior::LogNormal { mean, sd } => distribution!(@ $name = LogNormal(*mean, *sd), $value),
            Prior::HalfNormal { sd } => distribution!(@ $name = HalfNormal(*sd), $value),
            Prior::Uniform { low, high } => distribution!(@ $name = Uniform(*low, *high), $value),
            Prior::LogUniform { low, high } => distribution!(@ $name = LogUniform(*low, *high), $value),
            Prior::Exponential { rate } => distribution!(@ $name = Exponential(*rate), $value),
            Prior::Gamma { shape, rate } => distribution!(@ $name = Gamma(*shape, *rate), $value),
            Prior::InverseGamma { shape, scale } => distribution!(@ $name = InverseGamma(*shape, *scale), $value),
            Prior::Beta { a, b } => distribution!(@ $name = Beta(*a, *b), $value),
            Prior::Cauchy { location, scale } => distribution!(@ $name = Cauchy(*location, *scale), $value),
            Prior::StudentT { df, location, scale } => {
                distribution!(@ $name = StudentT(*df, *location, *scale), $value)
            }
            Prior::Own(own) => distribution!(@ $name = own, $value),
        }
    };
    (@ $name:ident = $distribution:expr, $value:expr) => {{
        let $name = $distribution;
        $value
    }};
}

impl Distribution for Prior {
    fn log_density(&self, x: f64) -> f64 {
        distribution!(self, own => own.log_density(x))
    }

    fn bounds(&self) -> (f64, f64) {
        distribution!(self, own => own.bounds())
    }

    fn from_normal(&self, z: f64) -> f64 {
        distribution!(self, own => own.from_normal(z))
    }

    fn to_normal(&self, x: f64) -> f64 {
        distribution!(self, own => own.to_normal(x))
    }

    fn slope(&self, x: f64) -> f64 {
        distribution!(self, own => own.slope(x))
    }
}

impl Prior {
    /// One's own distribution.
    pub fn own(distribution: impl Distribution + 'static) -> Self {
        Self::Own(Arc::new(distribution))
    }

    /// Whether there is such a distribution; the error names the parameter. One's own only needs numbers between its bounds.
    pub fn check(&self) -> Result<(), PriorError> {
        let kind = self.kind();
        match *self {
            Self::Normal { mean, sd } | Self::LogNormal { mean, sd } => {
                finite(kind, "mean", mean)?;
                positive(kind, "sd", sd)
            }
            Self::HalfNormal { sd } => positive(kind, "sd", sd),
            Self::Uniform { low, high } => interval(kind, low, high),
            Self::LogUniform { low, high } => {
                positive(kind, "low", low)?;
                interval(kind, low, high)
            }
            Self::Exponential { rate } => positive(kind, "rate", rate),
            Self::Gamma { shape, rate } => {
                positive(kind, "shape", shape)?;
                positive(kind, "rate", rate)
            }
            Self::InverseGamma { shape, scale } => {
                positive(kind, "shape", shape)?;
                positive(kind, "scale", scale)
            }
            Self::Beta { a, b } => {
                positive(kind, "a", a)?;
                positive(kind, "b", b)
            }
            Self::Cauchy { location, scale } => {
                finite(kind, "location", location)?;
                positive(kind, "scale", scale)
            }
            Self::StudentT { df, location, scale } => {
                positive(kind, "df", df)?;
                finite(kind, "location", location)?;
                positive(kind, "scale", scale)
            }
            Self::Own(ref own) => {
                let (low, high) = own.bounds();
                if low < high { Ok(()) } else { Err(PriorError::Empty { kind, low, high }) }
            }
        }
    }
}

/// Ends of an interval: finite, with numbers between them whose distances are finite, too.
fn interval(kind: &'static str, low: f64, high: f64) -> Result<(), PriorError> {
    finite(kind, "low", low)?;
    finite(kind, "high", high)?;
    let empty = low.next_up() >= high || !(high - low).is_finite();
    if empty { Err(PriorError::Empty { kind, low, high }) } else { Ok(()) }
}

/// The same distribution with the same parameters; one's own is the same object.
impl PartialEq for Prior {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Own(one), Self::Own(other)) => Arc::ptr_eq(one, other),
            _ => self.kind() == other.kind() && self.parameters() == other.parameters(),
        }
    }
}

/// Makes a prior of each named distribution.
macro_rules! from_named {
    ($($name:ident($($field:ident),+);)+) => {
        $(impl From<$name> for Prior {
            fn from($name($($field),+): $name) -> Self {
                Self::$name { $($field),+ }
            }
        })+
    };
}

from_named! {
    Normal(mean, sd);
    LogNormal(mean, sd);
    HalfNormal(sd);
    Uniform(low, high);
    LogUniform(low, high);
    Exponential(rate);
    Gamma(shape, rate);
    InverseGamma(shape, scale);
    Beta(a, b);
    Cauchy(location, scale);
    StudentT(df, location, scale);
}

impl From<Tabulated> for Prior {
    fn from(own: Tabulated) -> Self {
        Self::own(own)
    }
}

impl From<Arc<dyn Distribution>> for Prior {
    fn from(own: Arc<dyn Distribution>) -> Self {
        Self::Own(own)
    }
}

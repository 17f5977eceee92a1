//! What is assumed before the data: how many changes, where, and how large.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Series, SeriesError};
use crate::prior::{CountPrior, Prior, PriorError};

/// What is constant between changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The rate of a Poisson process, of which times of events are known.
    #[default]
    Events,
    /// The rate of counts.
    Counts,
    /// The mean of values with normal noise.
    Means,
    /// The line that values lie on, with normal noise.
    Slopes,
}

impl Kind {
    /// As it is written in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Counts => "counts",
            Self::Means => "means",
            Self::Slopes => "slopes",
        }
    }

    /// Names of the parameters that a segment has.
    pub fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Events | Self::Counts => &["rate"],
            Self::Means => &["mean"],
            Self::Slopes => &["level", "slope"],
        }
    }
}

/// The noise of values around means or lines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Noise {
    /// Its standard deviation is inferred.
    Unknown {},
    /// Its standard deviation is this.
    Known {
        /// The standard deviation.
        sigma: f64,
    },
    /// Errors have Student's t distribution, so that single values may be far off; their scale is inferred. For means only.
    Robust {
        /// Degrees of freedom.
        df: f64,
    },
}

impl Noise {
    /// Whether its standard deviation or scale is inferred.
    pub fn is_inferred(self) -> bool {
        !matches!(self, Self::Known { .. })
    }
}

impl Default for Noise {
    fn default() -> Self {
        Self::Unknown {}
    }
}

/// Priors of parameters; what is left out is set from the data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SegmentPriors {
    /// Of rates: a gamma distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Prior>,
    /// Of means, and of lines at the mean time of their rows: a normal distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Prior>,
    /// Of slopes: a normal distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slope: Option<Prior>,
    /// Of the standard deviation of the noise: any distribution of positive numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<Prior>,
}

/// Settings of a search for changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChangePointSettings {
    /// What is constant between changes.
    pub kind: Kind,
    /// The most changes; without it ten, or as many as fit.
    pub max_changes: Option<usize>,
    /// The least distance between changes, and from the ends: in units of time for events and for rows that have times, in rows
    /// otherwise.
    pub min_spacing: f64,
    /// The prior of their number.
    pub count_prior: CountPrior,
    /// Of events: spacings have a Dirichlet distribution with these parameters. 1: positions are uniform; 2: even numbered ones of
    /// twice as many uniform positions (Green 1995), which keeps them apart.
    pub spacing: f64,
    /// The noise of values.
    pub noise: Noise,
    /// Priors of parameters.
    pub prior: SegmentPriors,
}

impl Default for ChangePointSettings {
    fn default() -> Self {
        Self {
            kind: Kind::default(),
            max_changes: None,
            min_spacing: 0.0,
            count_prior: CountPrior::Poisson { mean: 3.0 },
            spacing: 2.0,
            noise: Noise::default(),
            prior: SegmentPriors::default(),
        }
    }
}

/// Settings or data that make no question.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ChangePointError {
    /// Data in which no change can be looked for.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// A prior that is none.
    #[error(transparent)]
    Prior(#[from] PriorError),
    /// A setting out of its range.
    #[error("{what} is {value}, it must be {range}")]
    Setting {
        /// Which.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// Robust errors of lines.
    #[error(
        "robust errors are for means, not for slopes: two parameters of a segment are not integrated by quadrature"
    )]
    RobustSlopes,
    /// Robust errors that are too small beside the differences of values.
    #[error(
        "robust errors are so small beside the range of the values that their integrals would take too many nodes; \
         use normal errors, or leave out rows that are far off"
    )]
    TooExact,
    /// A prior with which nothing can be integrated in closed form.
    #[error("the prior of the {what} is {found}, but must be {needed}: with it segments are integrated in closed form")]
    NotConjugate {
        /// Of what.
        what: &'static str,
        /// What was given.
        found: String,
        /// What it must be.
        needed: &'static str,
    },
    /// More changes than there is room for.
    #[error("{wanted} changes do not fit: there is room for {room} at most{apart}\nhint: --max-changes {room}")]
    DoNotFit {
        /// How many were asked for.
        wanted: usize,
        /// How many fit.
        room: usize,
        /// Why, in words.
        apart: String,
    },
    /// Values that never change leave nothing to set priors from.
    #[error(
        "all values are {value}: give the noise and the priors of levels, which are otherwise set from the spread of values"
    )]
    Constant {
        /// Their value.
        value: f64,
    },
    /// More than can be done in reasonable time.
    #[error(
        "{found} {what} are more than an exact answer is computed for ({most})\nhint: sum neighbouring ones, and use --kind counts"
    )]
    TooMany {
        /// How many there are.
        found: usize,
        /// Of what.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// No number of changes makes the data possible.
    #[error("the data are impossible under these priors: every evidence is 0 or no number")]
    Impossible,
}

impl ChangePointError {
    pub(super) fn check(
        what: &'static str,
        value: f64,
        fine: bool,
        range: &'static str,
    ) -> Result<(), ChangePointError> {
        if fine { Ok(()) } else { Err(Self::Setting { what, value, range }) }
    }
}

/// Priors that segments are integrated with, from settings and data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Conjugate {
    /// Shape and rate of the gamma distribution of rates.
    pub(super) rate: (f64, f64),
    /// Mean and standard deviation of levels.
    pub(super) level: (f64, f64),
    /// The same of slopes.
    pub(super) slope: (f64, f64),
}

impl SegmentPriors {
    /// With what is left out set from the data.
    pub(super) fn resolve(&self, kind: Kind, noise: Noise, series: &Series) -> Result<Self, ChangePointError> {
        let mut priors = self.clone();
        match (kind, series) {
            (Kind::Events, Series::Events { times, start, end }) => {
                priors.rate.get_or_insert(exponential(times.len() as f64, end - start));
            }
            (Kind::Counts, Series::Rows { values, exposure, .. }) => {
                let exposed = if exposure.is_empty() { values.len() as f64 } else { exposure.iter().sum() };
                priors.rate.get_or_insert(exponential(values.iter().sum(), exposed));
            }
            (_, Series::Rows { times, values, .. }) => {
                let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let (range, duration) = (high - low, times[times.len() - 1] - times[0]);
                let needed = priors.level.is_none()
                    || kind == Kind::Slopes && priors.slope.is_none()
                    || noise.is_inferred() && priors.noise.is_none();
                if needed && !(range > 0.0 && range.is_finite()) {
                    return Err(ChangePointError::Constant { value: low });
                }
                priors.level.get_or_insert(Prior::Normal { mean: 0.5 * (low + high), sd: 0.5 * range });
                if kind == Kind::Slopes {
                    priors.slope.get_or_insert(Prior::Normal { mean: 0.0, sd: 2.0 * range / duration });
                }
                if noise.is_inferred() {
                    let mean = values.iter().sum::<f64>() / values.len() as f64;
                    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
                    let sd = (squares / values.len() as f64).sqrt();
                    priors.noise.get_or_insert(Prior::LogUniform { low: 1e-3 * sd, high: 2.0 * sd });
                }
            }
            _ => {}
        }
        Ok(priors)
    }

    /// As segments need them; others are refused.
    pub(super) fn conjugate(&self) -> Result<Conjugate, ChangePointError> {
        let refuse =
            |what, found: &Prior, needed| ChangePointError::NotConjugate { what, found: found.to_string(), needed };
        let normal = |prior: &Option<Prior>, what| match prior {
            None => Ok((f64::NAN, f64::NAN)),
            Some(Prior::Normal { mean, sd }) => {
                ChangePointError::check(what, *sd, *sd > 0.0 && sd.is_finite() && mean.is_finite(), "a positive sd")?;
                Ok((*mean, *sd))
            }
            Some(other) => Err(refuse(what, other, "normal:MEAN,SD")),
        };
        let rate = match &self.rate {
            None => (f64::NAN, f64::NAN),
            Some(Prior::Gamma { shape, rate }) => {
                ChangePointError::check("shape of the prior of rates", *shape, *shape > 0.0, "positive")?;
                ChangePointError::check("rate of the prior of rates", *rate, *rate > 0.0, "positive")?;
                (*shape, *rate)
            }
            Some(Prior::Exponential { rate }) => (1.0, *rate),
            Some(other) => return Err(refuse("rate", other, "gamma:SHAPE,RATE")),
        };
        Ok(Conjugate { rate, level: normal(&self.level, "level")?, slope: normal(&self.slope, "slope")? })
    }

    /// In words.
    pub(super) fn in_words(&self, kind: Kind) -> Vec<String> {
        let said = |what: &str, prior: &Option<Prior>| prior.as_ref().map(|prior| format!("{what} {prior}"));
        let parts = match kind {
            Kind::Events | Kind::Counts => vec![said("rates", &self.rate)],
            Kind::Means => vec![said("means", &self.level), said("noise", &self.noise)],
            Kind::Slopes => vec![
                said("levels (at the mean time of a segment)", &self.level),
                said("slopes", &self.slope),
                said("noise", &self.noise),
            ],
        };
        parts.into_iter().flatten().collect()
    }
}

/// An exponential distribution whose mean is the rate of all together; of half an event where there is none.
fn exponential(events: f64, exposed: f64) -> Prior {
    Prior::Gamma { shape: 1.0, rate: exposed / events.max(0.5) }
}

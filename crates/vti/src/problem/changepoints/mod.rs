//! How many changes, and when? Rates of events, rates of counts, means or lines that are constant between change points.
//!
//! Given the changes, all parameters are integrated in closed form: rates have gamma priors, means, levels and slopes normal
//! ones, and an unknown noise is integrated by quadrature. Sums (of rows) or integrals (of events) over all places of k changes
//! are made by recursion over segments, so that [`ChangePoints::posterior`] is exact: evidences of every k, expected changes at
//! every place, and independent draws.
//!
//! ```
//! use vti::problem::changepoints::{ChangePointSettings, ChangePoints, Kind, Series};
//! use vti::workers::Workers;
//! let values: Vec<f64> = (0..40).map(|row| f64::from(row / 20) + 0.1 * f64::from(row % 3)).collect();
//! let (series, _) = Series::rows(&values, None, None)?;
//! let settings = ChangePointSettings { kind: Kind::Means, ..ChangePointSettings::default() };
//! let problem = ChangePoints::new(series, settings)?;
//! let posterior = problem.posterior(&Workers::new(1)?)?;
//! assert!((posterior.probabilities()[1] - 0.808).abs() < 0.001);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod data;
mod density;
mod events;
mod exact;
mod noise;
mod prior;
mod robust;
mod rows;
mod segments;
pub mod simulate;
mod values;

#[cfg(test)]
mod tests;

pub use data::{Series, SeriesError};
pub use density::ParameterPlaces;
pub use exact::{ChangeDraw, ChangePosterior};
pub use prior::{ChangePointError, ChangePointSettings, Kind, Noise, SegmentPriors};

use self::events::EventSegments;
use self::prior::Conjugate;
use self::robust::RobustRows;
use self::rows::Allowed;
use self::segments::{CountSegments, GammaPoisson, LineSums};
use self::values::Values;
use crate::prior::{Distribution, Prior};
use crate::space::OneOf;
use crate::workers::Workers;

/// The most changes, where nobody says.
const MOST: usize = 10;

/// Rows and events for which an exact answer is computed in reasonable time.
const MAX_ROWS: usize = 20_000;
const MAX_ROWS_UNKNOWN_NOISE: usize = 5_000;
const MAX_ROWS_ROBUST: usize = 1_000;
const MAX_EVENTS: usize = 4_000;

/// Degrees of freedom of robust errors: with fewer, next to nothing is improbable, and with more they are normal.
const MIN_DF: f64 = 0.5;
const MAX_DF: f64 = 1000.0;

/// A search for changes.
#[derive(Clone, Debug)]
pub struct ChangePoints {
    series: Series,
    settings: ChangePointSettings,
    most: usize,
    log_prior: Vec<f64>,
    /// The prior of places given their number ([`density::log_positions`]).
    log_positions: Vec<f64>,
    parts: Parts,
    space: OneOf,
    /// Names of times and of values, for axes.
    names: [String; 2],
}

/// What segments are made of.
#[derive(Clone, Debug)]
enum Parts {
    Events(EventSegments),
    Counts(CountSegments, Allowed),
    Lines(Values, Allowed),
}

impl ChangePoints {
    /// With what settings leave out set from the data.
    pub fn new(series: Series, settings: ChangePointSettings) -> Result<Self, ChangePointError> {
        let mut settings = settings;
        check(&series, &settings)?;
        settings.prior = settings.prior.resolve(settings.kind, settings.noise, &series)?;
        let conjugate = settings.prior.conjugate()?;
        check_noise(&settings)?;
        let parts = Parts::new(&series, &settings, &conjugate)?;
        let most = most(&series, &settings, &parts)?;
        settings.max_changes = Some(most);
        let log_prior = settings.count_prior.log_probabilities(0..=most)?;
        let log_positions = density::log_positions(&parts, most);
        let names = [if matches!(series, Series::Rows { timed: false, .. }) { "row" } else { "time" }, "value"];
        let (names, space) = (names.map(String::from), OneOf::with_dims(&[0]));
        let space = space.map_err(|_| ChangePointError::Impossible)?;
        let problem = Self { series, settings, most, log_prior, log_positions, parts, space, names };
        Ok(Self { space: density::space(&problem)?, ..problem })
    }

    /// With names of times and of values, for axes.
    pub fn with_names(self, time: Option<&str>, value: Option<&str>) -> Self {
        let [own_time, own_value] = self.names;
        let names = [time.map_or(own_time, String::from), value.map_or(own_value, String::from)];
        Self { names, ..self }
    }

    /// Names of times and of values.
    pub fn names(&self) -> &[String; 2] {
        &self.names
    }

    /// The data.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// The settings, with all that was left out.
    pub fn settings(&self) -> &ChangePointSettings {
        &self.settings
    }

    /// The most changes.
    pub fn max_changes(&self) -> usize {
        self.most
    }

    /// `log p(k)`.
    pub fn log_prior(&self, changes: usize) -> f64 {
        self.log_prior.get(changes).copied().unwrap_or(f64::NEG_INFINITY)
    }

    /// Whether the standard deviation of the noise is inferred.
    pub fn has_unknown_noise(&self) -> bool {
        matches!(self.parts, Parts::Lines(..)) && self.settings.noise.is_inferred()
    }

    /// Priors in words.
    pub fn prior_in_words(&self) -> String {
        let mut parts = vec![format!("number of changes {} on 0 to {}", self.settings.count_prior, self.most)];
        parts.push(match self.parts {
            Parts::Events(_) => format!("spacings dirichlet:{}", self.settings.spacing),
            _ => "all places equally probable".into(),
        });
        let least = self.settings.min_spacing;
        if least > 0.0 {
            let unit = if self.is_timed() { "of time" } else { "rows" };
            parts[1] += &format!(", at least {least} {unit} apart");
        }
        parts.extend(self.settings.prior.in_words(self.settings.kind));
        match (&self.parts, self.settings.noise) {
            (Parts::Lines(..), Noise::Known { sigma }) => parts.push(format!("noise {sigma}, known")),
            (Parts::Lines(..), Noise::Robust { df }) => {
                parts.push(format!("errors Student's t with {df} degrees of freedom, the noise being their scale"));
            }
            _ => {}
        }
        parts.join("; ")
    }

    /// Whether spacings are in units of time, not in rows.
    pub fn is_timed(&self) -> bool {
        matches!(self.series, Series::Events { .. } | Series::Rows { timed: true, .. })
    }

    /// The exact posterior.
    pub fn posterior(&self, workers: &Workers) -> Result<ChangePosterior<'_>, ChangePointError> {
        ChangePosterior::new(self, workers)
    }

    /// The value of the curve at `x`, where there are these changes and parameters of segments: the rate, the mean or the line.
    pub fn curve(&self, x: f64, positions: &[f64], parameters: &[f64]) -> f64 {
        let segment = positions.partition_point(|position| *position <= x);
        match &self.parts {
            Parts::Events(_) | Parts::Counts(..) => parameters[segment],
            Parts::Lines(..) if self.settings.kind == Kind::Means => parameters[segment],
            Parts::Lines(..) => {
                let start = segment.checked_sub(1).map_or(f64::NEG_INFINITY, |before| positions[before]);
                let end = positions.get(segment).copied().unwrap_or(f64::INFINITY);
                parameters[2 * segment] + parameters[2 * segment + 1] * (x - self.mean_time(start, end))
            }
        }
    }

    /// The mean time of the rows between two positions.
    fn mean_time(&self, start: f64, end: f64) -> f64 {
        let Series::Rows { times, .. } = &self.series else { return f64::NAN };
        let (first, behind) =
            (times.partition_point(|time| *time <= start), times.partition_point(|time| *time <= end));
        let rows = &times[first..behind.max(first)];
        rows.iter().sum::<f64>() / rows.len() as f64
    }
}

impl Parts {
    fn new(series: &Series, settings: &ChangePointSettings, prior: &Conjugate) -> Result<Self, ChangePointError> {
        let least = settings.min_spacing;
        match series {
            Series::Events { times, start, end } => Ok(Self::Events(EventSegments {
                times: times.iter().map(|time| time - start).collect(),
                length: end - start,
                of: GammaPoisson::new(prior.rate, times.len()),
                spacing: settings.spacing,
                least,
            })),
            Series::Rows { times, timed, values, exposure } => {
                // A line needs two rows to be one.
                let own = if settings.kind == Kind::Slopes { 2 } else { 1 };
                let allowed = match timed {
                    true => Allowed::new(times, own, least),
                    false => Allowed::new(times, own.max(least.ceil() as usize), 0.0),
                };
                Ok(match settings.kind {
                    Kind::Counts => Self::Counts(CountSegments::new(values, exposure, prior), allowed),
                    kind => match settings.noise {
                        Noise::Robust { df } => {
                            Self::Lines(Values::Robust(RobustRows::new(values, df, prior.level)), allowed)
                        }
                        _ => {
                            let sums = LineSums::new(times, values, prior, kind == Kind::Slopes);
                            Self::Lines(Values::Normal(sums), allowed)
                        }
                    },
                })
            }
        }
    }

    /// How many changes there is room for.
    fn room(&self) -> usize {
        match self {
            Self::Events(segments) if segments.least > 0.0 => {
                // Some room must be left.
                let parts = (segments.length / segments.least * (1.0 - 1e-9)).ceil();
                (parts as usize).saturating_sub(2)
            }
            Self::Events(_) => usize::from(u16::MAX),
            Self::Counts(_, allowed) | Self::Lines(_, allowed) => allowed.room(),
        }
    }
}

/// The most changes: as many as were asked for, if they fit.
fn most(series: &Series, settings: &ChangePointSettings, parts: &Parts) -> Result<usize, ChangePointError> {
    let room = parts.room();
    let too_short = || match parts {
        Parts::Events(segments) => segments.length < segments.least,
        Parts::Counts(_, allowed) | Parts::Lines(_, allowed) => allowed.first_end(0) > series.len(),
    };
    match settings.max_changes {
        Some(wanted) if wanted > room => {
            let apart = match (settings.min_spacing > 0.0, series) {
                (true, _) => format!(", because changes are at least {} apart", settings.min_spacing),
                (false, Series::Rows { .. }) => format!(" between {} rows", series.len()),
                (false, Series::Events { .. }) => String::new(),
            };
            Err(ChangePointError::DoNotFit { wanted, room, apart })
        }
        _ if too_short() => Err(ChangePointError::Setting {
            what: "min_spacing",
            value: settings.min_spacing,
            range: "shorter than the whole series",
        }),
        Some(wanted) => Ok(wanted),
        None => Ok(room.min(MOST)),
    }
}

fn check(series: &Series, settings: &ChangePointSettings) -> Result<(), ChangePointError> {
    let ChangePointSettings { kind, min_spacing, spacing, noise, .. } = settings;
    let is_length = *min_spacing >= 0.0 && min_spacing.is_finite();
    ChangePointError::check("min_spacing", *min_spacing, is_length, "0 or more")?;
    ChangePointError::check("spacing", *spacing, *spacing >= 1.0 && spacing.is_finite(), "1 or more")?;
    let (is_events, rows) = (matches!(series, Series::Events { .. }), series.len());
    let most = match kind {
        Kind::Events => MAX_EVENTS,
        Kind::Means | Kind::Slopes if matches!(noise, Noise::Robust { .. }) => MAX_ROWS_ROBUST,
        Kind::Means | Kind::Slopes if *noise == (Noise::Unknown {}) => MAX_ROWS_UNKNOWN_NOISE,
        Kind::Counts | Kind::Means | Kind::Slopes => MAX_ROWS,
    };
    if rows > most {
        let what = if is_events { "events" } else { "rows" };
        return Err(ChangePointError::TooMany { found: rows, what, most });
    }
    if (*kind == Kind::Events) != is_events {
        let what = if is_events { "rows" } else { "events" };
        return Err(SeriesError::TooFew { found: 0, what, needed: 1 }.into());
    }
    if *kind == Kind::Counts {
        series.check_counts()?;
    }
    Ok(())
}

fn check_noise(settings: &ChangePointSettings) -> Result<(), ChangePointError> {
    if let Noise::Known { sigma } = settings.noise {
        return ChangePointError::check("noise", sigma, sigma > 0.0 && sigma.is_finite(), "positive");
    }
    if let Noise::Robust { df } = settings.noise {
        ChangePointError::check("df", df, (MIN_DF..=MAX_DF).contains(&df), "0.5 to 1000")?;
        if settings.kind == Kind::Slopes {
            return Err(ChangePointError::RobustSlopes);
        }
    }
    if let Some(prior) = &settings.prior.noise {
        prior.check()?;
        if prior.bounds().0 < 0.0 {
            let (found, needed) = (prior.to_string(), "one of positive numbers, as half-normal:SD");
            return Err(ChangePointError::NotConjugate { what: "noise", found, needed });
        }
    }
    Ok(())
}

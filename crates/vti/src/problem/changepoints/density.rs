//! The joint density of data and parameters, given how many changes there are and where.

use super::rows::boundary;
use super::segments::{LineSegments, Segments};
use super::values::Values;
use super::{ChangePointError, ChangePoints, Noise, Parts, Series};
use crate::problem::{DensityError, Problem};
use crate::space::{ModelSpace, OneOf};
use crate::stats::ln_gamma;

impl ChangePoints {
    /// `log p(k) p(y, θ ∣ k)` of these positions, parameters of segments one after another, and noise where that is inferred; −∞
    /// where changes are out of order or too close to each other. A position between two rows stands for all others between
    /// them.
    pub fn log_joint(&self, positions: &[f64], parameters: &[f64], noise: Option<f64>) -> f64 {
        let (changes, width) = (positions.len(), self.settings.kind.parameters().len());
        if changes > self.most || parameters.len() != width * (changes + 1) || !positions.is_sorted() {
            return f64::NEG_INFINITY;
        }
        let known = self.log_prior[changes] + self.log_positions[changes];
        known
            + match &self.parts {
                Parts::Events(segments) => {
                    let (start, _) = self.series.ends();
                    let ends: Vec<f64> = std::iter::once(0.0)
                        .chain(positions.iter().map(|position| position - start))
                        .chain([segments.length])
                        .collect();
                    let joint = |(ends, rate): (&[f64], &f64)| {
                        let (events, time) = (segments.events_between(ends[0], ends[1]), ends[1] - ends[0]);
                        segments.of.log_joint(events, time, *rate) + segments.log_spacing(time)
                    };
                    ends.windows(2).zip(parameters).map(joint).sum()
                }
                Parts::Counts(segments, _) => {
                    self.of_rows(|from, to, own| segments.log_joint(from, to, own), positions, parameters)
                }
                Parts::Lines(lines, _) => {
                    let (noise, log_prior) = match (self.settings.noise, &self.settings.prior.noise, noise) {
                        (Noise::Known { sigma }, ..) => (sigma, 0.0),
                        (Noise::Unknown {} | Noise::Robust { .. }, Some(prior), Some(noise)) => {
                            (noise, crate::prior::Distribution::log_density(prior, noise))
                        }
                        _ => return f64::NEG_INFINITY,
                    };
                    log_prior + self.of_values(lines, noise, positions, parameters)
                }
            }
    }

    /// Of values at this noise. Segments are asked for their joint densities alone, so that nothing is integrated.
    fn of_values(&self, values: &Values, noise: f64, positions: &[f64], parameters: &[f64]) -> f64 {
        match values {
            Values::Normal(sums) => {
                let segments = LineSegments::new(sums, noise);
                self.of_rows(|from, to, own| segments.log_joint(from, to, own), positions, parameters)
            }
            Values::Robust(rows) => {
                self.of_rows(|from, to, own| rows.log_joint(from, to, own[0], noise), positions, parameters)
            }
        }
    }

    fn of_rows(&self, log_joint: impl Fn(usize, usize, &[f64]) -> f64, positions: &[f64], parameters: &[f64]) -> f64 {
        let (Parts::Counts(_, allowed) | Parts::Lines(_, allowed), Series::Rows { times, .. }) =
            (&self.parts, &self.series)
        else {
            return f64::NEG_INFINITY;
        };
        let width = self.settings.kind.parameters().len();
        let inner = positions.iter().map(|position| times.partition_point(|time| time < position));
        let places: Vec<usize> = std::iter::once(0).chain(inner).chain([times.len()]).collect();
        let joint = |(number, ends): (usize, &[usize])| {
            if ends[0] >= ends[1] || allowed.first_end(ends[0]) > ends[1] {
                return f64::NEG_INFINITY;
            }
            log_joint(ends[0], ends[1], &parameters[width * number..][..width])
        };
        places.windows(2).enumerate().map(joint).sum()
    }

    /// Where a place between rows is; not a number for events.
    pub(super) fn boundary(&self, place: usize) -> f64 {
        match &self.series {
            Series::Rows { times, .. } => boundary(times, place),
            Series::Events { .. } => f64::NAN,
        }
    }

    /// Places of the parameters of a model with so many changes, among those of all models: the noise where it is inferred,
    /// positions, and then segments one after another.
    pub fn places(&self, changes: usize) -> ParameterPlaces {
        let (first, width) = (usize::from(self.has_unknown_noise()), self.settings.kind.parameters().len());
        let segments = first + self.most;
        ParameterPlaces {
            noise: self.has_unknown_noise().then_some(0),
            positions: (first..first + changes).collect(),
            segments: (segments..segments + width * (changes + 1)).collect(),
        }
    }
}

/// Places of a model's parameters among those of all models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterPlaces {
    /// Of the noise, where that is inferred.
    pub noise: Option<usize>,
    /// Of positions.
    pub positions: Vec<usize>,
    /// Of the parameters of segments, one after another.
    pub segments: Vec<usize>,
}

/// Models by their number of changes, each with the coordinates that it has.
pub(super) fn space(problem: &ChangePoints) -> Result<OneOf, ChangePointError> {
    let most = problem.most;
    let last = problem.places(most).segments.last().map_or(0, |last| last + 1);
    let coordinates = |changes: usize| {
        let ParameterPlaces { noise, positions, segments } = problem.places(changes);
        noise.into_iter().chain(positions).chain(segments).map(|place| place as u32).collect()
    };
    let room = |_| ChangePointError::DoNotFit { wanted: most, room: 1000, apart: String::new() };
    let named = |changes: usize| match changes {
        0 => "no change points".to_string(),
        1 => "1 change point".to_string(),
        _ => format!("{changes} change points"),
    };
    OneOf::new(last, (0..=most).map(coordinates).collect())
        .and_then(|space| space.with_names((0..=most).map(named).collect()))
        .map_err(room)
}

/// The log prior density of positions up to the spacing factors of segments, or the log probability of each allowed set of
/// places, given their number.
pub(super) fn log_positions(parts: &Parts, most: usize) -> Vec<f64> {
    match parts {
        Parts::Events(segments) => {
            let (spacing, least) = (segments.spacing, segments.least);
            // Spacings are their least value and a share of the rest: Dirichlet shares, with their Jacobian.
            let log = |changes: usize| {
                let count = changes as f64 + 1.0;
                let rest = segments.length - count * least;
                let power = (spacing - 1.0) * count + changes as f64;
                ln_gamma(count * spacing) - count * ln_gamma(spacing) - power * rest.ln()
            };
            (0..=most).map(log).collect()
        }
        Parts::Counts(_, allowed) | Parts::Lines(_, allowed) => {
            allowed.log_sets(most).into_iter().map(|log| -log).collect()
        }
    }
}

/// Values of the density are those of [`ChangePoints::log_joint`]; as a function of positions it jumps, so it has no gradient.
impl Problem for ChangePoints {
    fn space(&self) -> &dyn ModelSpace {
        &self.space
    }

    fn log_density(&self, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        gradient.fill(f64::NAN);
        let changes = model.first().map_or(0, |&symbol| usize::from(symbol));
        let first = usize::from(self.has_unknown_noise());
        if theta.len() < first + changes {
            return Err(DensityError::Fatal { reason: "parameters of another model".into() });
        }
        let (noise, rest) = theta.split_at(first);
        let (positions, parameters) = rest.split_at(changes);
        Ok(self.log_joint(positions, parameters, noise.first().copied()) - ChangePoints::log_prior(self, changes))
    }

    fn log_prior(&self, model: &[u16]) -> f64 {
        model.first().map_or(f64::NEG_INFINITY, |&symbol| ChangePoints::log_prior(self, usize::from(symbol)))
    }

    fn parameter_names(&self) -> Vec<String> {
        let noise = self.has_unknown_noise().then(|| "sigma".to_string());
        let positions = (1..=self.most).map(|number| format!("position{number}"));
        let parameters = self.settings.kind.parameters();
        let segments =
            (1..=self.most + 1).flat_map(|number| parameters.iter().map(move |name| format!("{name}{number}")));
        noise.into_iter().chain(positions).chain(segments).collect()
    }
}

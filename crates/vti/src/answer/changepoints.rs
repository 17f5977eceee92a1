//! What is said about changes.

use std::ops::RangeInclusive;

use super::count::{ComponentTable, Counted, Counting, Curve, Described, GivenCount, Observed, Positions, Shape};
use super::{Coefficient, Findings, KnownCount, Ordered, Quantity, Run, SampledModel, Samples, Subject};
use super::{leading_counts, quantiles};
use crate::problem::Problem;
use crate::problem::changepoints::{ChangePoints, ChangePosterior, Kind, ParameterPlaces, Series};
use crate::space::Model;
use crate::workers::Workers;

/// Places of the curve of a rate, and intervals of its histogram.
const PLACES: usize = 400;
const BARS: usize = 40;

/// Intervals in which drawn positions are counted.
const INTERVALS: usize = 100;

/// Numbers of changes of which each change is described.
const LEADING: usize = 4;

impl Counting for ChangePoints {
    fn counted(&self) -> Counted {
        Counted::new("change point", "change points")
    }

    fn counts(&self) -> RangeInclusive<usize> {
        0..=self.max_changes()
    }

    fn log_prior(&self, count: usize) -> f64 {
        ChangePoints::log_prior(self, count)
    }

    fn always(&self) -> Vec<String> {
        self.has_unknown_noise().then(|| "sigma".into()).into_iter().collect()
    }

    fn model_of(&self, active: &[usize]) -> Option<Model> {
        let has = |count: &usize| {
            let ParameterPlaces { noise, positions, segments } = self.places(*count);
            noise.into_iter().chain(positions).chain(segments).eq(active.iter().copied())
        };
        self.counts().find(has).map(|count| self.word(count))
    }

    fn describe(&self, samples: &Samples, weights: &[f64]) -> Described {
        let count = |row: usize| samples.models[samples.model[row]].word.parse().unwrap_or(0);
        let at = |row: usize, places: &[usize]| -> Vec<f64> {
            places.iter().filter_map(|&place| samples.value(row, place)).collect()
        };
        let positions = |row: usize| at(row, &self.places(count(row)).positions);
        let (curve, places) = empty_curve(self);
        let curve = curve.from_draws(places.x, weights, |row, values| {
            let (positions, parameters) = (positions(row), at(row, &self.places(count(row)).segments));
            values.iter_mut().zip(&places.at).for_each(|(value, x)| *value = self.curve(*x, &positions, &parameters));
        });
        let [time, _] = self.names();
        let found =
            Positions::from_draws("where changes are", time, self.series().ends(), INTERVALS, weights, positions);
        let given = leading_counts(self, samples, weights, LEADING)
            .into_iter()
            .map(|(count, rows)| given(self, samples, weights, count, &rows));
        Described { curves: vec![curve], positions: vec![found], given: given.collect(), memberships: None }
    }
}

/// Where a curve is drawn, and where it is computed: a step is computed within it.
struct CurvePlaces {
    x: Vec<f64>,
    at: Vec<f64>,
}

/// A curve without its numbers.
fn empty_curve(problem: &ChangePoints) -> (Curve, CurvePlaces) {
    let [time, value] = problem.names();
    let (start, end) = problem.series().ends();
    let words = |name: &str, y_label: String, shape: Shape, observed: Observed| Curve {
        name: name.into(),
        x_label: time.clone(),
        y_label,
        shape,
        observed: Some(observed),
        ..Curve::default()
    };
    match problem.series() {
        Series::Events { times, .. } => {
            let observed = Observed::histogram(times, (start, end), BARS, 1.0);
            let place = |place: usize| start + (end - start) * place as f64 / PLACES as f64;
            let x: Vec<f64> = (0..=PLACES).map(place).collect();
            let at = (0..=PLACES).map(|at| start + (end - start) * (at as f64 + 0.5) / (PLACES as f64 + 1.0)).collect();
            let curve = words("rate of events", format!("events per unit of {time}"), Shape::Line, observed);
            (curve, CurvePlaces { x, at })
        }
        Series::Rows { times, values, exposure, .. } => {
            let share = |(row, value): (usize, &f64)| value / exposure.get(row).copied().unwrap_or(1.0);
            let y = values.iter().enumerate().map(share).collect();
            let observed = Observed::Points { x: times.clone(), y };
            let (name, label) = match (problem.settings().kind, exposure.is_empty()) {
                (Kind::Counts, true) => ("rate of counts", value.clone()),
                (Kind::Counts, false) => ("rate of counts", format!("{value} per unit of exposure")),
                (Kind::Slopes, _) => ("lines", value.clone()),
                (Kind::Events | Kind::Means, _) => ("mean", value.clone()),
            };
            if problem.settings().kind == Kind::Slopes {
                let places = CurvePlaces { x: times.clone(), at: times.clone() };
                return (words(name, label, Shape::Line, observed), places);
            }
            // A row's value holds half-way to its neighbours.
            let middles = times.windows(2).map(|pair| 0.5 * (pair[0] + pair[1]));
            let x: Vec<f64> = std::iter::once(start).chain(middles).chain([end]).collect();
            let at = times.iter().copied().chain([end]).collect();
            (words(name, label, Shape::Steps, observed), CurvePlaces { x, at })
        }
    }
}

/// Every change and every segment, given how many there are.
fn given(problem: &ChangePoints, samples: &Samples, weights: &[f64], count: usize, rows: &[usize]) -> GivenCount {
    let ParameterPlaces { positions, segments, .. } = problem.places(count);
    let positions: Vec<Vec<usize>> = positions.into_iter().map(|place| vec![place]).collect();
    let names = problem.settings().kind.parameters();
    let segments: Vec<Vec<usize>> = segments.chunks(names.len()).map(<[usize]>::to_vec).collect();
    let table = |component: &str, parameters: &[&str], places: &[Vec<usize>]| {
        ComponentTable::from_draws(component, parameters, places, samples, weights, rows)
    };
    let tables = vec![table("change point", &["position"], &positions), table("segment", names, &segments)];
    GivenCount { count, tables }
}

impl Samples {
    /// Draws from the exact posterior of changes, which count alike.
    pub fn of_changes(
        posterior: &ChangePosterior<'_>,
        count: usize,
        (seed, batch): (u64, u32),
        workers: &Workers,
    ) -> Self {
        let problem = posterior.problem();
        let names = problem.parameter_names();
        let model = |changes: usize| {
            let ParameterPlaces { noise, positions, segments } = problem.places(changes);
            let has = |place: usize| noise == Some(place) || positions.contains(&place) || segments.contains(&place);
            let word = problem.word(changes);
            SampledModel {
                label: problem.space().label(&word),
                word: word.to_string(),
                active: (0..names.len()).map(has).collect(),
            }
        };
        let draws = posterior.draw(count, seed, u64::from(batch), workers);
        let mut samples = Self {
            models: problem.counts().map(model).collect(),
            log_weight: vec![posterior.log_evidence(); draws.len()],
            values: vec![f64::NAN; draws.len() * names.len()],
            ..Self::default()
        };
        for (row, draw) in draws.iter().enumerate() {
            let changes = draw.positions.len();
            let ParameterPlaces { noise, positions, segments } = problem.places(changes);
            let places = noise.into_iter().chain(positions).chain(segments);
            let numbers = draw.noise.iter().chain(&draw.positions).chain(&draw.parameters);
            places.zip(numbers).for_each(|(place, number)| samples.values[row * names.len() + place] = *number);
            samples.model.push(changes);
            samples.log_target.push(draw.log_target);
            samples.log_q.push(draw.log_target - posterior.log_evidence());
        }
        Self { names, ..samples }
    }
}

impl Findings {
    /// What follows from the exact posterior of changes: probabilities and evidences of their numbers, and expected changes, without
    /// draws; the curve with its bands, and what is said of each change, from `draws` draws.
    pub fn exact_changes(
        posterior: &ChangePosterior<'_>,
        subject: &Subject<'_>,
        (draws, seed): (usize, u64),
        workers: &Workers,
        run: Run,
    ) -> Self {
        let problem = posterior.problem();
        let samples = Samples::of_changes(posterior, draws, (seed, 0), workers);
        let [time, _] = problem.names();
        let (edges, expected) = posterior.expected();
        let positions = Positions { name: "where changes are".into(), label: time.clone(), edges, expected };
        let how = match problem.series() {
            Series::Events { .. } => "all positions of changes were integrated by recursion over segments",
            Series::Rows { .. } => "all places of changes were summed by recursion over segments",
        };
        let known = KnownCount {
            log_evidences: posterior.log_evidences().to_vec(),
            coefficients: noise(posterior, &samples),
            positions: vec![positions],
            seed,
            how: format!("{how}, and draws are independent ones from the posterior"),
            samples,
        };
        Self::exact_count(problem, subject, known, run)
    }
}

/// The noise, where that is inferred: moments by quadrature, its interval from draws.
fn noise(posterior: &ChangePosterior<'_>, samples: &Samples) -> Ordered<Coefficient> {
    let found = posterior.noise().map(|(mean, sd)| {
        let place = posterior.problem().places(0).noise.unwrap_or(0);
        let drawn = (0..samples.len()).filter_map(|row| Some((samples.value(row, place)?, 1.0)));
        let interval = quantiles(&mut drawn.collect::<Vec<_>>(), [0.025, 0.975]);
        ("sigma".to_string(), Coefficient { mean: Quantity::exactly(mean), sd, interval })
    });
    found.into_iter().collect()
}

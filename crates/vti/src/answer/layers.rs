//! What is said about layers.

use std::ops::RangeInclusive;

use super::count::{
    ComponentTable, Counted, Counting, Curve, Described, GivenCount, Observed, Positions, Scale, Shape,
};
use super::{Samples, leading_counts};
use crate::prior::{Distribution, Prior};
use crate::problem::Problem;
use crate::problem::layers::{Earth, LayerProblem, View};
use crate::space::{Components, Law, Model};
use crate::workers::Workers;

/// Depths of a profile, and intervals in which interfaces are counted.
const DEPTHS: usize = 240;
const INTERVALS: usize = 60;

/// Draws of which data are predicted.
const PREDICTED: usize = 400;

/// Numbers of interfaces of which each is described.
const LEADING: usize = 4;

/// Ends whose ratio is larger than this are drawn with equal room for equal ratios.
const LOG_RATIO: f64 = 20.0;

impl Counting for LayerProblem {
    fn counted(&self) -> Counted {
        Counted::new("interface", "interfaces")
    }

    fn counts(&self) -> RangeInclusive<usize> {
        self.components().kinds()[0].counts.clone()
    }

    fn log_prior(&self, count: usize) -> f64 {
        Problem::log_prior(self, &self.word(count))
    }

    fn always(&self) -> Vec<String> {
        self.components().globals().iter().map(|(name, _)| name.clone()).collect()
    }

    fn model_of(&self, active: &[usize]) -> Option<Model> {
        let globals = self.components().globals().len();
        let is_whole =
            active.iter().copied().eq(0..active.len()) && active.len().wrapping_sub(globals).is_multiple_of(2);
        let count = active.len().checked_sub(globals).filter(|_| is_whole)? / 2;
        self.counts().contains(&count).then(|| self.word(count))
    }

    fn describe(&self, samples: &Samples, weights: &[f64]) -> Described {
        let layout = Layout::new(self);
        let earths: Vec<Earth> = (0..samples.len()).map(|row| layout.earth(self, samples, row)).collect();
        let mut curves = vec![layout.profile(&earths, weights)];
        curves.extend(predictions(self, &earths, weights));
        let positions = layout.positions(&earths, weights);
        let given = leading_counts(self, samples, weights, LEADING)
            .into_iter()
            .map(|(count, rows)| layout.given(samples, weights, count, &rows));
        Described { curves, positions: vec![positions], given: given.collect(), ..Described::default() }
    }
}

/// Where parameters are among those of samples, and what they are called.
struct Layout {
    /// Parameters that all models have, of which the first is the property of the top layer.
    globals: usize,
    property: String,
    /// Units in parentheses, or nothing.
    units: [String; 2],
    /// Bounds of depths.
    depths: (f64, f64),
    /// How depths and the property are drawn.
    scales: [Scale; 2],
}

impl Layout {
    fn new(problem: &LayerProblem) -> Self {
        let space = problem.components();
        let parameters = &space.kinds()[0].parameters;
        let [depth, value] = [0, 1].map(|place| prior(space, place));
        let units = problem.likelihood().forward().units().unwrap_or_default();
        Self {
            globals: space.globals().len(),
            property: parameters[1].name.clone(),
            units: units.map(|unit| if unit.is_empty() { String::new() } else { format!(" ({unit})") }),
            depths: depth.bounds(),
            scales: [depth, value].map(scale),
        }
    }

    /// Where the depth of an interface is; the property below it comes next.
    fn place(&self, interface: usize) -> usize {
        self.globals + 2 * interface
    }

    fn earth(&self, problem: &LayerProblem, samples: &Samples, row: usize) -> Earth {
        let word = samples.models[samples.model[row]].word.parse().map_or_else(|_| Vec::new(), |symbol| vec![symbol]);
        let at = |place: usize| samples.value(row, place).unwrap_or(f64::NAN);
        let interfaces = 0..problem.count(&word);
        Earth {
            depths: interfaces.clone().map(|interface| at(self.place(interface))).collect(),
            values: std::iter::once(at(0)).chain(interfaces.map(|interface| at(self.place(interface) + 1))).collect(),
        }
    }

    /// The ends of depths that are drawn: those of the prior, or of what was drawn where it has none.
    fn ends(&self, earths: &[Earth]) -> (f64, f64) {
        let drawn = || earths.iter().flat_map(|earth| &earth.depths).copied();
        let (low, high) = self.depths;
        let high = if high.is_finite() { high } else { drawn().fold(0.0, f64::max) };
        let low = match self.scales[0] {
            Scale::Linear => low.max(0.0),
            Scale::Log if low > 0.0 => low,
            Scale::Log => drawn().fold(high, f64::min),
        };
        if low < high { (low, high) } else { (low, low + 1.0) }
    }

    /// The property at every depth. Over a logarithmic axis its mean is that of logarithms.
    fn profile(&self, earths: &[Earth], weights: &[f64]) -> Curve {
        let (low, high) = self.ends(earths);
        let share = |place: usize| place as f64 / (DEPTHS - 1) as f64;
        let depth = |place: usize| match self.scales[0] {
            Scale::Linear => low + (high - low) * share(place),
            Scale::Log => low * (high / low).powf(share(place)),
        };
        let depths: Vec<f64> = (0..DEPTHS).map(depth).collect();
        let is_log = self.scales[1] == Scale::Log;
        let curve = Curve {
            name: format!("{} over depth", self.property),
            x_label: format!("depth{}", self.units[0]),
            y_label: format!("{}{}", self.property, self.units[1]),
            x_scale: self.scales[0],
            y_scale: self.scales[1],
            downwards: true,
            shape: Shape::Line,
            ..Curve::default()
        };
        let at = depths.clone();
        let drawn = curve.from_draws(depths, weights, |draw, values| {
            for (value, depth) in values.iter_mut().zip(&at) {
                let found = earths[draw].at(*depth);
                *value = if is_log { found.ln() } else { found };
            }
        });
        if is_log { mapped(drawn, f64::exp) } else { drawn }
    }

    /// How many interfaces are where.
    fn positions(&self, earths: &[Earth], weights: &[f64]) -> Positions {
        let (low, high) = self.ends(earths);
        let depth = format!("depth{}", self.units[0]);
        let name = "where interfaces are";
        match self.scales[0] {
            Scale::Linear => {
                Positions::from_draws(name, &depth, (low, high), INTERVALS, weights, |draw| earths[draw].depths.clone())
            }
            Scale::Log => {
                let ends = (low.log10(), high.log10());
                Positions::from_draws(name, &format!("log10 of {depth}"), ends, INTERVALS, weights, |draw| {
                    earths[draw].depths.iter().map(|depth| depth.log10()).collect()
                })
            }
        }
    }

    /// Every interface and every layer, given how many there are.
    fn given(&self, samples: &Samples, weights: &[f64], count: usize, rows: &[usize]) -> GivenCount {
        let interfaces: Vec<Vec<usize>> = (0..count).map(|interface| vec![self.place(interface)]).collect();
        let below = (0..count).map(|interface| vec![self.place(interface) + 1]);
        let layers: Vec<Vec<usize>> = std::iter::once(vec![0]).chain(below).collect();
        let table = |component: &str, parameter: &str, places: &[Vec<usize>]| {
            ComponentTable::from_draws(component, &[parameter], places, samples, weights, rows)
        };
        let tables = vec![table("interface", "depth", &interfaces), table("layer", &self.property, &layers)];
        GivenCount { count, tables }
    }
}

/// The prior of a parameter of interfaces.
fn prior(space: &Components, place: usize) -> &Prior {
    match &space.kinds()[0].parameters[place].law {
        Law::Independent(prior) | Law::Ordered(prior) => prior,
        // Neither is a share, nor spaced.
        Law::Spaced { .. } | Law::Shares(_) | Law::Known(_) => &space.globals()[0].1,
    }
}

/// Equal ratios take equal room where the prior thinks of ratios.
fn scale(prior: &Prior) -> Scale {
    match prior {
        Prior::LogUniform { low, high } if high / low > LOG_RATIO => Scale::Log,
        Prior::LogNormal { sd, .. } if *sd > 0.5 => Scale::Log,
        _ => Scale::Linear,
    }
}

/// What the data would be, beside what they are. Nothing where that cannot be predicted.
fn predictions(problem: &LayerProblem, earths: &[Earth], weights: &[f64]) -> Vec<Curve> {
    let (likelihood, chosen) = (problem.likelihood(), evenly(weights, PREDICTED));
    let (forward, observed) = (likelihood.forward(), likelihood.observed());
    let views = forward.views();
    let earths: Vec<Earth> = chosen.iter().map(|&row| earths[row].clone()).collect();
    let len = forward.len();
    let mut predicted = vec![f64::NAN; len * earths.len()];
    if views.is_empty() || forward.predict(&earths, &mut predicted, &Workers::SINGLE).is_err() {
        return Vec::new();
    }
    // Earths without an answer say nothing.
    let rows: Vec<&[f64]> =
        predicted.chunks_exact(len).filter(|row| row.iter().all(|number| number.is_finite())).collect();
    let curve = |view: &View| {
        let mut order: Vec<usize> = (0..view.x.len()).collect();
        order.sort_by(|&a, &b| view.x[a].total_cmp(&view.x[b]));
        let x: Vec<f64> = order.iter().map(|&place| view.x[place]).collect();
        let power = |number: f64| if view.is_power { 10f64.powf(number) } else { number };
        let there = order.iter().filter(|&&place| observed.values[view.first + place].is_finite());
        let points = there.map(|&place| (view.x[place], power(observed.values[view.first + place]))).unzip();
        let log_if = |is_log: bool| if is_log { Scale::Log } else { Scale::Linear };
        let empty = Curve {
            name: format!("predicted {}", view.name),
            x_label: view.x_label.clone(),
            y_label: view.name.clone(),
            x_scale: log_if(view.is_log),
            y_scale: log_if(view.is_power),
            observed: Some(Observed::Points { x: points.0, y: points.1 }),
            ..Curve::default()
        };
        let drawn = empty.from_draws(x, &vec![1.0; rows.len()], |draw, values| {
            let numbers = order.iter().map(|&place| rows[draw][view.first + place]);
            values.iter_mut().zip(numbers).for_each(|(value, number)| *value = number);
        });
        if view.is_power { mapped(drawn, |number| 10f64.powf(number)) } else { drawn }
    };
    if rows.is_empty() { Vec::new() } else { views.iter().map(curve).collect() }
}

/// So many rows that count alike, for rows with weights: those at equal distances of the weights' running sum.
fn evenly(weights: &[f64], wanted: usize) -> Vec<usize> {
    let total: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let mut chosen = Vec::with_capacity(wanted);
    for (row, weight) in weights.iter().enumerate() {
        sum += weight / total * wanted as f64;
        while (chosen.len() as f64) + 0.5 < sum && chosen.len() < wanted {
            chosen.push(row);
        }
    }
    chosen
}

/// Every number of a curve by an ascending function of it.
fn mapped(mut curve: Curve, map: impl Fn(f64) -> f64) -> Curve {
    let bands = curve.bands.iter_mut().flat_map(|band| [&mut band.low, &mut band.high]);
    let columns = [&mut curve.mean, &mut curve.median].into_iter().chain(bands);
    columns.flatten().for_each(|number| *number = map(*number));
    curve
}

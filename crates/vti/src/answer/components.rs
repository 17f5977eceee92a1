//! What is said about components of one's own: where they are, and what each is like given how many there are.

use std::ops::RangeInclusive;

use super::count::{ComponentTable, Counted, Counting, Described, GivenCount, Positions};
use super::{Samples, Subject, leading_counts, quantiles};
use crate::prior::Distribution;
use crate::problem::Problem;
use crate::problem::components::{ComponentProblem, Draw};
use crate::space::{ComponentKind, Law};

/// Intervals in which components are counted along the parameter that puts them in order.
const INTERVALS: usize = 100;

/// Numbers of components for which each of them is described.
const LEADING: usize = 4;

/// Of a likelihood that is a function; problems with a likelihood of their own kind say more.
impl<F: Fn(&Draw<'_>) -> f64 + Send + Sync> Counting for ComponentProblem<F> {
    fn counted(&self) -> Counted {
        let name = &self.kind().name;
        Counted::new(name, &format!("{name}s"))
    }

    fn counts(&self) -> RangeInclusive<usize> {
        self.kind().counts.clone()
    }

    fn log_prior(&self, count: usize) -> f64 {
        Problem::log_prior(self, &self.word(count))
    }

    fn always(&self) -> Vec<String> {
        self.components().globals().iter().map(|(name, _)| name.clone()).collect()
    }

    fn describe(&self, samples: &Samples, weights: &[f64]) -> Described {
        let (kind, first) = (self.kind(), self.components().globals().len());
        let place = |block: usize, parameter: usize| first + block * kind.width() + parameter;
        let along = |row: usize, key: usize| -> Vec<f64> {
            (0..*kind.counts.end()).filter_map(|block| samples.value(row, place(block, key))).collect()
        };
        let positions = kind.key().map(|key| {
            let name = &kind.parameters[key].name;
            let ends = ends(&kind.parameters[key].law, samples, weights, |row| along(row, key));
            let what = format!("where {}s are", kind.name);
            Positions::from_draws(&what, name, ends, INTERVALS, weights, |row| along(row, key))
        });
        let names: Vec<&str> = kind.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        let given = leading_counts(self, samples, weights, LEADING).into_iter().map(|(count, rows)| {
            let block = |block: usize| (0..kind.width()).map(|parameter| place(block, parameter)).collect();
            let places: Vec<Vec<usize>> = (0..count).map(block).collect();
            let table = ComponentTable::from_draws(&kind.name, &names, &places, samples, weights, &rows);
            GivenCount { count, tables: vec![table] }
        });
        Described { positions: positions.into_iter().collect(), given: given.collect(), ..Described::default() }
    }
}

impl<F: Fn(&Draw<'_>) -> f64 + Send + Sync> ComponentProblem<F> {
    /// The kind that is counted.
    fn kind(&self) -> &ComponentKind {
        &self.components().kinds()[0]
    }
}

/// The ends of an axis: those of the prior, or where all but a few draws lie.
fn ends(law: &Law, samples: &Samples, weights: &[f64], along: impl Fn(usize) -> Vec<f64>) -> (f64, f64) {
    let (low, high) = match law {
        Law::Spaced { low, high, .. } => (*low, *high),
        Law::Independent(prior) | Law::Ordered(prior) => prior.bounds(),
        Law::Shares(_) => (0.0, 1.0),
        Law::Known(_) => (f64::NEG_INFINITY, f64::INFINITY),
    };
    let mut drawn: Vec<(f64, f64)> =
        (0..samples.len()).flat_map(|row| along(row).into_iter().map(move |x| (x, weights[row]))).collect();
    let [first, last] = quantiles(&mut drawn, [0.001, 0.999]);
    (if low.is_finite() { low } else { first }, if high.is_finite() { high } else { last })
}

impl<'a> Subject<'a> {
    /// Components of one's own: how many there are, where they are of one kind; the whole word of numbers, where there are several.
    pub fn of_components<F: Fn(&Draw<'_>) -> f64 + Send + Sync>(problem: &'a ComponentProblem<F>) -> Self {
        if problem.components().kinds().len() == 1 {
            return Self::counting(problem, problem.parameter_names());
        }
        Self::of(problem)
    }
}

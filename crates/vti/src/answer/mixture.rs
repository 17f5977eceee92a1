//! What is said about the components of a mixture.

use std::ops::RangeInclusive;

use super::count::{
    ComponentTable, Counted, Counting, Curve, Described, GivenCount, Marginal, Memberships, Observed, Positions,
};
use super::{Samples, leading_counts};
use crate::problem::mixture::{Drawn, Mixture};

/// Places of a predictive density, bars of the histogram behind it, and intervals in which means are counted.
const PLACES: usize = 300;
const BARS: usize = 40;
const INTERVALS: usize = 100;

/// How far a predictive density reaches beyond the data, as a share of their range.
const BEYOND: f64 = 0.1;

/// Draws that curves and memberships are made of, at most: more are not to be seen. And probabilities of memberships that are averaged,
/// where there are many observations.
const MOST_DRAWS: usize = 4000;
const FEWEST_DRAWS: usize = 200;
const MOST_SHARES: usize = 20_000_000;

/// Numbers of components of which each is described.
const LEADING: usize = 4;

impl Counting for Mixture {
    fn counted(&self) -> Counted {
        Counted::new("component", "components")
    }

    fn counts(&self) -> RangeInclusive<usize> {
        Mixture::counts(self)
    }

    fn log_prior(&self, count: usize) -> f64 {
        Mixture::log_prior(self, count)
    }

    fn always(&self) -> Vec<String> {
        Mixture::always(self)
    }

    fn describe(&self, samples: &Samples, weights: &[f64]) -> Described {
        let drawn = Drawns { mixture: self, samples, weights };
        let columns = self.data().names().len();
        let leading = leading_counts(self, samples, weights, LEADING);
        Described {
            curves: (0..columns).map(|column| drawn.density(column)).collect(),
            positions: (0..columns).map(|column| drawn.means(column)).collect(),
            given: leading.iter().map(|(count, rows)| drawn.given(*count, rows)).collect(),
            memberships: leading.first().map(|(count, rows)| drawn.memberships(*count, rows)),
        }
    }
}

/// Mixtures that were drawn, with their weights.
struct Drawns<'a> {
    mixture: &'a Mixture,
    samples: &'a Samples,
    weights: &'a [f64],
}

impl Drawns<'_> {
    /// The mixture of a row.
    fn at(&self, row: usize) -> Drawn {
        let Samples { names, models, model, values, .. } = self.samples;
        let count = self.mixture.count(&[models[model[row]].word.parse().unwrap_or(0)]);
        self.mixture.drawn(&values[row * names.len()..][..self.mixture.dim(count)])
    }

    /// At most so many rows that count alike, in place of rows with weights.
    fn thinned(&self, rows: &[usize], most: usize) -> Vec<usize> {
        resample(rows, self.weights, most)
    }

    fn name(&self, column: usize) -> &str {
        &self.mixture.data().names()[column]
    }

    fn density(&self, column: usize) -> Curve {
        let (low, high) = self.mixture.data().ends(column);
        let (start, end) = (low - BEYOND * (high - low), high + BEYOND * (high - low));
        let rows = self.thinned(&(0..self.samples.len()).collect::<Vec<_>>(), MOST_DRAWS);
        let x: Vec<f64> = (0..=PLACES).map(|place| start + (end - start) * place as f64 / PLACES as f64).collect();
        let data = &self.mixture.data().columns()[column];
        let curve = Curve {
            name: format!("predictive density of {}", self.name(column)),
            x_label: self.name(column).into(),
            y_label: "density".into(),
            observed: Some(Observed::histogram(data, (low, high), BARS, 1.0 / data.len() as f64)),
            ..Curve::default()
        };
        let places = x.clone();
        curve.from_draws(x, &vec![1.0; rows.len()], |draw, values| {
            let drawn = self.at(rows[draw]);
            values.iter_mut().zip(&places).for_each(|(value, x)| *value = drawn.density(column, *x));
        })
    }

    fn means(&self, column: usize) -> Positions {
        let heading = format!("means of components, {}", self.name(column));
        let ends = self.mixture.data().ends(column);
        Positions::from_draws(&heading, self.name(column), ends, INTERVALS, self.weights, |row| {
            let drawn = self.at(row);
            (0..drawn.count()).map(|component| drawn.mean(component, column)).collect()
        })
    }

    /// Weight, means, standard deviations and correlations of each component.
    fn given(&self, count: usize, rows: &[usize]) -> GivenCount {
        let columns = self.mixture.data().names().len();
        let of = |what: &str, column: usize| {
            if columns == 1 { what.into() } else { format!("{what} {}", self.name(column)) }
        };
        let mut parameters = vec!["weight".to_string()];
        parameters.extend((0..columns).flat_map(|column| [of("mean", column), of("sd", column)]));
        let pairs: Vec<(usize, usize)> = (0..columns).flat_map(|i| (0..i).map(move |j| (j, i))).collect();
        parameters.extend(pairs.iter().map(|&(i, j)| format!("correlation {} {}", self.name(i), self.name(j))));
        let mut found: Vec<Vec<Vec<(f64, f64)>>> = vec![vec![Vec::with_capacity(rows.len()); parameters.len()]; count];
        for &row in rows {
            let drawn = self.at(row);
            for (component, found) in found.iter_mut().enumerate() {
                let own = (0..columns).flat_map(|column| [drawn.mean(component, column), drawn.sd(component, column)]);
                let between = pairs.iter().map(|&(i, j)| drawn.correlation(component, i, j));
                let values = std::iter::once(drawn.weight(component)).chain(own).chain(between);
                found.iter_mut().zip(values).for_each(|(to, value)| to.push((value, self.weights[row])));
            }
        }
        let rows = found.iter_mut().map(|component| component.iter_mut().map(|pairs| Marginal::of(pairs)).collect());
        let table = ComponentTable { component: "component".into(), parameters, rows: rows.collect() };
        GivenCount { count, tables: vec![table] }
    }

    /// How probable it is that an observation is from each of so many components.
    fn memberships(&self, count: usize, rows: &[usize]) -> Memberships {
        let data = self.mixture.data();
        let rows = self.thinned(rows, (MOST_SHARES / (data.rows() * count)).clamp(FEWEST_DRAWS, MOST_DRAWS));
        let mut sums = vec![0.0; data.rows() * count];
        let (mut y, mut shares) = (vec![0.0; data.names().len()], vec![0.0; count]);
        for &draw in &rows {
            let drawn = self.at(draw);
            for (row, sums) in sums.chunks_exact_mut(count).enumerate() {
                y.iter_mut().zip(data.columns()).for_each(|(y, column)| *y = column[row]);
                drawn.responsibilities(&y, &mut shares);
                sums.iter_mut().zip(&shares).for_each(|(sum, share)| *sum += share / rows.len() as f64);
            }
        }
        Memberships {
            count,
            names: data.names().to_vec(),
            values: (0..data.rows()).map(|row| data.columns().iter().map(|column| column[row]).collect()).collect(),
            probabilities: sums.chunks_exact(count).map(<[f64]>::to_vec).collect(),
        }
    }
}

/// At most so many of some rows, drawn evenly by their weights: they count alike.
pub(super) fn resample(rows: &[usize], weights: &[f64], most: usize) -> Vec<usize> {
    let count = rows.len().min(most);
    let total: f64 = rows.iter().map(|&row| weights[row]).sum();
    let step = total / count as f64;
    let (mut chosen, mut sum, mut next) = (Vec::with_capacity(count), 0.0, 0.5 * step);
    for &row in rows {
        sum += weights[row];
        while next < sum && chosen.len() < count {
            chosen.push(row);
            next += step;
        }
    }
    chosen
}

//! What is said about peaks, or about sinusoids.

use std::ops::RangeInclusive;

use super::count::{ComponentTable, Counted, Counting, Curve, Described, GivenCount, Marginal, Observed, Positions};
use super::mixture::resample;
use super::{Samples, leading_counts};
use crate::problem::peaks::{PeakShape, Peaks};
use crate::random::{Purpose, Stream};

/// Places of a curve, and intervals in which positions are counted.
const PLACES: usize = 400;
const INTERVALS: usize = 200;

/// Draws that curves are made of, at most.
const MOST_DRAWS: usize = 4000;

/// Numbers of peaks of which each is described.
const LEADING: usize = 4;

impl Counting for Peaks {
    fn counted(&self) -> Counted {
        let (singular, plural) = self.settings().shape.words();
        Counted::new(singular, plural)
    }

    fn counts(&self) -> RangeInclusive<usize> {
        Peaks::counts(self)
    }

    fn log_prior(&self, count: usize) -> f64 {
        Peaks::log_prior(self, count)
    }

    fn always(&self) -> Vec<String> {
        Peaks::always(self)
    }

    fn describe(&self, samples: &Samples, weights: &[f64]) -> Described {
        let drawn = Drawns { peaks: self, samples, weights };
        let given = leading_counts(self, samples, weights, LEADING);
        Described {
            curves: drawn.curves(),
            positions: vec![drawn.positions()],
            given: given.into_iter().map(|(count, rows)| drawn.given(count, &rows)).collect(),
            memberships: None,
        }
    }
}

/// Draws of peaks, with their weights.
struct Drawns<'a> {
    peaks: &'a Peaks,
    samples: &'a Samples,
    weights: &'a [f64],
}

impl Drawns<'_> {
    /// The parameters of a row.
    fn at(&self, row: usize) -> &[f64] {
        let Samples { names, models, model, values, .. } = self.samples;
        let count = self.peaks.count(&[models[model[row]].word.parse().unwrap_or(0)]);
        &values[row * names.len()..][..self.peaks.dim(count)]
    }

    /// The peaks of a row, each with its parameters.
    fn blocks(&self, row: usize) -> impl Iterator<Item = &[f64]> {
        let start = self.peaks.always().len();
        self.at(row)[start..].chunks_exact(self.peaks.parameters().len())
    }

    /// Coefficients that were integrated out, drawn anew.
    fn coefficients(&self, row: usize) -> Vec<f64> {
        let mut stream = Stream::new(0, Purpose::Summary, 0, row as u64);
        self.peaks.draw_coefficients(self.at(row), || stream.normal())
    }

    /// The whole curve, and the background.
    fn curves(&self) -> Vec<Curve> {
        let spectrum = self.peaks.spectrum();
        let (low, high) = spectrum.ends();
        let x: Vec<f64> = (0..=PLACES).map(|place| low + (high - low) * place as f64 / PLACES as f64).collect();
        let rows = resample(&(0..self.samples.len()).collect::<Vec<_>>(), self.weights, MOST_DRAWS);
        let coefficients: Vec<Vec<f64>> = rows.iter().map(|&row| self.coefficients(row)).collect();
        let [x_label, y_label] = self.peaks.names().clone();
        let curve = |name: &str, of: &dyn Fn((f64, f64)) -> f64| {
            let observed = Some(Observed::Points { x: spectrum.x().to_vec(), y: spectrum.y().to_vec() });
            let (x_label, y_label) = (x_label.clone(), y_label.clone());
            let empty = Curve { name: name.into(), x_label, y_label, observed, ..Curve::default() };
            empty.from_draws(x.clone(), &vec![1.0; rows.len()], |draw, values| {
                let (theta, coefficients) = (self.at(rows[draw]), &coefficients[draw]);
                values.iter_mut().zip(&x).for_each(|(value, x)| *value = of(self.peaks.curve(theta, coefficients, *x)));
            })
        };
        vec![curve("fitted curve", &|(whole, _)| whole), curve("background", &|(_, background)| background)]
    }

    fn positions(&self) -> Positions {
        let [x_label, _] = self.peaks.names();
        let (name, label, ends) = match self.peaks.settings().shape {
            PeakShape::Sinusoid => {
                let all = (0..self.samples.len()).flat_map(|row| self.blocks(row).map(|block| block[0]));
                let (low, high) = all.fold((f64::INFINITY, 0.0f64), |(low, high), f| (low.min(f), high.max(f)));
                let ends = if low < high { (low, high) } else { (0.0, 1.0) };
                ("frequencies", format!("frequency, in periods per unit of {x_label}"), ends)
            }
            _ => ("where peaks are", x_label.clone(), self.peaks.spectrum().ends()),
        };
        Positions::from_draws(name, &label, ends, INTERVALS, self.weights, |row| {
            self.blocks(row).map(|block| block[0]).collect()
        })
    }

    /// Parameters of each peak; of a sinusoid its amplitude, which was integrated out, too.
    fn given(&self, count: usize, rows: &[usize]) -> GivenCount {
        let is_tone = self.peaks.settings().shape == PeakShape::Sinusoid;
        let mut parameters = self.peaks.parameters();
        parameters.extend(is_tone.then(|| "amplitude".into()));
        let mut found: Vec<Vec<Vec<(f64, f64)>>> = vec![vec![Vec::with_capacity(rows.len()); parameters.len()]; count];
        for &row in rows {
            let coefficients = if is_tone { self.coefficients(row) } else { Vec::new() };
            let amplitudes = coefficients.len().saturating_sub(2 * count);
            for (number, (found, block)) in found.iter_mut().zip(self.blocks(row)).enumerate() {
                let pair = coefficients[amplitudes..].chunks_exact(2).nth(number);
                let values = block.iter().copied().chain(pair.map(|pair| f64::hypot(pair[0], pair[1])));
                found.iter_mut().zip(values).for_each(|(to, value)| to.push((value, self.weights[row])));
            }
        }
        let rows = found.iter_mut().map(|component| component.iter_mut().map(|pairs| Marginal::of(pairs)).collect());
        let component = self.peaks.settings().shape.words().0.into();
        GivenCount { count, tables: vec![ComponentTable { component, parameters, rows: rows.collect() }] }
    }
}

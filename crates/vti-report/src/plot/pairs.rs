//! Every parameter against every other.

use super::axis::{Axis, Ticks};
use super::colour::Colour;
use super::density::{Density, Weighted};
use super::figure::{Border, Figure, Panel};
use super::layer::{Area, Contours, Layer, Note, Points};
use crate::number;

/// Dots shown of one sample.
const DOTS: usize = 350;

/// Joint draws of several parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// In the legend; may be empty.
    pub name: String,
    /// Draws of each parameter, one list per parameter.
    pub draws: Vec<Vec<f64>>,
    /// Weights of the draws; empty: all equal.
    pub weights: Vec<f64>,
}

/// The parameters `names` of one or more samples against each other: densities on the diagonal, regions that hold 50 % and
/// 90 % below it (with dots where there is one sample), correlations above it. Each sample has its own colour.
///
/// Draws with a value that is not finite are left out; draws a sample does not have are not drawn.
pub fn pairs(names: &[String], samples: &[Sample]) -> Figure {
    let samples: Vec<Sample> = samples.iter().map(|sample| usable(sample, names.len())).collect();
    let count = names.len();
    let ranges: Vec<(f64, f64)> = (0..count).map(|parameter| range(&samples, parameter)).collect();
    let axis = |parameter: usize, outer: bool| Axis {
        label: if outer { names[parameter].clone() } else { String::new() },
        range: Some(ranges[parameter]),
        ticks: if outer { Ticks::Numbers } else { Ticks::Unlabelled },
        ..Axis::default()
    };
    let panel = |row: usize, column: usize| match row.cmp(&column) {
        std::cmp::Ordering::Less => Panel {
            x: Axis::hidden(),
            y: Axis::hidden(),
            layers: correlations(&samples, row, column),
            border: Border::None,
            ..Panel::default()
        },
        std::cmp::Ordering::Equal => Panel {
            x: axis(column, row + 1 == count),
            y: Axis {
                label: if column == 0 && count > 1 { names[row].clone() } else { String::new() },
                ..Axis::hidden()
            },
            layers: densities(&samples, row),
            ..Panel::default()
        },
        std::cmp::Ordering::Greater => Panel {
            x: axis(column, row + 1 == count),
            y: axis(row, column == 0),
            layers: clouds(&samples, row, column),
            ..Panel::default()
        },
    };
    let side = if count <= 3 { 190.0 } else { (900.0 / count as f64).clamp(105.0, 190.0) };
    Figure {
        panels: (0..count * count).map(|place| panel(place / count, place % count)).collect(),
        columns: count,
        panel_size: (side, side * 0.9),
        gap: 5.0,
        ..Figure::default()
    }
}

/// The draws of `sample` that are finite in every parameter and have weight.
fn usable(sample: &Sample, parameters: usize) -> Sample {
    let draws: Vec<&[f64]> = (0..parameters).map(|i| sample.draws.get(i).map_or(&[][..], Vec::as_slice)).collect();
    let length = draws.iter().map(|draws| draws.len()).min().unwrap_or(0);
    let weight =
        |row: usize| if sample.weights.is_empty() { 1.0 } else { sample.weights.get(row).copied().unwrap_or(0.0) };
    let good = |row: &usize| {
        let weight = weight(*row);
        weight.is_finite() && weight > 0.0 && draws.iter().all(|draws| draws[*row].is_finite())
    };
    let rows: Vec<usize> = (0..length).filter(good).collect();
    Sample {
        name: sample.name.clone(),
        draws: draws.iter().map(|draws| rows.iter().map(|&row| draws[row]).collect()).collect(),
        weights: rows.iter().map(|&row| weight(row)).collect(),
    }
}

/// Where nearly all draws of all samples are.
fn range(samples: &[Sample], parameter: usize) -> (f64, f64) {
    let ends = samples.iter().filter_map(|sample| {
        let sorted = Weighted::new(&sample.draws[parameter], &sample.weights)?;
        Some((sorted.quantile(0.003), sorted.quantile(0.997)))
    });
    let (low, high) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0.0, 1.0));
    let room = 0.12 * (high - low);
    (low - room, high + room)
}

fn densities(samples: &[Sample], parameter: usize) -> Vec<Layer> {
    let area = |(index, sample): (usize, &Sample)| {
        let density = Density::of(&sample.draws[parameter], &sample.weights)?;
        let points = density.curve(130, 1.0);
        Some(Layer::Area(Area { points, colour: Colour::Series(index), name: sample.name.clone() }))
    };
    samples.iter().enumerate().filter_map(area).collect()
}

fn clouds(samples: &[Sample], row: usize, column: usize) -> Vec<Layer> {
    let mut layers = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        let points: Vec<(f64, f64)> =
            sample.draws[column].iter().copied().zip(sample.draws[row].iter().copied()).collect();
        let colour = Colour::Series(index);
        if samples.len() == 1 {
            let dots = resample(&sample.weights, DOTS).into_iter().map(|draw| points[draw]).collect();
            layers.push(Points { points: dots, colour, radius: 1.0, opacity: 0.55, ..Points::default() }.into());
        }
        layers.push(Contours { points, weights: sample.weights.clone(), colour, ..Contours::default() }.into());
    }
    layers
}

fn correlations(samples: &[Sample], row: usize, column: usize) -> Vec<Layer> {
    let step = 0.22;
    let first = 0.5 + step * (samples.len() as f64 - 1.0) / 2.0;
    let note = |(index, sample): (usize, &Sample)| {
        let value = correlation(&sample.draws[row], &sample.draws[column], &sample.weights)?;
        let colour = if samples.len() == 1 { Colour::Muted } else { Colour::Series(index) };
        let at = (0.5, first - step * index as f64);
        Some(Layer::Note(Note { at, text: number::tick(value, 0.01), size: 12.0 + 7.0 * value.abs(), colour }))
    };
    samples.iter().enumerate().filter_map(note).collect()
}

/// The correlation of weighted draws.
fn correlation(a: &[f64], b: &[f64], weights: &[f64]) -> Option<f64> {
    let total: f64 = weights.iter().sum();
    let mean = |values: &[f64]| values.iter().zip(weights).map(|(value, weight)| value * weight).sum::<f64>() / total;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut aa, mut ab, mut bb) = (0.0, 0.0, 0.0);
    for ((a, b), weight) in a.iter().zip(b).zip(weights) {
        let (a, b) = (a - mean_a, b - mean_b);
        aa += weight * a * a;
        ab += weight * a * b;
        bb += weight * b * b;
    }
    let value = ab / (aa * bb).sqrt();
    value.is_finite().then_some(value)
}

/// The draws that `count` evenly spaced places on the cumulated weights fall on, each once.
fn resample(weights: &[f64], count: usize) -> Vec<usize> {
    let total: f64 = weights.iter().sum();
    let mut chosen = Vec::new();
    let mut sum = 0.0;
    let mut next = 0.5;
    for (draw, weight) in weights.iter().enumerate() {
        sum += weight / total * count as f64;
        if sum > next {
            chosen.push(draw);
            next = sum.floor() + 0.5;
            if next <= sum {
                next += 1.0;
            }
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_of_known_samples() {
        let a = [1.0, 2.0, 3.0, 9.0];
        let b = [2.0, 4.0, 6.0, -5.0];
        assert!((correlation(&a, &b, &[1.0, 1.0, 1.0, 0.0]).expect("correlation") - 1.0).abs() < 1e-12);
        assert!(correlation(&a, &[1.0; 4], &[1.0; 4]).is_none());
    }

    #[test]
    fn resampling_follows_the_weights() {
        assert_eq!(resample(&[1.0; 10], 10), (0..10).collect::<Vec<_>>());
        assert_eq!(resample(&[0.0, 5.0, 0.0, 5.0], 2), [1, 3]);
        assert_eq!(resample(&[1.0; 1000], 100).len(), 100);
        assert!(resample(&[], 5).is_empty());
    }

    #[test]
    fn a_pairs_plot_has_a_panel_for_each_pair() {
        let sample = Sample { draws: vec![vec![0.0, 1.0, f64::NAN], vec![1.0, 3.0, 2.0]], ..Sample::default() };
        let figure = pairs(&["a".into(), "b".into()], &[sample]);
        assert_eq!(figure.panels.len(), 4);
        assert!(matches!(&figure.panels[1].layers[..], [Layer::Note(note)] if note.text == "1.00"));
    }
}

//! Draws in the units of the data, with their weights.

use std::collections::HashMap;

use super::Units;
use crate::device::Device;
use crate::posterior::{ConjugatePosterior, Draws, GraphPosterior, Posterior};
use crate::problem::selection::ExactError;
use crate::random::{Purpose, Stream};
use crate::space::{Model, ModelSpace};
use crate::workers::Workers;

/// A model that some draws are of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampledModel {
    /// Its symbols: a bit per term of a selection.
    pub word: String,
    /// What people read.
    pub label: String,
    /// Which parameters it has.
    pub active: Vec<bool>,
}

/// Draws in the units of the data: what predictions and plots are made of, and `posterior.parquet`.
///
/// ```
/// use vti::answer::{SampledModel, Samples};
/// let slope = SampledModel { word: "1".into(), label: "{x}".into(), active: vec![true] };
/// let none = SampledModel { word: "0".into(), label: "{}".into(), active: vec![false] };
/// let samples = Samples {
///     names: vec!["x".into()],
///     models: vec![slope, none],
///     model: vec![0, 1],
///     values: vec![2.0, f64::NAN],
///     log_weight: vec![3f64.ln(), 1f64.ln()],
///     ..Samples::default()
/// };
/// assert_eq!((samples.value(0, 0), samples.value(1, 0)), (Some(2.0), None));
/// assert!((samples.weights()[0] - 0.75).abs() < 1e-12);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Names of the parameters.
    pub names: Vec<String>,
    /// The models that were drawn.
    pub models: Vec<SampledModel>,
    /// The model of each draw, by its place among them.
    pub model: Vec<usize>,
    /// Row-major, not a number where the model has no such parameter.
    pub values: Vec<f64>,
    /// `log q(m, θ)`, with respect to parameters in the units of the data; of exact draws `log p(m, θ | y)`.
    pub log_q: Vec<f64>,
    /// `log p(m) p(y, θ | m)`, likewise.
    pub log_target: Vec<f64>,
    /// Corrected weights, up to a constant.
    pub log_weight: Vec<f64>,
}

impl Samples {
    /// Brings every `step`-th draw into the units of the data.
    pub fn new<D: Device>(
        posterior: &Posterior<D>,
        units: &Units,
        draws: &Draws,
        log_weight: &[f64],
        step: usize,
    ) -> Self {
        let active = |word: &[u16]| posterior.active_parameters(word);
        Self::in_units(posterior.problem().space(), active, units, draws, log_weight, step)
    }

    /// The same of any draws; `active` are the places of a model's parameters.
    fn in_units(
        space: &dyn ModelSpace,
        active: impl Fn(&[u16]) -> Vec<usize>,
        units: &Units,
        draws: &Draws,
        log_weight: &[f64],
        step: usize,
    ) -> Self {
        let step = step.max(1);
        let count = units.names().len();
        let mut numbers: HashMap<&[u16], usize> = HashMap::new();
        let mut places: Vec<Vec<usize>> = Vec::new();
        // Each stands for those that are left out.
        let log_step = (step as f64).ln();
        let log_weight: Vec<f64> = log_weight.iter().step_by(step).map(|weight| weight + log_step).collect();
        let rows = log_weight.len();
        let mut samples = Self { names: units.names().to_vec(), log_weight, ..Self::default() };
        samples.values = vec![f64::NAN; rows * count];
        for place in 0..rows {
            let row = place * step;
            let word = draws.word(row);
            let model = *numbers.entry(word).or_insert_with(|| {
                let active = active(word);
                samples.models.push(SampledModel {
                    word: Model::from(word).to_string(),
                    label: space.label(word),
                    active: (0..count).map(|place| active.binary_search(&place).is_ok()).collect(),
                });
                places.push(active);
                places.len() - 1
            });
            let values = &mut samples.values[place * count..][..count];
            let log_jacobian = units.to_measured(&places[model], draws.theta(row), values);
            samples.model.push(model);
            samples.log_q.push(draws.log_q[row] + log_jacobian);
            samples.log_target.push(draws.log_target.get(row).map_or(f64::NAN, |value| value + log_jacobian));
        }
        samples
    }

    /// Fresh draws from q, with their importance weights.
    pub fn draw<D: Device>(
        posterior: &Posterior<D>,
        units: &Units,
        count: usize,
        batch: u32,
    ) -> Result<Self, crate::family::FamilyError> {
        let draws = posterior.draw_with_target(count, batch)?;
        let weights: Vec<f64> = (0..draws.len()).map(|row| draws.log_ratio(row)).collect();
        Ok(Self::new(posterior, units, &draws, &weights, 1))
    }

    /// Draws from a posterior in closed form. They count alike: each has the evidence as its weight.
    pub fn draw_conjugate(
        posterior: &ConjugatePosterior<'_>,
        units: &Units,
        count: usize,
        batch: u32,
        workers: &Workers,
    ) -> Result<Self, ExactError> {
        let draws = posterior.draw(count, batch, workers)?;
        let log_evidence = posterior.log_evidence();
        let log_weight = vec![if log_evidence.is_finite() { log_evidence } else { 0.0 }; draws.len()];
        let active = |word: &[u16]| posterior.active_parameters(word);
        Ok(Self::in_units(posterior.selection().space(), active, units, &draws, &log_weight, 1))
    }

    /// Draws from the exact posterior of linear graphs, which count alike.
    pub fn of_graphs(posterior: &GraphPosterior<'_>, units: &Units, draws: &Draws) -> Self {
        let log_weight = vec![posterior.log_evidence(); draws.len()];
        let active = |word: &[u16]| posterior.active_parameters(word);
        Self::in_units(posterior.dag().space(), active, units, draws, &log_weight, 1)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.model.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.model.is_empty()
    }

    /// A parameter of a draw; none where its model has no such parameter.
    pub fn value(&self, row: usize, parameter: usize) -> Option<f64> {
        let model = self.models.get(*self.model.get(row)?)?;
        let place = row * self.names.len() + parameter;
        self.values.get(place).copied().filter(|_| model.active.get(parameter) == Some(&true))
    }

    /// So many of these rows, as often as their weights say (systematic resampling): they then count alike.
    pub fn resample(&self, weights: &[f64], rows: &[usize], count: usize) -> Vec<usize> {
        let total: f64 = rows.iter().map(|&row| weights[row]).sum();
        let (mut sum, mut next, mut chosen) = (0.0, 0.5, Vec::with_capacity(count));
        for &row in rows {
            sum += weights[row] / total * count as f64;
            while next < sum && chosen.len() < count {
                chosen.push(row);
                next += 1.0;
            }
        }
        chosen
    }

    /// So many draws that count alike, in random order, but with copies of a draw one after the other: what follows from
    /// autocorrelations about how many draws there are then heeds the weights they had.
    ///
    /// ```
    /// use vti::answer::{SampledModel, Samples};
    /// let one = SampledModel { word: "1".into(), label: "{x}".into(), active: vec![true] };
    /// let samples = Samples {
    ///     names: vec!["x".into()],
    ///     models: vec![one],
    ///     model: vec![0, 0],
    ///     values: vec![2.0, 5.0],
    ///     log_weight: vec![3f64.ln(), 0.0],
    ///     ..Samples::default()
    /// };
    /// let values = samples.resampled(4).values;
    /// assert!(values == [2.0, 2.0, 2.0, 5.0] || values == [5.0, 2.0, 2.0, 2.0]);
    /// ```
    pub fn resampled(&self, count: usize) -> Self {
        let width = self.names.len();
        let mut order: Vec<usize> = (0..self.len()).collect();
        let mut stream = Stream::new(0, Purpose::Summary, 0, 0);
        for place in (1..order.len()).rev() {
            order.swap(place, stream.below(place as u64 + 1) as usize);
        }
        let rows = self.resample(&self.weights(), &order, count);
        let chosen = |values: &[f64]| rows.iter().map(|&row| values.get(row).copied().unwrap_or(f64::NAN)).collect();
        Self {
            names: self.names.clone(),
            models: self.models.clone(),
            model: rows.iter().map(|&row| self.model[row]).collect(),
            values: rows.iter().flat_map(|&row| self.values[row * width..][..width].iter().copied()).collect(),
            log_q: chosen(&self.log_q),
            log_target: chosen(&self.log_target),
            log_weight: vec![0.0; rows.len()],
        }
    }

    /// Corrected weights that sum to 1.
    pub fn weights(&self) -> Vec<f64> {
        let top = self.log_weight.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = self.log_weight.iter().map(|log_weight| (log_weight - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / total).collect()
    }
}

/// Quantiles of weighted numbers `(x, w)`, by the middles of their weights, between which it is interpolated. The numbers are
/// sorted on the way; not a number where there is none.
///
/// ```
/// use vti::answer::quantiles;
/// let mut draws = [(2.0, 1.0), (0.0, 1.0), (1.0, 2.0)];
/// assert_eq!(quantiles(&mut draws, [0.5]), [1.0]);
/// ```
pub fn quantiles<const N: usize>(pairs: &mut [(f64, f64)], levels: [f64; N]) -> [f64; N] {
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = pairs.iter().map(|(_, weight)| weight).sum();
    levels.map(|level| {
        let (mut before, mut last) = (0.0, None::<(f64, f64)>);
        for &(value, weight) in pairs.iter().filter(|(_, weight)| *weight > 0.0) {
            let middle = (before + 0.5 * weight) / total;
            before += weight;
            if middle >= level {
                return match last {
                    Some((lower, at)) => lower + (value - lower) * (level - at) / (middle - at),
                    None => value,
                };
            }
            last = Some((value, middle));
        }
        last.map_or(f64::NAN, |(value, _)| value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_respect_weights() {
        let mut equal: Vec<(f64, f64)> = (0..101).map(|i| (f64::from(100 - i), 1.0)).collect();
        assert_eq!(quantiles(&mut equal, [0.5]), [50.0]);
        // The weight of a number counts as that many numbers.
        let mut once = vec![(1.0, 3.0), (2.0, 1.0), (5.0, 0.0)];
        let mut often = vec![(1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (2.0, 1.0)];
        assert_eq!(quantiles(&mut once, [0.2, 0.99]), [1.0, 2.0]);
        assert_eq!(quantiles(&mut often, [0.2, 0.99]), [1.0, 2.0]);
    }
}

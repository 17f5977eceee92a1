//! Draws in the units of the data, with their weights.

use std::collections::HashMap;

use vti::device::Device;
use vti::posterior::{Draws, Posterior};
use vti::problem::Problem;
use vti::space::{Model, ModelSpace};

use crate::units::Units;

/// A model that some draws are of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SampledModel {
    /// Its symbols: a bit per term of a selection.
    pub(crate) word: String,
    pub(crate) label: String,
    /// Which parameters it has.
    pub(crate) active: Vec<bool>,
}

/// Draws in the units of the data.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Samples {
    /// Names of the parameters.
    pub(crate) names: Vec<String>,
    pub(crate) models: Vec<SampledModel>,
    /// The model of each draw.
    pub(crate) model: Vec<usize>,
    /// Row-major, not a number where the model has no such parameter.
    pub(crate) values: Vec<f64>,
    /// With respect to parameters in the units of the data.
    pub(crate) log_q: Vec<f64>,
    pub(crate) log_target: Vec<f64>,
    /// Corrected weights, up to a constant.
    pub(crate) log_weight: Vec<f64>,
}

impl Samples {
    /// Brings every `step`-th draw into the units of the data.
    pub(crate) fn new<P: Problem, D: Device>(
        posterior: &Posterior<'_, P, D>,
        units: &Units,
        draws: &Draws,
        log_weight: &[f64],
        step: usize,
    ) -> Self {
        let space = posterior.problem().space();
        let count = units.names.len();
        let mut numbers: HashMap<&[u16], usize> = HashMap::new();
        let mut places: Vec<Vec<usize>> = Vec::new();
        // Each stands for those that are left out.
        let log_step = (step as f64).ln();
        let log_weight: Vec<f64> = log_weight.iter().step_by(step).map(|weight| weight + log_step).collect();
        let rows = log_weight.len();
        let mut samples = Self { names: units.names.clone(), log_weight, ..Self::default() };
        samples.values = vec![f64::NAN; rows * count];
        for (place, values) in samples.values.chunks_exact_mut(count).enumerate() {
            let row = place * step;
            let word = draws.word(row);
            let model = *numbers.entry(word).or_insert_with(|| {
                let active = posterior.active_parameters(word);
                samples.models.push(SampledModel {
                    word: Model::from(word).to_string(),
                    label: space.label(word),
                    active: (0..count).map(|place| active.binary_search(&place).is_ok()).collect(),
                });
                places.push(active);
                places.len() - 1
            });
            let log_jacobian = units.to_measured(&places[model], draws.theta(row), values);
            samples.model.push(model);
            samples.log_q.push(draws.log_q[row] + log_jacobian);
            samples.log_target.push(draws.log_target.get(row).map_or(f64::NAN, |value| value + log_jacobian));
        }
        samples
    }

    pub(crate) fn len(&self) -> usize {
        self.model.len()
    }

    /// A parameter of a draw; none where its model has no such parameter.
    pub(crate) fn value(&self, row: usize, parameter: usize) -> Option<f64> {
        self.models[self.model[row]].active[parameter].then(|| self.values[row * self.names.len() + parameter])
    }

    /// Corrected weights that sum to 1.
    pub(crate) fn weights(&self) -> Vec<f64> {
        normalised(&self.log_weight)
    }
}

/// Weights that sum to 1, from their logarithms.
pub(crate) fn normalised(log_weights: &[f64]) -> Vec<f64> {
    let top = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = log_weights.iter().map(|log_weight| (log_weight - top).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

/// Quantiles of weighted numbers, by the middles of their weights, between which it is interpolated.
pub(crate) fn quantiles<const N: usize>(pairs: &mut [(f64, f64)], levels: [f64; N]) -> [f64; N] {
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

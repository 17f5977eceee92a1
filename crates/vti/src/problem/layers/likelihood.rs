//! Normal errors of what an earth predicts.

use std::f64::consts::TAU;
use std::sync::Arc;

use super::{Earth, Forward, Observed};
use crate::problem::DensityError;
use crate::problem::components::{ComponentLikelihood, Draw};
use crate::space::Components;
use crate::workers::Workers;

/// The likelihood of data with normal errors: with a factor s on all of them, where that is unknown,
/// `−½ Σ ((yᵢ − fᵢ(earth))/(s eᵢ))² − Σ log(s eᵢ) − n/2 log 2π` over all data that are there.
#[derive(Clone, Debug)]
pub struct LayerLikelihood {
    observed: Observed,
    forward: Arc<dyn Forward>,
    /// Whether the second parameter that all models have is a factor on all errors.
    is_scaled: bool,
    /// How many data there are, and `Σ log eᵢ + n/2 log 2π`.
    count: f64,
    constant: f64,
}

impl LayerLikelihood {
    pub(super) fn new(observed: Observed, forward: Arc<dyn Forward>, is_scaled: bool) -> Self {
        let errors: Vec<f64> = observed.present().map(|place| observed.errors[place]).collect();
        let count = errors.len() as f64;
        let constant = errors.iter().map(|error| error.ln()).sum::<f64>() + 0.5 * count * TAU.ln();
        Self { observed, forward, is_scaled, count, constant }
    }

    /// The data.
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// What predicts the data.
    pub fn forward(&self) -> &dyn Forward {
        &*self.forward
    }

    /// The earth of a model's parameters, and the factor on all errors.
    pub fn earth(&self, draw: &Draw<'_>) -> (Earth, f64) {
        let globals = draw.globals();
        let (mut depths, mut values) = (Vec::new(), vec![globals[0]]);
        for interface in draw.kind(0).iter() {
            depths.push(interface[0]);
            values.push(interface[1]);
        }
        (Earth { depths, values }, if self.is_scaled { globals[1] } else { 1.0 })
    }

    /// Of what was predicted.
    fn value(&self, predicted: &[f64], factor: f64) -> f64 {
        -0.5 * self.misfit(predicted) / (factor * factor) - self.count * factor.ln() - self.constant
    }

    /// The sum of squares of residuals, in errors.
    fn misfit(&self, predicted: &[f64]) -> f64 {
        let Observed { values, errors } = &self.observed;
        self.observed.present().map(|place| ((values[place] - predicted[place]) / errors[place]).powi(2)).sum()
    }
}

impl ComponentLikelihood for LayerLikelihood {
    fn log_likelihood(&self, draw: &Draw<'_>) -> Result<f64, DensityError> {
        let (earth, factor) = self.earth(draw);
        let mut predicted = vec![f64::NAN; self.forward.len()];
        self.forward.predict(&[earth], &mut predicted, &Workers::SINGLE)?;
        Ok(self.value(&predicted, factor))
    }

    fn has_gradient(&self) -> bool {
        self.forward.has_gradient()
    }

    fn with_gradient(&self, draw: &Draw<'_>, gradient: &mut [f64]) -> Result<f64, DensityError> {
        let (earth, factor) = self.earth(draw);
        let earths = [earth];
        let [earth] = &earths;
        let mut predicted = vec![f64::NAN; self.forward.len()];
        self.forward.predict(&earths, &mut predicted, &Workers::SINGLE)?;
        let Observed { values, errors } = &self.observed;
        let mut by_predicted = vec![0.0; predicted.len()];
        for place in self.observed.present() {
            by_predicted[place] = (values[place] - predicted[place]) / (errors[place] * factor).powi(2);
        }
        let (mut by_depth, mut by_value) = (vec![0.0; earth.depths.len()], vec![0.0; earth.values.len()]);
        self.forward.pull_back(earth, &by_predicted, &mut by_depth, &mut by_value);
        gradient[0] = by_value[0];
        let mut first = 1;
        if self.is_scaled {
            gradient[1] = self.misfit(&predicted) / factor.powi(3) - self.count / factor;
            first = 2;
        }
        for (to, (by_depth, by_value)) in gradient[first..].chunks_exact_mut(2).zip(by_depth.iter().zip(&by_value[1..]))
        {
            (to[0], to[1]) = (*by_depth, *by_value);
        }
        Ok(self.value(&predicted, factor))
    }

    fn is_batched(&self) -> bool {
        self.forward.is_batched()
    }

    fn batch(
        &self,
        space: &Components,
        word: &[u16],
        theta: &[f64],
        values: &mut [f64],
        workers: &Workers,
    ) -> Result<bool, DensityError> {
        let (rows, len) = (values.len(), self.forward.len());
        let rows = theta.chunks_exact((theta.len() / rows.max(1)).max(1));
        let (earths, factors): (Vec<Earth>, Vec<f64>) =
            rows.map(|theta| self.earth(&Draw::new(space, word, theta))).unzip();
        let mut predicted = vec![f64::NAN; len * earths.len()];
        self.forward.predict(&earths, &mut predicted, workers)?;
        for ((value, predicted), factor) in values.iter_mut().zip(predicted.chunks_exact(len)).zip(factors) {
            *value = self.value(predicted, factor);
        }
        Ok(true)
    }
}

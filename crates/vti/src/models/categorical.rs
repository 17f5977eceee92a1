//! Categorical distribution with a logit per model (paper, section 3.2, "Categorical and neural probability mass functions").

use super::descent::Descent;
use super::word_probabilities::WordProbabilities;
use super::{Draw, KEPT_SHARE, LearningSettings, ModelDistribution, ModelUpdate, ModelsError, ScoredBatch};
use crate::device::{Device, DeviceError, UpdateRecord};
use crate::simd::Real;
use crate::space::Catalogue;
use crate::state::{State, StateError};

/// The logit of a word that may be drawn, where it is fitted to a probability of 0.
const MIN_LOGIT: f64 = -80.0;

/// `q_ψ(m) = exp ψ_m / Σ exp ψ` over all words of a catalogue.
pub struct Categorical<D: Device> {
    table: WordProbabilities,
    descent: Descent<D>,
    logits: Vec<D::Real>,
    /// Words of prior probability 0, which are never drawn.
    impossible: Vec<bool>,
}

impl<D: Device> std::fmt::Debug for Categorical<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Categorical").field("models", &self.logits.len()).finish_non_exhaustive()
    }
}

impl<D: Device> Categorical<D> {
    /// All words equally likely, except those of prior probability 0, `log_prior` giving log p of a word.
    pub fn new(
        device: &D,
        catalogue: Catalogue,
        log_prior: impl Fn(&[u16]) -> f64,
        learning: &LearningSettings,
    ) -> Result<Self, ModelsError> {
        let logits = vec![D::Real::ZERO; catalogue.len()];
        let impossible = |index| catalogue.model(index).is_ok_and(|word| log_prior(&word) == f64::NEG_INFINITY);
        let impossible = (0..catalogue.len()).map(impossible).collect();
        let mut categorical = Self {
            descent: Descent::new(device, &logits, learning)?,
            table: WordProbabilities::new(catalogue),
            logits,
            impossible,
        };
        categorical.refresh(device)?;
        Ok(categorical)
    }

    /// Takes ψ over into the probabilities.
    fn refresh(&mut self, device: &D) -> Result<(), DeviceError> {
        refresh(device, &self.descent.parameters, &mut self.logits, &self.impossible, &mut self.table)
    }

    /// The gradient of the mean loss as the batch estimates it: `Σ_n c_n (1[m = m_n] − q(m))` for every model m.
    fn gradient(&mut self, device: &D, batch: &ScoredBatch<'_>) -> Result<(), DeviceError> {
        let weights = self.descent.control.weights(batch);
        let total: f64 = weights.iter().sum();
        let mut gradient: Vec<f64> = self.table.probabilities().map(|p| -p * total).collect();
        let width = batch.words.len() / batch.log_q.len().max(1);
        for (row, &weight) in weights.iter().enumerate() {
            if let Some(index) = self.table.catalogue().index(&batch.words[row * width..][..width]) {
                gradient[index] += weight;
            }
        }
        self.descent.write_gradient(device, gradient.into_iter())
    }
}

/// Takes ψ over into the probabilities.
fn refresh<D: Device>(
    device: &D,
    parameters: &D::Buffer,
    logits: &mut [D::Real],
    impossible: &[bool],
    table: &mut WordProbabilities,
) -> Result<(), DeviceError> {
    device.read(parameters, logits)?;
    let logit = |(logit, &impossible): (&D::Real, &bool)| if impossible { f64::NEG_INFINITY } else { logit.to_f64() };
    table.set_logits(device.workers(), logits.iter().zip(impossible).map(logit));
    Ok(())
}

impl<D: Device> ModelDistribution<D> for Categorical<D> {
    fn sample(&self, _: &D, draw: Draw, words: &mut [u16], log_q: &mut [f64]) -> Result<(), ModelsError> {
        self.table.sample(draw, words, log_q);
        Ok(())
    }

    fn log_prob(&self, _: &D, words: &[u16], log_q: &mut [f64]) -> Result<(), ModelsError> {
        self.table.log_probs(words, log_q);
        Ok(())
    }

    fn update(&mut self, device: &D, batch: &ScoredBatch<'_>) -> Result<ModelUpdate, ModelsError> {
        self.gradient(device, batch)?;
        let Self { table, descent, logits, impossible, .. } = self;
        let entropy = table.entropy();
        let update = descent.step(device, batch.pace, batch.information_limit, entropy, |parameters| {
            refresh(device, parameters, logits, impossible, table)?;
            Ok(table.entropy())
        })?;
        // What was accepted is what the search looked at last; only a search that found nothing, or none, leaves more to do.
        if update.scale == 0.0 || batch.information_limit == f64::INFINITY {
            self.refresh(device)?;
        }
        Ok(update)
    }

    fn fit(&mut self, device: &D, _: Draw, words: &[u16], weights: &[f64]) -> Result<bool, ModelsError> {
        let logits = self.table.log_mixture(KEPT_SHARE, words, weights);
        // Logits of words that are never drawn have no gradient to come back by.
        let logits: Vec<D::Real> = logits.iter().map(|logit| D::Real::from_f64(logit.max(MIN_LOGIT))).collect();
        device.write(&logits, &mut self.descent.parameters)?;
        self.refresh(device)?;
        Ok(true)
    }

    fn state(&self, device: &D) -> Result<State, DeviceError> {
        self.descent.state(device)
    }

    fn restore(&mut self, device: &D, state: &mut State) -> Result<(), StateError> {
        self.descent.restore(device, state)?;
        Ok(self.refresh(device)?)
    }

    fn gradients(&self, device: &D) -> Result<Option<UpdateRecord>, DeviceError> {
        self.descent.gradients(device).map(Some)
    }

    fn catalogue(&self) -> Option<&Catalogue> {
        Some(self.table.catalogue())
    }
}

//! Categorical distribution with a logit per model (paper, section "Categorical and neural probability mass functions").

use super::descent::Descent;
use super::table::Table;
use super::{Draw, LearningSettings, ModelDistribution, ModelUpdate, ScoredBatch};
use crate::engine::{Engine, Real};
use crate::optimise::SettingError;
use crate::space::Catalogue;
use crate::state::{State, StateError};

/// `q_ψ(m) = exp ψ_m / Σ exp ψ` over all words of a catalogue.
pub struct Categorical<E: Engine> {
    table: Table,
    descent: Descent<E>,
    logits: Vec<E::Real>,
    /// Words of prior probability 0, which are never drawn.
    impossible: Vec<bool>,
}

impl<E: Engine> std::fmt::Debug for Categorical<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Categorical").field("models", &self.logits.len()).finish_non_exhaustive()
    }
}

impl<E: Engine> Categorical<E> {
    /// All words equally likely, except those of prior probability 0, `log_prior` giving log p of a word.
    pub fn new(
        engine: &E,
        catalogue: Catalogue,
        log_prior: impl Fn(&[u16]) -> f64,
        learning: &LearningSettings,
    ) -> Result<Self, SettingError> {
        let logits = vec![E::Real::ZERO; catalogue.len()];
        let impossible = |index| catalogue.model(index).is_ok_and(|word| log_prior(&word) == f64::NEG_INFINITY);
        let impossible = (0..catalogue.len()).map(impossible).collect();
        let mut categorical = Self {
            descent: Descent::new(engine, &logits, learning)?,
            table: Table::new(catalogue),
            logits,
            impossible,
        };
        categorical.refresh(engine);
        Ok(categorical)
    }

    /// Takes ψ over into the probabilities.
    fn refresh(&mut self, engine: &E) {
        refresh(engine, &self.descent.parameters, &mut self.logits, &self.impossible, &mut self.table);
    }

    /// The gradient of the mean loss as the batch estimates it: `Σ_n c_n (1[m = m_n] − q(m))` for every model m.
    fn gradient(&mut self, engine: &E, batch: &ScoredBatch<'_>) {
        let weights = self.descent.control.weights(batch);
        let total: f64 = weights.iter().sum();
        let mut gradient: Vec<f64> = self.table.probabilities().map(|p| -p * total).collect();
        let width = batch.words.len() / batch.log_q.len().max(1);
        for (row, &weight) in weights.iter().enumerate() {
            if let Some(index) = self.table.catalogue().index(&batch.words[row * width..][..width]) {
                gradient[index] += weight;
            }
        }
        self.descent.write_gradient(engine, gradient.into_iter());
    }
}

/// Takes ψ over into the probabilities.
fn refresh<E: Engine>(
    engine: &E,
    parameters: &E::Buffer,
    logits: &mut [E::Real],
    impossible: &[bool],
    table: &mut Table,
) {
    engine.read(parameters, logits);
    let logit = |(logit, &impossible): (&E::Real, &bool)| if impossible { f64::NEG_INFINITY } else { logit.to_f64() };
    table.set_logits(engine, logits.iter().zip(impossible).map(logit));
}

impl<E: Engine> ModelDistribution<E> for Categorical<E> {
    fn sample(&mut self, _: &E, draw: Draw, words: &mut [u16], log_q: &mut [f64]) {
        self.table.sample(draw, words, log_q);
    }

    fn log_prob(&mut self, _: &E, words: &[u16], log_q: &mut [f64]) {
        self.table.log_probs(words, log_q);
    }

    fn update(&mut self, engine: &E, batch: &ScoredBatch<'_>) -> ModelUpdate {
        self.gradient(engine, batch);
        let Self { table, descent, logits, impossible, .. } = self;
        let entropy = table.entropy();
        let update = descent.step(engine, batch.pace, batch.information_limit, entropy, |parameters| {
            refresh(engine, parameters, logits, impossible, table);
            table.entropy()
        });
        // What was accepted is what the search looked at last; only a search that found nothing, or none, leaves more to do.
        if update.scale == 0.0 || batch.information_limit == f64::INFINITY {
            self.refresh(engine);
        }
        update
    }

    fn state(&self, engine: &E) -> State {
        self.descent.state(engine)
    }

    fn restore(&mut self, engine: &E, state: &mut State) -> Result<(), StateError> {
        self.descent.restore(engine, state)?;
        self.refresh(engine);
        Ok(())
    }

    fn catalogue(&self) -> Option<&Catalogue> {
        Some(self.table.catalogue())
    }
}

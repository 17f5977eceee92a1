//! Categorical distribution with a logit per model (paper, section "Categorical and neural probability mass functions").

use super::baseline::ControlVariate;
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
    control: ControlVariate,
    logits: Vec<E::Real>,
}

impl<E: Engine> std::fmt::Debug for Categorical<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Categorical").field("models", &self.logits.len()).finish_non_exhaustive()
    }
}

impl<E: Engine> Categorical<E> {
    /// All words equally likely.
    pub fn new(engine: &E, catalogue: Catalogue, learning: &LearningSettings) -> Result<Self, SettingError> {
        let logits = vec![E::Real::ZERO; catalogue.len()];
        Ok(Self {
            descent: Descent::new(engine, &logits, learning)?,
            control: ControlVariate::new(&learning.baseline)?,
            table: Table::new(catalogue),
            logits,
        })
    }

    /// The gradient of the mean loss as the batch estimates it: `Σ_n c_n (1[m = m_n] − q(m))` for every model m.
    fn gradient(&mut self, engine: &E, batch: &ScoredBatch<'_>) {
        let weights = self.control.weights(batch);
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
fn refresh<E: Engine>(engine: &E, parameters: &E::Buffer, logits: &mut [E::Real], table: &mut Table) {
    engine.read(parameters, logits);
    table.set_logits(engine, logits.iter().map(|logit| logit.to_f64()));
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
        let Self { table, descent, logits, .. } = self;
        let entropy = table.entropy();
        let update = descent.step(engine, batch.pace, batch.information_limit, entropy, |parameters| {
            refresh(engine, parameters, logits, table);
            table.entropy()
        });
        refresh(engine, &descent.parameters, logits, table);
        update
    }

    fn state(&self, engine: &E) -> State {
        let mut state = State::default();
        state.put_state("descent", self.descent.state(engine));
        state.put_state("control", self.control.state());
        state
    }

    fn restore(&mut self, engine: &E, state: &mut State) -> Result<(), StateError> {
        self.descent.restore(engine, &mut state.take_state("descent"))?;
        self.control.restore(&mut state.take_state("control"))?;
        refresh(engine, &self.descent.parameters, &mut self.logits, &mut self.table);
        Ok(())
    }

    fn catalogue(&self) -> Option<&Catalogue> {
        Some(self.table.catalogue())
    }
}

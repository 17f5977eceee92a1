//! MADE+ as a distribution over models, learned by score-function gradients.

use super::descent::Descent;
use super::{Draw, LearningSettings, ModelDistribution, ModelUpdate, ModelsError, ScoredBatch};
use super::{WordNet, WordNetSettings, WordPasses, WordWorkspace};
use crate::engine::{Engine, Real};
use crate::space::ModelSpace;
use crate::state::{State, StateError};

/// Words are drawn symbol by symbol from a [`WordNet`]; symbols that the space forbids get probability 0.
pub struct Autoregressive<'a, E: Engine> {
    space: &'a dyn ModelSpace,
    net: WordNet,
    descent: Descent<E>,
    evaluation: WordWorkspace<E>,
    training: WordWorkspace<E>,
    uniforms: Vec<E::Real>,
    numbers: Vec<E::Real>,
    /// Words and log probabilities of a chunk.
    words: Vec<u16>,
}

impl<E: Engine> std::fmt::Debug for Autoregressive<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Autoregressive").field("parameters", &self.net.parameter_count()).finish_non_exhaustive()
    }
}

/// The constraints of a space, if it has any.
fn rules(space: &dyn ModelSpace) -> Option<&dyn ModelSpace> {
    space.is_constrained().then_some(space)
}

impl<'a, E: Engine> Autoregressive<'a, E> {
    /// All words equally likely, constraints aside, for training batches of `rows` rows.
    pub fn new(
        engine: &E,
        space: &'a dyn ModelSpace,
        settings: &WordNetSettings,
        learning: &LearningSettings,
        rows: usize,
        seed: u64,
    ) -> Result<Self, ModelsError> {
        let net = WordNet::new(space.arities(), settings)?;
        let rows = rows.max(1);
        Ok(Self {
            descent: Descent::new(engine, &net.initial_parameters(seed), learning)?,
            evaluation: net.workspace(engine, rows, WordPasses::Evaluation),
            training: net.workspace(engine, rows, WordPasses::Training),
            uniforms: vec![E::Real::ZERO; rows * space.arities().len()],
            numbers: vec![E::Real::ZERO; rows],
            words: vec![0; rows * space.arities().len()],
            net,
            space,
        })
    }

    fn width(&self) -> usize {
        self.space.arities().len()
    }

    /// Log probabilities of up to as many words as a workspace holds; the rest of it repeats zeros.
    fn log_prob_chunk(&mut self, engine: &E, words: &[u16], log_q: &mut [f64]) -> Result<(), super::WordError> {
        self.words[..words.len()].copy_from_slice(words);
        self.words[words.len()..].fill(0);
        self.evaluation.write_words(engine, &self.words)?;
        self.net.log_prob(engine, &self.descent.parameters, &mut self.evaluation, rules(self.space))?;
        self.evaluation.read_log_prob(engine, &mut self.numbers)?;
        log_q.iter_mut().zip(&self.numbers).for_each(|(to, value)| *to = value.to_f64());
        Ok(())
    }

    fn sample_chunk(
        &mut self,
        engine: &E,
        draw: Draw,
        first: usize,
        words: &mut [u16],
        log_q: &mut [f64],
    ) -> Result<(), super::WordError> {
        let width = self.width();
        for (row, uniforms) in self.uniforms.chunks_exact_mut(width).take(log_q.len()).enumerate() {
            let mut stream = draw.row(first + row);
            // Rounding to single precision must not reach 1.
            uniforms.fill_with(|| E::Real::from_f64(stream.uniform()).min(E::Real::ONE - E::Real::EPSILON));
        }
        self.evaluation.write_uniforms(engine, &self.uniforms)?;
        self.net.sample(engine, &self.descent.parameters, &mut self.evaluation, rules(self.space))?;
        // What is not finite shows in the log probabilities: the trainer drops such rows.
        if let Err(error @ super::WordError::Length(_)) =
            self.evaluation.read_words(engine, &mut self.words, &mut self.numbers)
        {
            return Err(error);
        }
        words.copy_from_slice(&self.words[..words.len()]);
        log_q.iter_mut().zip(&self.numbers).for_each(|(to, value)| *to = value.to_f64());
        Ok(())
    }

    /// The gradient of the mean loss as the batch estimates it.
    fn gradient(&mut self, engine: &E, batch: &ScoredBatch<'_>) -> Result<(), super::WordError> {
        let weights = self.descent.control.weights(batch);
        self.numbers.iter_mut().zip(weights).for_each(|(to, &weight)| *to = E::Real::from_f64(weight));
        self.training.write_words(engine, batch.words)?;
        let parameters = &self.descent.parameters;
        self.net.log_prob(engine, parameters, &mut self.training, rules(self.space))?;
        self.net.backward(engine, parameters, &mut self.training, &self.numbers, &mut self.descent.gradient)
    }
}

/// `Ĥ_N(ψ')` from draws of q_ψ with whole-word weights in log space (paper, appendix "Monte Carlo estimation of
/// information").
fn entropy_by_weights(log_q: &[f64], log_q_new: &[f64]) -> f64 {
    let terms = log_q.iter().zip(log_q_new).map(|(old, new)| -(new - old).exp() * new);
    terms.sum::<f64>() / log_q.len().max(1) as f64
}

impl<E: Engine> ModelDistribution<E> for Autoregressive<'_, E> {
    fn sample(&mut self, engine: &E, draw: Draw, words: &mut [u16], log_q: &mut [f64]) {
        let (width, rows) = (self.width(), self.evaluation.rows());
        for (index, (words, log_q)) in words.chunks_mut(rows * width).zip(log_q.chunks_mut(rows)).enumerate() {
            if self.sample_chunk(engine, draw, index * rows, words, log_q).is_err() {
                unreachable!("workspaces and buffers are this network's");
            }
        }
    }

    fn log_prob(&mut self, engine: &E, words: &[u16], log_q: &mut [f64]) {
        let (width, rows) = (self.width(), self.evaluation.rows());
        for (words, log_q) in words.chunks(rows * width).zip(log_q.chunks_mut(rows)) {
            // Words of another space.
            if self.log_prob_chunk(engine, words, log_q).is_err() {
                log_q.fill(f64::NAN);
            }
        }
    }

    fn update(&mut self, engine: &E, batch: &ScoredBatch<'_>) -> ModelUpdate {
        if batch.information_limit <= 0.0 {
            // Nothing will move; only the baseline goes on.
            self.descent.control.weights(batch);
            return ModelUpdate { gradient_norm: 0.0, scale: 0.0 };
        }
        if self.gradient(engine, batch).is_err() {
            return ModelUpdate { gradient_norm: f64::NAN, scale: 0.0 };
        }
        // The draws' log probabilities are at hand: H(ψ) needs no pass of its own.
        let entropy = -batch.log_q.iter().sum::<f64>() / batch.log_q.len().max(1) as f64;
        let Self { space, net, descent, evaluation, numbers, .. } = self;
        let mut log_q_new = vec![0.0; batch.log_q.len()];
        let ready = batch.information_limit < f64::INFINITY && evaluation.write_words(engine, batch.words).is_ok();
        descent.step(engine, batch.pace, batch.information_limit, entropy, |parameters| {
            let evaluated = ready
                && net.log_prob(engine, parameters, evaluation, rules(*space)).is_ok()
                && evaluation.read_log_prob(engine, numbers).is_ok();
            if !evaluated {
                return f64::NAN;
            }
            log_q_new.iter_mut().zip(&*numbers).for_each(|(to, value)| *to = value.to_f64());
            entropy_by_weights(batch.log_q, &log_q_new)
        })
    }

    fn state(&self, engine: &E) -> State {
        self.descent.state(engine)
    }

    fn restore(&mut self, engine: &E, state: &mut State) -> Result<(), StateError> {
        self.descent.restore(engine, state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    #[test]
    fn the_entropy_of_another_distribution_is_found_from_draws_of_this_one() {
        // Three bits with these probabilities before and after.
        let (before, after) = ([0.3, 0.6, 0.5], [0.35, 0.5, 0.55]);
        let log = |p: &[f64; 3], word: &[bool; 3]| -> f64 {
            word.iter().zip(p).map(|(&bit, p)| if bit { p.ln() } else { (1.0 - p).ln() }).sum()
        };
        let exact: f64 = after.iter().map(|p: &f64| -p * p.ln() - (1.0 - p) * (1.0 - p).ln()).sum();
        let n = 40_000;
        let words: Vec<[bool; 3]> = (0..n)
            .map(|row| {
                let mut stream = Stream::new(1, Purpose::Other(0), 0, row);
                before.map(|p| stream.uniform() < p)
            })
            .collect();
        let log_q: Vec<f64> = words.iter().map(|word| log(&before, word)).collect();
        let log_q_new: Vec<f64> = words.iter().map(|word| log(&after, word)).collect();
        let terms = log_q.iter().zip(&log_q_new).map(|(old, new)| -(new - old).exp() * new);
        let spread = (terms.map(|term| (term - exact).powi(2)).sum::<f64>() / (n * n) as f64).sqrt();
        assert!((entropy_by_weights(&log_q, &log_q_new) - exact).abs() < 4.0 * spread);
    }
}

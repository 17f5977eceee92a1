//! MADE+ as a distribution over models, learned by score-function gradients.

use std::sync::Arc;

use super::descent::Descent;
use super::{Draw, KEPT_SHARE, LearningSettings, ModelDistribution, ModelUpdate, ModelsError, ScoredBatch};
use super::{WordError, WordNet, WordNetSettings, WordPasses, WordWorkspace};
use crate::device::{Device, DeviceError, UpdateRecord};
use crate::problem::Problem;
use crate::random::{Stream, Weighted};
use crate::simd::Real;
use crate::space::ModelSpace;
use crate::state::{State, StateError};
use crate::workers::Spare;

/// Words are drawn symbol by symbol from a [`WordNet`]; symbols that the space forbids get probability 0.
pub struct Autoregressive<D: Device> {
    problem: Arc<dyn Problem>,
    net: WordNet,
    descent: Descent<D>,
    /// For words that are drawn or evaluated.
    evaluations: Spare<Evaluation<D>>,
    /// Rows of a batch.
    rows: usize,
    training: WordWorkspace<D>,
    weights: Vec<D::Real>,
}

/// Memory for words and log probabilities of a chunk.
struct Evaluation<D: Device> {
    work: WordWorkspace<D>,
    uniforms: Vec<D::Real>,
    numbers: Vec<D::Real>,
    words: Vec<u16>,
}

impl<D: Device> std::fmt::Debug for Autoregressive<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Autoregressive").field("parameters", &self.net.parameter_count()).finish_non_exhaustive()
    }
}

/// Steps in which the network is fitted to words that did not come from it.
const FIT_STEPS: u64 = 500;

/// The constraints of a space, if it has any.
fn rules(space: &dyn ModelSpace) -> Option<&dyn ModelSpace> {
    space.is_constrained().then_some(space)
}

impl<D: Device> Autoregressive<D> {
    /// All words equally likely, constraints aside, for training batches of `rows` rows.
    pub fn new(
        device: &D,
        problem: Arc<dyn Problem>,
        settings: &WordNetSettings,
        learning: &LearningSettings,
        rows: usize,
        seed: u64,
    ) -> Result<Self, ModelsError> {
        let net = WordNet::new(problem.space().arities(), settings)?;
        let rows = rows.max(1);
        Ok(Self {
            descent: Descent::new(device, &net.initial_parameters(seed), learning)?,
            evaluations: Spare::default(),
            rows,
            training: net.workspace(device, rows, WordPasses::Training)?,
            weights: vec![D::Real::ZERO; rows],
            net,
            problem,
        })
    }

    /// Calls `work` with memory for the words of a chunk, and with the network.
    fn evaluate(
        &self,
        device: &D,
        work: impl FnOnce(&mut Evaluation<D>, (&WordNet, &D::Buffer)) -> Result<(), WordError>,
    ) -> Result<(), ModelsError> {
        let make = || Evaluation::new(device, &self.net, self.rows);
        Ok(self.evaluations.lend(make, |evaluation| work(evaluation, (&self.net, &self.descent.parameters)))?)
    }

    /// The gradient of the mean loss as the batch estimates it.
    fn gradient(&mut self, device: &D, batch: &ScoredBatch<'_>) -> Result<(), WordError> {
        let weights = self.descent.control.weights(batch);
        self.weights.iter_mut().zip(weights).for_each(|(to, &weight)| *to = D::Real::from_f64(weight));
        self.weighted_gradient(device, batch.words)
    }

    /// The gradient of `Σ w log q(m)`, with `self.weights` of words.
    fn weighted_gradient(&mut self, device: &D, words: &[u16]) -> Result<(), WordError> {
        self.training.write_words(device, words)?;
        let parameters = &self.descent.parameters;
        self.net.log_prob(device, parameters, &mut self.training, rules(self.problem.space()))?;
        self.net.backward(device, parameters, &mut self.training, &self.weights, &mut self.descent.gradient)
    }

    /// Minimises the forward divergence `−Σ w log q(m)` of words that did not come from q, by so many gradient steps on batches of
    /// them; a share of each batch are words that q drew before, which stand for what it was. `watch` hears how many steps are done, and
    /// says whether to go on. Returns how many were done: none where no word has weight.
    pub fn follow_words(
        &mut self,
        device: &D,
        draw: Draw,
        (words, weights): (&[u16], &[f64]),
        (kept, steps): (f64, u64),
        watch: &mut dyn FnMut(u64) -> bool,
    ) -> Result<u64, ModelsError> {
        let width = self.problem.space().arities().len();
        let (mut own, mut log_q) = (vec![0; self.rows * width], vec![0.0; self.rows]);
        self.sample(device, draw, &mut own, &mut log_q)?;
        let Some(weighted) = Weighted::new(weights.iter().copied()) else { return Ok(0) };
        let mut batch = vec![0; own.len()];
        self.weights.fill(D::Real::from_f64(-1.0 / self.rows as f64));
        for step in 0..steps {
            if !watch(step) {
                return Ok(step);
            }
            let draw = Draw { step: draw.step + 1 + step, ..draw };
            for (row, (to, own)) in batch.chunks_exact_mut(width).zip(own.chunks_exact(width)).enumerate() {
                let mut stream = draw.row(row);
                let is_own = stream.uniform() < kept;
                let from = if is_own { own } else { &words[weighted.draw(&mut stream) * width..][..width] };
                to.copy_from_slice(from);
            }
            self.weighted_gradient(device, &batch)?;
            let pace = 1.0 - step as f64 / steps as f64;
            self.descent.step(device, pace, f64::INFINITY, f64::NAN, |_| Ok(f64::NAN))?;
        }
        Ok(steps)
    }
}

impl<D: Device> Evaluation<D> {
    fn new(device: &D, net: &WordNet, rows: usize) -> Result<Self, WordError> {
        let width = net.arities.len();
        Ok(Self {
            work: net.workspace(device, rows, WordPasses::Evaluation)?,
            uniforms: vec![D::Real::ZERO; rows * width],
            numbers: vec![D::Real::ZERO; rows],
            words: vec![0; rows * width],
        })
    }

    /// Log probabilities of up to as many words as there is room for; the rest of it repeats zeros.
    fn log_prob(
        &mut self,
        device: &D,
        (net, parameters): (&WordNet, &D::Buffer),
        rules: Option<&dyn ModelSpace>,
        words: &[u16],
        log_q: &mut [f64],
    ) -> Result<(), WordError> {
        self.words[..words.len()].copy_from_slice(words);
        self.words[words.len()..].fill(0);
        self.work.write_words(device, &self.words)?;
        net.log_prob(device, parameters, &mut self.work, rules)?;
        self.work.read_log_prob(device, &mut self.numbers)?;
        log_q.iter_mut().zip(&self.numbers).for_each(|(to, value)| *to = value.to_f64());
        Ok(())
    }

    /// Draws up to as many words as there is room for, row r from its stream.
    fn sample(
        &mut self,
        device: &D,
        (net, parameters): (&WordNet, &D::Buffer),
        rules: Option<&dyn ModelSpace>,
        stream: impl Fn(usize) -> Stream,
        (words, log_q): (&mut [u16], &mut [f64]),
    ) -> Result<(), WordError> {
        let width = words.len() / log_q.len().max(1);
        for (row, uniforms) in self.uniforms.chunks_exact_mut(width).take(log_q.len()).enumerate() {
            let mut stream = stream(row);
            // Rounding to single precision must not reach 1.
            uniforms.fill_with(|| D::Real::from_f64(stream.uniform()).min(D::Real::ONE - D::Real::EPSILON));
        }
        self.work.write_uniforms(device, &self.uniforms)?;
        net.sample(device, parameters, &mut self.work, rules)?;
        match self.work.read_words(device, &mut self.words, &mut self.numbers) {
            // It shows in the log probabilities: the trainer drops such rows.
            Ok(()) | Err(WordError::NotFinite { .. }) => {}
            Err(error) => return Err(error),
        }
        words.copy_from_slice(&self.words[..words.len()]);
        log_q.iter_mut().zip(&self.numbers).for_each(|(to, value)| *to = value.to_f64());
        Ok(())
    }
}

/// `Ĥ_N(ψ')` from draws of q_ψ with whole-word weights in log space (paper, appendix E.3, "Monte Carlo estimation of
/// information").
fn entropy_by_weights(log_q: &[f64], log_q_new: &[f64]) -> f64 {
    let terms = log_q.iter().zip(log_q_new).map(|(old, new)| -(new - old).exp() * new);
    terms.sum::<f64>() / log_q.len().max(1) as f64
}

impl<D: Device> ModelDistribution<D> for Autoregressive<D> {
    fn sample(&self, device: &D, draw: Draw, words: &mut [u16], log_q: &mut [f64]) -> Result<(), ModelsError> {
        let (space, rows) = (self.problem.space(), self.rows);
        let width = space.arities().len();
        self.evaluate(device, |evaluation, net| {
            for (index, chunk) in words.chunks_mut(rows * width).zip(log_q.chunks_mut(rows)).enumerate() {
                evaluation.sample(device, net, rules(space), |row| draw.row(index * rows + row), chunk)?;
            }
            Ok(())
        })
    }

    fn log_prob(&self, device: &D, words: &[u16], log_q: &mut [f64]) -> Result<(), ModelsError> {
        let (space, rows) = (self.problem.space(), self.rows);
        let width = space.arities().len();
        self.evaluate(device, |evaluation, net| {
            for (words, log_q) in words.chunks(rows * width).zip(log_q.chunks_mut(rows)) {
                match evaluation.log_prob(device, net, rules(space), words, log_q) {
                    Ok(()) => {}
                    Err(WordError::Symbol { .. }) => log_q.fill(f64::NAN),
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })
    }

    fn update(&mut self, device: &D, batch: &ScoredBatch<'_>) -> Result<ModelUpdate, ModelsError> {
        if batch.information_limit <= 0.0 {
            // Nothing will move; only the control variate goes on.
            self.descent.control.weights(batch);
            return Ok(ModelUpdate { scale: 0.0 });
        }
        self.gradient(device, batch)?;
        // The draws' log probabilities are at hand: H(ψ) needs no pass of its own.
        let entropy = -batch.log_q.iter().sum::<f64>() / batch.log_q.len().max(1) as f64;
        let Self { problem, net, descent, evaluations, rows, .. } = self;
        let mut log_q_new = vec![0.0; batch.log_q.len()];
        let make = || Evaluation::new(device, net, *rows).map_err(ModelsError::from);
        evaluations.lend(make, |Evaluation { work, numbers, .. }| {
            if batch.information_limit < f64::INFINITY {
                work.write_words(device, batch.words)?;
            }
            descent.step(device, batch.pace, batch.information_limit, entropy, |parameters| {
                net.log_prob(device, parameters, work, rules(problem.space()))?;
                work.read_log_prob(device, numbers)?;
                log_q_new.iter_mut().zip(&*numbers).for_each(|(to, value)| *to = value.to_f64());
                Ok(entropy_by_weights(batch.log_q, &log_q_new))
            })
        })
    }

    fn fit(&mut self, device: &D, draw: Draw, words: &[u16], weights: &[f64]) -> Result<bool, ModelsError> {
        let learned = self.follow_words(device, draw, (words, weights), (KEPT_SHARE, FIT_STEPS), &mut |_| true)?;
        Ok(learned > 0)
    }

    fn gradients(&self, device: &D) -> Result<Option<UpdateRecord>, DeviceError> {
        self.descent.gradients(device).map(Some)
    }

    fn state(&self, device: &D) -> Result<State, DeviceError> {
        self.descent.state(device)
    }

    fn restore(&mut self, device: &D, state: &mut State) -> Result<(), StateError> {
        self.descent.restore(device, state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

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

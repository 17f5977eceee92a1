//! A batch of drawn models and their scores.

use std::sync::Arc;

use anyhow::Result;
use vti::device::Cpu;
use vti::models::{Draw, ModelDistribution, ScoredBatch};
use vti::problem::{Problem, from_fn};
use vti::space::ModelSpace;
use vti::train::TrainSettings;

/// A distribution over models on the device of all benchmarks.
pub(crate) type Models = Box<dyn ModelDistribution<Cpu<f32>>>;

/// The problem that has nothing but a space: a uniform prior, and densities that nobody asks for.
pub(crate) fn bare(space: impl ModelSpace + 'static) -> Arc<dyn Problem> {
    Arc::new(from_fn(space, |_, _, _| 0.0))
}

/// Words with their log probabilities and scores, under a uniform prior.
pub(crate) struct Scored {
    pub(crate) words: Vec<u16>,
    pub(crate) log_q: Vec<f64>,
    pub(crate) log_h: Vec<f64>,
    log_prior: Vec<f64>,
    kept: Vec<bool>,
    width: usize,
}

impl Scored {
    /// Room for `rows` words of a space.
    pub(crate) fn new(space: &dyn ModelSpace, rows: usize) -> Self {
        let width = space.arities().len();
        Self {
            words: vec![0; rows * width],
            log_q: vec![0.0; rows],
            log_h: vec![0.0; rows],
            log_prior: vec![-space.log_count(); rows],
            kept: vec![true; rows],
            width,
        }
    }

    /// Draws all words.
    pub(crate) fn draw(&mut self, device: &Cpu<f32>, models: &Models, draw: Draw) -> Result<()> {
        Ok(models.sample(device, draw, &mut self.words, &mut self.log_q)?)
    }

    /// Sets `log h` of every row, given its number and its word.
    pub(crate) fn score(&mut self, score: impl Fn(usize, &[u16]) -> f64) {
        let words = self.words.chunks_exact(self.width);
        self.log_h.iter_mut().zip(words).enumerate().for_each(|(row, (log_h, word))| *log_h = score(row, word));
    }

    /// What a distribution learns from.
    pub(crate) fn batch(&self, pace: f64, information_limit: f64) -> ScoredBatch<'_> {
        let Self { words, log_q, log_h, log_prior, kept, .. } = self;
        ScoredBatch { words, log_q, log_prior, log_h, kept, blocks: None, pace, information_limit }
    }

    /// The mean loss, `log h + log q − log p`.
    pub(crate) fn mean_loss(&self) -> f64 {
        let rows = self.log_h.iter().zip(&self.log_q).zip(&self.log_prior);
        rows.map(|((log_h, log_q), log_prior)| log_h + log_q - log_prior).sum::<f64>() / self.log_h.len() as f64
    }
}

/// The information limit of the trainer's default settings, for so many steps, once it lets q(m) move.
pub(crate) fn information_limit(space: &dyn ModelSpace, steps: u64) -> f64 {
    TrainSettings::default().information.limit(steps, steps, space.log_count(), false)
}

/// How fast learning goes at a step, by the trainer's default schedule.
pub(crate) fn pace(step: u64, steps: u64) -> f64 {
    let schedule = TrainSettings::default().schedule;
    schedule.rate(step, steps) / schedule.peak()
}

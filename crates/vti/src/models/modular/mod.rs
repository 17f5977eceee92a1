//! Models whose blocks are scored one by one.
//!
//! Where the density is a product over blocks, so is the evidence of a model: `−ℓ(m; φ) = Σ_b s_b(k_b)` with the block's own bound
//! s_b for its key k_b. The paper's surrogate (section 3.1, "Estimation via surrogate") then needs a belief for every block and key
//! only, not for every model, and each of them learns from all models that share it:
//!
//! ```text
//! q(m) ∝ p(m) exp Σ_b (μ_b(k_b) + β σ_b(k_b)).
//! ```
//!
//! Of graphs the blocks are nodes and the keys sets of parents. The sum over all models is exact
//! ([`ModelSums`]), so q can be drawn from and evaluated exactly too.

mod asking;
mod scores;
mod table;

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::asking::Asking;
use self::scores::draw_words;
pub use self::scores::{BlockProbabilities, BlockScores};
use self::table::KeyTable;
use super::{Draw, ModelDistribution, ModelUpdate, ModelsError, Prepared, Preparing, ScoredBatch};
use crate::device::{Device, DeviceError};
use crate::optimise::SettingError;
use crate::problem::{BlockModels, Blocks, ModelSums, Problem};
use crate::state::{State, StateError};
use crate::workers::Workers;

/// Settings of a [`Modular`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModularSettings {
    /// β: how many standard deviations the upper confidence bound lies above the mean.
    pub beta: f64,
    /// Standard deviation of the error of the problem's estimates of log evidences, in nats.
    pub prior_sd: f64,
    /// Standard deviation of a step of the random walk of scores while φ moves fastest, in nats.
    pub inflation: f64,
    /// Decay of the running mean of the noise variance.
    pub noise_decay: f64,
    /// q starts from the estimates to this power: the smaller, the more models are tried at first.
    pub start: f64,
    /// Up to so many keys of a block are all tried; among more, the promising ones are searched for.
    pub most_sets: usize,
    /// In a search, how many of the best keys of a size are enlarged.
    pub beam: usize,
}

impl Default for ModularSettings {
    fn default() -> Self {
        Self { beta: 1.0, prior_sd: 3.0, inflation: 0.1, noise_decay: 0.9, start: 0.1, most_sets: 1 << 11, beam: 48 }
    }
}

impl ModularSettings {
    fn check(&self) -> Result<(), SettingError> {
        let Self { beta, prior_sd, inflation, noise_decay, start, most_sets, beam } = *self;
        let check = SettingError::check;
        check("beta", beta, beta >= 0.0 && beta.is_finite(), "at least 0")?;
        check("prior_sd", prior_sd, prior_sd > 0.0 && prior_sd.is_finite(), "positive")?;
        check("inflation", inflation, inflation >= 0.0 && inflation.is_finite(), "at least 0")?;
        check("noise_decay", noise_decay, (0.0..1.0).contains(&noise_decay), "at least 0 and below 1")?;
        check("start", start, (0.0..=1.0).contains(&start), "from 0 to 1")?;
        check("most_sets", most_sets as f64, most_sets > 0, "at least 1")?;
        check("beam", beam as f64, beam > 0, "at least 1")
    }
}

/// Updates after which sums are made again, as a share of their terms: with many they take longer than a step of everything
/// else.
const TERMS_PER_UPDATE: u32 = 17;

/// q(m) as a product over blocks, with a belief about every block and key.
pub struct Modular {
    settings: ModularSettings,
    problem: Arc<dyn Problem>,
    /// One for each block; none before [`ModelDistribution::prepare`].
    scores: BlockScores,
    tables: Vec<KeyTable>,
    sums: Box<dyn ModelSums>,
    /// Updates since the sums were made.
    waiting: u64,
}

impl std::fmt::Debug for Modular {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Modular").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// A problem's blocks, and its models as combinations of their keys, where it has both.
fn parts(problem: &dyn Problem) -> Option<(&dyn Blocks, &dyn BlockModels)> {
    let blocks = problem.blocks()?;
    Some((blocks, blocks.models()?))
}

impl Modular {
    /// Whether sums over a problem's models are known.
    pub fn suits(problem: &dyn Problem) -> bool {
        parts(problem).is_some()
    }

    /// Estimates of evidences are asked for by [`ModelDistribution::prepare`].
    pub fn new(problem: Arc<dyn Problem>, settings: &ModularSettings) -> Result<Self, ModelsError> {
        settings.check()?;
        let (_, models) = parts(&*problem).ok_or(ModelsError::NotModular)?;
        let sums = models.sums();
        let (scores, tables) = (BlockScores::default(), Vec::new());
        Ok(Self { settings: settings.clone(), scores, tables, sums, waiting: 0, problem })
    }

    /// Asks for estimates, unless a state has been restored.
    fn ask(&mut self, workers: &Workers, preparing: &mut Preparing<'_>) -> ControlFlow<(), Prepared> {
        let (true, Some((blocks, models))) = (self.tables.is_empty(), parts(&*self.problem)) else {
            return ControlFlow::Continue(Prepared::Whole);
        };
        let (found, prepared) = Asking::new((blocks, models), &self.settings, workers, preparing).run()?;
        let known = found.into_iter().enumerate();
        let known = known
            .map(|(block, found)| table::from_estimates(block, models, &self.settings, found.into_iter().collect()));
        (self.scores.blocks, self.tables) = known.unzip();
        self.refresh(workers);
        ControlFlow::Continue(prepared)
    }

    fn check_prepared(&self) -> Result<(), ModelsError> {
        if self.tables.is_empty() { Err(ModelsError::NotPrepared) } else { Ok(()) }
    }

    /// Sums over all models of the scores as they are.
    fn refresh(&mut self, workers: &Workers) {
        let Self { scores, sums, .. } = self;
        workers.for_each(&mut scores.blocks, |_, scores| scores.rank());
        sums.update(&scores.blocks, workers);
    }

    /// Log probabilities of words.
    fn log_probs(&self, words: &[u16], log_q: &mut [f64]) {
        let Some((blocks, models)) = parts(&*self.problem) else { return };
        let width = self.problem.space().arities().len();
        let mut keys = vec![0; blocks.count()];
        for (word, log_q) in words.chunks_exact(width).zip(log_q) {
            blocks.keys(word, &mut keys);
            let scores = keys.iter().zip(&self.tables).zip(&self.scores.blocks).map(|((&key, table), scores)| {
                table.index(key).map_or(f64::NEG_INFINITY, |index| scores.scores[index])
            });
            let shared = if models.words_share() { models.log_words(&keys) } else { 0.0 };
            let score = scores.sum::<f64>() - (self.sums.log_total() + shared);
            // Keys that no word has.
            *log_q = if shared == f64::NEG_INFINITY { f64::NEG_INFINITY } else { score };
        }
    }

    /// Learns what a batch says about blocks and their keys.
    fn learn(&mut self, workers: &Workers, batch: &ScoredBatch<'_>) -> bool {
        let Some(blocks) = batch.blocks else { return false };
        let count = self.tables.len();
        let drift = self.settings.inflation * batch.pace;
        for (block, table) in self.tables.iter_mut().enumerate() {
            let rows = (0..batch.kept.len()).filter(|&row| batch.kept[row]).map(|row| row * count + block);
            let rows = rows.filter_map(|place| Some((table.index(blocks.keys[place])?, -blocks.log_h[place])));
            let rows: Vec<(usize, f64)> = rows.collect();
            if rows.is_empty() {
                return false;
            }
            table.learner.learn(workers, &rows, drift);
        }
        true
    }

    /// Moves the scores towards `log p + μ + βσ` as far as the entropy changes by about `limit` at most; the share of the way.
    ///
    /// With Δ the sum over blocks of what is left of the way, the entropy changes by −Cov_q(log q, Δ) for each unit of the share,
    /// which the batch, drawn from q, estimates.
    fn approach(&mut self, beta: f64, limit: f64, batch: Option<&ScoredBatch<'_>>) -> f64 {
        if limit <= 0.0 {
            return 0.0;
        }
        let share = match (batch, batch.and_then(|batch| batch.blocks)) {
            (Some(batch), Some(blocks)) if limit < f64::INFINITY => {
                let way = |keys: &[u64]| {
                    let blocks = keys.iter().zip(&self.tables).zip(&self.scores.blocks);
                    let left = blocks.map(|((&key, table), scores)| {
                        table.index(key).map_or(0.0, |i| table.goal(scores, i, beta) - scores.scores[i])
                    });
                    left.sum()
                };
                let ways: Vec<f64> = blocks.keys.chunks_exact(self.tables.len()).map(way).collect();
                let change = covariance(batch.log_q, &ways).abs();
                if change > limit { limit / change } else { 1.0 }
            }
            _ => 1.0,
        };
        let tables = self.tables.iter().zip(&mut self.scores.blocks);
        tables.for_each(|(table, scores)| table.approach(scores, beta, share));
        share
    }
}

/// The covariance of two lists of numbers.
fn covariance(x: &[f64], y: &[f64]) -> f64 {
    let count = x.len().max(1) as f64;
    let (mean_x, mean_y) = (x.iter().sum::<f64>() / count, y.iter().sum::<f64>() / count);
    x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / count
}

impl<D: Device> ModelDistribution<D> for Modular {
    fn prepare(&mut self, device: &D, preparing: &mut Preparing<'_>) -> ControlFlow<(), Prepared> {
        self.ask(device.workers(), preparing)
    }

    fn sample(&self, device: &D, draw: Draw, words: &mut [u16], log_q: &mut [f64]) -> Result<(), ModelsError> {
        self.check_prepared()?;
        draw_words(device.workers(), &*self.sums, &self.scores.blocks, draw, words, log_q);
        Ok(())
    }

    fn log_prob(&self, _: &D, words: &[u16], log_q: &mut [f64]) -> Result<(), ModelsError> {
        self.check_prepared()?;
        self.log_probs(words, log_q);
        Ok(())
    }

    fn update(&mut self, device: &D, batch: &ScoredBatch<'_>) -> Result<ModelUpdate, ModelsError> {
        let learned = self.learn(device.workers(), batch);
        // A number from a file may be any.
        self.waiting = self.waiting.saturating_add(1);
        let mut scale = 0.0;
        if learned && self.waiting >= (self.sums.terms() >> TERMS_PER_UPDATE).max(1) {
            let limit = batch.information_limit * self.waiting as f64;
            self.waiting = 0;
            scale = self.approach(self.settings.beta, limit, Some(batch));
            if scale > 0.0 {
                self.refresh(device.workers());
            }
        }
        Ok(ModelUpdate { scale })
    }

    fn fit_blocks(&mut self, device: &D, found: &BlockScores) -> bool {
        let Some((_, models)) = parts(&*self.problem) else { return false };
        let known = |(block, found)| table::known(block, models, &self.settings, found);
        let (scores, tables) = found.blocks.iter().enumerate().map(known).unzip();
        (self.scores.blocks, self.tables) = (scores, tables);
        ModelDistribution::<D>::end_exploration(self, device);
        true
    }

    fn state(&self, _: &D) -> Result<State, DeviceError> {
        let mut state = State::default();
        state.put("waiting", &[self.waiting as f64]);
        for (block, (table, scores)) in self.tables.iter().zip(&self.scores.blocks).enumerate() {
            state.put_state(&format!("nodes.{block}"), table.state(scores));
        }
        Ok(state)
    }

    fn restore(&mut self, device: &D, state: &mut State) -> Result<(), StateError> {
        let waiting = state.take_number("waiting")?;
        if let Some((blocks, models)) = parts(&*self.problem) {
            // A run that was saved before its first step has no tables yet.
            let kept: Vec<State> =
                (0..blocks.count()).map(|block| state.take_state(&format!("nodes.{block}"))).collect();
            (self.scores, self.tables) = (BlockScores::default(), Vec::new());
            if kept.iter().all(|table| !table.arrays().is_empty()) {
                for (block, mut state) in kept.into_iter().enumerate() {
                    let (scores, table) = table::restore(block, models, &self.settings, &mut state)?;
                    self.scores.blocks.push(scores);
                    self.tables.push(table);
                }
                // The sums belong to the scores of the last refresh, and those have not moved since.
                self.refresh(device.workers());
            }
        }
        self.waiting = waiting as u64;
        Ok(())
    }

    fn block_scores(&self) -> Option<&BlockScores> {
        Some(&self.scores)
    }

    /// What remains of the upper confidence bounds is the means of the beliefs.
    fn end_exploration(&mut self, device: &D) {
        if !self.tables.is_empty() {
            self.approach(0.0, f64::INFINITY, None);
            self.refresh(device.workers());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

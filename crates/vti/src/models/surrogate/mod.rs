//! A surrogate of `−ℓ(m; φ)` and the distribution that follows from it (paper, section 3.1, "Estimation via surrogate").
//!
//! With μ_t and σ_t the mean and standard deviation of the belief about `−ℓ(m; φ_t)` after t batches,
//!
//! ```text
//! q_t(m) = p(m) exp(μ_t(m) + β σ_t(m)) / Σ_m' p(m') exp(μ_t(m') + β σ_t(m')).
//! ```
//!
//! q_t approaches this no faster than the information limit allows, as the other distributions do: at first ℓ(m; φ) says
//! more about φ than about m.
//!
//! Four things the paper leaves open are settled here. *The scale* of the belief before any observation is how far models of the first
//! batch lie apart, as no number that is chosen before suits every posterior. *The noise* of the observations is estimated from their spread
//! within models, as a variance. *The drift of φ* is a random walk: each step adds variance to the belief, in proportion
//! to the square of how fast φ moves, so that old observations lose their weight, and nothing is lost once φ has come to
//! rest. *The level*, common to all models, says nothing about q and moves most of all while φ improves: every batch has a
//! level of its own, estimated with it and subtracted.

pub(super) mod belief;
pub(super) mod learner;

use serde::{Deserialize, Serialize};

use self::belief::Belief;
use self::learner::Learner;
use super::word_probabilities::WordProbabilities;
use super::{Draw, KEPT_SHARE, ModelDistribution, ModelUpdate, ModelsError, ScoredBatch};
use crate::device::{Device, DeviceError};
use crate::optimise::SettingError;
use crate::space::{Catalogue, ModelSpace};
use crate::state::{State, StateError};
use crate::stats;
use crate::workers::Workers;

/// How much the belief knows about dependence between models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Covariance {
    /// A Gaussian process over models, for up to 4,096 of them.
    Full,
    /// Independent models.
    Diagonal,
}

/// Settings of a [`Surrogate`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SurrogateSettings {
    /// Gaussian process or independent models.
    pub covariance: Covariance,
    /// β: how many standard deviations the upper confidence bound lies above the mean.
    pub beta: f64,
    /// Standard deviation of the belief before any observation, in nats, at least: the first batch widens it to how far its models
    /// lie apart.
    pub prior_sd: f64,
    /// Hamming distance over which the correlation of two words falls by e.
    pub length: f64,
    /// Standard deviation of a step of the random walk while φ moves fastest, in nats.
    pub inflation: f64,
    /// Decay of the running mean of the noise variance.
    pub noise_decay: f64,
}

impl Default for SurrogateSettings {
    fn default() -> Self {
        Self {
            covariance: Covariance::Diagonal,
            beta: 1.0,
            prior_sd: 3.0,
            length: 2.0,
            inflation: 0.1,
            noise_decay: 0.9,
        }
    }
}

impl SurrogateSettings {
    fn check(&self) -> Result<(), SettingError> {
        let Self { covariance: _, beta, prior_sd, length, inflation, noise_decay } = *self;
        let positive =
            |what, value: f64| SettingError::check(what, value, value > 0.0 && value.is_finite(), "positive");
        SettingError::check("beta", beta, beta >= 0.0 && beta.is_finite(), "at least 0")?;
        positive("prior_sd", prior_sd)?;
        positive("length", length)?;
        SettingError::check("inflation", inflation, inflation >= 0.0 && inflation.is_finite(), "at least 0")?;
        SettingError::check("noise_decay", noise_decay, (0.0..1.0).contains(&noise_decay), "at least 0 and below 1")
    }
}

/// The surrogate's belief and the distribution that follows from it.
pub struct Surrogate {
    settings: SurrogateSettings,
    table: WordProbabilities,
    log_prior: Vec<f64>,
    learner: Learner,
    /// The share of the way to p(m) exp(μ + βσ) that was gone last time.
    share: f64,
    goal: Vec<f64>,
}

impl std::fmt::Debug for Surrogate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surrogate").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Surrogate {
    /// The most models a full covariance can be kept for.
    pub const MAX_FULL_MODELS: usize = 4096;

    /// Before any observation q is half the prior and half uniform over what is possible, `log_prior` giving log p of every word of
    /// the catalogue: a sparse prior alone would not draw the models that matter, and what is not drawn is not learned.
    pub fn new(
        workers: &Workers,
        space: &dyn ModelSpace,
        catalogue: Catalogue,
        log_prior: impl Fn(&[u16]) -> f64,
        settings: &SurrogateSettings,
    ) -> Result<Self, ModelsError> {
        settings.check()?;
        let count = catalogue.len();
        let width = space.arities().len();
        let words = catalogue.words();
        let word = |index: usize| &words[index * width..][..width];
        let variance = settings.prior_sd * settings.prior_sd;
        let belief = match settings.covariance {
            Covariance::Diagonal => Belief::diagonal(count, variance),
            Covariance::Full if count > Self::MAX_FULL_MODELS => {
                return Err(ModelsError::TooManyForFullCovariance { models: count, most: Self::MAX_FULL_MODELS });
            }
            Covariance::Full => Belief::full(count, |a, b| {
                let distance = word(a).iter().zip(word(b)).filter(|(a, b)| a != b).count();
                variance * (-(distance as f64) / settings.length).exp()
            }),
        };
        let mut surrogate = Self {
            settings: settings.clone(),
            log_prior: (0..count).map(|index| log_prior(word(index))).collect(),
            learner: Learner::new(vec![0.0; count], belief, settings.noise_decay),
            share: 1.0,
            goal: Vec::with_capacity(count),
            table: WordProbabilities::new(catalogue),
        };
        let start = start(&surrogate.log_prior);
        surrogate.table.set_logits(workers, start.into_iter());
        Ok(surrogate)
    }

    /// `q ∝ p(m) exp(μ + βσ)`, or as near to it as the information limit lets it come.
    fn refresh(&mut self, workers: &Workers, beta: f64, limit: f64) -> f64 {
        let Self { log_prior, learner, goal, .. } = self;
        goal.clear();
        goal.extend(log_prior.iter().enumerate().map(|(m, log_prior)| log_prior + learner.upper_confidence(m, beta)));
        let share = self.table.approach(workers, goal, limit, self.share);
        self.share = if share > 0.0 { share } else { 1.0 };
        share
    }
}

/// The logarithm of half the prior and half the uniform distribution over what is possible.
fn start(log_prior: &[f64]) -> Vec<f64> {
    let log_total = stats::log_sum_exp(log_prior);
    let possible = log_prior.iter().filter(|log_prior| log_prior.is_finite()).count() as f64;
    let half = |log_prior: &f64| {
        if log_prior.is_finite() { ((log_prior - log_total).exp() + 1.0 / possible).ln() } else { f64::NEG_INFINITY }
    };
    log_prior.iter().map(half).collect()
}

impl<D: Device> ModelDistribution<D> for Surrogate {
    fn sample(&self, _: &D, draw: Draw, words: &mut [u16], log_q: &mut [f64]) -> Result<(), ModelsError> {
        self.table.sample(draw, words, log_q);
        Ok(())
    }

    fn log_prob(&self, _: &D, words: &[u16], log_q: &mut [f64]) -> Result<(), ModelsError> {
        self.table.log_probs(words, log_q);
        Ok(())
    }

    fn update(&mut self, device: &D, batch: &ScoredBatch<'_>) -> Result<ModelUpdate, ModelsError> {
        let width = batch.words.len() / batch.log_h.len().max(1);
        let index = |row: usize| self.table.catalogue().index(&batch.words[row * width..][..width]);
        let mut rows: Vec<(usize, f64)> = Vec::with_capacity(batch.log_h.len());
        let kept = (0..batch.log_h.len()).filter(|&row| batch.kept[row]);
        rows.extend(kept.filter_map(|row| Some((index(row)?, -batch.log_h[row]))));
        if !rows.is_empty() {
            self.learner.widen(&rows, self.settings.prior_sd.powi(2));
            self.learner.learn(device.workers(), &rows, self.settings.inflation * batch.pace);
            let scale = self.refresh(device.workers(), self.settings.beta, batch.information_limit);
            return Ok(ModelUpdate { scale });
        }
        Ok(ModelUpdate { scale: 0.0 })
    }

    /// The belief becomes what q must be: nothing is left to explore.
    fn fit(&mut self, device: &D, _: Draw, words: &[u16], weights: &[f64]) -> Result<bool, ModelsError> {
        let log_q = self.table.log_mixture(KEPT_SHARE, words, weights);
        let relative = |(log_q, log_prior): (f64, &f64)| if log_prior.is_finite() { log_q - log_prior } else { 0.0 };
        self.learner.know(log_q.into_iter().zip(&self.log_prior).map(relative).collect());
        self.refresh(device.workers(), 0.0, f64::INFINITY);
        Ok(true)
    }

    fn state(&self, _: &D) -> Result<State, DeviceError> {
        let mut state = State::default();
        self.learner.put(&mut state);
        state.put("share", &[self.share]);
        self.table.put(&mut state);
        Ok(state)
    }

    fn restore(&mut self, device: &D, state: &mut State) -> Result<(), StateError> {
        self.learner.restore(state)?;
        self.share = state.take::<f64>("share", 1)?[0];
        self.table.restore(device.workers(), state)
    }

    /// What remains of the upper confidence bound is the belief's mean.
    fn end_exploration(&mut self, device: &D) {
        self.refresh(device.workers(), 0.0, f64::INFINITY);
    }

    fn catalogue(&self) -> Option<&Catalogue> {
        Some(self.table.catalogue())
    }
}

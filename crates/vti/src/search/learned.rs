//! q(m), learned from what chains met.
//!
//! Chains give shares of visits. A q(m) fitted to their states (forward divergence) is a density: its draws are independent, and
//! as evidences are known their weights `p(m) p(y | m) / q(m)` are exact. They find the evidence over all models, which visits alone
//! leave open, and all probabilities a second time; k̂ says how near q(m) is to the posterior. What all chains have missed they miss,
//! too.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::found::Searched;
use super::trace::mark_features;
use super::{ModelEvidences, SearchError, SearchSettings};
use crate::device::Device;
use crate::models::{Autoregressive, Draw, LearningSettings, ModelDistribution, WordNetSettings};
use crate::optimise::SettingError;
use crate::problem::Problem;
use crate::random::Purpose;
use crate::space::ModelSpace;
use crate::stats::{Estimate, Smoothed, Stratum, log_total, ratio, smooth};

/// How q(m) learns what chains met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LearnedSettings {
    /// Draws of q(m) that are weighed; with 0 nothing is learned.
    pub draws: usize,
    /// Steps in which it is fitted.
    pub steps: u64,
    /// Words of a batch.
    pub batch: usize,
    /// Its learning rate at first; it falls to 0.
    pub rate: f64,
    /// The network.
    pub network: WordNetSettings,
}

impl Default for LearnedSettings {
    fn default() -> Self {
        // A larger network or more steps learn the states of chains by heart: measured with 200 covariates.
        let network = WordNetSettings { hidden: 64, blocks: 1, ..WordNetSettings::default() };
        Self { draws: 8192, steps: 500, batch: 512, rate: 0.01, network }
    }
}

impl LearnedSettings {
    /// Refuses settings that make no sense.
    pub fn check(&self) -> Result<(), SettingError> {
        let at_least = |what, value: f64| SettingError::check(what, value, value >= 1.0, "at least 1");
        at_least("learned.steps", self.steps as f64)?;
        at_least("learned.batch", self.batch as f64)
    }
}

/// What q(m) and weights of its draws say.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedModels {
    /// Draws of q(m), one word after the other.
    pub words: Vec<u16>,
    /// How many there are.
    pub draws: usize,
    /// Probabilities of features under q.
    pub features: Vec<f64>,
    /// The same by weights.
    pub weighed: Vec<Estimate>,
    /// `log q(m)` of [`Searched::models`].
    pub log_q: Vec<f64>,
    /// The bound `E_q[log p(m) p(y | m) − log q(m)]`.
    pub elbo: Estimate,
    /// `log p(y)` by weights.
    pub log_evidence: Estimate,
    /// How heavy the tail of the weights is.
    pub tail: Smoothed,
}

impl Searched {
    /// `log p(y)` by chains, or by weights of q(m) where these are reliable and know it better.
    pub fn log_evidence_with(&self, learned: Option<&LearnedModels>) -> Estimate {
        let by_weights = learned.filter(|learned| learned.is_reliable()).map(|learned| learned.log_evidence);
        // Also where chains say nothing, which is not a number.
        by_weights
            .filter(|weights| self.log_evidence.se.is_nan() || weights.se < self.log_evidence.se)
            .unwrap_or(self.log_evidence)
    }
}

impl LearnedModels {
    /// Whether weights say something.
    pub fn is_reliable(&self) -> bool {
        self.tail.is_reliable(self.draws)
    }
}

/// Fits q(m) to what a search found, with random numbers of its seed, and weighs its draws with the same evidences. `watch` hears how many
/// steps are done, and says whether to go on. None where it ended that, where settings want no draws, and where none has any weight.
pub fn learn_models<D: Device>(
    device: &D,
    problem: &Arc<dyn Problem>,
    found: &Searched,
    evidences: &mut dyn ModelEvidences,
    SearchSettings { learned: settings, seed, .. }: &SearchSettings,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<LearnedModels>, SearchError> {
    settings.check()?;
    if settings.draws == 0 {
        return Ok(None);
    }
    let seed = *seed;
    let learning = LearningSettings::new(settings.rate);
    let mut models =
        Autoregressive::new(device, Arc::clone(problem), &settings.network, &learning, settings.batch, seed)?;
    let weighed = found.weighed();
    let draw = Draw { seed, purpose: Purpose::Lesson, step: 0 };
    let words = (weighed.words(), weighed.shares());
    if models.follow_words(device, draw, words, (0.0, settings.steps), watch)? < settings.steps {
        return Ok(None);
    }
    let width = problem.space().arities().len();
    let (mut words, mut log_q) = (vec![0; settings.draws * width], vec![0.0; settings.draws]);
    models.sample(device, Draw { seed, purpose: Purpose::Evaluation, step: 0 }, &mut words, &mut log_q)?;
    let mut log_ratios = Vec::with_capacity(log_q.len());
    let found_evidences = evidences.log_evidences(&words, device.workers())?;
    for ((word, log_q), evidence) in words.chunks_exact(width).zip(&log_q).zip(found_evidences) {
        let log_ratio = problem.log_prior(word) + evidence.value - log_q;
        // What is impossible, and what rounding let through, have no weight.
        log_ratios.push(if log_ratio.is_finite() { log_ratio } else { f64::NEG_INFINITY });
    }
    let known: Vec<u16> = found.models.iter().flat_map(|model| model.word.iter().copied()).collect();
    let mut log_q_known = vec![0.0; found.models.len()];
    models.log_prob(device, &known, &mut log_q_known)?;
    let Some(weights) = weigh(&log_ratios) else { return Ok(None) };
    let features = features(problem.space(), &words);
    let stratum = [Stratum { log_weights: &weights.log_weights, log_beyond: weights.tail.log_beyond }];
    let weighed = (0..problem.space().feature_count() as u32)
        .map(|feature| ratio(&stratum, |_, draw| f64::from(u8::from(features[draw].contains(&feature)))));
    Ok(Some(LearnedModels {
        features: shares(&features, problem.space().feature_count()),
        weighed: weighed.collect::<Result<_, _>>().map_err(|_| SearchError::NoModel)?,
        log_q: log_q_known,
        elbo: mean(&log_ratios),
        log_evidence: log_total(&stratum).map_err(|_| SearchError::NoModel)?,
        tail: weights.tail,
        draws: settings.draws,
        words,
    }))
}

/// Smoothed weights of draws that all count alike.
struct Weights {
    log_weights: Vec<f64>,
    tail: Smoothed,
}

/// None where no draw has any weight.
fn weigh(log_ratios: &[f64]) -> Option<Weights> {
    let share = (log_ratios.len() as f64).ln();
    let mut log_weights: Vec<f64> = log_ratios.iter().map(|log_ratio| log_ratio - share).collect();
    let tail = smooth(&mut log_weights).ok()?;
    log_weights.iter().any(|weight| weight.is_finite()).then_some(Weights { log_weights, tail })
}

/// Features of words, one after the other.
fn features(space: &dyn ModelSpace, words: &[u16]) -> Vec<Vec<u32>> {
    let mut room = Vec::new();
    let of = |word: &[u16]| {
        let mut own = Vec::new();
        mark_features(space, word, &mut room, &mut own);
        own
    };
    words.chunks_exact(space.arities().len().max(1)).map(of).collect()
}

/// In how many of them each feature is.
fn shares(features: &[Vec<u32>], count: usize) -> Vec<f64> {
    let mut shares = vec![0.0; count];
    features.iter().flatten().for_each(|&feature| shares[feature as usize] += 1.0 / features.len() as f64);
    shares
}

/// Of numbers one of which may be −∞.
fn mean(values: &[f64]) -> Estimate {
    let count = values.len() as f64;
    let value = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|other| (other - value).powi(2)).sum();
    Estimate { value, se: (squares / (count - 1.0) / count).sqrt() }
}

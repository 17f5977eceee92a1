//! A surrogate of `−ℓ(m; φ)` and the distribution that follows from it (paper, section "Estimation via surrogate").
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
//! Three things the paper leaves open are settled here. *The noise* of the observations is estimated from their spread
//! within models, as a variance. *The drift of φ* is a random walk: each step adds variance to the belief, in proportion
//! to the square of how fast φ moves, so that old observations lose their weight, and nothing is lost once φ has come to
//! rest. *The level*, common to all models, says nothing about q and moves most of all while φ improves: every batch has a
//! level of its own, estimated with it and subtracted.

mod belief;

use serde::{Deserialize, Serialize};

use self::belief::{Belief, Observation};
use super::table::Table;
use super::{Draw, ModelDistribution, ModelUpdate, ModelsError, ScoredBatch};
use crate::engine::Engine;
use crate::optimise::SettingError;
use crate::space::{Catalogue, ModelSpace};
use crate::state::{State, StateError};

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
    /// β: how many standard deviations of optimism.
    pub beta: f64,
    /// Standard deviation of the belief before any observation, in nats.
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
    table: Table,
    log_prior: Vec<f64>,
    mean: Vec<f64>,
    belief: Belief,
    /// Running mean of the noise variance and its weight (paper's bias correction of a mean that starts at 0).
    noise: f64,
    noise_weight: f64,
    /// The share of the way to p(m) exp(μ + βσ) that was gone last time.
    share: f64,
    goal: Vec<f64>,
    /// Place of each model among the observations of a batch.
    seen: Vec<u32>,
}

impl std::fmt::Debug for Surrogate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surrogate").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The smallest noise variance: observations without any noise would leave nothing to divide by.
const LEAST_NOISE: f64 = 1e-10;

impl Surrogate {
    /// The most models a full covariance can be kept for.
    pub const MOST_FULL: usize = 4096;

    /// Before any observation q is the prior, `log_prior` giving log p of every word of the catalogue.
    pub fn new<E: Engine>(
        engine: &E,
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
            Covariance::Full if count > Self::MOST_FULL => {
                return Err(ModelsError::TooManyForFullCovariance { models: count, most: Self::MOST_FULL });
            }
            Covariance::Full => Belief::full(count, |a, b| {
                let distance = word(a).iter().zip(word(b)).filter(|(a, b)| a != b).count();
                variance * (-(distance as f64) / settings.length).exp()
            }),
        };
        let mut surrogate = Self {
            settings: settings.clone(),
            log_prior: (0..count).map(|index| log_prior(word(index))).collect(),
            mean: vec![0.0; count],
            belief,
            noise: 0.0,
            noise_weight: 0.0,
            share: 1.0,
            goal: Vec::with_capacity(count),
            seen: vec![u32::MAX; count],
            table: Table::new(catalogue),
        };
        surrogate.refresh(engine, settings.beta, f64::INFINITY);
        Ok(surrogate)
    }

    /// `q ∝ p(m) exp(μ + βσ)`, or as near to it as the information limit lets it come.
    fn refresh<E: Engine>(&mut self, engine: &E, beta: f64, limit: f64) -> f64 {
        let Self { log_prior, mean, belief, goal, .. } = self;
        let models = log_prior.iter().zip(&*mean).enumerate();
        goal.clear();
        goal.extend(models.map(|(m, (log_prior, mean))| log_prior + mean + beta * belief.sd(m)));
        let share = self.table.approach(engine, goal, limit, self.share);
        self.share = if share > 0.0 { share } else { 1.0 };
        share
    }

    /// Means of the kept observations `−log h` by model, and their pooled variance within models, if any model was seen
    /// more than once.
    fn aggregate(&mut self, batch: &ScoredBatch<'_>) -> (Vec<Observation>, Option<f64>) {
        let width = batch.words.len() / batch.log_h.len().max(1);
        let index = |row: usize| self.table.catalogue().index(&batch.words[row * width..][..width]);
        let rows = (0..batch.log_h.len()).filter(|&row| batch.kept[row]);
        let rows: Vec<(usize, f64)> = rows.filter_map(|row| Some((index(row)?, -batch.log_h[row]))).collect();
        let mut observations: Vec<Observation> = Vec::new();
        for &(model, value) in &rows {
            let place = &mut self.seen[model];
            if *place == u32::MAX {
                *place = observations.len() as u32;
                observations.push(Observation { model, value: 0.0, count: 0.0 });
            }
            let seen = &mut observations[*place as usize];
            seen.count += 1.0;
            seen.value += (value - seen.value) / seen.count;
        }
        let residuals = rows.iter().map(|&(model, value)| value - observations[self.seen[model] as usize].value);
        let squares: f64 = residuals.map(|residual| residual * residual).sum();
        let freedom = rows.len() - observations.len();
        observations.iter().for_each(|seen| self.seen[seen.model] = u32::MAX);
        (observations, (freedom > 0).then(|| squares / freedom as f64))
    }

    /// The noise variance after another batch. A batch that saw no model twice has only the spread around the belief, which
    /// includes the belief's own error: an upper bound, used until there is something better.
    fn learn_noise(&mut self, observations: &[Observation], within: Option<f64>) -> f64 {
        let spread = || {
            let level = observations.iter().map(|seen| seen.value - self.mean[seen.model]).sum::<f64>();
            let level = level / observations.len().max(1) as f64;
            let squares = observations.iter().map(|seen| (seen.value - self.mean[seen.model] - level).powi(2));
            squares.sum::<f64>() / (observations.len().max(2) - 1) as f64
        };
        if let Some(variance) = within.or_else(|| (self.noise_weight == 0.0).then(spread)) {
            let decay = self.settings.noise_decay;
            self.noise = decay * self.noise + (1.0 - decay) * variance;
            self.noise_weight = decay * self.noise_weight + (1.0 - decay);
        }
        (self.noise / self.noise_weight).max(LEAST_NOISE)
    }

    /// The level of a batch: the mean innovation, weighted by what each observation is worth.
    fn level(&self, observations: &[Observation], noise: f64) -> f64 {
        let (mut weights, mut sum) = (0.0, 0.0);
        for seen in observations {
            let weight = 1.0 / (self.belief.variance(seen.model) + noise / seen.count);
            weights += weight;
            sum += weight * (seen.value - self.mean[seen.model]);
        }
        sum / weights
    }
}

impl<E: Engine> ModelDistribution<E> for Surrogate {
    fn sample(&mut self, _: &E, draw: Draw, words: &mut [u16], log_q: &mut [f64]) {
        self.table.sample(draw, words, log_q);
    }

    fn log_prob(&mut self, _: &E, words: &[u16], log_q: &mut [f64]) {
        self.table.log_probs(words, log_q);
    }

    fn update(&mut self, engine: &E, batch: &ScoredBatch<'_>) -> ModelUpdate {
        let (mut observations, within) = self.aggregate(batch);
        if !observations.is_empty() {
            let drift = self.settings.inflation * batch.pace;
            self.belief.inflate(drift * drift);
            let noise = self.learn_noise(&observations, within);
            let level = self.level(&observations, noise);
            observations.iter_mut().for_each(|seen| seen.value -= level);
            self.belief.condition(engine, &observations, noise, &mut self.mean);
            let scale = self.refresh(engine, self.settings.beta, batch.information_limit);
            return ModelUpdate { gradient_norm: 0.0, scale };
        }
        ModelUpdate { gradient_norm: 0.0, scale: 0.0 }
    }

    fn state(&self, _: &E) -> State {
        let mut state = State::default();
        state.put("mean", &self.mean);
        self.belief.put(&mut state);
        state.put("noise", &[self.noise, self.noise_weight, self.share]);
        self.table.put(&mut state);
        state
    }

    fn restore(&mut self, engine: &E, state: &mut State) -> Result<(), StateError> {
        self.mean = state.take("mean", self.mean.len())?;
        self.belief.restore(state)?;
        let numbers = state.take::<f64>("noise", 3)?;
        (self.noise, self.noise_weight, self.share) = (numbers[0], numbers[1], numbers[2]);
        self.table.restore(engine, state)
    }

    /// Optimism has served its purpose: what remains is the belief's mean.
    fn settle(&mut self, engine: &E) {
        self.refresh(engine, 0.0, f64::INFINITY);
    }

    fn catalogue(&self) -> Option<&Catalogue> {
        Some(self.table.catalogue())
    }
}

//! What is believed about a number per model, and what batches of noisy observations teach about it.

use super::belief::{Belief, Observation};
use crate::state::{State, StateError};
use crate::workers::Workers;

/// The smallest noise variance: observations without any noise would leave nothing to divide by.
const MIN_NOISE: f64 = 1e-10;

/// Mean and belief, with the noise of the observations and their level learned on the way.
pub(in crate::models) struct Learner {
    mean: Vec<f64>,
    belief: Belief,
    /// Running mean of the noise variance and its weight (paper's bias correction of a mean that starts at 0).
    noise: f64,
    noise_weight: f64,
    noise_decay: f64,
    /// Place of each model among the observations of a batch.
    seen: Vec<u32>,
}

impl Learner {
    pub(in crate::models) fn new(mean: Vec<f64>, belief: Belief, noise_decay: f64) -> Self {
        Self { seen: vec![u32::MAX; mean.len()], mean, belief, noise: 0.0, noise_weight: 0.0, noise_decay }
    }

    /// `μ + βσ` of a model.
    pub(in crate::models) fn upper_confidence(&self, model: usize, beta: f64) -> f64 {
        self.mean[model] + beta * self.belief.sd(model)
    }

    /// Takes the numbers of all models as known.
    pub(in crate::models) fn know(&mut self, mean: Vec<f64>) {
        self.mean = mean;
        self.end_doubt();
    }

    /// Takes what is believed as known.
    pub(in crate::models) fn end_doubt(&mut self) {
        self.belief.end_doubt();
    }

    /// Learns from `(model, value)` of a batch, after a step of the random walk with standard deviation `drift`.
    pub(in crate::models) fn learn(&mut self, workers: &Workers, rows: &[(usize, f64)], drift: f64) {
        let (mut observations, within) = self.aggregate(rows);
        self.belief.inflate(drift * drift);
        let noise = self.learn_noise(&observations, within);
        let level = self.level(&observations, noise);
        observations.iter_mut().for_each(|seen| seen.value -= level);
        self.belief.condition(workers, &observations, noise, &mut self.mean);
    }

    /// Means of the observations by model, and their pooled variance within models, if any model was seen more than once.
    fn aggregate(&mut self, rows: &[(usize, f64)]) -> (Vec<Observation>, Option<f64>) {
        let mut observations: Vec<Observation> = Vec::with_capacity(rows.len());
        for &(model, value) in rows {
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
            let decay = self.noise_decay;
            self.noise = decay * self.noise + (1.0 - decay) * variance;
            self.noise_weight = decay * self.noise_weight + (1.0 - decay);
        }
        (self.noise / self.noise_weight).max(MIN_NOISE)
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

    pub(in crate::models) fn put(&self, state: &mut State) {
        state.put("mean", &self.mean);
        self.belief.put(state);
        state.put("noise", &[self.noise, self.noise_weight]);
    }

    pub(in crate::models) fn restore(&mut self, state: &mut State) -> Result<(), StateError> {
        self.mean = state.take("mean", self.mean.len())?;
        self.belief.restore(state)?;
        let numbers = state.take::<f64>("noise", 2)?;
        (self.noise, self.noise_weight) = (numbers[0], numbers[1]);
        Ok(())
    }
}

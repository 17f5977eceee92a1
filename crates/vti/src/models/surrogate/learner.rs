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

    /// Before anything was learned, widens the belief to how far models lie apart in `rows`, `(model, value)` of a first batch, if that
    /// is more than `variance`, which it was made with: no number that is chosen before suits a posterior whose models differ by
    /// hundreds of nats. What noise adds to the spread is taken off; where no model was drawn twice it is not known, and nothing is done.
    pub(super) fn widen(&mut self, rows: &[(usize, f64)], variance: f64) {
        if self.noise_weight > 0.0 {
            return;
        }
        let (observations, Some(noise)) = self.aggregate(rows) else { return };
        let count = observations.len() as f64;
        let mean = |value: &dyn Fn(&Observation) -> f64| observations.iter().map(value).sum::<f64>() / count;
        let level = mean(&|seen| seen.value);
        let between = mean(&|seen| (seen.value - level).powi(2) - noise / seen.count);
        if between > variance {
            self.belief.scale(between / variance);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    /// Values of 40 models that lie so far apart, each seen three times with noise 2.
    fn rows(apart: f64) -> Vec<(usize, f64)> {
        let mut stream = Stream::new(4, Purpose::Other(0), 0, 0);
        let values: Vec<f64> = (0..40).map(|_| 1000.0 + apart * stream.normal()).collect();
        (0..120).map(|row| (row % 40, values[row % 40] + 2.0 * stream.normal())).collect()
    }

    #[test]
    fn a_belief_is_widened_to_how_far_models_lie_apart_and_never_narrowed() {
        for (apart, expected) in [(30.0, 30.0), (0.1, 3.0)] {
            let mut learner = Learner::new(vec![0.0; 50], Belief::diagonal(50, 9.0), 0.9);
            learner.widen(&rows(apart), 9.0);
            // A standard deviation from 40 numbers is within a third of the true one.
            let (seen, unseen) = (learner.upper_confidence(0, 1.0), learner.upper_confidence(49, 1.0));
            assert!(seen == unseen && (seen / expected - 1.0).abs() < 1.0 / 3.0, "{apart}: {seen}");
            learner.learn(&Workers::SINGLE, &rows(apart), 0.0);
            let after = learner.upper_confidence(49, 1.0);
            learner.widen(&rows(1000.0), 9.0);
            assert_eq!(learner.upper_confidence(49, 1.0), after, "only before anything was learned");
        }
    }

    #[test]
    fn noise_alone_widens_nothing_and_without_repetitions_nothing_is_known_of_it() {
        let once: Vec<(usize, f64)> = rows(30.0)[..40].to_vec();
        let mut learner = Learner::new(vec![0.0; 50], Belief::diagonal(50, 9.0), 0.9);
        learner.widen(&once, 9.0);
        assert_eq!(learner.upper_confidence(3, 1.0), 3.0);
        let noise: Vec<(usize, f64)> =
            rows(0.0).iter().map(|(model, value)| (*model, 1000.0 + 5.0 * (value - 1000.0))).collect();
        learner.widen(&noise, 9.0);
        assert!(learner.upper_confidence(3, 1.0) < 5.0, "{}", learner.upper_confidence(3, 1.0));
    }
}

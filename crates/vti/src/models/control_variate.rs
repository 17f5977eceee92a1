//! Control variates of the score-function gradient (paper, appendix E.1, "Control variate for score function estimator").

use serde::{Deserialize, Serialize};

use super::ScoredBatch;
use crate::optimise::SettingError;
use crate::state::{State, StateError};

/// What is subtracted from the losses before they multiply `∇ log q(m)`.
///
/// Both leave the gradient's mean as it is (the running mean up to its dependence on the batch itself) and reduce its
/// variance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ControlVariateKind {
    /// Nothing: what the others are compared with.
    None {},
    /// The paper's running mean of the loss, corrected for having started at 0.
    RunningMean {
        /// Decay β of the mean.
        decay: f64,
    },
    /// The mean loss of the other rows of the batch.
    LeaveOneOut {},
}

impl Default for ControlVariateKind {
    fn default() -> Self {
        Self::LeaveOneOut {}
    }
}

/// A control variate and its state.
///
/// ```
/// use vti::models::{ControlVariateKind, ControlVariate, ScoredBatch};
/// let (log_h, zeros) = ([1.0, 3.0], [0.0; 2]);
/// let batch = ScoredBatch {
///     words: &[0, 1],
///     log_q: &zeros,
///     log_prior: &zeros,
///     log_h: &log_h,
///     kept: &[true; 2],
///     blocks: None,
///     pace: 1.0,
///     information_limit: 1.0,
/// };
/// let mut control = ControlVariate::new(&ControlVariateKind::LeaveOneOut {})?;
/// assert_eq!(control.weights(&batch), [-1.0, 1.0]);
/// # Ok::<(), vti::optimise::SettingError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ControlVariate {
    settings: ControlVariateKind,
    /// μ̃, the biased running mean.
    mean: f64,
    /// βᵗ.
    power: f64,
    weights: Vec<f64>,
}

impl ControlVariate {
    /// One that has seen nothing yet.
    pub fn new(settings: &ControlVariateKind) -> Result<Self, SettingError> {
        if let ControlVariateKind::RunningMean { decay } = *settings {
            SettingError::check("decay", decay, (0.0..1.0).contains(&decay), "at least 0 and below 1")?;
        }
        Ok(Self { settings: settings.clone(), mean: 0.0, power: 1.0, weights: Vec::new() })
    }

    /// For each row, what multiplies `∇ log q(m)` in the gradient of the mean loss; 0 for rows that are not kept.
    pub fn weights(&mut self, batch: &ScoredBatch<'_>) -> &[f64] {
        let (count, sum) = batch.losses().flatten().fold((0.0, 0.0), |(count, sum), loss| (count + 1.0, sum + loss));
        let mean = if count > 0.0 { sum / count } else { 0.0 };
        let (center, share) = match self.settings {
            ControlVariateKind::None {} => (0.0, 1.0 / count),
            ControlVariateKind::RunningMean { decay } => {
                if count > 0.0 {
                    self.mean = decay * self.mean + (1.0 - decay) * mean;
                    self.power *= decay;
                }
                (self.mean / (1.0 - self.power), 1.0 / count)
            }
            // (g − mean of the others)/n = (g − mean of all)/(n − 1).
            ControlVariateKind::LeaveOneOut {} => (mean, if count > 1.0 { 1.0 / (count - 1.0) } else { 0.0 }),
        };
        self.weights.clear();
        self.weights.extend(batch.losses().map(|loss| loss.map_or(0.0, |loss| (loss - center) * share)));
        &self.weights
    }

    pub(super) fn state(&self) -> State {
        let mut state = State::default();
        state.put("mean", &[self.mean]);
        state.put("power", &[self.power]);
        state
    }

    pub(super) fn restore(&mut self, state: &mut State) -> Result<(), StateError> {
        self.mean = state.take_number("mean")?;
        self.power = state.take_number("power")?;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn batch<'a>(log_h: &'a [f64], zeros: &'a [f64], kept: &'a [bool]) -> ScoredBatch<'a> {
        let (words, pace, information_limit) = (&[][..], 1.0, 1.0);
        ScoredBatch { words, log_q: zeros, log_prior: zeros, log_h, kept, blocks: None, pace, information_limit }
    }

    #[test]
    fn leave_one_out_compares_each_row_with_the_others() {
        let mut control = ControlVariate::new(&ControlVariateKind::LeaveOneOut {}).unwrap();
        let weights = control.weights(&batch(&[1.0, 2.0, f64::NAN, 6.0], &[0.0; 4], &[true, true, false, true]));
        let slow = |own: f64, others: f64| (own - others) / 3.0;
        let expected = [slow(1.0, 4.0), slow(2.0, 3.5), 0.0, slow(6.0, 1.5)];
        assert!(weights.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{weights:?}");
        assert_eq!(control.weights(&batch(&[1.0], &[0.0], &[true])), [0.0]);
    }

    #[test]
    fn the_running_mean_is_corrected_for_its_start() {
        let mut control = ControlVariate::new(&ControlVariateKind::RunningMean { decay: 0.9 }).unwrap();
        let (zeros, kept) = ([0.0; 2], [true; 2]);
        // A constant loss is its own mean from the first step on.
        for _ in 0..3 {
            let weights = control.weights(&batch(&[5.0, 5.0], &zeros, &kept));
            assert!(weights.iter().all(|weight| weight.abs() < 1e-12));
        }
        let mut control = ControlVariate::new(&ControlVariateKind::RunningMean { decay: 0.9 }).unwrap();
        control.weights(&batch(&[1.0, 3.0], &zeros, &kept));
        let mean = (0.9 * 0.1 * 2.0 + 0.1 * 8.0) / (1.0 - 0.81);
        let weights = control.weights(&batch(&[8.0, 8.0], &zeros, &kept));
        assert!((weights[0] - (8.0 - mean) / 2.0).abs() < 1e-12);
    }
}

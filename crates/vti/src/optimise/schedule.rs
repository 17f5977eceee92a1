//! How a learning rate changes over a run.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use super::SettingError;

/// A learning rate over time: its peak, and what becomes of it.
///
/// ```
/// use vti::optimise::Schedule;
/// let schedule = Schedule::WarmupDecay { rate: 1e-3, warmup: 0.1, hold: 0.5 };
/// assert_eq!(schedule.rate(0, 100), 1e-4);
/// assert_eq!(schedule.rate(30, 100), 1e-3);
/// assert_eq!(schedule.rate(75, 100), 0.5e-3);
/// assert_eq!(schedule.rate(100, 100), 0.0);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// Always the same.
    Constant {
        /// The rate.
        rate: f64,
    },
    /// From the peak down to 0 along half a cosine, again and again (Loshchilov and Hutter 2017).
    Cosine {
        /// The first peak.
        rate: f64,
        /// Steps from one peak to the next.
        period: u64,
        /// Each peak is this share of the one before.
        decay: f64,
    },
    /// Up from 0, then constant, then down to 0 at the last step, all in straight lines.
    WarmupDecay {
        /// The peak.
        rate: f64,
        /// Share of the steps that go up.
        warmup: f64,
        /// Share of the steps after which the rate goes down; not below `warmup`.
        hold: f64,
    },
}

impl Schedule {
    /// The rate of step `step` of `steps`.
    pub fn rate(&self, step: u64, steps: u64) -> f64 {
        match *self {
            Self::Constant { rate } => rate,
            Self::Cosine { rate, period, decay } => {
                let (round, place) = (step / period.max(1), step % period.max(1));
                let peak = rate * decay.powf(round as f64);
                0.5 * peak * (1.0 + (PI * place as f64 / period.max(1) as f64).cos())
            }
            Self::WarmupDecay { rate, warmup, hold } => {
                let steps = steps as f64;
                let (rising, falling) = ((warmup * steps).floor(), (hold.max(warmup) * steps).ceil());
                let step = step as f64;
                if step < rising {
                    rate * (step + 1.0) / rising
                } else if step < falling {
                    rate
                } else {
                    rate * ((steps - step) / (steps - falling).max(1.0)).max(0.0)
                }
            }
        }
    }

    /// The largest rate there is.
    pub fn peak(&self) -> f64 {
        match *self {
            Self::Constant { rate } | Self::Cosine { rate, .. } | Self::WarmupDecay { rate, .. } => rate,
        }
    }

    /// Refuses rates, shares and periods that make no sense.
    pub fn check(&self) -> Result<(), SettingError> {
        let share = |what, value: f64| SettingError::check(what, value, (0.0..=1.0).contains(&value), "from 0 to 1");
        let rate = self.peak();
        SettingError::check("rate", rate, rate > 0.0 && rate.is_finite(), "positive")?;
        match *self {
            Self::Constant { .. } => Ok(()),
            Self::Cosine { period, decay, .. } => {
                SettingError::check("period", period as f64, period > 0, "at least 1")?;
                share("decay", decay)
            }
            Self::WarmupDecay { warmup, hold, .. } => {
                share("warmup", warmup)?;
                share("hold", hold)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosines_restart_lower_and_lower() {
        let schedule = Schedule::Cosine { rate: 2.0, period: 10, decay: 0.5 };
        assert_eq!((schedule.rate(0, 0), schedule.rate(10, 0), schedule.rate(20, 0)), (2.0, 1.0, 0.5));
        assert!((schedule.rate(5, 0) - 1.0).abs() < 1e-12);
        assert!((0..9).all(|step| schedule.rate(step + 1, 0) < schedule.rate(step, 0)));
    }

    #[test]
    fn decays_end_at_zero_and_never_exceed_the_peak() {
        for (warmup, hold) in [(0.0, 0.0), (0.0, 1.0), (0.3, 0.1), (1.0, 1.0), (0.05, 0.5)] {
            let schedule = Schedule::WarmupDecay { rate: 3.0, warmup, hold };
            for steps in [1, 2, 7, 1000] {
                let rates: Vec<f64> = (0..steps).map(|step| schedule.rate(step, steps)).collect();
                assert!(rates.iter().all(|&rate| rate > 0.0 && rate <= 3.0), "{warmup} {hold} {steps}: {rates:?}");
            }
        }
    }

    #[test]
    fn impossible_schedules_are_refused() {
        let refused = |schedule: Schedule| schedule.check().err().map(|error| error.what);
        assert_eq!(refused(Schedule::Constant { rate: f64::NAN }), Some("rate"));
        assert_eq!(refused(Schedule::Cosine { rate: 1.0, period: 0, decay: 1.0 }), Some("period"));
        assert_eq!(refused(Schedule::WarmupDecay { rate: 1.0, warmup: -0.1, hold: 0.5 }), Some("warmup"));
        assert_eq!(refused(Schedule::WarmupDecay { rate: 1.0, warmup: 0.1, hold: 1.5 }), Some("hold"));
        assert_eq!(refused(Schedule::Constant { rate: 0.1 }), None);
    }
}

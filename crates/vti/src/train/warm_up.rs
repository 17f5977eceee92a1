//! The warm-up of φ: when models may be judged.
//!
//! While φ is far from settled, the bound of a model says how fast its parameters are learned, not how probable it is. A q(m)
//! that follows it gives models up that it will never train again. So q(m) stays as it is until the bound under it has stopped
//! rising fast, or until there is no more time to wait; a run that could not wait long enough says so.

use super::plan::Position;
use super::plateau::{Plateau, Window};
use super::settings::{InformationSettings, TrainSettings};
use crate::state::{State, StateError};

/// Nats per window that are fast, unless two standard errors are more.
const FAST_GAIN: f64 = 0.1;

/// Windows of a run.
const WINDOWS_PER_RUN: u64 = 50;

/// The fewest steps of a window.
const MIN_WINDOW: u64 = 10;

/// The share of a run after which models begin to be judged at the latest, by default.
const LATEST: f64 = 0.5;

/// The warm-up of φ, during which q(m) stays as it is.
#[derive(Clone, Debug, Default)]
pub(super) struct WarmUp {
    plateau: Plateau,
    last: Option<Window>,
    /// The step at which models began to be judged, and how far of its way the run had come by then: steps are planned anew, the
    /// share of the way is not.
    ended: Option<u64>,
    ended_at: f64,
    /// What the bound still gained in the last window, if that was too much.
    unsettled: Option<f64>,
}

impl WarmUp {
    /// Takes the bound of another step, which took the run to a position.
    pub(super) fn observe(&mut self, at: Position, step: u64, settings: &TrainSettings, elbo: f64) {
        if self.ended.is_some() {
            return;
        }
        let InformationSettings::Share { warm_up, max_warm_up, .. } = settings.information else {
            self.ended = Some(0);
            return;
        };
        let steps = at.steps;
        // The bounds of a tempered flow say nothing about models.
        let warm_up = if warm_up > 0.0 { warm_up.max(settings.temper.share) } else { warm_up };
        let window = self.plateau.observe(elbo, (steps / WINDOWS_PER_RUN).max(MIN_WINDOW));
        self.last = window.or(self.last);
        let passed = |share: f64| at.step as f64 >= share * steps as f64;
        let is_fast = |window: &Window| window.gain.is_nan() || window.gain > FAST_GAIN.max(2.0 * window.error);
        let fast = self.last.filter(is_fast).map(|window| window.gain);
        let slow = self.last.is_some() && fast.is_none();
        if passed(warm_up) && (slow || warm_up == 0.0) || passed(max_warm_up.max(warm_up)) {
            (self.ended, self.ended_at) = (Some(step), at.share());
            // A run so short that it has no two windows knows nothing.
            self.unsettled = fast;
        }
    }

    /// Models need not be judged: their probabilities come from elsewhere.
    pub(super) fn skip(&mut self) {
        (self.ended, self.unsettled) = (Some(0), None);
    }

    /// How much the entropy of q(m) may change in a step, for a space of `exp(log_count)` models.
    pub(super) fn limit(&self, step: u64, steps: u64, log_count: f64, settings: &InformationSettings) -> f64 {
        settings.limit(step, steps, log_count, self.ended.is_none())
    }

    /// Whether q(m) has been free to settle long enough for its bound to mean something.
    pub(super) fn has_settled(&self, at: Position, settings: &InformationSettings) -> bool {
        let fall = if let InformationSettings::Share { fall, .. } = settings { *fall } else { 0.0 };
        self.ended.is_some() && at.share() >= self.ended_at + fall
    }

    /// What went wrong, if it did.
    pub(super) fn warning(&self) -> Option<String> {
        match (self.ended, self.unsettled) {
            (None, _) => Some("training ended before models were judged: their probabilities say nothing yet".into()),
            (Some(step), Some(gain)) => Some(format!(
                "when models began to be judged, at step {step}, the bound was still rising by {gain:.1} nats in a fiftieth \
                 of the run, so good models may have been given up; train longer, or bring the parameters to a scale of \
                 about 1"
            )),
            _ => None,
        }
    }

    /// Under the names that files of earlier versions have.
    pub(super) fn state(&self) -> State {
        let mut state = self.plateau.state();
        let ended = self.ended.map_or(f64::NAN, |step| step as f64);
        let last = self.last.map_or([f64::NAN; 2], |window| [window.gain, window.error]);
        state.put("hold", &[ended, self.unsettled.unwrap_or(f64::NEG_INFINITY), last[0], last[1]]);
        state.put("hold_at", &[self.ended_at]);
        state
    }

    pub(super) fn restore(&mut self, state: &mut State) -> Result<(), StateError> {
        self.plateau.restore(state)?;
        let numbers = state.take::<f64>("hold", 4)?;
        self.ended = (!numbers[0].is_nan()).then_some(numbers[0] as u64);
        // Files of earlier versions do not say; so late models began to be judged at most.
        self.ended_at = state.take_number("hold_at").unwrap_or(LATEST);
        self.unsettled = (numbers[1] != f64::NEG_INFINITY).then_some(numbers[1]);
        let window = Window { gain: numbers[2], error: numbers[3] };
        self.last = (!window.error.is_nan()).then_some(window);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::TemperSettings;
    use super::*;

    /// At which step of a thousand models are judged, and whether there is a warning.
    fn judged(temper: TemperSettings, bound: impl Fn(f64) -> f64) -> (Option<u64>, bool) {
        let information = InformationSettings::Share { warm_up: 0.2, max_warm_up: 0.5, fall: 0.2 };
        let settings = TrainSettings { steps: 1000, information, temper, ..TrainSettings::default() };
        let mut warm_up = WarmUp::default();
        let at = |step: u64| Position { step, steps: 1000 };
        (1..=1000).for_each(|step| warm_up.observe(at(step), step, &settings, bound(step as f64)));
        (warm_up.ended, warm_up.warning().is_some())
    }

    #[test]
    fn models_are_judged_once_the_bound_rises_slowly() {
        assert_eq!(judged(TemperSettings::NONE, |_| -3.0), (Some(200), false));
        // 100 nats away, halved every 40 steps: less than a tenth of a nat in 20 steps from step 350 on or so.
        let (step, warned) = judged(TemperSettings::NONE, |step| -100.0 * 0.5f64.powf(step / 40.0));
        assert!(step.is_some_and(|step| (300..400).contains(&step)) && !warned, "{step:?}");
        assert_eq!(judged(TemperSettings::NONE, |step| 0.1 * step), (Some(500), true));
        assert_eq!(judged(TemperSettings::NONE, |_| f64::NAN), (Some(500), true));
        // Not before the target is what it is.
        assert_eq!(judged(TemperSettings { start: 0.2, share: 0.3 }, |_| -3.0), (Some(300), false));
    }

    /// A run whose steps were planned anew has settled once it has gone the share of its way, however many steps that took.
    #[test]
    fn positions_count_and_not_steps() {
        let information = InformationSettings::Share { warm_up: 0.2, max_warm_up: 0.5, fall: 0.2 };
        let settings = TrainSettings {
            information: information.clone(),
            temper: TemperSettings::NONE,
            ..TrainSettings::default()
        };
        let mut warm_up = WarmUp::default();
        // Planned for a million steps, of which half are the warm-up; then for as few as fit.
        (1..=600).for_each(|step| {
            let at = Position { step: 1000 * step, steps: 1_000_000 };
            warm_up.observe(at, step, &settings, -3.0);
        });
        assert_eq!(warm_up.ended, Some(500));
        let at = |step: u64| Position { step, steps: 2000 };
        let found = [1000, 1300, 1400].map(|step| warm_up.has_settled(at(step), &information));
        assert_eq!(found, [false, false, true]);
    }
}

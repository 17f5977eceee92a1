//! Noticing that nothing improves any more.

use super::{PlateauSettings, Stop};
use crate::state::{State, StateError};

/// Mean and spread of the bound over the current window and the one before.
#[derive(Clone, Debug, Default)]
pub(super) struct Plateau {
    count: f64,
    mean: f64,
    squares: f64,
    /// Mean and squared standard error of the last whole window.
    before: Option<(f64, f64)>,
}

/// What a window gained over the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) gain: f64,
    /// Its standard error.
    pub(super) error: f64,
}

impl Plateau {
    /// Takes another step's bound; says what was gained when a window of so many steps ends.
    pub(super) fn observe(&mut self, elbo: f64, window: u64) -> Option<Window> {
        self.count += 1.0;
        let off = elbo - self.mean;
        self.mean += off / self.count;
        self.squares += off * (elbo - self.mean);
        if self.count < window as f64 {
            return None;
        }
        let now = (self.mean, self.squares / (self.count * (self.count - 1.0)));
        let before = self.before.replace(now);
        (self.count, self.mean, self.squares) = (0.0, 0.0, 0.0);
        let before = before?;
        Some(Window { gain: now.0 - before.0, error: (now.1 + before.1).sqrt() })
    }

    /// Whether a window ended without progress.
    pub(super) fn stops(&mut self, elbo: f64, settings: &PlateauSettings) -> Option<Stop> {
        let Window { gain, error } = self.observe(elbo, settings.window)?;
        (gain < settings.tolerance.max(2.0 * error)).then_some(Stop::Plateau { gain, error, window: settings.window })
    }

    pub(super) fn state(&self) -> State {
        let mut state = State::default();
        let (mean, error) = self.before.unwrap_or((f64::NAN, f64::NAN));
        state.put("windows", &[self.count, self.mean, self.squares, mean, error]);
        state
    }

    pub(super) fn restore(&mut self, state: &mut State) -> Result<(), StateError> {
        let numbers = state.take::<f64>("windows", 5)?;
        (self.count, self.mean, self.squares) = (numbers[0], numbers[1], numbers[2]);
        self.before = (!numbers[3].is_nan()).then_some((numbers[3], numbers[4]));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    /// At which step a run with this mean bound and unit noise stops.
    fn stops(mean: impl Fn(u64) -> f64, noise: f64) -> Option<u64> {
        let settings = PlateauSettings { window: 100, tolerance: 0.01 };
        let (mut plateau, mut stream) = (Plateau::default(), Stream::new(1, Purpose::Other(0), 0, 0));
        (1..=5000).find(|&step| plateau.stops(mean(step) + noise * stream.normal(), &settings).is_some())
    }

    #[test]
    fn stops_when_progress_ends_and_not_before() {
        assert_eq!(stops(|step| step as f64 * 0.01, 0.1), None);
        let end = stops(|step| -(100.0 / step as f64), 0.01);
        assert!(end.is_some_and(|end| (1000..3000).contains(&end)), "{end:?}");
        assert_eq!(stops(|_| 3.0, 0.0), Some(200));
    }
}

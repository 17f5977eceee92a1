//! AdamW (Loshchilov and Hutter 2019) with clipping of the gradient's global norm.

use serde::{Deserialize, Serialize};

use crate::engine::{AdamWStep, Engine};
use crate::state::{State, StateError};

/// Settings of [`AdamW`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdamWSettings {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Keeps the denominator away from 0.
    pub epsilon: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Gradients with a larger norm are scaled down to it; none for no limit.
    pub clip_norm: Option<f64>,
}

impl Default for AdamWSettings {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 1e-7, clip_norm: Some(50.0) }
    }
}

/// A setting out of its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{what} is {value}, it must be {range}")]
pub struct SettingError {
    /// Which setting.
    pub what: &'static str,
    /// Its value.
    pub value: f64,
    /// What it may be.
    pub range: &'static str,
}

impl SettingError {
    /// An error unless the value is `fine`; `range` says what it may be.
    pub fn check(what: &'static str, value: f64, fine: bool, range: &'static str) -> Result<(), Self> {
        if fine { Ok(()) } else { Err(Self { what, value, range }) }
    }

    pub(super) fn check_clip_norm(clip_norm: Option<f64>) -> Result<(), Self> {
        Self::check("clip_norm", clip_norm.unwrap_or(1.0), clip_norm.is_none_or(|norm| norm > 0.0), "positive")
    }
}

impl AdamWSettings {
    fn check(&self) -> Result<(), SettingError> {
        let Self { beta1, beta2, epsilon, weight_decay, clip_norm } = *self;
        let share =
            |what, value: f64| SettingError::check(what, value, (0.0..1.0).contains(&value), "at least 0 and below 1");
        share("beta1", beta1)?;
        share("beta2", beta2)?;
        // Single precision must be able to hold it: it is all that keeps 0/0 out of parameters without a gradient.
        SettingError::check("epsilon", epsilon, (1e-30..1.0).contains(&epsilon), "at least 1e-30 and below 1")?;
        share("weight_decay", weight_decay)?;
        SettingError::check_clip_norm(clip_norm)
    }
}

/// The optimiser's state: two moments per parameter and the number of updates so far.
///
/// ```
/// use vti::engine::{CpuEngine, Engine};
/// use vti::optimise::{AdamW, AdamWSettings};
///
/// let engine = CpuEngine::<f64>::single();
/// let (mut parameters, mut gradient) = (engine.buffer(1), engine.buffer(1));
/// let mut optimiser = AdamW::new(&engine, 1, AdamWSettings::default())?;
/// engine.write(&[4.0], &mut gradient);
/// let norm = optimiser.update(&engine, 0.1, &gradient, &mut parameters);
/// assert_eq!(norm, 4.0);
/// # Ok::<(), vti::optimise::SettingError>(())
/// ```
pub struct AdamW<E: Engine> {
    settings: AdamWSettings,
    first: E::Buffer,
    second: E::Buffer,
    updates: u32,
}

impl<E: Engine> std::fmt::Debug for AdamW<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdamW").field("settings", &self.settings).field("updates", &self.updates).finish()
    }
}

impl<E: Engine> AdamW<E> {
    /// For `parameters` parameters.
    pub fn new(engine: &E, parameters: usize, settings: AdamWSettings) -> Result<Self, SettingError> {
        settings.check()?;
        Ok(Self { settings, first: engine.buffer(parameters), second: engine.buffer(parameters), updates: 0 })
    }

    /// Moves `parameters` against `gradient` and returns the gradient's norm before clipping. A gradient that is not
    /// finite changes nothing: the caller sees it in the norm.
    ///
    /// # Panics
    ///
    /// If `gradient` or `parameters` are not as long as [`AdamW::new`] was told.
    pub fn update(&mut self, engine: &E, rate: f64, gradient: &E::Buffer, parameters: &mut E::Buffer) -> f64 {
        let AdamWSettings { beta1, beta2, epsilon, weight_decay, clip_norm } = self.settings;
        let correction = |beta: f64| 1.0 - beta.powi(i32::try_from(self.updates + 1).unwrap_or(i32::MAX));
        let step = AdamWStep {
            rate,
            beta1,
            beta2,
            epsilon,
            weight_decay,
            clip_norm: clip_norm.unwrap_or(f64::INFINITY),
            bias1: correction(beta1),
            bias2: correction(beta2),
        };
        let norm = engine.adamw(&step, gradient, (&mut self.first, &mut self.second), parameters);
        self.updates += u32::from(norm.is_finite());
        norm
    }

    pub(super) fn state(&self, engine: &E) -> State {
        let mut state = State::default();
        state.put_buffer("first", engine, &self.first);
        state.put_buffer("second", engine, &self.second);
        state.put("updates", &[f64::from(self.updates)]);
        state
    }

    pub(super) fn restore(&mut self, engine: &E, state: &mut State) -> Result<(), StateError> {
        state.take_buffer("first", engine, &mut self.first)?;
        state.take_buffer("second", engine, &mut self.second)?;
        self.updates = state.take_number("updates")? as u32;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::engine::CpuEngine;

    /// The update written out for one number.
    fn slow(gradients: &[f64], start: f64, rate: f64, settings: &AdamWSettings) -> f64 {
        let (mut m, mut v, mut p) = (0.0, 0.0, start);
        for (t, &g) in (1..).zip(gradients) {
            m = settings.beta1 * m + (1.0 - settings.beta1) * g;
            v = settings.beta2 * v + (1.0 - settings.beta2) * g * g;
            let (m_hat, v_hat) = (m / (1.0 - settings.beta1.powi(t)), v / (1.0 - settings.beta2.powi(t)));
            p -= rate * (m_hat / (v_hat.sqrt() + settings.epsilon) + settings.weight_decay * p);
        }
        p
    }

    #[test]
    fn updates_follow_the_definition() {
        let settings = AdamWSettings { weight_decay: 0.1, clip_norm: None, ..AdamWSettings::default() };
        let engine = CpuEngine::<f64>::single();
        let start: Vec<f64> = (0..37).map(|i| f64::from(i) * 0.1 - 1.0).collect();
        let mut parameters = engine.buffer(start.len());
        engine.write(&start, &mut parameters);
        let mut gradient = engine.buffer(start.len());
        let mut optimiser = AdamW::new(&engine, start.len(), settings.clone()).unwrap();
        let gradients = |i: usize| [0.3, -1.0, 2.0].map(|g| g + i as f64 * 0.01);
        for t in 0..3 {
            let now: Vec<f64> = (0..start.len()).map(|i| gradients(i)[t]).collect();
            engine.write(&now, &mut gradient);
            optimiser.update(&engine, 0.05, &gradient, &mut parameters);
        }
        let mut found = vec![0.0; start.len()];
        engine.read(&parameters, &mut found);
        for (i, &found) in found.iter().enumerate() {
            assert!((found - slow(&gradients(i), start[i], 0.05, &settings)).abs() < 1e-14);
        }
    }

    #[test]
    fn clipping_bounds_the_norm_and_bad_gradients_change_nothing() {
        let engine = CpuEngine::<f64>::single();
        let (mut parameters, mut gradient) = (engine.buffer(2), engine.buffer(2));
        let settings = AdamWSettings { clip_norm: Some(1.0), ..AdamWSettings::default() };
        let mut clipped = AdamW::new(&engine, 2, settings).unwrap();
        engine.write(&[30.0, 40.0], &mut gradient);
        assert_eq!(clipped.update(&engine, 0.1, &gradient, &mut parameters), 50.0);
        let mut first = [0.0; 2];
        engine.read(&clipped.first, &mut first);
        assert!((first[0] - 0.06).abs() < 1e-12 && (first[1] - 0.08).abs() < 1e-12);

        let mut before = [0.0; 2];
        engine.read(&parameters, &mut before);
        engine.write(&[f64::NAN, 1.0], &mut gradient);
        assert!(clipped.update(&engine, 0.1, &gradient, &mut parameters).is_nan());
        let mut after = [0.0; 2];
        engine.read(&parameters, &mut after);
        assert_eq!(before, after);
    }

    #[test]
    fn impossible_settings_are_refused() {
        let engine = CpuEngine::<f32>::single();
        let refused = |settings: AdamWSettings| AdamW::new(&engine, 1, settings).unwrap_err().what;
        assert_eq!(refused(AdamWSettings { beta1: 1.0, ..AdamWSettings::default() }), "beta1");
        assert_eq!(refused(AdamWSettings { beta2: f64::NAN, ..AdamWSettings::default() }), "beta2");
        assert_eq!(refused(AdamWSettings { epsilon: 0.0, ..AdamWSettings::default() }), "epsilon");
        assert_eq!(refused(AdamWSettings { weight_decay: -1.0, ..AdamWSettings::default() }), "weight_decay");
        assert_eq!(refused(AdamWSettings { clip_norm: Some(0.0), ..AdamWSettings::default() }), "clip_norm");
    }
}

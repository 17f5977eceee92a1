//! AdamW (Loshchilov and Hutter 2019) with clipping of the gradient's global norm.

use serde::{Deserialize, Serialize};

use super::{OptimiserError, SettingError};
use crate::device::{AdamWStep, Device, DeviceError};
use crate::state::{State, StateError};

/// Settings of AdamW.
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

/// Two moments for each parameter.
pub(super) struct AdamW<D: Device> {
    settings: AdamWSettings,
    first: D::Buffer,
    second: D::Buffer,
}

impl<D: Device> std::fmt::Debug for AdamW<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdamW").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<D: Device> AdamW<D> {
    /// For `parameters` parameters.
    pub(super) fn new(device: &D, parameters: usize, settings: AdamWSettings) -> Result<Self, OptimiserError> {
        settings.check()?;
        Ok(Self { settings, first: device.buffer(parameters)?, second: device.buffer(parameters)? })
    }

    /// Moves `parameters` against `gradient`; the record counts the updates.
    pub(super) fn update(
        &mut self,
        device: &D,
        rate: f64,
        gradient: &D::Buffer,
        parameters: &mut D::Buffer,
        record: &mut D::Record,
    ) -> Result<(), DeviceError> {
        let AdamWSettings { beta1, beta2, epsilon, weight_decay, clip_norm } = self.settings;
        let clip_norm = clip_norm.unwrap_or(f64::INFINITY);
        let step = AdamWStep { rate, beta1, beta2, epsilon, weight_decay, clip_norm };
        device.adamw(&step, gradient, (&mut self.first, &mut self.second), parameters, record)
    }

    pub(super) fn put(&self, device: &D, state: &mut State) -> Result<(), DeviceError> {
        state.put_buffer("first", device, &self.first)?;
        state.put_buffer("second", device, &self.second)
    }

    pub(super) fn restore(&mut self, device: &D, state: &mut State) -> Result<(), StateError> {
        state.take_buffer("first", device, &mut self.first)?;
        state.take_buffer("second", device, &mut self.second)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::device::Cpu;

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
        let device = Cpu::<f64>::single();
        let start: Vec<f64> = (0..37).map(|i| f64::from(i) * 0.1 - 1.0).collect();
        let mut parameters = device.buffer(start.len()).unwrap();
        device.write(&start, &mut parameters).unwrap();
        let mut gradient = device.buffer(start.len()).unwrap();
        let mut record = device.record().unwrap();
        let mut optimiser = AdamW::new(&device, start.len(), settings.clone()).unwrap();
        let gradients = |i: usize| [0.3, -1.0, 2.0].map(|g| g + i as f64 * 0.01);
        for t in 0..3 {
            let now: Vec<f64> = (0..start.len()).map(|i| gradients(i)[t]).collect();
            device.write(&now, &mut gradient).unwrap();
            optimiser.update(&device, 0.05, &gradient, &mut parameters, &mut record).unwrap();
        }
        let mut found = vec![0.0; start.len()];
        device.read(&parameters, &mut found).unwrap();
        for (i, &found) in found.iter().enumerate() {
            assert!((found - slow(&gradients(i), start[i], 0.05, &settings)).abs() < 1e-14);
        }
    }

    #[test]
    fn clipping_bounds_the_norm_and_bad_gradients_change_nothing() {
        let device = Cpu::<f64>::single();
        let (mut parameters, mut gradient) = (device.buffer(2).unwrap(), device.buffer(2).unwrap());
        let settings = AdamWSettings { clip_norm: Some(1.0), ..AdamWSettings::default() };
        let mut clipped = AdamW::new(&device, 2, settings).unwrap();
        let mut record = device.record().unwrap();
        device.write(&[30.0, 40.0], &mut gradient).unwrap();
        clipped.update(&device, 0.1, &gradient, &mut parameters, &mut record).unwrap();
        assert_eq!(device.read_record(&record).unwrap().norm, 50.0);
        let mut first = [0.0; 2];
        device.read(&clipped.first, &mut first).unwrap();
        assert!((first[0] - 0.06).abs() < 1e-12 && (first[1] - 0.08).abs() < 1e-12);

        let mut before = [0.0; 2];
        device.read(&parameters, &mut before).unwrap();
        device.write(&[f64::NAN, 1.0], &mut gradient).unwrap();
        clipped.update(&device, 0.1, &gradient, &mut parameters, &mut record).unwrap();
        let seen = device.read_record(&record).unwrap();
        assert!(seen.norm.is_nan() && (seen.updates, seen.failures) == (1, 1), "{seen:?}");
        let mut after = [0.0; 2];
        device.read(&parameters, &mut after).unwrap();
        assert_eq!(before, after);
    }

    #[test]
    fn impossible_settings_are_refused() {
        let device = Cpu::<f32>::single();
        let refused = |settings: AdamWSettings| match AdamW::new(&device, 1, settings).unwrap_err() {
            OptimiserError::Setting(error) => error.what,
            OptimiserError::Device(error) => panic!("{error}"),
        };
        assert_eq!(refused(AdamWSettings { beta1: 1.0, ..AdamWSettings::default() }), "beta1");
        assert_eq!(refused(AdamWSettings { beta2: f64::NAN, ..AdamWSettings::default() }), "beta2");
        assert_eq!(refused(AdamWSettings { epsilon: 0.0, ..AdamWSettings::default() }), "epsilon");
        assert_eq!(refused(AdamWSettings { weight_decay: -1.0, ..AdamWSettings::default() }), "weight_decay");
        assert_eq!(refused(AdamWSettings { clip_norm: Some(0.0), ..AdamWSettings::default() }), "clip_norm");
    }
}

//! Optimisers, and schedules of their learning rates.

mod adamw;
mod lbfgs;
mod mode;
mod schedule;
mod setting;

use serde::{Deserialize, Serialize};

use adamw::AdamW;
pub use adamw::AdamWSettings;
pub(crate) use lbfgs::{Limits, maximise_with_metric};
pub(crate) use mode::{Asks, Climb, Curvature, Mode, curvature, maximise};
pub use schedule::Schedule;
pub use setting::{OptimiserError, SettingError};

use crate::device::{Device, DeviceError, UpdateRecord};
use crate::state::{State, StateError};

/// Which optimiser, written out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum OptimiserSettings {
    /// AdamW.
    Adamw(AdamWSettings),
    /// Stochastic gradient descent.
    Sgd(SgdSettings),
}

impl Default for OptimiserSettings {
    fn default() -> Self {
        Self::Adamw(AdamWSettings::default())
    }
}

/// Settings of stochastic gradient descent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SgdSettings {
    /// Gradients with a larger norm are scaled down to it; none for no limit.
    pub clip_norm: Option<f64>,
}

impl Default for SgdSettings {
    fn default() -> Self {
        Self { clip_norm: Some(50.0) }
    }
}

/// An optimiser and its state.
///
/// ```
/// use vti::device::{Cpu, Device};
/// use vti::optimise::{Optimiser, OptimiserSettings, SgdSettings};
///
/// let device = Cpu::<f64>::single();
/// let (mut parameters, mut gradient) = (device.buffer(2)?, device.buffer(2)?);
/// device.write(&[3.0, 4.0], &mut gradient)?;
/// let settings = OptimiserSettings::Sgd(SgdSettings { clip_norm: Some(2.5) });
/// let mut optimiser = Optimiser::new(&device, 2, &settings)?;
/// optimiser.update(&device, 0.5, &gradient, &mut parameters)?;
/// let mut found = [0.0; 2];
/// device.read(&parameters, &mut found)?;
/// assert_eq!(found, [-0.75, -1.0]); // half the gradient, half of that
/// assert_eq!(optimiser.record(&device)?.norm, 5.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Optimiser<D: Device> {
    method: Method<D>,
    record: D::Record,
}

/// What an optimiser remembers beside its record.
#[derive(Debug)]
enum Method<D: Device> {
    /// AdamW with its moments.
    Adamw(AdamW<D>),
    /// Stochastic gradient descent, which remembers nothing.
    Sgd(SgdSettings),
}

impl<D: Device> Optimiser<D> {
    /// For `parameters` parameters.
    pub fn new(device: &D, parameters: usize, settings: &OptimiserSettings) -> Result<Self, OptimiserError> {
        let method = match settings {
            OptimiserSettings::Adamw(settings) => Method::Adamw(AdamW::new(device, parameters, settings.clone())?),
            OptimiserSettings::Sgd(settings) => {
                SettingError::check_clip_norm(settings.clip_norm)?;
                Method::Sgd(settings.clone())
            }
        };
        Ok(Self { method, record: device.record()? })
    }

    /// Moves `parameters` against `gradient`, both as long as [`Optimiser::new`] was told. A gradient that is not finite
    /// changes nothing, which [`Optimiser::record`] tells.
    pub fn update(
        &mut self,
        device: &D,
        rate: f64,
        gradient: &D::Buffer,
        parameters: &mut D::Buffer,
    ) -> Result<(), DeviceError> {
        match &mut self.method {
            Method::Adamw(adamw) => adamw.update(device, rate, gradient, parameters, &mut self.record),
            Method::Sgd(SgdSettings { clip_norm }) => {
                device.descend(rate, clip_norm.unwrap_or(f64::INFINITY), gradient, parameters, &mut self.record)
            }
        }
    }

    /// What updates have seen so far.
    pub fn record(&self, device: &D) -> Result<UpdateRecord, DeviceError> {
        device.read_record(&self.record)
    }

    /// The same, and begins a new sum of norms.
    pub(crate) fn take_record(&mut self, device: &D) -> Result<UpdateRecord, DeviceError> {
        let record = device.read_record(&self.record)?;
        device.write_record(&UpdateRecord { norm_sum: 0.0, ..record }, &mut self.record)?;
        Ok(record)
    }

    /// What must be kept to go on.
    pub fn state(&self, device: &D) -> Result<State, DeviceError> {
        let mut state = State::default();
        if let Method::Adamw(adamw) = &self.method {
            adamw.put(device, &mut state)?;
            state.put("updates", &[f64::from(self.record(device)?.updates)]);
        }
        Ok(state)
    }

    /// Goes on from a kept state.
    pub fn restore(&mut self, device: &D, state: &mut State) -> Result<(), StateError> {
        let mut record = UpdateRecord::default();
        if let Method::Adamw(adamw) = &mut self.method {
            adamw.restore(device, state)?;
            record.updates = state.take_number("updates")? as u32;
        }
        Ok(device.write_record(&record, &mut self.record)?)
    }
}

//! A gradient step whose effect on the entropy is limited (paper, appendix E.2, "Controlling learning rate via the information
//! gain").

use crate::device::{Device, DeviceError, UpdateRecord};
use crate::optimise::{Optimiser, SettingError};
use crate::simd::Real;
use crate::state::{State, StateError};

use super::control_variate::ControlVariate;
use super::{LearningSettings, ModelUpdate, ModelsError};

/// The smallest share of a step that is tried; below it the update is discarded.
pub(super) const MIN_STEP_SHARE: f64 = 1e-20;

/// Parameters ψ with their optimiser and the limit on the information gained by each step.
pub(super) struct Descent<D: Device> {
    pub(super) parameters: D::Buffer,
    pub(super) gradient: D::Buffer,
    previous: D::Buffer,
    change: D::Buffer,
    /// The control variate of its gradients.
    pub(super) control: ControlVariate,
    optimiser: Optimiser<D>,
    rate: f64,
    /// The share of the last step that was accepted.
    scale: f64,
}

impl<D: Device> Descent<D> {
    pub(super) fn new(device: &D, initial: &[D::Real], settings: &LearningSettings) -> Result<Self, ModelsError> {
        let rate = settings.rate;
        SettingError::check("rate", rate, rate > 0.0 && rate.is_finite(), "positive")?;
        let count = initial.len();
        let mut parameters = device.buffer(count)?;
        device.write(initial, &mut parameters)?;
        Ok(Self {
            parameters,
            gradient: device.buffer(count)?,
            previous: device.buffer(count)?,
            change: device.buffer(count)?,
            control: ControlVariate::new(&settings.control_variate)?,
            optimiser: Optimiser::new(device, count, &settings.optimiser)?,
            rate,
            scale: 1.0,
        })
    }

    /// Follows `self.gradient`, halving the step until `|H(ψ) − H(ψ')| ≤ limit`, where `entropy_of` gives H(ψ'), paper's
    /// eq. 48 (apdxhalvestep). The search starts from twice the share accepted last time, not from the whole step: shares
    /// change slowly, so one or two tries do.
    pub(super) fn step(
        &mut self,
        device: &D,
        pace: f64,
        limit: f64,
        entropy: f64,
        mut entropy_of: impl FnMut(&D::Buffer) -> Result<f64, ModelsError>,
    ) -> Result<ModelUpdate, ModelsError> {
        if limit <= 0.0 {
            return Ok(ModelUpdate { scale: 0.0 });
        }
        device.combine(1.0, &self.parameters, 0.0, &mut self.previous)?;
        self.optimiser.update(device, pace * self.rate, &self.gradient, &mut self.parameters)?;
        if limit == f64::INFINITY {
            return Ok(ModelUpdate { scale: 1.0 });
        }
        // A gradient that is not finite moves nothing, and says nothing about the next step.
        if self.optimiser.record(device)?.failures > 0 {
            return Ok(ModelUpdate { scale: 0.0 });
        }
        device.combine(1.0, &self.parameters, 0.0, &mut self.change)?;
        device.combine(-1.0, &self.previous, 1.0, &mut self.change)?;
        let mut scale = (2.0 * self.scale).min(1.0);
        while scale >= MIN_STEP_SHARE {
            device.combine(1.0, &self.previous, 0.0, &mut self.parameters)?;
            device.combine(scale, &self.change, 1.0, &mut self.parameters)?;
            // Not a number is not within the limit.
            match entropy_of(&self.parameters) {
                Ok(new) if (new - entropy).abs() <= limit => {
                    self.scale = scale;
                    return Ok(ModelUpdate { scale });
                }
                Ok(_) => scale *= 0.5,
                Err(error) => {
                    device.combine(1.0, &self.previous, 0.0, &mut self.parameters)?;
                    return Err(error);
                }
            }
        }
        device.combine(1.0, &self.previous, 0.0, &mut self.parameters)?;
        self.scale = 1.0;
        Ok(ModelUpdate { scale: 0.0 })
    }

    pub(super) fn state(&self, device: &D) -> Result<State, DeviceError> {
        let mut state = State::default();
        state.put_buffer("parameters", device, &self.parameters)?;
        state.put_state("optimiser", self.optimiser.state(device)?);
        state.put("scale", &[self.scale]);
        state.put_state("control", self.control.state());
        Ok(state)
    }

    pub(super) fn restore(&mut self, device: &D, state: &mut State) -> Result<(), StateError> {
        state.take_buffer("parameters", device, &mut self.parameters)?;
        self.optimiser.restore(device, &mut state.take_state("optimiser"))?;
        self.scale = state.take_number("scale")?;
        self.control.restore(&mut state.take_state("control"))
    }

    /// Sets the gradient from numbers of double precision.
    pub(super) fn write_gradient(
        &mut self,
        device: &D,
        gradient: impl Iterator<Item = f64>,
    ) -> Result<(), DeviceError> {
        let gradient: Vec<D::Real> = gradient.map(D::Real::from_f64).collect();
        device.write(&gradient, &mut self.gradient)
    }

    /// What its updates have seen.
    pub(super) fn gradients(&self, device: &D) -> Result<UpdateRecord, DeviceError> {
        self.optimiser.record(device)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::models::ControlVariateKind;
    use crate::optimise::{OptimiserSettings, SgdSettings};

    fn descent(device: &Cpu<f64>) -> Descent<Cpu<f64>> {
        let optimiser = OptimiserSettings::Sgd(SgdSettings { clip_norm: None });
        let settings = LearningSettings { optimiser, rate: 8.0, control_variate: ControlVariateKind::default() };
        let mut descent = Descent::new(device, &[0.0], &settings).unwrap();
        device.write(&[-1.0], &mut descent.gradient).unwrap();
        descent
    }

    fn value(device: &Cpu<f64>, buffer: &<Cpu<f64> as Device>::Buffer) -> f64 {
        let mut value = [0.0];
        device.read(buffer, &mut value).unwrap();
        value[0]
    }

    #[test]
    fn steps_are_halved_until_the_entropy_changes_little_enough_and_the_share_is_remembered() {
        let device = Cpu::<f64>::single();
        let mut descent = descent(&device);
        let mut tries = 0;
        // The "entropy" falls by the parameter itself: a step of 8 must shrink to 1.
        let update = descent.step(&device, 1.0, 1.0, 0.0, |p| {
            tries += 1;
            Ok(-value(&device, p))
        });
        let update = update.unwrap();
        assert_eq!((update.scale, tries, value(&device, &descent.parameters)), (0.125, 4, 1.0));
        tries = 0;
        let update = descent.step(&device, 1.0, 1.0, -1.0, |p| {
            tries += 1;
            Ok(-value(&device, p))
        });
        let update = update.unwrap();
        assert_eq!((update.scale, tries, value(&device, &descent.parameters)), (0.125, 2, 2.0));
    }

    #[test]
    fn a_step_that_never_fits_is_discarded_and_the_search_starts_afresh() {
        let device = Cpu::<f64>::single();
        let mut descent = descent(&device);
        let update = descent.step(&device, 1.0, 1.0, 0.0, |_| Ok(f64::NAN)).unwrap();
        assert_eq!((update.scale, value(&device, &descent.parameters)), (0.0, 0.0));
        assert_eq!(descent.step(&device, 1.0, 10.0, 0.0, |p| Ok(-value(&device, p))).unwrap().scale, 1.0);
    }
}

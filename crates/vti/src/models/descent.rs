//! A gradient step whose effect on the entropy is limited (paper, appendix "Controlling learning rate via the information
//! gain").

use crate::engine::{Engine, Real};
use crate::optimise::{Optimiser, SettingError};
use crate::state::{State, StateError};

use super::baseline::ControlVariate;
use super::{LearningSettings, ModelUpdate};

/// The smallest share of a step that is tried; below it the update is discarded.
pub(super) const SMALLEST: f64 = 1e-20;

/// Parameters ψ with their optimiser and the limit on the information gained by each step.
pub(super) struct Descent<E: Engine> {
    pub(super) parameters: E::Buffer,
    pub(super) gradient: E::Buffer,
    previous: E::Buffer,
    change: E::Buffer,
    /// The control variate of its gradients.
    pub(super) control: ControlVariate,
    optimiser: Optimiser<E>,
    rate: f64,
    /// The share of the last step that was accepted.
    scale: f64,
}

impl<E: Engine> Descent<E> {
    pub(super) fn new(engine: &E, initial: &[E::Real], settings: &LearningSettings) -> Result<Self, SettingError> {
        let rate = settings.rate;
        SettingError::check("rate", rate, rate > 0.0 && rate.is_finite(), "positive")?;
        let count = initial.len();
        let mut parameters = engine.buffer(count);
        engine.write(initial, &mut parameters);
        Ok(Self {
            parameters,
            gradient: engine.buffer(count),
            previous: engine.buffer(count),
            change: engine.buffer(count),
            control: ControlVariate::new(&settings.baseline)?,
            optimiser: Optimiser::new(engine, count, &settings.optimiser)?,
            rate,
            scale: 1.0,
        })
    }

    /// Follows `self.gradient`, halving the step until `|H(ψ) − H(ψ')| ≤ limit`, where `entropy_of` gives H(ψ'), paper's
    /// equation apdxhalvestep. The search starts from twice the share accepted last time, not from the whole step: shares
    /// change slowly, so one or two tries do.
    pub(super) fn step(
        &mut self,
        engine: &E,
        pace: f64,
        limit: f64,
        entropy: f64,
        mut entropy_of: impl FnMut(&E::Buffer) -> f64,
    ) -> ModelUpdate {
        if limit <= 0.0 {
            return ModelUpdate { gradient_norm: engine.norm(&self.gradient), scale: 0.0 };
        }
        engine.combine(1.0, &self.parameters, 0.0, &mut self.previous);
        let gradient_norm = self.optimiser.update(engine, pace * self.rate, &self.gradient, &mut self.parameters);
        if limit == f64::INFINITY || !gradient_norm.is_finite() {
            return ModelUpdate { gradient_norm, scale: f64::from(u8::from(gradient_norm.is_finite())) };
        }
        engine.combine(1.0, &self.parameters, 0.0, &mut self.change);
        engine.combine(-1.0, &self.previous, 1.0, &mut self.change);
        let mut scale = (2.0 * self.scale).min(1.0);
        while scale >= SMALLEST {
            engine.combine(1.0, &self.previous, 0.0, &mut self.parameters);
            engine.combine(scale, &self.change, 1.0, &mut self.parameters);
            // Not a number is not within the limit.
            if (entropy_of(&self.parameters) - entropy).abs() <= limit {
                self.scale = scale;
                return ModelUpdate { gradient_norm, scale };
            }
            scale *= 0.5;
        }
        engine.combine(1.0, &self.previous, 0.0, &mut self.parameters);
        self.scale = 1.0;
        ModelUpdate { gradient_norm, scale: 0.0 }
    }

    pub(super) fn state(&self, engine: &E) -> State {
        let mut state = State::default();
        state.put_buffer("parameters", engine, &self.parameters);
        state.put_state("optimiser", self.optimiser.state(engine));
        state.put("scale", &[self.scale]);
        state.put_state("control", self.control.state());
        state
    }

    pub(super) fn restore(&mut self, engine: &E, state: &mut State) -> Result<(), StateError> {
        state.take_buffer("parameters", engine, &mut self.parameters)?;
        self.optimiser.restore(engine, &mut state.take_state("optimiser"))?;
        self.scale = state.take_number("scale")?;
        self.control.restore(&mut state.take_state("control"))
    }

    /// Sets the gradient from numbers of double precision.
    pub(super) fn write_gradient(&mut self, engine: &E, gradient: impl Iterator<Item = f64>) {
        let gradient: Vec<E::Real> = gradient.map(E::Real::from_f64).collect();
        engine.write(&gradient, &mut self.gradient);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::engine::CpuEngine;
    use crate::models::Baseline;
    use crate::optimise::{OptimiserSettings, SgdSettings};

    fn descent(engine: &CpuEngine<f64>) -> Descent<CpuEngine<f64>> {
        let optimiser = OptimiserSettings::Sgd(SgdSettings { clip_norm: None });
        let settings = LearningSettings { optimiser, rate: 8.0, baseline: Baseline::default() };
        let mut descent = Descent::new(engine, &[0.0], &settings).unwrap();
        engine.write(&[-1.0], &mut descent.gradient);
        descent
    }

    fn value(engine: &CpuEngine<f64>, buffer: &<CpuEngine<f64> as Engine>::Buffer) -> f64 {
        let mut value = [0.0];
        engine.read(buffer, &mut value);
        value[0]
    }

    #[test]
    fn steps_are_halved_until_the_entropy_changes_little_enough_and_the_share_is_remembered() {
        let engine = CpuEngine::<f64>::single();
        let mut descent = descent(&engine);
        let mut tries = 0;
        // The "entropy" falls by the parameter itself: a step of 8 must shrink to 1.
        let update = descent.step(&engine, 1.0, 1.0, 0.0, |p| {
            tries += 1;
            -value(&engine, p)
        });
        assert_eq!((update.scale, tries, value(&engine, &descent.parameters)), (0.125, 4, 1.0));
        tries = 0;
        let update = descent.step(&engine, 1.0, 1.0, -1.0, |p| {
            tries += 1;
            -value(&engine, p)
        });
        assert_eq!((update.scale, tries, value(&engine, &descent.parameters)), (0.125, 2, 2.0));
    }

    #[test]
    fn a_step_that_never_fits_is_discarded_and_the_search_starts_afresh() {
        let engine = CpuEngine::<f64>::single();
        let mut descent = descent(&engine);
        let update = descent.step(&engine, 1.0, 1.0, 0.0, |_| f64::NAN);
        assert_eq!((update.scale, value(&engine, &descent.parameters)), (0.0, 0.0));
        assert_eq!(descent.step(&engine, 1.0, 10.0, 0.0, |p| -value(&engine, p)).scale, 1.0);
    }
}

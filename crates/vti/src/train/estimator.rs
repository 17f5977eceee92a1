//! Which estimator of the gradient of φ.

use super::plan::Position;
use super::{FlowGradient, TrainError, Trainer};
use crate::device::Device;
use crate::objective;
use crate::simd::Real;

/// Steps between trials of both gradient estimators.
const TRY_BOTH_EVERY: u64 = 25;

impl<D: Device> Trainer<D> {
    /// A step of φ against the gradient of the mean of log h over the kept rows.
    pub(super) fn move_flow(&mut self, rate: f64) -> Result<(), TrainError> {
        self.find_flow_gradient()?;
        self.follow_gradient(rate)
    }

    /// A step of φ against `self.gradient`.
    pub(super) fn follow_gradient(&mut self, rate: f64) -> Result<(), TrainError> {
        let Self { family, optimiser, gradient, .. } = self;
        Ok(optimiser.update(&family.device, rate, gradient, &mut family.parameters)?)
    }

    /// The gradient of the mean of log h over the kept rows, by the estimator that is in use.
    pub(super) fn find_flow_gradient(&mut self) -> Result<(), TrainError> {
        match self.settings.flow_gradient {
            FlowGradient::Reparameterised => self.by_path = false,
            FlowGradient::PathDerivative => self.by_path = true,
            FlowGradient::Adaptive if self.step.is_multiple_of(TRY_BOTH_EVERY) => self.choose_gradient()?,
            FlowGradient::Adaptive => {}
        }
        self.find_gradient(self.by_path)
    }

    /// Tries both estimators on the batch at hand; a backward pass uses the forward one up, so each try needs another.
    fn choose_gradient(&mut self) -> Result<(), TrainError> {
        let mut norms = [0.0; 2];
        for (by_path, norm) in [false, true].into_iter().zip(&mut norms) {
            self.find_gradient(by_path)?;
            let device = &self.family.device;
            device.norm(&self.gradient, &mut self.trial)?;
            *norm = device.read_record(&self.trial)?.norm;
            self.pass.forward(&self.family)?;
        }
        // Not a number is not shorter.
        self.by_path = norms[1] < norms[0];
        Ok(())
    }

    /// The gradient of the mean of log h over the kept rows, of the tempered target at first.
    pub(super) fn find_gradient(&mut self, by_path: bool) -> Result<(), TrainError> {
        let Position { step, steps } = self.position();
        let Self { family, pass, batch, gradient, settings, .. } = self;
        let beta = settings.temper.beta(step, steps);
        let share = 1.0 / batch.kept.iter().filter(|&&kept| kept).count().max(1) as f64;
        if by_path {
            pass.score(family, &mut batch.theta_gradient)?;
        }
        for row in 0..pass.rows() {
            for i in pass.places(row) {
                let score = by_path.then(|| batch.theta_gradient[i].to_f64());
                let by_theta = objective::theta_gradient(score, beta, pass.gradient[i]);
                batch.theta_gradient[i] = D::Real::from_f64(share * by_theta);
            }
        }
        let by_log_det = share * objective::log_det_gradient(by_path);
        let kept = &batch.kept;
        let by_log_det = |row: usize| D::Real::from_f64(if kept[row] { by_log_det } else { 0.0 });
        Ok(pass.backward(family, &batch.theta_gradient, by_log_det, gradient)?)
    }
}

//! Fitting a flow to conditional targets by reparameterised gradients.

use super::optimiser::{AdamW, AdamWSettings, OptimiserError};
use crate::engine::{Engine, Real};
use crate::flow::{Batch, Flow, FlowError, Passes, Workspace};
use crate::random::{Purpose, Stream};

/// Minimises `E_z[log h_φ(z | m)]` over φ for the models of each batch (paper, Corollary 1), where
///
/// ```text
/// log h_φ(z | m) = log ν(z_m) − log |det ∇T_φ(z | m)| − log η(θ_m | m),   θ_m = T_φ(z | m).
/// ```
///
/// The mean of `−log h` over z is a lower bound of the model's log evidence `log Z_m`, and equal to it when
/// `q_φ(θ | m)` is the posterior.
///
/// ```
/// use vti::engine::CpuEngine;
/// use vti::flow::{Batch, ContextShape, Flow, FlowSettings, FlowShape};
/// use vti::train::{AdamWSettings, FlowFit};
///
/// // One model with one parameter, whose posterior is N(2, ½²) and whose evidence is e³.
/// let shape = FlowShape { max_dim: 1, context: ContextShape::Symbols(1) };
/// let flow = Flow::new(&FlowSettings::affine(1, 0, 4), shape)?;
/// let mut log_target = |_row: usize, theta: &[f64], gradient: &mut [f64]| {
///     let e = (theta[0] - 2.0) / 0.5;
///     gradient[0] = -e / 0.5;
///     3.0 - 0.5 * e * e - 0.5f64.ln() - 0.5 * std::f64::consts::TAU.ln()
/// };
/// let engine = CpuEngine::<f64>::single();
/// let mut batch = Batch::new();
/// (0..64).for_each(|_| batch.push(&[0], 0));
/// let mut fit = FlowFit::new(&flow, &engine, 64, 1, AdamWSettings::default())?;
/// for step in 0..600 {
///     fit.step(&batch, 0.03 * (1.0 - f64::from(step) / 600.0), &mut log_target)?;
/// }
/// let log_h = fit.evaluate(&batch, &mut log_target)?;
/// let bound = -log_h.iter().sum::<f64>() / 64.0;
/// assert!((bound - 3.0).abs() < 0.01); // the log evidence
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FlowFit<'a, E: Engine> {
    flow: &'a Flow,
    engine: &'a E,
    parameters: E::Buffer,
    gradient: E::Buffer,
    optimiser: AdamW<E>,
    work: Workspace<E>,
    seed: u64,
    steps: u64,
    evaluations: u64,
    z: Vec<E::Real>,
    theta: Vec<E::Real>,
    theta_gradient: Vec<E::Real>,
    log_det: Vec<E::Real>,
    log_det_gradient: Vec<E::Real>,
    log_h: Vec<f64>,
}

impl<E: Engine> std::fmt::Debug for FlowFit<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowFit")
            .field("steps", &self.steps)
            .field("optimiser", &self.optimiser)
            .finish_non_exhaustive()
    }
}

/// What a step saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitStep {
    /// Mean of `log h` over the rows.
    pub loss: f64,
    /// Norm of the gradient before clipping.
    pub gradient_norm: f64,
}

impl<'a, E: Engine> FlowFit<'a, E> {
    /// A fit that starts from random parameters, for batches of up to `rows` rows.
    pub fn new(
        flow: &'a Flow,
        engine: &'a E,
        rows: usize,
        seed: u64,
        settings: AdamWSettings,
    ) -> Result<Self, OptimiserError> {
        let (count, numbers) = (flow.parameter_count(), rows * flow.shape().max_dim);
        let mut parameters = engine.buffer(count);
        engine.write(&flow.initial_parameters(seed), &mut parameters);
        Ok(Self {
            flow,
            engine,
            parameters,
            gradient: engine.buffer(count),
            optimiser: AdamW::new(engine, count, settings)?,
            work: flow.workspace(engine, rows, Passes::Training),
            seed,
            steps: 0,
            evaluations: 0,
            z: vec![E::Real::ZERO; numbers],
            theta: vec![E::Real::ZERO; numbers],
            theta_gradient: vec![E::Real::ZERO; numbers],
            log_det: vec![E::Real::ZERO; rows],
            log_det_gradient: vec![E::Real::ZERO; rows],
            log_h: Vec::with_capacity(rows),
        })
    }

    /// The flow's parameters φ as they are now.
    pub fn parameters(&self) -> &E::Buffer {
        &self.parameters
    }

    /// Draws z for every row of the batch and returns `log h` of each, `log_target` giving `log η(θ_m | m)` of a row and
    /// its gradient. Its draws are not those of training, which it does not disturb.
    pub fn evaluate(
        &mut self,
        batch: &Batch<E::Real>,
        log_target: &mut impl FnMut(usize, &[E::Real], &mut [E::Real]) -> f64,
    ) -> Result<&[f64], FlowError> {
        self.draw(batch, Purpose::Evaluation, self.evaluations, log_target)?;
        self.evaluations += 1;
        Ok(&self.log_h)
    }

    /// Draws z from the streams of `(purpose, step)`, and finds `log h` and the target's gradient of every row.
    fn draw(
        &mut self,
        batch: &Batch<E::Real>,
        purpose: Purpose,
        step: u64,
        log_target: &mut impl FnMut(usize, &[E::Real], &mut [E::Real]) -> f64,
    ) -> Result<(), FlowError> {
        let max_dim = self.flow.shape().max_dim;
        self.work.set_batch(self.engine, batch)?;
        let half_log_tau = 0.5 * std::f64::consts::TAU.ln();
        self.log_h.clear();
        for (row, &dim) in batch.dims().iter().enumerate() {
            let mut stream = Stream::new(self.seed, purpose, step, row as u64);
            let mut log_reference = 0.0;
            for z in &mut self.z[row * max_dim..][..dim as usize] {
                let draw = stream.normal();
                log_reference -= 0.5 * draw * draw + half_log_tau;
                *z = E::Real::from_f64(draw);
            }
            self.log_h.push(log_reference);
        }
        self.work.write_z(self.engine, &self.z)?;
        self.flow.forward(self.engine, &self.parameters, &mut self.work)?;
        self.work.read_theta(self.engine, &mut self.theta, &mut self.log_det)?;
        for (row, &dim) in batch.dims().iter().enumerate() {
            let place = row * max_dim..row * max_dim + dim as usize;
            let gradient = &mut self.theta_gradient[place.clone()];
            self.log_h[row] -= self.log_det[row].to_f64() + log_target(row, &self.theta[place], gradient);
            if !self.log_h[row].is_finite() || !gradient.iter().all(|g| g.is_finite()) {
                return Err(FlowError::Target { row });
            }
        }
        Ok(())
    }

    /// One step of AdamW at learning rate `rate`.
    pub fn step(
        &mut self,
        batch: &Batch<E::Real>,
        rate: f64,
        log_target: &mut impl FnMut(usize, &[E::Real], &mut [E::Real]) -> f64,
    ) -> Result<FitStep, FlowError> {
        self.draw(batch, Purpose::Reference, self.steps, log_target)?;
        self.steps += 1;
        let share = 1.0 / batch.rows().max(1) as f64;
        let loss = self.log_h.iter().sum::<f64>() * share;
        for gradient in &mut self.theta_gradient {
            *gradient *= E::Real::from_f64(-share);
        }
        self.log_det_gradient.fill(E::Real::from_f64(-share));
        self.work.write_gradients(self.engine, &self.theta_gradient, &self.log_det_gradient)?;
        self.flow.backward(self.engine, &self.parameters, &mut self.work, &mut self.gradient)?;
        let gradient_norm = self.optimiser.update(self.engine, rate, &self.gradient, &mut self.parameters);
        Ok(FitStep { loss, gradient_norm })
    }
}

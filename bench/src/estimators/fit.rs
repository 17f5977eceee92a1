//! A flow and a distribution over models while both learn, open for measurements.

use anyhow::Result;
use vti::device::{Cpu, Device};
use vti::flow::{Batch, ContextShape, Flow, FlowSettings, FlowShape, Passes, Workspace};
use vti::models::{Draw, ModelsSettings, ScoredBatch, build};
use vti::optimise::Optimiser;
use vti::random::Purpose;
use vti::space::ModelSpace;
use vti::train::TrainSettings;

use super::problem::Gaussians;
use crate::scored::{Models, Scored, pace};

type Buffer = <Cpu<f32> as Device>::Buffer;

/// Rows of a batch. All variances are in proportion to its inverse, so ratios do not depend on it.
pub(crate) const ROWS: usize = 512;

/// Both halves of a family for one problem.
pub(crate) struct Fit<'a> {
    pub(crate) problem: &'a Gaussians,
    pub(crate) models: Models,
    pub(crate) rows: Scored,
    device: &'a Cpu<f32>,
    flow: Flow,
    parameters: Buffer,
    gradient: Buffer,
    optimiser: Optimiser<Cpu<f32>>,
    work: Workspace<Cpu<f32>>,
    batch: Batch<f32>,
    /// Number of each row's model.
    numbers: Vec<usize>,
    z: Vec<f32>,
    theta: Vec<f32>,
    log_det: Vec<f32>,
    /// `∂ log η/∂θ`.
    density_gradient: Vec<f32>,
    /// Derivatives of the mean of log h.
    by_theta: Vec<f32>,
    by_log_det: Vec<f32>,
    steps: u64,
    step: u64,
}

impl<'a> Fit<'a> {
    /// Before the first of `steps` steps.
    pub(crate) fn new(
        problem: &'a Gaussians,
        device: &'a Cpu<f32>,
        flow: &FlowSettings,
        models: &ModelsSettings,
        steps: u64,
    ) -> Result<Self> {
        let space = problem.space();
        let max_dim = space.max_dim();
        let shape = FlowShape { max_dim, context: ContextShape::Symbols(problem.catalogue.len()) };
        let flow = Flow::new(flow, shape)?;
        let count = flow.parameter_count();
        let mut parameters = device.buffer(count)?;
        device.write(&flow.initial_parameters(1), &mut parameters)?;
        let numbers = vec![0.0; ROWS * max_dim];
        Ok(Self {
            problem,
            models: build(device, &problem.models, false, models, ROWS, 1)?.models,
            rows: Scored::new(space, ROWS),
            device,
            parameters,
            gradient: device.buffer(count)?,
            optimiser: Optimiser::new(device, count, &TrainSettings::default().optimiser)?,
            work: flow.workspace(device, ROWS, Passes::TrainingWithScores)?,
            batch: Batch::with_capacity(ROWS, shape),
            numbers: vec![0; ROWS],
            z: numbers.clone(),
            theta: numbers.clone(),
            log_det: vec![0.0; ROWS],
            density_gradient: numbers.clone(),
            by_theta: numbers,
            by_log_det: vec![0.0; ROWS],
            flow,
            steps,
            step: 0,
        })
    }

    /// Learns until so many steps are done, showing each batch to `watch` before q(m) learns from it.
    pub(crate) fn train(&mut self, until: u64, mut watch: impl FnMut(&ScoredBatch<'_>)) -> Result<()> {
        let settings = TrainSettings::default();
        let log_count = self.problem.space().log_count();
        while self.step < until {
            self.draw([Purpose::Models, Purpose::Reference], self.step)?;
            // The path derivative is for flows that already are near.
            self.find_gradient(2 * self.step > self.steps)?;
            let rate = settings.schedule.rate(self.step, self.steps);
            self.optimiser.update(self.device, rate, &self.gradient, &mut self.parameters)?;
            let limit = settings.information.limit(self.step, self.steps, log_count, 5 * self.step < self.steps);
            let batch = self.rows.batch(pace(self.step, self.steps), limit);
            watch(&batch);
            self.models.update(self.device, &batch)?;
            self.step += 1;
        }
        Ok(())
    }

    /// Draws batch number `number` for a measurement.
    pub(crate) fn draw_another(&mut self, number: u64) -> Result<()> {
        self.draw([Purpose::Other(1), Purpose::Other(2)], number)
    }

    /// Draws a batch from both halves and scores it.
    fn draw(&mut self, purposes: [Purpose; 2], step: u64) -> Result<()> {
        let [models, reference] = purposes.map(|purpose| Draw { seed: 1, purpose, step });
        self.rows.draw(self.device, &self.models, models)?;
        self.plan()?;
        let stride = self.problem.space().max_dim();
        for (row, z) in self.z.chunks_exact_mut(stride).enumerate() {
            let mut stream = reference.row(row);
            z[..self.batch.dims()[row] as usize].fill_with(|| stream.normal() as f32);
        }
        self.work.write_z(self.device, &self.z)?;
        self.flow.forward(self.device, &self.parameters, &mut self.work)?;
        self.work.read_theta(self.device, &mut self.theta, &mut self.log_det)?;
        self.score();
        Ok(())
    }

    /// Tells the flow the models of the rows.
    fn plan(&mut self) -> Result<()> {
        self.batch.clear();
        let words = self.rows.words.chunks_exact(self.problem.space().things());
        for (number, word) in self.numbers.iter_mut().zip(words) {
            *number = self.problem.index(word)?;
            self.batch.push(&self.problem.active[*number], *number as u32);
        }
        Ok(self.work.set_batch(self.device, &self.batch)?)
    }

    /// `log h` of every row, and `∂ log η/∂θ`.
    fn score(&mut self) {
        let Self { problem, numbers, z, theta, log_det, density_gradient, .. } = self;
        let stride = problem.space().max_dim();
        for (row, log_h) in self.rows.log_h.iter_mut().enumerate() {
            let place = row * stride..row * stride + problem.active[numbers[row]].len();
            let squares: f64 = z[place.clone()].iter().map(|&z| f64::from(z).powi(2)).sum();
            let log_reference = -0.5 * (squares + place.len() as f64 * std::f64::consts::TAU.ln());
            let log_eta = problem.log_density(numbers[row], &theta[place.clone()], &mut density_gradient[place]);
            *log_h = log_reference - f64::from(log_det[row]) - log_eta;
        }
    }

    /// The gradient of the mean of log h with respect to φ, plain or by the path derivative. Uses the forward pass up.
    fn find_gradient(&mut self, by_path: bool) -> Result<()> {
        let Self { flow, device, parameters, work, gradient, density_gradient, by_theta, by_log_det, .. } = self;
        if by_path {
            flow.score(*device, parameters, work, by_theta)?;
        } else {
            by_theta.fill(0.0);
        }
        let share = 1.0 / ROWS as f32;
        by_theta.iter_mut().zip(density_gradient).for_each(|(by, density)| *by = share * (*by - *density));
        by_log_det.fill(if by_path { 0.0 } else { -share });
        work.write_gradients(*device, by_theta, by_log_det)?;
        Ok(flow.backward(*device, parameters, work, gradient)?)
    }

    /// Both gradients of the batch at hand: plain, and by the path derivative.
    pub(crate) fn both_gradients(&mut self) -> Result<[Vec<f32>; 2]> {
        let mut gradients = [false, true].map(|_| vec![0.0; self.flow.parameter_count()]);
        for (by_path, to) in [false, true].into_iter().zip(&mut gradients) {
            self.find_gradient(by_path)?;
            self.device.read(&self.gradient, to)?;
            self.flow.forward(self.device, &self.parameters, &mut self.work)?;
        }
        Ok(gradients)
    }

    /// How many numbers φ has.
    pub(crate) fn flow_parameters(&self) -> usize {
        self.flow.parameter_count()
    }

    /// How far the bound is from the evidence, from the batch at hand: KL(q ‖ posterior), which cannot be negative.
    pub(crate) fn divergence(&self) -> f64 {
        (self.rows.mean_loss() + self.problem.log_total_evidence()).max(0.0)
    }
}

//! Training without a gradient: q learns draws of the posterior, which particles find from the prior.
//!
//! Where a density gives values only, or jumps, the gradient of `E_q[log h]` cannot be followed. The forward divergence
//! `−E_π[log q(m, θ)]` needs the gradient of q alone and draws of the posterior π; these come from particles that are tempered from
//! the prior ([`smc`](crate::smc)). q(m) is fitted to the models that they found, the flow starts from their means and covariances,
//! and learns the rest. Checks draw particles of their own.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::lesson::Replay;
use super::{Observer, StepReport, TrainError, Trainer};
use crate::device::Device;
use crate::flow::Passes;
use crate::models::{Draw, ModelUpdate};
use crate::posterior::Draws;
use crate::problem::{Gradient, Problem};
use crate::random::{Purpose, Weighted};
use crate::smc::{Sampled, Sampler};

/// What is added to the seed of a run: a check's particles must be others.
const PARTICLES_SEED: u64 = 0x7a0d_0000;

/// Steps between looks at the bound where q learns from draws: each asks for the densities of a batch.
pub const BOUND_EVERY: u64 = 50;

/// Draws in a step for each draw of a batch: inverting an autoregressive flow takes a pass for each coordinate.
const REPLAYED: f64 = 0.25;

/// Parts in which the progress of particles is told.
const PARTS: f64 = 100.0;

impl<D: Device> Trainer<D> {
    /// Whether q learns from draws alone: where there is no gradient, and where models differ in how many components they have,
    /// whose many modes a flow would otherwise lose.
    pub(super) fn is_taught(&self) -> bool {
        let problem = &self.family.problem;
        problem.gradient() == Gradient::None || problem.jumps().is_some()
    }

    /// Finds draws of the posterior, and starts from where they lie. Nothing is done twice.
    pub(super) fn find_draws(&mut self, observer: &mut impl Observer) -> Result<ControlFlow<()>, TrainError> {
        if self.replay.is_some() {
            return Ok(ControlFlow::Continue(()));
        }
        let problem = self.family.problem.clone();
        let standard = || vec![(0.0, 1.0); problem.space().max_dim()];
        let reference = problem.reference().unwrap_or_else(standard);
        let seed = self.settings.seed.wrapping_add(PARTICLES_SEED);
        let mut sampler = Sampler::new(&*problem, &reference, &self.settings.particles, seed)?.with_all_rounds();
        let mut go_on = |share: f64| observer.prepare((share * PARTS) as usize, PARTS as usize).is_continue();
        if !sampler.run(self.settings.particles.runs, self.family.device.workers(), &mut go_on)? {
            return Ok(ControlFlow::Break(()));
        }
        let sampled = sampler.found().ok_or(TrainError::NoDraws)?;
        let draws = draws_of(&sampled, &*problem);
        let weighted = Weighted::new(sampled.weights().into_iter()).ok_or(TrainError::NoDraws)?;
        if self.step == 0 {
            self.family.precondition((0..draws.len()).map(|row| (draws.word(row), draws.theta(row))))?;
            let draw = Draw { seed, purpose: Purpose::Lesson, step: u64::from(u32::MAX) };
            let words: Vec<u16> = sampled.models.iter().flat_map(|found| found.model.iter().copied()).collect();
            let probabilities: Vec<f64> = sampled.models.iter().map(|found| found.probability.value).collect();
            self.family.prepare_in_silence();
            let models = &mut self.family.models;
            models.fit(&self.family.device, draw, &words, &probabilities).map_err(crate::family::FamilyError::from)?;
        }
        self.pass = self.family.pass(self.settings.batch, Passes::Training)?;
        self.warm_up.skip();
        let rows = ((REPLAYED * self.settings.batch as f64).ceil() as usize).max(1);
        self.replay = Some(Replay::new(&self.family, rows, Cow::Owned(draws), weighted)?);
        Ok(ControlFlow::Continue(()))
    }

    /// A step of φ along the forward divergence; the bound is looked at every now and then.
    pub(super) fn taught_step(&mut self) -> Result<StepReport, TrainError> {
        let mut replay = self.replay.take();
        let report = self.replayed_step(replay.as_mut());
        self.replay = replay;
        report
    }

    /// The same with draws from elsewhere.
    pub(super) fn replayed_step(&mut self, replay: Option<&mut Replay<'_, D>>) -> Result<StepReport, TrainError> {
        let rate = self.rate();
        let dropped = match self.step.is_multiple_of(BOUND_EVERY) {
            true => self.draw_batch()?,
            false => Vec::new(),
        };
        let draw = Draw { seed: self.settings.seed, purpose: Purpose::Lesson, step: self.step };
        if let Some(replay) = replay {
            replay.gradient(&self.family, draw)?;
            self.family.device.combine(1.0, &replay.gradient, 0.0, &mut self.gradient)?;
        }
        self.follow_gradient(rate)?;
        self.step += 1;
        self.check_gradients()?;
        Ok(self.report(rate, ModelUpdate { scale: 0.0 }, dropped))
    }
}

/// What particles found, as draws; densities under q are not looked at.
fn draws_of(sampled: &Sampled, problem: &dyn Problem) -> Draws {
    let stride = problem.constraints().map_or(problem.space().max_dim(), |constraints| constraints.natural_len());
    let points = &sampled.points;
    let width = problem.space().arities().len();
    let mut draws = Draws { width, stride, words: points.words.clone(), ..Draws::default() };
    draws.theta = vec![f64::NAN; points.theta.len() * stride];
    for (row, theta) in points.theta.iter().enumerate() {
        draws.dims.push(theta.len());
        draws.theta[row * stride..][..theta.len()].copy_from_slice(theta);
    }
    draws
}

//! The training loop.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::checkpoint::Saving;
use super::lesson::Replay;
use super::plan::{Pace, Position};
use super::plateau::Plateau;
use super::report::{Dropped, Observer, Silent, StepReport, Stop};
use super::warm_up::WarmUp;
use super::{CheckpointSettings, FlowGradient, TrainError, TrainSettings};
use crate::device::Device;
use crate::family::{Family, FamilyError, FamilySettings, Pass};
use crate::flow::Passes;
use crate::models::{BlockLosses, Draw, ModelUpdate, Prepared, Preparing, ScoredBatch};
use crate::objective;
use crate::optimise::Optimiser;
use crate::posterior::Posterior;
use crate::problem::Problem;
use crate::random::Purpose;
use crate::simd::Real;
use crate::store;

/// Minimises the loss `L(ψ, φ)` of Corollary 2.3 (see [`objective`](crate::objective)) by stochastic gradients: reparameterised
/// ones for φ, and whatever the distribution over models does for ψ. It owns what it needs and may be sent to another thread.
///
/// ```
/// use std::sync::Arc;
/// use vti::device::Cpu;
/// use vti::family::FamilySettings;
/// use vti::problem;
/// use vti::space::OneOf;
/// use vti::train::{Silent, TrainSettings, Trainer};
///
/// // A model without parameters, and one with one; their evidences are 1 and e.
/// let problem = problem::from_fn(OneOf::with_dims(&[0, 1])?, |model, theta, gradient| {
///     if model[0] == 0 {
///         return 0.0;
///     }
///     gradient[0] = -(theta[0] - 2.0);
///     1.0 - 0.5 * (theta[0] - 2.0).powi(2) - 0.5 * std::f64::consts::TAU.ln()
/// });
/// let settings = TrainSettings { steps: 300, batch: 64, ..TrainSettings::default() };
/// let trainer = Trainer::new(Arc::new(problem), Cpu::<f64>::new(2)?, &FamilySettings::default(), &settings)?;
/// let fit = trainer.run(&mut Silent)?;
/// let probabilities = fit.posterior.model_probabilities(1000)?;
/// assert!((probabilities[0].probability.value - 0.731).abs() < 0.02);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Trainer<D: Device> {
    pub(super) family: Family<D>,
    pub(super) settings: TrainSettings,
    pub(super) optimiser: Optimiser<D>,
    pub(super) gradient: D::Buffer,
    /// For norms of gradients that are only tried.
    pub(super) trial: D::Record,
    pub(super) pass: Pass<D>,
    pub(super) plateau: Plateau,
    pub(super) warm_up: WarmUp,
    pub(super) step: u64,
    /// The most steps that a time limit may come to.
    pub(super) most_steps: u64,
    /// How many steps a run of the present pace would have done more by now.
    pub(super) ahead: i64,
    /// Seconds before this process took over.
    pub(super) seconds: f64,
    pub(super) dropped: u64,
    /// The step since which norms of gradients are summed: the last at which somebody asked, or the first of this process.
    pub(super) norms_asked: u64,
    /// Whether the path derivative is in use.
    pub(super) by_path: bool,
    pub(super) first_dropped: Option<Dropped>,
    /// What there was no time for.
    pub(super) left_out: Vec<String>,
    pub(super) batch: Buffers<D::Real>,
    /// Draws of the posterior that q learns, where the density has no gradient.
    pub(super) replay: Option<Replay<'static, D>>,
}

/// What is computed for each row of a batch.
#[derive(Default)]
pub(super) struct Buffers<T> {
    pub(super) log_prior: Vec<f64>,
    log_h: Vec<f64>,
    pub(super) kept: Vec<bool>,
    /// The score, then the derivative with respect to θ.
    pub(super) theta_gradient: Vec<T>,
    /// Keys and log h of blocks, where each has a flow of its own.
    keys: Vec<u64>,
    block_log_h: Vec<f64>,
}

/// The share of a time limit that the preparation of the first q(m) may take.
const PREPARATION_SHARE: f64 = 0.4;

/// A finished run.
pub struct Fit<D: Device> {
    /// What was learned.
    pub posterior: Posterior<D>,
    /// Why it ended.
    pub stop: Stop,
    /// Steps done.
    pub steps: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Draws that were not finite.
    pub dropped: u64,
    /// The first of them.
    pub first_dropped: Option<Dropped>,
    /// What the time limit left no time for, in words.
    pub left_out: Vec<String>,
    /// Why the finished run could not be saved, where it should have been.
    pub unsaved: Option<TrainError>,
}

impl<D: Device> std::fmt::Debug for Fit<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fit").field("posterior", &self.posterior).field("stop", &self.stop).finish_non_exhaustive()
    }
}

impl<D: Device> std::fmt::Debug for Trainer<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer").field("settings", &self.settings).field("step", &self.step).finish_non_exhaustive()
    }
}

impl<D: Device> Trainer<D> {
    /// A run that starts from random networks.
    pub fn new(
        problem: Arc<dyn Problem>,
        device: D,
        family: &FamilySettings,
        settings: &TrainSettings,
    ) -> Result<Self, TrainError> {
        settings.check()?;
        Self::with_family(Family::new(problem, device, family, settings.batch, settings.seed)?, settings)
    }

    /// A run that starts from what a family has become.
    pub(super) fn with_family(family: Family<D>, settings: &TrainSettings) -> Result<Self, TrainError> {
        let passes = match settings.flow_gradient {
            FlowGradient::Reparameterised => Passes::Training,
            FlowGradient::PathDerivative | FlowGradient::Adaptive => Passes::TrainingWithScores,
        };
        let count = family.flow.parameter_count();
        let (rows, numbers) = (settings.batch, settings.batch * family.space().max_dim());
        Ok(Self {
            optimiser: Optimiser::new(&family.device, count, &settings.optimiser)?,
            gradient: family.device.buffer(count)?,
            trial: family.device.record()?,
            pass: family.pass(rows, passes)?,
            plateau: Plateau::default(),
            warm_up: WarmUp::default(),
            step: 0,
            most_steps: settings.steps,
            ahead: 0,
            seconds: 0.0,
            dropped: 0,
            norms_asked: 0,
            by_path: false,
            first_dropped: None,
            left_out: Vec::new(),
            batch: Buffers {
                log_prior: vec![0.0; rows],
                log_h: vec![0.0; rows],
                kept: vec![true; rows],
                theta_gradient: vec![D::Real::ZERO; numbers],
                keys: Vec::new(),
                block_log_h: Vec::new(),
            },
            family,
            settings: settings.clone(),
            replay: None,
        })
    }

    /// The settings.
    pub fn settings(&self) -> &TrainSettings {
        &self.settings
    }

    /// How long it may take from here on, whatever the checkpoint said.
    pub fn set_time_limit(&mut self, seconds: Option<f64>) {
        self.settings.time_limit = seconds;
    }

    /// Where it is saved from here on, whatever the checkpoint said.
    pub fn set_checkpoint(&mut self, checkpoint: Option<CheckpointSettings>) {
        self.settings.checkpoint = checkpoint;
    }

    /// The family as it is now.
    pub fn family(&self) -> &Family<D> {
        &self.family
    }

    /// Steps done.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Steps until something ends the run, saving now and then and at the end. A save that fails is tried again the next
    /// time; if the last one fails, the fit says so.
    pub fn run(mut self, observer: &mut impl Observer) -> Result<Fit<D>, TrainError> {
        if let Some(checkpoint) = &self.settings.checkpoint {
            store::probe(&checkpoint.path)?;
            self.family.fingerprint();
        }
        let start = Instant::now();
        if self.prepare(start, observer)?.is_break() {
            let unsaved = self.save().err();
            return Ok(Fit { unsaved, ..self.into_fit(Stop::Observer) });
        }
        let mut pace = Pace::new(start.elapsed().as_secs_f64(), self.step, self.settings.time_limit);
        let before = self.seconds;
        let mut saving = Saving::new(start);
        let stop = loop {
            if self.step >= self.settings.steps {
                break Stop::Steps { steps: self.step };
            }
            let mut report = match self.step() {
                // Nothing has moved in this step yet: whoever mends the density can go on from here.
                Err(error @ TrainError::Family(FamilyError::Density { .. })) => {
                    let _ = self.save();
                    return Err(error);
                }
                other => other?,
            };
            let elapsed = start.elapsed().as_secs_f64();
            self.seconds = before + elapsed;
            report.seconds = self.seconds;
            if observer.wants_gradient_norm(&report) {
                report.gradient_norm = Some(self.mean_gradient_norm()?);
            }
            // First of all: a run that is interrupted here must remember this step.
            let plateau = self.observe_plateau(&report);
            observer.models(&self.pass.words, self.family.space().arities().len());
            if observer.step(&report).is_break() {
                break Stop::Observer;
            }
            if let Some(seconds) = self.settings.time_limit.filter(|&limit| elapsed >= limit) {
                break Stop::TimeLimit { seconds };
            }
            self.plan_for_time_limit(&mut pace, elapsed);
            if let Some(stop) = plateau {
                break stop;
            }
            if saving.is_due(self.settings.checkpoint.as_ref()) {
                let _ = self.save();
                saving.note();
            }
        };
        let unsaved = self.save().err();
        Ok(Fit { unsaved, ..self.finish(stop) })
    }

    /// Makes the first q(m), within its share of the time.
    fn prepare(&mut self, start: Instant, observer: &mut impl Observer) -> Result<ControlFlow<()>, TrainError> {
        if self.is_taught() {
            return self.find_draws(observer);
        }
        let limit =
            self.settings.time_limit.and_then(|limit| Duration::try_from_secs_f64(PREPARATION_SHARE * limit).ok());
        let until = limit.and_then(|limit| start.checked_add(limit));
        let mut watch = |done, parts| observer.prepare(done, parts);
        let prepared = match self.family.prepare(&mut Preparing { until, watch: &mut watch }) {
            ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
            ControlFlow::Continue(prepared) => prepared,
        };
        if prepared == Prepared::Cut {
            let seconds = start.elapsed().as_secs_f64();
            self.left_out
                .push(format!("the preparation was cut at {seconds:.0} s: some sets of parents were never tried"));
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Whether nothing improves any more.
    fn observe_plateau(&mut self, report: &StepReport) -> Option<Stop> {
        let TrainSettings { plateau, information, .. } = &self.settings;
        let settled = self.warm_up.has_settled(self.position(), information);
        plateau
            .as_ref()
            .filter(|_| settled && !self.is_taught())
            .and_then(|settings| self.plateau.stops(report.elbo, settings))
    }

    /// The mean norm of the gradients of φ since it was last asked for: waits for the device.
    fn mean_gradient_norm(&mut self) -> Result<f64, TrainError> {
        let steps = self.step - std::mem::replace(&mut self.norms_asked, self.step);
        Ok(self.optimiser.take_record(&self.family.device)?.norm_sum / steps as f64)
    }

    /// What was learned so far.
    pub fn finish(mut self, stop: Stop) -> Fit<D> {
        self.family.prepare_in_silence();
        self.into_fit(stop)
    }

    /// Draws that it has learned from.
    pub(super) fn trained_rows(&self) -> u64 {
        self.step.saturating_mul(self.settings.batch as u64)
    }

    fn into_fit(self, stop: Stop) -> Fit<D> {
        let trained_rows = self.trained_rows();
        Fit {
            posterior: Posterior::new(self.family, self.settings.seed, self.warm_up.warning().into_iter().collect())
                .with_left_out(self.left_out.clone())
                .with_trained_rows(trained_rows),
            stop,
            steps: self.step,
            seconds: self.seconds,
            dropped: self.dropped,
            first_dropped: self.first_dropped,
            left_out: self.left_out,
            unsaved: None,
        }
    }

    /// One step of both.
    pub fn step(&mut self) -> Result<StepReport, TrainError> {
        if self.is_taught() {
            if self.find_draws(&mut Silent)?.is_break() {
                return Err(TrainError::NoDraws);
            }
            return self.taught_step();
        }
        let dropped = self.draw_batch()?;
        let rate = self.rate();
        self.move_flow(rate)?;
        let models = self.move_models(rate)?;
        self.step += 1;
        self.check_gradients()?;
        let report = self.report(rate, models, dropped);
        self.warm_up.observe(self.position(), self.step, &self.settings, report.elbo);
        Ok(report)
    }

    /// The learning rate of φ at this step.
    pub(super) fn rate(&self) -> f64 {
        let Position { step, steps } = self.position();
        self.settings.schedule.rate(step, steps)
    }

    /// Draws a batch from q and scores it; what of it is not finite is dropped.
    pub(super) fn draw_batch(&mut self) -> Result<Vec<Dropped>, TrainError> {
        let (seed, step) = (self.settings.seed, self.step);
        let draw = |purpose| Draw { seed, purpose, step };
        self.family.prepare_in_silence();
        self.family.draw_models(draw(Purpose::Models), &mut self.pass, self.settings.batch)?;
        self.pass.plan(&self.family, |_| false)?;
        self.pass.draw_z(draw(Purpose::Reference));
        self.pass.forward(&self.family)?;
        self.pass.density(&self.family)?;
        self.score();
        self.drop_not_finite()
    }

    /// `log p(m)` and `log h` of every row.
    fn score(&mut self) {
        let Self { family, pass, batch, .. } = self;
        for row in 0..pass.rows() {
            batch.log_prior[row] = family.problem.log_prior(pass.word(row));
            batch.log_h[row] = objective::log_h(pass.log_q_theta(row), pass.log_eta[row]);
        }
        pass.block_scores(&mut batch.keys, &mut batch.block_log_h);
    }

    /// Whatever the distribution over models learns from the batch.
    fn move_models(&mut self, flow_rate: f64) -> Result<ModelUpdate, TrainError> {
        let Position { step, steps } = self.position();
        let Self { family, pass, batch, settings, warm_up, .. } = self;
        let scored = ScoredBatch {
            words: &pass.words,
            log_q: &pass.log_q_model,
            log_prior: &batch.log_prior,
            log_h: &batch.log_h,
            kept: &batch.kept,
            blocks: (!batch.keys.is_empty()).then_some(BlockLosses { keys: &batch.keys, log_h: &batch.block_log_h }),
            pace: flow_rate / settings.schedule.peak(),
            information_limit: warm_up.limit(step, steps, family.log_count(), &settings.information),
        };
        Ok(family.models.update(&family.device, &scored).map_err(FamilyError::from)?)
    }

    pub(super) fn report(&self, rate: f64, models: ModelUpdate, dropped: Vec<Dropped>) -> StepReport {
        let Self { pass, batch, .. } = self;
        let kept = (0..pass.rows()).filter(|&row| batch.kept[row]);
        let elbos =
            kept.map(|row| objective::bound_term(batch.log_h[row], pass.log_q_model[row], batch.log_prior[row]));
        let (count, mean, squares) = elbos.fold((0.0, 0.0, 0.0), |(count, mean, squares), elbo: f64| {
            let off = elbo - mean;
            let mean = mean + off / (count + 1.0);
            (count + 1.0, mean, squares + off * (elbo - mean))
        });
        let elbo = if count > 0.0 { mean } else { f64::NAN };
        let elbo_se = f64::sqrt(squares / (count * f64::max(count - 1.0, 1.0)));
        let entropy = -pass.log_q_model.iter().sum::<f64>() / pass.rows() as f64;
        let (step, planned, seconds) = (self.step, self.settings.steps, self.seconds);
        StepReport { step, planned, seconds, elbo, elbo_se, entropy, rate, gradient_norm: None, models, dropped }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

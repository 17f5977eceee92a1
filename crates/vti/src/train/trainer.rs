//! The training loop.

use std::time::Instant;

use super::hold::Hold;
use super::plateau::Plateau;
use super::report::{Dropped, NotFinite, Observer, StepReport, Stop};
use super::{CheckpointSettings, FlowGradient, TrainError, TrainSettings};
use crate::engine::{Engine, Real};
use crate::family::{Family, FamilySettings, Pass};
use crate::flow::Passes;
use crate::models::{BlockScores, Draw, ModelUpdate, ScoredBatch};
use crate::optimise::Optimiser;
use crate::posterior::Posterior;
use crate::problem::Problem;
use crate::random::Purpose;
use crate::store;

/// Steps between trials of both gradient estimators.
const TRY_BOTH_EVERY: u64 = 25;

/// Steps that are tried to find out how many fit into a time limit, the share of the limit they may take, and the share that
/// is planned for: steps get slower or faster as q(m) moves to larger or smaller models.
const TRIAL_STEPS: u64 = 20;
const TRIAL_SHARE: f64 = 0.1;
const PLANNED_SHARE: f64 = 0.9;

/// Gradients that are not finite for so many steps in a row end a run.
const MOST_BAD_GRADIENTS: u64 = 100;

/// Minimises the loss of Corollary 1,
///
/// ```text
/// L(ψ, φ) = E_{m ~ q_ψ} E_z [log h_φ(z | m) + log q_ψ(m) − log p(m)],
/// log h_φ(z | m) = log ν(z_m) − log |det ∇T_φ(z | m)| − log η(θ_m | m),   θ_m = T_φ(z | m),
/// ```
///
/// by stochastic gradients: reparameterised ones for φ, and whatever the distribution over models does for ψ. `−L` is a
/// lower bound of the log evidence, and equal to it where q is the posterior.
///
/// ```
/// use vti::engine::CpuEngine;
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
/// let engine = CpuEngine::<f64>::new(2)?;
/// let settings = TrainSettings { steps: 300, batch: 64, ..TrainSettings::default() };
/// let fit = Trainer::new(&problem, &engine, &FamilySettings::default(), &settings)?.run(&mut Silent)?;
/// let mut posterior = fit.posterior;
/// let probabilities = posterior.model_probabilities(1000)?;
/// assert!((probabilities[0].probability.value - 0.731).abs() < 0.02);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Trainer<'a, P: Problem, E: Engine> {
    pub(super) family: Family<'a, P, E>,
    pub(super) settings: TrainSettings,
    pub(super) optimiser: Optimiser<E>,
    gradient: E::Buffer,
    pass: Pass<E>,
    pub(super) plateau: Plateau,
    pub(super) hold: Hold,
    pub(super) step: u64,
    /// Seconds before this process took over.
    pub(super) seconds: f64,
    pub(super) dropped: u64,
    pub(super) bad_gradients: u64,
    /// Whether the path derivative is in use.
    pub(super) by_path: bool,
    pub(super) first_dropped: Option<Dropped>,
    batch: Buffers<E::Real>,
}

/// What is computed for each row of a batch.
#[derive(Default)]
struct Buffers<T> {
    log_prior: Vec<f64>,
    log_h: Vec<f64>,
    kept: Vec<bool>,
    /// The score, then the derivative with respect to θ.
    theta_gradient: Vec<T>,
    /// Keys and log h of blocks, where each has a flow of its own.
    keys: Vec<u64>,
    block_log_h: Vec<f64>,
}

/// A finished run.
pub struct Fit<'a, P: Problem, E: Engine> {
    /// What was learned.
    pub posterior: Posterior<'a, P, E>,
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
    /// Why the finished run could not be saved, where it should have been.
    pub unsaved: Option<TrainError>,
}

impl<P: Problem, E: Engine> std::fmt::Debug for Fit<'_, P, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fit").field("posterior", &self.posterior).field("stop", &self.stop).finish_non_exhaustive()
    }
}

impl<P: Problem, E: Engine> std::fmt::Debug for Trainer<'_, P, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer").field("settings", &self.settings).field("step", &self.step).finish_non_exhaustive()
    }
}

impl<'a, P: Problem, E: Engine> Trainer<'a, P, E> {
    /// A run that starts from random networks.
    pub fn new(
        problem: &'a P,
        engine: &'a E,
        family: &FamilySettings,
        settings: &TrainSettings,
    ) -> Result<Self, TrainError> {
        settings.check()?;
        let family = Family::new(problem, engine, family, settings.batch, settings.seed)?;
        let passes = match settings.flow_gradient {
            FlowGradient::Reparameterised => Passes::Training,
            FlowGradient::PathDerivative | FlowGradient::Adaptive => Passes::TrainingWithScores,
        };
        let count = family.flow.parameter_count();
        let (rows, numbers) = (settings.batch, settings.batch * family.space().max_dim());
        Ok(Self {
            optimiser: Optimiser::new(engine, count, &settings.optimiser)?,
            gradient: engine.buffer(count),
            pass: family.pass(rows, passes),
            plateau: Plateau::default(),
            hold: Hold::default(),
            step: 0,
            seconds: 0.0,
            dropped: 0,
            bad_gradients: 0,
            by_path: false,
            first_dropped: None,
            batch: Buffers {
                log_prior: vec![0.0; rows],
                log_h: vec![0.0; rows],
                kept: vec![true; rows],
                theta_gradient: vec![E::Real::ZERO; numbers],
                keys: Vec::new(),
                block_log_h: Vec::new(),
            },
            family,
            settings: settings.clone(),
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
    pub fn family(&self) -> &Family<'a, P, E> {
        &self.family
    }

    /// Steps done.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Steps until something ends the run, saving now and then and at the end. A save that fails is tried again the next
    /// time; if the last one fails, the fit says so.
    pub fn run(mut self, observer: &mut impl Observer) -> Result<Fit<'a, P, E>, TrainError> {
        if let Some(checkpoint) = &self.settings.checkpoint {
            store::probe(&checkpoint.path)?;
        }
        let start = Instant::now();
        let Family { models, engine, .. } = &mut self.family;
        if models.prepare(*engine, &mut |done, parts| observer.prepare(done, parts)).is_break() {
            let unsaved = self.save().err();
            return Ok(Fit { unsaved, ..self.finish(Stop::Observer) });
        }
        self.plan_for_time_limit(start)?;
        let before = self.seconds;
        let mut last_saved = 0.0;
        let stop = loop {
            if self.step >= self.settings.steps {
                break Stop::Steps { steps: self.step };
            }
            let mut report = self.step()?;
            let elapsed = start.elapsed().as_secs_f64();
            self.seconds = before + elapsed;
            report.seconds = self.seconds;
            // First of all: a run that is interrupted here must remember this step.
            let plateau = self.observe_plateau(&report);
            observer.models(&self.pass.words, self.family.space().arities().len());
            if observer.step(&report).is_break() {
                break Stop::Observer;
            }
            if let Some(seconds) = self.settings.time_limit.filter(|&limit| elapsed >= limit) {
                break Stop::TimeLimit { seconds };
            }
            if let Some(stop) = plateau {
                break stop;
            }
            if self.settings.checkpoint.as_ref().is_some_and(|checkpoint| elapsed - last_saved >= checkpoint.every) {
                let _ = self.save();
                last_saved = elapsed;
            }
        };
        let unsaved = self.save().err();
        Ok(Fit { unsaved, ..self.finish(stop) })
    }

    /// Whether nothing improves any more.
    fn observe_plateau(&mut self, report: &StepReport) -> Option<Stop> {
        let TrainSettings { plateau, information, steps, .. } = &self.settings;
        let settled = self.hold.has_settled(self.step, *steps, information);
        plateau.as_ref().filter(|_| settled).and_then(|settings| self.plateau.stops(report.elbo, settings))
    }

    /// Finds out how many steps fit into the time limit by taking a few, and starts afresh with as many planned: learning
    /// rates then reach 0 in time, and the run can be repeated by asking for that number of steps.
    fn plan_for_time_limit(&mut self, begun: Instant) -> Result<(), TrainError> {
        let Some(limit) = self.settings.time_limit.filter(|_| self.step == 0) else { return Ok(()) };
        let mut start = self.state();
        let clock = Instant::now();
        let elapsed = || clock.elapsed().as_secs_f64();
        while self.step < TRIAL_STEPS.min(self.settings.steps) && elapsed() < TRIAL_SHARE * limit {
            self.step()?;
        }
        let left = PLANNED_SHARE * limit - begun.elapsed().as_secs_f64();
        let fitting = left / (elapsed() / self.step as f64);
        self.restore(&mut start)?;
        (self.step, self.dropped, self.first_dropped) = (0, 0, None);
        self.settings.steps = self.settings.steps.min((fitting as u64).max(1));
        Ok(())
    }

    /// What was learned so far.
    pub fn finish(self, stop: Stop) -> Fit<'a, P, E> {
        Fit {
            posterior: Posterior::new(self.family, self.settings.seed, self.hold.warning().into_iter().collect()),
            stop,
            steps: self.step,
            seconds: self.seconds,
            dropped: self.dropped,
            first_dropped: self.first_dropped,
            unsaved: None,
        }
    }

    /// One step of both.
    pub fn step(&mut self) -> Result<StepReport, TrainError> {
        let (seed, step) = (self.settings.seed, self.step);
        let draw = |purpose| Draw { seed, purpose, step };
        self.family.draw_models(draw(Purpose::Models), &mut self.pass, self.settings.batch);
        self.pass.plan(&self.family, |_| false)?;
        self.pass.draw_z(draw(Purpose::Reference));
        self.pass.forward(&self.family)?;
        self.pass.density(&self.family)?;
        self.score();
        let dropped = self.drop_not_finite()?;
        let rate = self.settings.schedule.rate(step, self.settings.steps);
        let gradient_norm = self.move_flow(rate)?;
        let models = self.move_models(rate);
        self.count_bad_gradients(gradient_norm.is_finite() && models.gradient_norm.is_finite())?;
        self.step += 1;
        let report = self.report(rate, gradient_norm, models, dropped);
        self.hold.observe(self.step, &self.settings, report.elbo);
        Ok(report)
    }

    /// `log p(m)` and `log h` of every row.
    fn score(&mut self) {
        let Self { family, pass, batch, .. } = self;
        for row in 0..pass.rows() {
            batch.log_prior[row] = family.problem.log_prior(pass.word(row));
            batch.log_h[row] = pass.log_q_theta(row) - pass.log_eta[row];
        }
        pass.block_scores(&mut batch.keys, &mut batch.block_log_h);
    }

    /// Finds rows that are not finite and takes them out of the flow's batch.
    fn drop_not_finite(&mut self) -> Result<Vec<Dropped>, TrainError> {
        let mut dropped = Vec::new();
        for row in 0..self.pass.rows() {
            let wrong = self.not_finite(row);
            self.batch.kept[row] = wrong.is_none();
            if let Some(what) = wrong {
                let word = self.pass.word(row);
                dropped.push(Dropped { row, model: word.into(), label: self.family.space().label(word), what });
            }
        }
        if let Some(first) = dropped.first() {
            let (count, batch, limit) = (dropped.len(), self.pass.rows(), self.settings.max_dropped);
            if count as f64 > limit * batch as f64 {
                let first = Box::new(first.clone());
                return Err(TrainError::TooManyDropped { step: self.step, dropped: count, batch, limit, first });
            }
            self.dropped += count as u64;
            self.first_dropped.get_or_insert_with(|| first.clone());
            // One row that is not finite would spoil the sums over all. Without coordinates it takes part in none.
            let kept = &self.batch.kept;
            self.pass.plan(&self.family, |row| !kept[row])?;
            self.pass.forward(&self.family)?;
        }
        Ok(dropped)
    }

    /// What about a row is not finite.
    fn not_finite(&self, row: usize) -> Option<NotFinite> {
        let pass = &self.pass;
        let coordinate = |numbers: &[f64]| {
            // In the engine's precision, which may be able to hold less.
            let bad = pass.places(row).position(|place| !E::Real::from_f64(numbers[place]).is_finite())?;
            Some(pass.active(row)[bad])
        };
        if let Some(coordinate) = coordinate(&pass.theta) {
            return Some(NotFinite::Theta { coordinate });
        }
        if !pass.log_det[row].is_finite() {
            return Some(NotFinite::LogDeterminant);
        }
        if !pass.log_q_model[row].is_finite() {
            return Some(NotFinite::LogModel);
        }
        if !self.batch.log_prior[row].is_finite() {
            return Some(NotFinite::LogPrior);
        }
        if !pass.log_eta[row].is_finite() {
            return Some(NotFinite::LogDensity);
        }
        coordinate(&pass.gradient).map(|coordinate| NotFinite::Gradient { coordinate })
    }

    /// A step of φ against the gradient of the mean of log h over the kept rows; its norm.
    fn move_flow(&mut self, rate: f64) -> Result<f64, TrainError> {
        match self.settings.flow_gradient {
            FlowGradient::Reparameterised => self.by_path = false,
            FlowGradient::PathDerivative => self.by_path = true,
            FlowGradient::Adaptive if self.step.is_multiple_of(TRY_BOTH_EVERY) => self.choose_gradient()?,
            FlowGradient::Adaptive => {}
        }
        self.find_gradient(self.by_path)?;
        let Self { family, optimiser, gradient, .. } = self;
        Ok(optimiser.update(family.engine, rate, gradient, &mut family.parameters))
    }

    /// Gradients of either half that are not finite change nothing; too many of them in a row end the run.
    fn count_bad_gradients(&mut self, finite: bool) -> Result<(), TrainError> {
        self.bad_gradients = if finite { 0 } else { self.bad_gradients + 1 };
        if self.bad_gradients < MOST_BAD_GRADIENTS {
            return Ok(());
        }
        Err(TrainError::Gradient { step: self.step, steps: self.bad_gradients })
    }

    /// Tries both estimators on the batch at hand; a backward pass uses the forward one up, so each try needs another.
    fn choose_gradient(&mut self) -> Result<(), TrainError> {
        let mut norms = [0.0; 2];
        for (by_path, norm) in [false, true].into_iter().zip(&mut norms) {
            self.find_gradient(by_path)?;
            *norm = self.family.engine.norm(&self.gradient);
            self.pass.forward(&self.family)?;
        }
        // Not a number is not shorter.
        self.by_path = norms[1] < norms[0];
        Ok(())
    }

    /// The gradient of the mean of log h over the kept rows, of the tempered target at first.
    fn find_gradient(&mut self, by_path: bool) -> Result<(), TrainError> {
        let Self { family, pass, batch, gradient, settings, step, .. } = self;
        let beta = settings.temper.beta(*step, settings.steps);
        let share = 1.0 / batch.kept.iter().filter(|&&kept| kept).count().max(1) as f64;
        if by_path {
            pass.score(family, &mut batch.theta_gradient)?;
        }
        for row in 0..pass.rows() {
            for i in pass.places(row) {
                // ∂ log h/∂θ at fixed φ: the score of q, where it is wanted, minus that of η.
                let score = if by_path { batch.theta_gradient[i].to_f64() } else { 0.0 };
                batch.theta_gradient[i] = E::Real::from_f64(share * (score - beta * pass.gradient[i]));
            }
        }
        let kept = &batch.kept;
        let by_log_det = |row: usize| E::Real::from_f64(if by_path || !kept[row] { 0.0 } else { -share });
        Ok(pass.backward(family, &batch.theta_gradient, by_log_det, gradient)?)
    }

    /// Whatever the distribution over models learns from the batch.
    fn move_models(&mut self, flow_rate: f64) -> ModelUpdate {
        let Self { family, pass, batch, settings, step, hold, .. } = self;
        let scored = ScoredBatch {
            words: &pass.words,
            log_q: &pass.log_q_model,
            log_prior: &batch.log_prior,
            log_h: &batch.log_h,
            kept: &batch.kept,
            blocks: (!batch.keys.is_empty()).then_some(BlockScores { keys: &batch.keys, log_h: &batch.block_log_h }),
            pace: flow_rate / settings.schedule.peak(),
            information_limit: hold.limit(*step, settings.steps, family.log_count(), &settings.information),
        };
        family.models.update(family.engine, &scored)
    }

    fn report(&self, rate: f64, gradient_norm: f64, models: ModelUpdate, dropped: Vec<Dropped>) -> StepReport {
        let Self { pass, batch, .. } = self;
        let kept = (0..pass.rows()).filter(|&row| batch.kept[row]);
        let elbos = kept.map(|row| batch.log_prior[row] - pass.log_q_model[row] - batch.log_h[row]);
        let (count, mean, squares) = elbos.fold((0.0, 0.0, 0.0), |(count, mean, squares), elbo: f64| {
            let off = elbo - mean;
            let mean = mean + off / (count + 1.0);
            (count + 1.0, mean, squares + off * (elbo - mean))
        });
        let elbo = if count > 0.0 { mean } else { f64::NAN };
        let elbo_se = f64::sqrt(squares / (count * f64::max(count - 1.0, 1.0)));
        let entropy = -pass.log_q_model.iter().sum::<f64>() / pass.rows() as f64;
        let (step, seconds) = (self.step, self.seconds);
        StepReport { step, seconds, elbo, elbo_se, entropy, rate, gradient_norm, models, dropped }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

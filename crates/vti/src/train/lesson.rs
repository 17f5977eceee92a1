//! Learning from draws of the posterior that did not come from q: what a second opinion found, q learns.
//!
//! Training minimises a divergence under q, which never sees a model or a mode that q has lost. Draws of the posterior have it: the
//! forward Kullback–Leibler divergence `−E_p[log q(m, θ)]` (forward KL, up to a constant) brings q there (its gradient is in [`objective`](crate::objective)), q(m) first and then
//! φ, which follows both divergences at once (compare the wake phase of Bornschein and Bengio 2015, and Naesseth, Lindsten and
//! Blei 2020).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Observer, TemperSettings, TrainError, TrainSettings, Trainer};
use crate::device::Device;
use crate::family::{Family, FamilyError, Pass};
use crate::flow::Passes;
use crate::models::{BlockScores, Draw, ModelUpdate};
use crate::optimise::{Schedule, SettingError};
use crate::posterior::{Draws, Posterior};
use crate::random::{Purpose, Weighted};
use crate::simd::Real;
use crate::space::Model;

/// How q learns from draws of the posterior.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LessonSettings {
    /// How often at most it is checked, taught and checked again: no longer than lessons raise the bound.
    pub rounds: usize,
    /// Steps of φ.
    pub steps: u64,
    /// Its learning rate.
    pub schedule: Schedule,
    /// Draws of the posterior in a step, as a share of those of q: inverting an autoregressive flow takes a pass for each coordinate.
    pub share: f64,
}

/// Blocks need so much fewer steps ([`TrainSettings::blockwise`]).
const STEPS_OF_BLOCKS: u64 = 5;

impl Default for LessonSettings {
    fn default() -> Self {
        Self {
            rounds: 3,
            steps: 1000,
            schedule: Schedule::WarmupDecay { rate: 1e-3, warmup: 0.02, hold: 0.4 },
            share: 0.125,
        }
    }
}

impl LessonSettings {
    /// Steps of φ of a family: fewer where blocks have flows of their own.
    pub(crate) fn steps_of<D: Device>(&self, family: &Family<D>) -> u64 {
        if family.is_blockwise() { self.steps.div_ceil(STEPS_OF_BLOCKS) } else { self.steps }
    }

    /// Refuses settings that make no sense.
    pub fn check(&self) -> Result<(), SettingError> {
        SettingError::check("lesson.steps", self.steps as f64, self.steps > 0, "at least 1")?;
        let is_share = self.share > 0.0 && self.share <= 1.0;
        SettingError::check("lesson.share", self.share, is_share, "above 0 and at most 1")?;
        self.schedule.check()
    }
}

/// What was found without q.
#[derive(Clone, Debug)]
pub enum Lesson<'a> {
    /// Draws of the posterior.
    Draws {
        /// Words with their probabilities, which sum to 1.
        words: Vec<(Model, f64)>,
        /// Draws of models and parameters.
        draws: &'a Draws,
        /// Their log weights.
        log_weights: &'a [f64],
    },
    /// Scores of blocks under their keys. Parameters then learn as they always do, from those keys.
    Blocks(&'a BlockScores),
}

impl<'a> Lesson<'a> {
    /// q(m) learns it; whether it can.
    fn teach_models<D: Device>(&self, family: &mut Family<D>, seed: u64) -> Result<bool, FamilyError> {
        match self {
            Self::Blocks(scores) => Ok(family.models.fit_blocks(&family.device, scores)),
            Self::Draws { words, .. } => {
                let draw = Draw { seed, purpose: Purpose::Lesson, step: u64::from(u32::MAX) };
                let symbols: Vec<u16> = words.iter().flat_map(|(word, _)| word.iter().copied()).collect();
                let weights: Vec<f64> = words.iter().map(|(_, weight)| *weight).collect();
                Ok(family.models.fit(&family.device, draw, &symbols, &weights)?)
            }
        }
    }

    /// Draws with what they count, if any does.
    fn draws(&self) -> Option<(&'a Draws, Weighted)> {
        match self {
            Self::Blocks(_) => None,
            Self::Draws { draws, log_weights, .. } => {
                Some((draws, Weighted::new(log_weights.iter().map(|log_weight| log_weight.exp()))?))
            }
        }
    }
}

/// What the forward divergence counts at last, beside the other; at first it counts as much.
const LAST_FORWARD: f64 = 0.3;

/// What is added to the seed of a run, whose batches are not drawn again.
const LESSON_SEED: u64 = 0x1e55_0000;

/// Teaches q a lesson; the observer may end it early. Words and parameters must be those of the posterior's problem.
pub fn learn<D: Device>(
    posterior: Posterior<D>,
    lesson: &Lesson<'_>,
    settings: &LessonSettings,
    observer: &mut impl Observer,
) -> Result<Posterior<D>, TrainError> {
    settings.check()?;
    let taught = lesson.draws();
    if taught.is_none() && matches!(lesson, Lesson::Draws { .. }) {
        return Ok(posterior);
    }
    let (left_out, trained_rows) = (posterior.left_out().to_vec(), posterior.trained_rows());
    let (mut family, seed, warnings) = posterior.into_parts();
    let is_fitted = lesson.teach_models(&mut family, seed)?;
    // Warnings are of models that may have been given up: all that were found are there again.
    let warnings = if is_fitted { Vec::new() } else { warnings };
    let steps = settings.steps_of(&family);
    let training = TrainSettings {
        // Draws of its own.
        seed: seed.wrapping_add(LESSON_SEED),
        batch: family.rows(),
        steps,
        schedule: settings.schedule.clone(),
        temper: TemperSettings::NONE,
        max_dropped: 1.0,
        ..TrainSettings::default()
    };
    let mut trainer = Trainer::with_family(family, &training)?;
    let rows = (settings.share * training.batch as f64).ceil() as usize;
    let mut replay = match taught {
        Some((draws, weighted)) => Some(Replay::new(&trainer.family, rows, Cow::Borrowed(draws), weighted)?),
        None => None,
    };
    while trainer.steps() < steps {
        let rate = trainer.rate();
        if trainer.is_taught() {
            let report = trainer.replayed_step(replay.as_mut())?;
            if observer.step(&report).is_break() {
                break;
            }
            continue;
        }
        let dropped = trainer.draw_batch()?;
        trainer.find_flow_gradient()?;
        if let Some(replay) = &mut replay {
            replay.gradient(&trainer.family, Draw { seed, purpose: Purpose::Lesson, step: trainer.steps() })?;
            // It fades, because gradients of the other divergence are better, but never goes: without it a q that has learned
            // several modes would settle on one again.
            let forward = 1.0 - (1.0 - LAST_FORWARD) * trainer.steps() as f64 / steps as f64;
            trainer.family.device.combine(forward, &replay.gradient, 1.0, &mut trainer.gradient)?;
        }
        trainer.follow_gradient(rate)?;
        trainer.step += 1;
        // What it has learned by then is checked like anything else.
        let is_stuck = trainer.check_gradients().is_err();
        if observer.step(&trainer.report(rate, ModelUpdate { scale: 0.0 }, dropped)).is_break() || is_stuck {
            break;
        }
    }
    Ok(Posterior::new(trainer.family, seed, warnings).with_left_out(left_out).with_trained_rows(trained_rows))
}

/// Draws of the posterior, from which batches are taken, and the gradient of their forward divergence.
pub(super) struct Replay<'a, D: Device> {
    draws: Cow<'a, Draws>,
    weighted: Weighted,
    rows: usize,
    pass: Pass<D>,
    by_theta: Vec<D::Real>,
    kept: Vec<bool>,
    pub(super) gradient: D::Buffer,
}

impl<'a, D: Device> Replay<'a, D> {
    pub(super) fn new(
        family: &Family<D>,
        rows: usize,
        draws: Cow<'a, Draws>,
        weighted: Weighted,
    ) -> Result<Self, FamilyError> {
        Ok(Self {
            draws,
            weighted,
            rows,
            pass: family.pass(rows, Passes::TrainingWithScores)?,
            by_theta: vec![D::Real::ZERO; rows * family.space().max_dim()],
            kept: vec![true; rows],
            gradient: family.device.buffer(family.flow.parameter_count())?,
        })
    }

    /// The gradient of `−log q_φ(θ | m)`, on average over a batch.
    pub(super) fn gradient(&mut self, family: &Family<D>, draw: Draw) -> Result<(), FamilyError> {
        self.take_batch(family, draw)?;
        // z at which the flow gives θ, and what it leaves behind there for its gradients.
        self.pass.inverse(family)?;
        self.drop_not_finite();
        self.pass.forward(family)?;
        self.pass.score(family, &mut self.by_theta)?;
        let share = D::Real::from_f64(1.0 / self.rows as f64);
        for row in 0..self.rows {
            let kept = self.kept[row];
            for place in self.pass.places(row) {
                let by_theta = &mut self.by_theta[place];
                *by_theta = if kept && by_theta.is_finite() { share * *by_theta } else { D::Real::ZERO };
            }
        }
        let kept = &self.kept;
        let by_log_det = |row: usize| if kept[row] { share } else { D::Real::ZERO };
        self.pass.backward(family, &self.by_theta, by_log_det, &mut self.gradient)
    }

    /// Draws models with their parameters, seen from the flow.
    fn take_batch(&mut self, family: &Family<D>, draw: Draw) -> Result<(), FamilyError> {
        let Self { draws, weighted, rows, pass, .. } = self;
        let chosen: Vec<usize> = (0..*rows).map(|row| weighted.draw(&mut draw.row(row))).collect();
        pass.resize(*rows);
        pass.words.clear();
        chosen.iter().for_each(|&place| pass.words.extend_from_slice(draws.word(place)));
        pass.plan(family, |_| false)?;
        for (row, &place) in chosen.iter().enumerate() {
            let theta = draws.theta(place);
            let wrong = |expected| FamilyError::Point {
                point: place,
                reason: format!("{} parameters, but the model has {expected}", theta.len()),
            };
            pass.take_natural(family, row, theta).map_err(wrong)?;
        }
        Ok(())
    }

    /// Rows that the flow cannot invert take no part.
    fn drop_not_finite(&mut self) {
        for row in 0..self.rows {
            let places: Vec<usize> = self.pass.places(row).collect();
            let z = &mut self.pass.z;
            self.kept[row] = places.iter().all(|&place| z[place].is_finite());
            if !self.kept[row] {
                places.iter().for_each(|&place| z[place] = D::Real::ZERO);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::device::Cpu;
    use crate::family::{FamilySettings, FlowKind};
    use crate::posterior::Point;
    use crate::problem;
    use crate::space::OneOf;

    /// A posterior after a few steps, so that no gradient is 0, and as many draws, moved away from where q has them.
    fn taught() -> (Posterior<Cpu<f64>>, Draws) {
        let problem = problem::from_fn(OneOf::with_dims(&[1, 3]).unwrap(), |_, theta, gradient| {
            gradient.iter_mut().zip(theta).for_each(|(gradient, x)| *gradient = -x);
            -0.5 * theta.iter().map(|x| x * x).sum::<f64>()
        });
        let settings = TrainSettings { steps: 20, batch: 32, ..TrainSettings::default() };
        let flow = FlowKind::Spline { layers: 2, blocks: 1, hidden: 16 };
        let family = FamilySettings { flow, ..FamilySettings::default() };
        let trainer = Trainer::new(Arc::new(problem), Cpu::<f64>::new(2).unwrap(), &family, &settings).unwrap();
        let posterior = trainer.run(&mut crate::train::Silent).unwrap().posterior;
        let mut draws = posterior.draw(40, 0).unwrap();
        draws.theta.iter_mut().for_each(|x| *x = 0.7 * *x + 0.4);
        (posterior, draws)
    }

    #[test]
    fn the_gradient_of_the_forward_divergence_is_that_of_log_densities() {
        let (mut posterior, draws) = taught();
        let weighted = Weighted::new((0..draws.len()).map(|_| 1.0)).unwrap();
        let draw = Draw { seed: 5, purpose: Purpose::Lesson, step: 0 };
        let chosen: Vec<Point> = (0..24)
            .map(|row| weighted.draw(&mut draw.row(row)))
            .map(|place| Point { model: draws.model(place), theta: draws.theta(place).to_vec() })
            .collect();
        let mut replay = Replay::new(posterior.family(), 24, Cow::Borrowed(&draws), weighted).unwrap();
        replay.gradient(posterior.family(), draw).unwrap();
        let device = posterior.family().device.clone();
        let mut parameters = vec![0.0; posterior.family().flow.parameter_count()];
        let mut gradient = parameters.clone();
        device.read(&posterior.family().parameters, &mut parameters).unwrap();
        device.read(&replay.gradient, &mut gradient).unwrap();
        let mut divergence = |place: usize, step: f64| {
            let mut moved = parameters.clone();
            moved[place] += step;
            device.write(&moved, &mut posterior.family.parameters).unwrap();
            -posterior.log_q(&chosen).unwrap().iter().sum::<f64>() / chosen.len() as f64
        };
        let places: Vec<usize> = (0..gradient.len()).filter(|&place| gradient[place] != 0.0).collect();
        let mut largest = 0.0;
        for &place in places.iter().step_by(places.len() / 80 + 1) {
            let numeric = (divergence(place, 1e-5) - divergence(place, -1e-5)) / 2e-5;
            assert!((numeric - gradient[place]).abs() < 1e-6, "{place}: {} {numeric}", gradient[place]);
            largest = f64::max(largest, numeric.abs());
        }
        assert!(largest > 1e-2, "nothing was tested: {largest}");
    }

    #[test]
    fn a_lesson_without_weight_changes_nothing() {
        let (posterior, draws) = taught();
        let log_weights = vec![f64::NEG_INFINITY; draws.len()];
        let lesson = Lesson::Draws { words: Vec::new(), draws: &draws, log_weights: &log_weights };
        let before = posterior.draw(5, 3).unwrap();
        let mut silent = crate::train::Silent;
        let after = learn(posterior, &lesson, &LessonSettings::default(), &mut silent).unwrap();
        assert_eq!(after.draw(5, 3).unwrap().theta[..2], before.theta[..2]);
    }
}

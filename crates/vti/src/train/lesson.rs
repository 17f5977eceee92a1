//! Learning from draws of the posterior that did not come from q: what a second opinion found, q learns.
//!
//! Training minimises a divergence under q, which never sees a model or a mode that q has lost. Draws of the posterior have it: the
//! forward divergence `−E_p[log q(m, θ)]` brings q there (its gradient is in [`objective`](crate::objective)), q(m) first and then
//! φ, which follows both divergences at once (compare the wake phase of Bornschein and Bengio 2015, and Naesseth, Lindsten and
//! Blei 2020).

use serde::{Deserialize, Serialize};

use super::{Observer, TemperSettings, TrainError, TrainSettings, Trainer};
use crate::device::Device;
use crate::family::{Family, FamilyError, Pass};
use crate::flow::Passes;
use crate::models::{Draw, ModelUpdate};
use crate::optimise::{Schedule, SettingError};
use crate::posterior::{Draws, Posterior};
use crate::random::{Purpose, Weighted};
use crate::simd::Real;

/// How q learns from draws of the posterior.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LessonSettings {
    /// How often at most it is checked, taught and checked again.
    pub rounds: usize,
    /// Steps of φ.
    pub steps: u64,
    /// Its learning rate.
    pub schedule: Schedule,
    /// Draws of the posterior in a step, as a share of those of q: inverting an autoregressive flow takes a pass for each coordinate.
    pub share: f64,
}

impl Default for LessonSettings {
    fn default() -> Self {
        Self {
            rounds: 1,
            steps: 1000,
            schedule: Schedule::WarmupDecay { rate: 1e-3, warmup: 0.02, hold: 0.4 },
            share: 0.125,
        }
    }
}

impl LessonSettings {
    /// Refuses settings that make no sense.
    pub fn check(&self) -> Result<(), SettingError> {
        SettingError::check("lesson.steps", self.steps as f64, self.steps > 0, "at least 1")?;
        let is_share = self.share > 0.0 && self.share <= 1.0;
        SettingError::check("lesson.share", self.share, is_share, "above 0 and at most 1")?;
        self.schedule.check()
    }
}

/// What is added to the seed of a run, whose batches are not drawn again.
const LESSON_SEED: u64 = 0x1e55_0000;

/// Teaches q draws of the posterior with these log weights; the observer may end it early. Words and parameters must be those of the
/// posterior's problem.
pub fn learn<D: Device>(
    posterior: Posterior<D>,
    draws: &Draws,
    log_weights: &[f64],
    settings: &LessonSettings,
    observer: &mut impl Observer,
) -> Result<Posterior<D>, TrainError> {
    settings.check()?;
    let weights: Vec<f64> = log_weights.iter().map(|log_weight| log_weight.exp()).collect();
    let Some(weighted) = Weighted::new(weights.iter().copied()) else { return Ok(posterior) };
    let (mut family, seed, warnings) = posterior.into_parts();
    let draw = Draw { seed, purpose: Purpose::Lesson, step: u64::from(u32::MAX) };
    let is_fitted = family.models.fit(&family.device, draw, &draws.words, &weights).map_err(FamilyError::from)?;
    // Warnings are of models that may have been given up: all that were found are there again.
    let warnings = if is_fitted { Vec::new() } else { warnings };
    let training = TrainSettings {
        // Draws of its own.
        seed: seed.wrapping_add(LESSON_SEED),
        batch: family.rows(),
        steps: settings.steps,
        schedule: settings.schedule.clone(),
        temper: TemperSettings::NONE,
        max_dropped: 1.0,
        ..TrainSettings::default()
    };
    let mut trainer = Trainer::with_family(family, &training)?;
    let rows = (settings.share * training.batch as f64).ceil() as usize;
    let mut replay = Replay::new(&trainer.family, rows, draws, weighted)?;
    while trainer.steps() < settings.steps {
        let rate = trainer.rate();
        let dropped = trainer.draw_batch()?;
        trainer.find_flow_gradient()?;
        let step = Draw { seed, purpose: Purpose::Lesson, step: trainer.steps() };
        replay.gradient(&trainer.family, step)?;
        trainer.family.device.combine(1.0, &replay.gradient, 1.0, &mut trainer.gradient)?;
        trainer.follow_gradient(rate)?;
        trainer.step += 1;
        trainer.check_gradients()?;
        if observer.step(&trainer.report(rate, ModelUpdate { scale: 0.0 }, dropped)).is_break() {
            break;
        }
    }
    Ok(Posterior::new(trainer.family, seed, warnings))
}

/// Draws of the posterior, from which batches are taken, and the gradient of their forward divergence.
struct Replay<'a, D: Device> {
    draws: &'a Draws,
    weighted: Weighted,
    rows: usize,
    pass: Pass<D>,
    by_theta: Vec<D::Real>,
    kept: Vec<bool>,
    gradient: D::Buffer,
}

impl<'a, D: Device> Replay<'a, D> {
    fn new(family: &Family<D>, rows: usize, draws: &'a Draws, weighted: Weighted) -> Result<Self, FamilyError> {
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
    fn gradient(&mut self, family: &Family<D>, draw: Draw) -> Result<(), FamilyError> {
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

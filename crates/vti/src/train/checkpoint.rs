//! Saving a run and taking it up again.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{CheckpointSettings, Dropped, TrainError, TrainSettings, Trainer};
use crate::device::{Device, DeviceError};
use crate::posterior::Saved;
use crate::problem::Problem;
use crate::state::{State, StateError};
use crate::store::{self, StoreError};

/// What a checkpoint says about the run beside its arrays.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    settings: TrainSettings,
    steps: u64,
    seconds: f64,
    dropped: u64,
    first_dropped: Option<Dropped>,
    /// The most steps that a time limit may come to; those of the settings where there never was one.
    #[serde(default)]
    most_steps: Option<u64>,
    #[serde(default)]
    ahead: i64,
    #[serde(default)]
    left_out: Vec<String>,
}

/// Seconds that make a step slow: whoever wants the run to stop may not wait for its end.
const SLOW: f64 = 0.5;

/// The largest share of the time that goes into saving after every slow step.
const SHARE: f64 = 0.1;

/// When a run is saved.
pub(super) struct Saving {
    start: Instant,
    /// When the last step ended, when it was saved last, and how long that took.
    stepped: f64,
    last: f64,
    took: f64,
}

impl Saving {
    /// Of a run that steps from now on.
    pub(super) fn new(start: Instant) -> Self {
        let now = start.elapsed().as_secs_f64();
        Self { start, stepped: now, last: now, took: 0.0 }
    }

    /// Whether it is time after a step: now and then, and after slow ones.
    pub(super) fn is_due(&mut self, wanted: Option<&CheckpointSettings>) -> bool {
        let now = self.start.elapsed().as_secs_f64();
        let step = now - std::mem::replace(&mut self.stepped, now);
        let since = now - self.last;
        wanted.is_some_and(|wanted| since >= wanted.every || step >= SLOW && self.took <= SHARE * since)
    }

    /// It was saved.
    pub(super) fn note(&mut self) {
        self.last = self.start.elapsed().as_secs_f64();
        self.took = self.last - std::mem::replace(&mut self.stepped, self.last);
    }
}

impl<D: Device> Trainer<D> {
    /// A run that goes on from a checkpoint, with its settings; the result is that of a run that was never interrupted,
    /// bit for bit.
    pub fn resume(problem: Arc<dyn Problem>, device: D, path: &Path) -> Result<Self, TrainError> {
        Self::parse(problem, device, path, &store::bytes(path)?)
    }

    /// The same of the bytes of a checkpoint, which is kept at `path`.
    pub fn parse(problem: Arc<dyn Problem>, device: D, path: &Path, bytes: &[u8]) -> Result<Self, TrainError> {
        let (saved, mut state) = Saved::parse::<D>(path, bytes, &*problem)?;
        let wrong = |reason: String| StoreError::Content { path: path.into(), reason };
        let run =
            saved.run.clone().ok_or_else(|| wrong("this is a finished posterior, not a checkpoint of a run".into()))?;
        let run: Run = serde_json::from_value(run).map_err(|error| wrong(error.to_string()))?;
        let mut settings = run.settings;
        // A run that was moved is saved where it is now.
        if let Some(checkpoint) = &mut settings.checkpoint {
            checkpoint.path = path.into();
        }
        if (settings.batch, settings.seed) != (saved.rows, saved.seed) {
            return Err(wrong("the settings of the run are not those of what it learned".into()).into());
        }
        settings.check()?;
        let family = saved.family(problem, device, &state)?;
        let mut trainer = Self::with_family(family, &settings)?;
        trainer.restore(&mut state)?;
        (trainer.step, trainer.norms_asked, trainer.seconds) = (run.steps, run.steps, run.seconds);
        (trainer.dropped, trainer.first_dropped, trainer.left_out) = (run.dropped, run.first_dropped, run.left_out);
        (trainer.most_steps, trainer.ahead) = (run.most_steps.unwrap_or(settings.steps), run.ahead);
        Ok(trainer)
    }

    /// Everything that changes from step to step.
    pub(super) fn state(&self) -> Result<State, DeviceError> {
        let mut state = State::default();
        state.put_state("family", self.family.state()?);
        state.put_state("optimiser", self.optimiser.state(&self.family.device)?);
        state.put_state("plateau", self.plateau.state());
        state.put_state("hold", self.warm_up.state());
        state.put("by_path", &[f64::from(u8::from(self.by_path))]);
        Ok(state)
    }

    pub(super) fn restore(&mut self, state: &mut State) -> Result<(), StateError> {
        self.family.restore(&mut state.take_state("family"))?;
        self.optimiser.restore(&self.family.device, &mut state.take_state("optimiser"))?;
        self.plateau.restore(&mut state.take_state("plateau"))?;
        self.warm_up.restore(&mut state.take_state("hold"))?;
        self.by_path = state.take_number("by_path")? != 0.0;
        Ok(())
    }

    /// Writes a checkpoint, where one is wanted.
    pub fn save(&self) -> Result<(), TrainError> {
        let Some(checkpoint) = &self.settings.checkpoint else { return Ok(()) };
        let run = Run {
            settings: self.settings.clone(),
            steps: self.step,
            seconds: self.seconds,
            dropped: self.dropped,
            first_dropped: self.first_dropped.clone(),
            most_steps: Some(self.most_steps),
            ahead: self.ahead,
            left_out: self.left_out.clone(),
        };
        let wrong =
            |error: serde_json::Error| StoreError::Content { path: checkpoint.path.clone(), reason: error.to_string() };
        let run = serde_json::to_value(run).map_err(wrong)?;
        let said = (self.warm_up.warning().into_iter().collect(), self.left_out.clone());
        let saved = Saved::of(&self.family, self.settings.seed, said, Some(run));
        Saved { trained_rows: self.trained_rows(), ..saved }.write(&checkpoint.path, &self.state()?)?;
        Ok(())
    }
}

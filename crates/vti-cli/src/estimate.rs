//! What a run will need, said before it starts.

use std::time::{Duration, Instant};

use vti::device::Device;
use vti::models::ModelsSettings;
use vti::train::{TrainError, TrainSettings, Trainer};

use crate::memory;
use crate::progress::duration;

/// What a run will need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) bytes: f64,
    /// None where finding out would take long itself.
    pub(crate) seconds: Option<f64>,
}

/// Steps that are timed at most, and how long at most.
const STEPS: u64 = 10;
const TIME: Duration = Duration::from_millis(500);

impl Estimate {
    /// Times a few steps of a trainer that is then thrown away, unless there is much to prepare before the first.
    pub(crate) fn new<D: Device>(bytes: f64, mut trainer: Trainer<D>) -> Result<Self, TrainError> {
        if matches!(trainer.family().settings().models, ModelsSettings::Modular(_)) {
            return Ok(Self { bytes, seconds: None });
        }
        let TrainSettings { steps: planned, time_limit, .. } = *trainer.settings();
        // The first step is slower than the others.
        trainer.step()?;
        let (start, mut steps) = (Instant::now(), 0u64);
        while steps < STEPS.min(planned.div_ceil(50)) && start.elapsed() < TIME {
            trainer.step()?;
            steps += 1;
        }
        let per_step = start.elapsed().as_secs_f64() / steps.max(1) as f64;
        let seconds = per_step * planned as f64;
        Ok(Self { bytes, seconds: Some(time_limit.map_or(seconds, |limit| limit.min(seconds))) })
    }

    pub(crate) fn text(&self) -> String {
        let time =
            self.seconds.map_or_else(String::new, |seconds| format!(", about {} of training", duration(seconds)));
        format!("about {} of memory{time}", memory::text(self.bytes))
    }
}

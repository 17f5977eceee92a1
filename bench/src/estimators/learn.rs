//! A distribution over models that learns a known target, without a flow.

use std::sync::Arc;

use anyhow::Result;
use vti::device::Cpu;
use vti::models::{Draw, ModelsSettings, build};
use vti::problem::Problem;
use vti::random::{Purpose, Stream};

use crate::scored::{Models, Scored, information_limit, pace};

/// What is learned, and how long.
pub(crate) struct Task<'a> {
    pub(crate) models: &'a Arc<dyn Problem>,
    /// `log p(m, y)` up to a constant.
    pub(crate) log_target: &'a dyn Fn(&[u16]) -> f64,
    /// Standard deviation of what is seen of it, in nats.
    pub(crate) noise: f64,
    pub(crate) rows: usize,
    pub(crate) steps: u64,
}

impl Task<'_> {
    /// The distribution after all steps.
    pub(crate) fn learn(&self, device: &Cpu<f32>, settings: &ModelsSettings, seed: u64) -> Result<Models> {
        let Self { models, log_target, noise, rows, steps } = *self;
        let space = models.space();
        let mut models = build(device, models, false, settings, rows, seed)?.models;
        let mut batch = Scored::new(space, rows);
        let limit = information_limit(space, steps);
        for step in 0..steps {
            batch.draw(device, &models, Draw { seed, purpose: Purpose::Models, step })?;
            batch.score(|row, word| {
                let error = noise * Stream::new(seed, Purpose::Reference, step, row as u64).normal();
                error - log_target(word)
            });
            models.update(device, &batch.batch(pace(step, steps), limit))?;
        }
        Ok(models)
    }
}

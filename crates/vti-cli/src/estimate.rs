//! What a run will need, said before it starts.

use std::time::{Duration, Instant};

use vti::device::Device;
use vti::family::{FamilySettings, PreconditionerSettings, Structure};
use vti::models::ModelsSettings;
use vti::train::{TrainError, TrainSettings, Trainer};

use crate::progress::duration;
use crate::question::Question;
use crate::session::Session;

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

/// Numbers that a spline needs for each coordinate while it is computed.
const SPLINE: usize = 100;

impl Estimate {
    /// Times a few steps of a trainer that is then thrown away, unless there is much to prepare before the first.
    pub(crate) fn new<Q: Question, D: Device>(
        session: &Session<Q>,
        mut trainer: Trainer<D>,
    ) -> Result<Self, TrainError> {
        let bytes = memory(session, &trainer);
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
        let megabytes = self.bytes / 1e6;
        let memory =
            if megabytes < 1000.0 { format!("{megabytes:.0} MB") } else { format!("{:.1} GB", megabytes / 1e3) };
        let time =
            self.seconds.map_or_else(String::new, |seconds| format!(", about {} of training", duration(seconds)));
        format!("about {memory} of memory{time}")
    }
}

/// Bytes, by the sizes of what takes most: parameters with their gradients and moments, activations of a batch, tables with
/// an entry for each model, the data, draws of the check, preconditioners of models.
fn memory<Q: Question, D: Device>(session: &Session<Q>, trainer: &Trainer<D>) -> f64 {
    let problem = session.problem();
    let space = problem.space();
    let word = space.arities().len() as f64 * 2.0;
    let real = size_of::<D::Real>() as f64;
    let (dim, rows) = (space.max_dim() as f64, trainer.settings().batch as f64);
    // With a flow for each block, every block is a row.
    let blocks = problem.blocks().filter(|_| trainer.family().settings().structure == Structure::Blocks);
    let (width, passed) = blocks.map_or((dim, rows), |blocks| (blocks.width() as f64, rows * blocks.count() as f64));
    let flow = trainer.family().flow();
    // Values, gradients of two shards, two moments; a checkpoint copies values and moments, and then all of it as bytes.
    let parameters = flow.parameter_count() as f64 * real * 11.0;
    let layers = trainer.family().settings().flow.layers();
    let units: f64 = layers.layers.iter().map(|layer| kept_units(layer, width)).sum();
    let activations = passed * units * real;
    let tables = match &trainer.family().settings().models {
        ModelsSettings::Categorical(_) | ModelsSettings::Surrogate(_) => space.log_count().exp() * (6.0 * 8.0 + word),
        ModelsSettings::Modular(modular) => {
            let nodes = blocks.map_or(0.0, |blocks| blocks.count() as f64);
            nodes * (modular.most_sets as f64) * 100.0
        }
        ModelsSettings::Autoregressive(_) | ModelsSettings::Auto {} => 0.0,
    };
    // Draws in learned and in measured parameters.
    let draws = session.config.check.draws as f64 * (dim * 8.0 * 6.0 + 100.0 + word);
    let program = 6e6;
    program
        + parameters
        + activations
        + tables
        + session.question.data_bytes()
        + draws
        + preconditioners(session, trainer)
}

/// Numbers of models' preconditioners that a family keeps at most, besides those of a batch.
const MAX_PRECONDITIONER_NUMBERS: f64 = (1 << 24) as f64;

/// Bytes of the preconditioners of models met, or of blocks with their keys: a location and a triangle for each.
fn preconditioners<Q: Question, D: Device>(session: &Session<Q>, trainer: &Trainer<D>) -> f64 {
    if trainer.family().settings().preconditioner == PreconditionerSettings::Unit {
        return 0.0;
    }
    let TrainSettings { batch, steps, .. } = trainer.settings();
    let problem = session.problem();
    let FamilySettings { models, structure, .. } = trainer.family().settings();
    let dim = session.question.usual_dim();
    let numbers = dim * (dim + 3.0) / 2.0;
    let (rows, steps) = (*batch as f64, *steps as f64);
    let keys = match (problem.blocks(), models) {
        (Some(blocks), ModelsSettings::Modular(modular)) if *structure == Structure::Blocks => {
            // A key is a set of the other blocks.
            let sets = 2f64.powi(blocks.count() as i32 - 1).min(modular.most_sets as f64);
            blocks.count() as f64 * sets
        }
        _ => problem.space().log_count().exp(),
    };
    let met = keys.min(rows * steps);
    8.0 * (met * numbers).min(MAX_PRECONDITIONER_NUMBERS + rows * numbers)
}

/// Numbers that a layer keeps for each row.
fn kept_units(layer: &vti::flow::LayerSettings, dim: f64) -> f64 {
    use vti::flow::LayerSettings;
    match layer {
        LayerSettings::Affine(settings) => settings.hidden as f64 * (3 * settings.blocks + 3) as f64 + 6.0 * dim,
        LayerSettings::Spline(settings) => {
            settings.hidden as f64 * (3 * settings.blocks + 3) as f64 + SPLINE as f64 * dim
        }
        LayerSettings::Diagonal(settings) => 3.0 * settings.hidden.iter().sum::<usize>() as f64 + 6.0 * dim,
        LayerSettings::Global(_) | LayerSettings::Reverse {} => 2.0 * dim,
    }
}

//! Runs: reproducible, durable, and honest about what went wrong.

#![allow(missing_docs, clippy::unwrap_used)]

mod calls;
mod durability;
mod endings;
mod graphs;
mod losses;
mod sharing;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use vti::device::{Cpu, Device};
use vti::family::{FamilySettings, FlowKind};
use vti::models::{
    AutoregressiveSettings, CategoricalSettings, ControlVariateKind, Covariance, LearningSettings, ModelsSettings,
    SurrogateSettings, WordNetSettings,
};
use vti::optimise::{OptimiserSettings, SgdSettings};
use vti::posterior::Posterior;
use vti::problem::{self, Problem};
use vti::simd::Real;
use vti::space::Subsets;
use vti::train::{Observer, StepReport, TrainSettings};

/// Standard normal parameters around means that depend on `shift`, with evidence e for each.
pub(crate) fn normal(shift: f64) -> Arc<dyn Problem> {
    Arc::new(problem::from_fn(Subsets::with_always(3, 1).unwrap(), move |_, theta, gradient| {
        let mut log_density = 0.0;
        for (i, (t, g)) in theta.iter().zip(gradient).enumerate() {
            let off = t - shift - i as f64;
            *g = -off;
            log_density += 1.0 - 0.5 * off * off - 0.5 * std::f64::consts::TAU.ln();
        }
        log_density
    }))
}

/// Families with every distribution over models, and both optimisers and baselines among them.
pub(crate) fn families() -> Vec<FamilySettings> {
    let flow = FlowKind::Spline { layers: 2, blocks: 1, hidden: 16 };
    let surrogate = |covariance| ModelsSettings::Surrogate(SurrogateSettings { covariance, ..Default::default() });
    let sgd = LearningSettings {
        optimiser: OptimiserSettings::Sgd(SgdSettings::default()),
        rate: 1.0,
        control_variate: ControlVariateKind::RunningMean { decay: 0.9 },
    };
    let network = WordNetSettings { hidden: 16, blocks: 1, ..WordNetSettings::default() };
    let learning = LearningSettings::new(0.01);
    let models = [
        ModelsSettings::Categorical(CategoricalSettings::default()),
        ModelsSettings::Categorical(CategoricalSettings { learning: sgd }),
        ModelsSettings::Autoregressive(AutoregressiveSettings { network, learning }),
        surrogate(Covariance::Diagonal),
        surrogate(Covariance::Full),
    ];
    models.into_iter().map(|models| FamilySettings { models, flow: flow.clone(), ..Default::default() }).collect()
}

pub(crate) fn settings() -> TrainSettings {
    TrainSettings { steps: 60, batch: 130, ..TrainSettings::default() }
}

/// All that a posterior can say, as bits.
pub(crate) fn bits<T: Real>(posterior: &Posterior<Cpu<T>>) -> Vec<u64>
where
    Cpu<T>: Device<Real = T>,
{
    let draws = posterior.draw(100, 3).unwrap();
    let probabilities = posterior.model_probabilities(1).unwrap();
    let numbers = draws.theta.iter().chain(&draws.log_q).copied();
    let all = numbers.chain(probabilities.iter().map(|model| model.probability.value));
    all.filter(|x| !x.is_nan()).map(f64::to_bits).collect()
}

/// An observer that also asks for the norms of gradients.
pub(crate) struct WithNorms<F>(pub(crate) F);

impl<F: FnMut(&StepReport) -> ControlFlow<()>> Observer for WithNorms<F> {
    fn wants_gradient_norm(&mut self, _: &StepReport) -> bool {
        true
    }

    fn step(&mut self, report: &StepReport) -> ControlFlow<()> {
        (self.0)(report)
    }
}

/// A directory of its own for a test.
pub(crate) fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("vti-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

//! Training, checking and refining on problems whose answers are known.

#![allow(missing_docs, clippy::unwrap_used)]

mod biased;
mod categories;
mod constrained;
mod gaussians;
mod graphs;
mod layers;
mod lessons;
mod particles;
mod problems;
mod shapes;
mod surrogate;

use std::sync::Arc;

use vti::check::{Check, CheckSettings, check};
use vti::device::Cpu;
use vti::family::{FamilySettings, FlowKind};
use vti::models::{
    AutoregressiveSettings, CategoricalSettings, Covariance, LearningSettings, ModelsSettings, Modular,
    ModularSettings, SurrogateSettings, WordNetSettings,
};
use vti::posterior::Posterior;
use vti::problem::Problem;
use vti::space::{Catalogue, Model};
use vti::train::{Silent, TrainSettings, Trainer};

/// Every distribution over models that a problem has what it needs for: one that is modular needs graphs and their factors.
pub(crate) fn distributions(problem: &dyn Problem) -> Vec<(&'static str, ModelsSettings)> {
    let surrogate = |covariance| ModelsSettings::Surrogate(SurrogateSettings { covariance, ..Default::default() });
    let network = WordNetSettings { hidden: 64, ..WordNetSettings::default() };
    let learning = LearningSettings::new(0.01);
    let all = [
        ("categorical", ModelsSettings::Categorical(CategoricalSettings::default())),
        ("autoregressive", ModelsSettings::Autoregressive(AutoregressiveSettings { network, learning })),
        ("diagonal surrogate", surrogate(Covariance::Diagonal)),
        ("Gaussian process", surrogate(Covariance::Full)),
        ("modular", ModelsSettings::Modular(ModularSettings::default())),
    ];
    let modular = Modular::suits(problem);
    all.into_iter().filter(|(name, _)| modular || *name != "modular").collect()
}

/// A flow that is exact for Gaussians.
pub(crate) fn affine() -> FlowKind {
    FlowKind::Affine { layers: 2, blocks: 1, hidden: 32 }
}

/// Trains with the default settings except for these.
pub(crate) fn train(
    problem: &Arc<impl Problem + 'static>,
    device: &Cpu<f32>,
    family: &FamilySettings,
    steps: u64,
    batch: usize,
) -> Posterior<Cpu<f32>> {
    let settings = TrainSettings { steps, batch, ..TrainSettings::default() };
    Trainer::new(problem.clone(), device.clone(), family, &settings).unwrap().run(&mut Silent).unwrap().posterior
}

/// With a quarter of the particles: where weights are even these only look whether q has lost something.
pub(crate) fn check_with(posterior: &Posterior<Cpu<f32>>, draws: usize) -> Check {
    let mut settings = CheckSettings { draws, ..CheckSettings::default() };
    settings.opinion.smc.particles /= 4;
    check(posterior, &settings).unwrap()
}

/// Total variation between q(m) and probabilities by number; where several words mean one model, by that of the one that
/// represents them.
pub(crate) fn distance(posterior: &Posterior<Cpu<f32>>, catalogue: &Catalogue, truth: &[f64]) -> f64 {
    let found = posterior.model_probabilities(1).unwrap();
    let space = posterior.problem().space();
    let represents = |word: &&[u16]| {
        let mut canonical = word.to_vec();
        space.canonical(&mut canonical);
        canonical == **word
    };
    let count = catalogue.words().chunks_exact(space.arities().len()).filter(represents).count();
    assert_eq!((found.len(), truth.len()), (count, catalogue.len()), "all models are enumerated");
    assert!((found.iter().map(|model| model.probability.value).sum::<f64>() - 1.0).abs() < 1e-4);
    let off = |model: &Model, q: f64| (q - truth[catalogue.index(model).unwrap()]).abs();
    0.5 * found.iter().map(|model| off(&model.model, model.probability.value)).sum::<f64>()
}

/// Corrected probabilities of the `count` most probable models are within three standard errors.
pub(crate) fn assert_corrected(name: &str, check: &Check, catalogue: &Catalogue, truth: &[f64], count: usize) {
    for model in check.correction.models.iter().take(count) {
        let truth = truth[catalogue.index(&model.model).unwrap()];
        let (value, se) = (model.corrected.value, model.corrected.se);
        // Rounding in single precision shows where standard errors are tiny.
        let allowed = 3.0 * se + 1e-4;
        assert!((value - truth).abs() <= allowed, "{name}: {}: {value} ± {se}, truth {truth}", model.label);
    }
}

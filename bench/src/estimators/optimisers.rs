//! The optimiser of a categorical's logits: AdamW against plain gradient descent.

use anyhow::Result;
use vti::device::Cpu;
use vti::models::{CategoricalSettings, LearningSettings, ModelsSettings};
use vti::optimise::{OptimiserSettings, SgdSettings};
use vti::space::ModelSpace;

use super::Bench;
use super::learn::Task;
use super::problem::Gaussians;

/// Learning rates that are tried beside the default.
const OTHERS: [f64; 6] = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0];
const SGD: [f64; 8] = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0];

/// Seeds that are averaged over.
const SEEDS: u64 = 3;

/// KL(q ‖ posterior) after learning, over all models.
fn divergence(
    problem: &Gaussians,
    task: &Task<'_>,
    learning: LearningSettings,
    device: &Cpu<f32>,
    seed: u64,
) -> Result<f64> {
    let settings = ModelsSettings::Categorical(CategoricalSettings { learning });
    let models = task.learn(device, &settings, seed)?;
    let (mut word, mut log_q) = (vec![0; problem.space().things()], [0.0]);
    let log_total = problem.log_total_evidence() + problem.space().log_count();
    let mut divergence = 0.0;
    for index in 0..problem.catalogue.len() {
        problem.catalogue.word(index, &mut word)?;
        models.log_prob(device, &word, &mut log_q)?;
        divergence += log_q[0].exp() * (log_q[0] - problem.log_evidence(index) + log_total);
    }
    Ok(divergence)
}

/// The mean divergence over seeds at each rate.
fn at_rates(
    problem: &Gaussians,
    task: &Task<'_>,
    device: &Cpu<f32>,
    learning: impl Fn(f64) -> LearningSettings,
    rates: &[f64],
) -> Result<Vec<(f64, f64)>> {
    let mut found = Vec::with_capacity(rates.len());
    for &rate in rates {
        let mut mean = 0.0;
        for seed in 1..=SEEDS {
            mean += divergence(problem, task, learning(rate), device, seed)? / SEEDS as f64;
        }
        found.push((rate, mean));
    }
    Ok(found)
}

/// The rate with the least divergence.
fn best(found: &[(f64, f64)]) -> (f64, f64) {
    found.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((f64::NAN, f64::NAN))
}

/// Runs this part.
pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    for (things, spread) in [(7, 1.5), (10, 1.5), (7, 6.0), (10, 6.0)] {
        compare(bench, &Gaussians::with_spread(things, 0, 0.0, spread)?, spread)?;
    }
    Ok(())
}

/// Both optimisers on a problem whose evidences spread by so many nats.
fn compare(bench: &mut Bench<'_>, problem: &Gaussians, spread: f64) -> Result<()> {
    let steps = bench.of(150, 600);
    let log_target = |word: &[u16]| problem.index(word).map_or(f64::NAN, |index| problem.log_evidence(index));
    let task = Task { models: &problem.models, log_target: &log_target, noise: 0.5, rows: 512, steps };
    let optimiser = OptimiserSettings::Sgd(SgdSettings::default());
    let sgd = |rate| LearningSettings { optimiser: optimiser.clone(), ..LearningSettings::new(rate) };
    let (sgd_rate, sgd) = best(&at_rates(problem, &task, bench.device, sgd, &SGD)?);
    // The default comes first.
    let mut rates = vec![CategoricalSettings::default().learning.rate];
    rates.extend(OTHERS);
    let adamw = at_rates(problem, &task, bench.device, LearningSettings::new, &rates)?;
    for ((rate, divergence), which) in [(best(&adamw), "best"), (adamw[0], "default")] {
        let name = &problem.name;
        let what = format!(
            "{name}, spread {spread}: {steps} steps, AdamW at {rate} ({which}) against SGD at {sgd_rate} (best)"
        );
        bench.push("optimiser", &what, divergence, sgd, "KL in nats")?;
    }
    Ok(())
}

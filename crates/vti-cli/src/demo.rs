//! `vti demo`: train, check and compare with the known answer.
//!
//! The models are the subsets of three coordinates. Given a subset, its coordinates follow a correlated Gaussian that is
//! bent like a banana by a map of unit Jacobian, so the evidence of every model is known exactly while no model is Gaussian.

use std::ops::ControlFlow;

use anyhow::Result;
use clap::Args;
use vti::check::{Check, CheckSettings, RefineSettings, VerdictKind, check, refine};
use vti::engine::CpuEngine;
use vti::family::FamilySettings;
use vti::problem;
use vti::space::{Catalogue, ModelSpace, Subsets};
use vti::train::{StepReport, TrainSettings, Trainer};

use crate::output;

const COORDINATES: usize = 3;

/// How much the bananas are bent.
const BEND: f64 = 0.2;

/// Options of `vti demo`.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Training steps
    #[arg(long, default_value_t = 1_500, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads (0: as many as there are cores)
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

/// log Z_m: larger models fit better, up to a point.
fn log_evidence(model: &[u16]) -> f64 {
    let number = model.iter().enumerate().map(|(i, &bit)| usize::from(bit) << i).sum::<usize>();
    [0.0, 0.9, -0.4, 1.6, 0.3, 1.1, 0.7, 1.3][number]
}

/// log η(θ | m) and its gradient. With v_i = θ_i − 0.2 (θ_{i−1}² − 1) for i > 0 (unit Jacobian) and
/// v_i = μ + 0.6 (v_{i−1} − μ) + 0.8 ε_i, the ε are standard normal.
fn log_target(model: &[u16], theta: &[f64], gradient: &mut [f64]) -> f64 {
    let mean = 0.5 * (theta.len() as f64 - 1.0);
    let mut log_density = log_evidence(model);
    let mut pull = [0.0; COORDINATES];
    let mut before = 0.0;
    for (i, &t) in theta.iter().enumerate() {
        let v = if i == 0 { t } else { t - BEND * (theta[i - 1] * theta[i - 1] - 1.0) };
        let (center, scale) = if i == 0 { (mean, 1.0) } else { (mean + 0.6 * (before - mean), 0.8) };
        let e: f64 = (v - center) / scale;
        log_density -= 0.5 * e * e + f64::ln(scale) + 0.5 * std::f64::consts::TAU.ln();
        pull[i] -= e / scale;
        if i > 0 {
            pull[i - 1] += 0.6 * e / scale;
        }
        before = v;
    }
    // From dv to dθ.
    for i in 0..theta.len() {
        gradient[i] = pull[i] - if i + 1 < theta.len() { 2.0 * BEND * theta[i] * pull[i + 1] } else { 0.0 };
    }
    log_density
}

pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    let threads = match args.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let problem = problem::from_fn(Subsets::new(COORDINATES)?, log_target);
    let engine = CpuEngine::<f32>::new(threads)?;
    let settings = TrainSettings { steps: args.steps, batch: 256, seed: args.seed, ..TrainSettings::default() };
    let trainer = Trainer::new(&problem, &engine, &FamilySettings::default(), &settings)?;
    output::talk(&format!(
        "target: 8 models (subsets of {COORDINATES} coordinates), bent Gaussians with known evidence\n\
         {} steps of {} draws on {threads} threads",
        settings.steps, settings.batch,
    ));
    trainer.family().choices().iter().for_each(|choice| output::talk(choice));
    let every = settings.steps.div_ceil(5);
    let mut observer = |report: &StepReport| {
        if report.step.is_multiple_of(every) || report.step == settings.steps {
            let StepReport { step, elbo, entropy, .. } = report;
            output::talk(&format!("step {step:>6}   bound {elbo:>8.4}   entropy of q(m) {entropy:.3}"));
        }
        ControlFlow::Continue(())
    };
    let mut fit = trainer.run(&mut observer)?;
    let check = check(&mut fit.posterior, &CheckSettings::default())?;
    report(problem::Problem::space(&problem), &check)?;
    if check.verdict.kind == VerdictKind::DoNotTrust {
        let refined = refine(&mut fit.posterior, &RefineSettings::default())?;
        output::data(&format!("chains: {}", refined.verdict.text));
    }
    output::talk(&format!("trained in {:.1} s: {}", fit.seconds, fit.stop));
    Ok(())
}

/// One line per model: q(m) and its correction against the exact π(m).
fn report(space: &Subsets, check: &Check) -> Result<()> {
    let catalogue = Catalogue::new(space, 1 << COORDINATES)?;
    let models = (0..catalogue.len()).map(|index| catalogue.model(index)).collect::<Result<Vec<_>, _>>()?;
    let total: f64 = models.iter().map(|model| log_evidence(model).exp()).sum();
    output::data("model         log evidence         estimated   exact π(m)   learned q(m)           corrected");
    let mut distance = [0.0; 2];
    for model in &models {
        let exact = log_evidence(model).exp() / total;
        let label = space.label(model);
        let Some(found) = check.correction.models.iter().find(|found| found.model == *model) else {
            output::data(&format!("{label:<13} {:>12.4}   not met by any draw", log_evidence(model)));
            continue;
        };
        let (q, corrected) = (found.q, found.corrected);
        distance[0] += 0.5 * (q - exact).abs();
        distance[1] += 0.5 * (corrected.value - exact).abs();
        let estimated =
            found.log_evidence.map_or_else(String::new, |found| format!("{:>7.4} ± {:.4}", found.value, found.se));
        output::data(&format!(
            "{label:<13} {:>12.4} {estimated:>17} {exact:>12.4} {q:>14.4} {:>10.4} ± {:.4}",
            log_evidence(model),
            corrected.value,
            corrected.se,
        ));
    }
    let (found, exact) = (check.log_evidence, (total / models.len() as f64).ln());
    output::data(&format!("log evidence: {:.4} ± {:.4}, exact {exact:.4}", found.value, found.se));
    output::data(&format!(
        "total variation to the exact model probabilities: {:.4} learned, {:.4} corrected",
        distance[0], distance[1]
    ));
    output::data(&check.verdict.text);
    Ok(())
}

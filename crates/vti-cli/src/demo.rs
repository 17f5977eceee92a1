//! `vti demo`: a CoSMIC flow on a target whose answer is known.
//!
//! The models are the subsets of three coordinates. Given a subset, its coordinates follow a correlated Gaussian that is
//! bent like a banana by a map of unit Jacobian, so the evidence of every model is known exactly while no model is Gaussian.

use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use vti::engine::CpuEngine;
use vti::flow::{Batch, ContextShape, Flow, FlowSettings, FlowShape};
use vti::train::{AdamWSettings, FlowFit};

use crate::output;

const COORDINATES: usize = 3;
const MODELS: usize = 1 << COORDINATES;

/// Options of `vti demo`.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Training steps
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads (0: as many as there are cores)
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

/// log Z_m: larger models fit better, up to a point.
fn log_evidence(model: usize) -> f64 {
    [0.0, 0.9, -0.4, 1.6, 0.3, 1.1, 0.7, 1.3][model]
}

fn active(model: usize) -> Vec<u32> {
    (0..COORDINATES as u32).filter(|c| model >> c & 1 == 1).collect()
}

/// log η(θ | m) and its gradient. With v_i = θ_i − 0.5 (θ_{i−1}² − 1) for i > 0 (unit Jacobian) and
/// v_i = μ + 0.6 (v_{i−1} − μ) + 0.8 ε_i, the ε are standard normal.
fn log_target(model: usize, theta: &[f64], gradient: &mut [f64]) -> f64 {
    let mean = 0.5 * (model.count_ones() as f64 - 1.0);
    let mut log_density = log_evidence(model);
    let mut pull = [0.0; COORDINATES];
    let mut before = 0.0;
    for (i, &t) in theta.iter().enumerate() {
        let v = if i == 0 { t } else { t - 0.5 * (theta[i - 1] * theta[i - 1] - 1.0) };
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
        gradient[i] = pull[i] - if i + 1 < theta.len() { theta[i] * pull[i + 1] } else { 0.0 };
    }
    log_density
}

pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    const ROWS: usize = 256;
    let threads = match args.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let shape = FlowShape { max_dim: COORDINATES, context: ContextShape::Symbols(MODELS) };
    let flow = Flow::new(&FlowSettings::spline(3, 2, 32), shape)?;
    let engine = CpuEngine::<f64>::new(threads)?;
    output::talk(&format!(
        "target: {MODELS} models (subsets of {COORDINATES} coordinates), bent Gaussians with known evidence\n\
         flow:   3 spline layers, {} parameters; {} steps of {ROWS} draws on {threads} threads",
        flow.parameter_count(),
        args.steps,
    ));
    let start = Instant::now();
    let rows = learn(&flow, &engine, args, ROWS)?;
    report(&rows);
    output::talk(&format!("took {:.1} s", start.elapsed().as_secs_f64()));
    Ok(())
}

/// What was learned of one model: the mean of −log h and its standard error.
struct Learned {
    elbo: f64,
    error: f64,
}

/// As many draws of each model.
fn batch_of_all_models(rows: usize) -> Batch<f64> {
    let mut batch = Batch::new();
    for row in 0..rows {
        let model = row % MODELS;
        batch.push(&active(model), model as u32);
    }
    batch
}

fn learn(flow: &Flow, engine: &CpuEngine<f64>, args: &DemoArgs, rows: usize) -> Result<Vec<Learned>> {
    let mut fit = FlowFit::new(flow, engine, rows, args.seed, AdamWSettings::default())?;
    let batch = batch_of_all_models(rows);
    let mut target = |row: usize, theta: &[f64], gradient: &mut [f64]| log_target(row % MODELS, theta, gradient);
    for step in 0..args.steps {
        // Constant, then down to zero over the last half.
        let left = 2.0 * f64::from(args.steps - step) / f64::from(args.steps);
        let seen = fit.step(&batch, 3e-3 * left.min(1.0), &mut target).with_context(|| format!("at step {step}"))?;
        if (step + 1) % args.steps.div_ceil(5) == 0 || step + 1 == args.steps {
            output::talk(&format!("step {:>6}   loss {:>9.4}", step + 1, seen.loss));
        }
    }
    let mut sums = vec![(0.0, 0.0, 0.0); MODELS];
    for _ in 0..100 {
        for (row, log_h) in fit.evaluate(&batch, &mut target)?.iter().enumerate() {
            let (count, sum, squares) = &mut sums[row % MODELS];
            *count += 1.0;
            *sum -= log_h;
            *squares += log_h * log_h;
        }
    }
    let learned = sums.into_iter().map(|(count, sum, squares)| {
        let elbo = sum / count;
        Learned { elbo, error: ((squares / count - elbo * elbo).max(0.0) / count).sqrt() }
    });
    Ok(learned.collect())
}

/// Probabilities proportional to the exponentials of `logs`.
fn normalise(logs: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let top = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logs.clone().map(|log| (log - top).exp()).sum();
    logs.map(|log| (log - top).exp() / total).collect()
}

/// One line per model: q*(m) ∝ p(m) exp(−ℓ(m)) against the exact π(m).
fn report(learned: &[Learned]) {
    let exact = normalise((0..MODELS).map(log_evidence));
    let found = normalise(learned.iter().map(|model| model.elbo));
    output::data("model      dimension   log evidence   learned bound          KL    exact π(m)   learned q(m)");
    for (model, Learned { elbo, error }) in learned.iter().enumerate() {
        let names: Vec<String> = active(model).iter().map(|c| format!("{}", c + 1)).collect();
        output::data(&format!(
            "{:<10} {:>9}   {:>12.4}   {:>8.4} ± {:.4}   {:>7.4}   {:>10.4}   {:>12.4}",
            format!("{{{}}}", names.join(",")),
            names.len(),
            log_evidence(model),
            elbo,
            error,
            log_evidence(model) - elbo,
            exact[model],
            found[model],
        ));
    }
    let distance: f64 = exact.iter().zip(&found).map(|(a, b)| 0.5 * (a - b).abs()).sum();
    output::data(&format!("total variation between learned and exact model probabilities: {distance:.4}"));
}

//! The theorem of the paper: at fixed φ the surrogate's distribution approaches the optimal one.

use vti::device::{Cpu, Device};
use vti::models::{Covariance, Draw, ModelDistribution, ScoredBatch, Surrogate, SurrogateSettings};
use vti::random::{Purpose, Stream};
use vti::space::{Catalogue, ModelSpace, Subsets};

use crate::problems::normalise;

/// KL(q_t ‖ q*) after t batches, for t = 2, 4, …, 512.
fn divergences(covariance: Covariance, beta: f64, seed: u64) -> Vec<f64> {
    let (space, device) = (Subsets::new(6).unwrap(), Cpu::<f64>::single());
    let (models, rows) = (64, 64);
    let catalogue = Catalogue::new(&space, models).unwrap();
    let objective: Vec<f64> = (0..models as u64).map(|m| Stream::new(seed, Purpose::Other(1), 0, m).normal()).collect();
    let optimal = normalise(&objective);
    let settings = SurrogateSettings { covariance, beta, inflation: 0.0, ..SurrogateSettings::default() };
    let mut surrogate =
        Surrogate::new(device.workers(), &space, catalogue.clone(), |_| -space.log_count(), &settings).unwrap();
    let all: Vec<u16> = (0..models).flat_map(|m| catalogue.model(m).unwrap().to_vec()).collect();
    let (mut words, mut log_q) = (vec![0; rows * 6], vec![0.0; rows]);
    let mut found = Vec::new();
    for step in 1..=512u64 {
        let draw = Draw { seed, purpose: Purpose::Models, step };
        surrogate.sample(&device, draw, &mut words, &mut log_q).unwrap();
        let noise = |row: usize| 2.0 * Stream::new(seed, Purpose::Other(2), step, row as u64).normal();
        let value = |row: usize| objective[catalogue.index(&words[row * 6..][..6]).unwrap()] + noise(row);
        let log_h: Vec<f64> = (0..rows).map(|row| -value(row)).collect();
        let log_prior = vec![-space.log_count(); rows];
        let kept = vec![true; rows];
        surrogate
            .update(
                &device,
                &ScoredBatch {
                    words: &words,
                    log_q: &log_q,
                    log_prior: &log_prior,
                    log_h: &log_h,
                    blocks: None,
                    kept: &kept,
                    pace: 1.0,
                    information_limit: f64::INFINITY,
                },
            )
            .unwrap();
        if step.is_power_of_two() && step > 1 {
            let mut q = vec![0.0; models];
            surrogate.log_prob(&device, &all, &mut q).unwrap();
            found.push(q.iter().zip(&optimal).map(|(log_q, p)| log_q.exp() * (log_q - p.ln())).sum());
        }
    }
    found
}

#[test]
fn the_divergence_falls_at_least_as_fast_as_one_over_the_root_of_time() {
    for covariance in [Covariance::Diagonal, Covariance::Full] {
        for beta in [0.0, 1.0, 2.0] {
            let runs: Vec<Vec<f64>> = (0..6).map(|seed| divergences(covariance, beta, seed)).collect();
            let points: Vec<(f64, f64)> = (0..runs[0].len())
                .map(|k| {
                    let mean = runs.iter().map(|run| run[k]).sum::<f64>() / runs.len() as f64;
                    ((k + 1) as f64 * 2f64.ln(), mean.ln())
                })
                .collect();
            let n = points.len() as f64;
            let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
            let slope = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum::<f64>()
                / points.iter().map(|p| (p.0 - mx).powi(2)).sum::<f64>();
            assert!(slope <= -0.5, "{covariance:?}, β = {beta}: slope {slope}, {points:?}");
        }
    }
}

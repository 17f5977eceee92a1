//! Whether counts vary as much as they should.

use super::leave_out::{TOGETHER, predictors};
use super::outcome::{mean, replicate, variance};
use super::{Dispersion, Looking, Outcome, REPLICATES, predictive_p};
use crate::random::{Purpose, Stream};

/// Pearson's statistic under each draw, of what was observed and of counts drawn anew.
pub(super) fn look(
    outcome: &Outcome<'_>,
    rows: &[usize],
    (seed, number): (u64, u64),
    workers: &Looking<'_>,
) -> Dispersion {
    let draws = outcome.predict.draws();
    let mut groups: Vec<Vec<[f64; 2]>> = vec![Vec::new(); rows.len().div_ceil(TOGETHER)];
    workers.for_each(&mut groups, |group, sums| {
        let rows = &rows[group * TOGETHER..][..TOGETHER.min(rows.len() - group * TOGETHER)];
        let predictors = predictors(outcome, rows);
        sums.resize(draws, [0.0; 2]);
        for (place, &row) in rows.iter().enumerate() {
            let mut stream = Stream::new(seed, Purpose::Fit, REPLICATES + number, row as u64);
            let of_row = predictors.iter().skip(place).step_by(rows.len());
            for (draw, (sum, predictor)) in sums.iter_mut().zip(of_row).enumerate() {
                let scale = outcome.predict.scale(draw);
                let mean = mean(outcome.likelihood, *predictor).max(f64::MIN_POSITIVE);
                let variance = variance(outcome.likelihood, mean, scale);
                let pearson = |y: f64| (y - mean).powi(2) / variance;
                sum[0] += pearson(outcome.observed[row]);
                sum[1] += pearson(replicate(outcome.likelihood, mean, scale, &mut stream));
            }
        }
    });
    let mut sums = vec![[0.0; 2]; draws];
    for group in &groups {
        sums.iter_mut().zip(group).for_each(|(sum, part)| *sum = [sum[0] + part[0], sum[1] + part[1]]);
    }
    let p = predictive_p(sums.iter().map(|&[observed, replicated]| (observed, replicated)));
    let total = |which: usize| sums.iter().map(|sum| sum[which]).sum::<f64>();
    Dispersion { ratio: total(0) / total(1), p_value: (2.0 * p.min(1.0 - p)).min(1.0) }
}

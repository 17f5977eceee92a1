//! Each row predicted without itself: leave-one-out by Pareto-smoothed importance sampling ("Practical Bayesian model
//! evaluation using leave-one-out cross-validation and WAIC", Vehtari, Gelman and Gabry, Statistics and Computing 27, 2017).
//!
//! With draws from the posterior of all rows, weights `1/p(y_i | θ)` make draws from the posterior without row i of them. They are
//! smoothed, and k̂ says whether they can be.

use super::Looking;
use super::outcome::{Observation, Outcome};
use crate::random::{Purpose, Stream};
use crate::stats::{log_sum_exp, smooth, systematic};

/// Rows that are looked at together.
pub(super) const TOGETHER: usize = 32;

/// Draws, chosen by their weights, over which a probability integral transform is averaged. They are spread evenly over predictors,
/// so that it is off by less than a hundredth.
const CHOSEN: usize = 128;

/// What leaving one row out comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeftOut {
    /// Which row, from 0.
    pub row: usize,
    /// `log p(y_i | y_{−i})`.
    pub elpd: f64,
    /// `log p(y_i | y)`, the row itself included.
    pub lpd: f64,
    /// k̂ of the weights; none where it is unknown, −∞ where they are all but equal.
    pub khat: Option<f64>,
    /// The probability of what is less than observed, without the row: uniform if the model fits. Of counts and of 0 or 1 a random
    /// share of the probability of just what was observed comes on top.
    pub pit: f64,
    /// The mean of the predictor over all draws.
    pub predictor: f64,
    /// The mean of the response without the row.
    pub mean: f64,
}

/// Predictors of some rows under all draws, draw after draw.
pub(super) fn predictors(outcome: &Outcome<'_>, rows: &[usize]) -> Vec<f64> {
    let mut found = vec![0.0; outcome.predict.draws() * rows.len()];
    let to = found.chunks_exact_mut(rows.len().max(1));
    to.enumerate().for_each(|(draw, to)| outcome.predict.predictors(draw, rows, to));
    found
}

/// Leaves these rows out, one at a time.
pub(super) fn leave_out(outcome: &Outcome<'_>, rows: &[usize], key: (u64, u64), workers: &Looking<'_>) -> Vec<LeftOut> {
    let mut groups: Vec<Vec<LeftOut>> = vec![Vec::new(); rows.len().div_ceil(TOGETHER)];
    workers.for_each(&mut groups, |group, found| {
        let rows = &rows[group * TOGETHER..][..TOGETHER.min(rows.len() - group * TOGETHER)];
        let predictors = predictors(outcome, rows);
        let one = |(place, &row): (usize, &usize)| {
            let of_row: Vec<f64> = predictors.iter().skip(place).step_by(rows.len()).copied().collect();
            leave_one(outcome, row, &of_row, key)
        };
        found.extend(rows.iter().enumerate().map(one));
    });
    groups.concat()
}

fn leave_one(outcome: &Outcome<'_>, row: usize, predictors: &[f64], (seed, number): (u64, u64)) -> LeftOut {
    let observation = Observation::of(outcome, row);
    let log_draws = (predictors.len() as f64).ln();
    let scale = |draw: usize| outcome.predict.scale(draw);
    let log_density = |(draw, &predictor): (usize, &f64)| observation.log_density(predictor, scale(draw));
    // A density that is no number is 0, and such a draw counts for nothing without the row either.
    let or_nothing = |log: f64| if log.is_finite() { log } else { f64::NEG_INFINITY };
    let log_densities: Vec<f64> = predictors.iter().enumerate().map(log_density).map(or_nothing).collect();
    let ratio = |(draw, log): (usize, &f64)| {
        or_nothing(-observation.log_likelihood(outcome.predict.log_row(draw, row).unwrap_or(*log)))
    };
    let mut log_weights: Vec<f64> = log_densities.iter().enumerate().map(ratio).collect();
    let khat = smooth(&mut log_weights).ok().and_then(|smoothed| smoothed.khat);
    let log_total = log_sum_exp(&log_weights);
    let of = |(weight, log): (&f64, &f64)| if weight.is_finite() { weight + log } else { f64::NEG_INFINITY };
    let weighted: Vec<f64> = log_weights.iter().zip(&log_densities).map(of).collect();
    let mut stream = Stream::new(seed, Purpose::Fit, number, row as u64);
    let (start, share) = (stream.uniform(), stream.uniform());
    let mut order: Vec<usize> = (0..predictors.len()).collect();
    order.sort_by(|&a, &b| predictors[a].total_cmp(&predictors[b]));
    let ordered: Vec<f64> = order.iter().map(|&draw| log_weights[draw]).collect();
    let chosen = systematic(&ordered, CHOSEN, start).unwrap_or_default();
    let count = chosen.len() as f64;
    let (mut pit, mut mean) = (0.0, 0.0);
    for &place in &chosen {
        let draw = order[place];
        let (below, at) = observation.below_and_at(predictors[draw], scale(draw));
        pit += (below + share * at) / count;
        mean += super::outcome::mean(outcome.likelihood, predictors[draw]) / count;
    }
    LeftOut {
        row,
        elpd: log_sum_exp(&weighted) - log_total,
        lpd: log_sum_exp(&log_densities) - log_draws,
        khat,
        pit: if chosen.is_empty() { f64::NAN } else { pit },
        predictor: predictors.iter().sum::<f64>() / predictors.len() as f64,
        mean,
    }
}

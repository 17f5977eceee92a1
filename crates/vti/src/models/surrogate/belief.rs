//! A Gaussian belief about one number per model, and how observations change it.
//!
//! The recursive updates of the paper (eqs 19 and 20 (gp-mean-update, gp-cov-update)), with the observations of one model in a
//! batch taken together: n observations with noise σ² are one of their mean with noise σ²/n. A full covariance is updated
//! by a few observations at a time, which is the same thing, as their noises are independent, and needs no inverse larger
//! than that.

use crate::simd::Real;
use crate::simd::{Instructions, Kernel, Vector};
use crate::state::{State, StateError};
use crate::workers::Workers;

/// What a batch says about one model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Observation {
    pub(super) model: usize,
    /// Mean of the observed values.
    pub(super) value: f64,
    /// How many there were.
    pub(super) count: f64,
}

/// Observations per update of a full covariance: the matrix is read and written once for so many.
const MAX_OBSERVATIONS_AT_ONCE: usize = 32;

pub(in crate::models) enum Belief {
    /// A variance per model.
    Diagonal(Vec<f64>),
    /// A covariance, row-major.
    Full { count: usize, covariance: Vec<f64> },
}

impl Belief {
    pub(in crate::models) fn diagonal(count: usize, variance: f64) -> Self {
        Self::Diagonal(vec![variance; count])
    }

    pub(super) fn full(count: usize, kernel: impl Fn(usize, usize) -> f64) -> Self {
        let covariance = (0..count * count).map(|place| kernel(place / count, place % count)).collect();
        Self::Full { count, covariance }
    }

    pub(super) fn variance(&self, model: usize) -> f64 {
        match self {
            Self::Diagonal(variances) => variances[model],
            // Rounding may take a variance that is all but 0 below it.
            Self::Full { count, covariance } => covariance[model * (count + 1)].max(0.0),
        }
    }

    pub(super) fn sd(&self, model: usize) -> f64 {
        self.variance(model).sqrt()
    }

    /// Nothing is uncertain any more.
    pub(super) fn end_doubt(&mut self) {
        match self {
            Self::Diagonal(numbers) | Self::Full { covariance: numbers, .. } => numbers.fill(0.0),
        }
    }

    /// Multiplies all variances and covariances.
    pub(super) fn scale(&mut self, factor: f64) {
        match self {
            Self::Diagonal(numbers) | Self::Full { covariance: numbers, .. } => {
                numbers.iter_mut().for_each(|number| *number *= factor);
            }
        }
    }

    /// One step of a random walk.
    pub(super) fn inflate(&mut self, variance: f64) {
        match self {
            Self::Diagonal(variances) => variances.iter_mut().for_each(|own| *own += variance),
            Self::Full { count, covariance } => {
                covariance.iter_mut().step_by(*count + 1).for_each(|own| *own += variance);
            }
        }
    }

    /// The belief, with its mean, after observations with noise variance `noise` each.
    pub(super) fn condition(&mut self, workers: &Workers, observations: &[Observation], noise: f64, mean: &mut [f64]) {
        match self {
            Self::Diagonal(variances) => {
                for &Observation { model, value, count } in observations {
                    let variance = &mut variances[model];
                    let gain = *variance / (*variance + noise / count);
                    mean[model] += gain * (value - mean[model]);
                    *variance *= 1.0 - gain;
                }
            }
            Self::Full { count, covariance } => {
                for few in observations.chunks(MAX_OBSERVATIONS_AT_ONCE) {
                    condition_full(workers, *count, covariance, few, noise, mean);
                }
            }
        }
    }

    pub(super) fn put(&self, state: &mut State) {
        match self {
            Self::Diagonal(numbers) | Self::Full { covariance: numbers, .. } => state.put("covariance", numbers),
        }
    }

    pub(super) fn restore(&mut self, state: &mut State) -> Result<(), StateError> {
        match self {
            Self::Diagonal(numbers) | Self::Full { covariance: numbers, .. } => {
                *numbers = state.take("covariance", numbers.len())?;
                Ok(())
            }
        }
    }
}

/// With K = covariance of the observed models plus noise = LLᵀ and W = L⁻¹ · (their rows of the covariance):
/// mean += Wᵀ L⁻¹ (values − mean), covariance −= WᵀW.
fn condition_full(
    workers: &Workers,
    count: usize,
    covariance: &mut [f64],
    observations: &[Observation],
    noise: f64,
    mean: &mut [f64],
) {
    let rows = observations.len();
    let mut w = vec![0.0; rows * count];
    for (row, seen) in w.chunks_exact_mut(count).zip(observations) {
        row.copy_from_slice(&covariance[seen.model * count..][..count]);
    }
    let mut residuals: Vec<f64> = observations.iter().map(|seen| seen.value - mean[seen.model]).collect();
    // Forward substitution: row i of W, orthogonal to the rows before it, divided by its pivot L_ii. The entries of earlier
    // rows at the observed models are L itself, so nothing else is stored.
    for i in 0..rows {
        let (before, rest) = w.split_at_mut(i * count);
        let row = &mut rest[..count];
        let model = observations[i].model;
        for (j, earlier) in before.chunks_exact(count).enumerate() {
            let factor = earlier[model];
            Instructions::detect().run(Subtract { factor, from: earlier, to: row });
            residuals[i] -= factor * residuals[j];
        }
        // Rounding may take a variance below 0, but never the noise.
        let own = noise / observations[i].count;
        let pivot = (row[model] + own).max(own).sqrt();
        row.iter_mut().for_each(|value| *value /= pivot);
        residuals[i] /= pivot;
    }
    for (row, &residual) in w.chunks_exact(count).zip(&residuals) {
        mean.iter_mut().zip(row).for_each(|(mean, w)| *mean += w * residual);
    }
    let w = &w;
    let mut tasks: Vec<(usize, &mut [f64])> = covariance.chunks_mut(count * ROWS_PER_TASK).enumerate().collect();
    workers.for_each(&mut tasks, |_, (task, lines)| {
        Instructions::detect().run(Downdate { count, first: *task * ROWS_PER_TASK, w, lines });
    });
}

/// `to −= factor · from`.
struct Subtract<'a> {
    factor: f64,
    from: &'a [f64],
    to: &'a mut [f64],
}

impl Kernel<f64> for Subtract<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        let factor = -self.factor;
        self.to.iter_mut().zip(self.from).for_each(|(to, &from)| *to = Real::mul_add(factor, from, *to));
    }
}

/// Rows of the covariance per task.
const ROWS_PER_TASK: usize = 16;

/// Rows `first..` of `covariance − WᵀW`.
struct Downdate<'a> {
    count: usize,
    first: usize,
    w: &'a [f64],
    lines: &'a mut [f64],
}

impl Kernel<f64> for Downdate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        /// Columns at a time: so much of W stays in the first-level cache.
        const COLUMNS: usize = 128;
        let Self { count, first, w, lines } = self;
        for start in (0..count).step_by(COLUMNS) {
            let end = count.min(start + COLUMNS);
            for (line, to) in lines.chunks_exact_mut(count).enumerate() {
                let to = &mut to[start..end];
                // Four rows of W at a time: the line is loaded and stored once for them.
                let mut fours = w.chunks_exact(4 * count);
                for four in fours.by_ref() {
                    let factors: [f64; 4] = std::array::from_fn(|i| -four[i * count + first + line]);
                    let rows: [&[f64]; 4] = std::array::from_fn(|i| &four[i * count + start..i * count + end]);
                    for (column, to) in to.iter_mut().enumerate() {
                        let mut sum = *to;
                        for i in 0..4 {
                            sum = Real::mul_add(factors[i], rows[i][column], sum);
                        }
                        *to = sum;
                    }
                }
                for row in fours.remainder().chunks_exact(count) {
                    let factor = -row[first + line];
                    for (to, &w) in to.iter_mut().zip(&row[start..end]) {
                        *to = Real::mul_add(factor, w, *to);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};
    use crate::workers::Workers;

    /// The paper's equations with the whole batch at once, by Gaussian elimination.
    fn slow(covariance: &[f64], count: usize, rows: &[(usize, f64)], noise: f64, mean: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let n = rows.len();
        let k = |a: usize, b: usize| covariance[a * count + b];
        // Solve (K + σ²I) X = [values − mean, k(·, all models)].
        let mut system: Vec<Vec<f64>> = (0..n)
            .map(|i| {
                let left = (0..n).map(|j| k(rows[i].0, rows[j].0) + if i == j { noise } else { 0.0 });
                let right = std::iter::once(rows[i].1 - mean[rows[i].0]).chain((0..count).map(|m| k(rows[i].0, m)));
                left.chain(right).collect()
            })
            .collect();
        for i in 0..n {
            let pivot = system[i][i];
            system[i].iter_mut().for_each(|x| *x /= pivot);
            for j in (0..n).filter(|&j| j != i) {
                let factor = system[j][i];
                let pivot = system[i].clone();
                system[j].iter_mut().zip(pivot).for_each(|(x, pivot)| *x -= factor * pivot);
            }
        }
        let new_mean = (0..count).map(|m| mean[m] + (0..n).map(|i| k(rows[i].0, m) * system[i][n]).sum::<f64>());
        let mut new = covariance.to_vec();
        for a in 0..count {
            for b in 0..count {
                new[a * count + b] -= (0..n).map(|i| k(rows[i].0, a) * system[i][n + 1 + b]).sum::<f64>();
            }
        }
        (new_mean.collect(), new)
    }

    #[test]
    fn conditioning_follows_the_papers_equations() {
        let count = 130;
        let kernel = |a: usize, b: usize| 4.0 * (-((a ^ b).count_ones() as f64) / 2.0).exp();
        let mut stream = Stream::new(1, Purpose::Other(0), 0, 0);
        let workers = Workers::new(2).unwrap();
        let (mut belief, mut mean) = (Belief::full(count, kernel), vec![0.0; count]);
        let Belief::Full { covariance, .. } = &belief else { unreachable!() };
        let (mut slow_covariance, mut slow_mean) = (covariance.clone(), mean.clone());
        for _ in 0..3 {
            let rows: Vec<(usize, f64)> =
                (0..90).map(|_| (stream.below(count as u64) as usize, stream.normal())).collect();
            (slow_mean, slow_covariance) = slow(&slow_covariance, count, &rows, 0.7, &slow_mean);
            let mut observations: Vec<Observation> = Vec::new();
            for model in 0..count {
                let values: Vec<f64> = rows.iter().filter(|row| row.0 == model).map(|row| row.1).collect();
                if !values.is_empty() {
                    let n = values.len() as f64;
                    observations.push(Observation { model, value: values.iter().sum::<f64>() / n, count: n });
                }
            }
            belief.condition(&workers, &observations, 0.7, &mut mean);
            let Belief::Full { covariance, .. } = &belief else { unreachable!() };
            let far = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(far(&mean, &slow_mean) < 1e-10 && far(covariance, &slow_covariance) < 1e-10);
        }
    }

    #[test]
    fn without_correlation_both_beliefs_agree() {
        let workers = Workers::SINGLE;
        let mut full = Belief::full(7, |a, b| if a == b { 2.0 } else { 0.0 });
        let mut diagonal = Belief::diagonal(7, 2.0);
        let (mut mean_full, mut mean_diagonal) = (vec![0.0; 7], vec![0.0; 7]);
        for round in 0..4 {
            let seen = [
                Observation { model: round, value: 1.5, count: 3.0 },
                Observation { model: 6, value: -2.0, count: 1.0 },
            ];
            for (belief, mean) in [(&mut full, &mut mean_full), (&mut diagonal, &mut mean_diagonal)] {
                belief.inflate(0.01);
                belief.condition(&workers, &seen, 0.5, mean);
            }
        }
        for model in 0..7 {
            assert!((full.sd(model) - diagonal.sd(model)).abs() < 1e-12);
            assert!((mean_full[model] - mean_diagonal[model]).abs() < 1e-12);
        }
    }
}

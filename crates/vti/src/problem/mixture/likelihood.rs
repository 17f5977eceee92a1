//! The likelihood of a mixture of normal distributions, to which component an observation belongs being summed out.
//!
//! ```text
//! log p(y | θ) = Σ_n log Σ_k w_k N(y_n; μ_k, Λ_k⁻¹),   Λ = S A Aᵀ S,   S = diag(1/√(2 β)),   A_ii = √(2 t_i)
//! ```
//!
//! With r = S (y − μ) the logarithm of a density is −½ |Aᵀ r|² and what does not depend on y. Its gradient needs of the data only
//! how much of them each component has: Σ ρ, Σ ρ r and Σ ρ r rᵀ of the responsibilities ρ.

mod parts;

use super::Observations;
use crate::problem::DensityError;
use crate::problem::components::{ByParts, ComponentLikelihood, Draw};
use crate::simd::{Instructions, Kernel, Real, Vector};

/// Observations that are looked at together.
const TOGETHER: usize = 64;

/// Weights and precisions are at least this, so that logarithms and ratios are numbers.
const SMALLEST: f64 = 1e-290;

/// The likelihood of observations.
#[derive(Clone, Debug)]
pub struct MixtureLikelihood {
    rows: usize,
    /// Column after column, each filled up to a multiple of [`TOGETHER`].
    values: Vec<f64>,
    columns: usize,
    /// The logarithm of the product of the columns' ranges, in whose inverse densities are counted where they are kept as such.
    log_range: f64,
    instructions: Instructions,
}

/// What a component's density is made of.
#[derive(Clone, Debug)]
pub(super) struct Normals {
    columns: usize,
    count: usize,
    /// 1/√(2 β) of each column.
    scales: Vec<f64>,
    /// Of each component: means, A packed row by row, and the logarithm of its density at the mean times its weight.
    means: Vec<f64>,
    factors: Vec<f64>,
    logs: Vec<f64>,
    weights: Vec<f64>,
}

/// Numbers of a packed lower triangular matrix.
fn packed(columns: usize) -> usize {
    columns * (columns + 1) / 2
}

impl Normals {
    /// Of natural parameters: β of each column, then each component's means, scaled precisions, what stands below the diagonal, and
    /// weight.
    pub(super) fn new(columns: usize, theta: &[f64]) -> Self {
        let width = columns + packed(columns) + 1;
        let (betas, blocks) = theta.split_at(columns);
        let count = blocks.len() / width;
        let scales: Vec<f64> = betas.iter().map(|beta| 1.0 / (2.0 * beta).sqrt()).collect();
        let log_scales: f64 =
            scales.iter().map(|scale| scale.ln()).sum::<f64>() - 0.5 * columns as f64 * std::f64::consts::TAU.ln();
        let (mut means, mut factors, mut logs, mut weights) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for block in blocks.chunks_exact(width) {
            means.extend_from_slice(&block[..columns]);
            let (precisions, mut below) = (&block[columns..2 * columns], block[2 * columns..width - 1].iter());
            let mut log = log_scales;
            for (row, precision) in precisions.iter().enumerate() {
                factors.extend(below.by_ref().take(row));
                let root = (2.0 * precision.max(SMALLEST)).sqrt();
                log += root.ln();
                factors.push(root);
            }
            weights.push(block[width - 1].max(SMALLEST));
            logs.push(log + block[width - 1].max(SMALLEST).ln());
        }
        Self { columns, count, scales, means, factors, logs, weights }
    }

    /// How many components there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// `log w_k N(y; μ_k, Λ_k⁻¹)` of one observation.
    pub(super) fn log_density(&self, component: usize, y: &[f64]) -> f64 {
        let factor = &self.factors[component * packed(self.columns)..];
        let means = &self.means[component * self.columns..];
        let mut log = self.logs[component];
        for j in 0..self.columns {
            let u: f64 = (j..self.columns).map(|i| factor[packed(i) + j] * self.scales[i] * (y[i] - means[i])).sum();
            log -= 0.5 * u * u;
        }
        log
    }

    /// The density of one column, the others integrated out, of each component times its weight.
    pub(super) fn marginal(&self, column: usize, y: f64) -> f64 {
        let density = |component: usize| {
            let sd = self.sd(component, column);
            let z = (y - self.means[component * self.columns + column]) / sd;
            self.weights[component] * (-0.5 * z * z).exp() / (sd * std::f64::consts::TAU.sqrt())
        };
        (0..self.count).map(density).sum()
    }

    /// A component's mean of a column, and its weight.
    pub(super) fn mean(&self, component: usize, column: usize) -> f64 {
        self.means[component * self.columns + column]
    }

    /// The share of a component.
    pub(super) fn weight(&self, component: usize) -> f64 {
        self.weights[component]
    }

    /// The standard deviation of a column: of Λ⁻¹ = S⁻¹ A⁻ᵀ A⁻¹ S⁻¹ the diagonal is |A⁻¹ e|²/s².
    pub(super) fn sd(&self, component: usize, column: usize) -> f64 {
        self.covariance(component, column, column).sqrt()
    }

    /// The covariance of two columns.
    pub(super) fn covariance(&self, component: usize, one: usize, other: usize) -> f64 {
        let (one_of, other_of) = (self.inverse(component, one), self.inverse(component, other));
        let product: f64 = one_of.iter().zip(&other_of).map(|(a, b)| a * b).sum();
        product / (self.scales[one] * self.scales[other])
    }

    /// A⁻¹ e: a column of the inverse.
    fn inverse(&self, component: usize, column: usize) -> Vec<f64> {
        let factor = &self.factors[component * packed(self.columns)..];
        let mut x = vec![0.0; self.columns];
        for i in 0..self.columns {
            let start = f64::from(u8::from(i == column));
            let before: f64 = (0..i).map(|j| factor[packed(i) + j] * x[j]).sum();
            x[i] = (start - before) / factor[packed(i) + i];
        }
        x
    }
}

/// Sums over observations, weighted by responsibilities.
struct Sums {
    log_likelihood: f64,
    /// Of each component: Σ ρ, Σ ρ r, and Σ ρ r rᵀ packed.
    moments: Vec<f64>,
}

/// Numbers that are summed for each component.
fn moments(columns: usize) -> usize {
    1 + columns + packed(columns)
}

struct Look<'a> {
    of: &'a MixtureLikelihood,
    normals: &'a Normals,
    with_moments: bool,
}

impl Kernel<f64> for Look<'_> {
    type Output = Sums;

    #[inline(always)]
    fn run<V: Vector<f64>>(self) -> Sums {
        match self.of.columns {
            1 => self.run_columns::<1>(),
            2 => self.run_columns::<2>(),
            3 => self.run_columns::<3>(),
            _ => self.run_columns::<0>(),
        }
    }
}

impl Look<'_> {
    /// Of so many columns; 0 for however many there are.
    #[inline(always)]
    fn run_columns<const COLUMNS: usize>(self) -> Sums {
        let Self { of, normals, with_moments } = self;
        let columns = if COLUMNS == 0 { of.columns } else { COLUMNS };
        let (count, each) = (normals.count, moments(columns));
        let padded = of.values.len() / columns;
        let mut sums = Sums { log_likelihood: 0.0, moments: vec![0.0; count * each] };
        let mut shares = vec![[0.0f64; TOGETHER]; count];
        let mut residuals = vec![[0.0f64; TOGETHER]; columns];
        for first in (0..of.rows).step_by(TOGETHER) {
            let rows = TOGETHER.min(of.rows - first);
            let mut top = [f64::NEG_INFINITY; TOGETHER];
            for (component, share) in shares.iter_mut().enumerate() {
                residual(of, normals, component, first, padded, &mut residuals);
                let factor = &normals.factors[component * packed(columns)..][..packed(columns)];
                share.fill(normals.logs[component]);
                for j in 0..columns {
                    let mut u = [0.0; TOGETHER];
                    for i in j..columns {
                        let a = factor[packed(i) + j];
                        u.iter_mut().zip(&residuals[i]).for_each(|(u, r)| *u += a * r);
                    }
                    share.iter_mut().zip(&u).for_each(|(share, u)| *share -= 0.5 * u * u);
                }
                top.iter_mut().zip(&*share).for_each(|(top, share)| *top = Real::max(*top, *share));
            }
            let mut total = [0.0f64; TOGETHER];
            for share in &mut shares {
                for ((share, total), top) in share.iter_mut().zip(&mut total).zip(&top) {
                    *share = Real::exp(*share - *top);
                    *total += *share;
                }
            }
            let logs = total.map(Real::ln);
            sums.log_likelihood += top[..rows].iter().zip(&logs).map(|(top, log)| top + log).sum::<f64>();
            if !with_moments {
                continue;
            }
            // What fills up the last ones counts nothing.
            total[rows..].fill(f64::INFINITY);
            let inverse = total.map(|total| 1.0 / total);
            for (component, share) in shares.iter_mut().enumerate() {
                residual(of, normals, component, first, padded, &mut residuals);
                share.iter_mut().zip(&inverse).for_each(|(share, inverse)| *share *= inverse);
                let own = &mut sums.moments[component * each..][..each];
                own[0] += sum(share);
                for i in 0..columns {
                    let mut weighted = [0.0; TOGETHER];
                    for ((to, share), r) in weighted.iter_mut().zip(&*share).zip(&residuals[i]) {
                        *to = share * r;
                    }
                    own[1 + i] += sum(&weighted);
                    for j in 0..=i {
                        own[1 + columns + packed(i) + j] += dot(&weighted, &residuals[j]);
                    }
                }
            }
        }
        sums
    }
}

/// r = S (y − μ) of some observations.
#[inline(always)]
fn residual(
    of: &MixtureLikelihood,
    normals: &Normals,
    component: usize,
    first: usize,
    padded: usize,
    to: &mut [[f64; TOGETHER]],
) {
    for (column, to) in to.iter_mut().enumerate() {
        let (scale, mean) = (normals.scales[column], normals.means[component * normals.columns + column]);
        let values = &of.values[column * padded + first..][..TOGETHER];
        to.iter_mut().zip(values).for_each(|(r, y)| *r = scale * (y - mean));
    }
}

/// Sums in eight lanes, which need not wait for each other.
#[inline(always)]
fn sum(values: &[f64; TOGETHER]) -> f64 {
    let mut lanes = [0.0; 8];
    values.chunks_exact(8).for_each(|part| lanes.iter_mut().zip(part).for_each(|(lane, value)| *lane += value));
    lanes.iter().sum()
}

#[inline(always)]
fn dot(a: &[f64; TOGETHER], b: &[f64; TOGETHER]) -> f64 {
    let mut lanes = [0.0; 8];
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        lanes.iter_mut().zip(a.iter().zip(b)).for_each(|(lane, (a, b))| *lane += a * b);
    }
    lanes.iter().sum()
}

impl MixtureLikelihood {
    pub(super) fn new(data: &Observations) -> Self {
        let padded = data.rows().next_multiple_of(TOGETHER);
        let mut values = Vec::with_capacity(padded * data.columns().len());
        for column in data.columns() {
            values.extend_from_slice(column);
            // Any number will do: it is never counted.
            values.resize(values.len() + padded - column.len(), column[0]);
        }
        let columns = data.columns().len();
        let ranges = (0..columns).map(|column| data.ends(column)).map(|(low, high)| (high - low).ln());
        let (log_range, instructions) = (ranges.sum(), Instructions::detect());
        Self { rows: data.rows(), values, columns, log_range, instructions }
    }

    fn look(&self, normals: &Normals, with_moments: bool) -> Sums {
        self.instructions.run(Look { of: self, normals, with_moments })
    }
}

impl ComponentLikelihood for MixtureLikelihood {
    fn log_likelihood(&self, draw: &Draw<'_>) -> Result<f64, DensityError> {
        let normals = Normals::new(self.columns, draw.theta());
        Ok(self.look(&normals, false).log_likelihood)
    }

    fn by_parts(&self) -> Option<&dyn ByParts> {
        Some(self)
    }

    fn has_gradient(&self) -> bool {
        true
    }

    fn with_gradient(&self, draw: &Draw<'_>, gradient: &mut [f64]) -> Result<f64, DensityError> {
        let (columns, theta) = (self.columns, draw.theta());
        let normals = Normals::new(columns, theta);
        let sums = self.look(&normals, true);
        let (each, width) = (moments(columns), columns + packed(columns) + 1);
        let (by_beta, by_blocks) = gradient.split_at_mut(columns);
        let mut row = vec![0.0; columns];
        for component in 0..normals.count {
            let own = &sums.moments[component * each..][..each];
            let factor = &normals.factors[component * packed(columns)..][..packed(columns)];
            let by = &mut by_blocks[component * width..][..width];
            let block = &theta[columns + component * width..][..width];
            let (count, first, second) = (own[0], &own[1..=columns], &own[1 + columns..]);
            let second = |i: usize, j: usize| second[packed(i.max(j)) + i.min(j)];
            let a = |i: usize, j: usize| if j <= i { factor[packed(i) + j] } else { 0.0 };
            // d/dμ = S A Aᵀ Σ ρ r.
            for (j, to) in row.iter_mut().enumerate() {
                *to = (j..columns).map(|i| a(i, j) * first[i]).sum();
            }
            for (i, (to, scale)) in by.iter_mut().zip(&normals.scales).enumerate() {
                *to = scale * (0..=i).map(|j| a(i, j) * row[j]).sum::<f64>();
            }
            // d/dA = −Σ ρ r (Aᵀ r)ᵀ, and 1/A_ii for each observation on the diagonal.
            let mut below = 2 * columns;
            for i in 0..columns {
                let mut by_scale = 0.0;
                for j in 0..=i {
                    let product: f64 = (j..columns).map(|l| a(l, j) * second(l, i)).sum();
                    by_scale += a(i, j) * product;
                    if j < i {
                        by[below] = -product;
                        below += 1;
                    } else {
                        let by_root = count / a(i, i) - product;
                        by[columns + i] = by_root * a(i, i) / (2.0 * block[columns + i].max(SMALLEST));
                    }
                }
                by_beta[i] += (by_scale - count) / (2.0 * theta[i]);
            }
            by[width - 1] = count / normals.weights[component];
        }
        Ok(sums.log_likelihood)
    }
}

//! The likelihood from the densities of each component at all observations: those of the others need not be found again while one
//! changes.

use super::{MixtureLikelihood, Normals, packed};
use crate::problem::components::ByParts;
use crate::simd::{Kernel, Real, Vector};

/// Observations that are looked at together.
const TOGETHER: usize = 16;

/// Sums of densities below this have lost digits, and are found from logarithms.
const LEAST_SUM: f64 = 1e-280;

/// Densities of a component without its weight, in units of one over the product of the columns' ranges.
struct Densities<'a> {
    of: &'a MixtureLikelihood,
    normal: &'a Normals,
    to: &'a mut [f64],
}

impl Kernel<f64> for Densities<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        match self.of.columns {
            1 => self.run_columns::<1>(),
            2 => self.run_columns::<2>(),
            _ => self.run_columns::<0>(),
        }
    }
}

impl Densities<'_> {
    /// Of so many columns; 0 for however many there are.
    #[inline(always)]
    fn run_columns<const COLUMNS: usize>(self) {
        let Self { of, normal, to } = self;
        let columns = if COLUMNS == 0 { of.columns } else { COLUMNS };
        let padded = of.values.len() / columns;
        let log_peak = normal.logs[0] + of.log_range;
        for (place, to) in to.chunks_exact_mut(TOGETHER).enumerate() {
            let mut logs = [log_peak; TOGETHER];
            for j in 0..columns {
                let mut u = [0.0; TOGETHER];
                for i in j..columns {
                    let (a, mean) = (normal.factors[packed(i) + j] * normal.scales[i], normal.means[i]);
                    let values = &of.values[i * padded + place * TOGETHER..][..TOGETHER];
                    u.iter_mut().zip(values).for_each(|(u, y)| *u += a * (y - mean));
                }
                logs.iter_mut().zip(&u).for_each(|(log, u)| *log -= 0.5 * u * u);
            }
            to.iter_mut().zip(&logs).for_each(|(to, log)| *to = Real::exp(*log));
        }
    }
}

/// `Σ log Σ w p` over observations; none where a sum has lost its digits.
struct Whole<'a> {
    rows: usize,
    weights: &'a [f64],
    parts: &'a [f64],
}

impl Kernel<f64> for Whole<'_> {
    type Output = Option<f64>;

    #[inline(always)]
    fn run<V: Vector<f64>>(self) -> Option<f64> {
        let Self { rows, weights, parts } = self;
        let len = rows.next_multiple_of(TOGETHER);
        let mut sums = vec![0.0f64; len];
        for (weight, part) in weights.iter().zip(parts.chunks_exact(len)) {
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += weight * part);
        }
        // What fills up the last ones counts nothing.
        sums[rows..].fill(1.0);
        let (mut lanes, mut least) = ([0.0; TOGETHER], [f64::INFINITY; TOGETHER]);
        for sums in sums.chunks_exact(TOGETHER) {
            for ((lane, least), sum) in lanes.iter_mut().zip(&mut least).zip(sums) {
                *least = Real::min(*least, *sum);
                *lane += Real::ln(*sum);
            }
        }
        least.iter().all(|least| *least >= LEAST_SUM).then(|| lanes.iter().sum())
    }
}

impl ByParts for MixtureLikelihood {
    fn part_len(&self) -> usize {
        self.rows.next_multiple_of(TOGETHER)
    }

    fn part(&self, globals: &[f64], block: &[f64], to: &mut [f64]) {
        let mut theta = Vec::with_capacity(globals.len() + block.len());
        theta.extend_from_slice(globals);
        theta.extend_from_slice(&block[..block.len() - 1]);
        theta.push(1.0);
        let normal = Normals::new(self.columns, &theta);
        self.instructions.run(Densities { of: self, normal: &normal, to });
    }

    /// Scales of precisions.
    fn is_global(&self) -> bool {
        true
    }

    fn whole(&self, theta: &[f64], parts: &[f64]) -> f64 {
        let width = self.columns + packed(self.columns) + 1;
        let weights: Vec<f64> = theta[self.columns..].iter().skip(width - 1).step_by(width).copied().collect();
        let sum = self.instructions.run(Whole { rows: self.rows, weights: &weights, parts });
        match sum {
            Some(sum) => sum - self.rows as f64 * self.log_range,
            None => self.look(&Normals::new(self.columns, theta), false).log_likelihood,
        }
    }
}

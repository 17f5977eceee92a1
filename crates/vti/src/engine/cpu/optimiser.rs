//! Passes over all parameters.

use super::simd::{Kernel, Vector};
use super::team::{Chunks, for_each};
use crate::engine::{AdamWStep, CpuEngine, Real};

/// Numbers per task.
const CHUNK: usize = 1 << 14;

struct SquaredNorm<'a, T>(&'a [T]);

impl<T: Real> Kernel<T> for SquaredNorm<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn run<V: Vector<T>>(self) -> f64 {
        let mut sums = [0.0f64; 16];
        let sixteens = self.0.chunks_exact(16);
        let rest: f64 = sixteens.remainder().iter().map(|x| x.to_f64() * x.to_f64()).sum();
        for sixteen in sixteens {
            for (sum, x) in sums.iter_mut().zip(sixteen) {
                *sum += x.to_f64() * x.to_f64();
            }
        }
        sums.into_iter().sum::<f64>() + rest
    }
}

/// Chunk `index` of a slice.
fn chunk<T>(slice: &[T], index: usize, len: usize) -> &[T] {
    &slice[index * len..slice.len().min((index + 1) * len)]
}

/// Euclidean norm.
pub(super) fn norm<T: Real>(engine: &CpuEngine<T>, buffer: &[T]) -> f64 {
    // A fixed number of partial sums: their order of addition is the same for any number of threads.
    const PARTS: usize = 64;
    let mut parts = [0.0; PARTS];
    let len = buffer.len().div_ceil(PARTS).max(CHUNK);
    for_each(engine.team_for(buffer.len()), Chunks::new(&mut parts, 1), buffer.len().div_ceil(len), |index, sum| {
        sum[0] = engine.run(SquaredNorm(chunk(buffer, index, len)));
    });
    parts.into_iter().sum::<f64>().sqrt()
}

struct Combine<'a, T> {
    factor: T,
    from: &'a [T],
    keep: T,
    to: &'a mut [T],
}

impl<T: Real> Kernel<T> for Combine<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { factor, from, keep, to } = self;
        if keep == T::ZERO {
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = factor * from);
        } else {
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = factor.mul_add(from, keep * *to));
        }
    }
}

/// `to = factor · from + keep · to`.
pub(super) fn combine<T: Real>(engine: &CpuEngine<T>, factor: f64, from: &[T], keep: f64, to: &mut [T]) {
    assert_eq!(from.len(), to.len(), "buffers of one length");
    let (factor, keep) = (T::from_f64(factor), T::from_f64(keep));
    let team = engine.team_for(4 * to.len());
    for_each(team, Chunks::new(to, CHUNK), usize::MAX, |index, to| {
        engine.run(Combine { factor, from: chunk(from, index, CHUNK), keep, to });
    });
}

struct AdamW<'a, T> {
    step: &'a AdamWStep,
    /// What the gradient is multiplied with first.
    scale: f64,
    gradient: &'a [T],
    first: &'a mut [T],
    second: &'a mut [T],
    parameters: &'a mut [T],
}

impl<T: Real> Kernel<T> for AdamW<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let number = T::from_f64;
        let AdamWStep { rate, beta1, beta2, epsilon, weight_decay, bias1, bias2, .. } = *self.step;
        let (b1, b2, scale) = (number(beta1), number(beta2), number(self.scale));
        let (c1, c2) = (number(1.0 - beta1), number(1.0 - beta2));
        let keep = number(1.0 - rate * weight_decay);
        let (rate, root, epsilon) = (number(-rate / bias1), number(1.0 / bias2), number(epsilon));
        let moments = self.first.iter_mut().zip(self.second.iter_mut());
        for ((p, &g), (m, v)) in self.parameters.iter_mut().zip(self.gradient).zip(moments) {
            let g = g * scale;
            // Moments that only decay would end, and stay, among the subnormal numbers, where arithmetic is slow.
            let flush = |x: T| if x.abs() < T::MIN_POSITIVE { T::ZERO } else { x };
            *m = flush((*m).mul_add(b1, g * c1));
            *v = flush((*v).mul_add(b2, g * g * c2));
            *p = (*p).mul_add(keep, rate * *m / ((*v * root).sqrt() + epsilon));
        }
    }
}

pub(super) fn adamw<T: Real>(
    engine: &CpuEngine<T>,
    step: &AdamWStep,
    gradient: &[T],
    first: &mut [T],
    second: &mut [T],
    parameters: &mut [T],
) -> f64 {
    let lengths = [gradient.len(), first.len(), second.len()];
    assert_eq!(lengths, [parameters.len(); 3], "gradient, moments and parameters of one length");
    let norm = norm(engine, gradient);
    if !norm.is_finite() {
        return norm;
    }
    let scale = if norm > step.clip_norm { step.clip_norm / norm } else { 1.0 };
    let team = engine.team_for(4 * parameters.len());
    let moments = (Chunks::new(first, CHUNK), Chunks::new(second, CHUNK));
    for_each(team, (Chunks::new(parameters, CHUNK), moments), usize::MAX, |index, (parameters, (first, second))| {
        engine.run(AdamW { step, scale, gradient: chunk(gradient, index, CHUNK), first, second, parameters });
    });
    norm
}

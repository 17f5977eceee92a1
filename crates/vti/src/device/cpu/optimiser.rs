//! Passes over all parameters.

use crate::device::{AdamWStep, Cpu, UpdateRecord};
use crate::simd::{Kernel, Real, Vector};
use crate::workers::Chunks;

/// Numbers per task.
const NUMBERS_PER_TASK: usize = 1 << 14;

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
pub(super) fn norm<T: Real>(device: &Cpu<T>, buffer: &[T]) -> f64 {
    // A fixed number of partial sums: their order of addition is the same for any number of threads.
    const PARTIAL_SUMS: usize = 64;
    let mut parts = [0.0; PARTIAL_SUMS];
    let len = buffer.len().div_ceil(PARTIAL_SUMS).max(NUMBERS_PER_TASK);
    let workers = device.workers_for(buffer.len());
    workers.for_each_part(Chunks::new(&mut parts, 1), buffer.len().div_ceil(len), |index, sum| {
        sum[0] = device.run(SquaredNorm(chunk(buffer, index, len)));
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
pub(super) fn combine<T: Real>(device: &Cpu<T>, factor: f64, from: &[T], keep: f64, to: &mut [T]) {
    let (factor, keep) = (T::from_f64(factor), T::from_f64(keep));
    device.workers_for(4 * to.len()).for_each_part(Chunks::new(to, NUMBERS_PER_TASK), usize::MAX, |index, to| {
        device.run(Combine { factor, from: chunk(from, index, NUMBERS_PER_TASK), keep, to });
    });
}

struct AdamW<'a, T> {
    step: &'a AdamWStep,
    /// `1 − β₁ᵗ` and `1 − β₂ᵗ`.
    bias: [f64; 2],
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
        let AdamWStep { rate, beta1, beta2, epsilon, weight_decay, .. } = *self.step;
        let [bias1, bias2] = self.bias;
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

/// What the gradient is multiplied with, so that its norm is at most `clip_norm`; none if it is not to be followed.
fn clipped<T: Real>(device: &Cpu<T>, gradient: &[T], clip_norm: f64, record: &mut UpdateRecord) -> Option<f64> {
    let norm = norm(device, gradient);
    let scale = if norm > clip_norm { clip_norm / norm } else { 1.0 };
    record.observe(norm).then_some(scale)
}

pub(super) fn adamw<T: Real>(
    device: &Cpu<T>,
    step: &AdamWStep,
    gradient: &[T],
    (first, second): (&mut [T], &mut [T]),
    parameters: &mut [T],
    record: &mut UpdateRecord,
) {
    let Some(scale) = clipped(device, gradient, step.clip_norm, record) else { return };
    let bias = [step.beta1, step.beta2].map(|beta| record.bias_correction(beta));
    let moments = (Chunks::new(first, NUMBERS_PER_TASK), Chunks::new(second, NUMBERS_PER_TASK));
    let parts = (Chunks::new(parameters, NUMBERS_PER_TASK), moments);
    let workers = device.workers_for(4 * gradient.len());
    workers.for_each_part(parts, usize::MAX, |index, (parameters, (first, second))| {
        device.run(AdamW {
            step,
            bias,
            scale,
            gradient: chunk(gradient, index, NUMBERS_PER_TASK),
            first,
            second,
            parameters,
        });
    });
}

pub(super) fn descend<T: Real>(
    device: &Cpu<T>,
    (rate, clip_norm): (f64, f64),
    gradient: &[T],
    parameters: &mut [T],
    record: &mut UpdateRecord,
) {
    if let Some(scale) = clipped(device, gradient, clip_norm, record) {
        combine(device, -rate * scale, gradient, 1.0, parameters);
    }
}

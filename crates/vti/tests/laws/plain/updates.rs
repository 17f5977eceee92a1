//! Updates of parameters, number by number.

use vti::device::{AdamWStep, UpdateRecord};

pub(super) fn norm(buffer: &[f64]) -> f64 {
    buffer.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The gradient after clipping; none if it is not to be followed.
fn clipped(gradient: &[f64], clip_norm: f64, record: &mut UpdateRecord) -> Option<Vec<f64>> {
    let norm = norm(gradient);
    let scale = if norm > clip_norm { clip_norm / norm } else { 1.0 };
    record.observe(norm).then(|| gradient.iter().map(|g| scale * g).collect())
}

/// Loshchilov and Hutter 2019, algorithm 2.
pub(super) fn adamw(
    step: &AdamWStep,
    gradient: &[f64],
    (first, second): (&mut [f64], &mut [f64]),
    parameters: &mut [f64],
    record: &mut UpdateRecord,
) {
    let Some(gradient) = clipped(gradient, step.clip_norm, record) else { return };
    let (bias1, bias2) = (record.bias_correction(step.beta1), record.bias_correction(step.beta2));
    for (i, g) in gradient.into_iter().enumerate() {
        first[i] = step.beta1 * first[i] + (1.0 - step.beta1) * g;
        second[i] = step.beta2 * second[i] + (1.0 - step.beta2) * g * g;
        let direction = first[i] / bias1 / ((second[i] / bias2).sqrt() + step.epsilon);
        parameters[i] -= step.rate * (direction + step.weight_decay * parameters[i]);
    }
}

pub(super) fn descend(rate: f64, clip_norm: f64, gradient: &[f64], parameters: &mut [f64], record: &mut UpdateRecord) {
    let Some(gradient) = clipped(gradient, clip_norm, record) else { return };
    parameters.iter_mut().zip(gradient).for_each(|(p, g)| *p -= rate * g);
}

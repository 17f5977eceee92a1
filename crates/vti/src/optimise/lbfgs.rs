//! Climbing with limited memory: for functions of a hundred numbers and more.

use super::Mode;

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most steps.
    pub steps: usize,
    /// Enough when so many steps,
    pub patience: usize,
    /// rise less than this together.
    pub flat: f64,
}

/// Steps that are remembered.
const MEMORY: usize = 8;
/// The share of the promised rise that a step must bring (Armijo).
const SUFFICIENT: f64 = 1e-4;
/// The most halvings of a step.
const HALVINGS: usize = 20;

/// Climbs `f`, which returns its value and writes its gradient, by L-BFGS with a backtracking search (Nocedal and Wright,
/// Numerical Optimization, 2006, chapter 7). `metric` writes the diagonal of a rough inverse of the negative Hessian at a
/// point: what the memory corrects. Nothing where `f` is not finite at the start.
pub(crate) fn maximise_with_metric(
    start: &[f64],
    limits: Limits,
    metric: impl Fn(&[f64], &mut [f64]),
    mut f: impl FnMut(&[f64], &mut [f64]) -> f64,
) -> Option<Mode> {
    let size = start.len();
    let (mut point, mut gradient) = (start.to_vec(), vec![0.0; size]);
    let mut value = f(&point, &mut gradient);
    if !(value.is_finite() && gradient.iter().all(|g| g.is_finite())) {
        return None;
    }
    let mut memory = Memory::default();
    let (mut next, mut next_gradient) = (point.clone(), gradient.clone());
    let (mut diagonal, mut direction) = (vec![0.0; size], vec![0.0; size]);
    let mut looked_at = value;
    for step in 1..=limits.steps {
        metric(&point, &mut diagonal);
        direction.copy_from_slice(&gradient);
        memory.apply(&diagonal, &mut direction);
        let rise = dot(&direction, &gradient);
        let mut length = 1.0;
        let found = (0..HALVINGS).find_map(|_| {
            (0..size).for_each(|i| next[i] = point[i] + length * direction[i]);
            let found = f(&next, &mut next_gradient);
            let enough = found >= value + SUFFICIENT * length * rise && next_gradient.iter().all(|g| g.is_finite());
            length *= 0.5;
            enough.then_some(found)
        });
        match found {
            Some(found) => value = found,
            // What is remembered may mislead; without it the direction is as good as the metric.
            None if !memory.pairs.is_empty() => {
                memory.pairs.clear();
                continue;
            }
            None => break,
        }
        memory.learn(&point, &next, &gradient, &next_gradient);
        std::mem::swap(&mut point, &mut next);
        std::mem::swap(&mut gradient, &mut next_gradient);
        if step % limits.patience == 0 {
            if value - looked_at < limits.flat {
                break;
            }
            looked_at = value;
        }
    }
    Some(Mode { point, value })
}

/// Steps s and how much they lowered the gradient, y; oldest first.
#[derive(Default)]
struct Memory {
    pairs: std::collections::VecDeque<Pair>,
}

struct Pair {
    s: Vec<f64>,
    y: Vec<f64>,
    /// 1 / (s·y).
    inverse: f64,
}

impl Memory {
    /// Multiplies by the inverse of the negative Hessian as far as it is known: the two loops.
    fn apply(&self, diagonal: &[f64], x: &mut [f64]) {
        let mut shares = [0.0; MEMORY];
        for (pair, share) in self.pairs.iter().zip(&mut shares).rev() {
            *share = pair.inverse * dot(&pair.s, x);
            add(x, -*share, &pair.y);
        }
        let scale = match self.pairs.back() {
            Some(Pair { y, inverse, .. }) => 1.0 / (inverse * weighted(y, diagonal)),
            // The first step is at most one unit long, as the metric measures.
            None => 1.0 / weighted(x, diagonal).sqrt().max(1.0),
        };
        x.iter_mut().zip(diagonal).for_each(|(x, d)| *x *= scale * d);
        for (pair, share) in self.pairs.iter().zip(&shares) {
            let correction = share - pair.inverse * dot(&pair.y, x);
            add(x, correction, &pair.s);
        }
    }

    fn learn(&mut self, from: &[f64], to: &[f64], before: &[f64], after: &[f64]) {
        let s: Vec<f64> = to.iter().zip(from).map(|(a, b)| a - b).collect();
        let y: Vec<f64> = before.iter().zip(after).map(|(a, b)| a - b).collect();
        let curvature = dot(&s, &y);
        if curvature > 1e-10 * (dot(&s, &s) * dot(&y, &y)).sqrt() {
            if self.pairs.len() == MEMORY {
                self.pairs.pop_front();
            }
            self.pairs.push_back(Pair { s, y, inverse: 1.0 / curvature });
        }
    }
}

fn add(x: &mut [f64], factor: f64, y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += factor * y);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Four sums side by side: one alone would wait for itself.
    let (a_chunks, b_chunks) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0; 4];
    for (a, b) in a_chunks.zip(b_chunks) {
        (0..4).for_each(|i| sums[i] += a[i] * b[i]);
    }
    rest + sums.iter().sum::<f64>()
}

/// `Σ x² d`.
fn weighted(x: &[f64], diagonal: &[f64]) -> f64 {
    x.iter().zip(diagonal).map(|(x, d)| x * x * d).sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Bent ridges side by side, each with its mode at (1, 1), in coordinates whose units differ by `unit`.
    fn ridges(unit: f64) -> impl FnMut(&[f64], &mut [f64]) -> f64 {
        move |x, gradient| {
            x.chunks_exact(2)
                .zip(gradient.chunks_exact_mut(2))
                .map(|(x, gradient)| {
                    let (a, b) = (x[0], x[1] * unit);
                    let bend = b - a * a;
                    gradient[0] = 400.0 * bend * a + 2.0 * (1.0 - a);
                    gradient[1] = -200.0 * bend * unit;
                    -100.0 * bend * bend - (1.0 - a).powi(2)
                })
                .sum()
        }
    }

    #[test]
    fn bent_ridges_are_climbed_in_any_unit() {
        for unit in [1.0, 1e3] {
            let start = [-1.2, 1.0 / unit, 0.3, -1.0 / unit, 2.0, 2.0 / unit];
            let metric = |_: &[f64], to: &mut [f64]| {
                to.chunks_exact_mut(2).for_each(|to| to.copy_from_slice(&[1.0, 1.0 / (unit * unit)]));
            };
            let mode =
                maximise_with_metric(&start, Limits { steps: 500, patience: 10, flat: 1e-14 }, metric, ridges(unit))
                    .unwrap();
            for x in mode.point.chunks_exact(2) {
                assert!((x[0] - 1.0).abs() < 1e-4 && (x[1] * unit - 1.0).abs() < 1e-4, "{mode:?}");
            }
        }
    }

    #[test]
    fn what_has_no_value_is_not_climbed() {
        let flat = |_: &[f64], to: &mut [f64]| to.fill(1.0);
        assert!(
            maximise_with_metric(&[f64::NAN, 0.0], Limits { steps: 5, patience: 10, flat: 0.0 }, flat, ridges(1.0))
                .is_none()
        );
        let none = maximise_with_metric(&[], Limits { steps: 5, patience: 10, flat: 0.0 }, flat, |_, _| 2.0);
        assert_eq!(none, Some(Mode { point: Vec::new(), value: 2.0 }));
    }
}

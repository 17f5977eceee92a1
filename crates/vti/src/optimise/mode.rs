//! Modes of smooth functions of a few numbers: where they are, and how sharp.

/// A place and the height there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mode {
    pub(crate) point: Vec<f64>,
    pub(crate) value: f64,
}

/// The share of the promised rise that a step must bring (Armijo).
const SUFFICIENT: f64 = 1e-4;
/// Half the promised rise below which there is nothing left to gain.
const FLAT: f64 = 1e-12;

/// Climbs `f`, which returns its value and writes its gradient, by BFGS with a backtracking search (Nocedal and Wright,
/// Numerical Optimization, 2006, chapter 6), in at most `steps` steps. Nothing where `f` is not finite at the start.
pub(crate) fn maximise(start: &[f64], steps: usize, mut f: impl FnMut(&[f64], &mut [f64]) -> f64) -> Option<Mode> {
    let size = start.len();
    let (mut point, mut gradient) = (start.to_vec(), vec![0.0; size]);
    let mut value = f(&point, &mut gradient);
    if !(value.is_finite() && gradient.iter().all(|g| g.is_finite())) {
        return None;
    }
    // The inverse of the negative Hessian, as far as it is known.
    let mut inverse = vec![0.0; size * size];
    let (mut next, mut next_gradient) = (point.clone(), gradient.clone());
    for step in 0..steps {
        if step == 0 {
            // The first step is at most one unit long.
            let unit = 1.0 / norm(&gradient).max(1.0);
            (0..size).for_each(|i| inverse[i * size + i] = unit);
        }
        let direction: Vec<f64> = inverse.chunks_exact(size.max(1)).map(|row| dot(row, &gradient)).collect();
        let rise = dot(&direction, &gradient);
        if rise <= FLAT {
            break;
        }
        let mut length = 1.0;
        let found = loop {
            (0..size).for_each(|i| next[i] = point[i] + length * direction[i]);
            let found = f(&next, &mut next_gradient);
            if found >= value + SUFFICIENT * length * rise && next_gradient.iter().all(|g| g.is_finite()) {
                break Some(found);
            }
            length *= 0.5;
            if length < 1e-10 {
                break None;
            }
        };
        let Some(found) = found else { break };
        let s: Vec<f64> = next.iter().zip(&point).map(|(a, b)| a - b).collect();
        let y: Vec<f64> = gradient.iter().zip(&next_gradient).map(|(a, b)| a - b).collect();
        update(&mut inverse, &s, &y, step == 0);
        value = found;
        std::mem::swap(&mut point, &mut next);
        std::mem::swap(&mut gradient, &mut next_gradient);
    }
    Some(Mode { point, value })
}

/// The BFGS update of an inverse after a step s that lowered the gradient by y.
fn update(inverse: &mut [f64], s: &[f64], y: &[f64], first: bool) {
    let (size, curvature) = (s.len(), dot(s, y));
    if curvature <= 1e-12 * norm(s) * norm(y) {
        return;
    }
    if first {
        let scale = curvature / dot(y, y);
        inverse.fill(0.0);
        (0..size).for_each(|i| inverse[i * size + i] = scale);
    }
    let product: Vec<f64> = inverse.chunks_exact(size.max(1)).map(|row| dot(row, y)).collect();
    let factor = (1.0 + dot(y, &product) / curvature) / curvature;
    for i in 0..size {
        for j in 0..size {
            inverse[i * size + j] += factor * s[i] * s[j] - (product[i] * s[j] + s[i] * product[j]) / curvature;
        }
    }
}

/// The negative Hessian at a point, row-major, by central differences of the gradient.
pub(crate) fn curvature(point: &[f64], mut f: impl FnMut(&[f64], &mut [f64]) -> f64) -> Vec<f64> {
    let size = point.len();
    let mut moved = point.to_vec();
    let (mut above, mut below) = (vec![0.0; size], vec![0.0; size]);
    let mut matrix = vec![0.0; size * size];
    for i in 0..size {
        let step = 1e-5 * (1.0 + point[i].abs());
        moved[i] = point[i] + step;
        f(&moved, &mut above);
        moved[i] = point[i] - step;
        f(&moved, &mut below);
        moved[i] = point[i];
        for j in 0..size {
            // Half to each of both triangles: rounding is not symmetric.
            let half = 0.25 * (below[j] - above[j]) / step;
            matrix[i * size + j] += half;
            matrix[j * size + i] += half;
        }
    }
    matrix
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A bent ridge with its mode at (1, 1), −100 and −1 in height along its axes.
    fn ridge(x: &[f64], gradient: &mut [f64]) -> f64 {
        let bend = x[1] - x[0] * x[0];
        gradient[0] = 400.0 * bend * x[0] + 2.0 * (1.0 - x[0]);
        gradient[1] = -200.0 * bend;
        -100.0 * bend * bend - (1.0 - x[0]).powi(2)
    }

    #[test]
    fn a_bent_ridge_is_climbed() {
        let mode = maximise(&[-1.2, 1.0], 200, ridge).unwrap();
        assert!((mode.point[0] - 1.0).abs() < 1e-5 && (mode.point[1] - 1.0).abs() < 1e-5, "{mode:?}");
        assert!(maximise(&[f64::NAN, 0.0], 5, ridge).is_none());
    }

    #[test]
    fn curvature_is_the_negative_hessian() {
        let found = curvature(&[1.0, 1.0], ridge);
        for (found, expected) in found.iter().zip([802.0, -400.0, -400.0, 200.0]) {
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
    }
}

//! Eigenvalues of small symmetric matrices, by Jacobi's rotations.

/// Sweeps over all pairs; a handful are enough.
const MAX_SWEEPS: usize = 40;

/// Entries so small beside the diagonal are 0. Measured against both places of the diagonal, small eigenvalues of matrices
/// whose rows have different units keep their digits (Demmel and Veselić 1992).
const NEGLIGIBLE: f64 = 1e-16;

/// Replaces the diagonal of a symmetric, positive semi-definite matrix by its eigenvalues; the eigenvectors, row by row.
pub(super) fn diagonalise(matrix: &mut [f64], dim: usize) -> Vec<f64> {
    let mut vectors = vec![0.0; dim * dim];
    (0..dim).for_each(|i| vectors[i * dim + i] = 1.0);
    for _ in 0..MAX_SWEEPS {
        let mut rotated = false;
        for p in 0..dim {
            for q in p + 1..dim {
                let (own, other, both) = (matrix[p * dim + p], matrix[q * dim + q], matrix[p * dim + q]);
                if both.abs() <= NEGLIGIBLE * (own.max(0.0) * other.max(0.0)).sqrt() {
                    continue;
                }
                rotated = true;
                // The smaller of the two angles that make the entry 0.
                let cotangent = (other - own) / (2.0 * both);
                let tangent = cotangent.signum() / (cotangent.abs() + (cotangent * cotangent + 1.0).sqrt());
                let cosine = (tangent * tangent + 1.0).sqrt().recip();
                rotate(matrix, dim, (p, q), cosine, tangent * cosine);
                turn(&mut vectors, dim, (p, q), cosine, tangent * cosine);
            }
        }
        if !rotated {
            break;
        }
    }
    vectors
}

/// `A ← Jᵀ A J` in the plane of two places.
fn rotate(matrix: &mut [f64], dim: usize, (p, q): (usize, usize), cosine: f64, sine: f64) {
    turn(matrix, dim, (p, q), cosine, sine);
    for row in matrix.chunks_exact_mut(dim) {
        (row[p], row[q]) = (cosine * row[p] - sine * row[q], sine * row[p] + cosine * row[q]);
    }
    (matrix[p * dim + q], matrix[q * dim + p]) = (0.0, 0.0);
}

/// The same of two rows alone.
fn turn(matrix: &mut [f64], dim: usize, (p, q): (usize, usize), cosine: f64, sine: f64) {
    for column in 0..dim {
        let (a, b) = (matrix[p * dim + column], matrix[q * dim + column]);
        (matrix[p * dim + column], matrix[q * dim + column]) = (cosine * a - sine * b, sine * a + cosine * b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvectors_make_a_matrix_diagonal() {
        // Of rank 4 in dimension 6, with units a million apart.
        let (dim, rank) = (6, 4);
        let unit = |i: usize| 10f64.powi(2 * i as i32 - 6);
        let root = |i: usize, k: usize| unit(i) * (1.0 + (i * rank + k) as f64).sin();
        let entry = |i: usize, j: usize| (0..rank).map(|k| root(i, k) * root(j, k)).sum::<f64>();
        let matrix: Vec<f64> = (0..dim * dim).map(|place| entry(place / dim, place % dim)).collect();
        let mut diagonal = matrix.clone();
        let vectors = diagonalise(&mut diagonal, dim);
        for i in 0..dim {
            for j in 0..dim {
                let product: f64 = (0..dim).map(|k| vectors[i * dim + k] * vectors[j * dim + k]).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12, "{i} {j}: {product}");
                let sum = |k: usize| vectors[k * dim + i] * diagonal[k * dim + k] * vectors[k * dim + j];
                let back: f64 = (0..dim).map(sum).sum();
                let size = (matrix[i * dim + i] * matrix[j * dim + j]).sqrt();
                assert!((back - matrix[i * dim + j]).abs() < 1e-9 * size.max(1e-3), "{i} {j}: {back}");
            }
        }
    }
}

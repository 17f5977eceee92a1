//! Lower triangular matrices, packed row by row: Cholesky's decomposition and what it is good for.

use crate::simd::Real;
use crate::simd::{Instructions, Kernel, Vector};

/// Numbers of a packed matrix.
pub(crate) fn packed_len(dim: usize) -> usize {
    dim * (dim + 1) / 2
}

/// Where a row starts.
fn start(row: usize) -> usize {
    packed_len(row)
}

/// The lower half of a square matrix, packed.
pub(crate) fn lower_half(matrix: &[f64], dim: usize) -> Vec<f64> {
    (0..dim).flat_map(|i| &matrix[i * dim..][..=i]).copied().collect()
}

/// A pivot below so much of what stood there before is 0 up to rounding.
const SMALLEST_PIVOT: f64 = 1e-10;

/// Replaces the lower half of a symmetric positive definite matrix A by C with `C Cᵀ = A`; or says in which row it turned
/// out not to be positive definite.
pub(crate) fn cholesky(matrix: &mut [f64], dim: usize) -> Result<(), usize> {
    Instructions::detect().run(Cholesky { matrix, dim })
}

struct Cholesky<'a> {
    matrix: &'a mut [f64],
    dim: usize,
}

impl Kernel<f64> for Cholesky<'_> {
    type Output = Result<(), usize>;

    /// Column by column: what a column takes from those to its right is a multiple of itself in every row, which runs over
    /// neighbouring numbers without waiting for sums.
    #[inline(always)]
    fn run<V: Vector<f64>>(self) -> Result<(), usize> {
        let Self { matrix, dim } = self;
        let diagonal: Vec<f64> = (0..dim).map(|i| matrix[start(i) + i]).collect();
        let mut column = vec![0.0; dim];
        for k in 0..dim {
            let pivot = matrix[start(k) + k];
            // Also when it is not a number.
            if !(pivot > SMALLEST_PIVOT * diagonal[k] && pivot.is_finite()) {
                return Err(k);
            }
            let root = pivot.sqrt();
            matrix[start(k) + k] = root;
            let inverse = 1.0 / root;
            for i in k + 1..dim {
                let row = &mut matrix[start(i)..][..=i];
                row[k] *= inverse;
                column[i] = row[k];
                let factor = -row[k];
                row[k + 1..].iter_mut().zip(&column[k + 1..]).for_each(|(x, &c)| *x = Real::mul_add(factor, c, *x));
            }
        }
        Ok(())
    }
}

/// `Σ log C_ii`.
pub(crate) fn log_diagonal(factor: &[f64], dim: usize) -> f64 {
    (0..dim).map(|i| factor[start(i) + i].ln()).sum()
}

/// `x ← C⁻¹ x`.
pub(crate) fn solve(factor: &[f64], x: &mut [f64]) {
    Instructions::detect().run(Solve { factor, x });
}

struct Solve<'a> {
    factor: &'a [f64],
    x: &'a mut [f64],
}

impl Kernel<f64> for Solve<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        for i in 0..self.x.len() {
            let row = &self.factor[start(i)..][..=i];
            self.x[i] = (self.x[i] - dot(&row[..i], &self.x[..i])) / row[i];
        }
    }
}

/// `x ← C⁻ᵀ x`.
pub(crate) fn solve_transposed(factor: &[f64], x: &mut [f64]) {
    Instructions::detect().run(SolveTransposed { factor, x });
}

struct SolveTransposed<'a> {
    factor: &'a [f64],
    x: &'a mut [f64],
}

impl Kernel<f64> for SolveTransposed<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        for i in (0..self.x.len()).rev() {
            let row = &self.factor[start(i)..][..=i];
            let (before, own) = self.x.split_at_mut(i);
            own[0] /= row[i];
            let factor = -own[0];
            before.iter_mut().zip(row).for_each(|(x, &c)| *x = Real::mul_add(factor, c, *x));
        }
    }
}

/// `x ← Cᵀ x`.
pub(crate) fn multiply_transposed(factor: &[f64], x: &mut [f64]) {
    for i in 0..x.len() {
        let row = &factor[start(i)..][..=i];
        let (before, own) = x.split_at_mut(i);
        before.iter_mut().zip(row).for_each(|(x, c)| *x += own[0] * c);
        own[0] *= row[i];
    }
}

/// `Σ a b`, in sixteen lanes.
#[inline(always)]
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 16];
    let (a, b) = (a.chunks_exact(16), b.chunks_exact(16));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for lane in 0..16 {
            sums[lane] = Real::mul_add(a[lane], b[lane], sums[lane]);
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    /// A random factor with a positive diagonal, and `C Cᵀ`.
    fn example(dim: usize) -> (Vec<f64>, Vec<f64>) {
        let mut stream = Stream::new(1, Purpose::Other(0), 0, dim as u64);
        let mut factor = vec![0.0; packed_len(dim)];
        for i in 0..dim {
            factor[start(i)..start(i) + i].fill_with(|| stream.normal());
            factor[start(i) + i] = 1.0 + stream.uniform();
        }
        let at = |i: usize, j: usize| if j > i { 0.0 } else { factor[start(i) + j] };
        let pairs = (0..dim).flat_map(|i| (0..=i).map(move |j| (i, j)));
        let product = pairs.map(|(i, j)| (0..=j).map(|k| at(i, k) * at(j, k)).sum()).collect();
        (factor, product)
    }

    #[test]
    fn decomposition_finds_the_factor_again() {
        for dim in [0, 1, 2, 7, 40] {
            let (factor, mut product) = example(dim);
            assert_eq!(cholesky(&mut product, dim), Ok(()));
            let worst = factor.iter().zip(&product).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-8, "dimension {dim}: {worst}");
            let log_diagonal_directly: f64 = (0..dim).map(|i| factor[start(i) + i].ln()).sum();
            assert!((log_diagonal(&product, dim) - log_diagonal_directly).abs() < 1e-8);
        }
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_is_found_out() {
        assert_eq!(cholesky(&mut [1.0, 2.0, 4.0], 2), Err(1));
        assert_eq!(cholesky(&mut [0.0], 1), Err(0));
        assert_eq!(cholesky(&mut [1.0, 0.0, f64::NAN], 2), Err(1));
    }

    #[test]
    fn solving_undoes_multiplying() {
        for dim in [1, 3, 19, 33] {
            let (factor, product) = example(dim);
            let x: Vec<f64> = (0..dim).map(|i| (i as f64).sin()).collect();
            let mut back = x.clone();
            multiply_transposed(&factor, &mut back);
            solve_transposed(&factor, &mut back);
            assert!(x.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-9), "dimension {dim}");
            // C⁻ᵀ C⁻¹ (C Cᵀ x) = x.
            let at = |i: usize, j: usize| product[start(i.max(j)) + i.min(j)];
            let mut y: Vec<f64> = (0..dim).map(|i| (0..dim).map(|j| at(i, j) * x[j]).sum()).collect();
            solve(&factor, &mut y);
            solve_transposed(&factor, &mut y);
            assert!(x.iter().zip(&y).all(|(a, b)| (a - b).abs() < 1e-6), "dimension {dim}");
        }
    }
}

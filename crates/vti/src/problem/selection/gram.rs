//! Sums of products of columns.

use super::Design;
use crate::simd::{Instructions, Kernel, Real, Vector};
use crate::triangular::{cholesky, dot, log_diagonal, packed_len};

/// XᵀWX of all columns, W being the weights of the rows.
pub(super) fn gram(design: &Design) -> Vec<f64> {
    let count = design.columns();
    let mut gram = vec![0.0; count * count];
    for a in 0..count {
        let weighted: Vec<f64> = design.column(a).iter().zip(design.weights()).map(|(x, weight)| x * weight).collect();
        for b in 0..=a {
            let product = Instructions::detect().run(Dot { a: &weighted, b: design.column(b) });
            (gram[a * count + b], gram[b * count + a]) = (product, product);
        }
    }
    gram
}

/// log-determinant of a principal part of a Gram matrix; a column that depends on those before it, if there is one.
pub(super) fn log_determinant(gram: &[f64], count: usize, columns: &[u32]) -> Result<f64, usize> {
    let mut part = Vec::with_capacity(packed_len(columns.len()));
    for (i, &row) in columns.iter().enumerate() {
        part.extend(columns[..=i].iter().map(|&column| gram[row as usize * count + column as usize]));
    }
    cholesky(&mut part, columns.len()).map_err(|row| columns[row] as usize)?;
    Ok(2.0 * log_diagonal(&part, columns.len()))
}

/// `to += factor · from`.
pub(super) struct AddScaled<'a> {
    pub(super) factor: f64,
    pub(super) from: &'a [f64],
    pub(super) to: &'a mut [f64],
}

impl Kernel<f64> for AddScaled<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        let factor = self.factor;
        self.to.iter_mut().zip(self.from).for_each(|(to, &from)| *to = Real::mul_add(factor, from, *to));
    }
}

/// `Σ a b`.
pub(super) struct Dot<'a> {
    pub(super) a: &'a [f64],
    pub(super) b: &'a [f64],
}

impl Kernel<f64> for Dot<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<V: Vector<f64>>(self) -> f64 {
        dot(self.a, self.b)
    }
}

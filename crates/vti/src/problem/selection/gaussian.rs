//! Gaussian errors see the data through sums of products alone: with b the coefficients of a model, its intercept counted
//! from the mean of y,
//!
//! ```text
//! Σ (y − Xb)² = Σ y² − 2 bᵀXᵀy + bᵀXᵀX b,
//! ```
//!
//! which takes k² operations for k columns, however many rows there are. Where rows have weights every sum is weighted.

use super::Selection;

/// Products of the response, from which its mean was taken, with the columns and with itself.
#[derive(Debug)]
pub(super) struct Products {
    pub mean: f64,
    /// Xᵀy.
    pub cross: Vec<f64>,
    /// yᵀy.
    pub square: f64,
}

/// What the likelihood and a g-prior need to know of some coefficients.
pub(super) struct Squares {
    /// `Σ (y − Xb)²`.
    pub residual: f64,
    /// `Σ (Xb)²` over the slopes alone.
    pub slopes: f64,
}

impl Products {
    pub(super) fn new(selection: &Selection) -> Self {
        let design = &selection.design;
        let mean = design.mean_of(design.response());
        let centred = || design.response().iter().map(|y| y - mean);
        let weighted: Vec<f64> = centred().zip(design.weights()).map(|(y, weight)| weight * y).collect();
        let product = |column: usize| design.column(column).iter().zip(&weighted).map(|(x, y)| x * y).sum();
        let cross = (0..design.columns()).map(product).collect();
        Self { mean, cross, square: centred().zip(&weighted).map(|(y, weighted)| y * weighted).sum() }
    }

    /// Sums of squares; their halved negative derivatives go to `by_residual` and `by_slopes`, which have room for them.
    pub(super) fn squares(
        &self,
        selection: &Selection,
        columns: &[u32],
        coefficients: &[f64],
        by_residual: &mut Vec<f64>,
        by_slopes: &mut Vec<f64>,
    ) -> Squares {
        let count = selection.design.columns();
        let first = coefficients[0] - self.mean;
        let (mut residual, mut slopes) = (self.square, 0.0);
        by_residual.clear();
        by_slopes.clear();
        for (i, &row) in columns.iter().enumerate() {
            let gram = &selection.gram[row as usize * count..][..count];
            // The intercept is the first column.
            let pairs = columns[1..].iter().zip(&coefficients[1..]);
            let of_slopes: f64 = pairs.map(|(&column, b)| gram[column as usize] * b).sum();
            let of_all = of_slopes + gram[0] * first;
            let b = if i == 0 { first } else { coefficients[i] };
            let cross = self.cross[row as usize];
            residual += b * (of_all - 2.0 * cross);
            by_residual.push(cross - of_all);
            let of_slopes = if i == 0 { 0.0 } else { of_slopes };
            slopes += b * of_slopes;
            by_slopes.push(-of_slopes);
        }
        Squares { residual, slopes }
    }
}

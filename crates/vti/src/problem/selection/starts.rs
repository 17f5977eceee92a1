//! Where modes of the posterior of a model are looked for.
//!
//! Around the model's preconditioner, near and far. And since errors with heavy tails can believe some of the rows and give up the
//! others, so that every part of the data that lies on a line of its own may have a mode: on lines through parts of the rows,
//! both neighbours in the order of their residuals and as few rows as a line needs, at random (elemental sets, Rousseeuw and
//! Leroy, Robust Regression and Outlier Detection, 1987, chapter 5).

use super::Selection;
use crate::problem::Preconditioner;
use crate::random::{Purpose, Stream};
use crate::triangular::{cholesky, packed_len, solve, solve_transposed};

/// Standard deviations of random starts, as seen from the preconditioner.
const SPREADS: [f64; 3] = [1.0, 3.0, 10.0];
/// Starts of each standard deviation.
const OF_EACH: usize = 4;
/// Rows in the order of their residuals are cut into so many parts.
const PARTS: [usize; 3] = [2, 4, 8];
/// Lines through as few rows as they need.
const ELEMENTAL: usize = 24;
/// Added to the normal equations, relative to their mean diagonal: a few rows may not determine a line.
const RIDGE: f64 = 1e-9;

/// Points to maximise from, as seen from the preconditioner. They move with the response.
pub(super) fn starts(selection: &Selection, columns: &[u32], preconditioner: &Preconditioner) -> Vec<Vec<f64>> {
    let dim = preconditioner.dim();
    let mut stream = Stream::new(0, Purpose::Initialise, 0, 0);
    let mut found = vec![vec![0.0; dim]];
    for spread in SPREADS {
        found.extend((0..OF_EACH).map(|_| (0..dim).map(|_| spread * stream.normal()).collect::<Vec<f64>>()));
    }
    let likelihood = selection.settings.likelihood;
    if likelihood.has_categories() || likelihood.has_counts() {
        // Concave in the coefficients: there is one mode, for each size of counts.
        return found;
    }
    let mut centre = vec![0.0; dim];
    preconditioner.to_free(&mut centre);
    let lines = Lines::new(selection, columns);
    let parts = lines.parts(&centre[dim - columns.len()..]).into_iter();
    let elemental = (0..ELEMENTAL).map(|_| lines.few_rows(&mut stream));
    for rows in parts.chain(elemental) {
        if let Some(mut point) = lines.fit(&rows) {
            preconditioner.from_free(&mut point);
            found.push(point);
        }
    }
    found
}

/// Lines through some of the rows.
struct Lines<'a> {
    selection: &'a Selection,
    columns: &'a [u32],
    /// Mean of the response, from which intercepts are counted while they are computed.
    mean: f64,
}

impl<'a> Lines<'a> {
    fn new(selection: &'a Selection, columns: &'a [u32]) -> Self {
        let response = selection.design.response();
        Self { selection, columns, mean: response.iter().sum::<f64>() / response.len() as f64 }
    }

    /// Neighbours in the order of their residuals.
    fn parts(&self, coefficients: &[f64]) -> Vec<Vec<usize>> {
        let residuals = self.residuals(coefficients);
        let mut order: Vec<usize> = (0..residuals.len()).collect();
        order.sort_by(|&a, &b| residuals[a].total_cmp(&residuals[b]));
        PARTS.iter().flat_map(|&parts| order.chunks(order.len().div_ceil(parts)).map(<[usize]>::to_vec)).collect()
    }

    /// One row more than there are coefficients, perhaps some of them twice.
    fn few_rows(&self, stream: &mut Stream) -> Vec<usize> {
        let rows = self.selection.design.rows() as u64;
        (0..=self.columns.len()).map(|_| stream.below(rows) as usize).collect()
    }

    fn residuals(&self, coefficients: &[f64]) -> Vec<f64> {
        let design = &self.selection.design;
        let mut residuals: Vec<f64> = design.response().iter().map(|y| y - coefficients[0]).collect();
        for (&column, b) in self.columns.iter().zip(coefficients).skip(1) {
            residuals.iter_mut().zip(design.column(column as usize)).for_each(|(r, x)| *r -= b * x);
        }
        residuals
    }

    /// Free parameters of the least squares line through some rows. Where there is a scale it is the median residual of all
    /// rows.
    fn fit(&self, rows: &[usize]) -> Option<Vec<f64>> {
        let (design, count) = (&self.selection.design, self.columns.len());
        let column = |place: usize| design.column(self.columns[place] as usize);
        let mut factor = Vec::with_capacity(packed_len(count));
        for a in 0..count {
            factor.extend((0..=a).map(|b| rows.iter().map(|&row| column(a)[row] * column(b)[row]).sum::<f64>()));
        }
        let diagonal = |i: usize| packed_len(i + 1) - 1;
        let ridge = RIDGE * (0..count).map(|i| factor[diagonal(i)]).sum::<f64>() / count as f64;
        (0..count).for_each(|i| factor[diagonal(i)] += ridge);
        cholesky(&mut factor, count).ok()?;
        let with_response = |a| rows.iter().map(|&row| column(a)[row] * (design.response()[row] - self.mean)).sum();
        let mut point: Vec<f64> = (0..count).map(with_response).collect();
        solve(&factor, &mut point);
        solve_transposed(&factor, &mut point);
        point[0] += self.mean;
        if self.selection.settings.likelihood.has_scale() {
            let mut sizes: Vec<f64> = self.residuals(&point).iter().map(|r| r.abs()).collect();
            sizes.sort_by(f64::total_cmp);
            point.insert(0, sizes[sizes.len() / 2].max(f64::MIN_POSITIVE).ln());
        }
        Some(point)
    }
}

//! Categories as a response: a softmax of linear predictors, one for each category but the first, whose predictor is 0.
//!
//! With P = K − 1 predictors for K categories every column has P coefficients, which stand side by side: coordinate
//! `column · P + k` multiplies the column in the predictor of category k + 1. A term is in for all categories or for none.

use super::gram::{AddScaled, Dot};
use super::{CoefficientPrior, Selection};
use crate::problem::Preconditioner;
use crate::simd::Instructions;
use crate::triangular::{cholesky, packed_len, solve, solve_transposed};

/// What the coefficient of a column for a category is called.
pub fn coefficient_name(column: &str, category: &str) -> String {
    format!("{column} ({category})")
}

/// Turns the predictors of a row into the probabilities of their categories; the logarithm of Σ exp over all categories.
pub(crate) fn softmax(predictors: &mut [f64]) -> f64 {
    let top = predictors.iter().copied().fold(0.0, f64::max);
    predictors.iter_mut().for_each(|x| *x = (*x - top).exp());
    let sum = (-top).exp() + predictors.iter().sum::<f64>();
    predictors.iter_mut().for_each(|x| *x /= sum);
    top + sum.ln()
}

impl Selection {
    /// Predictors of slopes alone, one after another, from coefficients of these columns.
    fn slopes_of_categories(&self, columns: &[u32], coefficients: &[f64], to: &mut Vec<f64>) {
        let (rows, count) = (self.design.rows(), self.design.predictors());
        let instructions = Instructions::detect();
        to.clear();
        to.resize(rows * count, 0.0);
        for (&column, of_column) in columns.iter().zip(coefficients.chunks_exact(count)).skip(1) {
            for (to, &factor) in to.chunks_exact_mut(rows).zip(of_column) {
                instructions.run(AddScaled { factor, from: self.design.column(column as usize), to });
            }
        }
    }

    /// The log likelihood; predictors become the derivatives with respect to them.
    fn log_likelihood_of_categories(&self, predictors: &mut [f64]) -> f64 {
        let rows = self.design.rows();
        let mut row = vec![0.0; self.design.predictors()];
        let mut value = 0.0;
        for (i, (&y, &weight)) in self.design.response().iter().zip(self.design.weights()).enumerate() {
            row.iter_mut().zip(predictors.chunks_exact(rows)).for_each(|(x, predictor)| *x = predictor[i]);
            // Category 0 has no predictor of its own.
            let observed = (y as usize).checked_sub(1);
            let own = observed.map_or(0.0, |k| row[k]);
            value += weight * (own - softmax(&mut row));
            for (k, (predictor, p)) in predictors.chunks_exact_mut(rows).zip(&row).enumerate() {
                predictor[i] = weight * (f64::from(u8::from(observed == Some(k))) - p);
            }
        }
        value
    }

    /// The log density without its constant, given coefficients of these columns; its derivatives go to `gradient`.
    pub(super) fn evaluate_categories(
        &self,
        model: &[u16],
        columns: &[u32],
        coefficients: &[f64],
        [slopes, by_predictor]: &mut [Vec<f64>; 2],
        gradient: &mut [f64],
    ) -> f64 {
        let (rows, count, weights) = (self.design.rows(), self.design.predictors(), self.design.weights());
        self.slopes_of_categories(columns, coefficients, slopes);
        by_predictor.clear();
        for (of_category, intercept) in slopes.chunks_exact(rows).zip(coefficients) {
            by_predictor.extend(of_category.iter().map(|x| x + intercept));
        }
        let value = self.log_likelihood_of_categories(by_predictor);
        let g_prior = self.settings.prior.is_g();
        let of_category = |slopes: &[f64]| slopes.iter().zip(weights).map(|(x, weight)| weight * x * x).sum::<f64>();
        let squares = if g_prior { slopes.chunks_exact(rows).map(of_category).sum() } else { 0.0 };
        let prior = self.log_prior_of_coefficients(model, columns, coefficients, squares, gradient);
        if g_prior {
            for (by_predictor, slopes) in by_predictor.chunks_exact_mut(rows).zip(slopes.chunks_exact(rows)) {
                let slopes = slopes.iter().zip(weights);
                by_predictor.iter_mut().zip(slopes).for_each(|(d, (x, weight))| *d -= weight * x * prior.precision);
            }
        }
        let instructions = Instructions::detect();
        for (&column, gradient) in columns.iter().zip(gradient.chunks_exact_mut(count)) {
            for (g, b) in gradient.iter_mut().zip(by_predictor.chunks_exact(rows)) {
                *g += instructions.run(Dot { a: self.design.column(column as usize), b });
            }
        }
        value + prior.value
    }
}

/// A quadratic approximation of the log likelihood in the coefficients of some columns, as in [`super::preconditioner`].
#[derive(Debug)]
pub(super) struct CategoryQuadratic {
    /// Minus the second derivatives, row-major.
    information: Vec<f64>,
    /// These times the coefficients around which it is, and the first derivatives there.
    cross: Vec<f64>,
}

/// Newton's steps end when no coefficient moves by more than this, or after so many.
const TOLERANCE: f64 = 1e-8;
const MAX_ROUNDS: usize = 30;

/// No step moves a predictor by more than this.
const LONGEST_MOVE: f64 = 3.0;

/// Models with at most so many rows × coefficients² get a few rounds of their own.
const MAX_REFITTED: usize = 100_000;
const OWN_ROUNDS: usize = 4;

/// Probabilities of categories are not taken for smaller than this, so that no predictor is without information.
const SMALLEST: f64 = 1e-6;

impl CategoryQuadratic {
    /// Around the mode of the whole model; none where that fails.
    pub(super) fn new(selection: &Selection) -> Option<Self> {
        let columns: Vec<u32> = (0..selection.design.columns() as u32).collect();
        let start = vec![0.0; columns.len() * selection.design.predictors()];
        Self::fit(selection, &columns, start, MAX_ROUNDS)
    }

    fn fit(selection: &Selection, columns: &[u32], mut coefficients: Vec<f64>, rounds: usize) -> Option<Self> {
        let places: Vec<usize> = (0..coefficients.len()).collect();
        let (mut found, mut before) = (None, Vec::new());
        for _ in 0..rounds {
            let quadratic = Self::at(selection, columns, &coefficients, &mut before);
            let (next, _) = quadratic.solve(selection, columns, &places)?;
            let mut after = Vec::new();
            selection.predictors_of_categories(columns, &next, &mut after);
            let farthest = after.iter().zip(&before).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            let share = (LONGEST_MOVE / farthest).min(1.0);
            let moved = |(old, new): (&f64, &f64)| old + share * (new - old);
            coefficients = coefficients.iter().zip(&next).map(moved).collect();
            found = Some(quadratic);
            if farthest <= TOLERANCE {
                break;
            }
        }
        found
    }

    /// Around some coefficients, whose predictors are left in `predictors`.
    fn at(selection: &Selection, columns: &[u32], coefficients: &[f64], predictors: &mut Vec<f64>) -> Self {
        let (design, count, dim) = (&selection.design, selection.design.predictors(), coefficients.len());
        let rows = design.rows();
        selection.predictors_of_categories(columns, coefficients, predictors);
        let mut probabilities = predictors.clone();
        let mut row = vec![0.0; count];
        for i in 0..rows {
            row.iter_mut().zip(predictors.chunks_exact(rows)).for_each(|(x, predictor)| *x = predictor[i]);
            softmax(&mut row);
            probabilities.chunks_exact_mut(rows).zip(&row).for_each(|(to, p)| to[i] = p.max(SMALLEST));
        }
        let instructions = Instructions::detect();
        let of = |k: usize| &probabilities[k * rows..][..rows];
        let (mut information, mut cross) = (vec![0.0; dim * dim], vec![0.0; dim]);
        for k in 0..count {
            let is = f64::from(u8::try_from(k + 1).unwrap_or(u8::MAX));
            let of_row = |((y, p), weight): ((&f64, &f64), &f64)| weight * (f64::from(u8::from(*y == is)) - p);
            let score: Vec<f64> = design.response().iter().zip(of(k)).zip(design.weights()).map(of_row).collect();
            for (a, &column) in columns.iter().enumerate() {
                cross[a * count + k] = instructions.run(Dot { a: design.column(column as usize), b: &score });
            }
            for l in 0..=k {
                let same = f64::from(u8::from(k == l));
                let of_row = |((p, q), weight): ((&f64, &f64), &f64)| weight * p * (same - q);
                let curved: Vec<f64> = of(k).iter().zip(of(l)).zip(design.weights()).map(of_row).collect();
                for (a, &column) in columns.iter().enumerate() {
                    let weighted: Vec<f64> =
                        design.column(column as usize).iter().zip(&curved).map(|(x, w)| x * w).collect();
                    for (b, &other) in columns[..=a].iter().enumerate() {
                        let value = instructions.run(Dot { a: &weighted, b: design.column(other as usize) });
                        for [(i, m), (j, n)] in [[(a, k), (b, l)], [(a, l), (b, k)]] {
                            let (row, column) = (i * count + m, j * count + n);
                            (information[row * dim + column], information[column * dim + row]) = (value, value);
                        }
                    }
                }
            }
        }
        for (cross, row) in cross.iter_mut().zip(information.chunks_exact(dim)) {
            *cross += row.iter().zip(coefficients).map(|(a, b)| a * b).sum::<f64>();
        }
        Self { information, cross }
    }

    /// Mean and Cholesky factor of the precision of the coefficients at some places, of these columns.
    fn solve(&self, selection: &Selection, columns: &[u32], places: &[usize]) -> Option<(Vec<f64>, Vec<f64>)> {
        let (count, all, dim) = (selection.design.predictors(), selection.design.columns(), self.cross.len());
        let mut factor = Vec::with_capacity(packed_len(places.len()));
        for (i, &row) in places.iter().enumerate() {
            factor.extend(places[..=i].iter().map(|&column| self.information[row * dim + column]));
            let entries = &mut factor[packed_len(i)..];
            match selection.settings.prior {
                CoefficientPrior::Normal { .. } => entries[i] += 1.0 / selection.spread,
                _ => {
                    // Slopes of one category; intercepts have no part in it.
                    let of_category =
                        entries.iter_mut().enumerate().skip(count).filter(|(j, _)| j % count == i % count);
                    let gram = &selection.gram[columns[i / count] as usize * all..][..all];
                    of_category.for_each(|(j, x)| *x += gram[columns[j / count] as usize] / selection.spread);
                }
            }
        }
        cholesky(&mut factor, places.len()).ok()?;
        let mut mean: Vec<f64> = places.iter().map(|&place| self.cross[place]).collect();
        solve(&factor, &mut mean);
        solve_transposed(&factor, &mut mean);
        Some((mean, factor))
    }

    /// The preconditioner of a model.
    pub(super) fn preconditioner(&self, selection: &Selection, columns: &[u32]) -> Option<Preconditioner> {
        let count = selection.design.predictors();
        let of_column = |&column: &u32| (0..count).map(move |k| column as usize * count + k);
        let places: Vec<usize> = columns.iter().flat_map(of_column).collect();
        let (mut mean, mut factor) = self.solve(selection, columns, &places)?;
        if selection.design.rows() * places.len().pow(2) <= MAX_REFITTED {
            let own = Self::fit(selection, columns, mean, OWN_ROUNDS)?;
            (mean, factor) = own.solve(selection, columns, &(0..places.len()).collect::<Vec<usize>>())?;
        }
        Preconditioner::from_factor(mean, factor)
    }
}

impl Selection {
    /// Predictors, one after another.
    fn predictors_of_categories(&self, columns: &[u32], coefficients: &[f64], to: &mut Vec<f64>) {
        self.slopes_of_categories(columns, coefficients, to);
        for (to, intercept) in to.chunks_exact_mut(self.design.rows()).zip(coefficients) {
            to.iter_mut().for_each(|x| *x += intercept);
        }
    }
}

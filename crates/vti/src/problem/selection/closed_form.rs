//! Exact log evidences of single models of a Gaussian selection, however many there are.
//!
//! Of a model with k columns the principal part of XᵀX is decomposed: k³/3 operations. Where the scale is unknown and the prior of
//! the coefficients does not scale with it, XᵀX is made tridiagonal instead, 4/3 k³ operations, after which every scale costs k:
//! with `XᵀX = Q T Qᵀ`, the determinant of `XᵀX + λI` and a quadratic form of its inverse follow from the pivots of `T + λI`.

use super::exact::{ExactError, Fit, by_g, normal};
use super::gaussian::Products;
use super::{CoefficientPrior, Likelihood, Selection};
use crate::problem::scales::ScaleGrid;
use crate::triangular::{cholesky, dot, log_diagonal, packed_len, solve};
use crate::workers::Workers;

/// Evidences of one model at a time.
///
/// ```
/// use vti::problem::selection::simulate::{CorrelatedSettings, correlated};
/// use vti::problem::selection::{ClosedForm, Selection, SelectionSettings, Standardise, log_evidences};
/// use vti::workers::Workers;
/// let settings = CorrelatedSettings { rows: 50, covariates: 3, relevant: 1, ..CorrelatedSettings::default() };
/// let selection = Selection::new(&correlated(&settings)?.table, Standardise::Full, &SelectionSettings::default())?;
/// let all = log_evidences(&selection, &Workers::SINGLE)?;
/// let one = ClosedForm::new(&selection)?.log_evidence(&[0, 1, 1]);
/// assert!((one - all[3]).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ClosedForm<'a> {
    selection: &'a Selection,
    products: &'a Products,
    sigma: Option<f64>,
}

/// Words that a thread takes at a time.
const TOGETHER: usize = 4;

impl<'a> ClosedForm<'a> {
    /// Refuses a selection whose likelihood is not Gaussian.
    pub fn new(selection: &'a Selection) -> Result<Self, ExactError> {
        match (selection.settings.likelihood, &selection.products) {
            (Likelihood::Gaussian { sigma }, Some(products)) => Ok(Self { selection, products, sigma }),
            _ => Err(ExactError::Likelihood),
        }
    }

    /// The selection.
    pub fn selection(&self) -> &'a Selection {
        self.selection
    }

    /// `log p(y | m)` of many words, one after the other; not a number where columns depend on each other and the prior does not
    /// tell them apart.
    pub fn log_evidences(&self, words: &[u16], workers: &Workers) -> Vec<f64> {
        let width = self.selection.space.things().max(1);
        let mut found = vec![0.0; words.len() / width];
        let mut tasks: Vec<(&mut [f64], &[u16])> =
            found.chunks_mut(TOGETHER).zip(words.chunks(TOGETHER * width)).collect();
        workers.for_each(&mut tasks, |_, (found, words)| {
            for (found, word) in found.iter_mut().zip(words.chunks_exact(width)) {
                *found = self.log_evidence(word);
            }
        });
        found
    }

    /// `log p(y | m)`.
    pub fn log_evidence(&self, word: &[u16]) -> f64 {
        let mut columns = Vec::new();
        self.selection.design.model_columns(word, &mut columns);
        let fitted = match (self.selection.settings.prior, self.sigma) {
            (CoefficientPrior::Normal { scale }, None) => return self.over_scales(&columns, scale),
            (CoefficientPrior::Normal { scale }, Some(sigma)) => {
                self.fit(&columns, (sigma / scale).powi(2)).map(|fit| normal(&fit, sigma, scale))
            }
            (_, sigma) => self.fit(&columns, 0.0).map(|fit| by_g(&fit, &self.selection.prior_of_g(), sigma)),
        };
        fitted.unwrap_or(f64::NAN)
    }

    /// `1 − R²` of the regression on all columns; 0 where these depend on each other.
    pub(super) fn unexplained(&self) -> f64 {
        let all: Vec<u32> = (0..self.selection.design.columns() as u32).collect();
        self.fit(&all, 0.0).map_or(0.0, |fit| fit.residual / fit.total)
    }

    /// The regression on some columns, `penalty` being added to the diagonal of XᵀX. The intercept is counted from the mean of
    /// the response, as in the enumeration.
    fn fit(&self, columns: &[u32], penalty: f64) -> Option<Fit> {
        let (k, pull) = (columns.len(), penalty * self.products.mean);
        let mut factor = Vec::with_capacity(packed_len(k));
        for (i, &row) in columns.iter().enumerate() {
            let own = self.gram_row(row);
            factor.extend(columns[..=i].iter().map(|&column| own[column as usize]));
            factor[packed_len(i) + i] += penalty;
        }
        let mut projected: Vec<f64> = columns.iter().map(|&column| self.products.cross[column as usize]).collect();
        projected[0] -= pull;
        cholesky(&mut factor, k).ok()?;
        solve(&factor, &mut projected);
        Some(Fit {
            n: self.selection.design.total_weight(),
            columns: k as f64,
            log_determinant: 2.0 * log_diagonal(&factor, k),
            residual: self.products.square + pull * self.products.mean - dot(&projected, &projected),
            total: self.products.square,
        })
    }

    fn gram_row(&self, row: u32) -> &[f64] {
        &self.selection.gram[row as usize * self.selection.design.columns()..]
    }

    /// Unknown σ with its log-normal prior: the integral over log σ.
    fn over_scales(&self, columns: &[u32], scale: f64) -> f64 {
        let k = columns.len();
        let mut matrix = Vec::with_capacity(k * k);
        for &row in columns {
            let own = self.gram_row(row);
            matrix.extend(columns.iter().map(|&column| own[column as usize]));
        }
        let cross = columns.iter().map(|&column| self.products.cross[column as usize]).collect();
        let scales = Scales {
            tridiagonal: Tridiagonal::new(matrix, cross),
            n: self.selection.design.total_weight(),
            scale,
            mean: self.products.mean,
            square: self.products.square,
            prior: self.selection.log_scale_prior(),
        };
        let along = |low: f64, step: f64, points: usize, values: &mut Vec<f64>| scales.along(low, step, points, values);
        ScaleGrid::find(scales.n, scales.prior, along).log_integral()
    }
}

/// `T` of `XᵀX = Q T Qᵀ`, and `Qᵀ Xᵀr`. The first column of Q is the first unit vector: the intercept stays what it is.
struct Tridiagonal {
    diagonal: Vec<f64>,
    /// What stands beside the diagonal; one fewer.
    beside: Vec<f64>,
    cross: Vec<f64>,
}

impl Tridiagonal {
    /// Householder's reflections, from the first column on.
    fn new(mut matrix: Vec<f64>, mut cross: Vec<f64>) -> Self {
        let k = cross.len();
        let (mut diagonal, mut beside) = (Vec::with_capacity(k), Vec::with_capacity(k));
        let mut mirrored = vec![0.0; k];
        for column in 0..k {
            diagonal.push(matrix[column * k + column]);
            if column + 1 == k {
                break;
            }
            let from = column + 1;
            // By symmetry the column's numbers below the diagonal stand beside each other in its row.
            let mut normal: Vec<f64> = matrix[column * k + from..][..k - from].to_vec();
            let length = dot(&normal, &normal).sqrt();
            let to = if normal[0] > 0.0 { -length } else { length };
            beside.push(to);
            normal[0] -= to;
            let half = 0.5 * dot(&normal, &normal);
            if half <= 0.0 {
                continue;
            }
            let along = dot(&normal, &cross[from..]) / half;
            cross[from..].iter_mut().zip(&normal).for_each(|(x, v)| *x -= along * v);
            // A ← A − v wᵀ − w vᵀ with w = A v / h − (vᵀ A v / 2h²) v.
            let w = &mut mirrored[..k - from];
            for (w, row) in w.iter_mut().zip(matrix.chunks_exact(k).skip(from)) {
                *w = dot(&row[from..], &normal) / half;
            }
            let share = dot(w, &normal) / (2.0 * half);
            w.iter_mut().zip(&normal).for_each(|(w, v)| *w -= share * v);
            for (i, row) in matrix.chunks_exact_mut(k).skip(from).enumerate() {
                let (v, own) = (normal[i], w[i]);
                let pairs = normal.iter().zip(&*w);
                row[from..].iter_mut().zip(pairs).for_each(|(x, (v_j, w_j))| *x -= v * w_j + own * v_j);
            }
        }
        Self { diagonal, beside, cross }
    }
}

/// Scales that are looked at together.
const LANES: usize = 8;
/// Pivots of which the logarithm is taken together.
const PIVOTS: usize = 8;
/// What the evidence of a model is an integral over.
struct Scales {
    tridiagonal: Tridiagonal,
    n: f64,
    /// Standard deviation of the coefficients.
    scale: f64,
    /// Mean of the response, and its sum of squares around that.
    mean: f64,
    square: f64,
    /// Mean and standard deviation of log σ.
    prior: (f64, f64),
}

impl Scales {
    /// The log of the function on a grid.
    fn along(&self, low: f64, step: f64, points: usize, values: &mut Vec<f64>) {
        values.clear();
        for first in (0..points).step_by(LANES) {
            let log_sigmas: [f64; LANES] = std::array::from_fn(|lane| low + step * (first + lane) as f64);
            values.extend(self.at(&log_sigmas));
        }
        values.truncate(points);
    }

    /// `log N(y; 0, σ²I + s²XXᵀ) p(log σ)` at some values of log σ.
    fn at(&self, log_sigmas: &[f64; LANES]) -> [f64; LANES] {
        let Tridiagonal { diagonal, beside, cross } = &self.tridiagonal;
        let penalties = log_sigmas.map(|log_sigma| (2.0 * log_sigma).exp() / (self.scale * self.scale));
        let inverse_penalties = penalties.map(f64::recip);
        let (mut inverses, mut projected) = ([1.0; LANES], [0.0; LANES]);
        let (mut product, mut log_determinant, mut explained) = ([1.0; LANES], [0.0; LANES], [0.0; LANES]);
        for (i, (&own, &with_response)) in diagonal.iter().zip(cross).enumerate() {
            let left = if i == 0 { 0.0 } else { beside[i - 1] };
            let pull = if i == 0 { self.mean } else { 0.0 };
            for lane in 0..LANES {
                let factor = left * inverses[lane];
                // Rounding must not make it negative: it is at least λ.
                let pivot = (own + penalties[lane] - factor * left).max(penalties[lane]);
                inverses[lane] = pivot.recip();
                projected[lane] = with_response - pull * penalties[lane] - factor * projected[lane];
                explained[lane] += projected[lane] * projected[lane] * inverses[lane];
                // With a factor 1/λ to each, most are near 1 and few are large: a product of some does not overflow.
                product[lane] *= pivot * inverse_penalties[lane];
            }
            if i % PIVOTS == PIVOTS - 1 || i + 1 == diagonal.len() {
                for lane in 0..LANES {
                    log_determinant[lane] += product[lane].ln();
                    product[lane] = 1.0;
                }
            }
        }
        let (center, sd) = self.prior;
        std::array::from_fn(|lane| {
            let (log_sigma, off) = (log_sigmas[lane], (log_sigmas[lane] - center) / sd);
            let residual = self.square + penalties[lane] * self.mean * self.mean - explained[lane];
            -0.5 * self.n * (std::f64::consts::TAU.ln() + 2.0 * log_sigma)
                - 0.5 * log_determinant[lane]
                - 0.5 * residual.max(0.0) / (penalties[lane] * self.scale * self.scale)
                - 0.5 * off * off
                - sd.ln()
                - 0.5 * std::f64::consts::TAU.ln()
        })
    }
}

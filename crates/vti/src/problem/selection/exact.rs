//! Exact log evidences of all models of a Gaussian selection.
//!
//! With a Gaussian likelihood the coefficients can be integrated out; what is left of a model is the residual sum of
//! squares of a (penalised) regression and a determinant. Models are visited in the order of a Gray code, so that each
//! differs from the one before by one term, which the sweep operator (Goodnight 1979) takes in or out in O(p²) operations.
//! Only where an unknown σ is integrated numerically each model is looked at by itself.

use super::gaussian::Products;
use super::likelihood::ln_gamma;
use super::mixture::Mixture;
use super::{ClosedForm, CoefficientPrior, Likelihood, Selection};
use crate::problem::BatchError;
use crate::workers::Workers;

/// A selection without an exact answer of this kind.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExactError {
    /// Another likelihood.
    #[error("evidences are known in closed form for Gaussian likelihoods only")]
    Likelihood,
    /// Too many models.
    #[error("2^{terms} models are too many to enumerate, 2^{most} are the most")]
    TooMany {
        /// Number of terms.
        terms: usize,
        /// The most there may be.
        most: usize,
    },
    /// A model with too many parameters for quadrature.
    #[error(
        "model {model} has {parameters} parameters and no closed form, quadrature takes at most {most}\nhint: run reversible jump chains instead"
    )]
    TooManyParameters {
        /// The model, as people read it.
        model: String,
        /// How many it has.
        parameters: usize,
        /// How many it may have.
        most: usize,
    },
    /// No place where the density is finite.
    #[error("model {model}: the density is not finite anywhere a mode was looked for")]
    NoPeak {
        /// The model, as people read it.
        model: String,
    },
    /// Lattices that do not agree.
    #[error(
        "model {model}: quadrature is off by {error:.1e} nats after as many points as allowed: the posterior is improper, or too crooked"
    )]
    NotConverged {
        /// The model, as people read it.
        model: String,
        /// How far two lattices are apart.
        error: f64,
    },
    /// The density failed for good.
    #[error(transparent)]
    Density(#[from] BatchError),
}

/// The most terms whose subsets are enumerated.
const MAX_TERMS: usize = 26;

/// Models are numbered by their words, the first bit being the highest.
///
/// `log_evidences[number]` is `log ∫ p(y, θ | m) dθ`, without the prior of the model.
pub fn log_evidences(selection: &Selection, workers: &Workers) -> Result<Vec<f64>, ExactError> {
    let terms = selection.design().terms().len();
    if terms > MAX_TERMS {
        return Err(ExactError::TooMany { terms, most: MAX_TERMS });
    }
    let Likelihood::Gaussian { sigma } = selection.settings().likelihood else {
        return Err(ExactError::Likelihood);
    };
    let mut found = vec![0.0; 1 << terms];
    match (selection.settings().prior, sigma) {
        (CoefficientPrior::Normal { scale }, Some(sigma)) => {
            enumerate(selection, workers, (sigma / scale).powi(2), &mut found, |fit| normal(fit, sigma, scale));
        }
        (CoefficientPrior::Normal { .. }, None) => integrate_scale(selection, workers, &mut found)?,
        (_, sigma) => {
            let prior = selection.prior_of_g();
            enumerate(selection, workers, 0.0, &mut found, |fit| by_g(fit, &prior, sigma));
        }
    }
    Ok(found)
}

/// What the sweep operator knows of a model.
pub(super) struct Fit {
    /// Rows.
    pub(super) n: f64,
    /// Columns in the model, the intercept included.
    pub(super) columns: f64,
    /// log-determinant of the (penalised) XᵀX.
    pub(super) log_determinant: f64,
    /// Residual sum of squares, (penalised).
    pub(super) residual: f64,
    /// Sum of squares around the mean.
    pub(super) total: f64,
}

/// y ~ N(0, σ²I + s²XXᵀ).
pub(super) fn normal(fit: &Fit, sigma: f64, scale: f64) -> f64 {
    let penalty = (sigma / scale).powi(2);
    -0.5 * fit.n * (std::f64::consts::TAU * sigma * sigma).ln()
        - 0.5 * (fit.log_determinant - fit.columns * penalty.ln())
        - 0.5 * fit.residual / (sigma * sigma)
}

/// g of a g-prior: a number, or a prior of its own.
pub(super) enum PriorOfG {
    Fixed(f64),
    Mixture(Mixture),
}

/// Under a g-prior: the evidence of the model without slopes, and the Bayes factor against it.
pub(super) fn by_g(fit: &Fit, prior: &PriorOfG, sigma: Option<f64>) -> f64 {
    let factor = match prior {
        PriorOfG::Fixed(g) => log_factor(fit, *g, sigma),
        // Without slopes there is nothing that g has to do with.
        PriorOfG::Mixture(_) if fit.columns <= 1.0 => 0.0,
        PriorOfG::Mixture(mixture) => mixture.of_evidence(fit, sigma).log_integral(),
    };
    without_slopes(fit, sigma) + factor
}

/// The intercept is flat, and so is the log of an unknown σ.
fn without_slopes(fit: &Fit, sigma: Option<f64>) -> f64 {
    let m = fit.n - 1.0;
    let of_errors = match sigma {
        Some(sigma) => {
            let variance = sigma * sigma;
            -0.5 * (m * (std::f64::consts::TAU * variance).ln() + fit.total / variance)
        }
        None => ln_gamma(0.5 * m) - 0.5 * m * (std::f64::consts::PI.ln() + fit.total.ln()) - std::f64::consts::LN_2,
    };
    of_errors - 0.5 * fit.n.ln()
}

/// The log of the well-known Bayes factor, given g: slopes shrink by g/(1 + g).
fn log_factor(fit: &Fit, g: f64, sigma: Option<f64>) -> f64 {
    let (m, slopes) = (fit.n - 1.0, fit.columns - 1.0);
    match sigma {
        Some(sigma) => {
            let explained = g / (1.0 + g) * (fit.total - fit.residual);
            0.5 * (explained / (sigma * sigma) - slopes * (1.0 + g).ln())
        }
        None => 0.5 * (m - slopes) * (1.0 + g).ln() - 0.5 * m * (1.0 + g * fit.residual / fit.total).ln(),
    }
}

/// Unknown σ with its log-normal prior: model by model, each with the scales that matter for it.
fn integrate_scale(selection: &Selection, workers: &Workers, found: &mut [f64]) -> Result<(), ExactError> {
    let (closed, terms) = (ClosedForm::new(selection)?, selection.design().terms().len());
    let mut tasks: Vec<&mut [f64]> = found.chunks_mut(TASK_MODELS).collect();
    workers.for_each(&mut tasks, |task, found| {
        for (place, found) in found.iter_mut().enumerate() {
            *found = closed.log_evidence(&word(task * TASK_MODELS + place, terms));
        }
    });
    Ok(())
}

/// The word of a number, the first bit being the highest.
pub(super) fn word(number: usize, terms: usize) -> Vec<u16> {
    (0..terms).map(|term| (number >> (terms - 1 - term) & 1) as u16).collect()
}

/// Models that a thread takes at a time where each is looked at by itself.
pub(super) const TASK_MODELS: usize = 256;

/// Models per task: the last terms run through a Gray code, the first ones are the task's own.
const TASK_TERMS: usize = 12;

/// Visits all models for their evidences; `penalty` is added to the diagonal of XᵀX.
fn enumerate(
    selection: &Selection,
    workers: &Workers,
    penalty: f64,
    found: &mut [f64],
    evidence: impl Fn(&Fit) -> f64 + Sync + Send,
) {
    let inner = selection.design().terms().len().min(TASK_TERMS);
    let mut tasks: Vec<(usize, &mut [f64])> = found.chunks_mut(1 << inner).enumerate().collect();
    visit(selection, workers, penalty, &mut tasks, |(task, found), number, swept| {
        found[number - (*task << inner)] = evidence(&swept.fit());
    });
}

/// How many tasks visiting all models takes.
pub(super) fn task_count(selection: &Selection) -> usize {
    1 << selection.design().terms().len().saturating_sub(TASK_TERMS)
}

/// Visits all models: each task those of its own, by their numbers. What a task finds does not depend on who else is at work.
pub(super) fn visit<T: Send>(
    selection: &Selection,
    workers: &Workers,
    penalty: f64,
    tasks: &mut [T],
    work: impl Fn(&mut T, usize, &Swept) + Sync + Send,
) {
    let terms = selection.design().terms().len();
    let inner = terms.min(TASK_TERMS);
    let start = Swept::new(selection, penalty);
    workers.for_each(tasks, |task, own| {
        let mut swept = start.clone();
        for term in 0..terms - inner {
            // The first term is the highest bit.
            if task >> (terms - inner - 1 - term) & 1 == 1 {
                swept.flip(term);
            }
        }
        let mut number = task << inner;
        for visit in 0..1usize << inner {
            if visit > 0 {
                let bit = visit.trailing_zeros() as usize;
                swept.flip(terms - 1 - bit);
                number ^= 1 << bit;
            }
            work(own, number, &swept);
        }
    });
}

/// A Gram matrix of columns and response, swept on the columns of a model.
#[derive(Clone)]
pub(super) struct Swept {
    size: usize,
    matrix: Vec<f64>,
    inside: Vec<bool>,
    /// First column and number of columns of each term.
    terms: Vec<(usize, usize)>,
    n: f64,
    total: f64,
    columns: f64,
    log_determinant: f64,
}

impl Swept {
    /// The model with nothing but what is always in.
    ///
    /// With y = ȳ + r, and b₀ = ȳ + c₀ for the intercept, `|y − Xb|² + λ|b|²` is a quadratic in c₀ and the slopes whose
    /// linear part is `Xᵀr`, less λȳ for c₀, and whose constant is `rᵀr + λȳ²`: no digits are lost to a large mean.
    fn new(selection: &Selection, penalty: f64) -> Self {
        let design = selection.design();
        let Products { mean, cross, square: total } = Products::new(selection);
        let (columns, size) = (design.columns(), design.columns() + 1);
        let mut matrix = vec![0.0; size * size];
        for a in 0..columns {
            for b in 0..columns {
                matrix[a * size + b] = selection.gram()[a * columns + b] + if a == b { penalty } else { 0.0 };
            }
            let pull = if a == 0 { penalty * mean } else { 0.0 };
            let with_response = cross[a] - pull;
            (matrix[a * size + columns], matrix[columns * size + a]) = (with_response, with_response);
        }
        matrix[size * size - 1] = total + penalty * mean * mean;
        let mut first = design.always();
        let mut place = |count: usize| {
            first += count;
            (first - count, count)
        };
        let mut swept = Self {
            size,
            matrix,
            inside: vec![false; columns],
            terms: design.terms().iter().map(|(_, count)| place(*count)).collect(),
            n: design.total_weight(),
            total,
            columns: 0.0,
            log_determinant: 0.0,
        };
        (0..design.always()).for_each(|column| swept.sweep(column));
        swept
    }

    /// Whether a column is in the model.
    pub(super) fn has(&self, column: usize) -> bool {
        self.inside[column]
    }

    /// The (penalised) least-squares coefficient of a column that is in, the intercept counted from the mean of y.
    pub(super) fn coefficient(&self, column: usize) -> f64 {
        self.matrix[(column + 1) * self.size - 1]
    }

    /// An entry of the inverse of the (penalised) XᵀX, of columns that are in.
    pub(super) fn inverse(&self, a: usize, b: usize) -> f64 {
        -self.matrix[a * self.size + b]
    }

    pub(super) fn fit(&self) -> Fit {
        Fit {
            n: self.n,
            columns: self.columns,
            log_determinant: self.log_determinant,
            residual: self.matrix[self.size * self.size - 1],
            total: self.total,
        }
    }

    /// Takes a term in, or out.
    fn flip(&mut self, term: usize) {
        let (first, count) = self.terms[term];
        (first..first + count).for_each(|column| self.sweep(column));
    }

    /// Takes a column in, or out.
    fn sweep(&mut self, column: usize) {
        let size = self.size;
        let pivot = self.matrix[column * size + column];
        let entering = !self.inside[column];
        // Swept, the pivot is −1 over what it was.
        self.log_determinant += if entering { pivot.ln() } else { -(-1.0 / pivot).ln() };
        self.columns += if entering { 1.0 } else { -1.0 };
        self.inside[column] = entering;
        let row: Vec<f64> = self.matrix[column * size..][..size].to_vec();
        for (i, line) in self.matrix.chunks_exact_mut(size).enumerate() {
            if i == column {
                let sign = if entering { 1.0 } else { -1.0 };
                line.iter_mut().for_each(|x| *x *= sign / pivot);
                line[column] = -1.0 / pivot;
            } else {
                let factor = row[i] / pivot;
                line.iter_mut().zip(&row).for_each(|(x, &r)| *x -= factor * r);
                line[column] = if entering { factor } else { -factor };
            }
        }
    }
}

//! The posterior of the parameters of one model of a Gaussian selection, in closed form: its density, and exact draws.
//!
//! Given σ, the coefficients are normal. With r the response less its mean ȳ, b the coefficients whose intercept is counted
//! from ȳ, and A = XᵀX (to whose slopes a g-prior adds 1/g of it), their precision is `A/σ² + τ` (τ the precision of a normal
//! prior, 0 for a g-prior) and what it multiplies their mean to is `Xᵀr/σ² − τȳe₀`. The eigenvectors of A make this diagonal
//! for every σ at once. What is left is σ: known; with σ⁻² a multiple of χ² under a g-prior; or, with its log-normal prior
//! beside normal coefficients, a density of one variable, which is drawn from by rejection below steps. So is g under a mixture
//! of g-priors, and given g all is as under a g-prior.

use super::eigen::diagonalise;
use super::exact::{ExactError, Fit, PriorOfG, by_g};
use super::gaussian::Products;
use super::likelihood::{Likelihood, ln_gamma};
use super::mixture::{Integrand, Mixture};
use super::{CoefficientPrior, Selection};
use crate::problem::scales::ScaleSteps;
use crate::random::Stream;

/// The posterior of the parameters of one model, in closed form.
///
/// ```
/// use vti::problem::Problem;
/// use vti::problem::selection::{Conjugate, RegressionData, Selection, SelectionSettings, Standardise, Term};
/// use vti::random::{Purpose, Stream};
///
/// let term = Term { name: "x".into(), columns: vec!["x".into()], values: vec![1.0, 2.0, 3.0, 5.0], always: false, parents: Vec::new() };
/// let table = RegressionData { response_name: "y".into(), response: vec![1.1, 1.9, 3.2, 4.8], terms: vec![term], ..Default::default() };
/// let selection = Selection::new(&table, Standardise::Full, &SelectionSettings::default())?;
/// let posterior = Conjugate::new(&selection, &[1])?;
/// let theta = posterior.draw(&mut Stream::new(1, Purpose::Other(0), 0, 0));
/// // Bayes' theorem: what the joint density has over the posterior is the evidence, wherever that is looked at.
/// let joint = selection.log_density(&[1], &theta, &mut [0.0; 3])?;
/// assert!((joint - posterior.log_density(&theta) - posterior.log_evidence()).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Conjugate {
    coefficients: Coefficients,
    scale: ScalePosterior,
    log_evidence: f64,
}

/// Coefficients given σ, in the coordinates of the eigenvectors of A.
#[derive(Clone, Debug)]
struct Coefficients {
    /// Rows of the data.
    rows: f64,
    /// ȳ.
    mean: f64,
    /// rᵀr.
    total: f64,
    /// τ.
    prior_precision: f64,
    /// Eigenvalues of A.
    values: Vec<f64>,
    /// Its eigenvectors, row by row.
    vectors: Vec<f64>,
    /// Xᵀr, along the eigenvectors.
    cross: Vec<f64>,
}

/// What is known of σ.
#[derive(Clone, Debug)]
enum ScalePosterior {
    Known(f64),
    /// `squares / σ²` has a χ² distribution.
    ChiSquared {
        freedom: f64,
        squares: f64,
    },
    /// A density of one variable, with mean and standard deviation of the prior of log σ.
    Steps {
        steps: ScaleSteps,
        prior: (f64, f64),
    },
    /// What a g-prior says, given g.
    Mixed(Box<Mixed>),
}

/// g of a model with slopes, and what σ given g depends on.
#[derive(Clone, Debug)]
struct Mixed {
    prior: Mixture,
    /// The log of the density of log g, up to a constant.
    density: Integrand,
    steps: ScaleSteps,
    /// σ where it is known.
    sigma: Option<f64>,
    /// n − 1.
    freedom: f64,
    /// Squares of the response around its mean, and how much of them the least-squares slopes explain.
    total: f64,
    explained: f64,
}

impl Conjugate {
    /// Of a model of a selection whose likelihood is Gaussian.
    pub fn new(selection: &Selection, model: &[u16]) -> Result<Self, ExactError> {
        let (Likelihood::Gaussian { sigma }, Some(products)) = (selection.settings.likelihood, &selection.products)
        else {
            return Err(ExactError::Likelihood);
        };
        let coefficients = Coefficients::new(selection, products, model);
        let (scale, log_evidence) = match (selection.settings().prior, sigma) {
            (CoefficientPrior::Normal { .. }, Some(sigma)) => {
                (ScalePosterior::Known(sigma), coefficients.log_normal_evidence(sigma))
            }
            (CoefficientPrior::Normal { .. }, None) => {
                let prior = selection.log_scale_prior();
                let steps =
                    ScaleSteps::new(coefficients.rows, prior, |log_sigma| log_joint(&coefficients, prior, log_sigma));
                let log_evidence = steps.log_total();
                (ScalePosterior::Steps { steps, prior }, log_evidence)
            }
            (_, sigma) => match selection.mixture {
                Some(mixture) if coefficients.values.len() > 1 => coefficients.by_mixture(mixture, sigma),
                _ => coefficients.by_g_prior(selection.spread(), sigma),
            },
        };
        Ok(Self { coefficients, scale, log_evidence })
    }

    /// `log ∫ p(y, θ | m) dθ`.
    pub fn log_evidence(&self) -> f64 {
        self.log_evidence
    }

    /// A draw of θ: σ where it is unknown, then the coefficients.
    pub fn draw(&self, stream: &mut Stream) -> Vec<f64> {
        let mut inverse_g = 0.0;
        let (mut theta, sigma) = match &self.scale {
            ScalePosterior::Known(sigma) => (Vec::new(), *sigma),
            ScalePosterior::ChiSquared { freedom, squares } => {
                let sigma = (squares / stream.chi_squared(*freedom)).sqrt();
                (vec![sigma], sigma)
            }
            ScalePosterior::Steps { steps, prior } => {
                let density = |log_sigma| log_joint(&self.coefficients, *prior, log_sigma);
                let sigma = steps.draw(density, stream).exp();
                (vec![sigma], sigma)
            }
            ScalePosterior::Mixed(mixed) => {
                let g = mixed.steps.draw(|log_g| mixed.density.at(log_g), stream).exp();
                inverse_g = 1.0 / g;
                match mixed.sigma {
                    Some(sigma) => (Vec::new(), sigma),
                    None => {
                        let sigma = (mixed.squares(g) / stream.chi_squared(mixed.freedom)).sqrt();
                        (vec![sigma], sigma)
                    }
                }
            }
        };
        theta.extend(self.coefficients.draw(sigma, inverse_g, stream));
        theta
    }

    /// `log p(θ | y, m)`; −∞ where σ is not positive, not a number where there are more or fewer parameters.
    pub fn log_density(&self, theta: &[f64]) -> f64 {
        let (sigma, coefficients) = match (&self.scale, theta) {
            (ScalePosterior::Known(sigma), coefficients) => (*sigma, coefficients),
            (ScalePosterior::Mixed(mixed), coefficients) if mixed.sigma.is_some() => {
                (mixed.sigma.unwrap_or(f64::NAN), coefficients)
            }
            (_, [sigma, coefficients @ ..]) => (*sigma, coefficients),
            _ => return f64::NAN,
        };
        if coefficients.len() != self.coefficients.values.len() {
            return f64::NAN;
        }
        if sigma <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let of_scale = match &self.scale {
            ScalePosterior::Known(_) => 0.0,
            ScalePosterior::ChiSquared { freedom, squares } => {
                std::f64::consts::LN_2 + 0.5 * freedom * (0.5 * squares).ln()
                    - ln_gamma(0.5 * freedom)
                    - (freedom + 1.0) * sigma.ln()
                    - 0.5 * squares / (sigma * sigma)
            }
            // The density of σ, not of its logarithm.
            ScalePosterior::Steps { steps, prior } => {
                log_joint(&self.coefficients, *prior, sigma.ln()) - steps.log_total() - sigma.ln()
            }
            // Of these slopes g need not be what it is a posteriori: by Bayes' theorem instead.
            ScalePosterior::Mixed(mixed) => {
                return self.coefficients.log_mixed_joint(mixed, sigma, coefficients) - self.log_evidence;
            }
        };
        of_scale + self.coefficients.log_density(sigma, coefficients)
    }
}

/// First and second moments of the parameters of one model, its coefficients as they were learned.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    /// Of σ.
    pub(super) scale: [f64; 2],
    /// Of a weighted sum of the coefficients, the intercept counted from the mean of the response.
    pub(super) weighted: [f64; 2],
    /// Of each coefficient, likewise.
    pub(super) coefficients: Vec<[f64; 2]>,
}

impl Conjugate {
    /// Moments, with a weight for each coefficient of the model.
    pub(super) fn moments(&self, weights: &[f64]) -> Moments {
        let dim = self.coefficients.values.len();
        let mut moments = Moments { scale: [0.0; 2], weighted: [0.0; 2], coefficients: vec![[0.0; 2]; dim] };
        let mut add = |share: f64, scale: [f64; 2], inverse_g: f64| {
            self.coefficients.add_moments(share, scale, inverse_g, weights, &mut moments);
        };
        // What is so little changes no digit.
        let matters = |(_, share): &(f64, f64)| *share > 1e-17;
        match &self.scale {
            ScalePosterior::Known(sigma) => add(1.0, [*sigma, sigma * sigma], 0.0),
            ScalePosterior::ChiSquared { freedom, squares } => add(1.0, scale_moments(*freedom, *squares), 0.0),
            ScalePosterior::Steps { steps, .. } => {
                let matters = steps.weights().filter(matters);
                matters.for_each(|(sigma, share)| add(share, [sigma, sigma * sigma], 0.0));
            }
            ScalePosterior::Mixed(mixed) => {
                let matters = mixed.steps.weights().filter(matters);
                matters.for_each(|(g, share)| add(share, mixed.scale_moments(g), 1.0 / g));
            }
        }
        moments
    }
}

/// E σ and E σ² where `squares / σ²` has a χ² distribution.
pub(super) fn scale_moments(freedom: f64, squares: f64) -> [f64; 2] {
    let mean = (0.5 * squares).sqrt() * (ln_gamma(0.5 * (freedom - 1.0)) - ln_gamma(0.5 * freedom)).exp();
    [mean, if freedom > 2.0 { squares / (freedom - 2.0) } else { f64::INFINITY }]
}

impl Mixed {
    /// What has a χ² distribution when it is divided by σ², given g.
    fn squares(&self, g: f64) -> f64 {
        (self.total - g / (1.0 + g) * self.explained).max(f64::MIN_POSITIVE)
    }

    /// E σ and E σ², given g.
    fn scale_moments(&self, g: f64) -> [f64; 2] {
        self.sigma.map_or_else(|| scale_moments(self.freedom, self.squares(g)), |sigma| [sigma, sigma * sigma])
    }
}

impl Coefficients {
    /// Adds moments given σ and g, or given the moments of σ under a g-prior, where means do not depend on σ and variances are
    /// proportional to σ².
    fn add_moments(&self, share: f64, scale: [f64; 2], inverse_g: f64, weights: &[f64], to: &mut Moments) {
        let put = |to: &mut [f64; 2], mean: f64, variance: f64| {
            to[0] += share * mean;
            to[1] += share * (mean * mean + variance);
        };
        to.scale.iter_mut().zip(scale).for_each(|(to, moment)| *to += share * moment);
        let (dim, [_, variance]) = (self.values.len(), scale);
        // Under a g-prior the variance may be infinite.
        let prior = if self.prior_precision > 0.0 { self.prior_precision * variance } else { 0.0 };
        let pull = prior * self.mean;
        // Mean and variance of each coefficient, and of their weighted sum.
        let mut found = vec![[0.0; 2]; dim + 1];
        for (vector, value, cross) in self.along(inverse_g) {
            let mean = (cross - pull * vector[0]) / (value + prior);
            let spread = variance / (value + prior);
            let along: f64 = vector.iter().zip(weights).map(|(v, w)| v * w).sum();
            for (found, v) in found.iter_mut().zip(vector.iter().copied().chain([along])) {
                found[0] += v * mean;
                found[1] += if v == 0.0 { 0.0 } else { v * v * spread };
            }
        }
        let places = to.coefficients.iter_mut().chain([&mut to.weighted]);
        places.zip(found).for_each(|(to, [mean, variance])| put(to, mean, variance));
    }

    fn new(selection: &Selection, products: &Products, model: &[u16]) -> Self {
        let (design, mut columns) = (selection.design(), Vec::new());
        design.model_columns(model, &mut columns);
        let (all, dim) = (design.columns(), columns.len());
        let (share, prior_precision) = match selection.prior_of_g() {
            _ if !selection.settings().prior.is_g() => (0.0, 1.0 / selection.spread()),
            PriorOfG::Fixed(g) => (1.0 / g, 0.0),
            PriorOfG::Mixture(_) => (0.0, 0.0),
        };
        let mut matrix = Vec::with_capacity(dim * dim);
        for &row in &columns {
            matrix.extend(columns.iter().map(|&column| {
                let factor = match (row > 0, column > 0) {
                    (true, true) => 1.0 + share,
                    (false, false) => 1.0,
                    // Columns are centred for a g-prior: the intercept is an eigenvector, exactly.
                    _ if prior_precision == 0.0 => 0.0,
                    _ => 1.0,
                };
                factor * selection.gram()[row as usize * all + column as usize]
            }));
        }
        let vectors = diagonalise(&mut matrix, dim);
        let along =
            |vector: &[f64]| vector.iter().zip(&columns).map(|(v, &column)| v * products.cross[column as usize]).sum();
        Self {
            rows: design.total_weight(),
            mean: products.mean,
            total: products.square,
            prior_precision,
            // Rounding may leave less than nothing of columns that depend on each other.
            values: (0..dim).map(|i| matrix[i * dim + i].max(0.0)).collect(),
            cross: vectors.chunks_exact(dim).map(along).collect(),
            vectors,
        }
    }

    /// Eigenvectors, with their eigenvalues and with Xᵀr along them. Where g was not known when A was made, 1/g of the
    /// eigenvalues of slopes comes on top.
    fn along(&self, inverse_g: f64) -> impl Iterator<Item = (&[f64], f64, f64)> {
        let vectors = self.vectors.chunks_exact(self.values.len());
        vectors.zip(self.values.iter().zip(&self.cross)).map(move |(vector, (value, cross))| {
            let on_top = if inverse_g > 0.0 && is_slope(vector) { inverse_g * value } else { 0.0 };
            (vector, value + on_top, *cross)
        })
    }

    /// Eigenvectors, with precisions and means of the coefficients along them.
    fn given(&self, sigma: f64, inverse_g: f64) -> impl Iterator<Item = (&[f64], f64, f64)> {
        let (variance, pull) = (sigma * sigma, self.prior_precision * self.mean);
        self.along(inverse_g).map(move |(vector, value, cross)| {
            let precision = value / variance + self.prior_precision;
            (vector, precision, (cross / variance - pull * vector[0]) / precision)
        })
    }

    fn draw(&self, sigma: f64, inverse_g: f64, stream: &mut Stream) -> Vec<f64> {
        let mut drawn = vec![0.0; self.values.len()];
        drawn[0] = self.mean;
        for (vector, precision, mean) in self.given(sigma, inverse_g) {
            let along = mean + stream.normal() / precision.sqrt();
            drawn.iter_mut().zip(vector).for_each(|(b, v)| *b += along * v);
        }
        drawn
    }

    /// `log p(b | σ, y, m)`.
    fn log_density(&self, sigma: f64, coefficients: &[f64]) -> f64 {
        let log_normal = |(vector, precision, mean): (&[f64], f64, f64)| {
            let along: f64 = vector.iter().zip(coefficients).map(|(v, b)| v * b).sum::<f64>() - self.mean * vector[0];
            0.5 * ((precision / std::f64::consts::TAU).ln() - precision * (along - mean).powi(2))
        };
        self.given(sigma, 0.0).map(log_normal).sum()
    }

    /// `log p(y | σ, m)` under a normal prior: `y ~ N(0, σ²I + XXᵀ/τ)`.
    fn log_normal_evidence(&self, sigma: f64) -> f64 {
        let (variance, pull) = (sigma * sigma, self.prior_precision * self.mean);
        // −2 log of the density, without what σ alone makes of it.
        let mut twice = self.total / variance + pull * self.mean;
        // What the freedom of the coefficients costs, and what they explain. Logarithms are those of products, few enough not
        // to overflow.
        let mut product = 1.0;
        for (place, (_, precision, mean)) in self.given(sigma, 0.0).enumerate() {
            product *= precision / self.prior_precision;
            if place % 8 == 7 {
                twice += f64::ln(product);
                product = 1.0;
            }
            twice -= precision * mean * mean;
        }
        twice += product.ln();
        -0.5 * (self.rows * (std::f64::consts::TAU * variance).ln() + twice)
    }

    /// Under a g-prior: the intercept is flat, and an unknown σ has the density 1/σ.
    fn by_g_prior(&self, g: f64, sigma: Option<f64>) -> (ScalePosterior, f64) {
        let explained: f64 = self.cross.iter().zip(&self.values).map(|(cross, value)| cross * cross / value).sum();
        let squares = (self.total - explained).max(f64::MIN_POSITIVE);
        let (freedom, slopes) = (self.rows - 1.0, self.values.len() as f64 - 1.0);
        let log_shrunk = -0.5 * (self.rows.ln() + slopes * (1.0 + g).ln());
        match sigma {
            Some(sigma) => {
                let variance = sigma * sigma;
                let log_evidence =
                    log_shrunk - 0.5 * (freedom * (std::f64::consts::TAU * variance).ln() + squares / variance);
                (ScalePosterior::Known(sigma), log_evidence)
            }
            None => {
                let log_evidence = log_shrunk + ln_gamma(0.5 * freedom)
                    - 0.5 * freedom * (std::f64::consts::PI * squares).ln()
                    - std::f64::consts::LN_2;
                (ScalePosterior::ChiSquared { freedom, squares }, log_evidence)
            }
        }
    }
}

impl Coefficients {
    /// Under a mixture of g-priors, of a model with slopes.
    fn by_mixture(&self, prior: Mixture, sigma: Option<f64>) -> (ScalePosterior, f64) {
        let slopes = self.along(0.0).filter(|(vector, ..)| is_slope(vector));
        let explained: f64 = slopes.map(|(_, value, cross)| cross * cross / value).sum();
        let fit = Fit {
            n: self.rows,
            columns: self.values.len() as f64,
            log_determinant: self.values.iter().map(|value| value.ln()).sum(),
            residual: self.total - explained,
            total: self.total,
        };
        let density = prior.of_evidence(&fit, sigma);
        let steps = ScaleSteps::below(density.grid());
        let log_evidence = by_g(&fit, &PriorOfG::Mixture(prior), sigma);
        let (freedom, total) = (self.rows - 1.0, self.total);
        let mixed = Mixed { prior, density, steps, sigma, freedom, total, explained };
        (ScalePosterior::Mixed(Box::new(mixed)), log_evidence)
    }

    /// `log p(y, θ | m)` under a mixture of g-priors.
    fn log_mixed_joint(&self, mixed: &Mixed, sigma: f64, coefficients: &[f64]) -> f64 {
        let (mut residual, mut fitted, mut log_determinant) = (self.total, 0.0, 0.0);
        for (vector, value, cross) in self.along(0.0) {
            let along: f64 = vector.iter().zip(coefficients).map(|(v, b)| v * b).sum::<f64>() - self.mean * vector[0];
            residual += along * (value * along - 2.0 * cross);
            if is_slope(vector) {
                fitted += value * along * along;
                log_determinant += f64::ln(value);
            }
        }
        let (variance, slopes) = (sigma * sigma, self.values.len() as f64 - 1.0);
        let (of_g, _) = mixed.prior.slopes(slopes, fitted / variance);
        let of_sigma = if mixed.sigma.is_some() { 0.0 } else { sigma.ln() };
        -0.5 * ((self.rows + slopes) * (std::f64::consts::TAU * variance).ln() + residual / variance - log_determinant)
            + of_g
            - of_sigma
    }
}

/// Whether an eigenvector has no part of the intercept; under a g-prior it is either that or the intercept.
fn is_slope(vector: &[f64]) -> bool {
    vector[0] == 0.0
}

/// `log p(y | σ, m) p(log σ)`.
fn log_joint(coefficients: &Coefficients, (center, sd): (f64, f64), log_sigma: f64) -> f64 {
    let off = (log_sigma - center) / sd;
    coefficients.log_normal_evidence(log_sigma.exp()) - 0.5 * (off * off + std::f64::consts::TAU.ln()) - sd.ln()
}

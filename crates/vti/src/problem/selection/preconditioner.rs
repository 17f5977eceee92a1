//! Where the coefficients of a model roughly lie: one quadratic approximation of the log likelihood, restricted to each
//! model.
//!
//! The whole model is fitted once by iteratively reweighted least squares, which leaves weights W and a working response z
//! with `log likelihood ≈ −½ (z − Xβ)ᵀ W (z − Xβ)`. A model uses some of the columns of X, and its quadratic is a principal
//! part of that one. For Gaussian errors this is exact, so a flow has only the scale to learn; for the others it is a start,
//! and small models get a quadratic of their own.

use super::counts::LogSize;
use super::gram::Dot;
use super::likelihood::{Likelihood, both_scales};
use super::scale::log_robust_scale;
use super::{CoefficientPrior, Selection};
use crate::problem::Preconditioner;
use crate::simd::Instructions;
use crate::triangular::{cholesky, packed_len, solve, solve_transposed};

/// A quadratic approximation of the log likelihood in the coefficients of some columns.
#[derive(Debug)]
pub(super) struct Quadratic {
    /// The columns.
    columns: Vec<u32>,
    /// XᵀWX, row-major.
    gram: Vec<f64>,
    /// What was taken from z, lest a response far from 0 costs digits; the first column being the intercept, it is taken
    /// from that as well.
    centre: f64,
    /// XᵀWz.
    cross: Vec<f64>,
    /// zᵀWz.
    square: f64,
    /// Of negative binomial counts.
    size: Option<LogSize>,
}

/// Reweighting ends when no linear predictor moves by more than this, relative to their spread, or after so many rounds.
const TOLERANCE: f64 = 1e-8;
const MAX_ROUNDS: usize = 50;

/// Models with at most so many rows × columns² get a few rounds of their own, where their errors are not Gaussian.
const MAX_REFITTED: usize = 30_000;
const OWN_ROUNDS: usize = 4;

/// Rounds for the scale of a model whose prior does not scale with it.
const SCALE_ROUNDS: usize = 4;

impl Quadratic {
    /// Fits the whole model; none where that fails, and flows then start from unit scale.
    pub(super) fn new(selection: &Selection) -> Option<Self> {
        let columns: Vec<u32> = (0..selection.design.columns() as u32).collect();
        let predictor = start(&selection.settings.likelihood, selection.design.response());
        Self::fit(selection, &columns, predictor, selection.log_scale.exp(), MAX_ROUNDS)
    }

    /// Iteratively reweighted least squares from given linear predictors.
    fn fit(
        selection: &Selection,
        columns: &[u32],
        mut predictor: Vec<f64>,
        mut scale: f64,
        rounds: usize,
    ) -> Option<Self> {
        let mut found: Option<Self> = None;
        for _ in 0..rounds {
            let (mut weights, mut working) = reweight(selection, &predictor, scale);
            weights.iter_mut().zip(selection.design.weights()).for_each(|(weight, of_row)| *weight *= of_row);
            working.iter_mut().zip(selection.design.offset()).for_each(|(z, offset)| *z -= offset);
            let quadratic = Self::weighted(selection, columns, &weights, &working);
            let places: Vec<u32> = (0..columns.len() as u32).collect();
            let part = quadratic.restrict(selection, &places, scale)?;
            let next = predictors(selection, columns, &part.mean);
            let moved = predictor.iter().zip(&next).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            let spread = next.iter().fold(0.0, |most, predictor| (predictor - quadratic.centre).abs().max(most));
            let size = log_size(selection, scale).map(|size| size.improved(selection, &next));
            let resized = size.map_or(0.0, |size| (size.location - scale.ln()).abs());
            scale = size.map_or(part.scale, |size| size.location.exp());
            (predictor, found) = (next, Some(Self { size, ..quadratic }));
            if moved.max(resized) <= TOLERANCE * (1.0 + spread) {
                break;
            }
        }
        found
    }

    fn weighted(selection: &Selection, columns: &[u32], weights: &[f64], working: &[f64]) -> Self {
        let (design, count) = (&selection.design, columns.len());
        let instructions = Instructions::detect();
        let centre = working.iter().sum::<f64>() / working.len() as f64;
        let centred: Vec<f64> = working.iter().map(|z| z - centre).collect();
        let (mut gram, mut cross) = (vec![0.0; count * count], vec![0.0; count]);
        for a in 0..count {
            let column = design.column(columns[a] as usize);
            let weighted: Vec<f64> = column.iter().zip(weights).map(|(x, w)| x * w).collect();
            for b in 0..=a {
                let product = instructions.run(Dot { a: &weighted, b: design.column(columns[b] as usize) });
                (gram[a * count + b], gram[b * count + a]) = (product, product);
            }
            cross[a] = instructions.run(Dot { a: &weighted, b: &centred });
        }
        let square = centred.iter().zip(weights).map(|(z, w)| w * z * z).sum();
        Self { columns: columns.to_vec(), gram, centre, cross, square, size: None }
    }

    /// Mean and precision of the coefficients at some places of the quadratic, and their scale where there is one.
    fn restrict(&self, selection: &Selection, places: &[u32], scale: f64) -> Option<Restricted> {
        let g_prior = selection.settings.prior.is_g();
        let lost = if g_prior { 1.0 } else { places.len() as f64 };
        let free = (selection.design.total_weight() - lost).max(1.0);
        if !selection.settings.likelihood.has_scale() {
            let (mean, factor) = self.solve(selection, places, 1.0)?;
            return Some(self.restricted(mean, factor, scale, free));
        }
        if g_prior {
            // The prior's precision scales with the likelihood's: the mean is the same for every scale.
            let (mean, mut factor) = self.solve(selection, places, 1.0)?;
            let explained: f64 = places.iter().zip(&mean).map(|(&c, b)| self.cross[c as usize] * b).sum();
            let scale = ((self.square - explained).max(f64::MIN_POSITIVE) / free).sqrt();
            factor.iter_mut().for_each(|c| *c /= scale);
            return Some(self.restricted(mean, factor, scale, free));
        }
        let mut scale = scale;
        for _ in 0..SCALE_ROUNDS {
            let (mean, _) = self.solve(selection, places, scale * scale)?;
            scale = (self.residual(places, &mean) / free).sqrt();
        }
        let (mean, factor) = self.solve(selection, places, scale * scale)?;
        Some(self.restricted(mean, factor, scale, free))
    }

    /// Counts the intercept from 0 again.
    fn restricted(&self, mut mean: Vec<f64>, factor: Vec<f64>, scale: f64, free: f64) -> Restricted {
        mean[0] += self.centre;
        Restricted { mean, factor, scale, free }
    }

    /// `(z − Xb)ᵀ W (z − Xb)`, the intercept counted from the centre.
    fn residual(&self, places: &[u32], mean: &[f64]) -> f64 {
        let mut sum = self.square;
        for (&row, a) in places.iter().zip(mean) {
            let row = row as usize;
            let own = &self.gram[row * self.columns.len()..];
            let products = places.iter().zip(mean).map(|(&column, b)| own[column as usize] * b);
            sum += a * (products.sum::<f64>() - 2.0 * self.cross[row]);
        }
        sum.max(f64::MIN_POSITIVE)
    }

    /// Mean, its intercept counted from the centre, and Cholesky factor of the precision, given the variance that the
    /// quadratic is to be divided by.
    fn solve(&self, selection: &Selection, places: &[u32], variance: f64) -> Option<(Vec<f64>, Vec<f64>)> {
        let (count, all) = (self.columns.len(), selection.design.columns());
        let mut factor = Vec::with_capacity(packed_len(places.len()));
        for (i, &row) in places.iter().enumerate() {
            let own = &self.gram[row as usize * count..];
            factor.extend(places[..=i].iter().map(|&column| own[column as usize] / variance));
            let entries = &mut factor[packed_len(i)..];
            match selection.settings.prior {
                CoefficientPrior::Normal { .. } => entries[i] += 1.0 / selection.spread,
                _ => {
                    let gram = &selection.gram[self.columns[row as usize] as usize * all..];
                    let share = 1.0 / (selection.spread * selection.known_scale().powi(2) * variance);
                    // The intercept has no part in it.
                    let slopes = entries.iter_mut().zip(places).skip(1).filter(|_| i > 0);
                    slopes.for_each(|(x, &column)| *x += share * gram[self.columns[column as usize] as usize]);
                }
            }
        }
        cholesky(&mut factor, places.len()).ok()?;
        let mut mean: Vec<f64> = places.iter().map(|&column| self.cross[column as usize] / variance).collect();
        if let CoefficientPrior::Normal { .. } = selection.settings.prior {
            // The prior pulls the intercept to 0, not to the centre.
            mean[0] -= self.centre / selection.spread;
        }
        solve(&factor, &mut mean);
        solve_transposed(&factor, &mut mean);
        Some((mean, factor))
    }

    /// The preconditioner of a model.
    pub(super) fn preconditioner(&self, selection: &Selection, columns: &[u32]) -> Option<Preconditioner> {
        let mut part = self.restrict(selection, columns, selection.log_scale.exp())?;
        let (likelihood, mut size) = (selection.settings.likelihood, self.size);
        let refitted = !matches!(likelihood, Likelihood::Gaussian { .. } | Likelihood::Robust { .. });
        if refitted && selection.design.rows() * columns.len().pow(2) <= MAX_REFITTED {
            let predictor = predictors(selection, columns, &part.mean);
            let scale = size.map_or(part.scale, |size| size.location.exp());
            let own = Self::fit(selection, columns, predictor, scale, OWN_ROUNDS)?;
            let places: Vec<u32> = (0..columns.len() as u32).collect();
            part = own.restrict(selection, &places, part.scale)?;
            size = own.size;
        }
        let Restricted { mut mean, mut factor, scale, free } = part;
        // log σ comes first.
        let of_scale = likelihood.has_scale().then(|| match likelihood {
            Likelihood::Robust { .. } => {
                let (mean, sd) = log_robust_scale(selection, &predictors(selection, columns, &mean));
                (mean, sd.recip())
            }
            // 2 free is its information, and its posterior is a little to the right of its mode.
            _ => (scale.ln() + 0.5 / free, (2.0 * free).sqrt()),
        });
        let of_size = size.map(|size| (size.location, size.information.sqrt()));
        if let Some((location, precision)) = of_scale.or(of_size) {
            let mut with_scale = vec![precision];
            for i in 0..mean.len() {
                with_scale.push(0.0);
                with_scale.extend_from_slice(&factor[packed_len(i)..packed_len(i + 1)]);
            }
            factor = with_scale;
            mean.insert(0, location);
        }
        Preconditioner::from_factor(mean, factor)
    }
}

/// The log size where it is a parameter.
fn log_size(selection: &Selection, size: f64) -> Option<LogSize> {
    let is_parameter = selection.settings.likelihood == (Likelihood::NegativeBinomial { size: None });
    is_parameter.then(|| LogSize { location: size.ln(), information: 1.0 })
}

/// Linear predictors of coefficients, the offset included.
fn predictors(selection: &Selection, columns: &[u32], mean: &[f64]) -> Vec<f64> {
    let mut predictor = vec![0.0; selection.design.rows()];
    for (&column, b) in columns.iter().zip(mean) {
        predictor
            .iter_mut()
            .zip(selection.design.column(column as usize))
            .for_each(|(predictor, x)| *predictor += b * x);
    }
    predictor.iter_mut().zip(selection.design.offset()).for_each(|(predictor, offset)| *predictor += offset);
    predictor
}

/// The quadratic of one model.
struct Restricted {
    mean: Vec<f64>,
    /// Packed Cholesky factor of the precision.
    factor: Vec<f64>,
    scale: f64,
    /// Degrees of freedom that are left for the scale.
    free: f64,
}

/// The linear predictors to start from.
fn start(likelihood: &Likelihood, response: &[f64]) -> Vec<f64> {
    let mean = response.iter().sum::<f64>() / response.len() as f64;
    match likelihood {
        Likelihood::Logistic {} => response.iter().map(|y| y - 0.5).collect(),
        // Between each count and their mean, so that no logarithm is taken of 0.
        Likelihood::Poisson {} | Likelihood::NegativeBinomial { .. } => {
            response.iter().map(|y| (0.5 * (y + mean)).max(0.1).ln()).collect()
        }
        _ => vec![mean; response.len()],
    }
}

/// Weights and working responses at linear predictors η: `w = −∂²/∂η²` of the log likelihood, or what takes its place where
/// that may be negative, and `z = η + (∂/∂η) / w`. For errors with a scale, w is relative to its square.
fn reweight(selection: &Selection, predictor: &[f64], scale: f64) -> (Vec<f64>, Vec<f64>) {
    let pairs = selection.design.response().iter().zip(predictor);
    match selection.settings.likelihood {
        Likelihood::Gaussian { sigma } => {
            let weight = sigma.map_or(1.0, |sigma| sigma.powi(-2));
            pairs.map(|(&y, _)| (weight, y)).unzip()
        }
        Likelihood::Robust { alpha, sigma1, sigma2 } => {
            let [sigma1, sigma2] = both_scales(sigma1, sigma2, 1.0);
            // By the variance of an error, not by its share of both parts: modes of the posterior are where the shares
            // differ, and a preconditioner must not choose between them.
            let weight = ((1.0 - alpha) * sigma1.powi(2) + alpha * sigma2.powi(2)).recip();
            pairs.map(|(&y, _)| (weight, y)).unzip()
        }
        Likelihood::StudentT { df } => {
            let weight = |r: f64| (df + 1.0) / (df + (r / scale).powi(2));
            pairs.map(|(&y, predictor)| (weight(y - predictor), y)).unzip()
        }
        Likelihood::Logistic {} => {
            let glm = |y: f64, predictor: f64| {
                let mean = 1.0 / (1.0 + (-predictor).exp());
                let weight = (mean * (1.0 - mean)).max(SMALLEST_WEIGHT);
                (weight, predictor + (y - mean) / weight)
            };
            pairs.map(|(&y, &predictor)| glm(y, predictor)).unzip()
        }
        // Several predictors are another matter: [`super::categories`].
        Likelihood::Multinomial {} => pairs.map(|(&y, _)| (1.0, y)).unzip(),
        Likelihood::Poisson {} => {
            let glm = |y: f64, predictor: f64| {
                let mean = predictor.min(MAX_LOG_MEAN).exp().max(SMALLEST_WEIGHT);
                (mean, predictor + (y - mean) / mean)
            };
            pairs.map(|(&y, &predictor)| glm(y, predictor)).unzip()
        }
        Likelihood::NegativeBinomial { size } => {
            let size = size.unwrap_or(scale);
            let glm = |y: f64, predictor: f64| {
                let mean = predictor.min(MAX_LOG_MEAN).exp().max(SMALLEST_WEIGHT);
                (mean * size / (size + mean), predictor + (y - mean) / mean)
            };
            pairs.map(|(&y, &predictor)| glm(y, predictor)).unzip()
        }
    }
}

/// Rows that carry no information still carry a little here, so that no working response is infinite.
const SMALLEST_WEIGHT: f64 = 1e-6;

/// Beyond this a mean is not worth its exponential.
const MAX_LOG_MEAN: f64 = 30.0;

//! Means and standard deviations of the parameters of a Gaussian selection, averaged over all its models.
//!
//! All models are visited once more, now that their probabilities are known; the sweep operator leaves the coefficients of
//! each and the inverse of its XᵀX behind, which are the moments of the coefficients given σ.

use super::enumerate::Enumeration;
use super::exact::{ExactError, Fit, ScaleGrid, Swept, normal, task_count, visit};
use super::likelihood::ln_gamma;
use super::{CoefficientPrior, Likelihood, Selection};
use crate::workers::Workers;

/// The posterior of a parameter over all models; it counts as 0 where a model does not have it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Average {
    /// Its mean; not a number where there is none.
    pub mean: f64,
    /// Its standard deviation; not a number where there is none, as with three rows and an unknown scale.
    pub sd: f64,
}

/// The parameters of a selection whose likelihood is Gaussian in the units of the data, in their order, averaged over all
/// models with their exact probabilities.
pub fn averages(
    selection: &Selection,
    workers: &Workers,
    enumeration: &Enumeration,
) -> Result<Vec<Average>, ExactError> {
    let Likelihood::Gaussian { sigma } = selection.settings().likelihood else {
        return Err(ExactError::Likelihood);
    };
    let map = Measured::new(selection);
    let mut tasks = vec![Sums::new(&map); task_count(selection)];
    let probabilities = &enumeration.probabilities;
    match (selection.settings().prior, sigma) {
        (CoefficientPrior::Normal { scale }, Some(sigma)) => {
            visit(selection, workers, (sigma / scale).powi(2), &mut tasks, |sums, number, swept| {
                sums.add(&map, swept, probabilities[number], &Given::known(sigma));
            });
        }
        (CoefficientPrior::Normal { scale }, None) => {
            for (sigma, log_weight) in ScaleGrid::new(selection).weights(selection) {
                visit(selection, workers, (sigma / scale).powi(2), &mut tasks, |sums, number, swept| {
                    let log_part = normal(&swept.fit(), sigma, scale) + log_weight;
                    let share = (log_part - enumeration.log_evidences[number]).exp();
                    sums.add(&map, swept, probabilities[number] * share, &Given::known(sigma));
                });
            }
        }
        (CoefficientPrior::G { .. }, sigma) => {
            let g = selection.spread();
            visit(selection, workers, 0.0, &mut tasks, |sums, number, swept| {
                sums.add(&map, swept, probabilities[number], &Given::g_prior(&swept.fit(), g, sigma));
            });
        }
    }
    let count = tasks.first().map_or(0, |sums| sums.first.len());
    let total = |place: usize, of: fn(&Sums) -> &[f64]| tasks.iter().map(|sums| of(sums)[place]).sum::<f64>();
    let average = |place: usize| {
        let (mean, second) = (total(place, |sums| &sums.first), total(place, |sums| &sums.second));
        let shift = if map.intercept == place { map.mean } else { 0.0 };
        Average { mean: mean + shift, sd: (second - mean * mean).max(0.0).sqrt() }
    };
    let known = |average: Average| Average {
        // What is infinite is no number that anybody could use.
        sd: if average.sd.is_finite() { average.sd } else { f64::NAN },
        ..average
    };
    Ok((0..count).map(|place| known(average(place))).collect())
}

/// What is known of σ and of the shrinkage of slopes, given a model.
struct Given {
    /// E σ and E σ².
    scale: [f64; 2],
    /// By which the least-squares slopes and the inverse of their XᵀX are multiplied.
    shrinkage: f64,
}

impl Given {
    fn known(sigma: f64) -> Self {
        Self { scale: [sigma, sigma * sigma], shrinkage: 1.0 }
    }

    /// `s / σ²` has a χ² distribution with n − 1 degrees of freedom, where σ is unknown.
    fn g_prior(fit: &Fit, g: f64, sigma: Option<f64>) -> Self {
        let shrinkage = g / (1.0 + g);
        let scale = sigma.map_or_else(
            || {
                let freedom = fit.n - 1.0;
                let squares = fit.total - shrinkage * (fit.total - fit.residual);
                let mean = (0.5 * squares).sqrt() * (ln_gamma(0.5 * (freedom - 1.0)) - ln_gamma(0.5 * freedom)).exp();
                [mean, if freedom > 2.0 { squares / (freedom - 2.0) } else { f64::INFINITY }]
            },
            |sigma| [sigma, sigma * sigma],
        );
        Self { scale, shrinkage }
    }
}

/// From coefficients of standardised columns to those of the data: slopes b/s, and an intercept that takes up Σ b c/s.
struct Measured {
    /// Place of the intercept: behind the scale, where that is a parameter.
    intercept: usize,
    /// Mean of the response, from which the intercept is counted.
    mean: f64,
    /// 1/s of each column.
    factors: Vec<f64>,
    /// By which each coefficient adds to the intercept.
    weights: Vec<f64>,
}

impl Measured {
    fn new(selection: &Selection) -> Self {
        let (design, scaling) = (selection.design(), selection.design().scaling());
        let weights = std::iter::once(1.0).chain(scaling.iter().skip(1).map(|s| -s.center / s.scale)).collect();
        Self {
            intercept: usize::from(selection.settings().likelihood.has_scale()),
            mean: design.response().iter().sum::<f64>() / design.rows() as f64,
            factors: scaling.iter().map(|s| 1.0 / s.scale).collect(),
            weights,
        }
    }
}

/// Sums over models of first and second moments, times the models' probabilities.
#[derive(Clone)]
struct Sums {
    first: Vec<f64>,
    second: Vec<f64>,
    /// Columns of the model that is being added.
    columns: Vec<usize>,
}

impl Sums {
    fn new(map: &Measured) -> Self {
        let count = map.intercept + map.factors.len();
        Self { first: vec![0.0; count], second: vec![0.0; count], columns: Vec::new() }
    }

    fn add(&mut self, map: &Measured, swept: &Swept, weight: f64, given: &Given) {
        // Where there is nothing to add, infinite moments must not turn it into something else.
        if weight == 0.0 {
            return;
        }
        let &Given { scale: [scale, variance], shrinkage } = given;
        let mut put = |place: usize, mean: f64, second: f64| {
            self.first[place] += weight * mean;
            self.second[place] += weight * second;
        };
        if map.intercept == 1 {
            put(0, scale, variance);
        }
        self.columns.clear();
        self.columns.extend((1..map.factors.len()).filter(|&column| swept.has(column)));
        let (mut mean, mut spread) = (swept.coefficient(0), swept.inverse(0, 0));
        for &column in &self.columns {
            let (slope, factor) = (shrinkage * swept.coefficient(column), map.factors[column]);
            let own = shrinkage * swept.inverse(column, column);
            put(map.intercept + column, slope * factor, (slope * slope + own * variance) * factor * factor);
            mean += slope * map.weights[column];
            // Centred columns have nothing to do with the intercept; of others a normal prior shrinks nothing here.
            let others = self.columns.iter().map(|&other| swept.inverse(column, other) * map.weights[other]);
            spread += shrinkage * map.weights[column] * (2.0 * swept.inverse(column, 0) + others.sum::<f64>());
        }
        put(map.intercept, mean, mean * mean + spread * variance);
    }
}

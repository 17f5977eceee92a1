//! Means and standard deviations of the parameters of a Gaussian selection, averaged over all its models.
//!
//! All models are visited once more, now that their probabilities are known; the sweep operator leaves the coefficients of
//! each and the inverse of its XᵀX behind, which are the moments of the coefficients given σ. Where σ is integrated numerically,
//! and where models are few among many, the moments of each are those of its conjugate posterior.

use super::conjugate::{Moments, scale_moments};
use super::enumerate::Enumeration;
use super::exact::{ExactError, Fit, PriorOfG, Swept, TASK_MODELS, task_count, visit};
use super::{CoefficientPrior, Conjugate, Likelihood, Selection};
use crate::workers::Workers;

/// The posterior of a parameter over all models; it counts as 0 where a model does not have it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Average {
    /// Its mean; not a number where there is none.
    pub mean: f64,
    /// Standard error of the mean: 0 where all models were summed.
    pub se: f64,
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
        (CoefficientPrior::Normal { .. }, None) => tasks = by_models(selection, workers, &map, enumeration)?,
        (_, sigma) => {
            let prior = selection.prior_of_g();
            visit(selection, workers, 0.0, &mut tasks, |sums, number, swept| {
                // Where there is nothing to add, infinite moments must not turn it into something else.
                if probabilities[number] > 0.0 {
                    sums.add(&map, swept, probabilities[number], &Given::g_prior(&swept.fit(), &prior, sigma));
                }
            });
        }
    }
    Ok(Sums::total(&map, &tasks).averages(&map))
}

/// Sums of moments of the models that are not negligible, each by itself.
fn by_models(
    selection: &Selection,
    workers: &Workers,
    map: &Measured,
    enumeration: &Enumeration,
) -> Result<Vec<Sums>, ExactError> {
    /// The least probable models, which together hold no more than this, change no digit that anybody reads.
    const NEGLIGIBLE: f64 = 1e-9;
    let probabilities = &enumeration.probabilities;
    let mut numbers: Vec<usize> = (0..probabilities.len()).filter(|&number| probabilities[number] > 0.0).collect();
    numbers.sort_unstable_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]).then(a.cmp(&b)));
    let mut left_out = 0.0;
    let first = numbers.iter().position(|&number| {
        left_out += probabilities[number];
        left_out > NEGLIGIBLE
    });
    numbers.drain(..first.unwrap_or(0));
    let mut tasks: Vec<(&[usize], Sums)> =
        numbers.chunks(TASK_MODELS).map(|numbers| (numbers, Sums::new(map))).collect();
    workers.try_for_each(&mut tasks, |_, (numbers, sums)| {
        for &number in *numbers {
            let moments = map.moments(selection, &enumeration.model(number))?;
            sums.add_moments(probabilities[number], &moments);
        }
        Ok::<(), ExactError>(())
    })?;
    Ok(tasks.into_iter().map(|(_, sums)| sums).collect())
}

/// What is known of σ and of the shrinkage of slopes, given a model.
struct Given {
    /// E σ and E σ².
    scale: [f64; 2],
    /// First and second moment of what the least-squares slopes and the inverse of their XᵀX are multiplied by.
    shrinkage: [f64; 2],
    /// E of the shrinkage times σ².
    shrunk_variance: f64,
}

impl Given {
    fn known(sigma: f64) -> Self {
        Self::shrunk(1.0, [sigma, sigma * sigma])
    }

    fn shrunk(by: f64, scale: [f64; 2]) -> Self {
        Self { scale, shrinkage: [by, by * by], shrunk_variance: by * scale[1] }
    }

    fn g_prior(fit: &Fit, prior: &PriorOfG, sigma: Option<f64>) -> Self {
        match prior {
            PriorOfG::Fixed(g) => Self::given_g(fit, *g, sigma),
            // Without slopes it does not matter what g is.
            PriorOfG::Mixture(_) if fit.columns <= 1.0 => Self::given_g(fit, 1.0, sigma),
            PriorOfG::Mixture(mixture) => {
                let grid = mixture.of_evidence(fit, sigma).grid();
                let mut all = Self::shrunk(0.0, [0.0; 2]);
                grid.shares(grid.log_integral()).for_each(|(g, share)| all.add(share, &Self::given_g(fit, g, sigma)));
                all
            }
        }
    }

    /// `s / σ²` has a χ² distribution with n − 1 degrees of freedom, where σ is unknown.
    fn given_g(fit: &Fit, g: f64, sigma: Option<f64>) -> Self {
        let shrinkage = g / (1.0 + g);
        let scale = sigma.map_or_else(
            || {
                let freedom = fit.n - 1.0;
                scale_moments(freedom, fit.total - shrinkage * (fit.total - fit.residual))
            },
            |sigma| [sigma, sigma * sigma],
        );
        Self::shrunk(shrinkage, scale)
    }

    fn add(&mut self, weight: f64, other: &Self) {
        for (to, from) in [(&mut self.scale, other.scale), (&mut self.shrinkage, other.shrinkage)] {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += weight * from);
        }
        self.shrunk_variance += weight * other.shrunk_variance;
    }
}

/// From coefficients of standardised columns to those of the data: slopes b/s, and an intercept that takes up Σ b c/s.
pub(super) struct Measured {
    /// Place of the intercept: behind the scale, where that is a parameter.
    intercept: usize,
    /// Mean of the response, from which the intercept is counted.
    mean: f64,
    /// 1/s of each column.
    factors: Vec<f64>,
    /// By which each coefficient adds to the intercept.
    weights: Vec<f64>,
}

/// First and second moment of the parameter at a place.
pub(super) type Moment = (usize, [f64; 2]);

impl Measured {
    pub(super) fn new(selection: &Selection) -> Self {
        let (design, scaling) = (selection.design(), selection.design().scaling());
        let weights = std::iter::once(1.0).chain(scaling.iter().skip(1).map(|s| -s.center / s.scale)).collect();
        Self {
            intercept: usize::from(selection.settings().likelihood.has_scale()),
            mean: design.mean_of(design.response()),
            factors: scaling.iter().map(|s| 1.0 / s.scale).collect(),
            weights,
        }
    }
}

impl Measured {
    /// How many parameters there are.
    pub(super) fn count(&self) -> usize {
        self.intercept + self.factors.len()
    }

    /// Moments of the parameters that a model has, by its conjugate posterior; the intercept is counted from the mean.
    pub(super) fn moments(&self, selection: &Selection, model: &[u16]) -> Result<Vec<Moment>, ExactError> {
        let mut columns = Vec::new();
        selection.design().model_columns(model, &mut columns);
        let weights: Vec<f64> = columns.iter().map(|&column| self.weights[column as usize]).collect();
        let Moments { scale, weighted, coefficients } = Conjugate::new(selection, model)?.moments(&weights);
        let slope = |(&column, [first, second]): (&u32, [f64; 2])| {
            let factor = self.factors[column as usize];
            (self.intercept + column as usize, [factor * first, factor * factor * second])
        };
        let around = (self.intercept == 1).then_some((0, scale)).into_iter().chain([(self.intercept, weighted)]);
        Ok(around.chain(columns.iter().zip(coefficients).skip(1).map(slope)).collect())
    }
}

/// Sums over models of first and second moments, times the models' probabilities.
#[derive(Clone)]
pub(super) struct Sums {
    first: Vec<f64>,
    second: Vec<f64>,
    /// Columns of the model that is being added.
    columns: Vec<usize>,
}

impl Sums {
    pub(super) fn new(map: &Measured) -> Self {
        let count = map.count();
        Self { first: vec![0.0; count], second: vec![0.0; count], columns: Vec::new() }
    }

    pub(super) fn add_moments(&mut self, weight: f64, moments: &[Moment]) {
        for &(place, [first, second]) in moments {
            self.first[place] += weight * first;
            self.second[place] += weight * second;
        }
    }

    /// All tasks together, in their order.
    fn total(map: &Measured, tasks: &[Self]) -> Self {
        let mut total = Self::new(map);
        for sums in tasks {
            total.first.iter_mut().zip(&sums.first).for_each(|(total, sum)| *total += sum);
            total.second.iter_mut().zip(&sums.second).for_each(|(total, sum)| *total += sum);
        }
        total
    }

    /// What they come to, where weights add up to 1.
    pub(super) fn averages(&self, map: &Measured) -> Vec<Average> {
        let average = |(place, (&mean, &second)): (usize, (&f64, &f64))| {
            let shift = if map.intercept == place { map.mean } else { 0.0 };
            let sd = (second - mean * mean).max(0.0).sqrt();
            // What is infinite is no number that anybody could use.
            Average { mean: mean + shift, se: 0.0, sd: if sd.is_finite() { sd } else { f64::NAN } }
        };
        self.first.iter().zip(&self.second).enumerate().map(average).collect()
    }

    fn add(&mut self, map: &Measured, swept: &Swept, weight: f64, given: &Given) {
        // Where there is nothing to add, infinite moments must not turn it into something else.
        if weight == 0.0 {
            return;
        }
        let &Given { scale: [scale, variance], shrinkage: [shrinkage, squared], shrunk_variance } = given;
        let mut put = |place: usize, mean: f64, second: f64| {
            self.first[place] += weight * mean;
            self.second[place] += weight * second;
        };
        if map.intercept == 1 {
            put(0, scale, variance);
        }
        self.columns.clear();
        self.columns.extend((1..map.factors.len()).filter(|&column| swept.has(column)));
        let (own, mut of_slopes, mut spread) = (swept.coefficient(0), 0.0, 0.0);
        for &column in &self.columns {
            let (slope, factor) = (swept.coefficient(column), map.factors[column]);
            let second = squared * slope * slope + shrunk_variance * swept.inverse(column, column);
            put(map.intercept + column, shrinkage * slope * factor, second * factor * factor);
            of_slopes += slope * map.weights[column];
            // Centred columns have nothing to do with the intercept; of others a normal prior shrinks nothing here.
            let others = self.columns.iter().map(|&other| swept.inverse(column, other) * map.weights[other]);
            spread += map.weights[column] * (2.0 * swept.inverse(column, 0) + others.sum::<f64>());
        }
        let second = own * own + 2.0 * own * shrinkage * of_slopes + squared * of_slopes * of_slopes;
        let around = variance * swept.inverse(0, 0) + shrunk_variance * spread;
        put(map.intercept, own + shrinkage * of_slopes, second + around);
    }
}

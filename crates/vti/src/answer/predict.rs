//! Responses of new rows, averaged over models.

use super::{Samples, quantiles};
use crate::problem::selection::{Likelihood, Term, both_scales, coefficient_name, softmax};
use crate::random::{Purpose, Stream};

/// The response of a new row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Its mean over all models and parameters.
    pub mean: f64,
    /// Between which its mean lies.
    pub mean_interval: [f64; 2],
    /// Between which a new observation of it lies.
    pub new_interval: [f64; 2],
}

/// Draws of a selection with the columns that they multiply.
///
/// ```
/// use vti::answer::{Predictor, SampledModel, Samples};
/// use vti::problem::selection::{Likelihood, Term};
///
/// let samples = Samples {
///     names: vec!["intercept".into(), "x".into()],
///     models: vec![SampledModel { word: "1".into(), label: "{x}".into(), active: vec![true, true] }],
///     model: vec![0],
///     values: vec![1.0, 2.0],
///     log_weight: vec![0.0],
///     ..Samples::default()
/// };
/// let x = Term { name: "x".into(), columns: vec!["x".into()], values: vec![3.0], always: false, parents: Vec::new() };
/// let predictor = Predictor::new(&samples, Likelihood::Gaussian { sigma: Some(0.1) }, std::slice::from_ref(&x), 1);
/// assert_eq!(predictor.row(0, 0.9).mean, 7.0);
/// ```
#[derive(Debug)]
pub struct Predictor<'a> {
    samples: &'a Samples,
    weights: Vec<f64>,
    likelihood: Likelihood,
    /// Numbers of a column for each parameter; none for the scale of the errors and the intercept.
    columns: Vec<Option<&'a [f64]>>,
    intercept: usize,
    /// Empty if there is none.
    offset: &'a [f64],
    /// Names of the categories of the response but the first; empty unless it is one of several.
    categories: &'a [String],
    /// Of which of these each parameter is, if of any.
    of_category: Vec<Option<usize>>,
    seed: u64,
}

/// The probability of a category of the response of a new row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CategoryPrediction {
    /// Its mean over all models and parameters.
    pub probability: f64,
    /// Between which it lies.
    pub interval: [f64; 2],
}

/// The numbers of a column of this name, where a term has one.
fn column<'a>(terms: &'a [Term], name: &str) -> Option<&'a [f64]> {
    let rows = |term: &Term| term.values.len() / term.columns.len().max(1);
    terms.iter().find_map(|term| {
        let place = term.columns.iter().position(|column| column == name)?;
        Some(&term.values[place * rows(term)..][..rows(term)])
    })
}

/// Streams of predictions.
const PREDICT: u32 = 0x7072_6564;

impl<'a> Predictor<'a> {
    /// New rows of these terms, under the draws of a selection with this likelihood.
    pub fn new(samples: &'a Samples, likelihood: Likelihood, terms: &'a [Term], seed: u64) -> Self {
        Self {
            samples,
            weights: samples.weights(),
            likelihood,
            columns: samples.names.iter().map(|name| column(terms, name)).collect(),
            intercept: likelihood.own_parameters(),
            offset: &[],
            categories: &[],
            of_category: Vec::new(),
            seed,
        }
    }

    /// The response is one of these categories, the first being what the others are compared with.
    pub fn with_categories(self, categories: &'a [String], terms: &'a [Term]) -> Self {
        let categories = categories.get(1..).unwrap_or_default();
        let of = |name: &String| {
            let stripped = |(place, category): (usize, &String)| {
                Some((Some(place), name.strip_suffix(&coefficient_name("", category))?.to_string()))
            };
            categories.iter().enumerate().find_map(stripped).unwrap_or_default()
        };
        let (of_category, names): (Vec<Option<usize>>, Vec<String>) = self.samples.names.iter().map(of).unzip();
        Self { columns: names.iter().map(|name| column(terms, name)).collect(), categories, of_category, ..self }
    }

    /// What is added to the predictor of each new row.
    pub fn with_offset(self, offset: &'a [f64]) -> Self {
        Self { offset, ..self }
    }

    /// What is to be expected of a row, with central intervals of this probability.
    pub fn row(&self, row: usize, probability: f64) -> Prediction {
        let (mut means, mut new) = (Vec::with_capacity(self.weights.len()), Vec::with_capacity(self.weights.len()));
        let mut average = 0.0;
        for (draw, &weight) in self.weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            let mean = self.mean(draw, row);
            let mut stream = Stream::new(self.seed, Purpose::Other(PREDICT), row as u64, draw as u64);
            average += weight * mean;
            means.push((mean, weight));
            new.push((self.observe(draw, mean, &mut stream), weight));
        }
        let tail = 0.5 * (1.0 - probability);
        let levels = [tail, 1.0 - tail];
        let (mean_interval, [low, high]) = (quantiles(&mut means, levels), quantiles(&mut new, levels));
        let whole = self.likelihood == (Likelihood::Logistic {}) || self.likelihood.has_counts();
        // Between two counts there is none.
        let new_interval = if whole { [low.floor(), high.ceil()] } else { [low, high] };
        Prediction { mean: average, mean_interval, new_interval }
    }

    /// The probability of each category in a row, the first included, with central intervals of this probability. Nothing
    /// unless the response is one of several.
    pub fn categories(&self, row: usize, probability: f64) -> Vec<CategoryPrediction> {
        if self.categories.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<Vec<(f64, f64)>> = vec![Vec::with_capacity(self.weights.len()); self.categories.len() + 1];
        for (draw, &weight) in self.weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            let of_draw = self.probabilities(draw, row);
            found.iter_mut().zip(of_draw).for_each(|(found, p)| found.push((p, weight)));
        }
        let tail = 0.5 * (1.0 - probability);
        let summarise = |mut found: Vec<(f64, f64)>| CategoryPrediction {
            probability: found.iter().map(|(p, weight)| p * weight).sum(),
            interval: quantiles(&mut found, [tail, 1.0 - tail]),
        };
        found.into_iter().map(summarise).collect()
    }

    /// Probabilities of all categories under one draw.
    fn probabilities(&self, draw: usize, row: usize) -> Vec<f64> {
        let mut predictors = vec![0.0; self.categories.len()];
        for (parameter, (category, column)) in self.of_category.iter().zip(&self.columns).enumerate() {
            let Some(category) = *category else { continue };
            // The intercept multiplies 1.
            let x = column.map_or(1.0, |column| column.get(row).copied().unwrap_or(f64::NAN));
            predictors[category] += self.samples.value(draw, parameter).unwrap_or(0.0) * x;
        }
        let log_sum = softmax(&mut predictors);
        std::iter::once((-log_sum).exp()).chain(predictors).collect()
    }

    /// The mean of the response under one draw.
    fn mean(&self, draw: usize, row: usize) -> f64 {
        let value = |parameter: usize| self.samples.value(draw, parameter).unwrap_or(0.0);
        let at = |column: &[f64]| column.get(row).copied().unwrap_or(f64::NAN);
        let columns = self.columns.iter().enumerate();
        let slopes = columns.filter_map(|(parameter, column)| column.map(|column| value(parameter) * at(column)));
        let offset = if self.offset.is_empty() { 0.0 } else { at(self.offset) };
        let predictor = value(self.intercept) + slopes.sum::<f64>() + offset;
        match self.likelihood {
            Likelihood::Logistic {} | Likelihood::Multinomial {} => 1.0 / (1.0 + (-predictor).exp()),
            Likelihood::Poisson {} | Likelihood::NegativeBinomial { .. } => predictor.exp(),
            Likelihood::Gaussian { .. } | Likelihood::Robust { .. } | Likelihood::StudentT { .. } => predictor,
        }
    }

    /// A new response under one draw.
    fn observe(&self, draw: usize, mean: f64, stream: &mut Stream) -> f64 {
        let scale = || self.samples.value(draw, 0).unwrap_or(f64::NAN);
        match self.likelihood {
            Likelihood::Gaussian { sigma } => mean + sigma.unwrap_or_else(scale) * stream.normal(),
            Likelihood::Robust { alpha, sigma1, sigma2 } => {
                let [sigma1, sigma2] = both_scales(sigma1, sigma2, self.samples.value(draw, 0).unwrap_or(f64::NAN));
                let sigma = if stream.uniform() < alpha { sigma2 } else { sigma1 };
                mean + sigma * stream.normal()
            }
            Likelihood::StudentT { df } => mean + scale() * stream.student_t(df),
            Likelihood::Logistic {} | Likelihood::Multinomial {} => f64::from(u8::from(stream.uniform() < mean)),
            Likelihood::Poisson {} => stream.poisson(mean),
            Likelihood::NegativeBinomial { size } => stream.negative_binomial(mean, size.unwrap_or_else(scale)),
        }
    }
}

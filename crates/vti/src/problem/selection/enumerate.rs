//! The exact answer to a selection: the posterior probabilities of all its models.

use serde::Serialize;

use super::exact::{ExactError, log_evidences, word};
use super::quadrature::{QuadratureLimits, evidence_by_quadrature};
use super::{Likelihood, Selection};
use crate::problem::Problem;
use crate::space::{Model, ModelSpace};
use crate::stats::{Evidence, log_sum_exp};
use crate::workers::Workers;

/// How evidences are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Coefficients are integrated out by formula (and by a sum over a grid an unknown scale with a normal prior, or g of a
    /// mixture of g-priors).
    ClosedForm,
    /// All parameters are integrated out numerically.
    Quadrature,
}

/// What is worth the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnumerationLimits {
    /// The most terms; there are twice as many models for each.
    pub terms: usize,
    /// For models without a closed form.
    pub quadrature: QuadratureLimits,
}

impl Default for EnumerationLimits {
    fn default() -> Self {
        Self { terms: 20, quadrature: QuadratureLimits::default() }
    }
}

/// All models with their probabilities, numbered by their words, the first bit being the highest.
#[derive(Clone, Debug, PartialEq)]
pub struct Enumeration {
    /// How evidences were found.
    pub method: Method,
    /// Number of terms.
    pub terms: usize,
    /// `log ∫ p(y, θ | m) dθ` of each model; −∞ where a word is no model.
    pub log_evidences: Vec<f64>,
    /// The largest error of these that numerical integration admits; 0 for closed forms.
    pub error: f64,
    /// Posterior probability of each model.
    pub probabilities: Vec<f64>,
    /// Posterior probability of each term to be in.
    pub inclusion: Vec<f64>,
    /// `log p(y)`, over all models.
    pub log_evidence: f64,
}

impl Enumeration {
    /// How a selection would be enumerated within the default limits, if at all.
    pub fn affordable(selection: &Selection) -> Option<Method> {
        method(selection, &EnumerationLimits::default()).ok()
    }

    /// Finds the evidences of all models in closed form within the default limits, or says why that is not to be had.
    pub fn in_closed_form(selection: &Selection, workers: &Workers) -> Result<Self, ExactError> {
        Self::closed_form_affordable(selection)?;
        enumerate(selection, workers, &EnumerationLimits::default())
    }

    /// Whether all evidences can be had in closed form within the default limits; why not, if not.
    pub fn closed_form_affordable(selection: &Selection) -> Result<(), ExactError> {
        if !matches!(selection.settings().likelihood, Likelihood::Gaussian { .. }) {
            return Err(ExactError::Likelihood);
        }
        method(selection, &EnumerationLimits::default()).map(|_| ())
    }

    /// The model of this number.
    pub fn model(&self, number: usize) -> Model {
        word(number, self.terms).into()
    }

    /// The number of a model, if it has as many bits as there are terms.
    pub fn number(&self, model: &[u16]) -> Option<usize> {
        let fits = model.len() == self.terms && model.iter().all(|&bit| bit < 2);
        fits.then(|| model.iter().fold(0, |number, &bit| number << 1 | usize::from(bit)))
    }

    /// The posterior probability of a model, if it has as many bits as there are terms.
    pub fn probability(&self, model: &[u16]) -> Option<f64> {
        self.number(model).map(|number| self.probabilities[number])
    }

    /// How many models there are.
    pub fn count(&self) -> usize {
        self.log_evidences.iter().filter(|log| **log > f64::NEG_INFINITY).count()
    }

    /// Numbers of the models, most probable first.
    pub fn ranking(&self) -> Vec<usize> {
        let is_model = |number: &usize| self.log_evidences[*number] > f64::NEG_INFINITY;
        let mut order: Vec<usize> = (0..self.probabilities.len()).filter(is_model).collect();
        order.sort_by(|&a, &b| self.probabilities[b].total_cmp(&self.probabilities[a]).then(a.cmp(&b)));
        order
    }
}

/// Finds the evidences of all models of a selection, or says why that is not affordable.
pub fn enumerate(
    selection: &Selection,
    workers: &Workers,
    limits: &EnumerationLimits,
) -> Result<Enumeration, ExactError> {
    let method = method(selection, limits)?;
    let terms = selection.space().things();
    let (mut log_evidences, error) = match method {
        Method::ClosedForm => (log_evidences(selection, workers)?, 0.0),
        Method::Quadrature => by_quadrature(selection, workers, &limits.quadrature)?,
    };
    let log_priors: Vec<f64> =
        (0..log_evidences.len()).map(|number| selection.log_prior(&word(number, terms))).collect();
    for (log_evidence, log_prior) in log_evidences.iter_mut().zip(&log_priors) {
        if *log_prior == f64::NEG_INFINITY {
            *log_evidence = f64::NEG_INFINITY;
        }
    }
    let log_joint: Vec<f64> =
        (0..log_evidences.len()).map(|number| log_evidences[number] + log_priors[number]).collect();
    let log_evidence = log_sum_exp(&log_joint);
    let probabilities: Vec<f64> = log_joint.iter().map(|joint| (joint - log_evidence).exp()).collect();
    let included = |term: usize| {
        let has = |number: &usize| number >> (terms - 1 - term) & 1 == 1;
        (0..probabilities.len()).filter(has).map(|number| probabilities[number]).sum()
    };
    let inclusion = (0..terms).map(included).collect();
    Ok(Enumeration { method, terms, log_evidences, error, probabilities, inclusion, log_evidence })
}

fn method(selection: &Selection, limits: &EnumerationLimits) -> Result<Method, ExactError> {
    let (space, settings) = (selection.space(), selection.settings());
    let terms = space.things();
    let gaussian = matches!(settings.likelihood, Likelihood::Gaussian { .. });
    if terms > limits.terms {
        return Err(ExactError::TooMany { terms, most: limits.terms });
    }
    let (parameters, most) = (space.max_dim(), limits.quadrature.parameters);
    if !gaussian && parameters > most {
        return Err(ExactError::TooManyParameters { model: space.label(&vec![1; terms]), parameters, most });
    }
    Ok(if gaussian { Method::ClosedForm } else { Method::Quadrature })
}

fn by_quadrature(
    selection: &Selection,
    workers: &Workers,
    limits: &QuadratureLimits,
) -> Result<(Vec<f64>, f64), ExactError> {
    let terms = selection.space().things();
    let mut found: Vec<Result<Evidence, ExactError>> = (0..1 << terms).map(|_| Ok(Evidence::exactly(0.0))).collect();
    workers.for_each(&mut found, |number, found| {
        let word = word(number, terms);
        if selection.space().is_allowed(&word) {
            *found = evidence_by_quadrature(selection, &word, limits);
        }
    });
    let found: Vec<Evidence> = found.into_iter().collect::<Result<_, _>>()?;
    let error = found.iter().map(|evidence| evidence.se).fold(0.0, f64::max);
    Ok((found.iter().map(|evidence| evidence.log_evidence).collect(), error))
}

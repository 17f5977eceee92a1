//! Exact probabilities of all models, where they are known.

use anyhow::Result;
use vti::engine::{CpuEngine, Engine, Real};
use vti::problem::Problem;
use vti::problem::selection::{CoefficientPrior, Likelihood, Selection, log_evidences};

/// Up to so many terms the exact answer is found along with a run.
const CHEAP_TERMS: usize = 20;

/// The same where σ has to be integrated over as well.
const CHEAP_TERMS_WITH_SCALE: usize = 13;

/// Exact answers.
#[derive(Clone, Debug)]
pub(crate) struct Exact {
    terms: usize,
    /// `log p(y | m)` of each model, by number: the first term is the highest bit.
    pub(crate) log_evidences: Vec<f64>,
    /// Posterior probabilities, by number.
    pub(crate) probabilities: Vec<f64>,
    /// `log p(y)`.
    pub(crate) log_evidence: f64,
}

impl Exact {
    /// Whether the answer is there for the asking.
    pub(crate) fn is_cheap(selection: &Selection) -> bool {
        let terms = selection.design().terms().len();
        let prior = &selection.settings().prior;
        match selection.settings().likelihood {
            Likelihood::Gaussian { sigma: None } if matches!(prior, CoefficientPrior::Normal { .. }) => {
                terms <= CHEAP_TERMS_WITH_SCALE
            }
            Likelihood::Gaussian { .. } => terms <= CHEAP_TERMS,
            _ => false,
        }
    }

    /// Visits all models.
    pub(crate) fn find<T: Real>(selection: &Selection, engine: &CpuEngine<T>) -> Result<Self>
    where
        CpuEngine<T>: Engine,
    {
        let log_evidences = log_evidences(selection, engine)?;
        let terms = selection.design().terms().len();
        let mut joint: Vec<f64> = log_evidences.clone();
        let mut word = vec![0; terms];
        for (number, value) in joint.iter_mut().enumerate() {
            write_word(number, &mut word);
            *value += selection.log_prior(&word);
        }
        let log_evidence = vti::stats::log_sum_exp(&joint);
        joint.iter_mut().for_each(|value| *value = (*value - log_evidence).exp());
        Ok(Self { terms, log_evidences, probabilities: joint, log_evidence })
    }

    /// The model of a number.
    pub(crate) fn word(&self, number: usize) -> Vec<u16> {
        let mut word = vec![0; self.terms];
        write_word(number, &mut word);
        word
    }

    /// The number of a model, written as bits.
    pub(crate) fn number(word: &str) -> usize {
        word.bytes().fold(0, |number, bit| 2 * number + usize::from(bit == b'1'))
    }

    /// The probability of a model, written as bits.
    pub(crate) fn probability(&self, word: &str) -> f64 {
        self.probabilities.get(Self::number(word)).copied().unwrap_or(f64::NAN)
    }

    /// The probability that a term is in.
    pub(crate) fn inclusion(&self, term: usize) -> f64 {
        let bit = self.terms - 1 - term;
        let inside = self.probabilities.iter().enumerate().filter(|(number, _)| number >> bit & 1 == 1);
        inside.map(|(_, probability)| probability).sum()
    }

    /// Numbers of the most probable models, most probable first.
    pub(crate) fn leading(&self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.probabilities.len()).collect();
        order.sort_by(|&a, &b| self.probabilities[b].total_cmp(&self.probabilities[a]).then(a.cmp(&b)));
        order.truncate(count);
        order
    }
}

fn write_word(number: usize, word: &mut [u16]) {
    let terms = word.len();
    for (term, bit) in word.iter_mut().enumerate() {
        *bit = (number >> (terms - 1 - term) & 1) as u16;
    }
}

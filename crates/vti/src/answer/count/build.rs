//! From draws, corrections and exact sums to what is said about numbers of components.

use std::fmt;
use std::ops::RangeInclusive;

use super::{Count, CountAnswer, CountEvidence, Counted, Curve, GivenCount, Memberships, Positions};
use crate::answer::closed_form::Known;
use crate::answer::{
    Coefficient, Exact, Findings, Found, ModelAnswer, Ordered, Quantity, Run, SampledModel, Samples, Subject,
};
use crate::check::{Verdict, VerdictKind};
use crate::space::Model;
use crate::stats::Estimate;

/// A problem that counts components, as far as answers about it need it. A model is a number of them: one symbol, from 0 for the
/// smallest number.
pub trait Counting: fmt::Debug + Sync {
    /// What is counted, in words.
    fn counted(&self) -> Counted;

    /// The numbers that are possible.
    fn counts(&self) -> RangeInclusive<usize>;

    /// `log p(k)`.
    fn log_prior(&self, count: usize) -> f64;

    /// Names of the parameters that are there whatever the number is, as samples have them.
    fn always(&self) -> Vec<String> {
        Vec::new()
    }

    /// What weighted draws say: curves, positions, components given their number.
    fn describe(&self, samples: &Samples, weights: &[f64]) -> Described;

    /// The model that has just these parameters, as places among their names, where that can be told from them.
    fn model_of(&self, active: &[usize]) -> Option<Model> {
        let _ = active;
        None
    }

    /// The number of components of a model.
    fn count(&self, word: &[u16]) -> usize {
        self.counts().start() + usize::from(word.first().copied().unwrap_or(0))
    }

    /// The model with so many components.
    fn word(&self, count: usize) -> Model {
        vec![u16::try_from(count.saturating_sub(*self.counts().start())).unwrap_or(u16::MAX)].into()
    }
}

/// What draws say about components.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Described {
    /// What components together say about the data.
    pub curves: Vec<Curve>,
    /// Where they are.
    pub positions: Vec<Positions>,
    /// What is known of each, given how many there are.
    pub given: Vec<GivenCount>,
    /// Which observations belong together.
    pub memberships: Option<Memberships>,
}

/// The numbers that lead, with the draws of each, for what is said about components given their number: at most `most` numbers,
/// those of at least 1 % of the weight, most probable first.
pub fn leading_counts(
    counting: &dyn Counting,
    samples: &Samples,
    weights: &[f64],
    most: usize,
) -> Vec<(usize, Vec<usize>)> {
    const LEAST: f64 = 0.01;
    let of_model: Vec<usize> = samples.models.iter().map(|model| counting.count(&symbols(model))).collect();
    let mut found: Vec<(usize, Vec<usize>, f64)> = Vec::new();
    for (row, model) in samples.model.iter().enumerate() {
        let count = of_model[*model];
        let place = found.iter().position(|(other, ..)| *other == count).unwrap_or_else(|| {
            found.push((count, Vec::new(), 0.0));
            found.len() - 1
        });
        found[place].1.push(row);
        found[place].2 += weights[row];
    }
    let total: f64 = weights.iter().sum();
    found.retain(|(.., weight)| *weight > LEAST * total);
    found.sort_by(|a, b| b.2.total_cmp(&a.2));
    found.into_iter().take(most).map(|(count, rows, _)| (count, rows)).collect()
}

/// The symbols of a model of one symbol, which are written as a number.
fn symbols(model: &SampledModel) -> Vec<u16> {
    model.word.parse().map_or_else(|_| Vec::new(), |symbol| vec![symbol])
}

/// The parts of an answer about a number, before draws have described components.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::answer) struct Counts {
    components: Vec<(usize, CountAnswer)>,
    mean_se: f64,
    coefficients: Ordered<Coefficient>,
}

impl Counts {
    /// From the models that were met; `unmet` is the standard error of a number that was not. `mean_se` is that of the mean
    /// number.
    pub(in crate::answer) fn of_models(
        counting: &dyn Counting,
        models: &[ModelAnswer],
        exact: Option<&Exact>,
        unmet: f64,
        mean_se: f64,
        coefficients: Ordered<Coefficient>,
    ) -> Self {
        let component = |count: usize| {
            let word = counting.word(count);
            let (text, exactly) = (word.to_string(), exact.and_then(|exact| exact.probability(&word)));
            let met = models.iter().find(|model| model.word == text);
            let missed = Quantity { q: 0.0, corrected: 0.0, se: unmet, exact: exactly };
            // p(y | k) = p(k | y) p(y) / p(k).
            let log_exact = exact.zip(exactly).filter(|(_, probability)| *probability > 0.0);
            let log_exact =
                log_exact.map(|(exact, probability)| probability.ln() + exact.log_evidence - counting.log_prior(count));
            let estimate = met.and_then(|model| model.log_evidence);
            let Estimate { value, se } = estimate.unwrap_or(Estimate { value: f64::NAN, se: f64::NAN });
            let log_evidence = (estimate.is_some() || log_exact.is_some()).then_some(CountEvidence {
                estimate: value,
                se,
                exact: log_exact,
            });
            let probability = met.map_or(missed, |model| model.probability);
            (count, CountAnswer { probability, prior: counting.log_prior(count).exp(), log_evidence })
        };
        Self { components: counting.counts().map(component).collect(), mean_se, coefficients }
    }

    /// With what draws say about components.
    pub(in crate::answer) fn described(self, counted: Counted, described: Described) -> Count {
        let mean = |probability: &dyn Fn(&Quantity) -> f64| {
            self.components.iter().map(|(count, found)| *count as f64 * probability(&found.probability)).sum::<f64>()
        };
        let is_exact = self.components.iter().all(|(_, found)| found.probability.exact.is_some());
        let exact = is_exact.then(|| mean(&|found| found.exact.unwrap_or(0.0)));
        let rank = |found: &CountAnswer| found.probability.corrected;
        let first = self.components.iter().max_by(|a, b| rank(&a.1).total_cmp(&rank(&b.1)));
        Count {
            counted,
            most_probable: first.map_or(0, |(count, _)| *count),
            mean: Quantity {
                q: mean(&|found| found.q),
                corrected: mean(&|found| found.corrected),
                se: self.mean_se,
                exact,
            },
            components: self.components.into_iter().map(|(count, found)| (count.to_string(), found)).collect(),
            coefficients: self.coefficients,
            curves: described.curves,
            positions: described.positions,
            given: described.given,
            memberships: described.memberships,
        }
    }
}

/// The exact answer about a number of components.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownCount {
    /// `log p(y ∣ k)` of every number that is possible, fewest first.
    pub log_evidences: Vec<f64>,
    /// Parameters that are there whatever the number is.
    pub coefficients: Ordered<Coefficient>,
    /// Where components are, where that is known better than from draws.
    pub positions: Vec<Positions>,
    /// Independent draws from the posterior.
    pub samples: Samples,
    /// The seed of the draws.
    pub seed: u64,
    /// How it was computed, in words that go on from "exact, ".
    pub how: String,
}

impl KnownCount {
    /// `log p(y)`, and the probability of every number.
    pub fn probabilities(&self, counting: &dyn Counting) -> (f64, Vec<f64>) {
        let joint: Vec<f64> =
            counting.counts().zip(&self.log_evidences).map(|(count, log)| counting.log_prior(count) + log).collect();
        let top = joint.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_evidence = top + joint.iter().map(|log| (log - top).exp()).sum::<f64>().ln();
        (log_evidence, joint.iter().map(|log| (log - log_evidence).exp()).collect())
    }
}

impl Findings {
    /// What follows from exact evidences of all numbers of components, and from draws of the exact posterior. Numbers under q are
    /// not numbers: nothing was learned.
    pub fn exact_count(counting: &dyn Counting, subject: &Subject<'_>, known: KnownCount, run: Run) -> Self {
        let (log_evidence, probabilities) = known.probabilities(counting);
        let counted = counting.counted();
        let model = |((count, probability), log): ((usize, &f64), &f64)| ModelAnswer {
            word: counting.word(count).to_string(),
            label: counted.number(count),
            size: count,
            probability: Quantity::exactly(*probability),
            log_evidence: Some(Estimate { value: *log, se: 0.0 }),
            khat: None,
        };
        let KnownCount { log_evidences, coefficients, positions, samples, seed, how } = known;
        let mut models: Vec<ModelAnswer> =
            counting.counts().zip(&probabilities).zip(&log_evidences).map(model).collect();
        models.sort_by(|a, b| b.probability.corrected.total_cmp(&a.probability.corrected));
        let component = |((count, probability), log): ((usize, &f64), &f64)| {
            let log_evidence = Some(CountEvidence { estimate: *log, se: 0.0, exact: Some(*log) });
            let prior = counting.log_prior(count).exp();
            (count, CountAnswer { probability: Quantity::exactly(*probability), prior, log_evidence })
        };
        let components = counting.counts().zip(&probabilities).zip(&log_evidences).map(component).collect();
        let counts = Counts { components, mean_se: 0.0, coefficients };
        let mut described = counting.describe(&samples, &samples.weights());
        if !positions.is_empty() {
            described.positions = positions;
        }
        let count = counts.described(counted, described);
        let known = Known {
            verdict: Verdict { kind: VerdictKind::Trust, text: format!("trust: exact, {how}") },
            log_evidence: Estimate { value: log_evidence, se: 0.0 },
            elbo: None,
            khat: None,
            models,
            search: None,
        };
        known.findings(subject, Found::Count(Box::new(count)), samples, seed, run)
    }
}

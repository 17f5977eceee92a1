//! What a search found.
//!
//! There are two estimates of the probability of anything. By visits: the share of iterations that chains with the posterior as
//! their target spent there, with an error from how fast they move. By evidences: the share of `Σ p(m) p(y | m)` over all models
//! that are known, visited or not. The second is exact once every model that matters is known, which in a space of some thousand
//! models takes no time; in a huge space the known models never hold all the mass, and it is biased towards them. How much they
//! lack is estimated by the share of iterations that chains lately spent in models that were new to them; as an error of the second
//! estimate this decides which of both is the better.
//!
//! Evidences with errors shift both alike: with wₘ the shares and ε the errors, a probability Σ wₘ f(m) moves by
//! Σ wₘ (f(m) − p) εₘ, whose variance is added (delta method).

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::known::{Entry, Key, Known};
use super::settings::Ended;
use super::trace::{FeatureTrace, Trace, diagnose, mark_features};
use super::{SearchError, SearchSettings, Target};
use crate::stats::{Diagnosis, Estimate, effective_sample_size, log_sum_exp, share_error, standard_error};

/// How probabilities were estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// By evidences of all known models.
    Evidences,
    /// By visits of chains.
    Visits,
}

/// A model that was met.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundModel {
    /// Its canonical word.
    pub word: Vec<u16>,
    /// `log p(y | m)`.
    pub log_evidence: Estimate,
    /// Its probability, by the search's [`Estimator`].
    pub probability: Estimate,
    /// Its share among all known models.
    pub by_evidences: f64,
    /// The share of iterations spent there.
    pub by_visits: f64,
}

/// A feature of models: a thing that is in, an edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundFeature {
    /// Its probability, by the search's [`Estimator`].
    pub probability: Estimate,
    /// By evidences.
    pub by_evidences: Estimate,
    /// By visits; errors of evidences are not in its standard error.
    pub by_visits: FeatureTrace,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Searched {
    /// Features above 0, in the order of [`ModelSpace::features`](crate::space::ModelSpace::features).
    pub features: Vec<FoundFeature>,
    /// Models, the most probable first, as many as settings allow.
    pub models: Vec<FoundModel>,
    /// Which estimate is the better.
    pub estimator: Estimator,
    /// The largest R̂ and the smallest effective sample size of any feature.
    pub diagnosis: Diagnosis,
    /// `log Σ p(m) p(y | m)` over all known models.
    pub log_total: Estimate,
    /// An estimate of the probability of all models that are not known.
    pub unmet: f64,
    /// Whether all chains agree.
    pub converged: bool,
    /// Why it ended.
    pub ended: Ended,
    /// Evidences that were asked for.
    pub asked: usize,
    /// Models that are known.
    pub known: usize,
    /// Iterations of each chain after the warm-up that count.
    pub iterations: usize,
    /// States of the chains with the posterior as their target at equal distances, chain by chain, one word after the other.
    pub draws: Vec<Vec<u16>>,
}

impl Searched {
    /// The probability of the models that some distribution q gives less than `below`, given `log q(m)` of all
    /// [`models`](Self::models) and of all [`draws`](Self::draws), chain by chain: what q lacks, were `below` 0. Words are models
    /// here: where several mean one, q of the model is wanted.
    pub fn missing(&self, log_q_models: &[f64], log_q_draws: &[Vec<f64>], below: f64) -> Estimate {
        let lacks = |log_q: f64| !(log_q >= below.ln());
        if self.estimator == Estimator::Evidences {
            let lacking = || self.models.iter().zip(log_q_models).filter(|(_, log_q)| lacks(**log_q));
            let value = lacking().map(|(model, _)| model.by_evidences).sum::<f64>();
            let noise: f64 = self
                .models
                .iter()
                .zip(log_q_models)
                .map(|(model, &log_q)| {
                    let off = f64::from(u8::from(lacks(log_q))) - value;
                    (model.by_evidences * off * model.log_evidence.se).powi(2)
                })
                .sum();
            let rest = (1.0 - self.models.iter().map(|model| model.by_evidences).sum::<f64>()).max(0.0) + self.unmet;
            return Estimate { value, se: (noise + rest * rest).sqrt() };
        }
        let chains: Vec<Vec<f64>> = log_q_draws
            .iter()
            .map(|chain| chain.iter().map(|&log_q| f64::from(u8::from(lacks(log_q)))).collect())
            .collect();
        let chains: Vec<&[f64]> = chains.iter().map(Vec::as_slice).collect();
        let count = chains.iter().map(|chain| chain.len()).sum::<usize>().max(1) as f64;
        let value = chains.iter().copied().flatten().sum::<f64>() / count;
        let effective = effective_sample_size(&chains).unwrap_or_else(|| self.diagnosis.effective.min(count));
        let se = standard_error(&chains).unwrap_or(0.0).max(share_error(value, effective));
        Estimate { value, se }
    }
}

/// Words of one model together.
struct Known1 {
    key: Key,
    weight: f64,
    visits: f64,
    evidence: Estimate,
}

/// Draws conclusions.
pub(super) fn conclude(
    target: &Target<'_>,
    settings: &SearchSettings,
    known: Known,
    traces: &[Trace],
    unmet: f64,
    ended: Ended,
) -> Result<Searched, SearchError> {
    let complete = traces.iter().map(|trace| trace.draws.len()).min().unwrap_or(0);
    if complete < 4 {
        return Err(SearchError::TooShort);
    }
    let (by_visits, diagnosis) = diagnose(traces, target.workers);
    let weights: Vec<f64> = known.entries.values().map(Entry::log_weight).collect();
    if log_sum_exp(&weights) == f64::NEG_INFINITY {
        return Err(SearchError::NoModel);
    }
    let Known { packing, entries, asked, .. } = known;
    // Where every word is known, nothing is missing.
    let all = (entries.len() as f64).ln() >= target.space.log_count() - 1e-9;
    let unmet = if all { 0.0 } else { unmet };
    let members = gather(target, &packing, entries);
    let log_total = members.log_total;
    let width = target.space.arities().len();
    let mut word = vec![0; width];
    let shares = Shares::new(target, &members.models, |key, to| packing.unpack(key, to), by_visits.len());
    let (by_evidences, noise) = (shares.values, shares.noise);
    let worst = |se: &mut dyn Iterator<Item = f64>| se.fold(0.0, f64::max);
    let beyond = |share: f64| unmet * share.max(1.0 - share);
    let error_of_evidences = worst(&mut by_evidences.iter().map(|&share| beyond(share)));
    let error_of_visits = worst(&mut by_visits.iter().map(|trace| trace.se));
    let estimator = if error_of_evidences <= error_of_visits { Estimator::Evidences } else { Estimator::Visits };
    let choose = |by_evidences: Estimate, by_visits: Estimate| match estimator {
        Estimator::Evidences => by_evidences,
        Estimator::Visits => by_visits,
    };
    let features = by_visits.iter().zip(by_evidences.iter().zip(&noise)).map(|(&trace, (&share, &noise))| {
        let by_evidences = Estimate { value: share, se: noise.hypot(beyond(share)) };
        let visited = Estimate { value: trace.share, se: trace.se.hypot(noise) };
        FoundFeature { probability: choose(by_evidences, visited), by_evidences, by_visits: trace }
    });
    let features = features.collect();
    let iterations: usize = traces[0].draws.len() * traces[0].length;
    let visits = (iterations * traces.len()) as f64;
    let known = members.models.len();
    let leading = members.models.into_iter().take(settings.leading).map(|model| {
        packing.unpack(&model.key, &mut word);
        let by_visits = model.visits / visits;
        // A model's own error moves its share by w (1 − w) ε.
        let noise = model.weight * (1.0 - model.weight) * model.evidence.se;
        let by_evidences = Estimate { value: model.weight, se: noise.hypot(unmet * model.weight) };
        let visited = share_error(by_visits, diagnosis.effective).hypot(noise);
        FoundModel {
            word: word.clone(),
            log_evidence: model.evidence,
            probability: choose(by_evidences, Estimate { value: by_visits, se: visited }),
            by_evidences: model.weight,
            by_visits,
        }
    });
    let mut models: Vec<FoundModel> = leading.collect();
    models.sort_by(|a, b| b.probability.value.total_cmp(&a.probability.value));
    let converged = diagnosis.rhat <= settings.max_rhat && diagnosis.effective >= settings.min_effective;
    let draws = traces.iter().map(|trace| trace.words(&packing, width)).collect();
    Ok(Searched {
        features,
        models,
        estimator,
        diagnosis,
        log_total,
        unmet,
        converged,
        ended,
        asked,
        known,
        iterations,
        draws,
    })
}

/// All models that are known, the heaviest first.
struct Members {
    models: Vec<Known1>,
    log_total: Estimate,
}

/// Joins words of one model and weighs models.
fn gather(target: &Target<'_>, packing: &super::known::Packing, entries: HashMap<Key, Entry>) -> Members {
    let most = entries.values().map(Entry::log_weight).fold(f64::NEG_INFINITY, f64::max);
    let width = target.space.arities().len();
    // In an order that does not depend on the map's.
    let mut entries: Vec<(Key, Entry)> = entries.into_iter().collect();
    entries.sort_unstable_by(|a, b| b.1.log_weight().total_cmp(&a.1.log_weight()).then_with(|| a.0.cmp(&b.0)));
    let (mut word, mut own) = (vec![0; width], packing.empty());
    let mut places: HashMap<Key, usize> = HashMap::new();
    let mut models: Vec<Known1> = Vec::new();
    for (key, entry) in entries {
        packing.unpack(&key, &mut word);
        target.space.canonical(&mut word);
        packing.pack(&word, &mut own);
        let (weight, visits) = ((entry.log_weight() - most).exp(), entry.visits as f64);
        let next = models.len();
        let place = *places.entry(own.clone()).or_insert(next);
        if place == next {
            models.push(Known1 { key: own.clone(), weight, visits, evidence: entry.evidence });
        } else {
            models[place].weight += weight;
            models[place].visits += visits;
        }
    }
    models.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let total: f64 = models.iter().rev().map(|model| model.weight).sum();
    models.iter_mut().for_each(|model| model.weight /= total);
    let noise = models.iter().map(|model| (model.weight * model.evidence.se).powi(2)).sum::<f64>().sqrt();
    Members { models, log_total: Estimate { value: most + total.ln(), se: noise } }
}

/// Probabilities of features by evidences, and what errors of evidences do to them.
struct Shares {
    values: Vec<f64>,
    noise: Vec<f64>,
}

impl Shares {
    fn new(target: &Target<'_>, models: &[Known1], unpack: impl Fn(&[u64], &mut [u16]), features: usize) -> Self {
        /// Models that together hold less than this do not matter.
        const NEGLIGIBLE: f64 = 1e-12;
        let mut word = vec![0; target.space.arities().len()];
        let (mut room, mut own) = (Vec::new(), Vec::new());
        let mut values = vec![0.0; features];
        // Σ w² se² over all models, and over those with each feature.
        let (mut all, mut with) = (0.0, vec![0.0; features]);
        let mut left = 1.0;
        for model in models {
            if left < NEGLIGIBLE {
                break;
            }
            left -= model.weight;
            unpack(&model.key, &mut word);
            mark_features(target.space, &word, &mut room, &mut own);
            let squared = (model.weight * model.evidence.se).powi(2);
            all += squared;
            for &feature in &own {
                values[feature as usize] += model.weight;
                with[feature as usize] += squared;
            }
        }
        let noise = values
            .iter()
            .zip(&with)
            .map(|(p, with): (&f64, &f64)| ((1.0 - p).powi(2) * with + p * p * (all - with).max(0.0)).sqrt());
        Self { noise: noise.collect(), values }
    }
}

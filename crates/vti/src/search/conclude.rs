//! From what chains and evidences say to what is reported.

use std::collections::HashMap;

use super::found::{Estimator, FoundFeature, FoundModel, Searched};
use super::known::{Entry, Key, Known, Packing};
use super::run::Fresh;
use super::settings::Ended;
use super::trace::{FeatureTrace, Trace, diagnose, error_of_visits, mark_features};
use super::{SearchError, SearchSettings, Target};
use crate::stats::{Estimate, log_sum_exp, share_error};

/// How a search ended.
pub(super) struct Ending {
    pub fresh: Fresh,
    pub ended: Ended,
}

/// Draws conclusions.
pub(super) fn conclude(
    target: &Target<'_>,
    settings: &SearchSettings,
    known: Known,
    traces: &[Trace],
    Ending { fresh, ended }: Ending,
) -> Result<Searched, SearchError> {
    if traces.iter().any(|trace| trace.blocks < 4) {
        return Err(SearchError::TooShort);
    }
    let Known { packing, entries, asked, .. } = known;
    // Where every word is known, nothing is missing.
    let all = (entries.len() as f64).ln() >= target.space.log_count() - 1e-9;
    let unmet = if all { 0.0 } else { fresh.share() };
    let log_early = log_weight_until(&entries, fresh.before());
    let members = Members::gather(target, &packing, entries).ok_or(SearchError::NoModel)?;
    let shares = Shares::new(target, &members.models, &packing);
    let (visits, diagnosis) = diagnose(traces, target.workers);
    let beyond = |share: f64| unmet * share.max(1.0 - share);
    let error_of_evidences = shares.values.iter().map(|&share| beyond(share)).fold(0.0, f64::max);
    let error_of_visits = error_of_visits(&visits);
    let estimator = if error_of_evidences <= error_of_visits { Estimator::Evidences } else { Estimator::Visits };
    let feature = |(&by_visits, (&share, &noise)): (&FeatureTrace, (&f64, &f64))| {
        let by_evidences = Estimate { value: share, se: noise.hypot(beyond(share)) };
        let visited = Estimate { value: by_visits.share, se: by_visits.se.hypot(noise) };
        FoundFeature { probability: estimator.choose(by_evidences, visited), by_evidences, by_visits }
    };
    let features = visits.iter().zip(shares.values.iter().zip(&shares.noise)).map(feature).collect();
    let iterations = traces[0].iterations();
    let log_total = members.log_total;
    let log_evidence = match estimator {
        Estimator::Evidences => Estimate { value: log_total.value, se: log_total.se.hypot(unmet) },
        Estimator::Visits => {
            // With the probability of some models known by visits, and their total by evidences, the total of all is known.
            let met = 1.0 - unmet;
            let effective = diagnosis.effective * fresh.counted() as f64 / (iterations * traces.len()) as f64;
            let se = share_error(met, effective) / met;
            Estimate { value: log_early - met.ln(), se: se.hypot(log_total.se) }
        }
    };
    let width = target.space.arities().len();
    let model = |member: &Member| {
        let mut word = vec![0; width];
        packing.unpack(&member.key, &mut word);
        let by_visits = member.visits / (iterations * traces.len()) as f64;
        // A model's own error moves its share by w (1 − w) ε.
        let noise = member.weight * (1.0 - member.weight) * member.evidence.se;
        let by_evidences = Estimate { value: member.weight, se: noise.hypot(unmet * member.weight) };
        let visited = Estimate { value: by_visits, se: share_error(by_visits, diagnosis.effective).hypot(noise) };
        // Its evidence over that of all models says more than visits, unless the latter is known badly.
        let value = (member.weight.ln() + log_total.value - log_evidence.value).exp().min(1.0);
        let of_all = Estimate { value, se: value * log_evidence.se };
        let visited = if of_all.se < visited.se { of_all } else { visited };
        let probability = estimator.choose(by_evidences, visited);
        FoundModel { word, log_evidence: member.evidence, probability, by_evidences: member.weight, by_visits }
    };
    // The heaviest first.
    let models = members.models.iter().take(settings.leading).map(model).collect();
    Ok(Searched {
        features,
        models,
        estimator,
        diagnosis,
        log_total,
        log_evidence,
        unmet,
        converged: settings.content(&diagnosis, error_of_evidences.min(error_of_visits)),
        ended,
        asked,
        known: members.models.len(),
        iterations,
        draws: traces.iter().map(|trace| trace.words(&packing, width)).collect(),
    })
}

/// `log Σ p(m) p(y | m)` over words that were known in this iteration.
fn log_weight_until(entries: &HashMap<Key, Entry>, iteration: u64) -> f64 {
    let mut weights: Vec<f64> =
        entries.values().filter(|entry| entry.born <= iteration).map(Entry::log_weight).collect();
    // In an order that does not depend on the map's.
    weights.sort_unstable_by(f64::total_cmp);
    log_sum_exp(&weights)
}

impl Estimator {
    fn choose(self, by_evidences: Estimate, by_visits: Estimate) -> Estimate {
        match self {
            Self::Evidences => by_evidences,
            Self::Visits => by_visits,
        }
    }
}

/// All words of a model together.
struct Member {
    /// The canonical word.
    key: Key,
    /// Its share of the total.
    weight: f64,
    /// Iterations spent there.
    visits: f64,
    evidence: Estimate,
}

/// All models that are known, the heaviest first.
struct Members {
    models: Vec<Member>,
    log_total: Estimate,
}

impl Members {
    /// Joins words of one model and weighs models; none where all are impossible.
    fn gather(target: &Target<'_>, packing: &Packing, entries: HashMap<Key, Entry>) -> Option<Self> {
        let most = entries.values().map(Entry::log_weight).fold(f64::NEG_INFINITY, f64::max);
        if most == f64::NEG_INFINITY {
            return None;
        }
        // In an order that does not depend on the map's.
        let mut entries: Vec<(Key, Entry)> = entries.into_iter().collect();
        entries.sort_unstable_by(|a, b| b.1.log_weight().total_cmp(&a.1.log_weight()).then_with(|| a.0.cmp(&b.0)));
        let mut word = vec![0; target.space.arities().len()];
        let mut places: HashMap<Key, usize> = HashMap::new();
        let mut models: Vec<Member> = Vec::new();
        for (mut key, entry) in entries {
            packing.unpack(&key, &mut word);
            target.space.canonical(&mut word);
            packing.pack(&word, &mut key);
            let (weight, visits) = ((entry.log_weight() - most).exp(), entry.visits as f64);
            let next = models.len();
            let place = *places.entry(key.clone()).or_insert(next);
            if place == next {
                models.push(Member { key, weight, visits, evidence: entry.evidence });
            } else {
                models[place].weight += weight;
                models[place].visits += visits;
            }
        }
        models.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        let total: f64 = models.iter().rev().map(|model| model.weight).sum();
        models.iter_mut().for_each(|model| model.weight /= total);
        let noise = models.iter().map(|model| (model.weight * model.evidence.se).powi(2)).sum::<f64>().sqrt();
        Some(Self { models, log_total: Estimate { value: most + total.ln(), se: noise } })
    }
}

/// Probabilities of features by evidences, and what errors of evidences do to them.
struct Shares {
    values: Vec<f64>,
    noise: Vec<f64>,
}

impl Shares {
    fn new(target: &Target<'_>, models: &[Member], packing: &Packing) -> Self {
        /// Models that together hold less than this do not matter.
        const NEGLIGIBLE: f64 = 1e-12;
        let features = target.space.feature_count();
        let mut word = vec![0; target.space.arities().len()];
        let (mut room, mut own) = (Vec::new(), Vec::new());
        let mut values = vec![0.0; features];
        // Σ w² se² over all models, and over those with each feature.
        let (mut all, mut with) = (0.0, vec![0.0; features]);
        let mut left = 1.0;
        for model in models.iter().take_while(|model| {
            left -= model.weight;
            left + model.weight >= NEGLIGIBLE
        }) {
            packing.unpack(&model.key, &mut word);
            mark_features(target.space, &word, &mut room, &mut own);
            let squared = (model.weight * model.evidence.se).powi(2);
            all += squared;
            for &feature in &own {
                values[feature as usize] += model.weight;
                with[feature as usize] += squared;
            }
        }
        // Models with the feature move its probability by w (1 − p) ε, the others by −w p ε.
        let noise = |(p, with): (&f64, &f64)| {
            let variance: f64 = (1.0 - p).powi(2) * with + p * p * (all - with).max(0.0);
            variance.sqrt()
        };
        Self { noise: values.iter().zip(&with).map(noise).collect(), values }
    }
}

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

use serde::{Deserialize, Serialize};

use super::settings::Ended;
use super::trace::FeatureTrace;
use crate::problem::selection::WeighedModels;
use crate::stats::{Diagnosis, Estimate, effective_sample_size, share_error, standard_error};

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
    /// Models, those with the highest posterior density first, as many as settings allow.
    pub models: Vec<FoundModel>,
    /// Which estimate is the better.
    pub estimator: Estimator,
    /// The largest R̂ and the smallest effective sample size of any feature.
    pub diagnosis: Diagnosis,
    /// `log Σ p(m) p(y | m)` over all known models.
    pub log_total: Estimate,
    /// `log Σ p(m) p(y | m)` over all models: by the same estimate; not a number where chains hardly met a model again.
    pub log_evidence: Estimate,
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
    /// Models with their shares of the posterior, by the search's [`Estimator`], for whoever goes on with some of them.
    pub fn weighed(&self) -> WeighedModels {
        let width = self.models.first().map_or(0, |model| model.word.len());
        match self.estimator {
            Estimator::Visits => WeighedModels::of_chains(width, &self.draws),
            Estimator::Evidences => {
                let words = self.models.iter().flat_map(|model| model.word.iter().copied()).collect();
                let shares: Vec<f64> = self.models.iter().map(|model| model.by_evidences).collect();
                WeighedModels::new(width, words, &shares)
            }
        }
    }

    /// The probability of the models that some distribution q gives less than `below`, given `log q(m)` of all
    /// [`models`](Self::models) and of all [`draws`](Self::draws), chain by chain: what q lacks, were `below` 0. Words are models
    /// here: where several mean one, q of the model is wanted.
    pub fn missing(&self, log_q_models: &[f64], log_q_draws: &[Vec<f64>], below: f64) -> Estimate {
        let lacks = |log_q: f64| log_q.is_nan() || log_q < below.ln();
        if self.estimator == Estimator::Evidences {
            return self.missing_by_evidences(&log_q_models.iter().map(|&log_q| lacks(log_q)).collect::<Vec<_>>());
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

    /// The probability of the models for which `lacks` holds, by evidences.
    fn missing_by_evidences(&self, lacks: &[bool]) -> Estimate {
        let models = || self.models.iter().zip(lacks);
        let value: f64 = models().filter(|(_, lacks)| **lacks).map(|(model, _)| model.by_evidences).sum();
        let noise = |(model, &lacks): (&FoundModel, &bool)| {
            (model.by_evidences * (f64::from(u8::from(lacks)) - value) * model.log_evidence.se).powi(2)
        };
        let listed: f64 = self.models.iter().map(|model| model.by_evidences).sum();
        // Models that are not listed may all be such, or none.
        let rest = (1.0 - listed).max(0.0) + self.unmet;
        Estimate { value, se: (models().map(noise).sum::<f64>() + rest * rest).sqrt() }
    }
}

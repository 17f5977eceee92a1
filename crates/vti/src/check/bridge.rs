//! Evidences by whatever is surest: weights of q, what particles counted, or draws of both together.
//!
//! Weights of q are best where q is all but the posterior, and say little of a model that q has roughly. Particles are right on average
//! whatever q is, but all of their evidences share the error of `log p(y)`, which is that of the whole way from the prior. Bridge
//! sampling ([`stats::Bridge`]) goes no such way: it compares both densities where draws of q and of the posterior meet, which asks for
//! less than even weights, and needs from particles only how the posterior is distributed. So do probabilities of models, which times
//! `p(y)` are evidences again.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::correction::{Correction, ModelCorrection};
use super::opinion::Opinion;
use super::strata;
use crate::evidence::{Evidence, EvidenceMethod};
use crate::posterior::Draws;
use crate::problem::Problem;
use crate::space::Model;
use crate::stats::{self, Bridge, Estimate};

/// An evidence by probabilities is known where these are so many times their errors.
const MIN_SIGMAS: f64 = 2.0;

/// Draws of q in strata.
pub(super) struct FromStrata<'a> {
    pub(super) draws: &'a Draws,
    /// What each draw counts under q.
    pub(super) weights: &'a [f64],
    /// Where each stratum ends.
    pub(super) ends: &'a [usize],
    /// The word of each stratum; none of that of all others.
    pub(super) words: &'a [(Option<Model>, f64)],
}

/// Draws of particles, of which q has learned nothing.
pub(super) struct FromParticles<'a> {
    pub(super) draws: &'a Draws,
    pub(super) log_weights: &'a [f64],
    /// The draws of each run.
    pub(super) runs: Vec<Range<usize>>,
}

/// Gives `log p(y)` and all models of both corrections their surest evidences.
pub(super) fn settle(problem: &dyn Problem, q: &FromStrata<'_>, correction: &mut Correction, opinion: &mut Opinion) {
    let both = opinion.unlearned().filter(|_| q.is_plain()).map(|particles| Both { q, particles });
    let log_evidence_with_q = both.as_ref().and_then(Both::log_evidence);
    let strata: HashMap<&[u16], usize> =
        q.words.iter().zip(0..).filter_map(|((word, _), stratum)| Some((&**word.as_ref()?, stratum))).collect();
    let bridged = |model: &Model| {
        let (both, &stratum) = (both.as_ref()?, strata.get(&**model)?);
        both.evidence(stratum, model, problem.log_prior(model))
    };
    let found: Vec<Option<Evidence>> = opinion.correction.models.iter().map(|found| bridged(&found.model)).collect();
    // p(m) is that of a word.
    let is_plain = has_one_word_each(problem, &opinion.draws);
    let through_models = if is_plain { through_models(problem, opinion, &found) } else { None };
    let known = [log_evidence_with_q, through_models].into_iter().flatten();
    opinion.log_evidence_with_q = known.min_by(|a, b| a.se.total_cmp(&b.se));
    let total = opinion.surest_log_evidence();
    let method = if total == opinion.log_evidence { EvidenceMethod::Annealed } else { EvidenceMethod::Bridge };
    let calls = opinion.draws.len();
    let places: HashMap<Model, usize> = correction.models.iter().map(|own| own.model.clone()).zip(0..).collect();
    for (model, bridged) in opinion.correction.models.iter_mut().zip(found) {
        let counted = Some(&*model).filter(|_| is_plain).and_then(|model| counted(problem, model, total));
        let counted = counted.map(|log| Evidence { log_evidence: log.value, se: log.se, method, calls });
        let own = places.get(&model.model).map(|&place| &mut correction.models[place]);
        let weighed = own.as_ref().and_then(|own| own.evidence.filter(|_| is_even(own)));
        let known = [weighed, bridged, counted].into_iter().flatten();
        let surest = known.min_by(|a, b| a.se.total_cmp(&b.se));
        model.evidence = surest;
        if let Some(own) = own {
            own.evidence = surest.or(own.evidence);
        }
    }
}

/// `log p(y)` from the evidences of some models, which together have the probability that particles counted: q(m) does not matter.
fn through_models(problem: &dyn Problem, opinion: &Opinion, found: &[Option<Evidence>]) -> Option<Estimate> {
    let (mut logs, mut errors, mut share, mut known) = (Vec::new(), Vec::new(), 0.0, HashSet::new());
    for (model, evidence) in opinion.correction.models.iter().zip(found) {
        if let Some(evidence) = evidence {
            logs.push(evidence.log_evidence + problem.log_prior(&model.model));
            errors.push(evidence.se);
            share += model.corrected.value;
            known.insert(&*model.model);
        }
    }
    let total = stats::log_sum_exp(&logs);
    let squares = logs.iter().zip(errors).map(|(log, se)| ((log - total).exp() * se).powi(2));
    let drawn = opinion.mean(|row| f64::from(u8::from(known.contains(opinion.draws.word(row)))));
    let se = f64::hypot(squares.sum::<f64>().sqrt(), drawn.se / share);
    let found = Estimate { value: total - share.ln(), se };
    Some(found).filter(|found| found.value.is_finite() && found.se.is_finite())
}

/// Whether weights of a model can be used.
fn is_even(model: &ModelCorrection) -> bool {
    model.khat.is_some_and(|khat| khat < stats::threshold(model.draws))
}

/// `log p(y ∣ m) = log p(m ∣ y) + log p(y) − log p(m)`.
fn counted(problem: &dyn Problem, model: &ModelCorrection, total: Estimate) -> Option<Estimate> {
    let Estimate { value, se } = model.corrected;
    let log = Estimate {
        value: value.ln() + total.value - problem.log_prior(&model.model),
        se: f64::hypot(se / value, total.se),
    };
    Some(log).filter(|log| value > MIN_SIGMAS * se && log.value.is_finite() && log.se.is_finite())
}

/// Whether no two words mean the same model, as far as draws say.
fn has_one_word_each(problem: &dyn Problem, draws: &Draws) -> bool {
    let mut word = Vec::new();
    (0..draws.len()).all(|row| {
        word.clear();
        word.extend_from_slice(draws.word(row));
        problem.space().canonical(&mut word);
        word == draws.word(row)
    })
}

impl FromStrata<'_> {
    /// Whether weights are ratios of the densities that particles have.
    fn is_plain(&self) -> bool {
        self.draws.log_arrangement.iter().all(|log| *log == 0.0)
    }
}

/// Draws of q and of particles.
struct Both<'a> {
    q: &'a FromStrata<'a>,
    particles: FromParticles<'a>,
}

impl Both<'_> {
    /// `log p(y)`.
    fn log_evidence(&self) -> Option<Estimate> {
        let all = (0..self.q.ends.len()).map(|stratum| self.stratum(stratum, 0.0, |_| 0.0));
        self.bridge(all.collect(), |row| Some(self.particles.draws.log_ratio(row)))
    }

    /// Of the one model of a stratum.
    fn evidence(&self, stratum: usize, model: &Model, log_prior: f64) -> Option<Evidence> {
        let (own, draws) = (self.q.draws, self.particles.draws);
        let of_q = self.stratum(stratum, -log_prior, |row| own.log_q_model[row]);
        let of_particles = |row: usize| {
            (draws.word(row) == &**model).then(|| draws.log_ratio(row) + draws.log_q_model[row] - log_prior)
        };
        let calls = of_q.1.len() + (0..draws.len()).filter(|&row| draws.word(row) == &**model).count();
        let Estimate { value, se } = self.bridge(vec![of_q], of_particles)?;
        Some(Evidence { log_evidence: value, se, method: EvidenceMethod::Bridge, calls })
    }

    /// The share of a stratum, and the log ratios of its draws, to which something is added.
    fn stratum(&self, stratum: usize, constant: f64, more: impl Fn(usize) -> f64) -> (f64, Vec<f64>) {
        let rows = strata::rows(self.q.ends, stratum);
        let log_ratio = |row: usize| {
            let log_ratio = self.q.draws.log_ratio(row) + constant + more(row);
            // What is undefined is impossible.
            if log_ratio.is_nan() { f64::NEG_INFINITY } else { log_ratio }
        };
        (self.q.weights[rows.clone()].iter().sum(), rows.map(log_ratio).collect())
    }

    fn bridge(&self, of_q: Vec<(f64, Vec<f64>)>, of_particles: impl Fn(usize) -> Option<f64>) -> Option<Estimate> {
        let FromParticles { log_weights, runs, .. } = &self.particles;
        let particle = |row: usize| {
            let log_ratio = of_particles(row)?;
            // Where q has no density.
            Some((log_weights[row].exp(), if log_ratio.is_nan() { f64::INFINITY } else { log_ratio }))
        };
        let of_target = runs.iter().map(|rows| rows.clone().filter_map(particle).collect()).collect();
        Bridge { of_q, of_target }.log_total()
    }
}

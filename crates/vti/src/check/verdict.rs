//! A verdict in words.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::blocks::MIN_BLOCK_DRAWS;
use super::correction::{Correction, ModelCorrection};
use super::opinion::Opinion;
use crate::space::Model;
use crate::stats::{self, Estimate};

/// What to do with the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// q is good: use it, or its correction, which hardly differs.
    Trust,
    /// q is off, but its correction can be relied on.
    Corrected,
    /// Neither can be relied on.
    #[default]
    DoNotTrust,
}

/// What to do with the answer, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What to do.
    pub kind: VerdictKind,
    /// Why, in words.
    pub text: String,
}

/// Model probabilities that differ by no more than this are the same for all practical purposes.
pub(super) const NEGLIGIBLE_DISTANCE: f64 = 0.02;

/// Log evidences that differ by no more than this are the same for all practical purposes.
const NEGLIGIBLE_LOG: f64 = 0.05;

/// What weights say.
pub(super) struct Weighed<'a> {
    pub(super) khat: Option<f64>,
    pub(super) threshold: f64,
    pub(super) log_evidence: Estimate,
    pub(super) correction: &'a Correction,
    /// The largest difference between the probability of a part (of a term, of an edge) under q and the corrected one, and the error
    /// of the latter.
    pub(super) parts: Estimate,
}

/// The smallest probability of a model whose own weights have to be even.
const MIN_PROBABILITY: f64 = 0.05;

impl Weighed<'_> {
    /// A model that matters and whose own weights cannot be relied on.
    pub(super) fn uneven(&self) -> Option<&ModelCorrection> {
        let is_uneven = |model: &&ModelCorrection| {
            model.corrected.value >= MIN_PROBABILITY
                && model.khat.is_none_or(|khat| khat >= stats::threshold(model.draws.max(MIN_BLOCK_DRAWS)))
        };
        self.correction.models.iter().find(is_uneven)
    }

    /// Whether weights can be used: all of them together, and those of every model that matters.
    pub(super) fn is_even(&self) -> bool {
        self.khat.is_some_and(|khat| khat < self.threshold) && self.uneven().is_none()
    }

    /// In words.
    fn shown(&self) -> String {
        let of_all = shown(self.khat, self.threshold);
        match self.uneven() {
            Some(model) if self.khat.is_some_and(|khat| khat < self.threshold) => {
                let own = shown(model.khat, stats::threshold(model.draws.max(MIN_BLOCK_DRAWS)));
                format!(
                    "{of_all}, but of the model {} alone, of probability {:.2}, {own}",
                    model.label, model.corrected.value
                )
            }
            _ => of_all,
        }
    }
}

/// How evidences of blocks were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockMethod {
    /// By the weights of what q draws.
    Weights,
    /// From the prior.
    Annealed,
    /// In closed form.
    Exact,
}

/// What is known about the evidences of blocks.
pub(super) struct Basis {
    /// How far edges moved when every evidence moved by as much as it may be off.
    pub(super) moved: f64,
    /// How evidences were found.
    pub(super) method: BlockMethod,
    /// How many more keys may matter.
    pub(super) left_out: usize,
    /// How far the edges of q are from the corrected ones.
    pub(super) apart: f64,
    /// What is known about keys that training has never tried; none where it has tried all.
    pub(super) beyond: Option<Beyond>,
}

/// Keys that training has never tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beyond {
    /// The largest share of a block that they have together, in the corrected answer.
    pub(super) held: f64,
    /// Whether a further search would hardly find more.
    pub(super) is_settled: bool,
}

impl Beyond {
    fn says(self) -> String {
        let held = self.held;
        format!(
            "; sets of parents that training never tried have {held:.3} of a node at most, as far as those next to sets that matter say"
        )
    }
}

impl Verdict {
    /// By weights: k̂ against its threshold, then the distance between q and its correction.
    pub(super) fn of_weights(weighed: &Weighed<'_>) -> Self {
        let shown = weighed.shown();
        if !weighed.is_even() {
            let text = format!(
                "do not trust: {shown}, so importance weights cannot correct q; train longer, \
                 use a richer flow, or refine with chains"
            );
            return Self { kind: VerdictKind::DoNotTrust, text };
        }
        Self::of_distance(&shown, weighed.correction, weighed.parts)
    }

    /// By the evidences of blocks: what counts is how far edges move when these move by as much as they may be off.
    pub(super) fn of_blocks(khat: Option<f64>, threshold: f64, basis: &Basis, correction: &Correction) -> Self {
        let &Basis { moved, method, left_out, apart, beyond } = basis;
        let is_even = khat.is_some_and(|khat| khat < threshold);
        let shown = shown(khat, threshold);
        let moves = "moving the evidence of every node by as much as it may be off moves edge probabilities by";
        let missing = if left_out > 0 {
            format!(
                "; {left_out} more sets of parents may matter, give the check more effort, or raise check.anneal.work"
            )
        } else {
            String::new()
        };
        // What is not a number is not small.
        let is_moved = moved.is_nan() || moved > 2.0 * NEGLIGIBLE_DISTANCE;
        if is_moved || method != BlockMethod::Exact && left_out > 0 {
            let more = match method {
                BlockMethod::Weights => "train longer or use a richer flow",
                _ => "raise runs, particles or sharpen of check.anneal",
            };
            let text = format!(
                "do not trust uncertain edges: {moves} up to {moved:.2}, as their standard errors say; edges with small ones, \
                 and those alone, can be relied on ({shown}){missing}; {more}"
            );
            return Self { kind: VerdictKind::DoNotTrust, text };
        }
        if let Some(Beyond { held, is_settled: false }) = beyond {
            let text = format!(
                "do not trust: sets of parents that training never tried have {held:.2} of a node or more, and the further one looks the \
                 more there are; raise models.beam or models.most_sets, or limit the number of parents ({shown})"
            );
            return Self { kind: VerdictKind::DoNotTrust, text };
        }
        let found = match method {
            BlockMethod::Weights if is_even => {
                let parts = Estimate { value: apart, se: moved };
                return Self::of_distance(&shown, correction, parts).without_opinion();
            }
            BlockMethod::Weights => {
                let text = format!(
                    "do not trust: {shown}; {moves} {moved:.3} at most, but evidences are those of what q draws, so what q has lost \
                     would go unseen"
                );
                return Self { kind: VerdictKind::DoNotTrust, text };
            }
            BlockMethod::Annealed => {
                format!("evidences of nodes were found from the prior, and {moves} {moved:.3} at most")
            }
            BlockMethod::Exact => "evidences of nodes are exact".into(),
        };
        let lacks = beyond.map_or(String::new(), Beyond::says);
        let held = beyond.map_or(0.0, |beyond| beyond.held);
        if is_even && held <= NEGLIGIBLE_DISTANCE && apart <= NEGLIGIBLE_DISTANCE + 2.0 * moved {
            let text = format!("trust: {found}; edges of q differ by {apart:.3} at most ({shown}){lacks}");
            return Self { kind: VerdictKind::Trust, text };
        }
        let parameters = if is_even { "" } else { ", but do not rely on parameters, which are those of q" };
        let text = format!(
            "corrected: {found}; edges of q differ by up to {apart:.3}: use the corrected edges and graphs{parameters} ({shown}){lacks}"
        );
        Self { kind: VerdictKind::Corrected, text }
    }

    /// By weights and by an opinion that knows nothing of q; and whether the opinion is the answer. Weights are the answer where both
    /// agree, because their errors are smaller.
    pub(super) fn of_opinion(weighed: &Weighed<'_>, opinion: &Opinion, warnings: &[String]) -> (Self, bool) {
        let says = "particles that know nothing of q";
        let (apart, error) = (opinion.distance(), opinion.largest_error());
        let (is_even, shown) = (weighed.is_even(), weighed.shown());
        if is_even && opinion.is_covered() && warnings.is_empty() {
            let found = format!("{says} were found only where q has density too");
            return (Self::of_distance(&format!("{shown}, {found}"), weighed.correction, weighed.parts), false);
        }
        let more = weighed.log_evidence.value - opinion.log_evidence.value;
        let errors = f64::hypot(weighed.log_evidence.se, opinion.log_evidence.se);
        let more_of_one = found_more(weighed, opinion);
        let has_missed = is_even && more > NEGLIGIBLE_LOG + 4.0 * errors || more_of_one.is_some();
        if !opinion.is_reliable() || has_missed {
            let first = match warnings.first() {
                _ if !opinion.is_covered() => format!("{says} find something that q lacks, but"),
                Some(warning) if is_even => format!("{warning}, and {says}"),
                _ => format!("{shown}, and {says}"),
            };
            let why = if let Some((label, more)) = more_of_one {
                format!("find less of {label} than weights of q do, by {more:.2} in the logarithm of its evidence")
            } else if has_missed {
                format!("find an evidence that is smaller by {more:.2} (in logarithms) than weights of q do")
            } else if opinion.is_precise() {
                "were not found again by a larger population".into()
            } else {
                format!(
                    "do not agree among themselves (probabilities are off by ± {error:.3}, the log evidence by ± {:.2}, or more)",
                    opinion.log_evidence.se
                )
            };
            let text = format!(
                "do not trust: {first} {why}; raise check.opinion.repeats, or particles and sweeps of check.opinion.smc"
            );
            return (Self { kind: VerdictKind::DoNotTrust, text }, !has_missed);
        }
        let Estimate { value, se } = opinion.missing;
        let lacks = if value > NEGLIGIBLE_DISTANCE {
            format!(": models that q hardly has hold {value:.2} ± {se:.2}")
        } else {
            String::new()
        };
        let why = warnings.first().map_or(String::new(), |warning| format!(" ({warning})"));
        let text = format!(
            "corrected: {says} find probabilities that differ from those of q by up to {apart:.3}{lacks}{why}; the corrected answer \
             is theirs (± {error:.3} at most)"
        );
        (Self { kind: VerdictKind::Corrected, text }, true)
    }

    /// With a word about chains that are not the answer, because they start from q.
    pub(crate) fn with_chains(&self, off: f64) -> Self {
        let text = format!("{}; chains that start from q find probabilities that differ by up to {off:.3}", self.text);
        Self { kind: self.kind, text }
    }

    /// What only q says is not to be trusted.
    pub(crate) fn without_opinion(self) -> Self {
        if self.kind == VerdictKind::DoNotTrust {
            return self;
        }
        let text = format!(
            "do not trust: nothing beyond what q itself draws was looked at, or not to the end, so what q has lost would go unseen \
             (a full check looks there); as far as that goes: {}",
            self.text
        );
        Self { kind: VerdictKind::DoNotTrust, text }
    }

    /// Numbers that are none cannot be relied on, whatever else was found.
    pub(super) fn unless_undefined(self, log_evidence: Estimate, correction: &Correction) -> Self {
        let is_undefined = |estimate: &Estimate| estimate.value.is_nan() || estimate.se.is_nan();
        let what = if is_undefined(&log_evidence) {
            "the log evidence or its error is not a number"
        } else if correction.models.iter().any(|model| is_undefined(&model.corrected)) {
            "some corrected probabilities or their errors are not numbers"
        } else if correction.total_variation.is_nan() {
            "the distance between q and its correction is not a number"
        } else {
            return self;
        };
        match self.kind {
            VerdictKind::DoNotTrust => self,
            _ => Self { kind: VerdictKind::DoNotTrust, text: format!("do not trust: {what}") },
        }
    }

    /// A q of which so much lies where the density is undefined, or 0, is no posterior, however well weights correct it.
    pub(super) fn with_impossible(self, share: f64) -> Self {
        if share <= NEGLIGIBLE_DISTANCE {
            return self;
        }
        let lies = format!("{:.0} % of q lies where the density is 0 or undefined", 100.0 * share);
        match self.kind {
            VerdictKind::Trust => {
                let rest = self.text.strip_prefix("trust: ").unwrap_or(&self.text);
                let text = format!("corrected: {lies}: use corrected numbers and draws with their weights; {rest}");
                Self { kind: VerdictKind::Corrected, text }
            }
            kind => Self { kind, text: format!("{}; {lies}", self.text) },
        }
    }

    /// Whatever was found, a run that was not happy with itself is not to be trusted.
    pub(super) fn unless(self, warnings: &[String]) -> Self {
        match warnings.first() {
            None => self,
            Some(warning) => Self { kind: VerdictKind::DoNotTrust, text: format!("do not trust: {warning}") },
        }
    }

    /// By chains: R̂ and the effective sample size, then the distance.
    pub(super) fn of_chains(rhat: f64, ess: f64, (most, least): (f64, f64), correction: &Correction) -> Self {
        let shown = format!("R̂ = {rhat:.3}, effective sample size {ess:.0}");
        if !(rhat <= most && ess >= least) {
            let text = format!(
                "do not trust: {shown}; R̂ should be at most {most} and the effective sample size at least {least}; run \
                 the chains longer or train a better proposal"
            );
            return Self { kind: VerdictKind::DoNotTrust, text };
        }
        // What chains have counted of parts is that of their models.
        Self::of_distance(&shown, correction, Estimate { value: 0.0, se: 0.0 })
    }

    /// By how far q is from its correction: in probabilities of models, and of their parts, which say more where there are many models.
    fn of_distance(shown: &str, correction: &Correction, parts: Estimate) -> Self {
        let distance = correction.total_variation;
        // Standard errors alone make some distance; large ones excuse nothing.
        let is_near = |distance: f64, se: f64| distance <= NEGLIGIBLE_DISTANCE + (2.0 * se).min(NEGLIGIBLE_DISTANCE);
        if is_near(distance, correction.total_variation_se) && is_near(parts.value, parts.se) {
            let text = format!("trust: {shown}, and correcting q moves the model probabilities by {distance:.3} only");
            Self { kind: VerdictKind::Trust, text }
        } else {
            let of_parts = if parts.value > distance {
                format!(", and that of one of their parts by {:.3}", parts.value)
            } else {
                String::new()
            };
            let text = format!(
                "corrected: {shown}, but correcting q moves the model probabilities by {distance:.3}{of_parts}; use the corrected ones"
            );
            Self { kind: VerdictKind::Corrected, text }
        }
    }
}

/// The model of which weights of q find more than particles do, beyond doubt and so that it matters, and how much, as a logarithm.
/// Weights are right on average and, where they are uneven, mostly too small: what they find is there, and particles have lost it.
fn found_more(weighed: &Weighed<'_>, opinion: &Opinion) -> Option<(String, f64)> {
    let found: HashMap<&Model, Estimate> =
        opinion.correction.models.iter().map(|model| (&model.model, model.corrected)).collect();
    let more = weighed.correction.models.iter().filter_map(|model| {
        let (own, by_particles) = (model.evidence?, found.get(&model.model)?);
        let log_joint = |log_evidence: &Estimate, share: f64| log_evidence.value + share.ln();
        let more = log_joint(&weighed.log_evidence, model.corrected.value)
            - log_joint(&opinion.log_evidence, by_particles.value);
        let error =
            [own.se, opinion.log_evidence.se, by_particles.se / by_particles.value].into_iter().fold(0.0, f64::hypot);
        let moves = by_particles.value * (1.0 - by_particles.value) * more.exp_m1();
        (more > NEGLIGIBLE_LOG + 4.0 * error && moves > NEGLIGIBLE_DISTANCE).then(|| (model.label.clone(), more))
    });
    more.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// k̂ against its threshold, in words.
fn shown(khat: Option<f64>, threshold: f64) -> String {
    match khat {
        Some(f64::NEG_INFINITY) => "weights are all but equal".into(),
        Some(khat) if khat < threshold => format!("k̂ = {khat:.2} is below {threshold:.2}"),
        Some(khat) => format!("k̂ = {khat:.2}, not below {threshold:.2}"),
        None => "k̂ is unknown".into(),
    }
}

#[cfg(test)]
mod tests;

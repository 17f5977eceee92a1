//! A verdict in words.

use serde::{Deserialize, Serialize};

use super::Correction;
use super::opinion::Opinion;
use crate::stats::Estimate;

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
const NEGLIGIBLE_DISTANCE: f64 = 0.02;

/// Log evidences that differ by no more than this are the same for all practical purposes.
const NEGLIGIBLE_LOG: f64 = 0.05;

/// What weights say, beside an opinion that knows nothing of q.
pub(super) struct Weighed<'a> {
    pub(super) khat: Option<f64>,
    pub(super) threshold: f64,
    pub(super) log_evidence: Estimate,
    pub(super) correction: &'a Correction,
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
}

impl Verdict {
    /// By weights: k̂ against its threshold, then the distance between q and its correction.
    pub(super) fn of_weights(khat: Option<f64>, threshold: f64, correction: &Correction) -> Self {
        let shown = shown(khat, threshold);
        if khat.is_none_or(|khat| khat >= threshold) {
            let text = format!(
                "do not trust: {shown}, so importance weights cannot correct q; train longer, \
                 use a richer flow, or refine with chains"
            );
            return Self { kind: VerdictKind::DoNotTrust, text };
        }
        Self::of_distance(&shown, correction)
    }

    /// By the evidences of blocks: what counts is how far edges move when these move by as much as they may be off.
    pub(super) fn of_blocks(khat: Option<f64>, threshold: f64, basis: &Basis, correction: &Correction) -> Self {
        let &Basis { moved, method, left_out, apart } = basis;
        let is_even = khat.is_some_and(|khat| khat < threshold);
        let shown = shown(khat, threshold);
        let moves = "moving the evidence of every node by as much as it may be off moves edge probabilities by";
        let missing = if left_out > 0 {
            format!("; {left_out} more sets of parents may matter, raise check.anneal.most")
        } else {
            String::new()
        };
        if moved > 2.0 * NEGLIGIBLE_DISTANCE || method != BlockMethod::Exact && left_out > 0 {
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
        let found = match method {
            BlockMethod::Weights if is_even => return Self::of_distance(&shown, correction).without_opinion(),
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
        if is_even && apart <= NEGLIGIBLE_DISTANCE + 2.0 * moved {
            let text = format!("trust: {found}; edges of q differ by {apart:.3} at most ({shown})");
            return Self { kind: VerdictKind::Trust, text };
        }
        let parameters = if is_even { "" } else { ", but do not rely on parameters, which are those of q" };
        let text = format!(
            "corrected: {found}; edges of q differ by up to {apart:.3}: use the corrected edges and graphs{parameters} ({shown})"
        );
        Self { kind: VerdictKind::Corrected, text }
    }

    /// By weights and by an opinion that knows nothing of q; and whether the opinion is the answer. Weights are the answer where both
    /// agree, because their errors are smaller.
    pub(super) fn of_opinion(weighed: &Weighed<'_>, opinion: &Opinion, warnings: &[String]) -> (Self, bool) {
        let says = "particles that know nothing of q";
        let (apart, error) = (opinion.distance(), opinion.largest_error());
        let is_even = weighed.khat.is_some_and(|khat| khat < weighed.threshold);
        let shown = shown(weighed.khat, weighed.threshold);
        if is_even && opinion.is_covered() && warnings.is_empty() {
            let found = format!("{says} were found only where q has density too");
            return (Self::of_distance(&format!("{shown}, {found}"), weighed.correction), false);
        }
        let more = weighed.log_evidence.value - opinion.log_evidence.value;
        let errors = f64::hypot(weighed.log_evidence.se, opinion.log_evidence.se);
        let has_missed = is_even && more > NEGLIGIBLE_LOG + 4.0 * errors;
        if !opinion.is_reliable() || has_missed {
            let why = match has_missed {
                true => format!("find an evidence that is smaller by {more:.2} (in logarithms) than weights of q do"),
                false => format!(
                    "do not agree among themselves (probabilities are off by ± {error:.3}, the log evidence by ± {:.2}, or more)",
                    opinion.log_evidence.se
                ),
            };
            let text = format!(
                "do not trust: {says} find something that q lacks, but {why}; raise check.opinion.repeats, or particles and sweeps of \
                 check.opinion.smc"
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
            "do not trust: nothing beyond what q itself draws was looked at to the end, so what q has lost would go unseen; as far as \
             that goes: {}",
            self.text
        );
        Self { kind: VerdictKind::DoNotTrust, text }
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
        Self::of_distance(&shown, correction)
    }

    fn of_distance(shown: &str, correction: &Correction) -> Self {
        let distance = correction.total_variation;
        // Standard errors alone make some distance; large ones excuse nothing.
        if distance <= NEGLIGIBLE_DISTANCE + (2.0 * correction.total_variation_se).min(NEGLIGIBLE_DISTANCE) {
            let text = format!("trust: {shown}, and correcting q moves the model probabilities by {distance:.3} only");
            Self { kind: VerdictKind::Trust, text }
        } else {
            let text = format!(
                "corrected: {shown}, but correcting q moves the model probabilities by {distance:.3}; use the corrected ones"
            );
            Self { kind: VerdictKind::Corrected, text }
        }
    }
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
mod tests {
    use super::*;

    /// What is said of blocks where model probabilities hardly moved.
    fn said(khat: f64, basis: &Basis) -> Verdict {
        let correction = Correction { models: Vec::new(), total_variation: 0.0, total_variation_se: 0.0 };
        Verdict::of_blocks(Some(khat), 0.7, basis, &correction)
    }

    #[test]
    fn blocks_are_judged_by_how_far_edges_move() {
        use BlockMethod::{Annealed, Exact, Weights};
        let basis = |moved, method, left_out, apart| Basis { moved, method, left_out, apart };
        // What is said, and one word that is not.
        let cases: [(f64, Basis, VerdictKind, [&str; 2], &str); 9] = [
            // Good weights of what q draws say nothing about what it has lost.
            (0.3, basis(0.01, Weights, 0, 0.0), VerdictKind::DoNotTrust, ["q itself draws", "0.30"], "from the prior"),
            (
                1.2,
                basis(0.01, Weights, 0, 0.0),
                VerdictKind::DoNotTrust,
                ["go unseen", "0.010 at most"],
                "from the prior",
            ),
            (1.2, basis(0.2, Weights, 0, 0.1), VerdictKind::DoNotTrust, ["up to 0.20", "train longer"], "anneal"),
            (
                0.3,
                basis(0.01, Annealed, 0, 0.01),
                VerdictKind::Trust,
                ["from the prior", "0.010 at most"],
                "parameters",
            ),
            (1.2, basis(0.01, Annealed, 0, 0.01), VerdictKind::Corrected, ["from the prior", "parameters"], "raise"),
            (
                0.3,
                basis(0.01, Annealed, 0, 0.2),
                VerdictKind::Corrected,
                ["up to 0.200", "corrected edges"],
                "parameters",
            ),
            (0.3, basis(0.01, Annealed, 9, 0.0), VerdictKind::DoNotTrust, ["9 more sets", "anneal.most"], "train"),
            (1.2, basis(0.2, Annealed, 0, 0.0), VerdictKind::DoNotTrust, ["up to 0.20", "raise runs"], "anneal.most"),
            (0.3, basis(0.0, Exact, 0, 0.0), VerdictKind::Trust, ["exact", "0.000"], "prior"),
        ];
        for (khat, basis, kind, has, lacks) in cases {
            let Verdict { kind: found, text } = said(khat, &basis);
            assert_eq!(found, kind, "{text}");
            assert!(has.iter().all(|part| text.contains(part)), "{has:?} in: {text}");
            assert!(!text.contains(lacks), "no {lacks:?} in: {text}");
        }
    }
}

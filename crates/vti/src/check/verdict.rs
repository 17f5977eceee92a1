//! A verdict in words.

use serde::{Deserialize, Serialize};

use super::Correction;

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

/// What is known about the evidences of blocks.
pub(super) struct Basis {
    /// How far edges moved when every evidence moved by as much as it may be off.
    pub(super) moved: f64,
    /// Whether evidences were annealed.
    pub(super) annealed: bool,
    /// How many more keys may matter.
    pub(super) left_out: usize,
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

    /// By the weights of blocks. Where they are too uneven, what counts is how far edges moved.
    pub(super) fn of_blocks(khat: Option<f64>, threshold: f64, basis: &Basis, correction: &Correction) -> Self {
        let &Basis { moved, annealed, left_out } = basis;
        let is_even = khat.is_some_and(|khat| khat < threshold);
        if is_even && moved <= 2.0 * NEGLIGIBLE_DISTANCE && !annealed {
            return Self::of_weights(khat, threshold, correction);
        }
        let shown = shown(khat, threshold);
        let missing = if left_out > 0 {
            format!("; {left_out} more sets of parents may matter, raise check.anneal.most")
        } else {
            String::new()
        };
        let moves = "moving the evidence of every node by as much as it may be off moves edge probabilities by";
        if moved > 2.0 * NEGLIGIBLE_DISTANCE {
            let more = if annealed {
                "raise runs, particles or sharpen of check.anneal"
            } else {
                "train longer or use a richer flow"
            };
            let text = format!(
                "do not trust uncertain edges: {moves} up to {moved:.2}, as their standard errors say; edges with small ones, \
                 and those alone, can be relied on ({shown}){missing}; {more}"
            );
            return Self { kind: VerdictKind::DoNotTrust, text };
        }
        let text = if annealed {
            let parameters = if is_even { "" } else { ", but do not rely on parameters, which are those of q" };
            format!(
                "corrected: evidences of nodes were found from the prior, and {moves} {moved:.3} at most; use the corrected edges \
                 and graphs{parameters} ({shown}){missing}"
            )
        } else {
            format!(
                "edges only: {moves} {moved:.3} at most; parameters and the evidence are not to be relied on ({shown})"
            )
        };
        Self { kind: VerdictKind::Corrected, text }
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
    fn blocks_are_judged_by_weights_or_by_how_far_edges_move() {
        let basis = |moved, annealed, left_out| Basis { moved, annealed, left_out };
        // What is said, and one word that is not.
        let cases: [(f64, Basis, VerdictKind, [&str; 2], &str); 7] = [
            (0.3, basis(0.01, false, 0), VerdictKind::Trust, ["trust: k̂ = 0.30", "is below 0.70"], "parents"),
            (1.2, basis(0.01, false, 0), VerdictKind::Corrected, ["edges only", "0.010 at most"], "the prior"),
            (1.2, basis(0.2, false, 0), VerdictKind::DoNotTrust, ["up to 0.20", "train longer"], "anneal"),
            (1.2, basis(0.01, true, 0), VerdictKind::Corrected, ["from the prior", "parameters"], "raise"),
            // Good weights of what q draws say nothing about sets that were not looked at.
            (0.3, basis(0.01, true, 9), VerdictKind::Corrected, ["9 more sets", "anneal.most"], "rely on"),
            (1.2, basis(0.2, true, 0), VerdictKind::DoNotTrust, ["up to 0.20", "raise runs"], "anneal.most"),
            (1.2, basis(0.2, true, 9), VerdictKind::DoNotTrust, ["9 more sets", "raise runs"], "train"),
        ];
        for (khat, basis, kind, has, lacks) in cases {
            let Verdict { kind: found, text } = said(khat, &basis);
            assert_eq!(found, kind, "{text}");
            assert!(has.iter().all(|part| text.contains(part)), "{has:?} in: {text}");
            assert!(!text.contains(lacks), "no {lacks:?} in: {text}");
        }
    }
}

//! A verdict in words.

use serde::Serialize;

use super::Correction;

/// What to do with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// q is good: use it, or its correction, which hardly differs.
    Trust,
    /// q is off, but its correction can be relied on.
    Corrected,
    /// Neither can be relied on.
    DoNotTrust,
}

/// What to do with the answer, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What to do.
    pub kind: VerdictKind,
    /// Why, in words.
    pub text: String,
}

/// Model probabilities that differ by no more than this are the same for all practical purposes.
const SMALL: f64 = 0.02;

/// How far edges moved when every evidence moved by as much as it may be off.
pub(super) struct Moved {
    pub(super) by: f64,
    /// Whether evidences were annealed, and how many more may matter.
    pub(super) annealed: bool,
    pub(super) left_out: usize,
}

impl Verdict {
    /// By weights: k̂ against its threshold, then the distance between q and its correction.
    pub(super) fn of_weights(khat: Option<f64>, threshold: f64, correction: &Correction) -> Self {
        let shown = match khat {
            Some(f64::NEG_INFINITY) => "weights are all but equal".into(),
            Some(khat) if khat < threshold => format!("k̂ = {khat:.2} is below {threshold:.2}"),
            Some(khat) => format!("k̂ = {khat:.2}, not below {threshold:.2}"),
            None => "k̂ is unknown".into(),
        };
        if khat.is_none_or(|khat| khat >= threshold) {
            let text = format!(
                "do not trust: {shown}, so importance weights cannot correct q; train longer, \
                 use a richer flow, or refine with chains"
            );
            return Self { kind: VerdictKind::DoNotTrust, text };
        }
        Self::of_distance(&shown, correction)
    }

    /// By the weights of factors. Where they are too uneven, what counts is how far edges moved.
    pub(super) fn of_factors(
        khat: Option<f64>,
        threshold: f64,
        &Moved { by: moved, annealed, left_out }: &Moved,
        correction: &Correction,
    ) -> Self {
        let is_even = khat.is_some_and(|khat| khat < threshold);
        if is_even && moved <= 2.0 * SMALL {
            return Self::of_weights(khat, threshold, correction);
        }
        let shown = khat.map_or("unknown".into(), |khat| format!("{khat:.2}"));
        let shown = format!("k̂ = {shown}, {}below {threshold:.2}", if is_even { "" } else { "not " });
        let missing =
            (left_out > 0).then(|| format!("{left_out} more sets of parents may matter, raise check.anneal.most"));
        let moves = "moving the evidence of every node by as much as it may be off moves edge probabilities by";
        if moved <= 2.0 * SMALL {
            let text = if annealed {
                format!(
                    "corrected: evidences of nodes were found from the prior, and {moves} {moved:.3} at most; use the corrected \
                     edges and graphs, but do not rely on parameters, which are those of q ({shown}){}",
                    missing.map_or_else(String::new, |missing| format!("; {missing}"))
                )
            } else {
                format!(
                    "edges only: {moves} {moved:.3} at most; parameters and the evidence are not to be relied on ({shown})"
                )
            };
            return Self { kind: VerdictKind::Corrected, text };
        }
        let more = match missing {
            Some(missing) => missing,
            None if annealed => "raise check.anneal.sharpen or check.anneal.runs".into(),
            None => "train longer or use a richer flow".into(),
        };
        let text = format!(
            "do not trust uncertain edges: {moves} up to {moved:.2}, as their standard errors say; edges with small ones, and \
             those alone, can be relied on ({shown}); {more}"
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
        if distance <= SMALL + (2.0 * correction.total_variation_se).min(SMALL) {
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

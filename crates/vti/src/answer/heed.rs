//! Where the exact answer is known, it has the last word about the others.

use super::{Answer, Exact, Found, ModelAnswer, Quantity};
use crate::check::{Verdict, VerdictKind};

/// Probabilities that differ by no more than this are the same for all practical purposes.
pub(super) const CONSIDERABLE: f64 = 0.03;

/// A probability that is farther from the exact one than the others.
#[derive(Clone, Debug)]
struct Farthest {
    off: f64,
    what: String,
    found: f64,
    exact: f64,
}

impl Farthest {
    fn none() -> Self {
        Self { off: 0.0, what: String::new(), found: 0.0, exact: 0.0 }
    }

    /// Takes in another; what is no number is as far off as can be.
    fn take(&mut self, what: &str, found: f64, exact: f64) {
        let off = if found.is_finite() { (found - exact).abs() } else { 1.0 };
        if off > self.off {
            *self = Self { off, what: what.into(), found, exact };
        }
    }
}

/// What to think of an answer whose exact counterpart is known: whatever weights or chains say about themselves, its
/// probabilities of parts and of models are right or wrong.
pub(super) fn heed(answer: &Answer, models: &[ModelAnswer], exact: &Exact) -> Verdict {
    let (mut q, mut corrected) = (Farthest::none(), Farthest::none());
    let mut compare = |what: &str, of: &Quantity| {
        if let Some(exact) = of.exact {
            q.take(what, of.q, exact);
            corrected.take(what, of.corrected, exact);
        }
    };
    answer.found.inclusion().iter().for_each(|(name, part)| compare(name, part));
    if let Found::Dag(graphs) = &answer.found {
        graphs.edges.ranked().iter().for_each(|edge| compare(&graphs.edges.name(edge), &edge.probability));
    }
    models.iter().for_each(|model| compare(&model.label, &model.probability));
    let met = |word: &str| models.iter().any(|model| model.word == word);
    for model in exact.leading() {
        let word = model.to_string();
        if !met(&word) {
            let missed = Quantity { q: 0.0, corrected: 0.0, se: 0.0, exact: exact.probability(model) };
            compare(&format!("model {word}, which was never met,"), &missed);
        }
    }
    verdict(&answer.verdict, &q, &corrected)
}

/// In words. What the check says of itself is about parameters as well, of which the exact probabilities say nothing.
fn verdict(alone: &Verdict, q: &Farthest, corrected: &Farthest) -> Verdict {
    if corrected.off > CONSIDERABLE {
        let Farthest { what, found, exact, .. } = corrected;
        let text = format!(
            "do not trust: the corrected probability of {what} is {found:.3}, but the exact answer says {exact:.3}; use the \
             exact numbers"
        );
        return Verdict { kind: VerdictKind::DoNotTrust, text };
    }
    let aside = match alone.kind {
        VerdictKind::DoNotTrust => format!(" (of parameters the check alone says: {})", alone.text),
        VerdictKind::Trust | VerdictKind::Corrected => String::new(),
    };
    if q.off > CONSIDERABLE {
        let text = format!(
            "corrected: compared with the exact answer, probabilities of q are off by up to {:.3} ({}), corrected ones by {:.3} \
             at most; use the corrected ones, or the exact ones{aside}",
            q.off, q.what, corrected.off
        );
        return Verdict { kind: VerdictKind::Corrected, text };
    }
    let text = format!(
        "trust: compared with the exact answer, probabilities of q are off by {:.3} at most, corrected ones by {:.3}{aside}",
        q.off, corrected.off
    );
    Verdict { kind: VerdictKind::Trust, text }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::answer::{Ordered, Terms};
    use crate::space::Model;

    /// The verdict where the only term has these probabilities, and the check alone says this.
    fn said(q: f64, corrected: f64, alone: VerdictKind) -> Verdict {
        let exact = Exact::new(0.0, vec![0.5], |model| (model.len() == 1).then_some(0.5));
        let part = |q, corrected| Quantity { q, corrected, se: 0.001, exact: Some(0.5) };
        let terms = Terms { inclusion: Ordered(vec![("x".into(), part(q, corrected))]), ..Terms::default() };
        let verdict = Verdict { kind: alone, text: "do not trust: k̂ = 0.90".into() };
        let answer = Answer { found: Found::Select(terms), verdict, ..Answer::default() };
        let model = |word: &str, q, corrected| ModelAnswer {
            word: word.into(),
            label: word.into(),
            probability: part(q, corrected),
            ..ModelAnswer::default()
        };
        heed(&answer, &[model("1", q, corrected), model("0", 1.0 - q, 1.0 - corrected)], &exact)
    }

    #[test]
    fn the_exact_answer_has_the_last_word() {
        use VerdictKind::{Corrected, DoNotTrust, Trust};
        for (q, corrected, alone, kind, part) in [
            (0.5, 0.5, Trust, Trust, "off by 0.000 at most"),
            (0.48, 0.5, DoNotTrust, Trust, "the check alone says: do not trust: k̂ = 0.90"),
            (0.3, 0.49, Trust, Corrected, "off by up to 0.200 (x), corrected ones by 0.010"),
            (0.3, 0.49, DoNotTrust, Corrected, "the check alone says"),
            (0.999, 0.998, Trust, DoNotTrust, "of x is 0.998, but the exact answer says 0.500"),
            (0.5, 0.6, Trust, DoNotTrust, "use the exact numbers"),
            (0.5, f64::NAN, Trust, DoNotTrust, "use the exact numbers"),
        ] {
            let found = said(q, corrected, alone);
            assert_eq!(found.kind, kind, "{}", found.text);
            assert!(found.text.contains(part), "{part:?} in: {}", found.text);
        }
    }

    #[test]
    fn a_model_that_was_never_met_is_not_overlooked() {
        let half: Model = vec![1u16].into();
        let exact = Exact::new(0.0, Vec::new(), |_| Some(0.5)).with_leading(vec![half]);
        let verdict = heed(&Answer::default(), &[], &exact);
        assert!(verdict.kind == VerdictKind::DoNotTrust && verdict.text.contains("model 1, which was never met"));
    }
}

//! Whether a new result of the same q may take the place of the one that is there.

use vti::answer::Answer;
use vti::check::{Depth, VerdictKind};

/// What becomes of the files of the result before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// They are replaced.
    Replaced,
    /// They are replaced by something worse, for this reason.
    Contradicted(String),
    /// They stay, for this reason.
    Kept(String),
}

/// Errors that grow by more than this say less; those of the same effort differ by chance.
const GROWN: f64 = 1.5;

impl Earlier {
    /// A look that was cut short, or that was shallow or has larger errors, says less than the one before, and does not
    /// replace it. A full one that ends in a worse verdict knows better: keeping the more pleasant of two verdicts would
    /// trust by trying often.
    pub(crate) fn of(earlier: &Answer, new: &Answer, depth: Depth, is_cut_short: bool) -> Self {
        // Another q, or one that has gone on since.
        if (earlier.run.steps, earlier.run.lessons) != (new.run.steps, new.run.lessons) {
            return Self::Replaced;
        }
        if is_cut_short {
            return Self::Kept("it was cut short".into());
        }
        let rank = |answer: &Answer| match answer.verdict.kind {
            VerdictKind::Trust => 2,
            VerdictKind::Corrected => 1,
            VerdictKind::DoNotTrust => 0,
        };
        if rank(new) < rank(earlier) {
            let verdicts = format!(
                "the verdict was \u{201c}{}\u{201d} and is now \u{201c}{}\u{201d}",
                first_words(earlier),
                first_words(new)
            );
            return if depth == Depth::Full {
                Self::Contradicted(verdicts)
            } else {
                Self::Kept(format!("{verdicts}, after a look that was not a full one"))
            };
        }
        let (before, now) = (largest_error(earlier), largest_error(new));
        if rank(new) == rank(earlier) && rank(new) > 0 && now > GROWN * before {
            return Self::Kept(format!("its largest standard error is {now:.4}, and was {before:.4}"));
        }
        Self::Replaced
    }
}

/// What a verdict begins with.
fn first_words(answer: &Answer) -> &str {
    answer.verdict.text.split(':').next().unwrap_or_default()
}

/// The largest standard error of the probability of a term, an edge or a number of components.
fn largest_error(answer: &Answer) -> f64 {
    let edges = answer.found.graphs().into_iter().flat_map(|found| found.edges.probabilities.iter().flatten());
    let terms = answer.found.inclusion().iter().map(|(_, term)| term);
    let counts =
        answer.found.count().into_iter().flat_map(|found| found.numbers().map(|(_, found)| &found.probability));
    terms.chain(edges).chain(counts).map(|part| part.se).filter(|se| se.is_finite()).fold(0.0, f64::max)
}

//! Evidences: a number, its error, and how it was found.

use serde::Serialize;

use super::{Estimate, Stratum, log_total};

/// How an evidence was found, the surest way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceMethod {
    /// By formula.
    ClosedForm,
    /// By a sum over a lattice of parameters.
    Quadrature,
    /// By particles that are annealed from a reference into the posterior, without q.
    Annealed,
    /// By draws of q and of particles together (bridge sampling), or by what particles counted times such a `p(y)`.
    Bridge,
    /// By the weights of draws from q, which say nothing about where q never draws.
    Importance,
}

/// A log evidence `log ∫ η(θ | m) dθ` of a model, or of a block under a key, and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// The logarithm.
    pub log_evidence: f64,
    /// Its standard error; of a quadrature, how far two lattices were apart.
    pub se: f64,
    /// How it was found.
    pub method: EvidenceMethod,
    /// How often the density was asked for.
    pub calls: usize,
}

/// Runs that differ by no more than this many nats make a better number together than each alone.
const FAR_APART: f64 = 3.0;

impl Evidence {
    /// One that is known by formula.
    pub fn exactly(log_evidence: f64) -> Self {
        Self { log_evidence, se: 0.0, method: EvidenceMethod::ClosedForm, calls: 0 }
    }

    /// The number and its error.
    pub fn estimate(&self) -> Estimate {
        Estimate { value: self.log_evidence, se: self.se }
    }

    /// What at least four independent runs of annealed particles make together, given the logarithms that they found; none if all
    /// particles of all runs were lost.
    pub fn of_runs(log_evidences: &[f64], calls: usize) -> Option<Self> {
        let count = log_evidences.len() as f64;
        let shares: Vec<f64> = log_evidences.iter().map(|log| log - count.ln()).collect();
        let total = log_total(&[Stratum::new(&shares)]).ok()?;
        // Where runs are far apart the largest says most, and the error of the mean no longer says how far it is off: the largest of
        // some is about as unsure as one.
        let mean = log_evidences.iter().sum::<f64>() / count;
        let squares: f64 = log_evidences.iter().map(|log| (log - mean).powi(2)).sum();
        let one = (squares / (count - 1.0)).sqrt();
        let spread = (one / count.sqrt()).max(one - FAR_APART);
        // The spread of a few runs is itself known roughly: errors are those of Student's t, whose standard deviation this is.
        let rough = ((count - 1.0) / (count - 3.0)).sqrt();
        let se = rough * total.se.max(spread);
        Some(Self { log_evidence: total.value, se, method: EvidenceMethod::Annealed, calls })
    }

    /// The same, with an error that reaches as far as another estimate where that lies higher than both errors explain: an estimate
    /// without bias is rarely far above the truth (Markov's inequality), and easily far below. One that is known by formula stays as it is.
    pub(crate) fn reaching(self, other: &Self) -> Self {
        let higher = other.log_evidence - self.log_evidence;
        let is_low = self.method != EvidenceMethod::ClosedForm && higher > 2.0 * f64::hypot(self.se, other.se);
        if is_low { Self { se: self.se.max(higher), ..self } } else { self }
    }

    /// That of a density that is a product over blocks, from those of the blocks, which were found independently of each other; as
    /// sure as the least sure of them.
    pub fn product(blocks: impl IntoIterator<Item = Self>) -> Self {
        blocks.into_iter().fold(Self::exactly(0.0), |all, block| Self {
            log_evidence: all.log_evidence + block.log_evidence,
            se: f64::hypot(all.se, block.se),
            method: all.method.max(block.method),
            calls: all.calls + block.calls,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What four runs make together; not a number where that is nothing.
    fn joined(runs: [f64; 4]) -> Estimate {
        Evidence::of_runs(&runs, 7).map_or(Estimate { value: f64::NAN, se: f64::NAN }, |found| found.estimate())
    }

    /// Four runs: √(Σ d² / (4 · 3)) is the error of their mean, and Student's t with three degrees of freedom has variance 3.
    #[test]
    fn few_runs_have_larger_errors() {
        let found = joined([7.0, 7.001, 6.999, 7.0]);
        let expected = (2e-6f64 / 12.0 * 3.0).sqrt();
        assert!((found.value - 7.0).abs() < 1e-6 && (found.se / expected - 1.0).abs() < 0.01, "{found:?}, {expected}");
    }

    /// Runs that disagree say so.
    #[test]
    fn errors_grow_with_the_distance_of_runs() {
        let apart = joined([-10.0, -20.0, -11.0, -18.0]);
        assert!(apart.se > 2.0, "{apart:?}");
        let near = joined([-10.0, -10.1, -9.9, -10.0]);
        assert!((near.value + 10.0).abs() < 0.02 && near.se < 0.1, "{near:?}");
    }

    /// More runs do not help where they are tens of nats apart: evidences whose logarithms are normal with variance 100 have a mean of
    /// exp(50), which a few of them do not show.
    #[test]
    fn runs_far_apart_are_as_unsure_as_one() {
        let runs: Vec<f64> = (0..16).map(|run| [-12.0, -5.0, 5.0, 12.0][run % 4]).collect();
        let found = Evidence::of_runs(&runs, 7).map_or(f64::NAN, |found| found.se);
        assert!((6.0..10.0).contains(&found), "{found}");
    }

    #[test]
    fn lost_particles_have_no_evidence() {
        assert_eq!(Evidence::of_runs(&[f64::NEG_INFINITY; 4], 0), None);
    }

    #[test]
    fn errors_reach_up_to_a_higher_estimate_and_not_down_to_a_lower_one() {
        let one = |log_evidence, se| Evidence { log_evidence, se, method: EvidenceMethod::Annealed, calls: 1 };
        assert_eq!(one(-10.0, 1.0).reaching(&one(-5.0, 1.0)).se, 5.0);
        assert_eq!(one(-10.0, 1.0).reaching(&one(-8.0, 1.0)).se, 1.0);
        assert_eq!(one(-10.0, 1.0).reaching(&one(-15.0, 0.0)).se, 1.0);
        assert_eq!(Evidence::exactly(-10.0).reaching(&one(-5.0, 1.0)).se, 0.0);
    }

    #[test]
    fn a_product_is_as_sure_as_its_least_sure_block() {
        let block = |log_evidence, se, method| Evidence { log_evidence, se, method, calls: 10 };
        let blocks = [
            block(-1.0, 0.3, EvidenceMethod::Annealed),
            block(-2.5, 0.4, EvidenceMethod::Quadrature),
            Evidence::exactly(0.5),
        ];
        let found = Evidence::product(blocks);
        assert_eq!((found.log_evidence, found.method, found.calls), (-3.0, EvidenceMethod::Annealed, 20));
        assert!((found.se - 0.5).abs() < 1e-15);
        assert_eq!(Evidence::product([]), Evidence::exactly(0.0));
    }
}

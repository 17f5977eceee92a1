//! Evidences `log p(y | m) = log ∫ η(θ_m | m) dθ_m` of models, and of blocks of a density, found without q.
//!
//! Particles are annealed from a reference into the posterior of a model. The reference is the prior where
//! that is known, and otherwise a wide normal density around where parameters roughly lie, so modes that q has lost are found all
//! the same. Each estimate comes from several independent runs, whose differences say how far it may be off.

mod annealed;
mod blocks;
mod models;
mod particles;
mod settings;

pub use annealed::{AnnealedEvidences, Reference};
pub(crate) use blocks::BlockTargets;
pub(crate) use particles::{Population, anneal};
pub use settings::{AnnealSettings, ParticleMove};

use crate::stats::{self, Estimate, Stratum};

/// The estimate that at least four runs make together; none if all particles of all runs were lost.
pub(crate) fn join(log_evidences: &[f64]) -> Option<Estimate> {
    let count = log_evidences.len() as f64;
    let shares: Vec<f64> = log_evidences.iter().map(|log| log - count.ln()).collect();
    let total = stats::log_total(&[Stratum::new(&shares)]).ok()?;
    // Where runs are far apart the largest says most, and the error of the mean no longer says how far it is off.
    let mean = log_evidences.iter().sum::<f64>() / count;
    let squares: f64 = log_evidences.iter().map(|log| (log - mean).powi(2)).sum();
    let spread = (squares / (count * (count - 1.0))).sqrt();
    // The spread of a few runs is itself known roughly: errors are those of Student's t, whose standard deviation this is.
    let rough = ((count - 1.0) / (count - 3.0)).sqrt();
    Some(Estimate { value: total.value, se: rough * total.se.max(spread) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four runs: √(Σ d² / (4 · 3)) is the error of their mean, and Student's t with three degrees of freedom has variance 3.
    #[test]
    fn few_runs_have_larger_errors() {
        let found = join(&[7.0, 7.001, 6.999, 7.0]).unwrap_or(Estimate { value: f64::NAN, se: f64::NAN });
        let expected = (2e-6f64 / 12.0 * 3.0).sqrt();
        assert!((found.value - 7.0).abs() < 1e-6 && (found.se / expected - 1.0).abs() < 0.01, "{found:?}, {expected}");
    }

    /// Runs that disagree say so.
    #[test]
    fn errors_grow_with_the_distance_of_runs() {
        let apart = join(&[-10.0, -20.0, -11.0, -18.0]);
        assert!(apart.is_some_and(|found| found.se > 2.0), "{apart:?}");
        let near = join(&[-10.0, -10.1, -9.9, -10.0]);
        assert!(near.is_some_and(|found| (found.value + 10.0).abs() < 0.02 && found.se < 0.1), "{near:?}");
    }

    #[test]
    fn lost_particles_have_no_evidence() {
        assert_eq!(join(&[f64::NEG_INFINITY; 4]), None);
    }
}

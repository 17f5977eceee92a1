//! Unions of correlated Gaussians.

use std::sync::Arc;

use vti::check::VerdictKind;
use vti::device::Cpu;
use vti::family::FamilySettings;
use vti::problem::dag::Rules;
use vti::space::{ModelSpace, OneOf, Subsets};

use crate::problems::{GaussianGraphs, Gaussians, Known};
use crate::{affine, assert_corrected, check_with, distance, distributions, train};

/// Trains every distribution of `which` on a problem and compares with the truth.
fn truth(problem: impl Known + 'static, which: impl Fn(&str) -> bool, steps: u64, batch: usize) {
    let problem = Arc::new(problem);
    let device = Cpu::<f32>::new(2).unwrap();
    let (probabilities, log_evidence) = (problem.probabilities(), problem.log_total_evidence());
    for (name, models) in distributions(&*problem).into_iter().filter(|(name, _)| which(name)) {
        let family = FamilySettings { models, flow: affine(), ..FamilySettings::default() };
        let posterior = train(&problem, &device, &family, steps, batch);
        let distance = distance(&posterior, problem.catalogue(), &probabilities);
        assert!(distance < 0.02, "{name}: q(m) is off by {distance}");
        let check = check_with(&posterior, 10_000);
        assert_corrected(name, &check, problem.catalogue(), &probabilities, 5);
        let (value, se) = (check.log_evidence.value, check.log_evidence.se);
        assert!((value - log_evidence).abs() < 3.0 * se + 1e-3, "{name}: {value} ± {se}, truth {log_evidence}");
        assert_eq!(check.verdict.kind, VerdictKind::Trust, "{name}: {}", check.verdict.text);
        // Up to rounding in single precision.
        assert!(check.elbo.value < value + 3.0 * check.elbo.se + 1e-4, "{name}: a bound is a bound");
        for model in check.correction.models.iter().take(3) {
            let (found, truth) = (model.evidence.unwrap().estimate(), problem.log_evidence(&model.model));
            assert!((found.value - truth).abs() < 3.5 * found.se + 1e-3, "{name}: {}: {found:?} {truth}", model.label);
        }
    }
}

fn union(space: impl ModelSpace + 'static) -> impl Known {
    Gaussians::new(space, 0.8, 1.0, 3)
}

#[test]
fn two_models() {
    truth(union(OneOf::with_dims(&[0, 1]).unwrap()), |_| true, 300, 128);
}

#[test]
fn eight_subsets() {
    truth(union(Subsets::new(3).unwrap()), |_| true, 500, 256);
}

#[test]
fn sixteen_models_of_up_to_twenty_dimensions() {
    let dims = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 19, 20];
    truth(union(OneOf::with_dims(&dims).unwrap()), |name| name != "Gaussian process", 800, 512);
}

#[test]
fn a_thousand_subsets() {
    truth(union(Subsets::new(10).unwrap()), |name| name != "Gaussian process", 1500, 1024);
}

#[test]
fn a_hundred_subsets_by_a_gaussian_process() {
    truth(union(Subsets::with_always(7, 1).unwrap()), |name| name == "Gaussian process", 800, 512);
}

#[test]
fn graphs_of_three_nodes() {
    let graphs = GaussianGraphs::new(3, Rules::default(), 0.8, 3, |_, _| 0.0);
    assert!(distributions(&graphs).iter().any(|(name, _)| *name == "modular"));
    truth(graphs, |_| true, 800, 512);
}

//! Constrained parameters and constrained models.

use vti::engine::CpuEngine;
use vti::family::{ContextSettings, FamilySettings};
use vti::models::{AutoregressiveSettings, ModelsSettings};
use vti::problem::{self, Constraint, Constraints, Problem};
use vti::space::{Catalogue, Dags, Model, ModelSpace, Subsets};

use crate::problems::{Gaussians, normalise};
use crate::{affine, assert_corrected, check_with, distance, distributions, train};

/// A gamma variable, a beta variable on (−1, 3) and a Dirichlet vector of three parts, each of them optional.
fn optional() -> impl Problem<Space = Subsets> {
    let space = Subsets::of_blocks(0, &[1, 1, 2]).unwrap();
    let list =
        vec![Constraint::Positive, Constraint::Interval { low: -1.0, high: 3.0 }, Constraint::Simplex { parts: 3 }];
    problem::from_fn(space, |model, theta, gradient| {
        let mut rest = (theta, gradient);
        let mut log_density = 0.0;
        let mut next = |count: usize| {
            let (theta, gradient) = std::mem::take(&mut rest);
            let ((own, theta), (own_gradient, gradient)) = (theta.split_at(count), gradient.split_at_mut(count));
            rest = (theta, gradient);
            (own, own_gradient)
        };
        if model[0] == 1 {
            let (x, g) = next(1);
            assert!(x[0] > 0.0);
            log_density += 1.5 * x[0].ln() - x[0];
            g[0] = 1.5 / x[0] - 1.0;
        }
        if model[1] == 1 {
            let (x, g) = next(1);
            let (a, b) = (x[0] + 1.0, 3.0 - x[0]);
            assert!(a > 0.0 && b > 0.0);
            log_density += a.ln() + 2.0 * b.ln();
            g[0] = 1.0 / a - 2.0 / b;
        }
        if model[2] == 1 {
            let (x, g) = next(3);
            assert!((x.iter().sum::<f64>() - 1.0).abs() < 1e-6);
            for ((x, g), alpha) in x.iter().zip(g).zip([2.0, 3.0, 1.5]) {
                log_density += (alpha - 1.0) * x.ln();
                *g = (alpha - 1.0) / x;
            }
        }
        log_density
    })
    .with_constraints(Constraints::new(list).unwrap())
}

#[test]
fn evidences_of_constrained_parameters_are_those_of_gamma_beta_and_dirichlet() {
    let problem = optional();
    // Γ(2.5); 4⁴ B(2, 3); Γ(2)Γ(3)Γ(1.5)/Γ(6.5).
    let root_pi = std::f64::consts::PI.sqrt();
    let (gamma_1_5, gamma_2_5) = (0.5 * root_pi, 0.75 * root_pi);
    let gamma_6_5 = 5.5 * 4.5 * 3.5 * 2.5 * gamma_2_5;
    let parts = [gamma_2_5.ln(), (256.0f64 / 12.0).ln(), (2.0 * gamma_1_5 / gamma_6_5).ln()];
    let catalogue = Catalogue::new(problem.space(), 8).unwrap();
    let evidences: Vec<f64> = (0..8)
        .map(|m| catalogue.model(m).unwrap().iter().zip(parts).map(|(&bit, part)| f64::from(bit) * part).sum())
        .collect();
    let probabilities = normalise(&evidences);
    let engine = CpuEngine::<f32>::new(2).unwrap();
    let mut posterior = train(&problem, &engine, &FamilySettings::default(), 1500, 512);
    let off = distance(&mut posterior, &catalogue, &probabilities);
    assert!(off < 0.02, "q(m) is off by {off}");
    let check = check_with(&mut posterior, 20_000);
    assert_corrected("constrained", &check, &catalogue, &probabilities, 8);
    // Draws are inside, and log q at a draw is that of the draw.
    let draws = posterior.draw(200, 5).unwrap();
    let points: Vec<_> = (0..200)
        .map(|row| vti::posterior::Point { model: draws.model(row), theta: draws.theta(row).to_vec() })
        .collect();
    for (row, log_q) in posterior.log_q(&points).unwrap().into_iter().enumerate() {
        assert!((log_q - draws.log_q[row]).abs() < 2e-3 * (1.0 + log_q.abs()), "{log_q} {}", draws.log_q[row]);
    }
    let outside = vti::posterior::Point { model: vec![1, 0, 0].into(), theta: vec![-1.0] };
    assert_eq!(posterior.log_q(&[outside]).unwrap(), [f64::NEG_INFINITY]);
}

#[test]
fn forbidden_models_have_probability_zero_under_every_distribution() {
    let space = Subsets::new(5).unwrap().with_sizes(1..=2).unwrap();
    let problem = Gaussians::new(space, 0.5, 1.0, 4);
    let engine = CpuEngine::<f32>::new(2).unwrap();
    for (name, models) in distributions() {
        let family = FamilySettings { models, flow: affine(), ..FamilySettings::default() };
        let mut posterior = train(&problem, &engine, &family, 400, 256);
        let off = distance(&mut posterior, problem.catalogue(), &problem.probabilities());
        assert!(off < 0.02, "{name}: q(m) is off by {off}");
        let draws = posterior.draw(5000, 0).unwrap();
        assert!((0..5000).all(|row| problem.space().is_allowed(draws.word(row))), "{name}");
    }
}

#[test]
fn what_is_chosen_automatically_says_why() {
    let engine = CpuEngine::<f32>::single();
    let choices = |bits: usize| {
        let space = Subsets::new(bits).unwrap();
        let problem = problem::from_fn(space, |_, _, _| 0.0);
        let family = vti::family::Family::new(&problem, &engine, &FamilySettings::default(), 8, 1).unwrap();
        (family.settings().clone(), family.choices().to_vec())
    };
    let (few, why) = choices(7);
    assert!(matches!(few.models, ModelsSettings::Surrogate(_)), "{few:?}");
    assert!(why.iter().any(|line| line.contains("128 models")), "{why:?}");
    let (many, why) = choices(40);
    assert_eq!(many.models, ModelsSettings::Autoregressive(AutoregressiveSettings::default()));
    assert!(why.iter().any(|line| line.contains("10^12.0 models")), "{why:?}");
}

/// Log evidence of a graph: its edges, and one pair of them.
fn log_evidence(space: &Dags, model: &[u16]) -> f64 {
    let mut edges = [false; 9];
    space.adjacency(model, &mut edges);
    let edge = |from: usize, to: usize| f64::from(u8::from(edges[3 * from + to]));
    0.8 * edge(0, 1) - 0.5 * edge(1, 0) + 1.1 * edge(1, 2) - 0.4 * edge(2, 1)
        + 0.3 * edge(0, 2)
        + 0.6 * edge(0, 1) * edge(1, 2)
}

#[test]
fn words_that_mean_one_graph_are_counted_together() {
    let space = Dags::new(3, 1).unwrap();
    let problem = problem::from_fn(space.clone(), move |model, theta, gradient| {
        let mut log_density = log_evidence(&space, model);
        for (t, g) in theta.iter().zip(gradient) {
            *g = -(t - 0.5);
            log_density += -0.5 * (t - 0.5).powi(2) - 0.5 * std::f64::consts::TAU.ln();
        }
        log_density
    });
    let space = problem.space();
    let catalogue = Catalogue::new(space, 100).unwrap();
    assert_eq!(catalogue.len(), 48);
    let mut truth: std::collections::BTreeMap<Model, f64> = std::collections::BTreeMap::new();
    for index in 0..48 {
        let word = catalogue.model(index).unwrap();
        let mut canonical = word.to_vec();
        space.canonical(&mut canonical);
        *truth.entry(canonical.into()).or_default() += log_evidence(space, &word).exp();
    }
    let total: f64 = truth.values().sum();
    truth.values_mut().for_each(|value| *value /= total);
    assert_eq!(truth.len(), 25);
    let engine = CpuEngine::<f32>::new(2).unwrap();
    for (name, models) in distributions() {
        let context = ContextSettings::Features;
        let family = FamilySettings { models, flow: affine(), context };
        let mut posterior = train(&problem, &engine, &family, 800, 512);
        let found = posterior.model_probabilities(1).unwrap();
        assert_eq!(found.len(), 25, "{name}");
        let off: f64 = found.iter().map(|model| 0.5 * (model.probability.value - truth[&model.model]).abs()).sum();
        assert!(off < 0.02, "{name}: q is off by {off}");
        let check = check_with(&mut posterior, 10_000);
        for model in check.correction.models.iter().take(5) {
            let (value, se, truth) = (model.corrected.value, model.corrected.se, truth[&model.model]);
            assert!((value - truth).abs() < 3.0 * se + 1e-4, "{name}: {}: {value} ± {se}, {truth}", model.label);
            let found = model.log_evidence.unwrap();
            let exact = log_evidence(space, &model.model);
            assert!((found.value - exact).abs() < 3.5 * found.se + 1e-3, "{name}: {found:?} {exact}");
        }
    }
}

//! Mixtures against sums written out, and against differences.

#![allow(clippy::unwrap_used)]

use super::simulate::Truth;
use super::*;
use crate::problem::{Gradient, Problem, check_gradient};

fn mixture(columns: usize, rows: usize, settings: MixtureSettings) -> Mixture {
    let data = Truth::apart(3, columns, 3.0).observations(rows, 5).unwrap();
    Mixture::new(data, settings).unwrap()
}

#[test]
fn gradients_are_those_of_the_density() {
    for columns in [1, 2, 3, 4] {
        for key in [Key::Mean, Key::Precision] {
            // Components that are not too narrow: beside those the density bends within the shortest segments.
            let scale = vec![crate::prior::LogNormal(0.5, 0.3).into(); columns];
            let prior = MixturePriors { scale, ..MixturePriors::rg97() };
            let settings = MixtureSettings { max_components: 4, key, prior, ..MixtureSettings::default() };
            let mixture = mixture(columns, 70, settings);
            assert_eq!(mixture.problem().gradient(), Gradient::Exact);
            check_gradient(&**mixture.problem(), 12, 3).unwrap();
        }
    }
}

/// In one column: Σ log Σ w N(y; μ, β/t), written out.
#[test]
fn the_likelihood_is_the_sum_over_components() {
    let mixture = mixture(1, 130, MixtureSettings::default());
    let theta = [2.5, 0.5, 1.5, 0.3, 4.0, 0.7, 0.7];
    let normal = |y: f64, mean: f64, variance: f64| {
        (-0.5 * (y - mean).powi(2) / variance).exp() / (std::f64::consts::TAU * variance).sqrt()
    };
    let each = |y: &f64| (0.3 * normal(*y, 0.5, 2.5 / 1.5) + 0.7 * normal(*y, 4.0, 2.5 / 0.7)).ln();
    let expected: f64 = mixture.data().columns()[0].iter().map(each).sum();
    let problem = mixture.problem();
    let draw = crate::problem::components::Draw::new(problem.components(), &[1], &theta);
    let found = crate::problem::components::ComponentLikelihood::log_likelihood(problem.likelihood(), &draw).unwrap();
    assert!((found - expected).abs() < 1e-10 * expected.abs(), "{found} instead of {expected}");
}

/// Standard deviations and correlations are those of the precision matrix, inverted by hand.
#[test]
fn a_drawn_mixture_has_its_covariances() {
    let data = Truth::apart(2, 2, 3.0).observations(20, 1).unwrap();
    let mixture = Mixture::new(data, MixtureSettings::default()).unwrap();
    // β, β, then means, scaled precisions, below the diagonal, weight.
    let theta = [0.5, 2.0, 1.0, -1.0, 1.3, 0.8, 0.6, 1.0];
    let drawn = mixture.drawn(&theta);
    let (a, b, c) = (2.6f64.sqrt(), 0.6, 1.6f64.sqrt());
    let (s1, s2) = (1.0, 0.5);
    let precision = [s1 * s1 * a * a, s1 * s2 * a * b, s2 * s2 * (b * b + c * c)];
    let determinant = precision[0] * precision[2] - precision[1] * precision[1];
    assert!((drawn.sd(0, 0).powi(2) - precision[2] / determinant).abs() < 1e-12);
    assert!((drawn.sd(0, 1).powi(2) - precision[0] / determinant).abs() < 1e-12);
    let correlation = -precision[1] / (precision[0] * precision[2]).sqrt();
    assert!((drawn.correlation(0, 0, 1) - correlation).abs() < 1e-12);
    let mut shares = [0.0];
    drawn.responsibilities(&[3.0, 1.0], &mut shares);
    assert!((shares[0] - 1.0).abs() < 1e-12);
}

#[test]
fn what_makes_no_mixture_is_refused() {
    let names = |count: usize| (0..count).map(|i| format!("c{i}")).collect::<Vec<_>>();
    let bad = |columns: Vec<Vec<f64>>| Observations::new(names(columns.len()), columns).unwrap_err().to_string();
    assert_eq!(bad(vec![vec![1.0, f64::NAN, 2.0]]), "row 2: c0 is not finite");
    assert!(bad(vec![vec![1.0, 1.0, 1.0]]).contains("all values of c0 are 1"));
    assert!(bad(vec![vec![1.0, 2.0]]).contains("too few"));
    let data = || Observations::new(names(1), vec![vec![1.0, 2.0, 4.0]]).unwrap();
    let none = MixtureSettings { max_components: 0, ..MixtureSettings::default() };
    assert!(Mixture::new(data(), none).unwrap_err().to_string().contains("at least 1"));
    let mean = vec![crate::prior::Normal(0.0, 1.0).into(); 2];
    let prior = MixturePriors { mean, ..MixturePriors::rg97() };
    let settings = MixtureSettings { prior, ..MixtureSettings::default() };
    assert!(Mixture::new(data(), settings).unwrap_err().to_string().contains("2 priors of the mean for 1 columns"));
}

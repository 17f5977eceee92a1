//! Targets that are not Gaussian, with evidences by quadrature.

use std::sync::Arc;

use vti::device::Cpu;
use vti::family::{FamilySettings, FlowKind};
use vti::problem::{self, Problem};
use vti::space::{Catalogue, OneOf};

use crate::problems::{log_mean_exp, normalise};
use crate::{assert_corrected, check_with, distance, distributions, train};

/// A banana in two dimensions, two modes in one, and nothing at all.
fn log_density(model: &[u16], theta: &[f64], gradient: &mut [f64]) -> f64 {
    match model[0] {
        0 => {
            let (x, y) = (theta[0], theta[1]);
            let bend = y - 0.5 * x * x + 1.0;
            gradient[0] = -x / 2.0 + bend * x / 0.4;
            gradient[1] = -bend / 0.4;
            -x * x / 4.0 - bend * bend / 0.8
        }
        1 => {
            let part = |weight: f64, center: f64, sd: f64| {
                let e = (theta[0] - center) / sd;
                (weight * (-0.5 * e * e).exp(), -e / sd)
            };
            let ((a, da), (b, db)) = (part(1.0, -1.0, 0.6), part(2.0, 1.2, 0.5));
            gradient[0] = (a * da + b * db) / (a + b);
            (a + b).ln()
        }
        _ => 1.2,
    }
}

/// Log evidences by sums over fine grids, which are exact to many digits for smooth densities that vanish at the edges.
fn quadrature() -> Vec<f64> {
    let grid = |from: f64, to: f64, n: usize| (0..=n).map(move |i| from + (to - from) * i as f64 / n as f64);
    let value = |model: u16, theta: &[f64]| log_density(&[model], theta, &mut vec![0.0; theta.len()]).exp();
    let banana: f64 = grid(-9.0, 9.0, 900)
        .map(|x| grid(-8.0, 45.0, 2650).map(|y| value(0, &[x, y])).sum::<f64>() * 0.02 * 0.02)
        .sum();
    let modes: f64 = grid(-6.0, 6.0, 1200).map(|x| value(1, &[x])).sum::<f64>() * 0.01;
    vec![banana.ln(), modes.ln(), 1.2]
}

#[test]
fn a_banana_and_two_modes() {
    let problem = Arc::new(problem::from_fn(OneOf::with_dims(&[2, 1, 0]).unwrap(), log_density));
    let evidences = quadrature();
    // The banana's own normaliser is known: ∫ exp(−x²/4) dx ∫ exp(−b²/0.8) db.
    let exact = (4.0 * std::f64::consts::PI).sqrt() * (0.8 * std::f64::consts::PI).sqrt();
    assert!((evidences[0] - exact.ln()).abs() < 1e-6);
    let (probabilities, log_evidence) = (normalise(&evidences), log_mean_exp(&evidences));
    let catalogue = Catalogue::new(problem.space(), 10).unwrap();
    let device = Cpu::<f32>::new(2).unwrap();
    for (name, models) in distributions(&*problem) {
        let flow = FlowKind::Spline { layers: 3, blocks: 1, hidden: 32 };
        let family = FamilySettings { models, flow, ..FamilySettings::default() };
        let posterior = train(&problem, &device, &family, 1200, 512);
        let distance = distance(&posterior, &catalogue, &probabilities);
        assert!(distance < 0.02, "{name}: q(m) is off by {distance}");
        let check = check_with(&posterior, 10_000);
        assert_corrected(name, &check, &catalogue, &probabilities, 3);
        let (value, se) = (check.log_evidence.value, check.log_evidence.se);
        assert!((value - log_evidence).abs() < 3.0 * se + 1e-3, "{name}: {value} ± {se}, truth {log_evidence}");
    }
}

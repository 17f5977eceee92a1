//! Modes where the answer is known, and the order of parent sets on simulated data.

use std::f64::consts::TAU;

use super::*;
use crate::problem::dag::MlpLikelihood;

/// Three causes and their effect by the paper's process (appendix G.1, "Data generating process"): a hidden layer whose weights
/// are uniform on ±[0.3, 0.7], noise of standard deviation 1. Node 3 depends on nodes 0 and 1, not on 2.
fn simulate(rows: usize, hidden: usize) -> Vec<Vec<f64>> {
    let mut stream = Stream::new(11, Purpose::Simulate, 0, 0);
    let mut columns: Vec<Vec<f64>> = (0..3).map(|_| (0..rows).map(|_| stream.normal()).collect()).collect();
    let mut weight = || (0.3 + 0.4 * stream.uniform()) * if stream.uniform() < 0.5 { -1.0 } else { 1.0 };
    let units: Vec<[f64; 3]> = (0..hidden).map(|_| [weight(), weight(), weight()]).collect();
    let mean = |row: usize| -> f64 {
        units.iter().map(|[w2, a, b]| w2 * (a * columns[0][row] + b * columns[1][row]).max(0.0)).sum()
    };
    let effect = (0..rows).map(|row| mean(row) + stream.normal()).collect();
    columns.push(effect);
    columns
}

const STARTS: [Start<'_>; 3] = [Start::Random(0), Start::Random(1), Start::Random(2)];

#[test]
fn without_parents_the_bound_is_the_evidence() {
    let columns = simulate(200, 5);
    let squares: f64 = columns[3].iter().map(|x| x * x).sum();
    let log_likelihood = |sigma: f64| -100.0 * (TAU * sigma * sigma).ln() - 0.5 * squares / (sigma * sigma);

    let likelihood = MlpLikelihood::<f64>::new(&columns, 5, false, Some(0.9));
    let field = MeanField::new(&likelihood, 1.0);
    let fit = field.fit(&mut field.scratch(), 3, 0, &STARTS).unwrap();
    assert!(fit.location.is_empty() && (fit.lower_bound - log_likelihood(0.9)).abs() < 1e-9);

    let likelihood = MlpLikelihood::<f64>::new(&columns, 5, false, None);
    let field = MeanField::new(&likelihood, 1.0);
    let fit = field.fit(&mut field.scratch(), 3, 0, &STARTS).unwrap();
    // The evidence by the trapezoidal rule in u = log σ, far beyond the fit on both sides.
    let (step, top) = (1e-3, log_likelihood(fit.location[0].exp()));
    let density = |u: f64| (log_likelihood(u.exp()) - 0.5 * u * u - 0.5 * TAU.ln() - top).exp();
    let sum: f64 = (-600..=600).map(|i| density(fit.location[0] + step * f64::from(i))).sum();
    let evidence = top + (step * sum).ln();
    // Of 200 rows the posterior of log σ is nearly normal.
    assert!(fit.lower_bound <= evidence && fit.lower_bound > evidence - 0.01, "{} {evidence}", fit.lower_bound);
}

#[test]
fn a_peak_is_where_nothing_rises() {
    let columns = simulate(300, 5);
    for (bias, sigma) in [(false, Some(1.0)), (true, None)] {
        let likelihood = MlpLikelihood::<f64>::new(&columns, 5, bias, sigma);
        let field = MeanField::new(&likelihood, 1.0);
        let mut scratch = field.scratch();
        let fit = field.fit(&mut scratch, 3, 0b011, &STARTS).unwrap();
        assert_eq!(field.fit(&mut field.scratch(), 3, 0b011, &STARTS).unwrap(), fit);
        let q: Vec<f64> = fit.location.iter().copied().chain(fit.precision.iter().map(|p| -0.5 * p.ln())).collect();
        let mut gradient = vec![0.0; q.len()];
        let bound = field.lower_bound(&mut scratch, 3, 0b011, &q, &mut gradient);
        assert!((bound - fit.lower_bound).abs() < 1e-6);
        // What a step of the natural gradient promises, in nats.
        let dim = q.len() / 2;
        let promise: f64 =
            (0..dim).map(|i| gradient[i].powi(2) / fit.precision[i] + 0.5 * gradient[dim + i].powi(2)).sum();
        assert!(0.5 * promise < 0.05, "{promise}");
    }
}

#[test]
fn true_parents_have_the_highest_bound() {
    let columns = simulate(1000, 5);
    let likelihood = MlpLikelihood::<f32>::new(&columns, 5, false, Some(1.0));
    let field = MeanField::new(&likelihood, 1.0);
    let mut scratch = field.scratch();
    let bounds: Vec<f64> =
        (0..8).map(|parents| field.fit(&mut scratch, 3, parents, &STARTS).unwrap().lower_bound).collect();
    for (parents, bound) in bounds.iter().enumerate().filter(|(parents, _)| *parents != 0b011) {
        assert!(*bound < bounds[0b011] - 3.0, "{parents:b}: {bounds:?}");
    }
}

#[test]
fn what_was_found_is_a_start_for_other_parents() {
    let columns = simulate(1000, 5);
    let likelihood = MlpLikelihood::<f32>::new(&columns, 5, true, None);
    let field = MeanField::new(&likelihood, 1.0);
    let mut scratch = field.scratch();
    let of_true = field.fit(&mut scratch, 3, 0b011, &STARTS).unwrap();
    let near = |parents: u64| [Start::Near { parents: 0b011, fit: &of_true }, Start::Random(parents)];
    // Nothing is lost where parents stay; others lead to about what random starts find.
    let again = field.fit(&mut scratch, 3, 0b011, &near(0b011)[..1]).unwrap();
    assert!(again.lower_bound > of_true.lower_bound - 1e-3);
    for parents in [0b111, 0b010, 0b110] {
        let found = field.fit(&mut scratch, 3, parents, &near(parents)[..1]).unwrap();
        let random = field.fit(&mut scratch, 3, parents, &STARTS).unwrap();
        assert!((found.lower_bound - random.lower_bound).abs() < 3.0, "{parents:b}: {found:?} {random:?}");
    }
    assert!(field.fit(&mut scratch, 3, 0b011, &[]).is_none());
}

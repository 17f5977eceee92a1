//! The closed form against draws, its limit, and finite differences.

use super::*;
use crate::random::{Purpose, Stream};
use crate::simd::Instructions;

/// Standard normal data of four nodes; independent normal parameters of a node with the others as parents.
struct Case {
    likelihood: MlpLikelihood<f64>,
    columns: Vec<Vec<f64>>,
    hidden: usize,
    bias: bool,
    sigma: Option<f64>,
    parents: u64,
    /// Means and logarithms of standard deviations.
    q: Vec<f64>,
}

const NODE: usize = 1;
const WEIGHT_SCALE: f64 = 0.8;

impl Case {
    fn new(rows: usize, parents: u64, hidden: usize, bias: bool, sigma: Option<f64>) -> Self {
        let mut stream = Stream::new(parents, Purpose::Other(0), hidden as u64, u64::from(bias));
        let columns: Vec<Vec<f64>> = (0..4).map(|_| (0..rows).map(|_| stream.normal()).collect()).collect();
        let likelihood = MlpLikelihood::new(&columns, hidden, bias, sigma);
        let dim = likelihood.dim(parents.count_ones() as usize);
        let means: Vec<f64> = (0..dim).map(|_| 0.7 * stream.normal()).collect();
        let q = means.into_iter().chain((0..dim).map(|_| -1.0 + 0.5 * stream.normal())).collect();
        Self { likelihood, columns, hidden, bias, sigma, parents, q }
    }

    fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for parents in [0b0000, 0b0001, 0b1001, 0b1101] {
            for (hidden, bias, sigma) in
                [(1, true, Some(0.9)), (5, false, None), (7, true, None), (10, false, Some(1.2))]
            {
                cases.push(Self::new(37, parents, hidden, bias, sigma));
            }
        }
        cases
    }

    fn bound(&self, q: &[f64]) -> (f64, Vec<f64>) {
        let field = MeanField::new(&self.likelihood, WEIGHT_SCALE);
        let mut gradient = vec![3.0; q.len()];
        (field.lower_bound(&mut field.scratch(), NODE, self.parents, q, &mut gradient), gradient)
    }

    /// `log p(x_j, θ_j | x_pa)` at free parameters, by the likelihood's kernel.
    fn log_density(&self, free: &[f64]) -> f64 {
        let mut theta = free.to_vec();
        let prior = |x: f64, scale: f64| -0.5 * (x / scale).powi(2) - (scale * TAU.sqrt()).ln();
        let mut log_prior = 0.0;
        for (i, theta) in theta.iter_mut().enumerate() {
            let scale = self.sigma.is_none() && i == 0;
            log_prior += prior(*theta, if scale { 1.0 } else { WEIGHT_SCALE });
            if scale {
                *theta = theta.exp();
            }
        }
        let mut gradient = vec![0.0; theta.len()];
        let likelihood = &self.likelihood;
        log_prior + likelihood.node(&mut likelihood.scratch(), NODE, self.parents, &theta, &mut gradient)
    }

    fn log_q(&self, free: &[f64]) -> f64 {
        let (mean, log_scale) = self.q.split_at(free.len());
        let terms = free.iter().zip(mean).zip(log_scale);
        terms.map(|((x, m), l)| -0.5 * ((x - m) / l.exp()).powi(2) - l - 0.5 * TAU.ln()).sum()
    }
}

#[test]
fn the_normal_distribution_function_is_accurate() {
    // By Simpson's rule from 0 on.
    for i in -60..=60 {
        let x = 0.1 * f64::from(i);
        let density = |x: f64| (-0.5 * x * x).exp() / TAU.sqrt();
        let steps = 200;
        let h = x / f64::from(steps);
        let weight = |k: i32| if k == 0 || k == steps { 1.0 } else { 2.0 + 2.0 * f64::from(k % 2) };
        let truth = 0.5 + h / 3.0 * (0..=steps).map(|k| weight(k) * density(h * f64::from(k))).sum::<f64>();
        assert!((normal(x).0 - truth).abs() < 1e-7 && (normal(x).1 - density(x)).abs() < 1e-12, "{x}");
        assert!((normal(x as f32).0.to_f64() - truth).abs() < 3e-7, "{x}");
    }
}

/// Whatever is multiplied with them, no result is a denormal number: such rows would take most of the time.
#[test]
fn far_out_there_is_nothing() {
    for x in [7.0_f32, 9.0, 13.5, 14.2, 1e3, 1e30, f32::INFINITY] {
        assert_eq!((normal(x), normal(-x)), ((1.0, 0.0), (0.0, 0.0)), "{x}");
    }
    let (cumulative, density) = normal(-6.999_f32);
    assert!((cumulative * cumulative).is_normal() && (density * density).is_normal());
}

#[test]
fn the_closed_form_is_what_draws_say() {
    for (number, case) in (0..).zip(Case::all()) {
        let (bound, _) = case.bound(&case.q);
        let (mean, log_scale) = case.q.split_at(case.q.len() / 2);
        let mut stream = Stream::new(5, Purpose::Other(1), number, 0);
        let draws: Vec<f64> = (0..4000)
            .map(|_| {
                let free: Vec<f64> = mean.iter().zip(log_scale).map(|(m, l)| m + l.exp() * stream.normal()).collect();
                case.log_density(&free) - case.log_q(&free)
            })
            .collect();
        let n = draws.len() as f64;
        let average = draws.iter().sum::<f64>() / n;
        let error = (draws.iter().map(|x| (x - average).powi(2)).sum::<f64>() / n / n).sqrt();
        assert!((bound - average).abs() < 4.5 * error + 1e-9, "{number}: {bound} {average} ± {error}");
    }
}

#[test]
fn certain_parameters_leave_the_density() {
    for case in Case::all() {
        let dim = case.q.len() / 2;
        let log_scale = -9.0;
        let q: Vec<f64> = case.q[..dim].iter().copied().chain((0..dim).map(|_| log_scale)).collect();
        let entropy = dim as f64 * (log_scale + 0.5 * (TAU.ln() + 1.0));
        let expected = case.log_density(&case.q[..dim]) + entropy;
        let (bound, _) = case.bound(&q);
        assert!((bound - expected).abs() < 1e-4 * (1.0 + expected.abs()), "{bound} {expected}");
    }
}

#[test]
fn the_gradient_is_that_of_the_value() {
    for case in Case::all() {
        let (_, gradient) = case.bound(&case.q);
        for (i, found) in gradient.iter().enumerate() {
            let step = 1e-4;
            let mut moved = case.q.clone();
            moved[i] += step;
            let above = case.bound(&moved).0;
            moved[i] = case.q[i] - step;
            let expected = (above - case.bound(&moved).0) / (2.0 * step);
            assert!((found - expected).abs() < 1e-3 * (1.0 + found.abs()), "{i}: {found} {expected}");
        }
    }
}

#[test]
fn instructions_precisions_and_rows_agree() {
    for rows in [1, 16, 100, 1500] {
        for (hidden, bias) in [(1, true), (10, false), (17, true)] {
            let case = Case::new(rows, 0b1101, hidden, bias, None);
            let (bound, gradient) = case.bound(&case.q);
            for instructions in Instructions::available() {
                let single = MlpLikelihood::<f32>::new(&case.columns, case.hidden, case.bias, case.sigma);
                let double = MlpLikelihood::<f64>::new(&case.columns, case.hidden, case.bias, case.sigma);
                let (single, double) = (single.with_instructions(instructions), double.with_instructions(instructions));
                agree(&single, &case, bound, &gradient, 1e-5);
                agree(&double, &case, bound, &gradient, 1e-12);
            }
        }
    }
}

/// Twice with one memory, so that what one evaluation leaves there would show in the next.
fn agree<T: Real>(likelihood: &MlpLikelihood<T>, case: &Case, bound: f64, gradient: &[f64], tolerance: f64) {
    let field = MeanField::new(likelihood, WEIGHT_SCALE);
    let mut scratch = field.scratch();
    let largest = gradient.iter().fold(1.0, |largest: f64, x| largest.max(x.abs()));
    for _ in 0..2 {
        let mut found = vec![0.0; gradient.len()];
        let value = field.lower_bound(&mut scratch, NODE, case.parents, &case.q, &mut found);
        assert!((value - bound).abs() < tolerance * bound.abs(), "{value} {bound}");
        for (found, expected) in found.iter().zip(gradient) {
            assert!((found - expected).abs() < tolerance * largest, "{found} {expected}");
        }
    }
}

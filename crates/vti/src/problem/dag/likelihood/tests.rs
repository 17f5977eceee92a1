//! The kernel against the formula, written as one would read it.

use super::*;
use crate::random::{Purpose, Stream};

/// Standard normal data and parameters (σ about 1), so that about half of the hidden units are on.
struct Case {
    columns: Vec<Vec<f64>>,
    hidden: usize,
    bias: bool,
    sigma: Option<f64>,
    node: usize,
    parents: u64,
    theta: Vec<f64>,
}

impl Case {
    fn new(rows: usize, parents: usize, hidden: usize, bias: bool, sigma: Option<f64>) -> Self {
        let key = (rows * 1000 + parents * 100 + hidden) as u64;
        let mut stream = Stream::new(key, Purpose::Other(0), u64::from(bias), u64::from(sigma.is_none()));
        let columns = (0..10).map(|_| (0..rows).map(|_| stream.normal()).collect()).collect();
        let node = stream.below(10) as usize;
        let mut set = 0u64;
        while (set.count_ones() as usize) < parents {
            set |= 1 << stream.below(10) & !(1 << node);
        }
        let mean = if parents > 0 { hidden * (parents + 1) + if bias { hidden + 1 } else { 0 } } else { 0 };
        let scale = sigma.is_none().then(|| 0.5 + stream.uniform());
        let theta: Vec<f64> = scale.into_iter().chain((0..mean).map(|_| stream.normal())).collect();
        Self { columns, hidden, bias, sigma, node, parents: set, theta }
    }

    fn kernel<T: Real>(&self) -> MlpLikelihood<T> {
        MlpLikelihood::new(&self.columns, self.hidden, self.bias, self.sigma)
    }

    fn value<T: Real>(&self, kernel: &MlpLikelihood<T>, theta: &[f64]) -> (f64, Vec<f64>) {
        let mut gradient = vec![0.0; theta.len()];
        let value = kernel.node(&mut kernel.scratch(), self.node, self.parents, theta, &mut gradient);
        (value, gradient)
    }

    /// Row by row and unit by unit. For each place of the gradient also the sum of the sizes of what was added up: what
    /// rounding is relative to.
    fn naive(&self) -> (f64, Vec<f64>, Vec<f64>) {
        let Self { columns, hidden, bias, sigma, node, parents, theta } = self;
        let parents: Vec<usize> = (0..10).filter(|i| parents >> i & 1 == 1).collect();
        let mut place = 0;
        let mut take = |count: usize| {
            place += count;
            place - count
        };
        let scale = take(usize::from(sigma.is_none()));
        let s = sigma.unwrap_or_else(|| theta[scale]);
        let with_bias = *bias && !parents.is_empty();
        let b1 = take(if with_bias { *hidden } else { 0 });
        let w2 = take(if parents.is_empty() { 0 } else { *hidden });
        let b2 = take(usize::from(with_bias));
        let w1 = take(parents.len() * hidden);
        let (mut value, mut gradient, mut sizes) = (0.0, vec![0.0; theta.len()], vec![0.0; theta.len()]);
        for (row, &observed) in columns[*node].iter().enumerate() {
            let mut mean = if with_bias { theta[b2] } else { 0.0 };
            let mut units = vec![0.0; if parents.is_empty() { 0 } else { *hidden }];
            for (h, unit) in units.iter_mut().enumerate() {
                let sum: f64 =
                    parents.iter().enumerate().map(|(p, &i)| theta[w1 + p * hidden + h] * columns[i][row]).sum();
                *unit = (sum + if with_bias { theta[b1 + h] } else { 0.0 }).max(0.0);
                mean += theta[w2 + h] * *unit;
            }
            let r = observed - mean;
            value += -0.5 * (TAU * s * s).ln() - 0.5 * r * r / (s * s);
            let mut add = |place: usize, x: f64| {
                gradient[place] += x;
                sizes[place] += x.abs();
            };
            if sigma.is_none() {
                add(scale, -1.0 / s);
                add(scale, r * r / (s * s * s));
            }
            if with_bias {
                add(b2, r / (s * s));
            }
            for (h, &unit) in units.iter().enumerate() {
                add(w2 + h, r * unit / (s * s));
                if unit > 0.0 {
                    let back = r * theta[w2 + h] / (s * s);
                    if with_bias {
                        add(b1 + h, back);
                    }
                    parents.iter().enumerate().for_each(|(p, &i)| add(w1 + p * hidden + h, back * columns[i][row]));
                }
            }
        }
        (value, gradient, sizes)
    }
}

/// Every number of parents, hidden unit and option that is treated apart, and rows that fill blocks and panels or do not.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for parents in 0..=9 {
        for hidden in [1, 5, 10, 17] {
            for (bias, sigma) in [(false, Some(0.7)), (true, None)] {
                cases.push(Case::new(150 + 7 * parents, parents, hidden, bias, sigma));
            }
        }
    }
    for rows in [0, 1, 63, 64, 1024, 2500] {
        cases.push(Case::new(rows, 3, 10, true, Some(1.3)));
        cases.push(Case::new(rows, 3, 100, false, None));
    }
    cases
}

fn agrees<T: Real>(case: &Case, kernel: &MlpLikelihood<T>, tolerance: f64) {
    let (value, gradient) = case.value(kernel, &case.theta);
    let (truth, slope, sizes) = case.naive();
    assert!((value - truth).abs() <= tolerance * (1.0 + truth.abs()), "{value} {truth}");
    for (i, (found, expected)) in gradient.iter().zip(&slope).enumerate() {
        assert!((found - expected).abs() <= tolerance * (1.0 + sizes[i]), "{i}: {found} {expected}");
    }
}

#[test]
fn the_kernel_is_the_formula() {
    for case in cases() {
        for instructions in Instructions::available() {
            agrees(&case, &case.kernel::<f64>().with_instructions(instructions), 1e-12);
            agrees(&case, &case.kernel::<f32>().with_instructions(instructions), 2e-5);
        }
    }
}

#[test]
fn the_gradient_is_that_of_the_value() {
    for case in cases().iter().filter(|case| case.columns[0].len() < 300) {
        let kernel = case.kernel::<f64>();
        let (_, gradient) = case.value(&kernel, &case.theta);
        for (i, found) in gradient.iter().enumerate() {
            // So short a step turns hardly any unit on or off; where it does the difference is of its order.
            let step = 1e-7;
            let mut moved = case.theta.clone();
            moved[i] += step;
            let above = case.value(&kernel, &moved).0;
            moved[i] = case.theta[i] - step;
            let below = case.value(&kernel, &moved).0;
            let expected = (above - below) / (2.0 * step);
            assert!((found - expected).abs() < 1e-3 * (1.0 + found.abs()), "{i}: {found} {expected}");
        }
    }
}

#[test]
fn memory_of_one_evaluation_does_not_show_in_the_next() {
    let cases: Vec<Case> = [9, 0, 1, 5].map(|parents| Case::new(200, parents, 10, true, None)).into();
    let kernel = cases[0].kernel::<f32>();
    let mut scratch = kernel.scratch();
    for case in &cases {
        let mut fresh = vec![0.0; case.theta.len()];
        let mut used = vec![7.0; case.theta.len()];
        let node = |scratch: &mut Scratch<f32>, gradient: &mut [f64]| {
            kernel.node(scratch, case.node, case.parents, &case.theta, gradient)
        };
        assert_eq!(node(&mut kernel.scratch(), &mut fresh), node(&mut scratch, &mut used));
        assert_eq!(fresh, used);
    }
}

#[test]
fn parameters_that_are_no_numbers_give_no_number() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
        for parents in [0, 1, 4] {
            let case = Case::new(100, parents, 10, true, None);
            let kernel = case.kernel::<f32>();
            for i in 0..case.theta.len() {
                // A finite number may make the likelihood very small; a large scale is no harm.
                if bad == 1e300 && i == 0 {
                    continue;
                }
                let mut theta = case.theta.clone();
                theta[i] = bad;
                let (value, _) = case.value(&kernel, &theta);
                assert!(!value.is_finite(), "{bad} at {i}: {value}");
            }
        }
    }
}

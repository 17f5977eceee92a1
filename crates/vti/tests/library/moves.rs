//! Moves that change one component at a time, against sums in closed form.

use vti::prior::{CountPrior, LogNormal, Normal};
use vti::problem::components::{ByParts, ComponentLikelihood, Draw, components_with};
use vti::problem::{BlockPool, DensityError, MoveSettings, Problem};
use vti::random::{Purpose, Stream};
use vti::space::Components;

/// Each component multiplies the likelihood by `w exp(−½ ((z − ½)/s)²)`, and the parameter that all models have by the like.
#[derive(Debug)]
struct Product;

const WIDTH: f64 = 0.4;

fn log_factor(z: f64) -> f64 {
    -0.5 * ((z - 0.5) / WIDTH).powi(2)
}

/// `log ∫ N(z; 0, 1) exp(−½ ((z − ½)/s)²) dz`.
fn log_integral() -> f64 {
    (WIDTH / f64::hypot(1.0, WIDTH)).ln() - 0.125 / (1.0 + WIDTH * WIDTH)
}

impl ComponentLikelihood for Product {
    fn log_likelihood(&self, draw: &Draw<'_>) -> Result<f64, DensityError> {
        let blocks: f64 = draw.block("part").iter().map(|block| log_factor(block[0]) + block[2].ln()).sum();
        Ok(blocks + log_factor(draw.global("level")))
    }

    fn by_parts(&self) -> Option<&dyn ByParts> {
        Some(self)
    }
}

impl ByParts for Product {
    fn part_len(&self) -> usize {
        1
    }

    fn part(&self, _: &[f64], block: &[f64], to: &mut [f64]) {
        to[0] = log_factor(block[0]);
    }

    fn is_global(&self) -> bool {
        false
    }

    fn whole(&self, theta: &[f64], parts: &[f64]) -> f64 {
        let shares = theta[1..].iter().skip(2).step_by(3);
        parts.iter().sum::<f64>() + shares.map(|share| share.ln()).sum::<f64>() + log_factor(theta[0])
    }
}

fn ln_factorials(a: f64, k: usize) -> f64 {
    (0..k).map(|i| (a + i as f64).ln()).sum()
}

/// Numbers of components have the posterior that sums in closed form give: with Dirichlet(a) shares
/// `E[∏ w] = aᵏ Γ(k a)/Γ(k a + k)`, and every component has the same integral.
#[test]
fn moves_of_single_components_leave_the_posterior_as_it_is() {
    for (concentration, beta) in [(1.0, 1.0), (1.7, 1.0), (0.8, 0.4), (1.0, 0.0)] {
        let space = Components::new("part", 1..=4)
            .each("at", Normal(0.0, 1.0))
            .ordered()
            .each("size", LogNormal(0.0, 1.0))
            .shares("weight", concentration)
            .with("level", Normal(0.0, 1.0));
        let prior = CountPrior::Weights { weights: vec![1.0, 4.0, 20.0, 120.0] };
        let problem = components_with(space, prior, Product).expect("a space");
        let mut pool = BlockPool::default();
        problem.jumps().expect("jumps").collect(&[1], &[0.0, 0.1, 1.5, 0.4, 0.6, 0.7, 0.6], &mut pool);
        let mut stream = Stream::new(5, Purpose::Other(0), 0, 0);
        let (mut word, mut theta) = (vec![0], vec![0.0, 0.2, 1.0, 1.0]);
        let (batches, each) = (40, 800);
        let mut shares = vec![[0.0; 4]; batches];
        let mut levels = vec![0.0; batches];
        for (batch, level) in shares.iter_mut().zip(&mut levels) {
            for _ in 0..each {
                let settings = MoveSettings { beta, jumps: 4, scans: 1 };
                let moves = problem.moves().expect("moves");
                let moved = moves.walk(&mut word, &mut theta, &pool, &settings, &mut stream);
                let draw = Draw::new(problem.components(), &word, &theta);
                let again = problem.likelihood().log_likelihood(&draw).expect("a likelihood");
                assert!((again - moved.log_likelihood).abs() < 1e-9 * again.abs().max(1.0));
                assert!(theta[1..].chunks(3).is_sorted_by(|a, b| a[0] <= b[0]));
                batch[usize::from(word[0])] += 1.0 / f64::from(each);
                *level += theta[0] / f64::from(each);
            }
        }
        if beta > 0.0 && beta < 1.0 {
            continue;
        }
        let log = |k: usize| {
            let own = k as f64 * (log_integral() + concentration.ln()) - ln_factorials(k as f64 * concentration, k);
            beta * (problem.log_prior(&[(k - 1) as u16]) + own)
        };
        let total = vti::stats::log_sum_exp(&(1..=4).map(log).collect::<Vec<f64>>());
        for k in 1..=4 {
            let expected = (log(k) - total).exp();
            compare(&format!("P({k}), concentration {concentration}, β {beta}"), expected, |b| shares[b][k - 1]);
        }
        // Of a normal prior and a normal likelihood.
        compare(&format!("level, β {beta}"), beta * 0.5 / (1.0 + WIDTH * WIDTH), |b| levels[b]);
    }
}

/// The mean of batches, within four of its standard errors.
fn compare(what: &str, expected: f64, batch: impl Fn(usize) -> f64) {
    let n = 40.0;
    let mean = (0..40).map(&batch).sum::<f64>() / n;
    let variance = (0..40).map(|b| (batch(b) - mean).powi(2)).sum::<f64>() / (n * (n - 1.0));
    let off = (mean - expected) / variance.sqrt();
    assert!(off.abs() < 4.0, "{what}: {mean:.4} instead of {expected:.4}, {off:.1} standard errors");
}

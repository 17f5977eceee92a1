//! Shares that sum to one.

use super::*;
use crate::random::Purpose;
use crate::stats::normal_log_density;

/// Shares of `n` parts from normal numbers.
fn shares(prior: Dirichlet, z: &[f64]) -> Vec<f64> {
    let mut shares = vec![0.0; z.len() + 1];
    prior.from_normal(z, &mut shares);
    shares
}

/// Concentrations, numbers of parts and random z.
fn cases() -> impl Iterator<Item = (Dirichlet, Vec<f64>)> {
    let grid = [0.4, 1.0, 2.5, 30.0].into_iter().flat_map(|a| [1, 2, 3, 6, 12].map(|n| (a, n)));
    grid.flat_map(|(a, n)| {
        (0..5).map(move |row| {
            let mut stream = Stream::new(5, Purpose::Other(1), n as u64, row);
            (Dirichlet(a), (1..n).map(|_| 1.3 * stream.normal()).collect())
        })
    })
}

#[test]
fn to_normal_undoes_from_normal() {
    for (prior, z) in cases() {
        let shares = shares(prior, &z);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-14 && shares.iter().all(|share| *share > 0.0));
        let mut again = vec![0.0; z.len()];
        prior.to_normal(&shares, &mut again);
        assert!(again.iter().zip(&z).all(|(a, b)| (a - b).abs() < 1e-9), "{prior:?} {z:?} {again:?}");
    }
    for bad in [[0.5, 0.6, 0.1], [-0.1, 0.6, 0.5], [f64::NAN, 0.5, 0.5]] {
        let mut z = [0.0; 2];
        Dirichlet(1.0).to_normal(&bad, &mut z);
        assert!(z.iter().all(|z| z.is_nan()) && Dirichlet(1.0).log_density(&bad) == f64::NEG_INFINITY);
    }
    for (a, z) in [(1.0, 35.0), (1.0, -35.0), (0.1, 35.0), (0.1, -35.0), (20.0, -35.0), (20.0, 35.0)] {
        let shares = shares(Dirichlet(a), &[z, z, -z]);
        assert!(shares.iter().all(|share| share.is_finite() && *share >= 0.0), "{a} {z}: {shares:?}");
        let mut by_z = [0.0; 3];
        Dirichlet(a).pull_back(&[z, z, -z], &[1.0, -2.0, 3.0, 0.5], &mut by_z);
        assert!(by_z.iter().all(|value| value.is_finite()), "{a} {z}: {by_z:?}");
    }
    assert!(Dirichlet(0.0).check().is_err() && Dirichlet(f64::NAN).check().is_err() && Dirichlet(2.0).check().is_ok());
}

#[test]
fn the_density_is_that_of_normal_numbers_over_the_jacobian() {
    for (prior, z) in cases() {
        // The first n − 1 shares depend on z in a triangle: the determinant is the product of the diagonal.
        let h = 1e-5;
        let log_jacobian: f64 = (0..z.len())
            .map(|i| {
                let at = |step: f64| {
                    let mut z = z.clone();
                    z[i] += step;
                    shares(prior, &z)[i]
                };
                ((at(h) - at(-h)) / (2.0 * h)).ln()
            })
            .sum();
        let truth = z.iter().map(|z| normal_log_density(*z)).sum::<f64>() - log_jacobian;
        let found = prior.log_density(&shares(prior, &z));
        assert!((found - truth).abs() < 1e-6 * (1.0 + truth.abs()), "{prior:?} {z:?}: {found} {truth}");
    }
    // SciPy.
    assert!((Dirichlet(0.7).log_density(&[0.1, 0.2, 0.3, 0.4]) - 1.282919768349552).abs() < 1e-12);
    assert!((Dirichlet(2.5).log_density(&[0.1, 0.2, 0.7]) - 0.27726870128965864).abs() < 1e-12);
}

#[test]
fn gradients_are_pulled_back() {
    for (prior, z) in cases() {
        // f = Σ wᵢ shareᵢ², so that ∂f/∂shareᵢ = 2 wᵢ shareᵢ.
        let weight = |i: usize| 1.0 + (i as f64 * 1.7).sin();
        let f = |z: &[f64]| -> f64 { shares(prior, z).iter().enumerate().map(|(i, s)| weight(i) * s * s).sum() };
        let by_shares: Vec<f64> =
            shares(prior, &z).iter().enumerate().map(|(i, share)| 2.0 * weight(i) * share).collect();
        let mut by_z = vec![0.0; z.len()];
        prior.pull_back(&z, &by_shares, &mut by_z);
        for i in 0..z.len() {
            let at = |step: f64| {
                let mut z = z.clone();
                z[i] += step;
                f(&z)
            };
            let numeric = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!(
                (by_z[i] - numeric).abs() < 1e-8 * (1.0 + numeric.abs()),
                "{prior:?} {z:?} {i}: {} {numeric}",
                by_z[i]
            );
        }
    }
}

#[test]
fn every_share_has_the_same_moments() {
    let draws = 20_000;
    for a in [0.5, 1.0, 3.0] {
        let (n, mut sums) = (5, [[0.0; 2]; 5]);
        for row in 0..draws {
            let mut stream = Stream::new(8, Purpose::Other(2), 0, row);
            let z: Vec<f64> = (1..n).map(|_| stream.normal()).collect();
            for (sum, share) in sums.iter_mut().zip(shares(Dirichlet(a), &z)) {
                *sum = [sum[0] + share, sum[1] + share * share];
            }
        }
        // Mean 1/n and E share² = (a + 1)/(n (n a + 1)); a share is between 0 and 1, so its standard deviation is below √mean.
        let (n, draws) = (n as f64, draws as f64);
        let (mean, square) = (1.0 / n, (a + 1.0) / (n * (n * a + 1.0)));
        for [one, two] in sums {
            assert!((one / draws - mean).abs() < 5.0 * ((square - mean * mean) / draws).sqrt(), "{a}: {}", one / draws);
            assert!((two / draws - square).abs() < 5.0 * (square / draws).sqrt(), "{a}: {}", two / draws);
        }
    }
}

#[test]
fn running_sums_of_equal_concentration_are_uniform_numbers_in_order() {
    // The first of k uniform numbers is above t with probability (1 − t)ᵏ, the last below t with tᵏ.
    let k = 4;
    let mut stream = Stream::new(9, Purpose::Other(3), 0, 0);
    let draws = 4_000;
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for _ in 0..draws {
        let z: Vec<f64> = (0..k).map(|_| stream.normal()).collect();
        let shares = shares(Dirichlet(1.0), &z);
        first.push(1.0 - (1.0 - shares[0]).powi(k));
        last.push((1.0 - shares[k as usize]).powi(k));
    }
    for mut uniform in [first, last] {
        uniform.sort_by(f64::total_cmp);
        let distance = uniform.iter().enumerate().map(|(i, u)| (u - (i as f64 + 0.5) / f64::from(draws)).abs());
        assert!(crate::stats::kolmogorov_tail(distance.fold(0.0, f64::max), uniform.len()) > 1e-4);
    }
}

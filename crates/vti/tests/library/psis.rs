//! Pareto-smoothed importance sampling against ArviZ, and against what is known of it.
//!
//! `tests/data/psis_by_arviz.json` was written by `bench/peer/psis.py`: log weights, k̂, those smoothing changed, and the log of the
//! smoothed weights' sum.

use serde_json::Value;
use vti::random::{Purpose, Stream};
use vti::stats::{WeightError, effective_draws, fit_generalised_pareto, log_sum_exp, smooth, threshold};

const ZERO: f64 = f64::NEG_INFINITY;

fn stream(test: u32, replicate: u64) -> Stream {
    Stream::new(11, Purpose::Other(test), 0, replicate)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

fn close(found: f64, expected: f64, what: &str) {
    let equal = found == expected || (found - expected).abs() < 1e-9 * (1.0 + expected.abs());
    assert!(equal, "{what}: {found} ≠ {expected}");
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean and five of its standard errors.
fn mean_and_margin(values: &[f64]) -> (f64, f64) {
    let (mean, n) = (mean(values), values.len() as f64);
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, 5.0 * (variance / n).sqrt())
}

/// Log weights u^(−k).
fn pareto(stream: &mut Stream, draws: usize, k: f64) -> Vec<f64> {
    (0..draws).map(|_| -k * (1.0 - stream.uniform()).ln()).collect()
}

#[test]
fn smoothed_weights_agree_with_arviz() {
    let file: Value = serde_json::from_str(include_str!("../data/psis_by_arviz.json")).unwrap();
    for case in file["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let raw: Vec<f64> = case["log_weights"].as_array().unwrap().iter().map(number).collect();
        let mut expected = raw.clone();
        for pair in case["changed"].as_array().unwrap() {
            expected[pair[0].as_u64().unwrap() as usize] = number(&pair[1]);
        }
        let mut found = raw;
        let smoothed = smooth(&mut found).unwrap();
        // ArviZ says +∞ where there is no fit.
        close(smoothed.khat.unwrap_or(f64::INFINITY), number(&case["khat"]), name);
        close(log_sum_exp(&found), number(&case["log_total"]), name);
        if name.starts_with("ties") || name.starts_with("few values") {
            // Which of several equal weights gets which order statistic is nobody's promise.
            found.sort_by(f64::total_cmp);
            expected.sort_by(f64::total_cmp);
        }
        for (place, (found, expected)) in found.iter().zip(&expected).enumerate() {
            // Of weights this is a relative error, whatever the offset.
            let equal = found == expected || (found - expected).abs() < 1e-10;
            assert!(equal, "{name}[{place}]: {found} ≠ {expected}");
        }
    }
}

#[test]
fn shape_of_generalised_pareto_draws_is_found() {
    for (test, k) in [0.1, 0.5, 0.9].into_iter().enumerate() {
        let (n, replicates) = (1000, 200);
        let found: Vec<(f64, f64)> = (0..replicates)
            .map(|replicate| {
                let mut x = pareto(&mut stream(test as u32, replicate), n, k);
                x.iter_mut().for_each(|x| *x = 2.0 * x.exp_m1() / k);
                x.sort_by(f64::total_cmp);
                fit_generalised_pareto(&x).unwrap()
            })
            .collect();
        let (khat, margin) = mean_and_margin(&found.iter().map(|pair| pair.0).collect::<Vec<_>>());
        // Ten pseudo-observations at ½, and a bias of order 1/n.
        let expected = (n as f64 * k + 5.0) / (n as f64 + 10.0);
        assert!((khat - expected).abs() < margin + 3.0 / n as f64, "k = {k}: {khat} ≠ {expected} ± {margin}");
        let (sigma, margin) = mean_and_margin(&found.iter().map(|pair| pair.1).collect::<Vec<_>>());
        assert!((sigma - 2.0).abs() < margin + 10.0 / n as f64, "k = {k}: σ = {sigma} ± {margin}");
    }
}

#[test]
fn shape_of_pareto_weights_is_found() {
    for (test, k) in [0.1, 0.5, 0.9].into_iter().enumerate() {
        let found: Vec<f64> = (0..200)
            .map(|replicate| {
                let mut log_weights = pareto(&mut stream(10 + test as u32, replicate), 4000, k);
                smooth(&mut log_weights).unwrap().khat.unwrap()
            })
            .collect();
        let (khat, margin) = mean_and_margin(&found);
        // Beyond any cutoff a Pareto tail is generalised Pareto with the same k; 190 weights are in the tail.
        let expected = (190.0 * k + 5.0) / 200.0;
        assert!((khat - expected).abs() < margin + 0.01, "k = {k}: {khat} ≠ {expected} ± {margin}");
    }
}

#[test]
fn shape_of_a_narrow_normal_proposal_is_found() {
    // With x = s z, z standard normal, log w = ½ (1 − s²) z² + const, so P(w > t) = P(|z| > √(2 log t / (1 − s²))), which is
    // t^(−1/(1 − s²)) up to a power of log t: k = 1 − s². The logarithm makes k smaller at finite t: by Mills' ratio, at the
    // cutoff |z| = a the local index is k a φ-tail(a)/φ(a) ≈ k (1 − 1/a² + …), 0.89 k at a = 2.6 (1 % of draws), and nearer
    // to k beyond. So k̂ lies between, less Monte Carlo error.
    for (test, s) in [0.5f64, 0.8].into_iter().enumerate() {
        let found: Vec<f64> = (0..20)
            .map(|replicate| {
                let mut stream = stream(20 + test as u32, replicate);
                let z = (0..100_000).map(|_| stream.normal());
                let mut log_weights: Vec<f64> = z.map(|z| 0.5 * (1.0 - s * s) * z * z).collect();
                smooth(&mut log_weights).unwrap().khat.unwrap()
            })
            .collect();
        let (khat, margin) = mean_and_margin(&found);
        let k = 1.0 - s * s;
        assert!(0.86 * k - margin < khat && khat < k + margin, "s = {s}: {khat} ± {margin}, k = {k}");
    }
}

#[test]
fn smoothing_reduces_the_error_of_the_evidence() {
    // Weights u^-0.6 have the mean 2.5 and no variance.
    let (draws, replicates) = (1000, 1000);
    let mut errors = [0.0, 0.0];
    for replicate in 0..replicates {
        let mut log_weights = pareto(&mut stream(30, replicate), draws, 0.6);
        for error in &mut errors {
            *error += (log_sum_exp(&log_weights).exp() / draws as f64 - 2.5).powi(2) / replicates as f64;
            smooth(&mut log_weights).unwrap();
        }
    }
    assert!(errors[1] < 0.8 * errors[0], "mean squared errors {errors:?}");
}

#[test]
fn order_and_bounds_are_kept() {
    for (test, k) in [0.2, 0.7, 1.5].into_iter().enumerate() {
        let raw = pareto(&mut stream(40 + test as u32, 0), 500, k);
        let mut found = raw.clone();
        let smoothed = smooth(&mut found).unwrap();
        assert_eq!(smoothed.tail, 68); // ⌈3√500⌉
        let mut order: Vec<usize> = (0..raw.len()).collect();
        order.sort_by(|&a, &b| raw[a].total_cmp(&raw[b]));
        assert!(order.is_sorted_by(|&a, &b| found[a] <= found[b]));
        let (body, tail) = order.split_at(raw.len() - smoothed.tail);
        assert!(body.iter().all(|&place| found[place].to_bits() == raw[place].to_bits()));
        let (cutoff, most) = (raw[body[body.len() - 1]], raw[order[raw.len() - 1]]);
        assert!(tail.iter().all(|&place| (cutoff..=most).contains(&found[place])));
    }
}

#[test]
fn shape_does_not_depend_on_the_offset_or_the_order() {
    let raw = pareto(&mut stream(50, 0), 1000, 0.6);
    let khat = |mut log_weights: Vec<f64>| smooth(&mut log_weights).unwrap().khat.unwrap();
    let expected = khat(raw.clone());
    for offset in [-1e5, -3.0, 700.0, 1e4] {
        close(khat(raw.iter().map(|raw| raw + offset).collect()), expected, "offset");
    }
    assert_eq!(khat(raw.into_iter().rev().collect()), expected);
}

#[test]
fn equal_weights_are_the_best_case() {
    // Up to rounding of terms in the hundreds.
    let mut stream = stream(60, 0);
    let nearly: Vec<f64> = (0..100).map(|_| 300.0 + (stream.uniform() - 0.5) * 1e-12).collect();
    let mut halved = vec![2.0; 50];
    halved.resize(100, ZERO);
    for raw in [vec![-7.5; 100], nearly, halved] {
        let mut found = raw.clone();
        let smoothed = smooth(&mut found).unwrap();
        assert_eq!((smoothed.khat, smoothed.tail), (Some(ZERO), 0));
        assert!(smoothed.is_reliable(100));
        assert_eq!(found, raw);
    }
}

#[test]
fn too_little_to_fit_is_unknown() {
    let few = pareto(&mut stream(70, 0), 20, 0.1);
    let mut one = vec![-1e4; 100];
    one[3] = 0.0;
    for raw in [vec![], few, one, vec![ZERO; 100]] {
        let mut found = raw.clone();
        let smoothed = smooth(&mut found).unwrap();
        assert_eq!((smoothed.khat, smoothed.tail), (None, 0));
        assert!(!smoothed.is_reliable(raw.len()));
        assert_eq!(found, raw);
    }
}

#[test]
fn numbers_that_are_no_weights_are_refused() {
    for value in [f64::NAN, f64::INFINITY] {
        let mut log_weights = pareto(&mut stream(80, 0), 100, 0.5);
        log_weights[17] = value;
        let before: Vec<u64> = log_weights.iter().map(|w| w.to_bits()).collect();
        let error: WeightError = smooth(&mut log_weights).unwrap_err();
        assert_eq!(error.index, 17);
        assert!(error.to_string().starts_with("log weight 17 is "));
        assert!(log_weights.iter().map(|w| w.to_bits()).eq(before));
    }
}

#[test]
fn fits_refuse_what_is_no_sample() {
    let none: [&[f64]; 6] = [
        &[1.0, 2.0, 3.0, 4.0],
        &[1.0, 3.0, 2.0, 4.0, 5.0],
        &[-1.0, 1.0, 2.0, 3.0, 4.0],
        &[1.0, 2.0, 3.0, 4.0, f64::INFINITY],
        &[1.0, 2.0, f64::NAN, 4.0, 5.0],
        &[0.0; 8],
    ];
    for x in none {
        assert_eq!(fit_generalised_pareto(x), None, "{x:?}");
    }
    // Equal numbers end abruptly: a very light tail.
    assert!(fit_generalised_pareto(&[2.0; 100]).unwrap().0 < -1.0);
    // From the smallest to the largest number there is.
    assert!(fit_generalised_pareto(&[f64::MIN_POSITIVE, 1.0, 2.0, 3.0, f64::MAX]).is_none_or(|(k, _)| k > 1.0));
}

#[test]
fn sums_and_sizes_of_weights() {
    assert_eq!(log_sum_exp(&[]), ZERO);
    assert_eq!(log_sum_exp(&[ZERO, ZERO]), ZERO);
    assert_eq!(log_sum_exp(&[0.0, f64::INFINITY]), f64::INFINITY);
    assert!(log_sum_exp(&[f64::NAN, f64::INFINITY]).is_nan() && log_sum_exp(&[0.0, f64::NAN]).is_nan());
    close(log_sum_exp(&[-1e5, -1e5 + 3f64.ln()]), -1e5 + 4f64.ln(), "log-sum-exp");
    assert_eq!((effective_draws(&[]), effective_draws(&[ZERO])), (0.0, 0.0));
    assert!(effective_draws(&[0.0, f64::NAN]).is_nan() && effective_draws(&[0.0, f64::INFINITY]).is_nan());
    close(effective_draws(&[900.0, 900.0 + 3f64.ln()]), 16.0 / 10.0, "effective draws");
}

#[test]
fn thresholds_grow_with_the_draws() {
    assert_eq!((threshold(0), threshold(1)), (ZERO, ZERO));
    close(threshold(1000), 2.0 / 3.0, "threshold");
    assert!((2..3000).map(threshold).is_sorted());
    assert_eq!(threshold(usize::MAX), 0.7);
}

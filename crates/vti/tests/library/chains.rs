//! Diagnostics of chains against ArviZ, and against the known effective size of autoregressive chains.
//!
//! `tests/data/chains_by_arviz.json` was written by `bench/peer/chains.py`.

use serde_json::Value;
use vti::random::{Purpose, Stream};
use vti::stats::{effective_sample_size, split_rhat, standard_error};

fn slices(chains: &[Vec<f64>]) -> Vec<&[f64]> {
    chains.iter().map(Vec::as_slice).collect()
}

fn autoregressive(stream: &mut Stream, draws: usize, phi: f64) -> Vec<f64> {
    let mut x = stream.normal();
    (0..draws)
        .map(|_| {
            x = phi * x + (1.0 - phi * phi).sqrt() * stream.normal();
            x
        })
        .collect()
}

#[test]
fn diagnostics_agree_with_arviz() {
    let file: Value = serde_json::from_str(include_str!("../data/chains_by_arviz.json")).unwrap();
    for case in file["cases"].as_array().unwrap() {
        let chains: Vec<Vec<f64>> = serde_json::from_value(case["chains"].clone()).unwrap();
        let chains = slices(&chains);
        for (what, found) in [
            ("rhat", split_rhat(&chains).unwrap()),
            ("ess", effective_sample_size(&chains).unwrap()),
            ("mcse", standard_error(&chains).unwrap()),
        ] {
            let expected = &case[what];
            let expected = expected.as_f64().unwrap_or_else(|| expected.as_str().unwrap().parse().unwrap());
            // ArviZ wants two chains for R̂; halves of one are enough for us.
            let agree = found == expected || (found / expected - 1.0).abs() < 1e-9 || expected.is_nan();
            assert!(agree, "{}, {what}: {found} ≠ {expected}", case["name"]);
        }
    }
}

#[test]
fn one_drifting_chain_is_caught() {
    let drifting: Vec<f64> = (0..100).map(f64::from).collect();
    assert!(split_rhat(&[&drifting]).unwrap() > 1.5);
}

#[test]
fn effective_size_of_autoregressive_chains_is_known() {
    for (test, phi) in [0.0f64, 0.5, 0.9].into_iter().enumerate() {
        let (replicates, chains, draws) = (40, 4, 2000);
        let ratios: Vec<f64> = (0..replicates)
            .map(|replicate| {
                let mut stream = Stream::new(5, Purpose::Other(test as u32), 0, replicate);
                let chains: Vec<_> = (0..chains).map(|_| autoregressive(&mut stream, draws, phi)).collect();
                let expected = (chains.len() * draws) as f64 * (1.0 - phi) / (1.0 + phi);
                effective_sample_size(&slices(&chains)).unwrap() / expected
            })
            .collect();
        let mean = ratios.iter().sum::<f64>() / replicates as f64;
        let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (replicates - 1) as f64;
        // Five standard errors, and 4 % for the truncation of the sequence.
        let margin = 5.0 * (variance / replicates as f64).sqrt() + 0.04;
        assert!((mean - 1.0).abs() < margin, "φ = {phi}: {mean} ± {margin}");
    }
}

#[test]
fn standard_errors_cover_the_truth() {
    let replicates = 400;
    let covered = (0..replicates)
        .filter(|&replicate| {
            let mut stream = Stream::new(6, Purpose::Other(9), 0, replicate);
            let chains: Vec<_> = (0..4).map(|_| autoregressive(&mut stream, 500, 0.7)).collect();
            let mean = chains.iter().flatten().sum::<f64>() / 2000.0;
            mean.abs() < 1.96 * standard_error(&slices(&chains)).unwrap()
        })
        .count() as f64;
    // 95 % less a little for the estimated error, ± four standard errors of 1.1 %.
    assert!((0.9..0.995).contains(&(covered / replicates as f64)), "{covered} of {replicates}");
}

#[test]
fn chains_that_say_nothing_give_nothing() {
    let (a, b) = ([0.0, 1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0]);
    let none: [&[&[f64]]; 8] = [
        &[],
        &[&[]],
        &[&a[..3]],
        &[&a, &b],
        &[&b, &[0.0, f64::NAN, 1.0, 0.0]],
        &[&b, &[0.0, f64::INFINITY, 1.0, 0.0]],
        &[&[1.0; 6], &[1.0; 6]],
        &[&[0.1; 7]],
    ];
    for chains in none {
        assert_eq!(split_rhat(chains), None, "{chains:?}");
        assert_eq!(effective_sample_size(chains), None, "{chains:?}");
        assert_eq!(standard_error(chains), None, "{chains:?}");
    }
    // Squares that overflow or vanish.
    assert_eq!(split_rhat(&[&[1e200, -1e200, 1e200, -1e200]]), None);
    assert_eq!(split_rhat(&[&[1e-200, -1e-200, 1e-200, -1e-200]]), None);
    // Halves that stand still at numbers no sum of which is exact.
    assert_eq!(split_rhat(&[&[0.1; 14], &[0.3; 14]]), Some(f64::INFINITY));
}

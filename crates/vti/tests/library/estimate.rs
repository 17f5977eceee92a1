//! Estimates from weighted draws in strata on a problem with a known answer.

use vti::random::{Purpose, Stream};
use vti::stats::{Estimate, EstimateError, Stratum, log_total, ratio, shares};

const ZERO: f64 = f64::NEG_INFINITY;

/// The terms of the total and how many draws each gets.
const TERMS: [(f64, usize); 3] = [(1.0, 60), (3.0, 200), (0.5, 40)];

/// Log-normal weights with mean term/draws in each stratum, and a function of each draw with the normal it came from.
fn draw(replicate: u64) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let mut stream = Stream::new(3, Purpose::Other(0), 0, replicate);
    let s = 0.6;
    TERMS
        .iter()
        .map(|&(term, n)| {
            let normals: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
            let log_weights = normals.iter().map(|z| (term / n as f64).ln() + s * z - 0.5 * s * s).collect();
            (log_weights, normals)
        })
        .unzip()
}

fn strata(log_weights: &[Vec<f64>]) -> Vec<Stratum<'_>> {
    log_weights.iter().map(|log_weights| Stratum::new(log_weights)).collect()
}

/// The share of each stratum.
fn by_stratum(strata: &[Stratum<'_>]) -> Result<Vec<Estimate>, EstimateError> {
    shares(strata, strata.len(), |stratum, _| stratum)
}

/// Estimates of a known number: no bias beyond Monte Carlo error and a second-order term, standard errors of the right size, and
/// 95 % intervals that cover.
fn calibrated(estimates: &[Estimate], truth: f64, second_order: f64, what: &str) {
    let n = estimates.len() as f64;
    let mean = estimates.iter().map(|estimate| estimate.value).sum::<f64>() / n;
    let variance = estimates.iter().map(|estimate| (estimate.value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let margin = 5.0 * (variance / n).sqrt() + second_order;
    assert!((mean - truth).abs() < margin, "{what}: {mean} ≠ {truth} ± {margin}");
    let claimed = estimates.iter().map(|estimate| estimate.se * estimate.se).sum::<f64>() / n;
    // A variance from n replicates has the relative standard error √(2/n); five of them, and 5 % for the delta method.
    let ratio = claimed / variance;
    assert!((ratio - 1.0).abs() < 5.0 * (2.0 / n).sqrt() + 0.05, "{what}: variance claimed ÷ found {ratio}");
    let covered = estimates.iter().filter(|estimate| (estimate.value - truth).abs() < 1.96 * estimate.se).count();
    let covered = covered as f64 / n;
    assert!((0.92..0.97).contains(&covered), "{what}: covered {covered}");
}

#[test]
fn estimates_are_unbiased_and_their_errors_are_honest() {
    let replicates = 2000;
    let (mut totals, mut share, mut means) = (Vec::new(), Vec::new(), Vec::new());
    for replicate in 0..replicates {
        let (log_weights, normals) = draw(replicate);
        let strata = strata(&log_weights);
        let log_z = log_total(&strata).unwrap();
        let z = log_z.value.exp();
        totals.push(Estimate { value: z, se: log_z.se * z });
        share.push(by_stratum(&strata).unwrap()[1]);
        means.push(ratio(&strata, |stratum, draw| normals[stratum][draw]).unwrap());
    }
    calibrated(&totals, 4.5, 0.0, "total");
    // Ratios are biased by about their variance over the total: 0.002 at most here.
    calibrated(&share, 3.0 / 4.5, 0.002, "share");
    // Under weights exp(sz) a standard normal has the mean s.
    calibrated(&means, 0.6, 0.005, "mean");
}

#[test]
fn shares_are_ratios_of_indicators() {
    let (log_weights, _) = draw(0);
    let mut strata = strata(&log_weights);
    strata.push(Stratum::new(&[-0.3]));
    strata.push(Stratum::new(&[]));
    let shares = by_stratum(&strata).unwrap();
    assert_eq!(shares.len(), 5);
    for (stratum, share) in shares.iter().enumerate() {
        let expected = ratio(&strata, |s, _| f64::from(u8::from(s == stratum))).unwrap();
        assert!((share.value - expected.value).abs() < 1e-14 && (share.se - expected.se).abs() < 1e-14);
    }
    assert!((shares.iter().map(|share| share.value).sum::<f64>() - 1.0).abs() < 1e-14);
}

#[test]
fn shares_of_groups_across_strata_are_ratios_of_indicators_too() {
    let (log_weights, _) = draw(2);
    let mut strata = strata(&log_weights);
    strata[1].log_beyond = -1.5;
    // Groups 0 and 1 are mixed in all strata, group 2 is stratum 2 alone, group 3 is empty.
    let group = |stratum: usize, draw: usize| if stratum == 2 { 2 } else { (draw * draw + stratum) % 3 % 2 };
    for (number, share) in shares(&strata, 4, group).unwrap().into_iter().enumerate() {
        let expected = ratio(&strata, |s, d| f64::from(u8::from(group(s, d) == number))).unwrap();
        assert!((share.value - expected.value).abs() < 1e-13, "{number}: {share:?} {expected:?}");
        assert!((share.se - expected.se).abs() < 1e-12, "{number}: {share:?} {expected:?}");
    }
}

#[test]
fn offsets_beyond_exp_change_nothing() {
    let (log_weights, normals) = draw(1);
    let f = |stratum: usize, draw: usize| normals[stratum][draw];
    let near = |a: Estimate, b: Estimate| (a.value - b.value).abs() < 1e-10 && (a.se - b.se).abs() < 1e-10;
    for offset in [-1e4, 1e4] {
        let moved: Vec<Vec<f64>> = log_weights.iter().map(|w| w.iter().map(|w| w + offset).collect()).collect();
        let (here, there) = (strata(&log_weights), strata(&moved));
        let total = log_total(&here).unwrap();
        assert!(near(log_total(&there).unwrap(), Estimate { value: total.value + offset, ..total }));
        assert!(near(ratio(&there, f).unwrap(), ratio(&here, f).unwrap()));
    }
}

#[test]
fn a_single_draw_is_worth_its_own_size() {
    let alone = [Stratum::new(&[2.0])];
    assert_eq!(log_total(&alone).unwrap(), Estimate { value: 2.0, se: 1.0 });
    // But a share of everything is certain given the draws.
    assert_eq!(by_stratum(&alone).unwrap(), [Estimate { value: 1.0, se: 0.0 }]);
    let pair = [Stratum::new(&[0.0]), Stratum::new(&[0.0])];
    let share = by_stratum(&pair).unwrap()[0];
    assert!((share.value - 0.5).abs() < 1e-15 && (share.se - 0.125f64.sqrt()).abs() < 1e-15);
}

#[test]
fn draws_of_weight_zero_count_as_draws() {
    // Half of the draws miss: Z = 2 · 1 of 4 draws, variance 4/3 · Σ(w − ½)² = 4/3.
    let log_weights = [0.0, ZERO, 0.0, ZERO];
    let strata = [Stratum::new(&log_weights)];
    let total = log_total(&strata).unwrap();
    assert!((total.se - (4.0f64 / 3.0).sqrt() / 2.0).abs() < 1e-15);
    // The function is not asked where there is no weight.
    let found = ratio(&strata, |_, draw| if log_weights[draw] == ZERO { f64::NAN } else { 1.0 }).unwrap();
    assert_eq!(found, Estimate { value: 1.0, se: 0.0 });
}

#[test]
fn bad_draws_are_named() {
    let good = Stratum::new(&[0.0, 1.0]);
    let bad = [good, Stratum::new(&[0.0, 0.0, f64::INFINITY])];
    let expected = EstimateError::Weight { stratum: 1, draw: 2, value: f64::INFINITY };
    assert_eq!(log_total(&bad), Err(expected.clone()));
    assert_eq!(by_stratum(&bad), Err(expected.clone()));
    assert_eq!(ratio(&bad, |_, _| 1.0), Err(expected));
    assert!(log_total(&[Stratum::new(&[f64::NAN])]).is_err());
    let error = ratio(&[good], |_, draw| if draw == 1 { f64::INFINITY } else { 0.0 }).unwrap_err();
    assert_eq!(error.to_string(), "stratum 0: the function is inf at draw 1");
    for empty in [&[][..], &[Stratum::new(&[])], &[Stratum::new(&[ZERO])]] {
        assert_eq!(log_total(empty), Err(EstimateError::NoWeight));
        assert_eq!(by_stratum(empty), Err(EstimateError::NoWeight));
    }
}

//! Evidences against sums over all sets of places and integrals over all positions, written down as they are defined.

#![allow(clippy::unwrap_used)]

use super::rows::boundary;
use super::*;
use crate::prior::CountPrior;
use crate::stats::{ln_gamma, log_sum_exp, normal_log_density};

fn workers() -> Workers {
    Workers::new(2).unwrap()
}

fn settings(kind: Kind) -> ChangePointSettings {
    ChangePointSettings { kind, ..ChangePointSettings::default() }
}

/// All sets of `count` numbers from `first..last`.
fn sets(first: usize, last: usize, count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    (first..last)
        .flat_map(|place| sets(place + 1, last, count - 1).into_iter().map(move |rest| [vec![place], rest].concat()))
        .collect()
}

/// The log evidence of rows with noise around lines, from the covariance of all values, by Cholesky.
fn normal_evidence(times: &[f64], values: &[f64], noise: f64, level: (f64, f64), slope: Option<(f64, f64)>) -> f64 {
    let n = values.len();
    let centre = times.iter().sum::<f64>() / n as f64;
    let slope = slope.unwrap_or((0.0, 0.0));
    let mean = |i: usize| level.0 + slope.0 * (times[i] - centre);
    let covariance = |i: usize, j: usize| {
        let own = if i == j { noise * noise } else { 0.0 };
        own + level.1.powi(2) + slope.1.powi(2) * (times[i] - centre) * (times[j] - centre)
    };
    let mut l = vec![vec![0.0; n]; n];
    let (mut log, mut z) = (0.0, vec![0.0; n]);
    for i in 0..n {
        for j in 0..=i {
            let rest: f64 = covariance(i, j) - (0..j).map(|k| l[i][k] * l[j][k]).sum::<f64>();
            l[i][j] = if i == j { rest.sqrt() } else { rest / l[j][j] };
        }
        z[i] = (values[i] - mean(i) - (0..i).map(|k| l[i][k] * z[k]).sum::<f64>()) / l[i][i];
        log += normal_log_density(z[i]) - l[i][i].ln();
    }
    log
}

/// The log evidence of counts as a product of predictive probabilities.
fn count_evidence(values: &[f64], exposure: &[f64], (shape, rate): (f64, f64)) -> f64 {
    let (mut a, mut b, mut log) = (shape, rate, 0.0);
    for (y, e) in values.iter().zip(exposure) {
        log += ln_gamma(a + y) - ln_gamma(a) - ln_gamma(y + 1.0) + a * (b / (b + e)).ln() + y * (e / (b + e)).ln();
        a += y;
        b += e;
    }
    log
}

/// Evidences of 0, 1, … changes by sums over all allowed sets, and the expected changes between rows.
fn brute_force(
    rows: usize,
    most: usize,
    allowed: &dyn Fn(usize, usize) -> bool,
    evidence: &dyn Fn(usize, usize) -> f64,
) -> Vec<(f64, Vec<f64>)> {
    (0..=most)
        .map(|changes| {
            let segments = |set: &Vec<usize>| -> Vec<(usize, usize)> {
                let starts = std::iter::once(0).chain(set.iter().copied());
                starts.zip(set.iter().copied().chain([rows])).collect()
            };
            let fine = |set: &Vec<usize>| segments(set).into_iter().all(|(from, to)| allowed(from, to));
            let fine: Vec<Vec<usize>> = sets(1, rows, changes).into_iter().filter(fine).collect();
            let logs: Vec<f64> =
                fine.iter().map(|set| segments(set).iter().map(|&(from, to)| evidence(from, to)).sum()).collect();
            let total = log_sum_exp(&logs);
            let mut expected = vec![0.0; rows - 1];
            for (set, log) in fine.iter().zip(&logs) {
                set.iter().for_each(|place| expected[place - 1] += (log - total).exp());
            }
            (total - (fine.len() as f64).ln(), expected)
        })
        .collect()
}

/// A posterior against what was written out in full.
fn compare(problem: &ChangePoints, truth: &[(f64, Vec<f64>)], tolerance: f64) {
    let posterior = problem.posterior(&workers()).unwrap();
    assert_eq!(posterior.log_evidences().len(), truth.len());
    for (found, (log, _)) in posterior.log_evidences().iter().zip(truth) {
        assert!((found - log).abs() < tolerance, "{:?} {truth:?}", posterior.log_evidences());
    }
    let (edges, expected) = posterior.expected();
    assert_eq!(edges.len(), expected.len() + 1);
    for (place, found) in expected.iter().enumerate() {
        let truth: f64 = posterior.probabilities().iter().zip(truth).map(|(p, (_, all))| p * all[place]).sum();
        assert!((found - truth).abs() < tolerance, "{place}: {found} {truth}");
    }
    let mean: f64 = posterior.probabilities().iter().enumerate().map(|(k, p)| k as f64 * p).sum();
    assert!((expected.iter().sum::<f64>() - mean).abs() < tolerance);
}

const VALUES: [f64; 9] = [0.3, -0.2, 0.4, 2.2, 1.9, 2.5, 2.1, -1.0, -0.6];

#[test]
fn counts_by_all_sets_of_places() {
    let values = [1.0, 0.0, 2.0, 7.0, 5.0, 9.0, 1.0, 1.0, 0.0];
    let exposure = [1.0, 2.0, 1.5, 1.0, 0.5, 1.0, 3.0, 1.0, 1.0];
    let prior = SegmentPriors { rate: Some(Prior::Gamma { shape: 1.5, rate: 0.5 }), ..SegmentPriors::default() };
    let (series, _) = Series::rows(&values, None, Some(&exposure)).unwrap();
    let settings = ChangePointSettings { max_changes: Some(3), min_spacing: 2.0, prior, ..settings(Kind::Counts) };
    let problem = ChangePoints::new(series, settings).unwrap();
    let evidence = |from: usize, to: usize| count_evidence(&values[from..to], &exposure[from..to], (1.5, 0.5));
    let truth = brute_force(values.len(), 3, &|from, to| to - from >= 2, &evidence);
    compare(&problem, &truth, 1e-10);
}

#[test]
fn means_and_slopes_by_all_sets_of_places() {
    let times = [0.0, 1.0, 2.5, 3.0, 5.0, 6.0, 6.5, 8.0, 9.0];
    let (level, slope) = ((0.5, 2.0), (0.3, 1.5));
    let normal = |(mean, sd)| Some(Prior::Normal { mean, sd });
    let prior = SegmentPriors { level: normal(level), slope: normal(slope), ..SegmentPriors::default() };
    let (series, _) = Series::rows(&VALUES, Some(&times), None).unwrap();
    for (kind, rows) in [(Kind::Means, 1), (Kind::Slopes, 2)] {
        let noise = Noise::Known { sigma: 0.4 };
        let settings = ChangePointSettings {
            max_changes: Some(3),
            min_spacing: 1.5,
            noise,
            prior: prior.clone(),
            ..settings(kind)
        };
        let problem = ChangePoints::new(series.clone(), settings).unwrap();
        let evidence = |from: usize, to: usize| {
            let slope = (kind == Kind::Slopes).then_some(slope);
            normal_evidence(&times[from..to], &VALUES[from..to], 0.4, level, slope)
        };
        let allowed =
            |from: usize, to: usize| to - from >= rows && boundary(&times, to) - boundary(&times, from) >= 1.5;
        compare(&problem, &brute_force(VALUES.len(), 3, &allowed, &evidence), 1e-9);
    }
}

#[test]
fn unknown_noise_by_a_fine_sum_over_its_logarithm() {
    let (low, high): (f64, f64) = (0.01, 5.0);
    let priors = [Prior::LogUniform { low, high }, Prior::HalfNormal { sd: 1.0 }];
    let (series, _) = Series::rows(&VALUES, None, None).unwrap();
    for noise in priors {
        let level = Some(Prior::Normal { mean: 0.5, sd: 2.0 });
        let prior = SegmentPriors { level, noise: Some(noise.clone()), ..SegmentPriors::default() };
        let settings = ChangePointSettings { max_changes: Some(2), prior, ..settings(Kind::Means) };
        let problem = ChangePoints::new(series.clone(), settings).unwrap();
        let posterior = problem.posterior(&workers()).unwrap();
        let points = 4000;
        let (first, last) = ((1e-5f64).ln(), 20f64.ln());
        let mut logs = vec![Vec::new(); 3];
        for point in 0..points {
            let log_sigma = first + (last - first) * (f64::from(point) + 0.5) / f64::from(points);
            let sigma = log_sigma.exp();
            let weight = noise.log_density(sigma) + log_sigma + ((last - first) / f64::from(points)).ln();
            if weight.is_finite() {
                let evidence = |from: usize, to: usize| {
                    normal_evidence(&[0.0; 9][from..to], &VALUES[from..to], sigma, (0.5, 2.0), None)
                };
                let found = brute_force(VALUES.len(), 2, &|_, _| true, &evidence);
                logs.iter_mut().zip(found).for_each(|(logs, (log, _))| logs.push(log + weight));
            }
        }
        for (found, logs) in posterior.log_evidences().iter().zip(&logs) {
            assert!((found - log_sum_exp(logs)).abs() < 2e-3, "{noise:?}: {found} {}", log_sum_exp(logs));
        }
        let (mean, sd) = posterior.noise().unwrap();
        let draws = posterior.draw(8000, 1, 0, &workers());
        let drawn: Vec<f64> = draws.iter().map(|draw| draw.noise.unwrap()).collect();
        let average = drawn.iter().sum::<f64>() / 8000.0;
        assert!((average - mean).abs() < 5.0 * sd / 8000f64.sqrt(), "{average} {mean} {sd}");
    }
}

/// Tensor quadrature: the middle of many cells between events, for one and two changes.
#[test]
fn events_by_tensor_quadrature() {
    let times = [0.5, 0.9, 1.1, 2.6, 4.0, 4.1, 4.15, 4.6, 4.9];
    let length = 5.0;
    let (shape, rate) = (1.2, 0.8);
    for (spacing, least) in [(2.0, 0.0), (1.0, 0.0), (1.5, 0.0), (2.0, 0.3), (1.0, 0.3)] {
        let prior = SegmentPriors { rate: Some(Prior::Gamma { shape, rate }), ..SegmentPriors::default() };
        let (series, _) = Series::events(&times, Some(0.0), Some(length)).unwrap();
        let settings =
            ChangePointSettings { max_changes: Some(2), min_spacing: least, spacing, prior, ..settings(Kind::Events) };
        let problem = ChangePoints::new(series, settings).unwrap();
        let posterior = problem.posterior(&workers()).unwrap();
        let density = |positions: &[f64]| -> f64 {
            let ends: Vec<f64> = std::iter::once(0.0).chain(positions.iter().copied()).chain([length]).collect();
            let parts = ends.len() as f64 - 1.0;
            let rest = length - parts * least;
            let mut log = ln_gamma(parts * spacing) - parts * ln_gamma(spacing) - positions.len() as f64 * rest.ln();
            for ends in ends.windows(2) {
                let (n, time) =
                    (times.iter().filter(|t| **t > ends[0] && **t <= ends[1]).count() as f64, ends[1] - ends[0]);
                if time < least {
                    return 0.0;
                }
                // A distance of just the least has the density 1 under uniform positions, and 0 otherwise.
                log += if spacing == 1.0 { 0.0 } else { (spacing - 1.0) * ((time - least) / rest).ln() };
                log += shape * rate.ln() - ln_gamma(shape) + ln_gamma(shape + n) - (shape + n) * (rate + time).ln();
            }
            log.exp()
        };
        let cells = 3000;
        let width = length / f64::from(cells);
        let middle = |cell: i32| width * (f64::from(cell) + 0.5);
        let one: f64 = (0..cells).map(|a| density(&[middle(a)])).sum::<f64>() * width;
        let coarse = 1500;
        let wide = length / f64::from(coarse);
        let middle = |cell: i32| wide * (f64::from(cell) + 0.5);
        let two: f64 = (0..coarse)
            .flat_map(|a| (a + 1..coarse).map(move |b| (a, b)))
            .map(|(a, b)| density(&[middle(a), middle(b)]))
            .sum::<f64>()
            * wide
            * wide;
        let found = posterior.log_evidences();
        assert!((found[0] - density(&[]).ln()).abs() < 1e-12);
        // Cells that an event cuts are wrong by a share of their width.
        assert!((found[1] - one.ln()).abs() < 2e-3, "{spacing} {least}: {found:?} {}", one.ln());
        assert!((found[2] - two.ln()).abs() < 6e-3, "{spacing} {least}: {found:?} {}", two.ln());
        let (_, expected) = posterior.expected();
        let mean: f64 = posterior.probabilities().iter().enumerate().map(|(k, p)| k as f64 * p).sum();
        assert!((expected.iter().sum::<f64>() - mean).abs() < 1e-4, "{spacing} {least}");
    }
}

/// The coal-mining disasters with Green's prior: quadrature by an independent program.
#[test]
fn coal_has_its_published_evidences() {
    let table = include_str!("../../../../../data/coal.csv");
    let days = table.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse::<f64>().unwrap());
    let (series, remarks) = Series::events(&days.collect::<Vec<_>>(), Some(1.0), Some(40908.0)).unwrap();
    assert_eq!((series.len(), remarks.len()), (191, 1));
    let prior = SegmentPriors { rate: Some(Prior::Gamma { shape: 1.0, rate: 200.0 }), ..SegmentPriors::default() };
    let problem = ChangePoints::new(series, ChangePointSettings { prior, ..settings(Kind::Events) }).unwrap();
    let posterior = problem.posterior(&workers()).unwrap();
    let truth = [
        -1218.7672, -1188.7052, -1187.6452, -1187.4773, -1187.4261, -1187.5985, -1187.8697, -1188.1777, -1188.4938,
        -1188.8042, -1189.1030,
    ];
    for (found, truth) in posterior.log_evidences().iter().zip(truth) {
        assert!((found - truth).abs() < 6e-5, "{:?}", posterior.log_evidences());
    }
    assert!((posterior.log_evidence() + 1187.7358).abs() < 6e-5);
    let probabilities = [0.05667, 0.24536, 0.29023, 0.22911, 0.11570, 0.04411, 0.01389, 0.00380];
    for (found, truth) in posterior.probabilities()[1..].iter().zip(probabilities) {
        assert!((found - truth).abs() < 6e-6);
    }
    let (edges, expected) = posterior.expected();
    let draws = posterior.draw(4000, 7, 0, &workers());
    let mean: f64 = posterior.probabilities().iter().enumerate().map(|(k, p)| k as f64 * p).sum();
    assert!((expected.iter().sum::<f64>() - mean).abs() < 1e-6);
    // Draws lie where the integrals say, in ten intervals: within five standard errors of a count of about Poisson spread.
    for tenth in 0..10 {
        let (low, high) = (edges[10 * tenth], edges[10 * tenth + 10]);
        let truth: f64 = expected[10 * tenth..][..10].iter().sum();
        let positions = draws.iter().flat_map(|draw| &draw.positions);
        let found = positions.filter(|at| (low..high).contains(*at)).count() as f64 / 4000.0;
        assert!((found - truth).abs() < 5.0 * (truth.max(0.01) / 4000.0).sqrt(), "{tenth}: {found} {truth}");
    }
    assert!(draws.iter().all(|draw| draw.positions.is_sorted() && draw.parameters.len() == draw.positions.len() + 1));
}

/// Exact draws repeat, whatever the number of threads, and their density is the posterior's: with r any density, `r(θ)/p(y, θ)` has
/// the posterior mean 1/p(y).
#[test]
fn draws_come_from_the_density_that_is_said() {
    let (series, _) = Series::rows(&[2.0, 3.0, 1.0, 2.0, 8.0, 9.0, 7.0, 6.0], None, None).unwrap();
    let settings = ChangePointSettings {
        max_changes: Some(1),
        count_prior: CountPrior::Uniform {},
        prior: SegmentPriors { rate: Some(Prior::Gamma { shape: 2.0, rate: 0.5 }), ..SegmentPriors::default() },
        ..settings(Kind::Counts)
    };
    let problem = ChangePoints::new(series, settings).unwrap();
    let posterior = problem.posterior(&workers()).unwrap();
    let draws = posterior.draw(4000, 3, 1, &workers());
    assert_eq!(draws, posterior.draw(4000, 3, 1, &Workers::new(1).unwrap()));
    // r: a little on no change, the rest on the place between rows 4 and 5; rates normal, well within what the rows say.
    let normal = |x: f64, mean: f64, sd: f64| normal_log_density((x - mean) / sd) - sd.ln();
    let ratio = |draw: &ChangeDraw| {
        let log_r = match (&draw.positions[..], &draw.parameters[..]) {
            ([], [rate]) => 0.02f64.ln() + normal(*rate, 4.6, 0.5),
            ([at], [a, b]) if *at == 4.5 => 0.98f64.ln() + normal(*a, 2.1, 0.4) + normal(*b, 7.0, 0.7),
            _ => f64::NEG_INFINITY,
        };
        (log_r - draw.log_target + posterior.log_evidence()).exp()
    };
    let ratios: Vec<f64> = draws.iter().map(ratio).collect();
    let mean = ratios.iter().sum::<f64>() / 4000.0;
    let sd = (ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / 4000.0).sqrt();
    assert!((mean - 1.0).abs() < 5.0 * sd / 4000f64.sqrt() && sd < 3.0, "{mean} {sd}");
}

#[test]
fn simulated_changes_are_found_with_their_noise() {
    let simulated = simulate::simulate(&simulate::SimulateSettings { rows: 600, ..Default::default() }).unwrap();
    let problem = ChangePoints::new(simulated.series, settings(Kind::Means)).unwrap();
    let posterior = problem.posterior(&workers()).unwrap();
    assert!(posterior.probabilities()[3] > 0.5, "{:?}", posterior.probabilities());
    let (mean, sd) = posterior.noise().unwrap();
    assert!((mean - 1.0).abs() < 4.0 * sd, "{mean} {sd}");
    let (edges, expected) = posterior.expected();
    for position in simulated.positions {
        let near: f64 =
            expected.iter().zip(&edges).filter(|(_, at)| (**at - position).abs() < 6.0).map(|(e, _)| e).sum();
        assert!(near > 0.8, "{position}: {near}");
    }
}

#[test]
fn bad_series_and_settings_are_refused_by_name() {
    let text = |error: ChangePointError| error.to_string();
    let series = |values: &[f64]| Series::rows(values, None, None).unwrap().0;
    let refused =
        |series: Series, settings: ChangePointSettings| text(ChangePoints::new(series, settings).unwrap_err());
    let rows = || series(&[1.0, 2.0, 3.0]);
    for (error, part) in [
        (Series::rows(&[1.0, f64::NAN], None, None).unwrap_err().to_string(), "row 2: the value is not finite"),
        (
            Series::rows(&[1.0, 2.0], Some(&[3.0, 3.0]), None).unwrap_err().to_string(),
            "rows 1 and 2 have the same time",
        ),
        (Series::rows(&[1.0], None, None).unwrap_err().to_string(), "1 rows are too few"),
        (Series::rows(&[1.0, 2.0], None, Some(&[1.0, 0.0])).unwrap_err().to_string(), "row 2: the exposure 0"),
        (Series::events(&[], None, None).unwrap_err().to_string(), "0 events are too few"),
        (Series::events(&[1.0, 9.0], Some(2.0), Some(5.0)).unwrap_err().to_string(), "2 events are outside"),
        (Series::events(&[1.0], None, None).unwrap_err().to_string(), "the end must be later"),
        (refused(series(&[1.0, -2.0]), settings(Kind::Counts)), "row 2: -2 is not a count"),
        (refused(series(&[1.0, 1.0]), settings(Kind::Means)), "all values are 1"),
        (
            refused(rows(), ChangePointSettings { max_changes: Some(3), ..settings(Kind::Means) }),
            "3 changes do not fit: there is room for 2 at most between 3 rows",
        ),
        (
            refused(rows(), ChangePointSettings { min_spacing: -1.0, ..settings(Kind::Means) }),
            "min_spacing is -1, it must be 0 or more",
        ),
        (
            refused(rows(), ChangePointSettings { noise: Noise::Known { sigma: 0.0 }, ..settings(Kind::Means) }),
            "noise is 0, it must be positive",
        ),
        (
            refused(
                rows(),
                ChangePointSettings {
                    prior: SegmentPriors { rate: Some(Prior::Uniform { low: 0.0, high: 1.0 }), ..Default::default() },
                    ..settings(Kind::Counts)
                },
            ),
            "the prior of the rate is uniform:0,1, but must be gamma:SHAPE,RATE",
        ),
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let (_, remarks) = Series::events(&[3.0, 1.0, 1.0], Some(0.0), Some(4.0)).unwrap();
    assert!(remarks[0].contains("the first in row 2") && remarks[1].contains("the first at 1"), "{remarks:?}");
    let (sorted, remarks) = Series::rows(&[5.0, 6.0], Some(&[2.0, 1.0]), None).unwrap();
    assert_eq!(sorted, Series::Rows { times: vec![1.0, 2.0], timed: true, values: vec![6.0, 5.0], exposure: vec![] });
    assert!(remarks[0].contains("rows were sorted by time"), "{remarks:?}");
}

/// Student's t errors: evidences of every number of changes by sums over all sets, levels and the scale by fine plain sums.
#[test]
fn robust_means_by_plain_sums() {
    let values = [0.1, -0.3, 0.2, 6.0, 0.0, 2.1, 1.8, 2.3];
    let (series, _) = Series::rows(&values, None, None).unwrap();
    let (df, level, scale) = (3.0, (1.0, 2.0), crate::prior::LogNormal(-1.0, 0.7));
    let prior = SegmentPriors {
        level: Some(Prior::Normal { mean: level.0, sd: level.1 }),
        noise: Some(scale.into()),
        ..SegmentPriors::default()
    };
    let noise = Noise::Robust { df };
    let settings = ChangePointSettings { noise, prior, max_changes: Some(2), ..settings(Kind::Means) };
    let problem = ChangePoints::new(series, settings).unwrap();
    let posterior = problem.posterior(&workers()).unwrap();
    let t = crate::prior::StudentT(df, 0.0, 1.0);
    let segment = |from: usize, to: usize, noise: f64| {
        let nodes = (-1600..1600).map(|node| level.0 + level.1 * f64::from(node) * 0.006_25);
        let each = |mean: f64| {
            let rows = values[from..to].iter().map(|y| t.log_density((y - mean) / noise) - noise.ln());
            normal_log_density((mean - level.0) / level.1) + 0.006_25f64.ln() + rows.sum::<f64>()
        };
        log_sum_exp(&nodes.map(each).collect::<Vec<f64>>())
    };
    let mut by_changes = vec![Vec::new(); 3];
    let step = 0.15;
    for node in -33..=33 {
        let z = f64::from(node) * step;
        let noise = scale.from_normal(z);
        let mut table = vec![vec![0.0; values.len() + 1]; values.len()];
        for (from, row) in table.iter_mut().enumerate() {
            (from + 1..=values.len()).for_each(|to| row[to] = segment(from, to, noise));
        }
        let truth = brute_force(values.len(), 2, &|from, to| from < to, &|from, to| table[from][to]);
        for (logs, (log, _)) in by_changes.iter_mut().zip(truth) {
            logs.push(normal_log_density(z) + f64::ln(step) + log);
        }
    }
    for (changes, logs) in by_changes.iter().enumerate() {
        let (found, expected) = (posterior.log_evidences()[changes], log_sum_exp(logs));
        assert!((found - expected).abs() < 1e-4, "{changes} changes: {found} instead of {expected}");
    }
    // Draws have the density that is said, and the one value that is far off makes no change of its own.
    let draws = posterior.draw(400, 1, 0, &workers());
    let again = |draw: &ChangeDraw| problem.log_joint(&draw.positions, &draw.parameters, draw.noise);
    assert!(draws.iter().all(|draw| draw.log_target.is_finite() && draw.log_target == again(draw)));
    let normal = ChangePointSettings { noise: Noise::Unknown {}, ..problem.settings().clone() };
    let normal = ChangePoints::new(problem.series().clone(), normal).unwrap();
    let normal = normal.posterior(&workers()).unwrap();
    let odds = |posterior: &ChangePosterior<'_>| posterior.probabilities()[1] / posterior.probabilities()[0];
    assert!(odds(&posterior) > odds(&normal));
    let refused = ChangePointSettings { kind: Kind::Slopes, noise, ..ChangePointSettings::default() };
    assert_eq!(ChangePoints::new(problem.series().clone(), refused).unwrap_err(), ChangePointError::RobustSlopes);
}

//! Truths about fits: rows left out by refitting, and data that come from the model or from another one.

use super::*;
use crate::problem::selection::Likelihood;
use crate::stats::normal_cdf;

/// Draws of a slope and a scale, and the covariate.
struct Slope {
    x: Vec<f64>,
    draws: Vec<(f64, f64)>,
}

impl Predict for Slope {
    fn draws(&self) -> usize {
        self.draws.len()
    }

    fn scale(&self, draw: usize) -> f64 {
        self.draws[draw].1
    }

    fn predictors(&self, draw: usize, rows: &[usize], to: &mut [f64]) {
        to.iter_mut().zip(rows).for_each(|(to, &row)| *to = self.draws[draw].0 * self.x[row]);
    }
}

/// What is tested with: a covariate, and random numbers of one seed.
struct Table {
    x: Vec<f64>,
    stream: Stream,
}

impl Table {
    fn new(rows: usize, seed: u64) -> Self {
        let mut stream = Stream::new(seed, Purpose::Other(7), 0, 0);
        Self { x: (0..rows).map(|_| stream.normal()).collect(), stream }
    }

    fn response(&mut self, mut of: impl FnMut(f64, &mut Stream) -> f64) -> Vec<f64> {
        let Self { x, stream } = self;
        x.iter().map(|&x| of(x, stream)).collect()
    }

    /// Draws from the posterior of a slope and log σ with flat priors under normal errors, or of the slope for a known σ.
    fn gaussian(&mut self, y: &[f64], sigma: Option<f64>, draws: usize) -> Slope {
        let (n, xx) = (y.len() as f64, self.x.iter().map(|x| x * x).sum::<f64>());
        let mean = self.x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>() / xx;
        let squares: f64 = self.x.iter().zip(y).map(|(x, y)| (y - mean * x).powi(2)).sum();
        let draws = (0..draws).map(|_| {
            let scale = sigma.unwrap_or_else(|| (squares / self.stream.chi_squared(n - 1.0)).sqrt());
            (mean + scale / xx.sqrt() * self.stream.normal(), scale)
        });
        Slope { draws: draws.collect(), x: self.x.clone() }
    }

    /// Draws around the mode of a slope, normal as its curvature has it.
    fn generalised(&mut self, y: &[f64], likelihood: Likelihood) -> Slope {
        let (mut slope, mut curvature) = (0.0, 1.0);
        for _ in 0..50 {
            let mut gradient = 0.0;
            curvature = 0.0;
            for (x, y) in self.x.iter().zip(y) {
                let mean = outcome::mean(likelihood, slope * x);
                let variance = if likelihood == (Likelihood::Poisson {}) { mean } else { mean * (1.0 - mean) };
                gradient += x * (y - mean);
                curvature += x * x * variance;
            }
            slope += gradient / curvature;
        }
        let draw = |_| (slope + self.stream.normal() / f64::sqrt(curvature), f64::NAN);
        Slope { draws: (0..1000).map(draw).collect(), x: self.x.clone() }
    }
}

fn outcome<'a>(y: &'a [f64], likelihood: Likelihood, draws: Slope) -> Outcome<'a> {
    Outcome {
        name: "y".into(),
        observed: y,
        likelihood,
        offset: &[],
        weights: &[],
        predict: Box::new(draws),
        null: Null::Intercept,
        rows: None,
    }
}

fn looked(y: &[f64], likelihood: Likelihood, draws: Slope) -> ModelFit {
    look(&[outcome(y, likelihood, draws)], &LookSettings::default(), &Workers::SINGLE)
}

const UNKNOWN: Likelihood = Likelihood::Gaussian { sigma: None };

#[test]
fn rows_left_out_are_those_of_refits() {
    // With a known σ and a flat prior, y_i without itself is normal around the refitted slope.
    let (sigma, mut table) = (1.2, Table::new(25, 3));
    let y = table.response(|x, stream| 0.8 * x + sigma * stream.normal());
    let draws = table.gaussian(&y, Some(sigma), 20_000);
    let xx: f64 = draws.x.iter().map(|x| x * x).sum();
    let xy: f64 = draws.x.iter().zip(&y).map(|(x, y)| x * y).sum();
    let x = draws.x.clone();
    let outcome = outcome(&y, Likelihood::Gaussian { sigma: Some(sigma) }, draws);
    let rows: Vec<usize> = (0..y.len()).collect();
    let found = leave_out(&outcome, &rows, 1, &Workers::SINGLE);
    let log_normal = |y: f64, mean: f64, sd: f64| {
        let z = (y - mean) / sd;
        (-0.5 * z * z - sd.ln() - 0.5 * std::f64::consts::TAU.ln(), normal_cdf(z))
    };
    for (i, found) in found.iter().enumerate() {
        let precision = xx - x[i] * x[i];
        let (mean, sd) = (x[i] * (xy - x[i] * y[i]) / precision, sigma * (1.0 + x[i] * x[i] / precision).sqrt());
        let (elpd, pit) = log_normal(y[i], mean, sd);
        let (lpd, _) = log_normal(y[i], x[i] * xy / xx, sigma * (1.0 + x[i] * x[i] / xx).sqrt());
        // Weights vary by a tenth or so: an error of 0.1/√20,000, and of 1/128 at most for the transform.
        assert!((found.elpd - elpd).abs() < 0.01, "{i}: {} {elpd}", found.elpd);
        assert!((found.lpd - lpd).abs() < 0.01, "{i}: {} {lpd}", found.lpd);
        assert!((found.pit - pit).abs() < 0.01, "{i}: {} {pit}", found.pit);
        assert!(found.khat.is_some_and(|khat| khat < 0.7));
    }
}

#[test]
fn what_comes_from_the_model_is_rarely_spoken_against() {
    let (mut alarms, mut p_values) = (0, Vec::new());
    for seed in 0..150 {
        let mut table = Table::new(60, 100 + seed);
        let y = table.response(|x, stream| 0.5 * x + 2.0 * stream.normal());
        let draws = table.gaussian(&y, None, 400);
        let fit = looked(&y, UNKNOWN, draws);
        alarms += usize::from(fit.kind == FitKind::DoesNotFit);
        p_values.push(fit.outcomes[0].pit.p_value);
        assert!((fit.outcomes[0].pit.histogram.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
    // Six tests at 0.001: 0.9 alarms are to be expected, and six have a probability of 0.0003.
    assert!(alarms < 6, "{alarms}");
    // P-values of uniform transforms are uniform, or a little larger because the slope and the scale were fitted: a mean of 0.5
    // has a standard error of 0.024.
    let mean = p_values.iter().sum::<f64>() / 150.0;
    assert!(mean > 0.4 && mean < 0.9, "{mean}");
}

#[test]
fn what_does_not_come_from_it_is_named() {
    use MisfitKind::{Bend, Outliers, Scale, Skewness, Spread, Tails};
    type Errors = fn(f64, &mut Stream) -> f64;
    let cases: [(MisfitKind, Likelihood, Errors); 7] = [
        (Skewness, UNKNOWN, |x, stream| x + stream.chi_squared(2.0)),
        (Tails, UNKNOWN, |x, stream| x + stream.student_t(2.0)),
        (Outliers, UNKNOWN, |x, stream| x + stream.normal() + if x > 2.1 { 15.0 } else { 0.0 }),
        (Bend, UNKNOWN, |x, stream| x + x * x - 1.0 + stream.normal()),
        (Spread, UNKNOWN, |x, stream| x + (1.0 + x).exp() * stream.normal()),
        (Scale, Likelihood::Gaussian { sigma: Some(1.0) }, |x, stream| x + 1.7 * stream.normal()),
        (Scale, Likelihood::Robust { alpha: 0.1, sigma1: Some(1.0), sigma2: Some(10.0) }, |x, stream| {
            x + 0.5 * stream.normal()
        }),
    ];
    for (kind, likelihood, errors) in cases {
        let mut table = Table::new(300, 11);
        let y = table.response(errors);
        let sigma = if likelihood.has_scale() { None } else { Some(1.0) };
        let draws = table.gaussian(&y, sigma, 1000);
        let fit = looked(&y, likelihood, draws);
        let kinds: Vec<MisfitKind> = fit.outcomes[0].misfits.iter().map(|misfit| misfit.kind).collect();
        assert!(kinds.contains(&kind), "{kind:?} {likelihood:?}: {}", fit.text);
        assert!(fit.kind == FitKind::DoesNotFit && fit.text.starts_with("the model does not fit y: "), "{}", fit.text);
    }
}

#[test]
fn counts_that_vary_too_much_are_overdispersed() {
    for (spread, expected) in [(f64::INFINITY, false), (2.0, true)] {
        let mut table = Table::new(300, 21);
        // Means times χ²/df: a negative binomial distribution.
        let y = table.response(|x, stream| {
            let factor = if spread.is_finite() { stream.chi_squared(spread) / spread } else { 1.0 };
            stream.poisson(factor * (1.2 + 0.5 * x).exp())
        });
        // The model has no intercept: a column that is never 0.
        table.x.iter_mut().for_each(|x| *x = 1.2 + 0.5 * *x);
        let draws = table.generalised(&y, Likelihood::Poisson {});
        let fit = looked(&y, Likelihood::Poisson {}, draws);
        let dispersion = fit.outcomes[0].dispersion.unwrap();
        let found = fit.outcomes[0].misfits.iter().any(|misfit| misfit.kind == MisfitKind::Dispersion);
        assert_eq!(found, expected, "{dispersion:?} {}", fit.text);
        assert_eq!(fit.kind == FitKind::DoesNotFit, expected, "{}", fit.text);
        // Pearson's statistic over n has a standard deviation of √(2/300) or so.
        assert!(expected || (dispersion.ratio - 1.0).abs() < 0.4, "{dispersion:?}");
    }
}

#[test]
fn probabilities_are_held_against_shares() {
    let truth = |logit: f64, stream: &mut Stream| f64::from(u8::from(stream.uniform() < 1.0 / (1.0 + (-logit).exp())));
    for bent in [false, true] {
        let mut table = Table::new(500, 31);
        let y = table.response(|x, stream| truth(if bent { 2.0 * x * x - 2.0 } else { 1.5 * x }, stream));
        let draws = table.generalised(&y, Likelihood::Logistic {});
        let fit = looked(&y, Likelihood::Logistic {}, draws);
        let calibration = fit.outcomes[0].calibration.clone().unwrap();
        assert_eq!(fit.kind == FitKind::DoesNotFit, bent, "{calibration:?} {}", fit.text);
        assert_eq!(calibration.groups.iter().map(|group| group.rows).sum::<usize>(), 500);
        // Ten groups of fifty: √(2/π) √(p (1 − p)/50) each, 0.05 or so.
        assert!(calibration.by_chance.value > 0.02 && calibration.by_chance.value < 0.07, "{calibration:?}");
        assert!(bent || (calibration.error - calibration.by_chance.value).abs() < 4.0 * calibration.by_chance.se);
        assert!(fit.outcomes[0].residuals.is_none());
        assert_eq!(fit.outcomes[0].gain.elpd > 20.0, !bent, "{:?}", fit.outcomes[0].gain);
    }
}

/// Of rows that are all alike none is predicted by what it is, whatever the order of the table.
#[test]
fn probabilities_of_rows_that_are_alike_are_held_against_their_share() {
    for ones in [250, 40] {
        let mut table = Table::new(500, 37);
        table.x.fill(1.0);
        let y: Vec<f64> = (0..500).map(|row| f64::from(u8::from(row >= 500 - ones))).collect();
        let draws = table.generalised(&y, Likelihood::Logistic {});
        let fit = looked(&y, Likelihood::Logistic {}, draws);
        let calibration = fit.outcomes[0].calibration.clone().unwrap();
        let off = calibration.error - calibration.by_chance.value;
        assert!(off.abs() < 4.0 * calibration.by_chance.se, "{calibration:?}");
        assert_eq!(fit.kind, FitKind::NothingFound, "{}", fit.text);
    }
}

#[test]
fn some_rows_stand_for_all_and_threads_change_nothing() {
    let mut table = Table::new(4000, 41);
    let y = table.response(|x, stream| 0.5 * x + stream.normal());
    let draws = |table: &mut Table| table.gaussian(&y, None, 200);
    let all = look(&[outcome(&y, UNKNOWN, draws(&mut table))], &LookSettings::default(), &Workers::SINGLE);
    let few = LookSettings { pairs: 200 * 1000, ..LookSettings::default() };
    let some = |workers: &Workers| look(&[outcome(&y, UNKNOWN, draws(&mut Table::new(4000, 41)))], &few, workers);
    let found = some(&Workers::SINGLE);
    assert_eq!((all.rows, found.rows, found.of_rows), (4000, 1000, 4000));
    let (a, b) = (&all.outcomes[0].loo, &found.outcomes[0].loo);
    // The error of a quarter of the rows is twice that of all.
    assert!((b.se / a.se - 2.0).abs() < 0.2 && (a.elpd - b.elpd).abs() < 4.0 * b.se, "{a:?} {b:?}");
    assert_eq!(found, some(&Workers::new(3).unwrap()));
}

#[test]
fn too_few_rows_say_nothing() {
    let mut table = Table::new(5, 51);
    let y = table.response(|_, stream| stream.chi_squared(1.0));
    let draws = table.gaussian(&y, None, 200);
    let fit = looked(&y, UNKNOWN, draws);
    assert!(fit.kind == FitKind::TooFewRows && fit.outcomes[0].misfits.is_empty(), "{}", fit.text);
}

#[test]
fn nobody_waits_for_what_nobody_wants() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let mut table = Table::new(4000, 61);
    let y = table.response(|x, stream| 0.5 * x + stream.normal());
    let draws = table.gaussian(&y, None, 200);
    let outcomes = [outcome(&y, UNKNOWN, draws)];
    // Groups of 32 rows: a few are looked at, and the rest is left.
    let asked = AtomicUsize::new(0);
    let go_on = || asked.fetch_add(1, Ordering::Relaxed) < 3;
    assert_eq!(look_while(&outcomes, &LookSettings::default(), &Workers::SINGLE, &go_on), None);
    assert!(look_while(&outcomes, &LookSettings::default(), &Workers::SINGLE, &|| true).is_some());
}

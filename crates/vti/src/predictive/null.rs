//! The simplest model, without covariates or parents: its leave-one-out predictions, to compare with.
//!
//! Its one or two numbers, the intercept and the logarithm of the scale, have flat priors and are summed over an even grid, which
//! for smooth densities is exact to many digits. `p(y_i | y_{−i}) = p(y)/p(y_{−i})`, and both are sums over the grid.

use super::Looking;
use super::outcome::{Null, Observation, Outcome};
use crate::problem::selection::Likelihood;
use crate::stats::log_sum_exp;

/// Standard errors that the grid reaches to both sides.
const REACH: f64 = 10.0;

/// Points for each standard error: one is plenty for a normal density, which the posterior of few rows is not.
const FINE: f64 = 2.0;
const COARSE: f64 = 1.0;
const FEW_ROWS: usize = 1000;

/// Reach over points of the logarithm of a size: a factor of e⁴ to both sides.
const LOG_SIZE_ERROR: f64 = 0.4;

/// Rows that the posterior is made of; more of them are taken at even distances, and count for all.
const MAX_ROWS: usize = 1 << 18;

/// Nats below the best point that do not matter.
const NEGLIGIBLE: f64 = 60.0;

/// `log p(y_i | y_{−i})` of some rows of a column.
pub(super) fn elpd(outcome: &Outcome<'_>, rows: &[usize], workers: &Looking<'_>) -> Vec<f64> {
    let count = outcome.row_count();
    let row = |row: usize| (Observation::of(outcome, row), offset_of(outcome, row));
    let all: Vec<(Observation, f64)> = outcome.all_rows().step_by(count.div_ceil(MAX_ROWS).max(1)).map(row).collect();
    let each_counts = count as f64 / all.len().max(1) as f64;
    // Each point with its log likelihood of all rows.
    let mut points: Vec<(f64, f64, f64)> =
        grid(outcome).into_iter().map(|(location, scale)| (location, scale, 0.0)).collect();
    workers.for_each(&mut points, |_, (location, scale, sum)| {
        let logs = all.iter().map(|(observation, offset)| {
            observation.log_likelihood(observation.log_density(*location + offset, *scale))
        });
        *sum = each_counts * logs.sum::<f64>();
    });
    let best = points.iter().map(|point| point.2).fold(f64::NEG_INFINITY, f64::max);
    points.retain(|point| point.2 > best - NEGLIGIBLE);
    let mut found: Vec<f64> = vec![0.0; rows.len()];
    workers.for_each(&mut found, |place, elpd| {
        let (observation, offset) = row(rows[place]);
        let mut without = Vec::with_capacity(points.len());
        let mut with = Vec::with_capacity(points.len());
        for &(location, scale, sum) in &points {
            let log_density = observation.log_density(location + offset, scale);
            without.push(sum - observation.log_likelihood(log_density));
            with.push(without[without.len() - 1] + log_density);
        }
        *elpd = log_sum_exp(&with) - log_sum_exp(&without);
    });
    found
}

/// What is known of a row's predictor.
fn offset_of(outcome: &Outcome<'_>, row: usize) -> f64 {
    outcome.offset.get(row).copied().unwrap_or(0.0)
}

/// How much a row counts.
fn weight_of(outcome: &Outcome<'_>, row: usize) -> f64 {
    outcome.weights.get(row).copied().unwrap_or(1.0)
}

/// As how many rows they all count.
fn total_weight(outcome: &Outcome<'_>) -> f64 {
    outcome.all_rows().map(|row| weight_of(outcome, row)).sum()
}

/// Locations and scales, around where the numbers put them.
fn grid(outcome: &Outcome<'_>) -> Vec<(f64, f64)> {
    let Outcome { likelihood, null, observed, .. } = *outcome;
    let n = total_weight(outcome);
    let (centre, spread) = centre(outcome);
    let location_error = match likelihood {
        Likelihood::Logistic {} | Likelihood::Multinomial {} => {
            let usual = centre + outcome.offset.iter().sum::<f64>() / observed.len() as f64;
            (n * 0.25 / (0.5 * usual).cosh().powi(2)).sqrt().recip()
        }
        Likelihood::Poisson {} => (exposure(outcome) * centre.exp()).sqrt().recip(),
        Likelihood::NegativeBinomial { size } => {
            let mean = exposure(outcome) * centre.exp() / n;
            (n * mean / (1.0 + mean / size.unwrap_or(spread))).sqrt().recip()
        }
        _ => spread / n.sqrt(),
    };
    let density = if outcome.row_count() < FEW_ROWS { FINE } else { COARSE };
    let most = (REACH * density) as i32;
    let along = |error: f64| (-most..=most).map(move |i| error * f64::from(i) / density);
    let locations: Vec<f64> = match null {
        Null::Intercept => along(location_error).map(|offset| centre + offset).collect(),
        Null::Zero => vec![0.0],
    };
    let scales: Vec<f64> = match likelihood.has_scale() {
        // Little is known about a size: the logarithm may be far off, and is not worth a finer grid.
        false if likelihood.own_parameter().is_some() => {
            along(LOG_SIZE_ERROR).map(|offset| spread * offset.exp()).collect()
        }
        true => along((2.0 * n).sqrt().recip()).map(|offset| spread * offset.exp()).collect(),
        false => vec![1.0],
    };
    locations.iter().flat_map(|&location| scales.iter().map(move |&scale| (location, scale))).collect()
}

/// What counts are proportional to, of all rows together: their number where nothing is known of them.
fn exposure(outcome: &Outcome<'_>) -> f64 {
    outcome.all_rows().map(|row| weight_of(outcome, row) * offset_of(outcome, row).exp()).sum()
}

/// Where the numbers lie, as a predictor, and how far they spread.
fn centre(outcome: &Outcome<'_>) -> (f64, f64) {
    let Outcome { likelihood, null, observed, .. } = *outcome;
    let n = total_weight(outcome);
    let mean_of = |f: &dyn Fn(f64) -> f64| {
        outcome.all_rows().map(|row| weight_of(outcome, row) * f(observed[row])).sum::<f64>() / n
    };
    let mean = mean_of(&|y| y);
    let spread_around = |centre: f64| mean_of(&|y| (y - centre).powi(2)).sqrt();
    match likelihood {
        Likelihood::Logistic {} | Likelihood::Multinomial {} => {
            let p = (mean * n + 0.5) / (n + 1.0);
            ((p / (1.0 - p)).ln() - outcome.offset.iter().sum::<f64>() / observed.len() as f64, 1.0)
        }
        Likelihood::Poisson {} => (((mean * n + 0.5) / exposure(outcome)).ln(), 1.0),
        Likelihood::NegativeBinomial { .. } => {
            let variance = spread_around(mean).powi(2);
            let size = mean * mean / (variance - mean).max(f64::MIN_POSITIVE);
            (((mean * n + 0.5) / exposure(outcome)).ln(), size.clamp(0.1, 100.0))
        }
        Likelihood::Gaussian { .. } => {
            let centre = if null == Null::Zero { 0.0 } else { mean };
            (centre, spread_around(centre).max(f64::MIN_POSITIVE))
        }
        Likelihood::Robust { .. } | Likelihood::StudentT { .. } => {
            let centre =
                if null == Null::Zero { 0.0 } else { median(outcome.all_rows().map(|row| observed[row]).collect()) };
            let spread = 1.5 * median(outcome.all_rows().map(|row| (observed[row] - centre).abs()).collect());
            (centre, if spread > 0.0 { spread } else { spread_around(centre).max(f64::MIN_POSITIVE) })
        }
    }
}

/// Not a number where there is none.
fn median(mut numbers: Vec<f64>) -> f64 {
    let middle = numbers.len() / 2;
    if numbers.is_empty() {
        return f64::NAN;
    }
    *numbers.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Predict;
    use super::*;
    use crate::random::{Purpose, Stream};
    use crate::stats::ln_gamma;
    use crate::workers::Workers;

    /// Of all rows.
    fn elpd(likelihood: Likelihood, null: Null, observed: &[f64]) -> Vec<f64> {
        elpd_with_offset(likelihood, null, observed, &[])
    }

    fn elpd_with_offset(likelihood: Likelihood, null: Null, observed: &[f64], offset: &[f64]) -> Vec<f64> {
        let rows: Vec<usize> = (0..observed.len()).collect();
        let outcome = Outcome {
            name: "y".into(),
            observed,
            likelihood,
            offset,
            weights: &[],
            predict: Box::new(Nothing),
            null,
            rows: None,
        };
        super::elpd(&outcome, &rows, &Looking { workers: &Workers::SINGLE, go_on: &|| true })
    }

    /// The simplest model needs no draws.
    struct Nothing;

    impl Predict for Nothing {
        fn draws(&self) -> usize {
            0
        }

        fn scale(&self, _: usize) -> f64 {
            f64::NAN
        }

        fn predictors(&self, _: usize, _: &[usize], _: &mut [f64]) {}
    }

    #[test]
    fn means_of_normal_numbers_are_left_out_in_closed_form() {
        let mut stream = Stream::new(3, Purpose::Other(0), 0, 0);
        let y: Vec<f64> = (0..40).map(|_| 2.0 + 1.5 * stream.normal()).collect();
        // With flat priors on the mean and log σ, y_i without itself is Student's t with n − 2 degrees of freedom.
        let found = elpd(Likelihood::Gaussian { sigma: None }, Null::Intercept, &y);
        let others = (y.len() - 1) as f64;
        let df = others - 1.0;
        for (i, found) in found.iter().enumerate() {
            let rest: Vec<f64> = y.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, y)| *y).collect();
            let mean = rest.iter().sum::<f64>() / others;
            let scale = (rest.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / df * (1.0 + 1.0 / others)).sqrt();
            let t = (y[i] - mean) / scale;
            let truth = ln_gamma(0.5 * (df + 1.0))
                - ln_gamma(0.5 * df)
                - 0.5 * (df * std::f64::consts::PI).ln()
                - scale.ln()
                - 0.5 * (df + 1.0) * (t * t / df).ln_1p();
            assert!((found - truth).abs() < 1e-5, "{i}: {found} {truth}");
        }
        // Around a known mean with a known σ nothing is learned.
        let fixed = Likelihood::Gaussian { sigma: Some(2.0) };
        for (found, y) in elpd(fixed, Null::Zero, &y).iter().zip(&y) {
            assert!((found - (-0.125 * y * y - 2f64.ln() - 0.5 * std::f64::consts::TAU.ln())).abs() < 1e-12);
        }
    }

    #[test]
    fn shares_and_rates_are_left_out_in_closed_form() {
        // With a flat prior on the logit, a 1 without itself has probability (k − 1)/(n − 1).
        let y: Vec<f64> = (0..30).map(|i| f64::from(u8::from(i % 3 == 0))).collect();
        let found = elpd(Likelihood::Logistic {}, Null::Intercept, &y);
        assert!((found[0] - (9f64 / 29.0).ln()).abs() < 1e-4 && (found[1] - (19f64 / 29.0).ln()).abs() < 1e-4);
        // With a flat prior on the log mean, a count without itself is negative binomial.
        let y: Vec<f64> = (0..25).map(|i| f64::from(i % 4)).collect();
        let (n, sum) = (25f64, y.iter().sum::<f64>());
        for (found, y) in elpd(Likelihood::Poisson {}, Null::Intercept, &y).iter().zip(&y) {
            let r = sum - y;
            let truth = ln_gamma(sum) - ln_gamma(r) - ln_gamma(y + 1.0) + r * ((n - 1.0) / n).ln() - y * n.ln();
            assert!((found - truth).abs() < 1e-5, "{found} {truth}");
        }
    }

    #[test]
    fn rates_are_left_out_in_closed_form_with_exposures() {
        let y: Vec<f64> = (0..25).map(|i| f64::from(i % 4)).collect();
        let exposure: Vec<f64> = (0..25).map(|i| 0.5 + f64::from(i % 3)).collect();
        let offset: Vec<f64> = exposure.iter().map(|e| e.ln()).collect();
        let (total, sum) = (exposure.iter().sum::<f64>(), y.iter().sum::<f64>());
        let found = elpd_with_offset(Likelihood::Poisson {}, Null::Intercept, &y, &offset);
        for ((found, y), own) in found.iter().zip(&y).zip(&exposure) {
            let r = sum - y;
            let truth = ln_gamma(sum) - ln_gamma(r) - ln_gamma(y + 1.0)
                + r * ((total - own) / total).ln()
                + y * (own / total).ln();
            assert!((found - truth).abs() < 1e-5, "{found} {truth}");
        }
    }
}

//! Priors from a density alone.

use super::*;
use crate::stats::normal_cdf;

const LINE: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);
const POSITIVE: (f64, f64) = (0.0, f64::INFINITY);

fn tabulated(bounds: (f64, f64), log_density: impl Fn(f64) -> f64 + Send + Sync + 'static) -> Prior {
    Tabulated::new(bounds, log_density).unwrap_or_else(|error| panic!("{error}")).into()
}

/// Named distributions, as far as their densities tell, and one with two peaks.
pub(super) fn own() -> Vec<(&'static str, Prior)> {
    let mut own: Vec<(&str, Prior)> = twins().into_iter().map(|text| (text, twin(text))).collect();
    own.push(("two peaks", tabulated(LINE, |x| peaks(x).ln())));
    own
}

fn twins() -> [&'static str; 9] {
    [
        "normal:1,2",
        "normal:1000,0.01",
        "log-normal:0.5,0.75",
        "half-normal:2",
        "uniform:-2,6",
        "gamma:2,0.5",
        "inverse-gamma:3,2",
        "beta:2,5",
        "student-t:4,1,2",
    ]
}

/// A tenth of its density, from which the rest is to be found.
fn twin(text: &str) -> Prior {
    let named = parse(text);
    tabulated(named.bounds(), move |x| named.log_density(x) - 10f64.ln())
}

/// Normal peaks at −4 and 5, ten deviations apart, of weights 3 and 1.
fn peaks(x: f64) -> f64 {
    3.0 * (-0.5 * (x + 4.0).powi(2)).exp() + (-0.5 * ((x - 5.0) / 0.8).powi(2)).exp() / 0.8
}

#[test]
fn twins_agree() {
    for text in twins() {
        let (named, own) = (parse(text), twin(text));
        for z in (-24..=24).map(|i| f64::from(i) / 4.0) {
            let (x, y) = (named.from_normal(z), own.from_normal(z));
            let back = own.to_normal(x);
            let bound = 1e-8 + rounding(x, named.log_density(x), z);
            assert!((back - z).abs() < bound, "{text} at {z}: {back}");
            assert!((named.to_normal(y) - z).abs() < bound, "{text} at {z}: {x} {y}");
            assert!((named.log_density(x) - own.log_density(x)).abs() < 1e-9, "{text} at {z}");
        }
    }
}

#[test]
fn two_peaks_have_their_weights() {
    let own = tabulated(LINE, |x| peaks(x).ln());
    for x in [-6.0, -4.0, -2.5, 0.0, 1.0, 4.0, 5.5, 7.0f64] {
        let truth = 0.75 * normal_cdf(x + 4.0) + 0.25 * normal_cdf((x - 5.0) / 0.8);
        let found = normal_cdf(own.to_normal(x));
        assert!((found - truth).abs() < 1e-9, "{x}: {found} {truth}");
    }
}

#[test]
fn an_end_may_be_infinite() {
    // (1 − x)^(−½)/2 has the distribution function 1 − √(1 − x).
    let own = tabulated((0.0, 1.0), |x| -0.5 * (1.0 - x).ln());
    for z in [-5.0, -1.0, 0.0, 1.0, 3.0] {
        let (x, truth) = (own.from_normal(z), 1.0 - normal_cdf(-z).powi(2));
        assert!((x - truth).abs() < 1e-8, "{z}: {x} {truth}");
    }
}

#[test]
fn densities_without_an_integral_are_refused() {
    for (bounds, word) in [((1.0, 1.0), "between"), ((2.0, 1.0), "between"), ((f64::NAN, 1.0), "between")] {
        let error = Tabulated::new(bounds, |_| 0.0).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(word), "{error}");
    }
    let refused = |result: Result<Tabulated, PriorError>, word: &str| {
        let error = result.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(word), "{error}");
    };
    refused(Tabulated::new(POSITIVE, |x| -x.ln()), "normalised");
    refused(Tabulated::new(LINE, |_| 0.0), "normalised");
    refused(Tabulated::new(LINE, |_| f64::NEG_INFINITY), "wherever");
    refused(Tabulated::new(LINE, |x| if x > 3.0 { f64::NAN } else { -x * x }), "NaN at");
}

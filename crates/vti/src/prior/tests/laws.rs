//! What every prior promises.

use super::*;
use crate::random::Purpose;
use crate::stats::{kolmogorov_tail, normal_cdf, normal_log_density};

/// From −8 to 8.
fn grid() -> impl Iterator<Item = f64> {
    (-64..=64).map(|i| f64::from(i) / 8.0)
}

#[test]
fn to_normal_undoes_from_normal() {
    for (name, prior) in priors() {
        let own = name.starts_with("own");
        let mut last = f64::NEG_INFINITY;
        for z in grid() {
            let x = prior.from_normal(z);
            assert!(x >= last, "{name} at {z}: {x} after {last}");
            last = x;
            let again = prior.to_normal(x);
            // A tail of which rounding leaves no digit cannot be found again.
            let bound = if own { 1e-8 } else { 2e-12 } + rounding(x, prior.log_density(x), z);
            assert!(bound > 0.1 || (again - z).abs() < bound * (1.0 + z.abs()), "{name} at {z}: {x} gives {again}");
        }
    }
}

#[test]
fn the_slope_of_from_normal_is_the_ratio_of_densities() {
    for (name, prior) in priors() {
        for z in grid().filter(|z| z.abs() <= 5.0) {
            let h = 1e-4;
            let x = prior.from_normal(z);
            let ends = [-2.0, -1.0, 1.0, 2.0].map(|k| prior.from_normal(z + k * h));
            let slope = (ends[0] - 8.0 * ends[1] + 8.0 * ends[2] - ends[3]) / (12.0 * h);
            let truth = (normal_log_density(z) - prior.log_density(x)).exp();
            let bound = 1e-8 * truth.abs() + 8.0 * f64::EPSILON * x.abs() / h;
            assert!((slope - truth).abs() < bound, "{name} at {z}: {slope} {truth}");
        }
    }
}

#[test]
fn densities_integrate_to_one() {
    for (name, prior) in priors() {
        // Between neighbouring quantiles; farther out than 5 rounding of x near a bound of 1 would show.
        let ends: Vec<f64> = (-5..=5).map(|z| prior.from_normal(f64::from(z))).collect();
        let total: f64 = ends.windows(2).map(|pair| integral(pair[0], pair[1], |x| prior.log_density(x).exp())).sum();
        assert!((total + 2.0 * normal_cdf(-5.0) - 1.0).abs() < 2e-9, "{name}: {total}");
        let first = integral(ends[4], ends[5], |x| prior.log_density(x).exp());
        assert!((first - (0.5 - normal_cdf(-1.0))).abs() < 1e-8, "{name}: {first}");
    }
}

/// ∫ f(x) dx by tanh-sinh quadrature.
fn integral(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let h = 1.0 / 32.0;
    let term = |k: i32| {
        let t = h * f64::from(k);
        let s = std::f64::consts::FRAC_PI_2 * t.sinh();
        // The share of the interval below x, from the nearer end.
        let part = 1.0 / (1.0 + (2.0 * s.abs()).exp());
        let x = if s < 0.0 { low + (high - low) * part } else { high - (high - low) * part };
        let weight = std::f64::consts::FRAC_PI_2 * t.cosh() / s.cosh().powi(2);
        if x > low && x < high { 0.5 * (high - low) * weight * f(x) } else { 0.0 }
    };
    h * (-120..=120).map(term).sum::<f64>()
}

#[test]
fn slopes_are_differences() {
    for (name, prior) in priors() {
        for z in [-3.0, -1.1, -0.2, 0.4, 1.5, 3.0] {
            let x = prior.from_normal(z);
            let scale = (prior.from_normal(z + 0.5) - prior.from_normal(z - 0.5)).abs();
            let numeric = slope_by_differences(prior.bounds(), x, |x| prior.log_density(x));
            let slope = prior.slope(x);
            let bound = 1e-5 * (numeric.abs() + 1.0 / scale);
            assert!((slope - numeric).abs() < bound, "{name} at {x}: {slope} {numeric}");
        }
        let (low, high) = prior.bounds();
        for x in [low - 1.0, high + 1.0].into_iter().filter(|x| x.is_finite()) {
            assert!(prior.slope(x).is_nan(), "{name} at {x}");
        }
    }
}

#[test]
fn draws_have_the_distribution() {
    let count = 4_000;
    for (name, prior) in priors() {
        let mut stream = Stream::new(3, Purpose::Other(0), 0, 0);
        let mut draws: Vec<f64> = (0..count).map(|_| prior.draw(&mut stream)).collect();
        draws.sort_by(f64::total_cmp);
        // F by sums of the density between draws, which does not come from the quantiles.
        let (mut below, mut worst) = (normal_cdf(prior.to_normal(draws[0])), 0f64);
        for (i, pair) in draws.windows(2).enumerate() {
            worst = worst.max((below - (i as f64 + 0.5) / f64::from(count)).abs());
            let weights = [1.0, 4.0, 1.0].into_iter().enumerate();
            let at = |k: usize| pair[0] + (pair[1] - pair[0]) * 0.5 * k as f64;
            below += weights.map(|(k, w)| w * prior.log_density(at(k)).exp()).sum::<f64>() * (pair[1] - pair[0]) / 6.0;
        }
        let p = kolmogorov_tail(worst, draws.len());
        assert!(p > 1e-4, "{name}: distance {worst}, p {p}");
    }
}

#[test]
fn nothing_breaks_far_out() {
    for (name, prior) in priors() {
        let (low, high) = prior.bounds();
        for z in [-38.0, -35.0, -20.0, -9.0, 9.0, 20.0, 35.0, 38.0] {
            let x = prior.from_normal(z);
            assert!(x > low && x < high && x.is_finite(), "{name} at {z}: {x}");
            assert!(!prior.to_normal(x).is_nan() && !prior.log_density(x).is_nan(), "{name} at {z}: {x}");
        }
        assert_eq!((prior.from_normal(f64::NEG_INFINITY), prior.from_normal(f64::INFINITY)), (low, high), "{name}");
        assert_eq!((prior.to_normal(low), prior.to_normal(high)), (f64::NEG_INFINITY, f64::INFINITY), "{name}");
        assert!(prior.from_normal(f64::NAN).is_nan() && prior.to_normal(f64::NAN).is_nan(), "{name}");
        for x in [low - 1.0, high + 1.0].into_iter().filter(|x| x.is_finite()) {
            assert!(prior.to_normal(x).is_nan() && prior.log_density(x) == f64::NEG_INFINITY, "{name} at {x}");
        }
        assert!((prior.to_normal(prior.start())).abs() < 1e-8, "{name}");
    }
    // Nobody has checked these; they must not panic.
    for bad in [Prior::Uniform { low: f64::NAN, high: 1.0 }, Prior::Gamma { shape: f64::NAN, rate: -1.0 }] {
        assert!(bad.check().is_err() && !(bad.to_normal(bad.from_normal(0.3)) - 0.3).is_normal());
    }
    for (text, low, high) in [("uniform:-2,6", -2.0, 6.0), ("beta:1,1", 0.0, 1.0), ("log-uniform:0.1,100", 0.1, 100.0)]
    {
        let prior = parse(text);
        assert!(prior.log_density(low).is_finite() && prior.log_density(high).is_finite(), "{text}");
    }
    for text in ["half-normal:2", "exponential:0.5", "gamma:1,3"] {
        assert!(parse(text).log_density(0.0).is_finite(), "{text}");
    }
}

#[test]
fn texts_and_files_say_the_same() -> Result<(), Box<dyn std::error::Error>> {
    for text in TEXTS {
        let prior = parse(text);
        assert_eq!(prior.to_string(), *text);
        let written = serde_json::to_string(&prior)?;
        assert!(written.starts_with(&format!("{{\"kind\":\"{}\"", prior.kind())), "{written}");
        assert_eq!(serde_json::from_str::<Prior>(&written)?, prior);
        let more = written.replace('}', ",\"more\":1}");
        assert!(serde_json::from_str::<Prior>(&more).is_err(), "{more}");
    }
    let own = Prior::own(Normal(0.0, 1.0));
    assert!(serde_json::to_string(&own).is_err() && own == own.clone() && own != Prior::own(Normal(0.0, 1.0)));
    assert!(serde_json::from_str::<Prior>(r#"{"kind": "own"}"#).is_err());
    Ok(())
}

#[test]
fn bad_parameters_are_named() {
    for (text, word) in [
        ("normal:0,0", "sd"),
        ("normal:inf,1", "mean"),
        ("log-normal:0,-1", "sd"),
        ("half-normal:nan", "sd"),
        ("uniform:3,3", "between"),
        ("uniform:5,3", "between"),
        ("uniform:-1e308,1e308", "between"),
        ("uniform:0,inf", "high"),
        ("log-uniform:0,3", "low"),
        ("exponential:0", "rate"),
        ("gamma:0,1", "shape"),
        ("gamma:1,inf", "rate"),
        ("inverse-gamma:1,0", "scale"),
        ("beta:-1,1", "a of"),
        ("beta:1,0", "b of"),
        ("cauchy:0,0", "scale"),
        ("student-t:0,0,1", "df"),
        ("student-t:1,0,0", "scale"),
        ("normal:1", "MEAN,SD"),
        ("normal:1,2,3", "MEAN,SD"),
        ("normal:a,b", "MEAN,SD"),
        ("normal", "MEAN,SD"),
        ("flat", "no prior"),
        ("own", "no prior"),
        ("", "no prior"),
    ] {
        let error = text.parse::<Prior>().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(word), "{text}: {error}");
    }
    assert!(Prior::own(Uniform(3.0, 2.0)).check().is_err() && Prior::own(Normal(0.0, 1.0)).check().is_ok());
}

//! Laws of priors. A new prior is one line in [`TEXTS`].

mod counts;
mod dirichlet;
mod laws;
mod tabulated;
mod values;

use super::*;

/// A prior of each kind, of usual and of extreme parameters, as text.
const TEXTS: &[&str] = &[
    "normal:1,2",
    "normal:-40,0.01",
    "log-normal:0.5,0.75",
    "log-normal:-3,2.5",
    "half-normal:2",
    "uniform:-2,6",
    "uniform:0,10",
    "log-uniform:0.1,100",
    "exponential:0.5",
    "gamma:2,0.5",
    "gamma:0.3,1.5",
    "gamma:200,4",
    "inverse-gamma:3,2",
    "inverse-gamma:0.5,0.1",
    "beta:2,5",
    "beta:0.5,0.5",
    "beta:30,2",
    "beta:1,1",
    "cauchy:1,2",
    "student-t:4,1,2",
    "student-t:50,0,1",
];

fn parse(text: &str) -> Prior {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// All named priors, and some of one's own.
fn priors() -> Vec<(String, Prior)> {
    let named = TEXTS.iter().map(|text| ((*text).to_owned(), parse(text)));
    let own = tabulated::own().into_iter().map(|(name, own)| (format!("own {name}"), own));
    named.chain(own).collect()
}

/// How far z is from where it should be because x is rounded, at a place where the density of x is `log_density`.
fn rounding(x: f64, log_density: f64, z: f64) -> f64 {
    let log_slope = log_density - crate::stats::normal_log_density(z);
    4.0 * f64::EPSILON * x.abs() * log_slope.exp()
}

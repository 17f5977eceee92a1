//! The left panel of the figure: a panel for each misspecification, a group of bars for each number of models.

use vti::problem::selection::simulate::Misspecification;
use vti_report::plot::{Axis, Bar, Figure, Panel, grouped};

use super::rows::{Distribution, Finished};
use super::settings::Settings;
use crate::results::moments;

/// Mean cross entropies with the standard deviation over data sets.
pub(super) fn figure(levels: &[Misspecification], fits: &[Finished], settings: &Settings) -> Figure {
    let highest = bars_of(levels, fits, settings).map(|bar| bar.error.map_or(bar.value, |error| error.1));
    let lowest = bars_of(levels, fits, settings).map(|bar| bar.error.map_or(bar.value, |error| error.0));
    let (low, high) = (lowest.fold(0.0, f64::min), highest.fold(0.0, f64::max));
    let names = settings.exponents.iter().map(|&exponent| format!("2{}", superscript(exponent)));
    let names: Vec<String> = names.collect();
    let panel = |(place, &level): (usize, &Misspecification)| Panel {
        title: format!("{} misspecification", capital(&level.to_string())),
        x: Axis::names("number of models", names.clone()),
        y: Axis::linear(if place == 0 { "cross entropy H(π, q)" } else { "" })
            .within(1.05 * low, 1.05 * high.max(1e-3)),
        layers: grouped(
            Distribution::ALL
                .map(|distribution| (title(distribution).into(), bars(level, distribution, fits, settings)))
                .into(),
        ),
        ..Panel::default()
    };
    Figure {
        panels: levels.iter().enumerate().map(panel).collect(),
        columns: levels.len(),
        panel_size: (300.0, 220.0),
        ..Figure::default()
    }
}

fn bars_of<'a>(
    levels: &'a [Misspecification],
    fits: &'a [Finished],
    settings: &'a Settings,
) -> impl Iterator<Item = Bar> + 'a {
    let all = levels.iter().flat_map(|&level| Distribution::ALL.map(|distribution| (level, distribution)));
    all.flat_map(|(level, distribution)| bars(level, distribution, fits, settings))
}

fn bars(level: Misspecification, distribution: Distribution, fits: &[Finished], settings: &Settings) -> Vec<Bar> {
    let bar = |(place, &exponent): (usize, &usize)| {
        let values = cross_entropies(fits, level, exponent, distribution);
        let (mean, sd) = moments(&values);
        let error = (values.len() > 1).then_some((mean - sd, mean + sd));
        (!values.is_empty()).then_some(Bar { at: place as f64, value: mean, error })
    };
    settings.exponents.iter().enumerate().filter_map(bar).collect()
}

/// The fits of all data sets.
pub(super) fn own(
    fits: &[Finished],
    level: Misspecification,
    exponent: usize,
    distribution: Distribution,
) -> impl Iterator<Item = &Finished> {
    fits.iter().filter(move |Finished { case, .. }| {
        (case.misspecification, case.exponent, case.distribution) == (level, exponent, distribution)
    })
}

/// Their cross entropies.
pub(super) fn cross_entropies(
    fits: &[Finished],
    level: Misspecification,
    exponent: usize,
    distribution: Distribution,
) -> Vec<f64> {
    own(fits, level, exponent, distribution).filter_map(|fit| fit.cross_entropy).collect()
}

pub(super) fn title(distribution: Distribution) -> &'static str {
    match distribution {
        Distribution::Surrogate => "surrogate, diagonal",
        Distribution::Categorical => "categorical",
        Distribution::Autoregressive => "autoregressive (MADE+)",
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Digits as an exponent.
pub(super) fn superscript(number: usize) -> String {
    let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    number.to_string().bytes().map(|digit| digits[usize::from(digit - b'0')]).collect()
}

//! Means over data sets, and whether they say what the paper's figure shows.

use std::fmt::Write;

use anyhow::Result;
use vti::problem::selection::simulate::Misspecification;

use super::plot::{cross_entropies, own, superscript, title};
use super::rows::{Case, Distribution, Finished};
use super::settings::Settings;
use crate::results::{mean, moments};
use crate::study::doubtful;
use crate::text::{self, Findings, cell, listed};

/// Cross entropies that differ by less are comparable, in nats.
const COMPARABLE: f64 = 0.5;

/// The means as a table.
pub(super) fn table(levels: &[Misspecification], fits: &[Finished], settings: &Settings) -> Result<String> {
    let names = [
        "misspecification",
        "log2_models",
        "distribution",
        "data_sets",
        "cross_entropy",
        "cross_entropy_sd",
        "khat",
        "seconds",
    ];
    let row = |(level, exponent, distribution): (Misspecification, usize, Distribution)| {
        let values = cross_entropies(fits, level, exponent, distribution);
        if values.is_empty() {
            return None;
        }
        let (value, sd) = moments(&values);
        let sd = (values.len() > 1).then_some(sd);
        let own = || own(fits, level, exponent, distribution);
        let numbers = [Some(value), sd, mean(own().map(|fit| fit.khat)), mean(own().map(|fit| Some(fit.seconds)))];
        let case = [level.to_string(), exponent.to_string(), distribution.to_string(), values.len().to_string()];
        Some(case.into_iter().chain(numbers.map(cell)).collect())
    };
    text::table(names, groups(levels, settings).filter_map(row))
}

fn groups<'a>(
    levels: &'a [Misspecification],
    settings: &'a Settings,
) -> impl Iterator<Item = (Misspecification, usize, Distribution)> + 'a {
    let sizes = levels.iter().flat_map(|&level| settings.exponents.iter().map(move |&exponent| (level, exponent)));
    sizes.flat_map(|(level, exponent)| Distribution::ALL.map(|distribution| (level, exponent, distribution)))
}

/// Everything in words.
pub(super) fn page(
    levels: &[Misspecification],
    fits: &[Finished],
    left_out: &[(Case, String)],
    joint: &str,
    settings: &Settings,
) -> String {
    let mut text = format!(
        "# Figure 4: the number of models\n\n\
         Scale `{}`; data sets of each kind: {}; seed {}; {} steps of {} draws (all sizes: settings.json). Cross entropy \
         H(π, q) = −E log q(m, θ) over states of reversible jump chains, in nats: mean ± standard deviation over data sets.\n\n\
         | misspecification | models |{}\n|---|---|---|---|---|\n",
        settings.scale,
        settings.data_sets,
        settings.seed,
        settings.train.steps,
        settings.train.batch,
        Distribution::ALL.map(|distribution| format!(" {} |", title(distribution))).concat(),
    );
    for &level in levels {
        for &exponent in &settings.exponents {
            let cells = Distribution::ALL.map(|kind| shown(&cross_entropies(fits, level, exponent, kind)));
            let _ = writeln!(text, "| {level} | 2{} | {} |", superscript(exponent), cells.join(" | "));
        }
    }
    text + &findings(levels, fits, settings) + &notes(fits, left_out, joint, settings)
}

fn shown(values: &[f64]) -> String {
    let (mean, sd) = moments(values);
    match values.len() {
        0 => "–".into(),
        1 => format!("{mean:.2}"),
        _ => format!("{mean:.2} ± {sd:.2}"),
    }
}

fn findings(levels: &[Misspecification], fits: &[Finished], settings: &Settings) -> String {
    let mut findings = Findings(String::from("\n## What the paper's figure shows, and this one\n"));
    for &level in levels {
        findings.about(&format!("Misspecification {level}"));
        let at = |exponent: usize, kind| {
            let values = cross_entropies(fits, level, exponent, kind);
            (!values.is_empty()).then(|| moments(&values).0)
        };
        let of_made = settings.exponents.iter().filter_map(|&exponent| at(exponent, Distribution::Autoregressive));
        let of_made: Vec<f64> = of_made.collect();
        let grows = of_made.windows(2).all(|pair| pair[1] > pair[0]);
        findings.say("Cross entropy generally grows with the number of models", grows, listed(&of_made, 2));
        let Some(&first) = settings.exponents.first() else { continue };
        let few = Distribution::ALL.map(|kind| at(first, kind));
        if let [Some(surrogate), Some(autoregressive), Some(categorical)] = few {
            let claim = format!("The surrogate is comparable with the others for 2{} models", superscript(first));
            let agrees = surrogate < autoregressive.min(categorical) + COMPARABLE;
            let seen =
                format!("surrogate {surrogate:.2}, autoregressive {autoregressive:.2}, categorical {categorical:.2}");
            findings.say(&claim, agrees, seen);
        }
        let gaps = settings.exponents.iter().filter_map(|&exponent| {
            let others = [Distribution::Surrogate, Distribution::Categorical].map(|kind| at(exponent, kind));
            let best = others.into_iter().flatten().reduce(f64::min)?;
            Some((exponent, at(exponent, Distribution::Autoregressive)? - best))
        });
        let gaps: Vec<(usize, f64)> = gaps.collect();
        let listed: Vec<String> =
            gaps.iter().map(|(exponent, gap)| format!("2{}: {gap:+.2}", superscript(*exponent))).collect();
        let agrees = gaps.iter().all(|(_, gap)| *gap < COMPARABLE);
        let claim = format!(
            "The autoregressive distribution is as good as the others, to {COMPARABLE} nats, however many models they can have"
        );
        findings.say(
            &claim,
            agrees,
            format!("its cross entropy less the better of the others': {}", listed.join(", ")),
        );
    }
    findings.0
}

fn notes(fits: &[Finished], left_out: &[(Case, String)], joint: &str, settings: &Settings) -> String {
    let worst = fits.iter().filter_map(|fit| fit.rhat).fold(f64::NAN, f64::max);
    let least = fits.iter().map(|fit| fit.effective).fold(f64::INFINITY, f64::min);
    let problem = |fit: &Finished| {
        let Case { misspecification, exponent, data_set, .. } = fit.case;
        (format!("{misspecification} 2{} {data_set}", superscript(exponent)), fit.rhat)
    };
    let mut text = format!(
        "\n## Notes\n\n\
         - Reference: {} reversible jump chains of {} sweeps after {} of burn-in, with the prior as pseudo-prior; largest R̂ \
         {worst:.3}, smallest effective sample size {least:.0}. Cross entropies are means over {} states.\n\
         - {}.\n\
         - {joint}\n",
        settings.reference.chains,
        settings.reference.sweeps,
        settings.reference.burn_in,
        settings.states,
        doubtful(fits.iter().map(problem)),
    );
    for distribution in Distribution::ALL {
        let mut exponents: Vec<usize> = left_out
            .iter()
            .filter(|(case, _)| case.distribution == distribution)
            .map(|(case, _)| case.exponent)
            .collect();
        exponents.sort_unstable();
        exponents.dedup();
        if let Some((_, reason)) = left_out.iter().find(|(case, _)| case.distribution == distribution) {
            let sizes: Vec<String> = exponents.iter().map(|&exponent| format!("2{}", superscript(exponent))).collect();
            let _ = writeln!(text, "- Left out: {distribution} with {} models ({reason}).", sizes.join(", "));
        }
    }
    text
}

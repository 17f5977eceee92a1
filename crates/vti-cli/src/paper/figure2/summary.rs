//! Means over data sets, and whether they say what the paper's figure shows.

use std::fmt::Write;

use super::rows::{Case, Family, Finished};
use super::settings::Settings;
use crate::paper::results::{cell, mean};
use crate::paper::study::{Prior, doubtful};
use crate::simulate::Level;

/// Means over the data sets of a misspecification, a prior and a family.
pub(super) struct Means {
    level: Level,
    prior: Prior,
    family: Family,
    data_sets: usize,
    total_variation: Option<f64>,
    cross_entropy: Option<f64>,
    slope: Option<f64>,
    khat: Option<f64>,
    seconds: Option<f64>,
    /// π and q of the null model, then of the one that made the data.
    null: [Option<f64>; 2],
    generating: [Option<f64>; 2],
}

impl Means {
    fn of(level: Level, prior: Prior, family: Family, fits: &[Finished]) -> Self {
        let wanted =
            |fit: &&Finished| (fit.case.misspecification, fit.case.prior, fit.case.family) == (level, prior, family);
        let own: Vec<&Finished> = fits.iter().filter(wanted).collect();
        let of = |value: &dyn Fn(&Finished) -> Option<f64>| mean(own.iter().map(|fit| value(fit)));
        Self {
            level,
            prior,
            family,
            data_sets: own.len(),
            total_variation: of(&|fit| Some(fit.total_variation())),
            cross_entropy: of(&Finished::cross_entropy),
            slope: of(&Finished::slope),
            khat: of(&|fit| fit.khat),
            seconds: of(&|fit| Some(fit.seconds)),
            null: [of(&|fit| Some(fit.null_and_generating()?.0.pi)), of(&|fit| Some(fit.null_and_generating()?.0.q))],
            generating: [
                of(&|fit| Some(fit.null_and_generating()?.1.pi)),
                of(&|fit| Some(fit.null_and_generating()?.1.q)),
            ],
        }
    }
}

/// All means, in the order of the figures.
pub(super) fn all(fits: &[Finished], levels: &[Level], priors: &[Prior]) -> Vec<[Means; 3]> {
    let settings = levels.iter().flat_map(|&level| priors.iter().map(move |&prior| (level, prior)));
    settings.map(|(level, prior)| Family::ALL.map(|family| Means::of(level, prior, family, fits))).collect()
}

/// The means as a table.
pub(super) fn table(all: &[[Means; 3]]) -> String {
    let mut text = String::from(
        "misspecification,prior,family,data_sets,total_variation,cross_entropy,correlation_with_log_pi,khat,seconds,\
         null_pi,null_q,generating_pi,generating_q\n",
    );
    for means in all.iter().flatten() {
        let Means { level, prior, family, data_sets, .. } = means;
        let _ = writeln!(
            text,
            "{},{},{},{data_sets},{}",
            level.name(),
            prior.name(),
            family.name(),
            numbers(means).map(cell).join(",")
        );
    }
    text
}

fn numbers(means: &Means) -> [Option<f64>; 9] {
    let Means { total_variation, cross_entropy, slope, khat, seconds, null, generating, .. } = means;
    [*total_variation, *cross_entropy, *slope, *khat, *seconds, null[0], null[1], generating[0], generating[1]]
}

/// Everything in words.
pub(super) fn page(all: &[[Means; 3]], fits: &[Finished], settings: &Settings) -> String {
    let mut text = format!(
        "# Figure 2 and its appendix versions\n\n\
         Scale `{}`; data sets of each kind: {}; seed {}; {} steps of {} draws (all sizes: settings.json). \
         Means over data sets; seconds are those of training one fit.\n\n\
         | misspecification | prior | family | total variation q, π | cross entropy, weighted by π | its correlation with \
         log π | k̂ | seconds | π null | q null | π generating | q generating |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n",
        settings.scale.name(),
        settings.data_sets,
        settings.seed,
        settings.train.steps,
        settings.train.batch,
    );
    for means in all.iter().flatten() {
        let shown = |value: Option<f64>| value.map_or("–".into(), |value| format!("{value:.3}"));
        let Means { level, prior, family, .. } = means;
        let cells = numbers(means).map(shown).join(" | ");
        let _ = writeln!(text, "| {} | {} | {} | {cells} |", level.name(), prior.name(), family.name());
    }
    text.push_str(&findings(all));
    text.push_str(&notes(fits, settings));
    text
}

/// What the paper's figures show, one by one, and what ours do.
fn findings(all: &[[Means; 3]]) -> String {
    let mut text = String::from("\n## What the paper's figures show, and these\n");
    for means in all {
        let [first, _, last] = means;
        let _ = writeln!(text, "\n**Misspecification {}, {} prior**\n", first.level.name(), first.prior.name());
        let mut say = |claim: &str, agrees: bool, seen: String| {
            let verdict = if agrees { "agrees" } else { "does not agree" };
            let _ = writeln!(text, "- {claim}: {verdict} ({seen}).");
        };
        let triple = |value: fn(&Means) -> Option<f64>| means.each_ref().map(|means| value(means).unwrap_or(f64::NAN));
        let shown = |values: &[f64; 3]| values.map(|value| format!("{value:.3}")).join(" → ");
        let distance = triple(|means| means.total_variation);
        say(
            "Points move to the diagonal from left to right",
            falls(&distance, 0.01),
            format!("total variation {}", shown(&distance)),
        );
        let entropy = triple(|means| means.cross_entropy);
        say("Cross entropy falls with expressiveness", falls(&entropy, 0.05), shown(&entropy));
        let slope = triple(|means| means.slope);
        let claim = "Posteriors of probable models are approximated better (negative slope below)";
        say(claim, slope.iter().all(|slope| *slope < 0.0), format!("correlation with log π {}", shown(&slope)));
        let known = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let (null, generating) = (known(first.null[0]), known(first.generating[0]));
        let both = format!("π of null {null:.4}, of the data-generating model {generating:.4}");
        match first.prior {
            Prior::Wide => {
                say("The chains favour the null model over the data-generating one", null > generating, both);
                let favoured = null > generating;
                let (null, generating) = (known(last.null[1]), known(last.generating[1]));
                let both = format!("q of null {null:.4}, of the data-generating model {generating:.4}, splines");
                let claim = "The learned q, unlike the chains, favours the data-generating model over the null model";
                say(claim, favoured && generating > null, both);
            }
            Prior::Focused => {
                let fair = 1.0 / 128.0;
                say("The data-generating model is given a high probability", generating > fair, both);
            }
        }
    }
    text
}

/// From left to right, as far as differences are larger than what chains and training leave open.
fn falls([first, middle, last]: &[f64; 3], open: f64) -> bool {
    last < first && *middle <= first + open && *last <= middle + open
}

fn notes(fits: &[Finished], settings: &Settings) -> String {
    let worst = fits.iter().filter_map(|fit| fit.rhat).fold(f64::NAN, f64::max);
    let least = fits.iter().map(|fit| fit.effective).fold(f64::INFINITY, f64::min);
    let unseen = fits.iter().flat_map(|fit| &fit.models).filter(|row| row.states == 0).count();
    let all: usize = fits.iter().map(|fit| fit.models.len()).sum();
    let problem = |fit: &Finished| {
        let Case { misspecification, prior, data_set, .. } = fit.case;
        (format!("{} {} {data_set}", misspecification.name(), prior.name()), fit.rhat)
    };
    let doubtful = doubtful(fits.iter().map(problem));
    format!(
        "\n## Notes\n\n\
         - Reference: {} reversible jump chains of {} sweeps after {} of burn-in, every {}th kept; largest R̂ {worst:.3}, \
         smallest effective sample size {least:.0}. Moves: bit flips as in the paper's appendix, and swaps of two terms \
         besides. The pseudo-prior is the prior under the focused prior, as in the appendix; under the wide prior it is \
         adapted to the posterior during burn-in, because proposals from a prior that wide are hardly ever accepted.\n\
         - {doubtful}. A second opinion is in fits.csv: the total variation between π and q corrected by importance weights.\n\
         - {:.1} % of the points have a π(m) of 0, models that no chain visited; they are in models.csv, not in the plots. \
         q(m) below 10⁻⁶ and the largest cross entropies are drawn at the edge.\n\
         - Agreement is judged by the means in the table; differences below 0.01 in total variation and 0.05 nats in cross \
         entropy do not count against it.\n\
         - A q that is near the posterior shares its sensitivity to the prior. Where q follows the chains under the wide \
         prior, the paper's remark that q is less sensitive cannot hold.\n\
         - Cross entropies use up to {} states of the chains in each model with at least {}.\n\
         - All families start from unit scale. The likelihood of inference is the normalised mixture with α = 0.1, σ₁ = 1, \
         σ₂ = 10 in all cases.\n",
        settings.reference_focused.chains,
        settings.reference_focused.sweeps,
        settings.reference_focused.burn_in,
        settings.reference_focused.thin,
        100.0 * unseen as f64 / all.max(1) as f64,
        settings.most_states,
        settings.least_states,
    )
}

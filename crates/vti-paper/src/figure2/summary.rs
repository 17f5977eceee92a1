//! Means over data sets, and whether they say what the paper's figure shows.

use std::fmt::Write;

use anyhow::Result;
use vti::problem::selection::simulate::Misspecification;

use super::rows::{Case, Family, Finished};
use super::settings::Settings;
use crate::results::mean;
use crate::study::{Prior, doubtful};
use crate::text::{self, Findings, cell, listed, shown};

/// A column of the tables: its name for machines, its title for people, and the number of a fit.
type Column = (&'static str, &'static str, fn(&Finished) -> Option<f64>);

const COLUMNS: [Column; 9] = [
    ("total_variation", "total variation q, π", |fit| Some(fit.total_variation())),
    ("cross_entropy", "cross entropy, weighted by π", Finished::cross_entropy),
    ("correlation_with_log_pi", "its correlation with log π", Finished::slope),
    ("khat", "k̂", |fit| fit.khat),
    ("seconds", "seconds", |fit| Some(fit.seconds)),
    ("null_pi", "π null", |fit| Some(fit.null_and_generating()?.0.pi)),
    ("null_q", "q null", |fit| Some(fit.null_and_generating()?.0.q)),
    ("generating_pi", "π generating", |fit| Some(fit.null_and_generating()?.1.pi)),
    ("generating_q", "q generating", |fit| Some(fit.null_and_generating()?.1.q)),
];

/// Means over the data sets of a misspecification, a prior and a family.
pub(super) struct Means {
    level: Misspecification,
    prior: Prior,
    family: Family,
    data_sets: usize,
    /// Of each column.
    numbers: [Option<f64>; COLUMNS.len()],
}

impl Means {
    fn new(level: Misspecification, prior: Prior, family: Family, fits: &[Finished]) -> Self {
        let wanted =
            |fit: &&Finished| (fit.case.misspecification, fit.case.prior, fit.case.family) == (level, prior, family);
        let own: Vec<&Finished> = fits.iter().filter(wanted).collect();
        let numbers = COLUMNS.map(|(_, _, value)| mean(own.iter().map(|fit| value(fit))));
        Self { level, prior, family, data_sets: own.len(), numbers }
    }

    /// Not a number where there is none.
    fn of(&self, column: &str) -> f64 {
        let place = COLUMNS.iter().position(|(name, ..)| *name == column);
        place.and_then(|place| self.numbers[place]).unwrap_or(f64::NAN)
    }
}

/// All means, in the order of the figures.
pub(super) fn all(fits: &[Finished], levels: &[Misspecification], priors: &[Prior]) -> Vec<[Means; 3]> {
    let settings = levels.iter().flat_map(|&level| priors.iter().map(move |&prior| (level, prior)));
    settings.map(|(level, prior)| Family::ALL.map(|family| Means::new(level, prior, family, fits))).collect()
}

/// The means as a table.
pub(super) fn table(all: &[[Means; 3]]) -> Result<String> {
    let names = ["misspecification", "prior", "family", "data_sets"].into_iter().chain(COLUMNS.map(|(name, ..)| name));
    let row = |Means { level, prior, family, data_sets, numbers }: &Means| {
        let first = [level.to_string(), prior.to_string(), family.to_string(), data_sets.to_string()];
        first.into_iter().chain(numbers.map(cell)).collect()
    };
    text::table(names, all.iter().flatten().map(row))
}

/// Everything in words.
pub(super) fn page(all: &[[Means; 3]], fits: &[Finished], settings: &Settings) -> String {
    let mut text = format!(
        "# Figure 2 and its appendix versions\n\n\
         Scale `{}`; data sets of each kind: {}; seed {}; {} steps of {} draws (all sizes: settings.json). \
         Means over data sets; seconds are those of training one fit.\n\n\
         | misspecification | prior | family | {} |\n|---|---|---|{}\n",
        settings.scale,
        settings.data_sets,
        settings.seed,
        settings.train.steps,
        settings.train.batch,
        COLUMNS.map(|(_, title, _)| title).join(" | "),
        "---|".repeat(COLUMNS.len()),
    );
    for Means { level, prior, family, numbers, .. } in all.iter().flatten() {
        let cells = numbers.map(|number| shown(number, 3)).join(" | ");
        let _ = writeln!(text, "| {level} | {prior} | {family} | {cells} |");
    }
    text + &findings(all) + &notes(fits, settings)
}

/// What the paper's figures show, one by one, and what ours do.
fn findings(all: &[[Means; 3]]) -> String {
    let mut findings = Findings(String::from("\n## What the paper's figures show, and these\n"));
    for means in all {
        let [first, _, last] = means;
        findings.about(&format!("Misspecification {}, {} prior", first.level, first.prior));
        let triple = |column| means.each_ref().map(|means| means.of(column));
        let shown = |values: &[f64; 3]| listed(values, 3);
        let distance = triple("total_variation");
        findings.say(
            "Points move to the diagonal from left to right",
            falls(&distance, 0.01),
            format!("total variation {}", shown(&distance)),
        );
        let entropy = triple("cross_entropy");
        findings.say("Cross entropy falls with expressiveness", falls(&entropy, 0.05), shown(&entropy));
        let slope = triple("correlation_with_log_pi");
        let claim = "Posteriors of probable models are approximated better (negative slope below)";
        let negative = slope.iter().all(|slope| *slope < 0.0);
        findings.say(claim, negative, format!("correlation with log π {}", shown(&slope)));
        let (null, generating) = (first.of("null_pi"), first.of("generating_pi"));
        let both = format!("π of null {null:.4}, of the data-generating model {generating:.4}");
        match first.prior {
            Prior::Wide => {
                let favoured = null > generating;
                findings.say("The chains favour the null model over the data-generating one", favoured, both);
                let (null, generating) = (last.of("null_q"), last.of("generating_q"));
                let both = format!("q of null {null:.4}, of the data-generating model {generating:.4}, splines");
                let claim = "The learned q, unlike the chains, favours the data-generating model over the null model";
                findings.say(claim, favoured && generating > null, both);
            }
            Prior::Focused => {
                let fair = 1.0 / 128.0;
                findings.say("The data-generating model is given a high probability", generating > fair, both);
            }
        }
    }
    findings.0
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
        (format!("{misspecification} {prior} {data_set}"), fit.rhat)
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
        settings.reference.chains,
        settings.reference.sweeps,
        settings.reference.burn_in,
        settings.reference.thin,
        100.0 * unseen as f64 / all.max(1) as f64,
        settings.most_states,
        settings.least_states,
    )
}

//! What speaks against a model, in words.

use super::{
    Calibration, Dispersion, FitKind, LISTED, Misfit, MisfitKind, ModelFit, Null, Outcome, OutcomeFit, Residuals,
    ScaleFit, Tested,
};

/// What happens by chance more often than this, in all columns together, does not speak against a model.
const LEVEL: f64 = 0.001;

/// The same for posterior predictive p-values, which cannot be much smaller than one over the number of draws.
const PREDICTIVE_LEVEL: f64 = 0.002;

/// Probabilities that are off by less do not matter.
const MIN_DISTANCE: f64 = 0.05;

/// Smaller skewness, or excess kurtosis, does not matter.
const MIN_SKEWNESS: f64 = 0.5;
const MIN_KURTOSIS: f64 = 0.8;

/// Smaller correlations do not matter.
const MIN_CORRELATION: f64 = 0.15;

/// Scales and dispersions within this factor do not matter.
const MIN_FACTOR: f64 = 1.25;

/// Calibration errors that exceed what chance does by less do not matter.
const MIN_CALIBRATION: f64 = 0.02;

/// Nodes that are named with what does not fit; further ones by name alone.
const EXPLAINED: usize = 4;

/// Rows that are named.
const NAMED_ROWS: usize = 5;

/// What speaks against the model of one of so many columns.
pub(super) fn misfits(fit: &OutcomeFit, outcomes: usize) -> Vec<Misfit> {
    let level = LEVEL / outcomes.max(1) as f64;
    let mut found = Vec::new();
    let mut note = |kind, is_large: bool, p_value: f64, level: f64, text: String| {
        if is_large && p_value < level {
            found.push(Misfit { kind, text, p_value });
        }
    };
    if let Some(Residuals { skewness, kurtosis, largest, outliers, bend, spread }) = &fit.residuals {
        let Tested { value, p_value } = *skewness;
        let side = if value > 0.0 { "right" } else { "left" };
        let text = format!("skewed to the {side} (skewness {value:.1})");
        note(MisfitKind::Skewness, value.abs() >= MIN_SKEWNESS, p_value, level, text);
        let Tested { value, p_value } = *kurtosis;
        let length = if value > 0.0 { "long" } else { "short" };
        let text = format!("tails too {length} (excess kurtosis {value:.1})");
        note(MisfitKind::Tails, value.abs() >= MIN_KURTOSIS, p_value, level, text);
        let text = format!("outliers ({})", rows(outliers));
        note(MisfitKind::Outliers, !outliers.is_empty(), largest.p_value, level, text);
        if let Some(Tested { value, p_value }) = *bend {
            let text = format!("residuals bend with the prediction (correlation {value:.2} with its square)");
            note(MisfitKind::Bend, value.abs() >= MIN_CORRELATION, p_value, level, text);
        }
        if let Some(Tested { value, p_value }) = *spread {
            let way = if value > 0.0 { "large" } else { "small" };
            let text = format!("errors are larger where predictions are {way} (correlation {value:.2})");
            note(MisfitKind::Spread, value.abs() >= MIN_CORRELATION, p_value, level, text);
        }
    }
    if let Some(ScaleFit { ratio, p_value }) = fit.scale {
        let text = format!("errors are {ratio:.2} times as large as their fixed scale says");
        note(MisfitKind::Scale, matters(ratio), p_value, level, text);
    }
    if let Some(Dispersion { ratio, p_value }) = fit.dispersion {
        let way = if ratio > 1.0 { "overdispersed" } else { "underdispersed" };
        let text = format!("counts vary {ratio:.1} times as much as they should ({way})");
        note(MisfitKind::Dispersion, matters(ratio), p_value, PREDICTIVE_LEVEL, text);
    }
    if let Some(Calibration { error, by_chance, p_value, .. }) = &fit.calibration {
        let text = format!(
            "predicted probabilities are off by {error:.3} on average, where chance alone makes it {:.3} ± {:.3}",
            by_chance.value, by_chance.se
        );
        note(MisfitKind::Calibration, error - by_chance.value >= MIN_CALIBRATION, *p_value, PREDICTIVE_LEVEL, text);
    }
    let text = format!("probabilities are off by up to {:.2}", fit.pit.distance);
    note(MisfitKind::Distribution, fit.pit.distance >= MIN_DISTANCE, fit.pit.p_value, level, text);
    found
}

fn matters(ratio: f64) -> bool {
    !(1.0 / MIN_FACTOR..=MIN_FACTOR).contains(&ratio)
}

/// Rows by their numbers.
fn rows(numbers: &[usize]) -> String {
    let named: Vec<String> = numbers.iter().take(NAMED_ROWS).map(usize::to_string).collect();
    let more = if numbers.len() > NAMED_ROWS { ", …" } else { "" };
    let rows = if numbers.len() == 1 { "row" } else { "rows" };
    format!("{rows} {}{more}", named.join(", "))
}

/// All of it in words.
pub(super) fn text(fit: &ModelFit, outcomes: &[Outcome<'_>]) -> String {
    let nodes = outcomes.iter().any(|outcome| outcome.null == Null::Zero) && outcomes.len() > 1;
    let first = match fit.kind {
        FitKind::TooFewRows => "too few rows to tell whether the model fits".to_string(),
        FitKind::NothingFound => {
            format!("nothing speaks against the model in {}", looked_at(fit))
        }
        FitKind::DoesNotFit if nodes => nodes_that_do_not_fit(fit),
        FitKind::DoesNotFit => {
            let one = |outcome: &OutcomeFit| format!("{}: {}", outcome.name, reasons(outcome));
            let bad: Vec<String> = bad(fit).map(one).collect();
            format!("the model does not fit {}", bad.join("; "))
        }
    };
    let prediction = if fit.outcomes.len() > 1 { None } else { fit.outcomes.first().map(prediction) };
    [Some(first), prediction.flatten(), influence(fit)].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Columns that do not fit.
fn bad(fit: &ModelFit) -> impl Iterator<Item = &OutcomeFit> {
    fit.outcomes.iter().filter(|outcome| !outcome.misfits.is_empty())
}

fn reasons(outcome: &OutcomeFit) -> String {
    outcome.misfits.iter().map(|misfit| misfit.text.as_str()).collect::<Vec<_>>().join(", ")
}

fn looked_at(fit: &ModelFit) -> String {
    if fit.rows < fit.of_rows {
        format!("{} of {} rows, each predicted without itself", fit.rows, fit.of_rows)
    } else {
        format!("{} rows, each predicted without itself", fit.rows)
    }
}

/// The worst first, with what is wrong about them in a word.
fn nodes_that_do_not_fit(fit: &ModelFit) -> String {
    let mut bad: Vec<&OutcomeFit> = bad(fit).collect();
    bad.sort_by(|a, b| b.pit.distance.total_cmp(&a.pit.distance));
    let short = |kind: MisfitKind| match kind {
        MisfitKind::Distribution => "distribution",
        MisfitKind::Skewness => "skewed",
        MisfitKind::Tails => "tails",
        MisfitKind::Outliers => "outliers",
        MisfitKind::Bend => "bent",
        MisfitKind::Spread => "uneven spread",
        MisfitKind::Scale => "scale of the noise",
        MisfitKind::Dispersion => "dispersion",
        MisfitKind::Calibration => "calibration",
    };
    let one = |(place, outcome): (usize, &&OutcomeFit)| {
        if place >= EXPLAINED {
            return outcome.name.clone();
        }
        // The distribution follows from the rest, where there is a rest.
        let kinds: Vec<&str> = outcome
            .misfits
            .iter()
            .filter(|misfit| misfit.kind != MisfitKind::Distribution || outcome.misfits.len() == 1)
            .map(|misfit| short(misfit.kind))
            .collect();
        format!("{} ({})", outcome.name, kinds.join(", "))
    };
    let named: Vec<String> = bad.iter().enumerate().map(one).collect();
    format!("the model does not fit {} of {} nodes: {}", bad.len(), fit.outcomes.len(), named.join(", "))
}

/// How rows are predicted.
fn prediction(outcome: &OutcomeFit) -> Option<String> {
    let (elpd, se) = (outcome.gain.elpd, outcome.gain.se);
    if !elpd.is_finite() || !se.is_finite() {
        return None;
    }
    Some(if elpd > 2.0 * se {
        format!("rows are predicted better than by an intercept alone, by {elpd:.1} ± {se:.1} nats")
    } else if elpd < -2.0 * se {
        format!("rows are predicted worse than by an intercept alone, by {:.1} ± {se:.1} nats", -elpd)
    } else {
        format!("rows are hardly predicted better than by an intercept alone ({elpd:.1} ± {se:.1} nats)")
    })
}

/// Rows that decide much.
fn influence(fit: &ModelFit) -> Option<String> {
    let above: usize = fit.outcomes.iter().map(|outcome| outcome.loo.khat_above).sum();
    let mut numbers: Vec<usize> = Vec::new();
    for row in fit.outcomes.iter().flat_map(|outcome| &outcome.loo.influential) {
        if !numbers.contains(row) && numbers.len() < LISTED {
            numbers.push(*row);
        }
    }
    let few = if above == 1 { ("one row decides", "it") } else { ("some rows decide", "them") };
    (above > 0)
        .then(|| format!("{} much (k̂ above 0.7: {}), and leaving {} out is not reliable", few.0, rows(&numbers), few.1))
}

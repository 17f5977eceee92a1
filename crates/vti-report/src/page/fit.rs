//! Whether the model fits the data: what was looked at, and plots of it.

use std::fmt::Write;

use vti::predictive::{Calibration, FitKind, ModelFit, OutcomeFit, Tested};

use super::table::{Cell, Column, Kind, folded};
use super::{CORRECTED, Content, LEARNED};
use crate::markup::escape;
use crate::number;
use crate::plot::{Axis, Bar, Bars, Border, Colour, Figure, Layer, Line, Panel, Points, Rule};

/// Nodes shown unfolded.
const SHOWN: usize = 20;

/// The 0.975 quantile of a standard normal number.
const REACH: f64 = 1.96;

/// What is seen first, beside the verdict, which is about another question.
pub(super) fn banner(fit: &ModelFit) -> String {
    let (class, word) = match fit.kind {
        FitKind::NothingFound => ("nothing-found", "Does the model fit the data? Nothing speaks against it"),
        FitKind::DoesNotFit => ("does-not-fit", "The model does not fit the data"),
        FitKind::TooFewRows => ("nothing-found", "Does the model fit the data? Too few rows to tell"),
    };
    let advice: String = fit.advice.iter().map(|advice| format!("<li>{}</li>", escape(advice))).collect();
    let advice = if advice.is_empty() { advice } else { format!("<ul>{advice}</ul>") };
    format!(
        "<div class=\"fit {class}\" role=\"status\"><strong>{word}</strong>{} <a href=\"#fit\">More</a>{advice}</div>\n",
        escape(&sentence(&fit.text))
    )
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", characters.as_str())
}

pub(super) fn section(content: &Content<'_>) -> Option<String> {
    let fit = content.answer.fit.as_ref()?;
    let graph = content.answer.found.graphs().is_some();
    let rows = if fit.rows < fit.of_rows {
        format!("{} of {} rows", number::count(fit.rows as u64), number::count(fit.of_rows as u64))
    } else {
        format!("{} rows", number::count(fit.rows as u64))
    };
    let predicted = if graph {
        format!(
            "Each node is predicted from its parents in the most probable graph, in {rows}, each row without itself,"
        )
    } else {
        format!("Each of {rows} is predicted without itself,")
    };
    let mut html = format!(
        "<h2>Does the model fit the data?</h2><p class=\"caption\">The verdict says whether these numbers are the \
         posterior of the model; this says whether the data contradict the model. {predicted} from draws of the posterior \
         (leave-one-out by Pareto-smoothed importance sampling). If the model fits, observed values are spread evenly \
         over the predicted probabilities: all bars are about as high as the dashed line, mostly within the thin ones.</p>"
    );
    if fit.outcomes.iter().any(|outcome| outcome.calibration.is_some()) {
        html.push_str(
            "<p class=\"caption\">Calibration: rows in groups by their predicted probability, and the share of ones in each; \
             chance alone leaves 19 of 20 within the upright lines.</p>",
        );
    }
    match &fit.outcomes[..] {
        [outcome] if !graph => html.push_str(&one(outcome, fit.rows)),
        outcomes if !graph => {
            for outcome in outcomes {
                let _ = write!(html, "<h3>{}</h3>{}", escape(&outcome.name), one(outcome, fit.rows));
            }
        }
        outcomes => html.push_str(&table(outcomes, fit.rows)),
    }
    Some(html)
}

/// A response: plots beside what they say.
fn one(outcome: &OutcomeFit, rows: usize) -> String {
    let mut figures = format!("<div>{}</div>", histogram(outcome, rows, (330.0, 180.0), true).inline("Histogram"));
    if let Some(calibration) = &outcome.calibration {
        let _ = write!(figures, "<div>{}</div>", calibrated(calibration).inline("Predicted and observed shares"));
    }
    let mut list = String::new();
    let mut item = |name: &str, text: &str| {
        let _ = write!(list, "<li><strong>{}</strong> {}</li>", escape(name), escape(text));
    };
    let (loo, gain) = (&outcome.loo, outcome.gain);
    item("leave-one-out", &format!("log predictive density {} nats", number::with_error(loo.elpd, loo.se)));
    item("against an intercept alone", &format!("better by {} nats", number::with_error(gain.elpd, gain.se)));
    item("effective number of parameters", &number::significant(loo.p_loo, 3));
    let worst =
        loo.khat.map_or_else(String::new, |khat| format!(", the largest k̂ is {}", number::significant(khat, 2)));
    item("rows with k̂ above 0.7", &format!("{}{worst}", loo.khat_above));
    item(
        "probabilities",
        &format!("off by {} at most, {}", number::significant(outcome.pit.distance, 2), p(outcome.pit.p_value)),
    );
    if let Some(residuals) = &outcome.residuals {
        item("skewness of residuals", &tested(&residuals.skewness));
        item("excess kurtosis of residuals", &tested(&residuals.kurtosis));
        let Tested { value, p_value } = residuals.largest;
        item("largest residual", &format!("{} standard deviations, {}", number::significant(value, 2), p(p_value)));
        if let (Some(bend), Some(spread)) = (&residuals.bend, &residuals.spread) {
            item("bend with the prediction", &tested(bend));
            item("spread with the prediction", &tested(spread));
        }
    }
    if let Some(scale) = &outcome.scale {
        item(
            "errors over their fixed scale",
            &format!("{}, {}", number::significant(scale.ratio, 3), p(scale.p_value)),
        );
    }
    if let Some(dispersion) = &outcome.dispersion {
        let text = format!("{}, {}", number::significant(dispersion.ratio, 3), p(dispersion.p_value));
        item("dispersion of counts", &text);
    }
    if let Some(Calibration { error, by_chance, p_value, .. }) = &outcome.calibration {
        let chance = number::with_error(by_chance.value, by_chance.se);
        item("calibration error", &format!("{}, by chance {chance}, {}", number::significant(*error, 2), p(*p_value)));
    }
    let misfits: String =
        outcome.misfits.iter().map(|misfit| format!("<li class=\"flag\">{}</li>", escape(&misfit.text))).collect();
    format!(
        "<div class=\"figures\">{figures}<div class=\"beside\"><ul class=\"looks\">{misfits}{list}</ul></div></div>"
    )
}

fn tested(found: &Tested) -> String {
    format!("{}, {}", number::significant(found.value, 2), p(found.p_value))
}

/// A p-value; tiny ones are not worth their digits.
fn p(value: f64) -> String {
    if value < 1e-6 { "p < 10⁻⁶".into() } else { format!("p = {}", number::significant(value, 2)) }
}

/// Nodes, one below the other.
fn table(outcomes: &[OutcomeFit], rows: usize) -> String {
    let mut columns = vec![Column::new(Kind::Name, "node"), Column::new(Kind::SmallPlot, "predicted probability")];
    let numbers = ["off by", "skewness", "excess kurtosis", "gain over no parents, nats"];
    columns.extend(numbers.map(|name| Column::new(Kind::Number, name)));
    columns.push(Column::new(Kind::Name, "what does not fit"));
    let row = |outcome: &OutcomeFit| {
        let of = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let skewness = of(outcome.residuals.as_ref().map(|residuals| residuals.skewness.value));
        let kurtosis = of(outcome.residuals.as_ref().map(|residuals| residuals.kurtosis.value));
        let misfits: Vec<&str> = outcome.misfits.iter().map(|misfit| misfit.text.as_str()).collect();
        let misfits = if misfits.is_empty() { "nothing found".to_string() } else { misfits.join(", ") };
        vec![
            Cell::name(&outcome.name),
            Cell::html(histogram(outcome, rows, (150.0, 34.0), false).inline("Histogram")),
            Cell::number(number::significant(outcome.pit.distance, 2), outcome.pit.distance),
            Cell::number(number::significant(skewness, 2), skewness),
            Cell::number(number::significant(kurtosis, 2), kurtosis),
            Cell::number(number::with_error(outcome.gain.elpd, outcome.gain.se), outcome.gain.elpd),
            Cell::label(&misfits),
        ]
    };
    let cells = outcomes.iter().map(row).collect();
    folded(&columns, cells, SHOWN, &format!("The other {} nodes", outcomes.len().saturating_sub(SHOWN)))
}

/// How observed values are spread over predicted probabilities, in comparison with even ones.
fn histogram(outcome: &OutcomeFit, rows: usize, panel_size: (f64, f64), labelled: bool) -> Figure {
    let shares = &outcome.pit.histogram;
    let count = shares.len().max(1) as f64;
    let bar =
        |(place, share): (usize, &f64)| Bar { at: (place as f64 + 0.5) / count, value: share * count, error: None };
    let bars = Bars {
        bars: shares.iter().enumerate().map(bar).collect(),
        width: 0.94 / count,
        colour: LEARNED,
        ..Bars::default()
    };
    let highest = bars.bars.iter().map(|bar| bar.value).fold(2.0, f64::max);
    // A bar of an even distribution has a binomial share of the rows.
    let reach = REACH * ((count - 1.0) / rows.max(1) as f64).sqrt();
    let mut layers: Vec<Layer> = vec![bars.into()];
    layers.push(Rule { at: 1.0, colour: Colour::Ink, dashed: true, ..Rule::default() }.into());
    for at in [1.0 - reach, 1.0 + reach].into_iter().filter(|at| *at > 0.0 && *at < highest) {
        let points = vec![(0.0, at), (1.0, at)];
        layers.push(
            Line { points, colour: Colour::Muted, width: 1.0, dashed: true, opacity: 0.6, ..Line::default() }.into(),
        );
    }
    let (title, x, y, border) = if labelled {
        (
            "Observed values".to_string(),
            Axis::linear("predicted probability of less"),
            Axis::linear("rows, relative"),
            Border::Grid,
        )
    } else {
        (String::new(), Axis::hidden(), Axis::hidden(), Border::Bottom)
    };
    let panel = Panel { title, x: x.within(0.0, 1.0), y: y.within(0.0, 1.05 * highest), layers, border };
    Figure { panels: vec![panel], panel_size, gap: if labelled { 18.0 } else { 0.0 }, ..Figure::default() }
}

/// Observed shares against predicted ones, with what chance makes of them.
fn calibrated(calibration: &Calibration) -> Figure {
    let mut layers: Vec<Layer> = vec![Layer::Diagonal];
    for group in &calibration.groups {
        let reach = REACH * (group.predicted * (1.0 - group.predicted) / group.rows.max(1) as f64).sqrt();
        let ends = [group.predicted - reach, group.predicted + reach].map(|end| end.clamp(0.0, 1.0));
        let points = ends.map(|end| (group.predicted, end)).to_vec();
        layers.push(Line { points, colour: Colour::Muted, width: 1.0, ..Line::default() }.into());
    }
    let points = calibration.groups.iter().map(|group| (group.predicted, group.observed)).collect();
    let titles = calibration.groups.iter().map(|group| {
        let (predicted, observed) = (number::probability(group.predicted), number::probability(group.observed));
        format!("{} rows: predicted {predicted}, observed {observed}", group.rows)
    });
    layers
        .push(Points { points, colour: CORRECTED, radius: 4.0, titles: titles.collect(), ..Points::default() }.into());
    let panel = Panel {
        title: "Calibration".into(),
        x: Axis::linear("predicted probability").within(0.0, 1.0),
        y: Axis::linear("observed share").within(0.0, 1.0),
        layers,
        ..Panel::default()
    };
    Figure { panels: vec![panel], panel_size: (240.0, 180.0), ..Figure::default() }
}

//! How training went.

use super::{Content, LEARNED, Trace};
use crate::number;
use crate::plot::{Axis, Colour, Figure, Layer, Line, Panel, Rule};

/// Points drawn of a trace.
const MAX_TRACE_POINTS: usize = 600;

/// The start is cut off where showing it would shrink the rest by more than this.
const FAR: f64 = 5.0;

/// Share of the trace that counts as its start.
const START: f64 = 0.25;

pub(super) fn section(content: &Content<'_>) -> Option<String> {
    let of = |value: fn(&Trace) -> f64| -> Vec<(f64, f64)> {
        content
            .trace
            .iter()
            .map(|point| (point.step as f64, value(point)))
            .filter(|point| point.1.is_finite())
            .collect()
    };
    let (elbo, entropy) = (of(|point| point.elbo), of(|point| point.entropy));
    if elbo.len().max(entropy.len()) < 2 {
        return None;
    }
    let evidence = Some(content.answer.log_evidence.estimate).filter(|value| value.is_finite());
    let mut figures = String::new();
    let mut add = |title: &str, points: &[(f64, f64)], line: Option<f64>, floor: Option<f64>| {
        if points.len() > 1 {
            figures.push_str(&format!("<div>{}</div>", panel(title, points, line, floor).inline(title)));
        }
    };
    add("Bound (ELBO)", &elbo, evidence, None);
    add("Entropy of q(m), nats", &entropy, None, Some(0.0));
    let mut caption = String::from("The bound rises towards the log evidence; ");
    caption.push_str(match evidence {
        Some(_) => "the gap that remains is the divergence of q from the posterior, in nats. ",
        None => "where it stays level, training is done. ",
    });
    caption.push_str(&summary(content.trace, evidence));
    let cut_off = |points: &[(f64, f64)], line: Option<f64>| {
        points.len() > 1 && points.iter().any(|point| point.1 < range(points, line, None).0)
    };
    if cut_off(&elbo, evidence) || cut_off(&entropy, None) {
        caption.push_str(" Ranges are those of the later steps: the start lies outside.");
    }
    Some(format!("<h2>Training</h2><p class=\"caption\">{caption}</p><div class=\"figures\">{figures}</div>"))
}

fn summary(trace: &[Trace], evidence: Option<f64>) -> String {
    let Some(last) = trace.last() else { return String::new() };
    let mut text = format!("{} steps", number::count(last.step));
    if last.seconds.is_finite() && last.seconds > 0.0 {
        text += &format!(" in {} s", number::significant(last.seconds, 3));
    }
    if let Some(evidence) = evidence {
        text += &format!("; corrected log evidence {}", number::significant(evidence, 5));
    }
    text + "."
}

/// One quantity by step: every point faintly, their running mean clearly.
fn panel(title: &str, points: &[(f64, f64)], line: Option<f64>, floor: Option<f64>) -> Figure {
    let window = (points.len() / 25).max(1);
    let mut layers: Vec<Layer> = Vec::new();
    if window > 1 {
        let thin = points.iter().step_by(points.len().div_ceil(MAX_TRACE_POINTS)).copied().collect();
        layers.push(Line { points: thin, colour: LEARNED, width: 1.0, opacity: 0.35, ..Line::default() }.into());
    }
    let smooth = running_mean(points, window);
    let smooth = smooth.iter().step_by(points.len().div_ceil(MAX_TRACE_POINTS)).copied().collect();
    layers.push(Line { points: smooth, colour: LEARNED, width: 2.0, ..Line::default() }.into());
    if let Some(at) = line {
        let name = format!("log evidence {}", number::significant(at, 5));
        layers.push(Rule { at, colour: Colour::Series(1), dashed: true, name, ..Rule::default() }.into());
    }
    let (low, high) = range(points, line, floor);
    let panel = Panel {
        title: title.into(),
        x: Axis::linear("step"),
        y: Axis::linear("").within(low, high),
        layers,
        ..Panel::default()
    };
    Figure { panels: vec![panel], panel_size: (400.0, 200.0), ..Figure::default() }
}

/// The range of what comes after the start, with a little of the rise before it, and of `line`.
fn range(points: &[(f64, f64)], line: Option<f64>, floor: Option<f64>) -> (f64, f64) {
    let start = (points.len() as f64 * START) as usize;
    let mut late: Vec<f64> = points[start.min(points.len() - 2)..].iter().map(|point| point.1).collect();
    late.sort_by(f64::total_cmp);
    // A few wild points shall not decide either.
    let cut = late.len() / 50;
    let (mut low, mut high) = (late[cut], late[late.len() - 1 - cut]);
    if let Some(line) = line {
        (low, high) = (low.min(line), high.max(line));
    }
    // Where the start is not far off, all is shown.
    let (least, most) = points.iter().fold((low, high), |(a, b), point| (a.min(point.1), b.max(point.1)));
    if most - least <= FAR * (high - low) {
        (low, high) = (least, most);
    }
    let room = (high - low).max(1e-9 * high.abs()).max(1e-6);
    let lowest = low - if low == least { 0.08 } else { 0.35 } * room;
    (floor.map_or(lowest, |floor| lowest.max(floor)), high + 0.1 * room)
}

/// The mean of each point and its `window` neighbours to both sides (fewer at the ends).
fn running_mean(points: &[(f64, f64)], window: usize) -> Vec<(f64, f64)> {
    let reach = window / 2;
    let mean = |i: usize| {
        let reach = reach.min(i).min(points.len() - 1 - i);
        let around = &points[i - reach..=i + reach];
        (points[i].0, around.iter().map(|point| point.1).sum::<f64>() / around.len() as f64)
    };
    (0..points.len()).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_early_rise_does_not_flatten_the_rest() {
        let points: Vec<(f64, f64)> = (0..300)
            .map(|i| (f64::from(i), -80.0 - 1e4 * (-f64::from(i) / 5.0).exp() + 0.1 * f64::from(i % 7)))
            .collect();
        let (low, high) = range(&points, Some(-79.0), None);
        assert!(low > -83.0 && low < -80.0 && high > -79.0 && high < -78.5, "{low} {high}");
    }

    #[test]
    fn means_keep_straight_lines() {
        let points: Vec<(f64, f64)> = (0..20).map(|i| (f64::from(i), 2.0 * f64::from(i))).collect();
        for (mean, point) in running_mean(&points, 6).iter().zip(&points) {
            assert!((mean.1 - point.1).abs() < 1e-12);
        }
    }
}

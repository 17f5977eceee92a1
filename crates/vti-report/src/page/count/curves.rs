//! Curves with bands over what was observed, and where components are.

use vti::answer::{Band, Count, Curve, Observed, Positions, Scale, Shape};

use super::heading;
use crate::markup::escape;
use crate::page::{CORRECTED, Content, LEARNED};
use crate::plot::{Area, Axis, Colour, Figure, Layer, Line, Panel, Points, Ribbon, Scale as Axes};

/// Width and height of a plot.
const SIZE: (f64, f64) = (820.0, 260.0);
/// The same of depths, which run downwards.
const UPRIGHT: (f64, f64) = (420.0, 420.0);

pub(in crate::page) fn curves(content: &Content<'_>) -> Option<String> {
    let count = content.answer.found.count()?;
    let drawn = |curve: &Curve| {
        let name = heading(&curve.name);
        let said = if curve.observed.is_some() { " Behind it, what was observed." } else { "" };
        format!(
            "<h2>{}</h2><p class=\"caption\">Averaged over the number of {}. Line: posterior mean; dashed: median; bands hold, at \
             each place on its own, {} of the probability.{said}</p><div class=\"scroll\">{}</div>",
            escape(&name),
            escape(&count.counted.plural),
            levels(&curve.bands),
            figure(curve).inline(&name)
        )
    };
    (!count.curves.is_empty()).then(|| count.curves.iter().map(drawn).collect::<String>())
}

/// As "50 % and 90 %".
fn levels(bands: &[Band]) -> String {
    let percents: Vec<String> = bands.iter().map(|band| format!("{} %", (100.0 * band.level).round())).collect();
    percents.join(" and ")
}

/// A curve's values as corners of a line.
fn corners(curve: &Curve, values: &[f64]) -> Vec<(f64, f64)> {
    let points = curve.x.iter().copied().zip(values.iter().copied());
    match curve.shape {
        Shape::Line => points.collect(),
        Shape::Steps => steps(&curve.x, values),
    }
}

/// A value holds until the next place.
fn steps(x: &[f64], values: &[f64]) -> Vec<(f64, f64)> {
    x.windows(2).zip(values).flat_map(|(ends, value)| [(ends[0], *value), (ends[1], *value)]).collect()
}

fn figure(curve: &Curve) -> Figure {
    let turned = |points: Vec<(f64, f64)>| -> Vec<(f64, f64)> {
        if curve.downwards { points.into_iter().map(|(x, y)| (y, x)).collect() } else { points }
    };
    let mut layers: Vec<Layer> = Vec::new();
    layers.extend(curve.observed.as_ref().map(|observed| behind(observed, &turned)));
    for (place, band) in curve.bands.iter().enumerate().rev() {
        let (low, high) = (turned(corners(curve, &band.low)), turned(corners(curve, &band.high)));
        let name = format!("{} %", (100.0 * band.level).round());
        // Narrower ones lie above wider ones, and are darker.
        let opacity = if place == 0 { 0.3 } else { 0.16 };
        layers.push(Ribbon { low, high, colour: LEARNED, opacity, name }.into());
    }
    let line = |values: &[f64], dashed: bool, width: f64, name: &str| {
        let points = turned(corners(curve, values));
        Layer::from(Line { points, colour: LEARNED, width, dashed, name: name.into(), ..Line::default() })
    };
    layers.push(line(&curve.median, true, 1.2, "median"));
    layers.push(line(&curve.mean, false, 1.8, "mean"));
    let (x, y) = (axis(&curve.x_label, curve.x_scale), axis(&curve.y_label, curve.y_scale));
    let ends = curve.x.first().copied().zip(curve.x.last().copied()).filter(|(first, last)| first < last);
    let x = match ends {
        Some((first, last)) if curve.x_scale == Scale::Linear => x.within(first, last),
        _ => x,
    };
    let (panel, panel_size) = if curve.downwards {
        (Panel { x: y, y: Axis { reversed: true, ..x }, layers, ..Panel::default() }, UPRIGHT)
    } else {
        (Panel { x, y, layers, ..Panel::default() }, SIZE)
    };
    Figure { panels: vec![panel], panel_size, ..Figure::default() }
}

fn axis(label: &str, scale: Scale) -> Axis {
    match scale {
        Scale::Linear => Axis::linear(label),
        Scale::Log => Axis { scale: Axes::Log, ..Axis::linear(label) },
    }
}

/// Places of a drawing, across and upwards.
type Places = Vec<(f64, f64)>;

/// What was observed. Bars stand on zero.
fn behind(observed: &Observed, turned: &dyn Fn(Places) -> Places) -> Layer {
    match observed {
        Observed::Points { x, y } => {
            let points = turned(x.iter().copied().zip(y.iter().copied()).collect());
            let radius = if points.len() > 300 { 1.2 } else { 2.0 };
            Points { points, colour: Colour::Muted, radius, opacity: 0.7, name: "observed".into(), ..Points::default() }
                .into()
        }
        Observed::Histogram { edges, heights } => {
            Area { points: turned(steps(edges, heights)), colour: Colour::Muted, name: "observed".into() }.into()
        }
    }
}

pub(in crate::page) fn positions(content: &Content<'_>) -> Option<String> {
    let count = content.answer.found.count()?;
    (!count.positions.is_empty())
        .then(|| count.positions.iter().map(|found| intensity(count, found)).collect::<String>())
}

fn intensity(count: &Count, found: &Positions) -> String {
    let values: Vec<f64> = found.intensity().collect();
    let name = heading(&found.name);
    let points = steps(&found.edges, &values);
    let ends = found.edges.first().copied().zip(found.edges.last().copied()).filter(|(first, last)| first < last);
    let x = Axis::linear(&found.label);
    let panel = Panel {
        x: ends.map_or(x.clone(), |(first, last)| x.within(first, last)),
        y: Axis::linear("expected per unit"),
        layers: vec![Area { points, colour: CORRECTED, ..Area::default() }.into()],
        ..Panel::default()
    };
    let figure = Figure { panels: vec![panel], panel_size: (SIZE.0, 0.6 * SIZE.1), ..Figure::default() };
    format!(
        "<h2>{}</h2><p class=\"caption\">How many {} are to be expected per unit of the axis, averaged over their number: the area \
         over an interval is the expected number in it, and that over all of them the mean number.</p>\
         <div class=\"scroll\">{}</div>",
        escape(&name),
        escape(&count.counted.plural),
        figure.inline(&name)
    )
}

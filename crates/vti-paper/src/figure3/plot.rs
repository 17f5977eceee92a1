//! The figure: a panel for each of the paper's four scores, a line for each method.

use vti::graph::metrics::{Better, Convention};
use vti_report::plot::{Axis, Colour, Figure, Layer, Line, Panel, Points, dodge};

use super::rows::{METHODS, Mean, Means};
use super::settings::Settings;
use crate::graphs::{Method, paper_conventions};

/// How far lines are moved apart, so that their error bars do not cover each other: the share of what bars would need.
const APART: f64 = 0.35;

/// Means and standard errors over data sets, against the number of rows.
pub(super) fn figure(means: &[Means<'_>], settings: &Settings) -> Figure {
    let shown: Vec<Method> = METHODS
        .into_iter()
        .filter(|method| *method != Method::Prior && means.iter().any(|means| means.method == *method))
        .collect();
    let names: Vec<String> = settings.rows.iter().map(usize::to_string).collect();
    let panel = |convention: &Convention| {
        let better = if convention.better == Better::Higher { "higher is better" } else { "lower is better" };
        let layers = shown.iter().enumerate().flat_map(|(place, &method)| {
            let (offset, _) = dodge(shown.len(), place);
            let points = settings.rows.iter().enumerate().filter_map(|(at, &rows)| {
                let own = means.iter().find(|means| (means.rows, means.method) == (rows, method))?;
                Some((at as f64 + APART * offset, own.of(convention)?))
            });
            layers(method, place, &points.collect::<Vec<_>>())
        });
        Panel {
            title: format!("{} ({better})", convention.label),
            x: Axis::names("rows", names.clone()),
            y: Axis::linear(""),
            layers: layers.collect(),
            ..Panel::default()
        }
    };
    Figure {
        panels: paper_conventions().iter().map(panel).collect(),
        columns: 2,
        panel_size: (330.0, 220.0),
        ..Figure::default()
    }
}

/// A line through the means, a stroke for each error, and the means themselves.
fn layers(method: Method, place: usize, points: &[(f64, Mean)]) -> Vec<Layer> {
    let trivial = matches!(method, Method::EmptyGraph | Method::RandomOrder);
    let colour = if trivial { Colour::Muted } else { Colour::Series(place) };
    let name = method.title().to_string();
    let means: Vec<(f64, f64)> = points.iter().map(|(at, mean)| (*at, mean.value)).collect();
    let dashed = matches!(method, Method::RandomOrder | Method::VtiCorrected | Method::DagmaEdgeCount | Method::Dibs);
    let mut layers = vec![Line { points: means.clone(), colour, dashed, name, ..Line::default() }.into()];
    for (at, mean) in points {
        let se = mean.se.unwrap_or(0.0);
        let ends = vec![(*at, mean.value - se), (*at, mean.value + se)];
        layers.push(Line { points: ends, colour, width: 1.0, ..Line::default() }.into());
    }
    layers.push(Points { points: means, colour, ..Points::default() }.into());
    layers
}

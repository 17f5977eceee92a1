//! The figure: one for each misspecification and prior, two rows of three panels.

use vti::problem::selection::simulate::Misspecification;
use vti_report::plot::{Axis, Colour, Figure, Key, Layer, Marker, Panel, Points, Sign, Ticks};

use super::rows::{Family, Finished, ModelRow};
use crate::study::Prior;

/// Probabilities below this are shown as this.
const LEAST: f64 = 1e-6;
/// Among the cross entropies of a figure, the share beyond which they are shown at the upper edge.
const SHOWN: f64 = 0.99;

/// What is drawn of a model; nothing where it has no place.
type Place = fn(&ModelRow) -> Option<(f64, f64)>;

/// q(m) against π(m) above, the cross entropy of each model against π(m) below; families from left to right.
pub(super) fn figure(level: Misspecification, prior: Prior, fits: &[&Finished]) -> Figure {
    let ranges = Ranges::of(fits);
    let panels = [(true, probabilities as Place), (false, cross_entropies as Place)];
    let panels = panels.iter().flat_map(|&(top, place)| {
        let ranges = &ranges;
        Family::ALL.iter().map(move |&family| {
            let first = family == Family::Diagonal;
            Panel {
                title: if top { title(family).into() } else { String::new() },
                x: if top { unlabelled(ranges.log_axis("")) } else { ranges.log_axis("π(m)") },
                y: match (top, first) {
                    (true, true) => ranges.log_axis("q(m)"),
                    (true, false) => unlabelled(ranges.log_axis("")),
                    (false, true) => ranges.entropy_axis("H(π(θ | m), q(θ | m))"),
                    (false, false) => unlabelled(ranges.entropy_axis("")),
                },
                layers: layers(top, fits.iter().filter(|fit| fit.case.family == family), place, ranges),
                ..Panel::default()
            }
        })
    });
    let key = |name: &str, marker| Key { name: name.into(), sign: Sign::Marker(marker), colour: Colour::Muted };
    Figure {
        title: format!("Misspecification: {level}, {prior} prior N(0, {}²)", prior.scale()),
        panels: panels.collect(),
        columns: 3,
        panel_size: (230.0, 200.0),
        gap: 12.0,
        keys: vec![
            key("null model", Marker::Circle),
            key("data-generating model", Marker::Triangle),
            key("another model; colours are data sets", Marker::Square),
        ],
    }
}

fn title(family: Family) -> &'static str {
    match family {
        Family::Diagonal => "diagonal Gaussian",
        Family::Affine => "5 affine layers",
        Family::Spline => "4 spline layers",
    }
}

fn unlabelled(axis: Axis) -> Axis {
    Axis { ticks: Ticks::Unlabelled, ..axis }
}

fn probabilities(row: &ModelRow) -> Option<(f64, f64)> {
    (row.pi > 0.0).then_some((row.pi, row.q))
}

fn cross_entropies(row: &ModelRow) -> Option<(f64, f64)> {
    Some((row.pi, row.cross_entropy?.0))
}

/// Ranges that all panels of a row share.
struct Ranges {
    low: f64,
    entropy: (f64, f64),
}

impl Ranges {
    fn of(fits: &[&Finished]) -> Self {
        let rows = || fits.iter().flat_map(|fit| &fit.models);
        let least = rows().filter(|row| row.pi > 0.0).map(|row| row.pi.min(row.q)).fold(1.0, f64::min);
        let mut entropies: Vec<f64> = rows().filter_map(|row| Some(row.cross_entropy?.0)).collect();
        entropies.sort_by(f64::total_cmp);
        let last = entropies.len().saturating_sub(1);
        let at = |place: usize| entropies.get(place).copied().unwrap_or(0.0);
        let (low, high) = (at(0), at((SHOWN * last as f64) as usize));
        let room = 0.06 * (high - low).max(0.1);
        Self { low: least.clamp(LEAST, 0.1) / 2.0, entropy: (low - room, high + room) }
    }

    fn log_axis(&self, label: &str) -> Axis {
        Axis::log(label).within(self.low, 1.5)
    }

    fn entropy_axis(&self, label: &str) -> Axis {
        Axis::linear(label).within(self.entropy.0, self.entropy.1)
    }

    /// Moves a point that would fall off to the edge.
    fn keep(&self, top: bool, (x, y): (f64, f64)) -> (f64, f64) {
        let least = self.low * 1.15;
        let (x, room) = (x.max(least), 0.02 * (self.entropy.1 - self.entropy.0));
        if top { (x, y.max(least)) } else { (x, y.min(self.entropy.1 - room)) }
    }
}

/// All models of all data sets; the two that matter lie above the others.
fn layers<'a>(top: bool, fits: impl Iterator<Item = &'a &'a Finished>, place: Place, ranges: &Ranges) -> Vec<Layer> {
    let (mut many, mut few) = (Vec::new(), Vec::new());
    for fit in fits {
        let colour = Colour::Series(fit.case.data_set - 1);
        let points = |chosen: fn(&ModelRow) -> bool| {
            let rows = fit.models.iter().filter(move |row| chosen(row)).filter_map(|row| Some((row, place(row)?)));
            let points = rows.map(|(row, at)| (ranges.keep(top, at), row.model.clone()));
            let (points, titles): (Vec<(f64, f64)>, Vec<String>) = points.unzip();
            Points { points, titles, colour, ..Points::default() }
        };
        let others = points(|row| !row.null && !row.generating);
        many.push(Points { marker: Marker::Square, radius: 1.6, opacity: 0.7, ..others }.into());
        few.push(Points { radius: 5.0, outlined: true, ..points(|row| row.null) }.into());
        let generating = points(|row| row.generating && !row.null);
        few.push(Points { marker: Marker::Triangle, radius: 5.5, outlined: true, ..generating }.into());
    }
    top.then_some(Layer::Diagonal).into_iter().chain(many).chain(few).collect()
}

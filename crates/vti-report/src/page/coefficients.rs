//! How large the effects are.

use super::table::{Cell, Column, Kind, folded};
use super::{CORRECTED, exact_name, short};
use crate::input::{Coefficient, Report};
use crate::number;
use crate::plot::{Area, Axis, Border, Colour, Density, Figure, Layer, Line, Panel, Points, Rule};

/// Coefficients shown unfolded.
const SHOWN: usize = 20;

/// Places of the curve of a density.
const CURVE: usize = 90;

pub(super) fn section(report: &Report) -> Option<String> {
    if report.coefficients.is_empty() {
        return None;
    }
    let exact = exact_name(report).filter(|_| report.coefficients.iter().any(|row| row.mean.exact.is_some()));
    let mut columns = vec![Column::new(Kind::Name, "coefficient"), Column::new(Kind::SmallPlot, "posterior")];
    let numbers = ["mean, q", "mean, corrected"].into_iter().map(str::to_owned);
    let numbers = numbers.chain(exact.map(|name| format!("mean, {}", short(name))));
    let numbers = numbers.chain(["sd", "95 % interval", "inclusion"].map(str::to_owned));
    columns.extend(numbers.map(|name| Column::new(Kind::Number, &name)));
    let count = report.coefficients.len();
    let rows = leading_first(&report.coefficients).into_iter().map(|row| cells(row, exact.is_some())).collect();
    Some(format!(
        "<h2>Coefficients</h2><p class=\"caption\">Averaged over all models, in the units of the data. Curve: density of \
         the corrected draws where the coefficient is in the model, its height that probability. Spike at 0: the \
         probability that the coefficient is exactly 0, on the same scale. Bar below: mean and central 95 % interval.\
         </p>{}",
        folded(&columns, rows, SHOWN, &format!("The other {} coefficients", count.saturating_sub(SHOWN)))
    ))
}

/// Few coefficients stay in the order of the data; of many, those most probably in the model come first.
fn leading_first(coefficients: &[Coefficient]) -> Vec<&Coefficient> {
    let mut order: Vec<&Coefficient> = coefficients.iter().collect();
    if coefficients.len() > SHOWN {
        let rank = |row: &Coefficient| if row.inclusion.is_finite() { row.inclusion } else { -1.0 };
        order.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    }
    order
}

fn cells(row: &Coefficient, with_exact: bool) -> Vec<Cell> {
    let mut cells = vec![
        Cell::name(&row.name),
        Cell::html(plot(row)),
        Cell::number(number::significant(row.mean.q, 3), row.mean.q),
        Cell::number(number::with_error(row.mean.corrected, row.mean.se), row.mean.corrected),
    ];
    if with_exact {
        let exact = row.mean.exact.unwrap_or(f64::NAN);
        cells.push(Cell::number(number::significant(exact, 3), exact));
    }
    let (low, high) = row.interval;
    let interval = format!("{} to {}", number::significant(low, 3), number::significant(high, 3));
    let inclusion = Cell::number(number::probability(row.inclusion), row.inclusion);
    cells.extend([
        Cell::number(number::significant(row.sd, 3), row.sd),
        Cell::number(interval, low),
        if row.inclusion < 1.0 {
            let out = number::probability(1.0 - row.inclusion);
            inclusion.followed_by(&format!("<span class=\"second\">P(= 0) {out}</span>"))
        } else {
            inclusion
        },
    ]);
    cells
}

/// Slab, spike and interval of one coefficient.
fn plot(row: &Coefficient) -> String {
    let inclusion = if row.inclusion.is_finite() { row.inclusion.clamp(0.0, 1.0) } else { 1.0 };
    let density = Density::of(&row.draws, &row.weights);
    let mut layers: Vec<Layer> = Vec::new();
    if let Some(density) = density.as_ref().filter(|density| density.peak() > 0.0) {
        let points = trimmed(density.curve(CURVE, inclusion / density.peak()), inclusion);
        layers.push(Area { points, colour: CORRECTED, ..Area::default() }.into());
    }
    let (low, high) = row.interval;
    if low.is_finite() && high.is_finite() {
        layers.push(
            Line { points: vec![(low, -0.16), (high, -0.16)], colour: Colour::Ink, width: 2.0, ..Line::default() }
                .into(),
        );
    }
    let mean = (row.mean.corrected, -0.16);
    layers.push(Points { points: vec![mean], colour: Colour::Ink, radius: 3.0, ..Points::default() }.into());
    if zero_belongs(&layers, inclusion) {
        layers.push(Rule { at: 0.0, upright: true, colour: Colour::Muted, dashed: true, ..Rule::default() }.into());
        if inclusion < 1.0 {
            let points = vec![(0.0, 0.0), (0.0, 1.0 - inclusion)];
            layers.push(Line { points, colour: Colour::Ink, width: 3.0, ..Line::default() }.into());
        }
    }
    let panel = Panel { y: Axis::hidden().within(-0.3, 1.06), layers, border: Border::Bottom, ..Panel::default() };
    let figure = Figure { panels: vec![panel], panel_size: (215.0, 52.0), ..Figure::default() };
    figure.inline(&format!("Posterior of {}", row.name))
}

/// The curve without the ends that lie flat on the ground, so that the rest has room.
fn trimmed(curve: Vec<(f64, f64)>, height: f64) -> Vec<(f64, f64)> {
    let visible = |(_, y): &(f64, f64)| *y > 0.004 * height;
    let first = curve.iter().position(visible).unwrap_or(0);
    let last = curve.iter().rposition(visible).unwrap_or(curve.len().saturating_sub(1));
    curve.into_iter().take(last + 1).skip(first).collect()
}

/// Zero is shown unless it is far from everything else and hardly possible.
fn zero_belongs(layers: &[Layer], inclusion: f64) -> bool {
    let places = layers.iter().flat_map(|layer| match layer {
        Layer::Area(area) => area.points.as_slice(),
        Layer::Line(line) => line.points.as_slice(),
        _ => &[],
    });
    let ends = places.map(|(x, _)| (*x, *x)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let Some((low, high)) = ends else { return true };
    inclusion < 0.999 || (low - (high - low) < 0.0 && high + (high - low) > 0.0)
}

//! How large the effects are.

use vti::answer::{Coefficient, Found};

use super::draws::Draws;
use super::table::{Cell, Column, Kind, folded};
use super::{CORRECTED, Content, Versions, corrected, short};
use crate::number;
use crate::plot::{Area, Axis, Border, Colour, Density, Figure, Layer, Line, Panel, Points, Rule};

/// Coefficients shown unfolded.
const SHOWN: usize = 20;

/// Draws of a coefficient.
const DRAWS: usize = 2000;

/// Places of the curve of a density.
const CURVE: usize = 90;

/// A coefficient, with some of its draws.
struct Row<'a> {
    name: &'a str,
    found: &'a Coefficient,
    /// Probability that it is in the model, corrected; not a number where there are no draws.
    inclusion: f64,
    /// Given that it is in the model, counting alike.
    draws: Vec<f64>,
}

pub(super) fn section(content: &Content<'_>) -> Option<String> {
    // Weights of equations stand with the edges.
    let found = match &content.answer.found {
        Found::Select(terms) | Found::Own(terms) => &terms.coefficients.0,
        Found::Count(count) => &count.coefficients.0,
        Found::Dag(_) => return None,
    };
    if found.is_empty() {
        return None;
    }
    let exact = content.versions.exact.filter(|_| found.iter().any(|(_, row)| row.mean.exact.is_some()));
    let versions = Versions { exact, ..content.versions };
    let mut columns = vec![Column::new(Kind::Name, "coefficient"), Column::new(Kind::SmallPlot, "posterior")];
    let own = versions.corrected.map(|by| if versions.learned { format!("mean, {by}") } else { "mean".into() });
    let numbers = [versions.learned.then(|| "mean, q".to_owned()), own].into_iter().flatten();
    let numbers = numbers.chain(exact.map(|name| format!("mean, {}", short(name))));
    let numbers = numbers.chain(["sd", "95 % interval", "inclusion"].map(str::to_owned));
    columns.extend(numbers.map(|name| Column::new(Kind::Number, &name)));
    let count = found.len();
    let rows = leading_first(rows(found, content.draws.as_ref())).iter().map(|row| cells(row, versions)).collect();
    Some(format!(
        "<h2>Coefficients</h2><p class=\"caption\">Averaged over all models, in the units of the data. Curve: density of \
         the{} draws where the coefficient is in the model, its height that probability. Spike at 0: the \
         probability that the coefficient is exactly 0, on the same scale. Bar below: mean and central 95 % interval.\
         </p>{}",
        corrected(versions),
        folded(&columns, rows, SHOWN, &format!("The other {} coefficients", count.saturating_sub(SHOWN)))
    ))
}

/// Coefficients with their draws.
fn rows<'a>(found: &'a [(String, Coefficient)], draws: Option<&Draws<'_>>) -> Vec<Row<'a>> {
    let row = |(name, found): &'a (String, Coefficient)| {
        let parameter = draws.and_then(|draws| draws.samples.names.iter().position(|other| other == name));
        let (Some(draws), Some(parameter)) = (draws, parameter) else {
            return Row { name, found, inclusion: f64::NAN, draws: Vec::new() };
        };
        let rows = draws.rows_with(parameter);
        // Weights that sum to 1 do so up to rounding only.
        let in_every_model = draws.samples.models.iter().all(|model| model.active.get(parameter) == Some(&true));
        let inclusion = if in_every_model { 1.0 } else { rows.iter().map(|&row| draws.weights[row]).sum() };
        let inclusion = f64::clamp(inclusion, 0.0, 1.0);
        Row { name, found, inclusion, draws: draws.values(&draws.thin(&rows, DRAWS), parameter) }
    };
    found.iter().map(row).collect()
}

/// Few coefficients stay in the order of the data; of many, those most probably in the model come first.
fn leading_first(mut rows: Vec<Row<'_>>) -> Vec<Row<'_>> {
    if rows.len() > SHOWN {
        let rank = |row: &Row<'_>| if row.inclusion.is_finite() { row.inclusion } else { -1.0 };
        rows.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    }
    rows
}

fn cells(row: &Row<'_>, versions: Versions) -> Vec<Cell> {
    let Coefficient { mean, sd, interval: [low, high] } = *row.found;
    let mut cells = vec![Cell::name(row.name), Cell::html(plot(row))];
    if versions.learned {
        cells.push(Cell::number(number::significant(mean.q, 3), mean.q));
    }
    if versions.corrected.is_some() {
        cells.push(Cell::number(number::with_error(mean.corrected, mean.se), mean.corrected));
    }
    if versions.exact.is_some() {
        let exact = mean.exact.unwrap_or(f64::NAN);
        cells.push(Cell::number(number::significant(exact, 3), exact));
    }
    let interval = format!("{} to {}", number::significant(low, 3), number::significant(high, 3));
    let inclusion = Cell::number(number::probability(row.inclusion), row.inclusion);
    cells.extend([
        Cell::number(number::significant(sd, 3), sd),
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
fn plot(row: &Row<'_>) -> String {
    let inclusion = if row.inclusion.is_finite() { row.inclusion.clamp(0.0, 1.0) } else { 1.0 };
    let density = Density::of(&row.draws, &vec![1.0 / row.draws.len().max(1) as f64; row.draws.len()]);
    let mut layers: Vec<Layer> = Vec::new();
    if let Some(density) = density.as_ref().filter(|density| density.peak() > 0.0) {
        let points = trimmed(density.curve(CURVE, inclusion / density.peak()), inclusion);
        layers.push(Area { points, colour: CORRECTED, ..Area::default() }.into());
    }
    let [low, high] = row.found.interval;
    if low.is_finite() && high.is_finite() {
        layers.push(
            Line { points: vec![(low, -0.16), (high, -0.16)], colour: Colour::Ink, width: 2.0, ..Line::default() }
                .into(),
        );
    }
    let mean = (row.found.mean.corrected, -0.16);
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

//! Which models are probable.

use std::fmt::Write;

use super::bars::{Ruler, legend, number_cells, number_columns};
use super::table::{Cell, Column, Kind, folded};
use super::{CORRECTED, LEARNED, exact_name, graph};
use crate::input::{ModelRow, Report};
use crate::number;
use crate::plot::{Axis, Colour, Figure, Layer, Marker, Panel, Points};

/// Models shown unfolded.
const UNFOLDED_MODELS: usize = 15;
/// Models shown at all.
const MAX_LISTED_MODELS: usize = 200;
/// From this many on a scatter plot says more than the table.
const MIN_SCATTER_MODELS: usize = 8;
/// Above this, importance weights of a model have too heavy a tail to be relied on.
const HEAVY_TAIL: f64 = 0.7;

pub(super) fn section(report: &Report) -> Option<String> {
    if report.models.is_empty() {
        return None;
    }
    let exact = exact_name(report);
    let count = report.models.len();
    let listed = &report.models[..count.min(MAX_LISTED_MODELS)];
    let kind = if report.graph.is_some() { Items::Edges } else { Items::Terms };
    let rows = rows(listed, kind, exact);
    let columns = columns(listed, kind, exact);
    let mut html = format!(
        "<h2>Model probabilities</h2><p class=\"caption\">{}</p>{}{}",
        caption(&report.models),
        legend(exact),
        folded(
            &columns,
            rows,
            UNFOLDED_MODELS,
            &format!("The next {} models", listed.len().saturating_sub(UNFOLDED_MODELS))
        )
    );
    if count > MAX_LISTED_MODELS {
        let _ =
            write!(html, "<p class=\"caption\">{} less probable models are not listed.</p>", count - MAX_LISTED_MODELS);
    }
    if count >= MIN_SCATTER_MODELS {
        html.push_str(&scatter(&report.models, kind, exact));
    }
    Some(html)
}

fn caption(models: &[ModelRow]) -> String {
    let held = |sum: fn(&ModelRow) -> f64| {
        models.iter().take(UNFOLDED_MODELS).map(sum).filter(|p| p.is_finite()).sum::<f64>().min(1.0)
    };
    let shown = models.len().min(UNFOLDED_MODELS);
    let subject =
        if shown == 1 { "The model shown holds".to_owned() } else { format!("The {shown} leading models hold") };
    format!(
        "{subject} {} of the probability under q and {} after correction.",
        number::probability(held(|model| model.probability.q)),
        number::probability(held(|model| model.probability.corrected))
    )
}

fn ruler(models: &[ModelRow]) -> Ruler {
    let values =
        |model: &ModelRow| [model.probability.q, model.probability.corrected, model.probability.exact.unwrap_or(0.0)];
    Ruler::up_to(models.iter().flat_map(values))
}

fn has_evidence(models: &[ModelRow]) -> bool {
    models.iter().any(|model| model.log_evidence.is_some())
}

fn has_khat(models: &[ModelRow]) -> bool {
    models.iter().any(|model| model.khat.is_some())
}

fn columns(models: &[ModelRow], kind: Items, exact: Option<&str>) -> Vec<Column> {
    let (model, items) = match kind {
        Items::Terms => ("model", "terms"),
        Items::Edges => ("graph", "edges"),
    };
    let mut columns = vec![Column::new(Kind::Name, model), Column::new(Kind::Number, items), ruler(models).column()];
    columns.extend(number_columns(exact));
    if has_evidence(models) {
        columns.push(Column::new(Kind::Number, "log evidence"));
    }
    if has_khat(models) {
        columns.push(Column::new(Kind::Number, "k̂"));
    }
    columns
}

fn rows(models: &[ModelRow], kind: Items, exact: Option<&str>) -> Vec<Vec<Cell>> {
    let ruler = ruler(models);
    let (evidence, khat) = (has_evidence(models), has_khat(models));
    let row = |(index, model): (usize, &ModelRow)| {
        let mut cells = vec![
            match kind {
                Items::Edges => graph::listed(model, models.first().filter(|_| index > 0)),
                Items::Terms => Cell::label(label(model, kind)),
            },
            Cell::number(model.size.to_string(), model.size as f64),
            ruler.bars(&model.probability, exact.unwrap_or_default()),
        ];
        cells.extend(number_cells(&model.probability, exact.is_some()));
        if evidence {
            let (value, se) = model.log_evidence.unwrap_or((f64::NAN, f64::NAN));
            cells.push(Cell::number(number::with_error(value, se), value));
        }
        if khat {
            cells.push(khat_cell(model.khat.unwrap_or(f64::NAN)));
        }
        cells
    };
    models.iter().enumerate().map(row).collect()
}

/// What models are made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Items {
    Terms,
    Edges,
}

/// An empty model has no name of its own.
fn label(model: &ModelRow, kind: Items) -> &str {
    match kind {
        _ if !model.label.is_empty() => &model.label,
        Items::Terms => "(no terms)",
        Items::Edges => "(no edges)",
    }
}

fn khat_cell(khat: f64) -> Cell {
    let cell = Cell::number(number::tick(khat, 0.01), khat);
    if khat > HEAVY_TAIL {
        return cell.followed_by(
            " <span class=\"flag\" title=\"above 0.7: the correction of this model is unreliable\">!</span>",
        );
    }
    cell
}

/// q(m), and its correction where something exact is known, against the best reference there is.
fn scatter(models: &[ModelRow], kind: Items, exact: Option<&str>) -> String {
    let reference = |model: &ModelRow| match exact {
        Some(_) => model.probability.exact.unwrap_or(f64::NAN),
        None => model.probability.corrected,
    };
    let series = |estimate: fn(&ModelRow) -> f64, colour: Colour, marker: Marker, name: &str| {
        let points = models.iter().map(|model| (reference(model), estimate(model))).collect();
        let title = |model: &ModelRow| {
            let (estimate, reference) = (number::probability(estimate(model)), number::probability(reference(model)));
            format!("{}: {name} {estimate}, {} {reference}", label(model, kind), exact.unwrap_or("corrected"))
        };
        let titles = models.iter().take(MAX_LISTED_MODELS).map(title).collect();
        Layer::from(Points {
            points,
            colour,
            marker,
            radius: 3.2,
            opacity: 0.8,
            titles,
            name: name.into(),
            ..Points::default()
        })
    };
    let mut layers = vec![Layer::Diagonal, series(|model| model.probability.q, LEARNED, Marker::Circle, "q")];
    if exact.is_some() {
        layers.push(series(|model| model.probability.corrected, CORRECTED, Marker::Triangle, "corrected"));
    }
    let unplaced = models.iter().filter(|model| !(model.probability.q > 0.0 && reference(model) > 0.0)).count();
    let panel = Panel {
        x: Axis::log(&format!("probability, {}", exact.unwrap_or("corrected"))),
        y: Axis::log("probability, estimated"),
        layers,
        ..Panel::default()
    };
    let figure = Figure { panels: vec![panel], panel_size: (360.0, 300.0), ..Figure::default() };
    let lost = match unplaced {
        0 => String::new(),
        1 => " One model has a probability of 0 on an axis and is left out.".into(),
        count => format!(" {count} models have a probability of 0 on an axis and are left out."),
    };
    format!(
        "<div class=\"figures\"><div>{}</div><p class=\"caption beside\">Each mark is a model. On the dashed line the \
         estimate agrees with the reference; on these logarithmic axes the same distance from it is the same factor \
         everywhere.{lost}</p></div>",
        figure.inline("Estimated model probabilities against the reference")
    )
}

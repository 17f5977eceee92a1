//! Which models are probable.

use vti::answer::{Answer, Found, ModelAnswer};

use super::bars::{Ruler, legend, number_cells, number_columns};
use super::table::{Cell, Column, Kind, folded};
use super::{CORRECTED, Content, LEARNED, Versions, graph};
use crate::number;
use crate::plot::{Axis, Colour, Figure, Layer, Marker, Panel, Points};

/// Models shown unfolded.
const UNFOLDED_MODELS: usize = 15;
/// Models shown at all.
const MAX_LISTED_MODELS: usize = 30;
/// From this many on a scatter plot says more than the table.
const MIN_SCATTER_MODELS: usize = 8;
/// Above this, importance weights of a model have too heavy a tail to be relied on.
const HEAVY_TAIL: f64 = 0.7;

pub(super) fn section(content: &Content<'_>) -> Option<String> {
    let Content { answer, versions, .. } = *content;
    let models = &answer.models[..answer.models.len().min(MAX_LISTED_MODELS)];
    // Numbers of components have a section of their own.
    if models.is_empty() || answer.found.count().is_some() {
        return None;
    }
    let labels: Vec<String> = models.iter().map(|model| label(answer, model)).collect();
    let rows = rows(answer, models, &labels, versions);
    let mut html = format!(
        "<h2>Model probabilities</h2><p class=\"caption\">{}</p>{}{}",
        caption(models, versions),
        legend(versions),
        folded(
            &columns(answer, models, versions),
            rows,
            UNFOLDED_MODELS,
            &match models.len().saturating_sub(UNFOLDED_MODELS) {
                1 => "The next model".to_owned(),
                more => format!("The next {more} models"),
            }
        )
    );
    if models.len() >= MIN_SCATTER_MODELS && versions.learned {
        html.push_str(&scatter(models, &labels, versions));
    }
    Some(html)
}

/// What people read: the terms of a model as `a + b`, the edges of a graph as `a → b, b → c`.
pub(super) fn label(answer: &Answer, model: &ModelAnswer) -> String {
    match &answer.found {
        Found::Own(_) | Found::Count(_) => model.label.clone(),
        Found::Dag(_) => model.label.replace('→', " → "),
        Found::Select(found) => {
            let terms = found.inclusion.0.iter().zip(model.word.bytes());
            let names: Vec<&str> = terms.filter(|(_, bit)| *bit == b'1').map(|((name, _), _)| name.as_str()).collect();
            if names.is_empty() { "none of them".into() } else { names.join(" + ") }
        }
    }
}

fn caption(models: &[ModelAnswer], versions: Versions) -> String {
    let held = |sum: fn(&ModelAnswer) -> f64| {
        models.iter().take(UNFOLDED_MODELS).map(sum).filter(|p| p.is_finite()).sum::<f64>().min(1.0)
    };
    let shown = models.len().min(UNFOLDED_MODELS);
    let subject =
        if shown == 1 { "The model shown holds".to_owned() } else { format!("The {shown} leading models hold") };
    let corrected = number::probability(held(|model| model.probability.corrected));
    if !versions.learned {
        return format!("{subject} {corrected} of the probability.");
    }
    let learned = number::probability(held(|model| model.probability.q));
    let by = versions.corrected.filter(|_| !versions.are_corrected()).unwrap_or("after correction");
    format!("{subject} {learned} of the probability under q and {corrected} {by}.")
}

fn ruler(models: &[ModelAnswer]) -> Ruler {
    let values = |model: &ModelAnswer| {
        [model.probability.q, model.probability.corrected, model.probability.exact.unwrap_or(0.0)]
    };
    Ruler::up_to(models.iter().flat_map(values))
}

fn has_evidence(models: &[ModelAnswer]) -> bool {
    models.iter().any(|model| model.log_evidence.is_some())
}

fn has_khat(models: &[ModelAnswer]) -> bool {
    models.iter().any(|model| model.khat.is_some())
}

/// What models and their parts are called; no name where they have no parts.
fn names(answer: &Answer) -> (&'static str, Option<&'static str>) {
    match &answer.found {
        Found::Select(_) => ("model", Some("terms")),
        Found::Dag(_) => ("graph", Some("edges")),
        Found::Count(_) => ("number", None),
        Found::Own(found) => ("model", (!found.inclusion.0.is_empty()).then_some("parts")),
    }
}

fn columns(answer: &Answer, models: &[ModelAnswer], versions: Versions) -> Vec<Column> {
    let (model, parts) = names(answer);
    let mut columns = vec![Column::new(Kind::Name, model)];
    columns.extend(parts.map(|parts| Column::new(Kind::Number, parts)));
    columns.push(ruler(models).column());
    columns.extend(number_columns(versions));
    if has_evidence(models) {
        columns.push(Column::new(Kind::Number, "log evidence"));
    }
    if has_khat(models) {
        columns.push(Column::new(Kind::Number, "k̂"));
    }
    columns
}

fn rows(answer: &Answer, models: &[ModelAnswer], labels: &[String], versions: Versions) -> Vec<Vec<Cell>> {
    let ruler = ruler(models);
    let (evidence, khat) = (has_evidence(models), has_khat(models));
    let (is_graph, has_parts) = (answer.found.graphs().is_some(), names(answer).1.is_some());
    let row = |(index, model): (usize, &ModelAnswer)| {
        let label = &labels[index];
        let mut cells = vec![if is_graph {
            graph::listed(label, labels.first().filter(|_| index > 0))
        } else {
            Cell::label(label)
        }];
        if has_parts {
            cells.push(Cell::number(model.size.to_string(), model.size as f64));
        }
        cells.push(ruler.bars(&model.probability, versions));
        cells.extend(number_cells(&model.probability, versions));
        if evidence {
            let (value, se) = model.log_evidence.map_or((f64::NAN, f64::NAN), |evidence| (evidence.value, evidence.se));
            let shown = if versions.learned { number::with_error(value, se) } else { number::tick(value, 0.001) };
            cells.push(Cell::number(shown, value));
        }
        if khat {
            cells.push(khat_cell(model.khat.unwrap_or(f64::NAN)));
        }
        cells
    };
    models.iter().enumerate().map(row).collect()
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
fn scatter(models: &[ModelAnswer], labels: &[String], versions: Versions) -> String {
    let (exact, own) = (versions.exact, versions.corrected.unwrap_or_default());
    let reference = |model: &ModelAnswer| match exact {
        Some(_) => model.probability.exact.unwrap_or(f64::NAN),
        None => model.probability.corrected,
    };
    let series = |estimate: fn(&ModelAnswer) -> f64, colour: Colour, marker: Marker, name: &str| {
        let points = models.iter().map(|model| (reference(model), estimate(model))).collect();
        let title = |(model, label): (&ModelAnswer, &String)| {
            let (estimate, reference) = (number::probability(estimate(model)), number::probability(reference(model)));
            format!("{label}: {name} {estimate}, {} {reference}", exact.unwrap_or(own))
        };
        let titles = models.iter().zip(labels).map(title).collect();
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
        layers.push(series(|model| model.probability.corrected, CORRECTED, Marker::Triangle, own));
    }
    let unplaced = models.iter().filter(|model| !(model.probability.q > 0.0 && reference(model) > 0.0)).count();
    let panel = Panel {
        x: Axis::log(&format!("probability, {}", exact.unwrap_or(own))),
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

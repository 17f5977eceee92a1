//! Figures of the page as files of their own.

use std::fmt::Write;

use vti::answer::{Answer, Quantity, Samples};

use super::{Beside, Content, GRAPH_STYLE, LIGHT, Versions};
use crate::markup::escape;
use crate::plot::{Axis, Bar, Figure, PALETTE, Panel, Px, grouped};

/// Terms or models that are shown at most.
const SHOWN: usize = 30;

/// Height of the line above each of several figures.
const LINE: f64 = 20.0;

/// The figures of a section of the page as one SVG, if there are any. Sections are called as in the page: `inclusion`, `models`,
/// `coefficients`, `pairs`, `fit`, `training`, `graph`, `edges`, `order`.
///
/// ```
/// use vti::answer::{Answer, Found, Ordered, Quantity, Terms};
/// use vti_report::{Beside, figure};
///
/// let inclusion = Ordered(vec![("age".to_string(), Quantity::exactly(0.9))]);
/// let found = Found::Own(Terms { inclusion, ..Terms::default() });
/// let answer = Answer { found, ..Answer::default() };
/// assert!(figure(&answer, None, &Beside::default(), "inclusion").is_some_and(|svg| svg.contains("age")));
/// assert!(figure(&answer, None, &Beside::default(), "graph").is_none());
/// ```
pub fn figure(answer: &Answer, samples: Option<&Samples>, beside: &Beside<'_>, section: &str) -> Option<String> {
    let content = Content::new(answer, samples, beside);
    match section {
        "inclusion" => {
            let terms = answer.found.inclusion().iter().map(|(name, term)| (name.clone(), *term));
            bars("inclusion probability", terms.collect(), content.versions)
        }
        "models" => {
            let models = answer.models.iter().map(|model| (model.label.clone(), model.probability));
            bars("probability", models.collect(), content.versions)
        }
        _ => {
            let found = content.sections("").into_iter().find(|(id, ..)| *id == section)?.2?;
            stacked(&figures(&found))
        }
    }
}

/// Probabilities as bars: as learned, as corrected, and exact.
fn bars(label: &str, mut parts: Vec<(String, Quantity)>, versions: Versions) -> Option<String> {
    parts.truncate(SHOWN);
    let series = |name: &str, of: &dyn Fn(&Quantity) -> (f64, f64)| {
        let bar = |(at, (_, quantity)): (usize, &(String, Quantity))| {
            let (value, se) = of(quantity);
            let error = (se > 0.0).then_some((value - se, value + se));
            Bar { at: at as f64, value, error }
        };
        (name.to_string(), parts.iter().enumerate().map(bar).collect::<Vec<Bar>>())
    };
    let mut shown = Vec::new();
    if versions.learned {
        shown.push(series("q", &|quantity| (quantity.q, 0.0)));
    }
    if let Some(name) = versions.corrected {
        shown.push(series(name, &|quantity| (quantity.corrected, quantity.se)));
    }
    if let Some(name) = versions.exact {
        shown.push(series(name, &|quantity| (quantity.exact.unwrap_or(f64::NAN), 0.0)));
    }
    if shown.is_empty() {
        shown.push(series("", &|quantity| (quantity.corrected, quantity.se)));
    }
    if parts.is_empty() {
        return None;
    }
    let width = (60.0 * parts.len() as f64).clamp(240.0, 1200.0);
    let names = parts.iter().map(|(name, _)| name.clone()).collect();
    let panel = Panel {
        x: Axis::names("", names),
        y: Axis::linear(label).within(0.0, 1.0),
        layers: grouped(shown),
        ..Panel::default()
    };
    Some(Figure { panels: vec![panel], panel_size: (width, 240.0), ..Figure::default() }.svg())
}

/// A figure of the page.
struct Inline<'a> {
    label: &'a str,
    class: &'a str,
    font_size: Option<&'a str>,
    size: (f64, f64),
    body: &'a str,
}

/// The figures in the HTML of a section.
fn figures(html: &str) -> Vec<Inline<'_>> {
    let mut found = Vec::new();
    for (start, opening) in html.match_indices("<svg class=\"figure") {
        let Some((tag, rest)) = html[start + opening.len()..].split_once('>') else { continue };
        let body = inside(rest);
        let size: Vec<f64> =
            attribute(tag, "viewBox").unwrap_or("").split(' ').filter_map(|n| n.parse().ok()).collect();
        let [_, _, width, height] = size[..] else { continue };
        found.push(Inline {
            label: attribute(tag, "aria-label").unwrap_or_default(),
            class: tag.split('"').next().unwrap_or_default().trim(),
            font_size: attribute(tag, "font-size"),
            size: (width, height),
            body,
        });
    }
    found
}

/// What stands before the end of an element of SVG; there may be others in it.
fn inside(rest: &str) -> &str {
    let mut open = 1;
    for (place, _) in rest.match_indices("svg") {
        if rest[..place].ends_with("</") {
            open -= 1;
        } else if rest[..place].ends_with('<') {
            open += 1;
        }
        if open == 0 {
            return &rest[..place - "</".len()];
        }
    }
    rest
}

/// What stands in an attribute of a tag, escaped as it is.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = tag.find(&format!("{name}=\""))? + name.len() + 2;
    tag[start..].split('"').next()
}

/// Figures one below the other, on white ground.
fn stacked(figures: &[Inline<'_>]) -> Option<String> {
    let width = figures.iter().map(|figure| figure.size.0).fold(0.0, f64::max);
    let line = if figures.len() > 1 { LINE } else { 0.0 };
    let (mut body, mut top) = (String::new(), 0.0);
    for Inline { label, class, font_size, size, body: inside } in figures {
        if line > 0.0 {
            let _ =
                write!(body, "<text x=\"8\" y=\"{}\" font-size=\"13\" fill=\"#222\">{label}</text>", Px(top + 14.0));
        }
        let font = font_size.map_or_else(String::new, |size| format!(" font-size=\"{size}\""));
        let (w, h) = (Px(size.0), Px(size.1));
        let _ = write!(
            body,
            "<svg class=\"{class}\" y=\"{}\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\"{font}>{inside}</svg>",
            Px(top + line)
        );
        top += size.1 + line;
    }
    let (w, h) = (Px(width), Px(top));
    // Of a graph the probabilities are shown; the page lets one choose.
    let style = escape(&format!("{GRAPH_STYLE}.view {{ display: none; }} .in-probabilities {{ display: inline; }}"));
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
         font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\"><style>{style}</style>\
         <rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>{body}</svg>\n"
    );
    (!figures.is_empty()).then(|| with_colours(svg))
}

/// The page's colours on light ground, written out.
fn with_colours(mut svg: String) -> String {
    for (name, colour) in LIGHT.split(';').filter_map(|part| part.trim().split_once(':')) {
        svg = svg.replace(&format!("var({name})"), colour);
    }
    for (index, colour) in PALETTE.iter().enumerate() {
        svg = svg.replace(&format!("var(--s{index})"), colour);
    }
    svg
}

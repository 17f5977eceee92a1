//! The graph as a drawing, in three views of one layout.

use std::fmt::Write;

use super::super::corrected;
use super::lines::{Line, Mark, View, left_out, lines};
use super::{FAINT, HIDDEN_CAUSES, Known, SURE, said};
use crate::layered::{CORNER, Layout, NODE_HEIGHT, PORT, Plan, Route, layout};
use crate::markup::escape;
use crate::plot::{Px, fit, text_width};

/// Size of the names of nodes in pixels.
const NAME: f64 = 13.0;
/// Room for a name, with few nodes and with many.
const NAME_WIDTH: (f64, f64) = (130.0, 84.0);
/// From this many nodes on names have less room.
const MAX_DRAWN_NODES: usize = 16;
/// Nodes do not grow beyond the needs of this many lines.
const MAX_PORTS: usize = 16;
/// Length and half width of an arrowhead.
const HEAD: (f64, f64) = (9.0, 4.2);
/// On narrow screens the drawing may shrink to this share of its size before it is scrolled.
const SHRINK: f64 = 0.62;

pub(in super::super) fn section(known: &Known<'_>) -> Option<String> {
    let views = View::ALL.map(|view| (view, lines(known, view)));
    let mut html = format!("<h2>Causal graph</h2><p class=\"caption\">{}</p><div class=\"graph-box\">", caption(known));
    for (index, (view, _)) in views.iter().enumerate() {
        let checked = if index == 0 { " checked=\"checked\"" } else { "" };
        let (id, name) = (view.id(), view.name());
        let _ = write!(
            html,
            "<input type=\"radio\" name=\"graph-view\" id=\"view-{id}\"{checked}/><label for=\"view-{id}\">{name}</label>"
        );
    }
    html.push_str(&legends(known));
    html.push_str(
        "<p class=\"inspect\" aria-live=\"polite\"><span>Point at a node or an edge to see its numbers.</span></p>",
    );
    html.push_str(&svg(known, &views));
    Some(html + "</div>")
}

fn caption(known: &Known<'_>) -> String {
    let mut text = format!(
        "Causes stand above their effects, as far as the most probable graph tells. The drawing shows{} probabilities; every \
         number is also in the table below. {HIDDEN_CAUSES}",
        corrected(known.versions)
    );
    match left_out(known) {
        0 => {}
        count => {
            let _ = write!(text, " The {count} least probable of the lines would hide the others and are left out.");
        }
    }
    if known.truth.is_some() {
        let name = known.truth_name().map_or_else(String::new, |name| format!(" ({})", escape(&name)));
        let _ = write!(text, " Colours compare it with the known graph{name}.");
    }
    text
}

/// What the lines mean, for each view, and what colours mean.
fn legends(known: &Known<'_>) -> String {
    let item = |class: &str, inside: &str, name: &str| {
        format!(
            "<li><svg width=\"44\" height=\"14\" class=\"edge {class}\" aria-hidden=\"true\">{inside}</svg>{name}</li>"
        )
    };
    let stroke = |probability: Option<f64>, is_directed: bool| {
        let end = if is_directed { 34.0 } else { 42.0 };
        let head = if is_directed { head("M43 7L34 2.8V11.2Z", probability) } else { String::new() };
        format!("<path class=\"line\" d=\"M2 7H{end}\" {}/>{head}", pen(probability))
    };
    let mut html = format!(
        "<ul class=\"legend view in-probabilities\">{}{}{}{}</ul>",
        item("", &stroke(Some(0.97), true), &format!("probability at least {SURE}")),
        item("", &stroke(Some(0.7), true), &format!("0.5 to {SURE}")),
        item("", &stroke(Some(0.3), true), &format!("{FAINT} to 0.5")),
        item("", &stroke(Some(0.97), false), "direction open: neither is twice as probable as the other"),
    );
    let _ = write!(
        html,
        "<p class=\"caption view in-best\">The one graph with the highest probability. Others may be nearly as probable: \
         see the list of models.</p><ul class=\"legend view in-class\">{}{}</ul>",
        item("", &stroke(None, true), "the same direction in all equivalent graphs"),
        item("", &stroke(None, false), "either direction: the same conditional independences"),
    );
    if known.truth.is_some() {
        let marked = Mark::ALL.map(|mark| {
            let inside = match mark {
                Mark::Missing => {
                    "<path class=\"line\" d=\"M2 7H34\"/><path class=\"head\" d=\"M43 7L34 2.8V11.2Z\"/>".into()
                }
                _ => stroke(None, true),
            };
            item(mark.class(), &(inside + &sign(mark, (18.0, 7.0))), mark.name())
        });
        let _ = write!(html, "<ul class=\"legend\">{}</ul>", marked.concat());
    }
    html
}

fn svg(known: &Known<'_>, views: &[(View, Vec<Line>); 3]) -> String {
    let room = if known.nodes < MAX_DRAWN_NODES { NAME_WIDTH.0 } else { NAME_WIDTH.1 };
    let names: Vec<String> = (0..known.nodes).map(|node| fit(known.name(node), NAME, room)).collect();
    let pairs = joined(views);
    let widths: Vec<f64> = names.iter().enumerate().map(|(node, name)| width(name, node, &pairs)).collect();
    let layout = layout(&Plan { widths: &widths, down: &known.best, pairs: &pairs });
    let (width, height) = layout.size;
    let mut html = format!(
        "<div class=\"scroll\"><svg class=\"figure graph\" role=\"group\" aria-label=\"Drawing of the causal graph\" \
         viewBox=\"0 0 {} {}\" style=\"width:{}px;min-width:{}px;max-width:100%\">",
        Px(width),
        Px(height),
        Px(width),
        Px(width * SHRINK)
    );
    for (view, lines) in views {
        let _ = write!(html, "<g class=\"view in-{}\">", view.id());
        // What is certain lies above what is not.
        for line in lines.iter().rev() {
            let at = pairs.iter().position(|&(a, b)| [(a, b), (b, a)].contains(&(line.from, line.to)));
            if let Some(route) = at.map(|pair| &layout.routes[pair]) {
                html.push_str(&edge(known, line, route));
            }
        }
        html.push_str("</g>");
    }
    html.push_str(&nodes(known, &layout, &names, &widths));
    html + "</svg></div>"
}

/// How wide a node is: as its name needs, and its lines, of which about half end at either side.
fn width(name: &str, node: usize, pairs: &[(usize, usize)]) -> f64 {
    let lines = pairs.iter().filter(|pair| pair.0 == node || pair.1 == node).count().min(MAX_PORTS);
    let for_lines = 2.0 * CORNER + PORT * (0.6 * lines as f64);
    (text_width(name, NAME) + 26.0).max(for_lines).max(46.0)
}

/// The pairs that any view joins, each once; those of the most probable graph first.
fn joined(views: &[(View, Vec<Line>); 3]) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let [probable, best, class] = views;
    for line in best.1.iter().chain(&probable.1).chain(&class.1) {
        if !pairs.iter().any(|&(a, b)| [(a, b), (b, a)].contains(&(line.from, line.to))) {
            pairs.push((line.from, line.to));
        }
    }
    pairs
}

fn nodes(known: &Known<'_>, layout: &Layout, names: &[String], widths: &[f64]) -> String {
    let mut html = String::from("<g>");
    for (node, &(x, y)) in layout.nodes.iter().enumerate() {
        let _ = write!(
            html,
            "<g class=\"node\" data-nodes=\"{node}\"><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" \
             height=\"{NODE_HEIGHT}\" rx=\"{}\"/><text x=\"{}\" y=\"{}\" font-size=\"{NAME}\" text-anchor=\"middle\">{}\
             </text></g>",
            escape(&said::node(known, node)),
            Px(x - widths[node] / 2.0),
            Px(y - NODE_HEIGHT / 2.0),
            Px(widths[node]),
            CORNER,
            Px(x),
            Px(y + 0.36 * NAME),
            escape(&names[node])
        );
    }
    html + "</g>"
}

fn edge(known: &Known<'_>, line: &Line, route: &Route) -> String {
    let (curve, head) = drawn(line, route);
    let class = line.mark.map_or_else(String::new, |mark| format!(" {}", mark.class()));
    let sign = line.mark.map_or_else(String::new, |mark| sign(mark, middle(route)));
    format!(
        "<g class=\"edge{class}\" data-nodes=\"{} {}\"><title>{}</title><path class=\"hit\" d=\"{curve}\"/>\
         <path class=\"line\" d=\"{curve}\" {}/>{head}{sign}</g>\n",
        line.from,
        line.to,
        escape(&said::line(known, line)),
        pen(line.probability),
    )
}

/// Width, opacity and dashes: the less probable, the thinner, lighter and more broken.
fn pen(probability: Option<f64>) -> String {
    let Some(p) = probability else { return "stroke-width=\"2\"".into() };
    let dashes = match p {
        _ if p >= SURE => "",
        _ if p >= 0.5 => " stroke-dasharray=\"9 4\"",
        _ => " stroke-dasharray=\"2.5 4\"",
    };
    format!("stroke-width=\"{}\" stroke-opacity=\"{:.2}\"{dashes}", Px(1.3 + 1.7 * p), opacity(p))
}

fn opacity(probability: f64) -> f64 {
    0.4 + 0.6 * probability
}

/// An arrowhead, as light as its line.
fn head(shape: &str, probability: Option<f64>) -> String {
    format!("<path class=\"head\" d=\"{shape}\" fill-opacity=\"{:.2}\"/>", probability.map_or(1.0, opacity))
}

/// The path of a line and its arrowhead. Lines are upright at both ends, and so are heads.
fn drawn(line: &Line, route: &Route) -> (String, String) {
    let mut points = route.points.clone();
    let mut arrow = String::new();
    if line.is_directed {
        let at_end = line.to == route.end;
        let last = points.len() - 1;
        let tip = points[if at_end { last } else { 0 }];
        // Heads point down where a line arrives from above, up otherwise.
        let sign = if at_end && route.arc.is_none() { 1.0 } else { -1.0 };
        let base = tip.1 - sign * HEAD.0;
        points[if at_end { last } else { 0 }].1 = base + sign * 0.5;
        let (left, right) = (Px(tip.0 - HEAD.1), Px(tip.0 + HEAD.1));
        let shape = format!("M{} {}L{left} {}H{right}Z", Px(tip.0), Px(tip.1), Px(base));
        arrow = head(&shape, line.probability);
    }
    (path(&points, route.arc), arrow)
}

fn path(points: &[(f64, f64)], arc: Option<f64>) -> String {
    let mut path = format!("M{} {}", Px(points[0].0), Px(points[0].1));
    for (index, pair) in points.windows(2).enumerate() {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let (near, far) = match arc {
            Some(depth) => (y0 + depth, y1 + depth),
            None => ((y0 + y1) / 2.0, (y0 + y1) / 2.0),
        };
        let _ = if index % 2 == 0 {
            write!(path, "C{} {} {} {} {} {}", Px(x0), Px(near), Px(x1), Px(far), Px(x1), Px(y1))
        } else {
            write!(path, "V{}", Px(y1))
        };
    }
    path
}

/// The middle of a line.
fn middle(route: &Route) -> (f64, f64) {
    let first = route.points.len() / 4 * 2;
    let ((x0, y0), (x1, y1)) = (route.points[first], route.points[first + 1]);
    ((x0 + x1) / 2.0, (y0 + y1) / 2.0 + 0.75 * route.arc.unwrap_or(0.0))
}

/// A sign on a line that differs from the truth, for those who cannot tell the colours.
fn sign(mark: Mark, (x, y): (f64, f64)) -> String {
    let shape = match mark {
        Mark::Right | Mark::Missing => return String::new(),
        Mark::Extra => "M-3-3L3 3M3-3L-3 3",
        Mark::Reversed => "M-2 4V-4L-4-1M2-4V4L4 1",
    };
    format!(
        "<g transform=\"translate({} {})\"><circle class=\"disc\" r=\"7\"/><path class=\"sign\" d=\"{shape}\"/></g>",
        Px(x),
        Px(y)
    )
}

//! Layers as SVG.

use super::colour::Colour;
use super::contour::contours;
use super::density::Surface;
use super::layer::{Area, Bars, Contours, Layer, Line, Marker, Note, Points, Ribbon, Rule};
use super::scale::Span;
use super::svg::{Path, Px, Svg, TextStyle};

/// Size of tick labels in pixels.
pub(crate) const SMALL_FONT: f64 = 11.0;

/// The drawing area of a panel.
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) x: Span,
    pub(crate) y: Span,
}

impl Frame {
    pub(crate) fn x_at(&self, value: f64) -> Option<f64> {
        Some(self.left + self.x.share(value)? * self.width)
    }

    pub(crate) fn y_at(&self, value: f64) -> Option<f64> {
        Some(self.top + (1.0 - self.y.share(value)?) * self.height)
    }

    fn at(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.x_at(x)?, self.y_at(y)?))
    }

    fn right(&self) -> f64 {
        self.left + self.width
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Half a pixel of tolerance: points at the very ends of a range belong to it.
    fn contains(&self, (x, y): (f64, f64)) -> bool {
        x >= self.left - 0.5 && x <= self.right() + 0.5 && y >= self.top - 0.5 && y <= self.bottom() + 0.5
    }

    /// Where bars stand: at zero, or at the lower end where zero has no place.
    fn ground(&self) -> f64 {
        self.y_at(0.0).unwrap_or(self.bottom()).clamp(self.top, self.bottom())
    }

    fn y_inside(&self, value: f64) -> Option<f64> {
        Some(self.y_at(value)?.clamp(self.top, self.bottom()))
    }
}

/// Draws `layer`.
pub(crate) fn draw(svg: &mut Svg, frame: &Frame, layer: &Layer) {
    match layer {
        Layer::Points(layer) => points(svg, frame, layer),
        Layer::Line(layer) => clipped(svg, frame, |svg| line(svg, frame, layer)),
        Layer::Area(layer) => clipped(svg, frame, |svg| area(svg, frame, layer)),
        Layer::Ribbon(layer) => clipped(svg, frame, |svg| ribbon(svg, frame, layer)),
        Layer::Rule(layer) => rule(svg, frame, layer),
        Layer::Bars(layer) => bars(svg, frame, layer),
        Layer::Contours(layer) => clipped(svg, frame, |svg| surface(svg, frame, layer)),
        Layer::Note(layer) => note(svg, frame, layer),
        Layer::Diagonal => clipped(svg, frame, |svg| diagonal(svg, frame)),
    }
}

/// An inner `svg` element cuts off what leaves its box, without a name that could clash with another figure's.
fn clipped(svg: &mut Svg, frame: &Frame, draw: impl FnOnce(&mut Svg)) {
    let (left, top, width, height) = (Px(frame.left), Px(frame.top), Px(frame.width), Px(frame.height));
    svg.raw(&format!(
        r#"<svg x="{left}" y="{top}" width="{width}" height="{height}" viewBox="{left} {top} {width} {height}">"#
    ));
    draw(svg);
    svg.raw("</svg>");
}

fn points(svg: &mut Svg, frame: &Frame, layer: &Points) {
    let places = layer.points.iter().enumerate();
    let places = places.filter_map(|(i, &point)| Some((i, frame.at(point)?))).filter(|(_, at)| frame.contains(*at));
    let style = marker_style(svg, layer);
    let mut untitled = Path::default();
    let mut titled = Vec::new();
    for (i, at) in places {
        let mut path = Path::default();
        mark(&mut path, layer.marker, layer.radius, layer.outlined, at);
        match layer.titles.get(i) {
            Some(title) => titled.push((path, title)),
            None => untitled.extend(&path),
        }
    }
    svg.path(&untitled, &style);
    if !titled.is_empty() {
        svg.raw(&format!("<g {style}>"));
        titled.iter().for_each(|(path, title)| svg.titled_path(path, title));
        svg.raw("</g>");
    }
}

fn marker_style(svg: &Svg, layer: &Points) -> String {
    let Points { marker, radius, opacity, outlined, .. } = layer;
    let colour = svg.theme.colour(layer.colour);
    let faint = if *opacity < 1.0 { format!(r#" opacity="{opacity:.2}""#) } else { String::new() };
    match marker {
        Marker::Circle if !outlined => {
            let width = Px(2.0 * radius);
            format!(r#"fill="none" stroke="{colour}" stroke-width="{width}" stroke-linecap="round"{faint}"#)
        }
        _ if *outlined => format!(r#"fill="{colour}" stroke="{}" stroke-width="0.8"{faint}"#, svg.theme.ink()),
        _ => format!(r#"fill="{colour}"{faint}"#),
    }
}

fn mark(path: &mut Path, marker: Marker, radius: f64, outlined: bool, at: (f64, f64)) {
    let r = radius;
    match marker {
        Marker::Circle if !outlined => path.dot(at),
        Marker::Circle => {
            let corner = |i: i32| f64::from(i) * std::f64::consts::TAU / 12.0;
            let corners: Vec<(f64, f64)> = (0..12).map(|i| (r * corner(i).cos(), r * corner(i).sin())).collect();
            path.polygon(at, &corners);
        }
        Marker::Triangle => path.polygon(at, &[(-1.15 * r, r), (1.15 * r, r), (0.0, -1.2 * r)]),
        Marker::Square => {
            let side = 0.9 * r;
            path.polygon(at, &[(-side, -side), (side, -side), (side, side), (-side, side)]);
        }
    }
}

fn stroke(svg: &Svg, colour: Colour, width: f64, dashed: bool) -> String {
    let dash = if dashed { r#" stroke-dasharray="5 3""# } else { "" };
    format!(
        r#"fill="none" stroke="{}" stroke-width="{}" stroke-linejoin="round"{dash}"#,
        svg.theme.colour(colour),
        Px(width)
    )
}

fn line(svg: &mut Svg, frame: &Frame, layer: &Line) {
    let mut style = stroke(svg, layer.colour, layer.width, layer.dashed);
    if layer.opacity < 1.0 {
        style += &format!(r#" opacity="{:.2}""#, layer.opacity);
    }
    svg.path(&Path::through(layer.points.iter().map(|&point| frame.at(point))), &style);
}

fn area(svg: &mut Svg, frame: &Frame, layer: &Area) {
    let upper: Vec<(f64, f64)> = layer.points.iter().filter_map(|&point| frame.at(point)).collect();
    let (Some(first), Some(last)) = (upper.first(), upper.last()) else { return };
    let ground = frame.ground();
    let around = upper.iter().copied().chain([(last.0, ground), (first.0, ground)]);
    let mut filling = Path::through(around.map(Some));
    filling.close();
    svg.path(&filling, &format!(r#"fill="{}" fill-opacity="0.22""#, svg.theme.colour(layer.colour)));
    svg.path(&Path::through(upper.into_iter().map(Some)), &stroke(svg, layer.colour, 1.5, false));
}

fn ribbon(svg: &mut Svg, frame: &Frame, layer: &Ribbon) {
    let around: Vec<(f64, f64)> =
        layer.low.iter().chain(layer.high.iter().rev()).filter_map(|&point| frame.at(point)).collect();
    if around.is_empty() {
        return;
    }
    let mut filling = Path::through(around.into_iter().map(Some));
    filling.close();
    svg.path(&filling, &format!(r#"fill="{}" fill-opacity="{:.2}""#, svg.theme.colour(layer.colour), layer.opacity));
}

fn rule(svg: &mut Svg, frame: &Frame, layer: &Rule) {
    let style = stroke(svg, layer.colour, 1.4, layer.dashed);
    let ends = if layer.upright {
        frame.x_at(layer.at).map(|x| ((x, frame.top), (x, frame.bottom())))
    } else {
        frame.y_at(layer.at).map(|y| ((frame.left, y), (frame.right(), y)))
    };
    if let Some((from, to)) = ends.filter(|(from, _)| frame.contains(*from)) {
        let mut path = Path::default();
        path.line(from, to);
        svg.path(&path, &style);
    }
}

fn bars(svg: &mut Svg, frame: &Frame, layer: &Bars) {
    let filling = format!(r#"fill="{}""#, svg.theme.colour(layer.colour));
    let ground = frame.ground();
    let mut errors = Path::default();
    for bar in &layer.bars {
        let sides = (frame.x_at(bar.at - layer.width / 2.0), frame.x_at(bar.at + layer.width / 2.0));
        let ((Some(left), Some(right)), Some(top)) = (sides, frame.y_inside(bar.value)) else { continue };
        svg.rect((left, top.min(ground)), (right - left, (top - ground).abs()), &filling);
        let ends = bar.error.and_then(|(low, high)| Some((frame.y_inside(low)?, frame.y_inside(high)?)));
        if let Some((low, high)) = ends {
            let (middle, cap) = ((left + right) / 2.0, ((right - left) / 4.0).min(4.0));
            errors.line((middle, low), (middle, high));
            errors.line((middle - cap, low), (middle + cap, low));
            errors.line((middle - cap, high), (middle + cap, high));
        }
    }
    svg.path(&errors, &stroke(svg, Colour::Ink, 1.1, false));
}

fn surface(svg: &mut Svg, frame: &Frame, layer: &Contours) {
    let Some(surface) = Surface::of(&layer.points, &layer.weights) else { return };
    let colour = svg.theme.colour(layer.colour);
    let style =
        format!(r#"fill="{colour}" fill-opacity="0.16" fill-rule="evenodd" stroke="{colour}" stroke-width="1""#);
    for share in &layer.shares {
        let mut path = Path::default();
        for line in contours(&surface, surface.level(*share)) {
            path.extend(&Path::through(line.iter().map(|&point| frame.at(point))));
            path.close();
        }
        svg.path(&path, &style);
    }
}

fn note(svg: &mut Svg, frame: &Frame, layer: &Note) {
    let size = if layer.size > 0.0 { layer.size } else { SMALL_FONT };
    let at = (frame.left + layer.at.0 * frame.width, frame.bottom() - layer.at.1 * frame.height + 0.35 * size);
    let colour = svg.theme.colour(layer.colour);
    svg.text(at, &layer.text, TextStyle { size, anchor: "middle", bold: false, colour: &colour, turn: 0.0 });
}

fn diagonal(svg: &mut Svg, frame: &Frame) {
    let ((a, b), (c, d)) = (frame.x.ends(), frame.y.ends());
    let ends = [a.min(c), b.max(d)].map(|value| frame.at((value, value)));
    svg.path(&Path::through(ends.into_iter()), &stroke(svg, Colour::Ink, 1.0, true));
}

/// The sign of `layer` in a legend, centred at `at` and about 18 pixels wide.
pub(crate) fn sign(svg: &mut Svg, at: (f64, f64), shape: Sign, colour: Colour) {
    let mut path = Path::default();
    let (left, right) = ((at.0 - 8.0, at.1), (at.0 + 8.0, at.1));
    match shape {
        Sign::Marker(marker) => {
            let style = marker_style(svg, &Points { marker, radius: 4.0, colour, ..Points::default() });
            mark(&mut path, marker, 4.0, false, at);
            svg.path(&path, &style);
        }
        Sign::Line { dashed } => {
            path.line(left, right);
            svg.path(&path, &stroke(svg, colour, 2.0, dashed));
        }
        Sign::Filling { opacity } => {
            let colour = svg.theme.colour(colour);
            let style = format!(r#"fill="{colour}" fill-opacity="{opacity:.2}" stroke="{colour}""#);
            svg.rect((at.0 - 6.0, at.1 - 5.0), (12.0, 10.0), &style);
        }
    }
}

/// The shape of a sign in a legend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sign {
    /// A point.
    Marker(Marker),
    /// A line.
    Line {
        /// Dashed instead of solid.
        dashed: bool,
    },
    /// A filled box.
    Filling {
        /// 1: opaque.
        opacity: f64,
    },
}

impl Layer {
    /// How it appears in a legend: name, sign, colour.
    pub(crate) fn key(&self) -> Option<(&str, Sign, Colour)> {
        let (name, sign, colour) = match self {
            Self::Points(layer) => (&layer.name, Sign::Marker(layer.marker), layer.colour),
            Self::Line(layer) => (&layer.name, Sign::Line { dashed: layer.dashed }, layer.colour),
            Self::Rule(layer) => (&layer.name, Sign::Line { dashed: layer.dashed }, layer.colour),
            Self::Area(layer) => (&layer.name, Sign::Filling { opacity: 0.22 }, layer.colour),
            Self::Ribbon(layer) => (&layer.name, Sign::Filling { opacity: layer.opacity }, layer.colour),
            Self::Contours(layer) => (&layer.name, Sign::Filling { opacity: 0.3 }, layer.colour),
            Self::Bars(layer) => (&layer.name, Sign::Filling { opacity: 1.0 }, layer.colour),
            Self::Note(_) | Self::Diagonal => return None,
        };
        (!name.is_empty()).then_some((name, sign, colour))
    }
}

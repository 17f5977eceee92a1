//! Figures: a grid of panels with titles, axes and a legend.

use super::axis::{Axis, Laid, lay, spans};
use super::colour::{Colour, Theme};
use super::draw::{Frame, SMALL_FONT, Sign, draw, sign};
use super::layer::Layer;
use super::svg::{Path, Px, Svg, TextStyle, fit, text_width};
use crate::markup::escape;

/// Size of axis labels and legends in pixels.
const LABEL: f64 = 12.0;
const PANEL_TITLE: f64 = 13.0;
const FIGURE_TITLE: f64 = 15.0;
/// Free room around the whole figure.
const OUTER: f64 = 8.0;
/// Height of a line of the legend.
const LEGEND_LINE: f64 = 20.0;
/// Slope of names that do not fit side by side, in degrees.
const SLOPE: f64 = 35.0;

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Above all panels; may be empty.
    pub title: String,
    /// Row by row.
    pub panels: Vec<Panel>,
    /// Panels in a row.
    pub columns: usize,
    /// Width and height of each panel's drawing area in pixels; room for labels comes on top.
    pub panel_size: (f64, f64),
    /// Room between panels in pixels.
    pub gap: f64,
    /// Entries of the legend in addition to those of named layers.
    pub keys: Vec<Key>,
}

impl Default for Figure {
    fn default() -> Self {
        Self {
            title: String::new(),
            panels: Vec::new(),
            columns: 1,
            panel_size: (260.0, 200.0),
            gap: 18.0,
            keys: Vec::new(),
        }
    }
}

/// An entry of the legend.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// What it says.
    pub name: String,
    /// What it shows.
    pub sign: Sign,
    /// In which colour.
    pub colour: Colour,
}

/// One plot of a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Above it; may be empty.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, from back to front.
    pub layers: Vec<Layer>,
    /// What is drawn around it.
    pub border: Border,
}

/// What is drawn around a panel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Border {
    /// A box with the lines of the grid.
    #[default]
    Grid,
    /// A line at the bottom.
    Bottom,
    /// Nothing.
    None,
}

impl Figure {
    /// The figure as a document of its own on white ground.
    pub fn svg(&self) -> String {
        let (body, (width, height)) = self.body(Theme::Paper);
        let (width, height) = (Px(width), Px(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\">\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>{body}</svg>\n"
        )
    }

    /// The figure for the page, which sets fonts and colours. `description` is for those who cannot see it.
    pub(crate) fn inline(&self, description: &str) -> String {
        let (body, (width, height)) = self.body(Theme::Page);
        let (width, height) = (Px(width), Px(height));
        format!(
            "<svg class=\"figure\" role=\"img\" aria-label=\"{}\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\">{body}</svg>",
            escape(description)
        )
    }

    fn body(&self, theme: Theme) -> (String, (f64, f64)) {
        let mut svg = Svg::new(theme);
        let prepared: Vec<Prepared<'_>> =
            self.panels.iter().map(|panel| Prepared::new(panel, self.panel_size, self.gap / 2.0)).collect();
        let columns = self.columns.max(1).min(prepared.len().max(1));
        let lefts: Vec<f64> = (0..columns)
            .map(|column| prepared.iter().skip(column).step_by(columns).map(Prepared::left).fold(0.0, f64::max))
            .collect();
        let mut width = 2.0 * OUTER + 6.0;
        let places: Vec<f64> = lefts
            .iter()
            .enumerate()
            .map(|(column, left)| {
                let place = width - OUTER - 6.0 + left + if column > 0 { self.gap } else { 0.0 };
                width = place + self.panel_size.0 + OUTER + 6.0;
                place
            })
            .collect();
        let mut top = OUTER;
        if !self.title.is_empty() {
            top += FIGURE_TITLE + 10.0;
            let title = fit(&self.title, FIGURE_TITLE * 1.05, width - 2.0 * OUTER);
            svg.text((OUTER, top - 11.0), &title, text_style(FIGURE_TITLE, "start", true, theme.ink()));
        }
        for (row, panels) in prepared.chunks(columns).enumerate() {
            top += if row > 0 { self.gap } else { 0.0 } + panels.iter().map(Prepared::top).fold(0.0, f64::max);
            for (column, panel) in panels.iter().enumerate() {
                panel.draw(&mut svg, (places[column], top), self.panel_size, lefts[column]);
            }
            top += self.panel_size.1 + panels.iter().map(Prepared::bottom).fold(0.0, f64::max);
        }
        let height = top + self.legend(&mut svg, width, top) + OUTER;
        (svg.finish(), (width, height))
    }

    /// Entries of named layers, each name and sign once, and the figure's own.
    fn all_keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = Vec::new();
        for (name, sign, colour) in self.panels.iter().flat_map(|panel| &panel.layers).filter_map(Layer::key) {
            if !keys.iter().any(|key| key.name == name) {
                keys.push(Key { name: name.into(), sign, colour });
            }
        }
        keys.extend(self.keys.iter().cloned());
        keys
    }

    /// Draws the legend below `top` and returns its height.
    fn legend(&self, svg: &mut Svg, width: f64, top: f64) -> f64 {
        let room = width - 2.0 * OUTER;
        let entry_width = |key: &Key| (26.0 + text_width(&key.name, LABEL) + 12.0).min(room);
        let mut lines: Vec<(f64, Vec<Key>)> = Vec::new();
        for key in self.all_keys() {
            let needed = entry_width(&key);
            match lines.last_mut() {
                Some((used, keys)) if *used + needed <= room => {
                    *used += needed;
                    keys.push(key);
                }
                _ => lines.push((needed, vec![key])),
            }
        }
        if lines.is_empty() {
            return 0.0;
        }
        for (index, (used, keys)) in lines.iter().enumerate() {
            let middle = top + 8.0 + (index as f64 + 0.5) * LEGEND_LINE;
            let mut x = (width - used) / 2.0;
            for key in keys {
                sign(svg, (x + 10.0, middle), key.sign, key.colour);
                let name = fit(&key.name, LABEL, room - 30.0);
                let ink = svg.theme.ink();
                svg.text((x + 23.0, middle + 0.35 * LABEL), &name, text_style(LABEL, "start", false, ink));
                x += entry_width(key);
            }
        }
        8.0 + lines.len() as f64 * LEGEND_LINE
    }
}

fn text_style<'a>(size: f64, anchor: &'a str, bold: bool, colour: &'a str) -> TextStyle<'a> {
    TextStyle { size, anchor, bold, colour, turn: 0.0 }
}

/// A panel whose ranges and ticks are known.
struct Prepared<'a> {
    panel: &'a Panel,
    x: (super::scale::Span, Laid),
    y: (super::scale::Span, Laid),
}

impl<'a> Prepared<'a> {
    fn new(panel: &'a Panel, (width, height): (f64, f64), overhang: f64) -> Self {
        let (x, y) = spans(&panel.x, &panel.y, &panel.layers);
        let (x_ticks, y_ticks) = (lay(&panel.x, &x, width, true, overhang), lay(&panel.y, &y, height, false, overhang));
        Self { panel, x: (x, x_ticks), y: (y, y_ticks) }
    }

    /// Room for ticks and label of the vertical axis.
    fn left(&self) -> f64 {
        let ticks = if self.panel.y.is_labelled() { self.y.1.widest() + 7.0 } else { 0.0 };
        ticks + if self.panel.y.label.is_empty() { 0.0 } else { LABEL + 7.0 }
    }

    /// Room for ticks and label of the horizontal axis.
    fn bottom(&self) -> f64 {
        self.tick_height() + if self.panel.x.label.is_empty() { 0.0 } else { LABEL + 6.0 }
    }

    fn tick_height(&self) -> f64 {
        match &self.x.1 {
            _ if !self.panel.x.is_labelled() => 0.0,
            laid if laid.turned => laid.widest() * SLOPE.to_radians().sin() + SMALL_FONT + 6.0,
            _ => SMALL_FONT + 7.0,
        }
    }

    fn top(&self) -> f64 {
        if self.panel.title.is_empty() { 2.0 } else { PANEL_TITLE + 9.0 }
    }

    fn draw(&self, svg: &mut Svg, (left, top): (f64, f64), (width, height): (f64, f64), margin: f64) {
        let frame = Frame { left, top, width, height, x: self.x.0, y: self.y.0 };
        let bottom = top + height;
        if self.panel.border == Border::Grid {
            svg.rect((left, top), (width, height), &format!(r#"fill="{}""#, svg.theme.ground()));
        }
        self.ticks(svg, &frame);
        for layer in &self.panel.layers {
            draw(svg, &frame, layer);
        }
        let line = format!(r#"fill="none" stroke="{}""#, svg.theme.frame());
        match self.panel.border {
            Border::Grid => svg.rect((left, top), (width, height), &line),
            Border::Bottom => {
                let mut path = Path::default();
                path.line((left, bottom), (left + width, bottom));
                svg.path(&path, &line);
            }
            Border::None => {}
        }
        let ink = svg.theme.ink();
        if !self.panel.title.is_empty() {
            let title = fit(&self.panel.title, PANEL_TITLE * 1.06, width + 10.0);
            svg.text((left + width / 2.0, top - 8.0), &title, text_style(PANEL_TITLE, "middle", true, ink));
        }
        if !self.panel.x.label.is_empty() {
            let label = fit(&self.panel.x.label, LABEL, width);
            let at = (left + width / 2.0, bottom + self.tick_height() + LABEL + 1.0);
            svg.text(at, &label, text_style(LABEL, "middle", false, ink));
        }
        if !self.panel.y.label.is_empty() {
            let label = fit(&self.panel.y.label, LABEL, height);
            let at = (left - margin + LABEL - 1.0, top + height / 2.0);
            svg.text(at, &label, TextStyle { turn: -90.0, ..text_style(LABEL, "middle", false, ink) });
        }
    }

    /// Lines of the grid and labels of ticks.
    fn ticks(&self, svg: &mut Svg, frame: &Frame) {
        let (bottom, right) = (frame.top + frame.height, frame.left + frame.width);
        let mut grid = Path::default();
        let muted = svg.theme.colour(Colour::Muted);
        for (value, label) in &self.x.1.ticks {
            let Some(x) = frame.x_at(*value) else { continue };
            grid.line((x, frame.top), (x, bottom));
            let style = text_style(SMALL_FONT, "middle", false, &muted);
            if self.x.1.turned {
                let at = (x + 3.0, bottom + SMALL_FONT + 2.0);
                svg.text(at, label, TextStyle { turn: -SLOPE, anchor: "end", ..style });
            } else if !label.is_empty() {
                svg.text((x, bottom + SMALL_FONT + 4.0), label, style);
            }
        }
        for (value, label) in &self.y.1.ticks {
            let Some(y) = frame.y_at(*value) else { continue };
            grid.line((frame.left, y), (right, y));
            if !label.is_empty() {
                svg.text(
                    (frame.left - 5.0, y + 0.36 * SMALL_FONT),
                    label,
                    text_style(SMALL_FONT, "end", false, &muted),
                );
            }
        }
        if self.panel.border == Border::Grid {
            svg.path(&grid, &format!(r#"fill="none" stroke="{}""#, svg.theme.grid()));
        }
    }
}

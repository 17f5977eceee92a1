//! A number for each ordered pair of nodes, as a map of colours.

use std::fmt::Write;

use crate::markup::escape;
use crate::number;
use crate::plot::{Px, fit, text_width};

/// Up to this many nodes numbers are written into the cells.
const NUMBERED: usize = 15;
/// Says what rows and columns are.
const CORNER: &str = "from ↓ to →";
/// On narrow screens the map may shrink to this share of its size before it is scrolled.
const SHRINK: f64 = 0.75;
/// Where the colour is stronger than this, text has the colour of the ground.
const STRONG: f64 = 0.78;
/// Room for names.
const NAME_WIDTH: f64 = 120.0;
/// Slope of the names of columns in degrees.
const SLOPE: f64 = 50.0;
/// Numbers below this are not written: they would read 0.00.
const SEEN: f64 = 0.005;

/// A cell.
pub(super) struct Cell {
    /// Between 0 and 1, or no number.
    pub(super) value: f64,
    /// What is said when it is pointed at.
    pub(super) title: String,
    /// With a frame.
    pub(super) is_framed: bool,
}

/// The map; `cell(i, j)` is asked for all i ≠ j, rows and columns in the order of `names`.
pub(super) fn matrix(names: &[&str], description: &str, cell: impl Fn(usize, usize) -> Cell) -> String {
    let (side, size) = match names.len() {
        0..=10 => (40.0, 12.0),
        11..=NUMBERED => (34.0, 11.0),
        16..=25 => (22.0, 11.0),
        _ => (15.0, 10.0),
    };
    let short: Vec<String> = names.iter().map(|name| fit(name, size, NAME_WIDTH)).collect();
    let widest = short.iter().map(|name| text_width(name, size)).fold(0.0, f64::max);
    let (left, top) =
        (widest.max(text_width(CORNER, 11.0) + 6.0) + 10.0, widest * SLOPE.to_radians().sin() + size + 8.0);
    let whole = side * names.len() as f64;
    let over = (widest * SLOPE.to_radians().cos() - side / 2.0).max(0.0) + 10.0;
    let (width, height) = (left + whole + over, top + whole + 4.0);
    let mut html = format!(
        "<div class=\"scroll\"><svg class=\"figure matrix\" role=\"img\" aria-label=\"{}\" \
         viewBox=\"0 0 {} {}\" style=\"width:{}px;min-width:{}px;max-width:100%\" font-size=\"{size}\"><text x=\"{}\" y=\"{}\" class=\"corner\">{CORNER}</text>",
        escape(description),
        Px(width),
        Px(height),
        Px(width),
        Px(width * SHRINK),
        Px(left - 6.0),
        Px(top - 7.0)
    );
    for (index, name) in short.iter().enumerate() {
        let full = escape(names[index]);
        let middle = (index as f64 + 0.5) * side;
        let (x, y) = (left + middle + 0.3 * size, top - 6.0);
        let _ = write!(
            html,
            "<text x=\"{}\" y=\"{}\" class=\"row\"><title>{full}</title>{}</text><text x=\"{}\" y=\"{}\" \
             transform=\"rotate(-{SLOPE} {} {})\"><title>{full}</title>{}</text>",
            Px(left - 6.0),
            Px(top + middle + 0.36 * size),
            escape(name),
            Px(x),
            Px(y),
            Px(x),
            Px(y),
            escape(name)
        );
    }
    for row in 0..names.len() {
        for column in 0..names.len() {
            let at = (left + side * column as f64, top + side * row as f64);
            html.push_str(&square(at, side, (row != column).then(|| cell(row, column)), names.len() <= NUMBERED));
        }
    }
    html + "</svg></div>"
}

/// One cell; `None` on the diagonal.
fn square((x, y): (f64, f64), side: f64, cell: Option<Cell>, is_numbered: bool) -> String {
    let inner = side - 1.0;
    let place = format!("x=\"{}\" y=\"{}\" width=\"{inner}\" height=\"{inner}\"", Px(x), Px(y));
    let Some(cell) = cell else { return format!("<rect class=\"diagonal\" {place}/>") };
    let value = if cell.value.is_finite() { cell.value.clamp(0.0, 1.0) } else { 0.0 };
    let mut html = format!(
        "<g class=\"cell\"><title>{}</title><rect class=\"empty\" {place}/><rect class=\"full\" {place} \
         fill-opacity=\"{value:.3}\"/>",
        escape(&cell.title)
    );
    if cell.is_framed {
        let _ = write!(
            html,
            "<rect class=\"framed\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            Px(x + 1.0),
            Px(y + 1.0),
            Px(inner - 2.0),
            Px(inner - 2.0)
        );
    }
    if is_numbered && (value >= SEEN || !cell.value.is_finite()) {
        let text = if cell.value.is_finite() { number::tick(value, 0.01) } else { number::MISSING.to_owned() };
        let class = if value > STRONG { "on" } else { "off" };
        let _ = write!(
            html,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\">{text}</text>",
            Px(x + inner / 2.0),
            Px(y + inner / 2.0 + 4.0)
        );
    }
    html + "</g>"
}

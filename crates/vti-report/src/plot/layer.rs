//! What can be drawn into a panel.
//!
//! Every layer is a plain structure; `..Default::default()` fills in what is not said. A layer with a `name` appears in
//! the legend. Values that are not finite, and values that are not positive on a logarithmic axis, are not drawn.

use super::colour::Colour;

/// The shape of a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marker {
    /// A disc.
    #[default]
    Circle,
    /// A triangle that points upwards.
    Triangle,
    /// A square.
    Square,
}

/// Points.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// Where.
    pub points: Vec<(f64, f64)>,
    /// Their colour.
    pub colour: Colour,
    /// Their shape.
    pub marker: Marker,
    /// Half their size in pixels.
    pub radius: f64,
    /// 1: opaque.
    pub opacity: f64,
    /// With a thin outline in the colour of text: for the few that matter among many.
    pub outlined: bool,
    /// What is said when one is pointed at, as far as the list goes.
    pub titles: Vec<String>,
    /// In the legend.
    pub name: String,
}

impl Default for Points {
    fn default() -> Self {
        Self {
            points: Vec::new(),
            colour: Colour::default(),
            marker: Marker::default(),
            radius: 2.5,
            opacity: 1.0,
            outlined: false,
            titles: Vec::new(),
            name: String::new(),
        }
    }
}

/// A line through points, broken where one has no place.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its corners.
    pub points: Vec<(f64, f64)>,
    /// Its colour.
    pub colour: Colour,
    /// Its width in pixels.
    pub width: f64,
    /// 1: opaque.
    pub opacity: f64,
    /// Dashed instead of solid.
    pub dashed: bool,
    /// In the legend.
    pub name: String,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            points: Vec::new(),
            colour: Colour::default(),
            width: 1.5,
            opacity: 1.0,
            dashed: false,
            name: String::new(),
        }
    }
}

/// The area between a line and zero: a density.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Area {
    /// The line.
    pub points: Vec<(f64, f64)>,
    /// Its colour; the filling is lighter.
    pub colour: Colour,
    /// In the legend.
    pub name: String,
}

/// The area between two lines: an interval at every place.
#[derive(Clone, Debug, PartialEq)]
pub struct Ribbon {
    /// One line.
    pub low: Vec<(f64, f64)>,
    /// The other, from the same end.
    pub high: Vec<(f64, f64)>,
    /// Its colour.
    pub colour: Colour,
    /// 1: opaque.
    pub opacity: f64,
    /// In the legend.
    pub name: String,
}

impl Default for Ribbon {
    fn default() -> Self {
        Self { low: Vec::new(), high: Vec::new(), colour: Colour::default(), opacity: 0.2, name: String::new() }
    }
}

/// A straight line across the panel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// Its value.
    pub at: f64,
    /// At a value of x instead of y.
    pub upright: bool,
    /// Its colour.
    pub colour: Colour,
    /// Dashed instead of solid.
    pub dashed: bool,
    /// In the legend.
    pub name: String,
}

/// A bar from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bar {
    /// Its middle on the x axis.
    pub at: f64,
    /// Its height.
    pub value: f64,
    /// Ends of its error bar.
    pub error: Option<(f64, f64)>,
}

/// Bars of one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// The bars.
    pub bars: Vec<Bar>,
    /// Their width in units of the x axis.
    pub width: f64,
    /// Their colour.
    pub colour: Colour,
    /// In the legend.
    pub name: String,
}

impl Default for Bars {
    fn default() -> Self {
        Self { bars: Vec::new(), width: 0.8, colour: Colour::default(), name: String::new() }
    }
}

/// Lines around the regions of highest density that hold given shares of weighted draws. For linear axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Contours {
    /// The draws.
    pub points: Vec<(f64, f64)>,
    /// Their weights; empty: all equal.
    pub weights: Vec<f64>,
    /// The shares.
    pub shares: Vec<f64>,
    /// Their colour.
    pub colour: Colour,
    /// In the legend.
    pub name: String,
}

impl Default for Contours {
    fn default() -> Self {
        Self {
            points: Vec::new(),
            weights: Vec::new(),
            shares: vec![0.5, 0.9],
            colour: Colour::default(),
            name: String::new(),
        }
    }
}

/// A text at a place given as shares of the panel: (0, 0) is its lower left corner, (1, 1) its upper right one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Note {
    /// The middle of the text.
    pub at: (f64, f64),
    /// What it says.
    pub text: String,
    /// Its size in pixels; 0: that of tick labels.
    pub size: f64,
    /// Its colour.
    pub colour: Colour,
}

/// One thing drawn into a panel; later ones lie above earlier ones.
#[derive(Clone, Debug, PartialEq)]
pub enum Layer {
    /// Points.
    Points(Points),
    /// A line.
    Line(Line),
    /// An area above zero.
    Area(Area),
    /// The area between two lines.
    Ribbon(Ribbon),
    /// A line across the panel.
    Rule(Rule),
    /// Bars from zero, with error bars.
    Bars(Bars),
    /// A density over the plane.
    Contours(Contours),
    /// A text.
    Note(Note),
    /// The line x = y. Axes of the same scale without given ranges then share one.
    Diagonal,
}

macro_rules! layer_from {
    ($($kind:ident),*) => {$(
        impl From<$kind> for Layer {
            fn from(layer: $kind) -> Self {
                Self::$kind(layer)
            }
        }
    )*};
}

layer_from!(Points, Line, Area, Ribbon, Rule, Bars, Contours, Note);

impl Layer {
    /// Calls `see` with every point that must fit into the panel. `None` says nothing about that axis.
    pub(crate) fn extent(&self, see: &mut dyn FnMut(Option<f64>, Option<f64>)) {
        let mut all = |points: &[(f64, f64)]| points.iter().for_each(|&(x, y)| see(Some(x), Some(y)));
        match self {
            Self::Points(Points { points, .. }) | Self::Line(Line { points, .. }) => all(points),
            Self::Contours(Contours { points, .. }) => all(points),
            Self::Area(Area { points, .. }) => {
                all(points);
                see(None, Some(0.0));
            }
            Self::Ribbon(Ribbon { low, high, .. }) => {
                all(low);
                all(high);
            }
            Self::Rule(Rule { at, upright: true, .. }) => see(Some(*at), None),
            Self::Rule(Rule { at, .. }) => see(None, Some(*at)),
            Self::Bars(Bars { bars, width, .. }) => {
                see(None, Some(0.0));
                for Bar { at, value, error } in bars {
                    see(Some(at - width / 2.0), Some(*value));
                    see(Some(at + width / 2.0), error.map(|error| error.0));
                    see(None, error.map(|error| error.1));
                }
            }
            Self::Note(_) | Self::Diagonal => {}
        }
    }

    /// Stands on zero, so that no room is left below.
    pub(crate) fn stands_on_zero(&self) -> bool {
        matches!(self, Self::Area(_) | Self::Bars(_))
    }
}

/// Where the `index`-th of `count` neighbours in a group is, as (distance from the group's middle, width): the group
/// takes 0.8 of a unit.
pub fn dodge(count: usize, index: usize) -> (f64, f64) {
    let width = 0.8 / count.max(1) as f64;
    ((index as f64 + 0.5) * width - 0.4, width)
}

/// Bars side by side: one layer for each series, of a colour of its own, moved so that bars at the same place do not
/// cover each other.
pub fn grouped(series: Vec<(String, Vec<Bar>)>) -> Vec<Layer> {
    let count = series.len();
    let layer = |(index, (name, mut bars)): (usize, (String, Vec<Bar>))| {
        let (offset, width) = dodge(count, index);
        bars.iter_mut().for_each(|bar| bar.at += offset);
        Layer::Bars(Bars { bars, width: width * 0.92, colour: Colour::Series(index), name })
    };
    series.into_iter().enumerate().map(layer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_centred_and_do_not_overlap() {
        for count in 1..6 {
            let places: Vec<_> = (0..count).map(|index| dodge(count, index)).collect();
            assert!(places.iter().map(|place| place.0).sum::<f64>().abs() < 1e-12);
            assert!(places.windows(2).all(|pair| pair[1].0 - pair[0].0 >= pair[0].1 - 1e-12));
        }
    }
}

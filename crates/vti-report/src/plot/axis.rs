//! Axes: what they are called, how values lie on them, which ticks they show.

use super::draw::SMALL_FONT;
use super::layer::Layer;
use super::scale::{Scale, Span};
use super::svg::{fit, text_width};

/// Names beside an axis are shortened to this many pixels.
const LONGEST_NAME: f64 = 130.0;

/// One axis of a panel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it shows; may be empty.
    pub label: String,
    /// How values lie on it.
    pub scale: Scale,
    /// Its ends; `None`: what the layers need.
    pub range: Option<(f64, f64)>,
    /// What is written at it.
    pub ticks: Ticks,
    /// Large values first: depths grow downwards.
    pub reversed: bool,
}

/// What is written at an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Ticks {
    /// Round numbers.
    #[default]
    Numbers,
    /// Lines of the grid at round numbers, without labels.
    Unlabelled,
    /// Names at 0, 1, 2, …
    Names(Vec<String>),
    /// Nothing.
    Hidden,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// A logarithmic axis.
    pub fn log(label: &str) -> Self {
        Self { label: label.into(), scale: Scale::Log, ..Self::default() }
    }

    /// An axis with names at 0, 1, 2, …
    pub fn names(label: &str, names: Vec<String>) -> Self {
        Self { label: label.into(), ticks: Ticks::Names(names), ..Self::default() }
    }

    /// An axis at which nothing is written.
    pub fn hidden() -> Self {
        Self { ticks: Ticks::Hidden, ..Self::default() }
    }

    /// The same axis from `low` to `high`.
    pub fn within(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }

    pub(crate) fn is_labelled(&self) -> bool {
        matches!(self.ticks, Ticks::Numbers | Ticks::Names(_))
    }
}

/// Ends of what has been seen so far.
type Seen = Option<(f64, f64)>;

fn see(seen: &mut Seen, value: f64) {
    let (low, high) = seen.unwrap_or((value, value));
    *seen = Some((low.min(value), high.max(value)));
}

/// The spans of both axes: as given, or what the layers need and a little room.
pub(crate) fn spans(x: &Axis, y: &Axis, layers: &[Layer]) -> (Span, Span) {
    let mut seen: [Seen; 2] = [None, None];
    let mut note = |index: usize, axis: &Axis, value: Option<f64>| {
        if let Some(value) = value.filter(|value| axis.scale.place(*value).is_some()) {
            see(&mut seen[index], value);
        }
    };
    for layer in layers {
        layer.extent(&mut |at_x, at_y| {
            note(0, x, at_x);
            note(1, y, at_y);
        });
    }
    let diagonal = layers.contains(&Layer::Diagonal) && x.scale == y.scale && x.range.is_none() && y.range.is_none();
    if let (true, [Some(a), Some(b)]) = (diagonal, seen) {
        seen = [Some((a.0.min(b.0), a.1.max(b.1))); 2];
    }
    let standing = layers.iter().any(Layer::stands_on_zero) && seen[1].is_some_and(|(low, _)| low == 0.0);
    (span(x, seen[0], false).reversed_if(x.reversed), span(y, seen[1], standing).reversed_if(y.reversed))
}

fn span(axis: &Axis, seen: Seen, standing: bool) -> Span {
    if let Some((low, high)) = axis.range {
        return Span::new(axis.scale, low, high);
    }
    if let Ticks::Names(names) = &axis.ticks {
        return Span::new(axis.scale, -0.6, names.len().max(1) as f64 - 0.4);
    }
    let (low, high) = seen.unwrap_or((0.1, 1.0));
    Span::new(axis.scale, low, high).padded(if standing { 0.0 } else { 0.05 }, 0.05)
}

/// Ticks of an axis, ready to be drawn.
pub(crate) struct Laid {
    pub(crate) ticks: Vec<(f64, String)>,
    /// Labels stand at an angle because they would not fit side by side.
    pub(crate) turned: bool,
}

impl Laid {
    pub(crate) fn widest(&self) -> f64 {
        self.ticks.iter().map(|(_, label)| text_width(label, SMALL_FONT)).fold(0.0, f64::max)
    }
}

/// The ticks of an axis that runs along `pixels`. Labels that would stick out by more than `overhang` pixels at its ends
/// are left out: they would touch those of the next panel.
pub(crate) fn lay(axis: &Axis, span: &Span, pixels: f64, level: bool, overhang: f64) -> Laid {
    let mut turned = false;
    let ticks = match &axis.ticks {
        Ticks::Hidden => Vec::new(),
        Ticks::Unlabelled => numbers(span, pixels, level).into_iter().map(|(at, _)| (at, String::new())).collect(),
        Ticks::Numbers => {
            let mut ticks = numbers(span, pixels, level);
            for (at, label) in &mut ticks {
                let half = 0.5 * if level { text_width(label, SMALL_FONT) } else { SMALL_FONT };
                let place = span.share(*at).unwrap_or(0.0) * pixels;
                if place.min(pixels - place) < half - overhang {
                    label.clear();
                }
            }
            ticks
        }
        Ticks::Names(names) => {
            let all = names.iter().enumerate();
            let ticks: Vec<_> = all.map(|(i, name)| (i as f64, fit(name, SMALL_FONT, LONGEST_NAME))).collect();
            turned = level && room_needed(&ticks) > pixels;
            ticks
        }
    };
    Laid { ticks, turned }
}

fn room_needed(ticks: &[(f64, String)]) -> f64 {
    ticks.iter().map(|(_, label)| text_width(label, SMALL_FONT) + 9.0).sum()
}

/// As many round numbers as fit without crowding.
fn numbers(span: &Span, pixels: f64, level: bool) -> Vec<(f64, String)> {
    if !level {
        return span.ticks((pixels / 32.0) as usize);
    }
    let most = ((pixels / 48.0) as usize).clamp(3, 9);
    let mut ticks = span.ticks(most);
    for wanted in (3..most).rev() {
        if room_needed(&ticks) <= pixels {
            break;
        }
        ticks = span.ticks(wanted);
    }
    // Every other label still says where one is.
    if room_needed(&ticks) > pixels {
        ticks.iter_mut().skip(1).step_by(2).for_each(|(_, label)| label.clear());
    }
    ticks
}

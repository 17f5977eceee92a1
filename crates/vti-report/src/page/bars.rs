//! One number three times, as bars that stretch with the page: learned, corrected with whiskers, exact as a mark.

use std::fmt::Write;

use vti::answer::Quantity;

use super::table::{Cell, Column, Kind};
use super::{CORRECTED, LEARNED, Versions, short};
use crate::markup::escape;
use crate::number;
use crate::plot::{Colour, Theme, ticks};

/// Height of the bars of one row in pixels.
const HEIGHT: usize = 30;

/// How many standard errors whiskers reach to either side.
const WHISKER: f64 = 2.0;

/// The scale of bars: from 0 to `most`.
pub(super) struct Ruler {
    most: f64,
    ticks: Vec<f64>,
}

impl Ruler {
    /// From 0 to 1.
    pub(super) fn unit() -> Self {
        Self { most: 1.0, ticks: vec![0.0, 0.25, 0.5, 0.75, 1.0] }
    }

    /// From 0 to a round number that all `values` stay below.
    pub(super) fn up_to(values: impl Iterator<Item = f64>) -> Self {
        let highest = values.filter(|value| value.is_finite()).fold(0.0, f64::max).min(1.0);
        let highest = if highest > 0.0 { highest } else { 1.0 };
        let inner = ticks(0.0, highest, 4);
        let step = inner.get(1).copied().unwrap_or(highest);
        let most = inner.last().map_or(highest, |&last| if last < highest { last + step } else { last }).min(1.0);
        let ticks = inner.into_iter().chain([most]).fold(Vec::new(), |mut all: Vec<f64>, tick| {
            if all.last().is_none_or(|last| tick - last > step / 2.0) {
                all.push(tick);
            }
            all
        });
        Self { most, ticks }
    }

    /// How far along `value` is in percent, not beyond the ends; `None` if it is no number.
    fn percent(&self, value: f64) -> Option<f64> {
        value.is_finite().then(|| (100.0 * value / self.most).clamp(0.0, 100.0))
    }

    /// The heading of a column of bars: labels of the ticks.
    pub(super) fn column(&self) -> Column {
        let mut svg = String::from("<svg width=\"100%\" height=\"14\" aria-hidden=\"true\">");
        let step = if self.ticks.len() > 1 { self.ticks[1] - self.ticks[0] } else { self.most };
        let decimals = if step == 0.25 { 0.01 } else { step };
        for tick in &self.ticks {
            let at = self.percent(*tick).unwrap_or(0.0);
            let label = number::tick(*tick, decimals);
            let _ = write!(
                svg,
                "<text x=\"{at:.2}%\" y=\"11\" font-size=\"11\" text-anchor=\"middle\" fill=\"var(--muted)\">{label}</text>"
            );
        }
        Column::drawn(Kind::Plot, svg + "</svg>")
    }

    /// The bars of one quantity.
    pub(super) fn bars(&self, of: &Quantity, versions: Versions) -> Cell {
        let mut svg =
            format!("<svg width=\"100%\" height=\"{HEIGHT}\" role=\"img\"><title>{}</title>", title(of, versions));
        for tick in &self.ticks {
            let at = self.percent(*tick).unwrap_or(0.0);
            let colour = if *tick == 0.0 { "var(--frame)" } else { "var(--grid)" };
            let _ = write!(svg, "<line x1=\"{at:.2}%\" x2=\"{at:.2}%\" y1=\"0\" y2=\"{HEIGHT}\" stroke=\"{colour}\"/>");
        }
        let own = if versions.learned { 16 } else { 10 };
        let bars = [(of.q, LEARNED, 5), (of.corrected, CORRECTED, own)];
        for (value, colour, top) in bars {
            if let Some(width) = self.percent(value) {
                let colour = Theme::Page.colour(colour);
                let _ = write!(
                    svg,
                    "<rect x=\"0\" y=\"{top}\" width=\"{width:.2}%\" height=\"9\" rx=\"1\" fill=\"{colour}\"/>"
                );
            }
        }
        svg.push_str(&self.whisker(of, own as f64));
        if let Some(at) =
            of.exact.filter(|_| versions.learned && versions.exact.is_some()).and_then(|exact| self.percent(exact))
        {
            let _ = write!(
                svg,
                "<svg x=\"{at:.2}%\" y=\"{}\" overflow=\"visible\"><path d=\"M0-13V13M0-4L4 0 0 4-4 0Z\" \
                 fill=\"var(--ink)\" stroke=\"var(--ink)\" stroke-width=\"1.5\"/></svg>",
                HEIGHT / 2
            );
        }
        Cell::html(svg + "</svg>")
    }

    /// Over the bar that begins so far below the top.
    fn whisker(&self, of: &Quantity, top: f64) -> String {
        let reach = WHISKER * of.se;
        let (Some(low), Some(high)) = (self.percent(of.corrected - reach), self.percent(of.corrected + reach)) else {
            return String::new();
        };
        if of.se <= 0.0 {
            return String::new();
        }
        let line = |x1: f64, x2: f64, y1: f64, y2: f64| {
            format!(
                "<line x1=\"{x1:.2}%\" x2=\"{x2:.2}%\" y1=\"{y1}\" y2=\"{y2}\" stroke=\"var(--ink)\" stroke-opacity=\"0.75\"/>"
            )
        };
        let [first, middle, last] = [1.0, 4.5, 8.0].map(|below| top + below);
        line(low, high, middle, middle) + &line(low, low, first, last) + &line(high, high, first, last)
    }
}

/// The numbers in words, for those who point at the bars or cannot see them.
fn title(of: &Quantity, versions: Versions) -> String {
    let q = versions.learned.then(|| format!("q {}", number::probability(of.q)));
    let corrected =
        versions.corrected.map(|name| format!("{name} {}", number::probability_with_error(of.corrected, of.se)));
    let exact = of.exact.zip(versions.exact);
    let exact = exact.map(|(exact, name)| format!("{} {}", escape(name), number::probability(exact)));
    [q, corrected, exact].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Columns of numbers that go with bars.
pub(super) fn number_columns(versions: Versions) -> Vec<Column> {
    let names = [versions.learned.then_some("q"), versions.corrected, versions.exact.map(short)];
    names.into_iter().flatten().map(|name| Column::new(Kind::Number, name)).collect()
}

/// Their cells.
pub(super) fn number_cells(of: &Quantity, versions: Versions) -> Vec<Cell> {
    let exact = of.exact.unwrap_or(f64::NAN);
    let mut cells = Vec::new();
    if versions.learned {
        cells.push(Cell::number(number::probability(of.q), of.q));
    }
    if versions.corrected.is_some() {
        cells.push(Cell::number(number::probability_with_error(of.corrected, of.se), of.corrected));
    }
    if versions.exact.is_some() {
        cells.push(Cell::number(number::probability(exact), exact));
    }
    cells
}

/// What the colours mean.
pub(super) fn legend(versions: Versions) -> String {
    // One kind of bar needs no explanation.
    let Some(corrected) = versions.corrected else { return String::new() };
    let swatch = |colour: Colour, extra: &str| {
        format!(
            "<svg width=\"22\" height=\"12\" aria-hidden=\"true\"><rect y=\"1\" width=\"22\" height=\"10\" rx=\"1\" \
             fill=\"{}\"/>{extra}</svg>",
            Theme::Page.colour(colour)
        )
    };
    let whisker = "<path d=\"M6 6H17M6 3V9M17 3V9\" stroke=\"var(--ink)\" stroke-opacity=\"0.75\" fill=\"none\"/>";
    let learned = if versions.learned { format!("<li>{}learned (q)</li>", swatch(LEARNED, "")) } else { String::new() };
    let mut html = format!(
        "<ul class=\"legend\">{learned}<li>{}{corrected}, whiskers of ±{WHISKER} standard errors</li>",
        swatch(CORRECTED, whisker)
    );
    if let Some(name) = versions.exact {
        let _ = write!(
            html,
            "<li><svg width=\"12\" height=\"14\" aria-hidden=\"true\"><path d=\"M6 0V14M6 2L11 7 6 12 1 7Z\" \
             fill=\"var(--ink)\" stroke=\"var(--ink)\"/></svg>{}</li>",
            escape(name)
        );
    }
    html + "</ul>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rulers_end_on_a_round_number_above_all_values() {
        for highest in [1.0, 0.93, 0.31, 0.2, 0.013, 1e-5] {
            let ruler = Ruler::up_to([highest, highest / 3.0, f64::NAN].into_iter());
            assert!(ruler.most >= highest && ruler.most < 2.0 * highest, "{highest}: {}", ruler.most);
            assert!(ruler.ticks.windows(2).all(|pair| pair[0] < pair[1]));
            assert_eq!(ruler.ticks.last(), Some(&ruler.most));
        }
        assert_eq!(Ruler::up_to(std::iter::empty()).most, 1.0);
    }
}

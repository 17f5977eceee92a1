//! Writing SVG: coordinates to a tenth of a pixel, text escaped, nothing that is not a number.

use std::fmt::Write;

use super::colour::Theme;
use crate::markup::escape;

/// A length as it is written.
pub(crate) struct Px(pub(crate) f64);

impl std::fmt::Display for Px {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Tenths(tenths(self.0)).fmt(f)
    }
}

/// A length in tenths of a pixel. Far outside any figure nothing is seen; a number that is none must never reach a
/// document.
fn tenths(length: f64) -> i64 {
    (if length.is_finite() { length.clamp(-1e5, 1e5) } else { 0.0 } * 10.0).round() as i64
}

struct Tenths(i64);

impl std::fmt::Display for Tenths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sign, whole, tenth) = (if self.0 < 0 { "-" } else { "" }, self.0.abs() / 10, self.0.abs() % 10);
        match (whole, tenth) {
            (whole, 0) => write!(f, "{sign}{whole}"),
            (0, tenth) => write!(f, "{sign}.{tenth}"),
            (whole, tenth) => write!(f, "{sign}{whole}.{tenth}"),
        }
    }
}

/// The `d` of a path.
#[derive(Default)]
pub(crate) struct Path(String);

impl Path {
    /// Lines through `points`; `None` lifts the pen.
    pub(crate) fn through(points: impl Iterator<Item = Option<(f64, f64)>>) -> Self {
        let mut path = Self::default();
        let mut last: Option<(i64, i64)> = None;
        for point in points {
            let Some((x, y)) = point.map(|(x, y)| (tenths(x), tenths(y))) else {
                last = None;
                continue;
            };
            // Steps are shorter than places; as differences of rounded places they do not add up to an error.
            let _ = match last {
                None => write!(path.0, "M{} {}", Tenths(x), Tenths(y)),
                Some(last) if last == (x, y) => Ok(()),
                Some(last) => write!(path.0, "l{} {}", Tenths(x - last.0), Tenths(y - last.1)),
            };
            last = Some((x, y));
        }
        path
    }

    /// A closed polygon around the origin moved to `at`.
    pub(crate) fn polygon(&mut self, at: (f64, f64), corners: &[(f64, f64)]) {
        for (i, corner) in corners.iter().enumerate() {
            let letter = if i == 0 { "M" } else { "L" };
            let _ = write!(self.0, "{letter}{} {}", Px(at.0 + corner.0), Px(at.1 + corner.1));
        }
        self.close();
    }

    /// A point: with round caps and a wide stroke, a disc.
    pub(crate) fn dot(&mut self, at: (f64, f64)) {
        let _ = write!(self.0, "M{} {}h0", Px(at.0), Px(at.1));
    }

    /// A straight line.
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        let _ = write!(self.0, "M{} {}L{} {}", Px(from.0), Px(from.1), Px(to.0), Px(to.1));
    }

    pub(crate) fn close(&mut self) {
        self.0.push('Z');
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }
}

/// How a text is set.
#[derive(Clone, Copy)]
pub(crate) struct TextStyle<'a> {
    pub(crate) size: f64,
    /// `start`, `middle` or `end`.
    pub(crate) anchor: &'a str,
    pub(crate) bold: bool,
    pub(crate) colour: &'a str,
    /// Degrees.
    pub(crate) turn: f64,
}

/// A piece of SVG being written.
pub(crate) struct Svg {
    pub(crate) theme: Theme,
    out: String,
}

impl Svg {
    pub(crate) fn new(theme: Theme) -> Self {
        Self { theme, out: String::new() }
    }

    /// Markup that is already safe.
    pub(crate) fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    pub(crate) fn path(&mut self, path: &Path, attributes: &str) {
        if !path.is_empty() {
            let _ = write!(self.out, r#"<path d="{}" {attributes}/>"#, path.0);
        }
    }

    /// A path that says `title` when pointed at.
    pub(crate) fn titled_path(&mut self, path: &Path, title: &str) {
        let _ = write!(self.out, r#"<path d="{}"><title>{}</title></path>"#, path.0, escape(title));
    }

    pub(crate) fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), attributes: &str) {
        let (width, height) = (Px(width.max(0.0)), Px(height.max(0.0)));
        let _ =
            write!(self.out, r#"<rect x="{}" y="{}" width="{width}" height="{height}" {attributes}/>"#, Px(x), Px(y));
    }

    pub(crate) fn text(&mut self, (x, y): (f64, f64), text: &str, style: TextStyle<'_>) {
        let TextStyle { size, anchor, bold, colour, turn } = style;
        let _ = write!(self.out, r#"<text x="{}" y="{}" font-size="{}" fill="{colour}""#, Px(x), Px(y), Px(size));
        if anchor != "start" {
            let _ = write!(self.out, r#" text-anchor="{anchor}""#);
        }
        if bold {
            self.out.push_str(r#" font-weight="600""#);
        }
        if turn != 0.0 {
            let _ = write!(self.out, r#" transform="rotate({} {} {})""#, Px(turn), Px(x), Px(y));
        }
        let _ = write!(self.out, ">{}</text>", escape(text));
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }
}

/// About how wide `text` is in a sans-serif face.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(character_width).sum::<f64>() * size
}

fn character_width(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | '\u{202f}' => 0.3,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' => 0.4,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.88,
        '⁰' | '¹' | '²' | '³' | '⁴'..='⁹' | '⁻' => 0.4,
        _ if character.is_ascii_uppercase() => 0.68,
        _ if character.is_ascii() => 0.6,
        // Ideographs take a whole square.
        '\u{1100}'.. if !('\u{2000}'..='\u{2bff}').contains(&character) => 1.0,
        _ => 0.62,
    }
}

/// `text`, shortened in its middle where it is wider than `width`: names often differ at their ends.
pub(crate) fn fit(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.into();
    }
    let characters: Vec<char> = text.chars().collect();
    let shortened = |kept: usize| -> String {
        let (head, tail) = (kept.div_ceil(2), kept / 2);
        characters[..head].iter().chain(&['…']).chain(&characters[characters.len() - tail..]).collect()
    };
    (2..characters.len())
        .rev()
        .map(shortened)
        .find(|text| text_width(text, size) <= width)
        .unwrap_or_else(|| "…".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_short_and_finite() {
        let table =
            [(1.0, "1"), (-0.25, "-.3"), (0.04, "0"), (-0.04, "0"), (12.34, "12.3"), (f64::NAN, "0"), (1e9, "100000")];
        for (value, text) in table {
            assert_eq!(Px(value).to_string(), text, "{value}");
        }
    }

    #[test]
    fn paths_lift_the_pen_and_spare_repeated_points() {
        let points = [Some((0.0, 0.0)), Some((0.01, 0.0)), None, Some((1.0, 2.0)), Some((3.0, 4.0))];
        assert_eq!(Path::through(points.into_iter()).0, "M0 0M1 2l2 2");
    }

    #[test]
    fn long_text_is_shortened_in_its_middle() {
        let short = fit("an_unusually_long_name_of_a_covariate_7", 11.0, 80.0);
        assert!(short.starts_with("an_") && short.ends_with("_7") && short.contains('…'), "{short}");
        assert!(text_width(&short, 11.0) <= 80.0);
        assert_eq!(fit("age", 11.0, 80.0), "age");
    }
}

//! From values to places: scales, ranges and ticks.

use crate::number;

/// Numbers beyond this have no place: differences of places must not overflow.
const LARGEST: f64 = 1e300;

/// How values are laid along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences take equal room.
    #[default]
    Linear,
    /// Equal ratios take equal room. Values that are not positive have no place.
    Log,
}

impl Scale {
    /// Where `value` lies on a linear ruler; `None` if it has no place.
    pub(crate) fn place(self, value: f64) -> Option<f64> {
        let place = match self {
            Self::Linear => value,
            Self::Log if value > 0.0 => value.log10(),
            Self::Log => return None,
        };
        (place.abs() <= LARGEST).then_some(place)
    }

    fn value(self, place: f64) -> f64 {
        match self {
            Self::Linear => place,
            Self::Log => 10f64.powf(place),
        }
    }
}

/// A range of values on a scale; `low < high`, both with a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    scale: Scale,
    low: f64,
    high: f64,
    /// The high end comes first: depths grow downwards.
    reversed: bool,
}

impl Span {
    /// The span from `low` to `high`, widened where it is empty; the unit span where an end has no place.
    pub(crate) fn new(scale: Scale, low: f64, high: f64) -> Self {
        let (Some(a), Some(b)) = (scale.place(low), scale.place(high)) else {
            return Self { scale, low: 0.0, high: 1.0, reversed: false };
        };
        let (a, b) = (a.min(b), a.max(b));
        // Differences below this cannot be told apart by ticks.
        let least = (a.abs().max(b.abs()) * 1e-9).max(1e-300);
        if b - a > least {
            return Self { scale, low: a, high: b, reversed: false };
        }
        let room = if a == 0.0 || scale == Scale::Log { 0.5 } else { a.abs() * 0.05 };
        Self { scale, low: a - room, high: a + room, reversed: false }
    }

    /// With shares of its length added at its ends.
    pub(crate) fn padded(self, below: f64, above: f64) -> Self {
        let length = self.high - self.low;
        Self { low: self.low - below * length, high: self.high + above * length, ..self }
    }

    /// The other way round, if so wanted.
    pub(crate) fn reversed_if(self, reversed: bool) -> Self {
        Self { reversed, ..self }
    }

    /// How far along `value` is: 0 at the low end, 1 at the high end, or the other way round.
    pub(crate) fn share(&self, value: f64) -> Option<f64> {
        let share = (self.scale.place(value)? - self.low) / (self.high - self.low);
        Some(if self.reversed { 1.0 - share } else { share })
    }

    /// The ends as values.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.scale.value(self.low), self.scale.value(self.high))
    }

    /// About `wanted` ticks with their labels.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => labelled(&ticks(self.low, self.high, wanted)),
            Scale::Log => self.log_ticks(wanted),
        }
    }

    fn log_ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let (first, last) = (self.low.ceil() as i32, self.high.floor() as i32);
        if last - first >= 2 {
            let powers: Vec<i32> =
                ticks(f64::from(first), f64::from(last), wanted).iter().map(|place| place.round() as i32).collect();
            let small = powers.iter().all(|power| power.abs() <= 3);
            let label = |power: i32| {
                let value = 10f64.powi(power);
                if small { number::tick(value, value.min(1.0)) } else { number::power_of_ten(power) }
            };
            // Fractional steps fall on the same decade more than once.
            let mut powers = powers;
            powers.dedup();
            return powers.into_iter().map(|power| (10f64.powi(power), label(power))).collect();
        }
        let (low, high) = self.ends();
        let inside = |digits: &[f64]| -> Vec<f64> {
            let decades = (self.low.floor() as i32)..=last;
            let all = decades.flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
            all.filter(|value| (low..=high).contains(value)).collect()
        };
        let plain = [&[1.0, 3.0][..], &[1.0, 2.0, 5.0]].into_iter().map(inside).find(|found| found.len() >= 3);
        match plain {
            Some(found) => found.into_iter().map(|value| (value, number::significant(value, 1))).collect(),
            None => labelled(&ticks(low, high, wanted)),
        }
    }
}

/// About `wanted` round numbers from `low` to `high`, evenly spaced: always 3 to 10 of them.
pub fn ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let length = high - low;
    if !(length.is_finite() && length > 0.0) {
        return Vec::new();
    }
    let wanted = wanted.clamp(3, 10);
    let power = length.log10().floor() as i32;
    let steps = (power - 2..=power).rev().flat_map(|power| [5.0, 2.0, 1.0].map(|digit| round_step(digit, power)));
    let choices = steps.map(|step| inside(low, high, step)).filter(|found| (3..=10).contains(&found.len()));
    // Twice as many is as far off as half as many.
    let distance = |found: &Vec<f64>| (found.len() as f64 / wanted as f64).ln().abs();
    choices.min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or_default()
}

/// digit · 10^power, exactly rounded also for negative powers.
fn round_step(digit: f64, power: i32) -> f64 {
    if power < 0 { digit / 10f64.powi(-power) } else { digit * 10f64.powi(power) }
}

/// The multiples of `step` from `low` to `high`.
fn inside(low: f64, high: f64, step: f64) -> Vec<f64> {
    let (first, last) = ((low / step).ceil(), (high / step).floor());
    if !(first.is_finite() && last.is_finite()) || last - first > 20.0 || last < first {
        return Vec::new();
    }
    // Whole numbers of steps: a step that is a fraction of ten is divided by its inverse, which is whole.
    let inverse = (1.0 / step).round();
    let at = |count: f64| if step < 1.0 && inverse > 0.0 && inverse < 1e15 { count / inverse } else { count * step };
    let count = (last - first) as usize + 1;
    (0..count).map(|i| at(first + i as f64)).filter(|value| (low..=high).contains(value)).collect()
}

fn labelled(values: &[f64]) -> Vec<(f64, String)> {
    let step = if values.len() > 1 { values[1] - values[0] } else { 1.0 };
    values.iter().map(|&value| (value, number::tick(value, step))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGES: [(f64, f64); 14] = [
        (0.0, 1.0),
        (0.0, 0.999),
        (-1.0, 1.0),
        (-0.37, 12.2),
        (1e-12, 3e-12),
        (-3e12, 1e12),
        (1000.001, 1000.002),
        (-80.4, -79.1),
        (0.1, 0.3),
        (0.0, 7.0),
        (99.5, 100.5),
        (-1e-3, 2e5),
        (0.149, 0.151),
        (-1e300, 1e300),
    ];

    #[test]
    fn ticks_are_inside_evenly_spaced_and_three_to_ten() {
        for (low, high) in RANGES {
            for wanted in 0..13 {
                let found = ticks(low, high, wanted);
                assert!((3..=10).contains(&found.len()), "{low} {high} {wanted}: {found:?}");
                assert!(found.iter().all(|tick| (low..=high).contains(tick)), "{low} {high}: {found:?}");
                let step = (found[found.len() - 1] - found[0]) / (found.len() - 1) as f64;
                let rounding = 1e-13 * low.abs().max(high.abs());
                for pair in found.windows(2) {
                    assert!((pair[1] - pair[0] - step).abs() <= 1e-9 * step + rounding, "{low} {high}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn labels_of_ticks_differ() {
        for (low, high) in RANGES {
            let labels: Vec<_> = Span::new(Scale::Linear, low, high).ticks(6).into_iter().map(|(_, l)| l).collect();
            let mut unique = labels.clone();
            unique.dedup();
            assert_eq!(labels, unique, "{low} {high}");
        }
    }

    #[test]
    fn a_range_that_is_no_range_has_no_ticks() {
        for (low, high) in [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            assert!(ticks(low, high, 5).is_empty());
        }
    }

    #[test]
    fn log_ticks_are_inside_and_three_to_ten() {
        let ranges =
            [(1e-8, 1.0), (1e-3, 0.5), (0.2, 0.9), (0.011, 0.012), (1.0, 1000.0), (1e-300, 1e300), (0.07, 40.0)];
        for (low, high) in ranges {
            for wanted in [3, 5, 8] {
                let found = Span::new(Scale::Log, low, high).ticks(wanted);
                assert!((3..=10).contains(&found.len()), "{low} {high}: {found:?}");
                assert!(found.iter().all(|(tick, _)| *tick >= low * 0.999 && *tick <= high * 1.001), "{found:?}");
            }
        }
    }

    #[test]
    fn spans_are_never_empty() {
        for scale in [Scale::Linear, Scale::Log] {
            for (low, high) in
                [(0.0, 0.0), (5.0, 5.0), (f64::NAN, 1.0), (-1.0, f64::INFINITY), (1e308, 1e308), (-1e308, 1e308)]
            {
                let span = Span::new(scale, low, high);
                assert!(span.high > span.low && (span.high - span.low).is_finite(), "{scale:?} {low} {high}: {span:?}");
            }
        }
    }

    #[test]
    fn decades_are_labelled_as_powers_or_plainly() {
        let labels = |low, high| -> Vec<String> {
            Span::new(Scale::Log, low, high).ticks(5).into_iter().map(|(_, label)| label).collect()
        };
        assert_eq!(labels(0.01, 10.0), ["0.01", "0.1", "1", "10"]);
        assert_eq!(labels(1e-8, 1.0), ["10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "10⁰"]);
    }
}

//! Where components are, along an axis.

use serde::{Deserialize, Serialize};

use crate::answer::quantity;

/// How many components are to be expected between any two of neighbouring edges: the sum over all is their mean number.
///
/// ```
/// use vti::answer::Positions;
/// // Two draws that count alike: one with a component at 0.2, one with two.
/// let draws = [vec![0.2], vec![0.3, 0.8]];
/// let found = Positions::from_draws("peaks", "energy", (0.0, 1.0), 2, &[1.0, 1.0], |draw| draws[draw].clone());
/// assert_eq!(found.expected, [1.0, 0.5]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Positions {
    /// What is there, as a heading.
    pub name: String,
    /// The axis in words.
    pub label: String,
    /// Edges of intervals, ascending; one more than intervals.
    pub edges: Vec<f64>,
    /// The expected number of components in each interval.
    #[serde(deserialize_with = "quantity::or_nans")]
    pub expected: Vec<f64>,
}

impl Positions {
    /// From weighted draws between two ends; `places(draw)` are the components of a draw.
    pub fn from_draws(
        name: &str,
        label: &str,
        (start, end): (f64, f64),
        intervals: usize,
        weights: &[f64],
        places: impl Fn(usize) -> Vec<f64>,
    ) -> Self {
        let (intervals, length) = (intervals.max(1), end - start);
        let edges: Vec<f64> = (0..=intervals).map(|edge| start + length * edge as f64 / intervals as f64).collect();
        let total: f64 = weights.iter().sum();
        let mut expected = vec![0.0; intervals];
        for (draw, weight) in weights.iter().enumerate() {
            for place in places(draw).into_iter().filter(|place| (start..=end).contains(place)) {
                let interval = ((place - start) / length * intervals as f64) as usize;
                expected[interval.min(intervals - 1)] += weight / total;
            }
        }
        Self { name: name.into(), label: label.into(), edges, expected }
    }

    /// Expected numbers per unit of the axis.
    pub fn intensity(&self) -> impl Iterator<Item = f64> {
        self.edges.windows(2).zip(&self.expected).map(|(ends, expected)| expected / (ends[1] - ends[0]))
    }
}
